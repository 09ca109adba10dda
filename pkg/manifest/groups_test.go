package manifest

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/blake3"
	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/manifest/blake"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/storetest"
)

// patterned is content that differs from group to group.
func patterned(n int, seed byte) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// large is a data set of which two files have groups.
func large() *storetest.Memory {
	m := storetest.NewMemory()
	m.Put("a", patterned(2<<20+5, 1))
	m.Put("b", patterned(1<<20, 2))
	m.Put("c/d", patterned(3<<20, 3))
	m.Put("e", nil)
	return m
}

// pinned builds a manifest of a store at a path.
func pinned(t testing.TB, src Source, path string) Header {
	t.Helper()
	f, err := Create(path, Meta{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	if err := Build(context.Background(), src, f, BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	h, err := f.Commit()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func opened(t testing.TB, path string) *Manifest {
	t.Helper()
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func TestGroups(t *testing.T) {
	src, path := large(), filepath.Join(t.TempDir(), "m.json")
	pinned(t, src, path)
	if got, want := files(t, filepath.Dir(path)), []string{"m.entries.jsonl.zst", "m.groups.bin", "m.json"}; !slices.Equal(got, want) {
		t.Fatalf("expected %q, found %q", want, got)
	}
	m := opened(t, path)
	g, err := OpenGroups(path, m)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if files, values := g.Count(); files != 2 || values != 6 {
		t.Errorf("expected 6 digests of 2 files, found %d of %d", values, files)
	}
	seen := 0
	err = g.Each(context.Background(), m, func(index int64, e Entry, groups [][32]byte) error {
		data := storetest.Read(t, src, e.Path)
		var want [][32]byte
		if len(data) > GroupSize {
			for off := 0; off < len(data); off += GroupSize {
				want = append(want, blake.Group(data[off:min(len(data), off+GroupSize)], int64(off/GroupSize)))
			}
		}
		if !slices.Equal(groups, want) {
			t.Errorf("%s: expected %d digests, found %d, or others", e.Path, len(want), len(groups))
		}
		alone, err := g.Of(context.Background(), m, index)
		if err != nil || !slices.Equal(alone, want) {
			t.Errorf("%s alone: %d digests, %v", e.Path, len(alone), err)
		}
		seen++
		return nil
	})
	if err != nil || seen != 4 {
		t.Errorf("%d entries, %v", seen, err)
	}
	if _, err := g.Of(context.Background(), m, 4); !errors.Is(err, ErrNoEntry) {
		t.Errorf("entry 4 of 4: %v", err)
	}
	if r, err := Verify(context.Background(), m, src, VerifyOptions{Groups: g}); err != nil || r.Files != 4 {
		t.Errorf("verify with group digests: %+v, %v", r, err)
	}
}

// A data set without large files has no group digests, and those of an earlier one at the same place go.
func TestNoGroups(t *testing.T) {
	src, path := large(), filepath.Join(t.TempDir(), "m.json")
	pinned(t, src, path)
	src.Remove("a")
	src.Remove("c/d")
	pinned(t, src, path)
	if _, err := os.Lstat(GroupsPath(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("expected no group digests, found %v", err)
	}
	if g, err := OpenGroupsIfAny(path, opened(t, path)); g != nil || err != nil {
		t.Errorf("none: %v, %v", g, err)
	}
	// An entry whose groups nobody computed.
	save(t, path, entry("x", 5<<20))
	if _, err := os.Lstat(GroupsPath(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("expected no group digests, found %v", err)
	}
}

func TestGroupsRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.json")
	data := patterned(2<<20, 7)
	var h blake.Hasher
	_, _ = h.Write(data)
	sum := h.Sum()
	e := Entry{"a", int64(len(data)), sum}
	swapped := [][32]byte{h.Groups()[1], h.Groups()[0]}
	for name, groups := range map[string][][32]byte{"none": nil, "one": h.Groups()[:1], "swapped": swapped} {
		g := CreateGroups(path)
		if err := g.AddGroups(e, groups); !errors.Is(err, ErrGroups) {
			t.Errorf("%s: %v", name, err)
		}
		if err := g.Commit([32]byte{}); !errors.Is(err, ErrGroups) {
			t.Errorf("%s: committed: %v", name, err)
		}
	}
	if got := files(t, filepath.Dir(path)); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
}

// groupsOf returns the group digests of the data set large, and its manifest.
func groupsOf(t testing.TB) ([]byte, *Manifest) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.json")
	pinned(t, large(), path)
	b, err := os.ReadFile(GroupsPath(path))
	if err != nil {
		t.Fatal(err)
	}
	return b, opened(t, path)
}

func checkGroups(b []byte, m *Manifest) error {
	g, err := OpenGroupsReader(bytes.NewReader(b), int64(len(b)), m)
	if err != nil {
		return err
	}
	return g.Check(context.Background(), m)
}

// TestGroupsFlips flips every bit, cuts at every length and adds a byte: none of it is accepted, and every error has a class.
func TestGroupsFlips(t *testing.T) {
	b, m := groupsOf(t)
	if err := checkGroups(b, m); err != nil {
		t.Fatal(err)
	}
	classed := func(what string, n int, err error) {
		if c := Class(""); !errors.As(err, &c) {
			t.Errorf("%s %d: %v", what, n, err)
		}
	}
	for bit := range len(b) * 8 {
		bad := bytes.Clone(b)
		bad[bit/8] ^= 1 << (bit % 8)
		classed("bit", bit, checkGroups(bad, m))
		if bit/8 < groupsHeader-32 { // and with a header digest that suits
			sum := blake3.Sum256(bad[:groupsHeader-32])
			copy(bad[groupsHeader-32:], sum[:])
			classed("resealed bit", bit, checkGroups(bad, m))
		}
	}
	for n := range b {
		classed("cut", n, checkGroups(b[:n], m))
	}
	classed("longer", 1, checkGroups(append(bytes.Clone(b), 0), m))
	// Digests of one file given to the other: right in number, wrong in place.
	bad := bytes.Clone(b)
	copy(bad[groupsHeader:], b[groupsHeader+96:])
	copy(bad[groupsHeader+96:], b[groupsHeader:groupsHeader+96])
	if err := checkGroups(bad, m); !errors.Is(err, ErrGroups) || !strings.Contains(err.Error(), "a combine") {
		t.Errorf("swapped files: %v", err)
	}
}

// readGroupsVector checks group digests, written in hexadecimal digits, against the manifest of the data set large.
func readGroupsVector(t *testing.T, body []byte) error {
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(body)), ""))
	if err != nil {
		t.Fatal(err)
	}
	_, m := groupsOf(t)
	return checkGroups(b, m)
}

// FuzzGroups: what is accepted is what is written.
func FuzzGroups(f *testing.F) {
	b, m := groupsOf(f)
	f.Add(b)
	f.Add(b[:groupsHeader])
	f.Fuzz(func(t *testing.T, bad []byte) {
		if checkGroups(bad, m) == nil && !bytes.Equal(bad, b) {
			t.Fatalf("accepted %x", bad)
		}
		if len(bad) < groupsHeader { // a fuzzer does not find digests
			return
		}
		sum := blake3.Sum256(bad[:groupsHeader-32])
		bad = append(append(bytes.Clone(bad[:groupsHeader-32]), sum[:]...), bad[groupsHeader:]...)
		if checkGroups(bad, m) == nil && !bytes.Equal(bad, b) {
			t.Fatalf("accepted %x", bad)
		}
		if info, err := parseGroupsInfo(bad); err == nil && !bytes.Equal(info.encode(), bad[:groupsHeader]) {
			t.Fatalf("read %x, written %x", bad[:groupsHeader], info.encode())
		}
	})
}

// TestHashFileProperties hashes files of any size with any number of workers, as a store does that reads from memory, from the page
// cache or from a device.
func TestHashFileProperties(t *testing.T) {
	all := patterned(6<<20, 9)
	memory := storetest.NewMemory()
	dir := t.TempDir()
	plain, err := store.NewFolder(dir, store.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	uncached, err := store.NewFolder(dir, store.FolderOptions{Uncached: true})
	if err != nil {
		t.Fatal(err)
	}
	resident, err := store.NewFolder(dir, store.FolderOptions{Uncached: true, Resident: true})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.OneOf(rapid.SampledFrom([]int{0, 1, 1023, 1024, 1025, 1<<20 - 1, 1 << 20, 1<<20 + 1, 2 << 20, 4<<20 + 1}),
			rapid.IntRange(0, 5000), rapid.IntRange(0, len(all))).Draw(rt, "size")
		data := all[:n]
		memory.Put("f", data)
		storetest.Write(t, plain, "f", data)
		src := rapid.SampledFrom([]Source{memory, plain, uncached, resident}).Draw(rt, "store")
		var progress int
		h, err := HashFile(context.Background(), src, "f", HashOptions{Workers: rapid.IntRange(0, 9).Draw(rt, "workers"), Progress: func(n int) { progress += n }})
		if err != nil {
			rt.Fatal(err)
		}
		if h.Digest != blake3.Sum256(data) || h.Info.Size != int64(n) || progress != n || int64(len(h.Groups)) != GroupCount(int64(n)) {
			rt.Fatalf("%d bytes: %x, size %d, progress %d, %d groups", n, h.Digest, h.Info.Size, progress, len(h.Groups))
		}
	})
}

// TestHashFileFails has reads that fail or end early while several workers are at a file.
func TestHashFileFails(t *testing.T) {
	m := storetest.NewMemory()
	m.Put("f", patterned(9<<20, 4))
	broken := errors.New("broken")
	if _, err := HashFile(context.Background(), storetest.FailOnce(m, "f", broken), "f", HashOptions{Workers: 4}); !errors.Is(err, broken) {
		t.Errorf("a read that fails: %v", err)
	}
	if _, err := HashFile(context.Background(), storetest.ShortRead(m, "f", 5<<20+7), "f", HashOptions{Workers: 4}); !errors.Is(err, ErrUnstable) {
		t.Errorf("a file that ends early: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	slow := storetest.OnRead(m, "f", func(off int64) {
		if off > 3<<20 {
			cancel()
		}
	})
	if _, err := HashFile(ctx, slow, "f", HashOptions{Workers: 4}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	flipped := storetest.FlipBit(m, "f", 8*(7<<20))
	h, err := HashFile(context.Background(), flipped, "f", HashOptions{Workers: 4})
	good, gerr := HashFile(context.Background(), m, "f", HashOptions{Workers: 1})
	if err != nil || gerr != nil || h.Digest == good.Digest {
		t.Errorf("a flipped bit: %v, %v", err, gerr)
	}
	for i := range h.Groups {
		if (h.Groups[i] == good.Groups[i]) == (i == 7) {
			t.Errorf("group %d: expected only group 7 to differ", i)
		}
	}
}
