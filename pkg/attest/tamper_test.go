package attest_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
)

// files returns the files of an archive, relative to its folder, with their sizes.
func files(t testing.TB, dir string) (names []string, sizes map[string]int64) {
	t.Helper()
	sizes = map[string]int64{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		names, sizes[name] = append(names, name), info.Size()
		return err
	}))
	return names, sizes
}

// blamed returns the parts in which an archive that must fail is said to be wrong.
func blamed(t testing.TB, dir string, k attest.PublicKey) ([]*fault.Fault, string) {
	t.Helper()
	v, err := attest.VerifyArchive(context.Background(), dir, []attest.PublicKey{k}, attest.Policy{})
	must(t, err)
	defer v.Close()
	var all []*fault.Fault
	for _, c := range v.Checks {
		if c.OK != (len(c.Faults) == 0) {
			t.Errorf("check %s: ok is %v with faults %v", c.Name, c.OK, c.Faults)
		}
		all = append(all, c.Faults...)
	}
	if v.OK() != (len(all) == 0) {
		t.Errorf("verdict %v with %d faults", v.OK(), len(all))
	}
	return all, describe(v)
}

func names(faults []*fault.Fault, part string) bool {
	for _, f := range faults {
		if strings.Contains(f.Part, part) && f.Class != fault.Unchecked {
			return true
		}
	}
	return false
}

// TestEveryBitCounts flips single bits at random over all bytes of all files of an archive: each must be found, and its file named.
func TestEveryBitCounts(t *testing.T) {
	const flips = 2200
	k := newKey(t, attest.ECDSAP256)
	dir := newArchive(t, newRun(t, nil), k)
	all, sizes := files(t, dir)
	var total int64
	for _, size := range sizes {
		total += size
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	touched := map[string]int{}
	for range flips {
		// Half of the flips go to a file chosen evenly, so that the small ones are not left out.
		at := rng.Int64N(total)
		name := all[rng.IntN(len(all))]
		if rng.IntN(2) == 0 {
			for _, name = range all {
				if at < sizes[name] {
					break
				}
				at -= sizes[name]
			}
		} else {
			at %= sizes[name]
		}
		touched[name]++
		path := filepath.Join(dir, name)
		raw, err := os.ReadFile(path)
		must(t, err)
		bit := byte(1) << rng.IntN(8)
		raw[at] ^= bit
		must(t, os.WriteFile(path, raw, 0o644))
		if faults, text := blamed(t, dir, k.Public()); !names(faults, name) {
			t.Errorf("seed %d: bit %#x of byte %d of %s flipped; found:\n%s", seed, bit, at, name, text)
		}
		raw[at] ^= bit
		must(t, os.WriteFile(path, raw, 0o644))
	}
	if faults, text := blamed(t, dir, k.Public()); len(faults) > 0 {
		t.Fatalf("the archive was not restored:\n%s", text)
	}
	if len(touched) != len(all) {
		t.Errorf("seed %d: only %d of %d files were touched", seed, len(touched), len(all))
	}
	t.Logf("%d flips over %d bytes in %d files", flips, total, len(all))
}

// Everything that can be done to the files of a folder without knowing what they say.
func TestTamperedFolder(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	source := newArchive(t, newRun(t, nil), k)
	all, _ := files(t, source)
	copyOf := func() string {
		dir := filepath.Join(t.TempDir(), "archive")
		must(t, os.CopyFS(dir, os.DirFS(source)))
		return dir
	}
	check := func(what, dir string, parts ...string) {
		t.Helper()
		faults, text := blamed(t, dir, k.Public())
		for _, part := range parts {
			if !names(faults, part) {
				t.Errorf("%s: %s is not named; found:\n%s", what, part, text)
			}
		}
	}
	for i, name := range all {
		dir := copyOf()
		must(t, os.Remove(filepath.Join(dir, name)))
		check("deleted "+name, dir, name)

		dir = copyOf()
		raw, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, name), raw[:len(raw)-1], 0o644))
		check("truncated "+name, dir, name)

		must(t, os.WriteFile(filepath.Join(dir, name), append(raw, '\n'), 0o644))
		check("extended "+name, dir, name)

		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
		check("emptied "+name, dir, name)

		other := all[(i+1)%len(all)]
		dir = copyOf()
		a, b := filepath.Join(dir, name), filepath.Join(dir, other)
		must(t, os.Rename(a, a+".tmp"))
		must(t, os.Rename(b, a))
		must(t, os.Rename(a+".tmp", b))
		check(fmt.Sprintf("swapped %s and %s", name, other), dir, name, other)

		dir = copyOf()
		renamed := strings.Repeat("0", 64)
		must(t, os.Rename(filepath.Join(dir, name), filepath.Join(dir, "blobs", "sha256", renamed)))
		check("renamed "+name, dir, name, renamed)

		dir = copyOf()
		must(t, os.Rename(filepath.Join(dir, name), filepath.Join(dir, "aside")))
		must(t, os.Symlink(filepath.Join(dir, "aside"), filepath.Join(dir, name)))
		check("linked "+name, dir, name, "aside")
	}
	for _, name := range []string{"x", "blobs/x", "blobs/sha256/x", "blobs/sha256/" + strings.Repeat("a", 64), "blobs/sha512/x", ".hidden"} {
		dir := copyOf()
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644))
		part := name
		if strings.HasPrefix(name, "blobs/sha512") {
			part = "blobs/sha512"
		}
		check("added "+name, dir, part)
	}
	dir := copyOf()
	must(t, os.RemoveAll(filepath.Join(dir, "blobs")))
	check("no blobs", dir, "blobs")
	must(t, os.Symlink(filepath.Join(source, "blobs"), filepath.Join(dir, "blobs")))
	check("linked blobs", dir, "blobs")
	if faults, _ := blamed(t, t.TempDir(), k.Public()); len(faults) == 0 {
		t.Error("an empty folder passes")
	}
	// All damage is reported, not only the first.
	dir = copyOf()
	for _, name := range all[:len(all)-2] { // the last two are index.json and oci-layout
		raw, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, name), append(raw, 'x'), 0o644))
	}
	check("damaged all blobs", dir, all[:len(all)-2]...)
}
