package pipeline

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/datagen"
)

// frozen unpacks testdata/NAME.tar.gz: an archive that an earlier build made, and its public key.
func frozen(t *testing.T, name string) (archive string, key attest.PublicKey) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o777)
		} else {
			var b []byte
			if b, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(to, b, 0o666)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if key, err = attest.LoadPublic(filepath.Join(dir, "benchpin.pub")); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "archive"), key
}

// TestChunkedArchive verifies the archive of a run on chunked, compressed HDF5, which a build with libhdf5 made. Every build makes all
// checks but one; that one is made with libhdf5, and is not passed over without.
func TestChunkedArchive(t *testing.T) {
	archive, key := frozen(t, "chunked-hdf5")
	verify := func(p attest.Policy) (*attest.Verification, attest.Check) {
		v, err := Verify(t.Context(), archive, []attest.PublicKey{key}, p)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { v.Close() })
		i := slices.IndexFunc(v.Checks, func(c attest.Check) bool { return c.Name == checkRecipe })
		for k, c := range v.Checks {
			if k != i && (!c.OK || c.Waived) {
				t.Errorf("%s: %s", c.Name, c.Problem)
			}
		}
		return v, v.Checks[i]
	}
	v, c := verify(attest.Policy{})
	recipe, err := datagen.ParseRecipe(v.Manifest.Header().Recipe)
	if err != nil {
		t.Fatal(err)
	}
	if recipe.Available() == nil {
		if !v.OK() || !c.OK {
			t.Error(v.Err())
		}
		return
	}
	if v.OK() || c.OK || c.Waived || !errors.Is(v.Err(), fault.Unavailable) || !errors.Is(v.Err(), attest.ErrVerification) {
		t.Errorf("without libhdf5: %v", v.Err())
	}
	v, c = verify(attest.Policy{AllowUnavailable: true})
	if !v.OK() || c.OK || !c.Waived || v.Err() != nil {
		t.Errorf("waived: %+v, %v", c, v.Err())
	}
	// What is waived is that a check was not made, and never one that failed.
	v.Add(attest.NewCheck("other", "C", "", "", fault.New(fault.Unavailable, "", "x"), fault.New(fault.Manifest, "", "y")))
	v.Waive(attest.Policy{AllowUnavailable: true})
	if v.OK() {
		t.Error("a failed check was waived")
	}
}
