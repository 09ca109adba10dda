package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/storetest"
)

// tries is how many random data sets each kind of damage is done to.
const tries = 1000

// damage does one kind of harm to the files of a folder and returns the paths of which at least one must be named, as they are slash
// separated in the manifest or in the store.
type damage struct {
	name string
	do   func(t *testing.T, r *rand.Rand, dir string, files []string) (named []string)
}

var damages = []damage{
	{"truncated", func(t *testing.T, r *rand.Rand, dir string, files []string) []string {
		path, size := pick(t, r, dir, files, 1)
		must(t, os.Truncate(filepath.Join(dir, path), r.Int64N(size)))
		return []string{path}
	}},
	{"extended", func(t *testing.T, r *rand.Rand, dir string, files []string) []string {
		path, size := pick(t, r, dir, files, 0)
		must(t, os.Truncate(filepath.Join(dir, path), size+1+r.Int64N(5000))) // by zeros, the least suspicious bytes
		return []string{path}
	}},
	{"swapped", func(t *testing.T, r *rand.Rand, dir string, files []string) []string {
		a, b := two(t, r, dir, files)
		swap(t, filepath.Join(dir, a), filepath.Join(dir, b), filepath.Join(dir, "swap"))
		return []string{a, b}
	}},
	{"renamed", func(t *testing.T, r *rand.Rand, dir string, files []string) []string {
		path, _ := pick(t, r, dir, files, 0)
		must(t, os.Rename(filepath.Join(dir, path), filepath.Join(dir, path+"~")))
		return []string{path}
	}},
	{"deleted", func(t *testing.T, r *rand.Rand, dir string, files []string) []string {
		path, _ := pick(t, r, dir, files, 0)
		must(t, os.Remove(filepath.Join(dir, path)))
		return []string{path}
	}},
	{"added", func(t *testing.T, r *rand.Rand, dir string, files []string) []string {
		// A copy beside its original, so that nothing about it is strange but that it is there.
		path, _ := pick(t, r, dir, files, 0)
		b, err := os.ReadFile(filepath.Join(dir, path))
		must(t, err)
		to := fmt.Sprintf("%s.%d", path, r.IntN(1000))
		must(t, os.WriteFile(filepath.Join(dir, to), b, 0o644))
		return []string{to}
	}},
	{"emptied", func(t *testing.T, r *rand.Rand, dir string, files []string) []string {
		path, _ := pick(t, r, dir, files, 1)
		must(t, os.Truncate(filepath.Join(dir, path), 0))
		return []string{path}
	}},
	{"case changed", func(t *testing.T, r *rand.Rand, dir string, files []string) []string {
		path, _ := pick(t, r, dir, files, 0)
		base := filepath.Base(path)
		to := filepath.Join(filepath.Dir(path), strings.ToUpper(base[:1])+base[1:])
		must(t, os.Rename(filepath.Join(dir, path), filepath.Join(dir, to)))
		return []string{path}
	}},
}

// TestNoDamageGoesUnseen does each kind of damage to a thousand random data sets: verifying must find every one, and name the path. A
// verification without damage before each must find nothing: a thousand clean runs without alarm, for each kind.
func TestNoDamageGoesUnseen(t *testing.T) {
	seed := rand.Uint64()
	for kind, d := range damages {
		t.Run(strings.ReplaceAll(d.name, " ", "_"), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, uint64(kind)))
			for try := range tries {
				dir := t.TempDir()
				files := plant(t, r, dir)
				src, err := store.NewFolder(dir, store.FolderOptions{})
				must(t, err)
				m := mustOpen(t, pin(t, src, 2))
				if _, err := Verify(context.Background(), m, src, VerifyOptions{Workers: 2}); err != nil {
					t.Fatalf("seed %d, try %d: an alarm over a clean data set: %v", seed, try, err)
				}
				named := d.do(t, r, dir, files)
				report, err := Verify(context.Background(), m, src, VerifyOptions{Workers: 2})
				var mismatch *MismatchError
				if !errors.As(err, &mismatch) {
					t.Fatalf("seed %d, try %d: %v: nothing was found: %v", seed, try, named, err)
				}
				for _, path := range named {
					if !slices.ContainsFunc(report.Mismatches, func(m *MismatchError) bool { return m.Path == path || m.To == path }) {
						t.Fatalf("seed %d, try %d: %s is not named: %v", seed, try, path, err)
					}
				}
				must(t, src.Close())
				must(t, os.RemoveAll(dir))
			}
		})
	}
}

// TestNoFlipGoesUnseen flips 20,000 random bits, one at a time, in the files of a data set and in the two files of its manifest.
func TestNoFlipGoesUnseen(t *testing.T) {
	const flips = 20_000
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	files := plant(t, r, dir)
	src, err := store.NewFolder(dir, store.FolderOptions{})
	must(t, err)
	defer src.Close()
	p := pin(t, src, 2)
	m := mustOpen(t, p)
	for range flips / 2 {
		path, size := pick(t, r, dir, files, 1)
		bit := r.Int64N(8 * size)
		name := filepath.Join(dir, path)
		flipFile(t, name, bit)
		_, err := Verify(context.Background(), m, src, VerifyOptions{Workers: 2})
		flipFile(t, name, bit)
		var mismatch *MismatchError
		if !errors.As(err, &mismatch) || mismatch.Path != path || mismatch.Kind != Changed {
			t.Fatalf("seed %d: bit %d of %s: %v", seed, bit, path, err)
		}
	}
	for range flips / 2 {
		part := [][]byte{p.header, p.entries}[r.IntN(2)]
		bit := r.IntN(8 * len(part))
		part[bit/8] ^= 1 << (bit % 8)
		_, err := p.read()
		part[bit/8] ^= 1 << (bit % 8)
		var class Class
		if !errors.As(err, &class) {
			t.Fatalf("seed %d: bit %d of the manifest: %v", seed, bit, err)
		}
	}
	if _, err := Verify(context.Background(), m, src, VerifyOptions{Workers: 2}); err != nil {
		t.Fatalf("seed %d: after the last flip was undone: %v", seed, err)
	}
}

// plant makes a small random data set in a folder, with folders, an empty file and two of one size, and returns its paths. All names
// begin with a small letter.
func plant(t *testing.T, r *rand.Rand, dir string) []string {
	t.Helper()
	files := []string{"empty", "twin_a", "twin_b"}
	sizes := []int{0, 700, 700}
	for i := range 3 + r.IntN(6) {
		files = append(files, []string{"", "train/", "valid/deep/"}[r.IntN(3)]+fmt.Sprintf("img_%d.npz", i))
		sizes = append(sizes, 1+r.IntN(3000))
	}
	salt := r.IntN(1 << 20)
	for i, path := range files {
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, path), storetest.Pattern(salt+i, sizes[i]), 0o644))
	}
	return files
}

// pick chooses a file of at least least bytes.
func pick(t *testing.T, r *rand.Rand, dir string, files []string, least int64) (string, int64) {
	t.Helper()
	for {
		path := files[r.IntN(len(files))]
		info, err := os.Stat(filepath.Join(dir, path))
		must(t, err)
		if info.Size() >= least {
			return path, info.Size()
		}
	}
}

// two chooses files with different bytes, now and then of one size.
func two(t *testing.T, r *rand.Rand, dir string, files []string) (a, b string) {
	t.Helper()
	if r.IntN(4) == 0 {
		return "twin_a", "twin_b"
	}
	for {
		a, _ = pick(t, r, dir, files, 0)
		b, _ = pick(t, r, dir, files, 0)
		x, err := os.ReadFile(filepath.Join(dir, a))
		must(t, err)
		y, err := os.ReadFile(filepath.Join(dir, b))
		must(t, err)
		if !bytes.Equal(x, y) {
			return a, b
		}
	}
}

func swap(t *testing.T, a, b, spare string) {
	t.Helper()
	must(t, os.Rename(a, spare))
	must(t, os.Rename(b, a))
	must(t, os.Rename(spare, b))
}

func flipFile(t *testing.T, path string, bit int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	b := make([]byte, 1)
	_, err = f.ReadAt(b, bit/8)
	must(t, err)
	b[0] ^= 1 << (bit % 8)
	_, err = f.WriteAt(b, bit/8)
	must(t, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
