//go:build !hdf5 || !cgo

package datagen

import (
	"strings"
	"testing"
)

func libraryContainers() map[string][]string { return nil }

// TestWithoutLibrary: what only libhdf5 writes is refused, with the key and what to do.
func TestWithoutLibrary(t *testing.T) {
	for option, key := range map[string]string{"hdf5: {chunk_dims: [1, 5, 5]}": "dataset.hdf5.chunk_dims", "compression: gzip": "dataset.compression",
		"hdf5: {max_shape: [99, 99]}": "dataset.hdf5.max_shape"} {
		if _, err := parse(t, 1, "format: hdf5", "record_length_bytes: 100", option); err == nil || !strings.Contains(err.Error(), key) ||
			!strings.Contains(err.Error(), "-tags hdf5") {
			t.Errorf("%s: %v", option, err)
		}
	}
}
