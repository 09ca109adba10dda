//go:build !hdf5 || !cgo

package datagen

import (
	"errors"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/store"
)

func libraryContainers() map[string][]string { return nil }

// TestWithoutLibrary: a recipe of what only libhdf5 writes is understood, for planning and for verifying, and making a file is refused,
// with the key and what to do.
func TestWithoutLibrary(t *testing.T) {
	for option, key := range map[string]string{"hdf5: {chunk_dims: [1, 5, 5]}": "dataset.hdf5.chunk_dims", "compression: gzip": "dataset.compression",
		"hdf5: {max_shape: [99, 99]}": "dataset.hdf5.max_shape"} {
		r, err := parse(t, 1, "format: hdf5", "record_length_bytes: 100", option)
		if err != nil {
			t.Errorf("%s: %v", option, err)
			continue
		}
		if again, err := ParseRecipe(r.JSON()); err != nil || string(again.JSON()) != string(r.JSON()) {
			t.Errorf("%s: read again: %v", option, err)
		}
		f := r.File(0)
		if !f.AtMost || f.Size < 100+8+2048 || f.Size > 256<<10 || !f.CanBe(2300) || f.CanBe(f.Size+1) {
			t.Errorf("%s: %+v", option, f)
		}
		st, err := store.NewFolder(t.TempDir(), store.FolderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		_, generated := Generate(t.Context(), st, r, Options{})
		_, _, digested := r.Digest(t.Context(), 0)
		_, measured := r.Measure(0)
		for what, err := range map[string]error{"generate": generated, "digest": digested, "measure": measured, "available": r.Available()} {
			var lacking *format.UnavailableError
			if !errors.As(err, &lacking) || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "-tags hdf5") {
				t.Errorf("%s: %s: %v", option, what, err)
			}
		}
	}
}
