package pipeline

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
)

// TestNoFlippedBitGoesUnseen flips one random bit of the data set, the manifest or the archive (record, bundles and all), and wants
// every flip found and the part named. The number of flips is that of the promise in README.md; the slow suite flips ten times as many.
func TestNoFlippedBitGoesUnseen(t *testing.T) {
	flips := 2000
	if os.Getenv("BENCHPIN_LONG") == "1" {
		flips = 20_000
	}
	l, out := gone(t)
	keys := []attest.PublicKey{mustKey(t, l)}
	groups := []struct {
		name  string
		files []string
		share int
		find  func() error
	}{
		{"data", filesBelow(t, l.Data()), flips / 2, func() error { return verifyData(l) }},
		{"manifest", []string{l.Manifest(), manifest.EntriesPath(l.Manifest())}, flips / 4, func() error { return verifyData(l) }},
		{"archive", filesBelow(t, out.Archive), flips / 4, func() error {
			v, err := Verify(context.Background(), out.Archive, keys, attest.Policy{})
			if err != nil {
				return err
			}
			defer v.Close()
			return v.Err()
		}},
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for _, g := range groups {
		if err := g.find(); err != nil {
			t.Fatalf("%s: before any flip: %v", g.name, err)
		}
		for range g.share {
			path := g.files[random.IntN(len(g.files))]
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			bit := random.IntN(8 * len(b))
			flip(t, path, b, bit)
			err = g.find()
			flip(t, path, b, bit)
			if err == nil {
				t.Fatalf("seed %d: bit %d of %s was flipped and nothing was found", seed, bit, path)
			}
			if name := filepath.Base(path); !strings.Contains(err.Error(), name) && !names(g.name, err) {
				t.Fatalf("seed %d: bit %d of %s was flipped and the error names another part: %v", seed, bit, path, err)
			}
		}
		if err := g.find(); err != nil {
			t.Fatalf("%s: after the last flip was undone: %v", g.name, err)
		}
	}
}

// names accepts the errors that name a part otherwise than by the file's own name: the class of a fault in a manifest.
func names(group string, err error) bool {
	var class manifest.Class
	return group == "manifest" && errors.As(err, &class)
}

func flip(t *testing.T, path string, b []byte, bit int) {
	t.Helper()
	b[bit/8] ^= 1 << (bit % 8)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b[bit/8:bit/8+1], int64(bit/8)); err != nil {
		t.Fatal(err)
	}
}

func mustKey(t *testing.T, l Layout) attest.PublicKey {
	t.Helper()
	key, err := attest.LoadPublic(l.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
			err = os.Chmod(path, 0o644)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func verifyData(l Layout) error {
	m, err := manifest.Open(l.Manifest())
	if err != nil {
		return err
	}
	defer m.Close()
	st, err := store.NewFolder(l.Data(), store.FolderOptions{})
	if err != nil {
		return err
	}
	defer st.Close()
	_, err = manifest.Verify(context.Background(), m, st, manifest.VerifyOptions{})
	return err
}
