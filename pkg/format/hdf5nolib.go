//go:build !hdf5 || !cgo

package format

import (
	"fmt"
	"strings"
	"sync"
)

// h5Library says whether this build has libhdf5.
const h5Library = false

// newH5Shown returns nothing: there is no library to show a file to.
func newH5Shown() *sync.Pool { return nil }

// newH5Chunks refuses what only libhdf5 writes.
func newH5Chunks(_ hdf5, c *h5Chunked) (Format, error) {
	return nil, fmt.Errorf("%s needs libhdf5, and %s; without it data are contiguous", strings.Join(c.keys(), ", "), h5Tag)
}

// keys names the options that make data sets chunked.
func (c *h5Chunked) keys() (keys []string) {
	if c.level >= 0 {
		keys = append(keys, "dataset.compression")
	}
	if len(c.chunk) > 0 {
		keys = append(keys, "dataset.hdf5.chunk_dims")
	}
	if len(c.maxShape) > 0 {
		keys = append(keys, "dataset.hdf5.max_shape")
	}
	return keys
}

// readLibrary is never asked: ReadSample turns to libhdf5 only in a build that has it.
func (hdf5) readLibrary(_ *h5Reader, _ int, problem error) (Sample, error) { return Sample{}, problem }
