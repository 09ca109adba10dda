//go:build !hdf5 || !cgo

package format

import (
	"io"
	"sync"
)

// h5Library says whether this build has libhdf5.
const h5Library = false

// newH5Shown returns nothing: there is no library to show a file to.
func newH5Shown() *sync.Pool { return nil }

// newH5Chunks makes what only libhdf5 writes, as far as it can be known without.
func newH5Chunks(f hdf5, c *h5Chunked) (Format, error) { return h5Chunks{f, *c}, nil }

// Available says which build writes and reads these files.
func (f h5Chunks) Available() error {
	return &UnavailableError{Format: "hdf5", Keys: f.how.keys(), Needs: h5Tag}
}

// Size is an upper bound: where libhdf5 would put things is not known here.
func (f h5Chunks) Size(l Layout) (int64, error) {
	g, err := f.grid(l)
	if err != nil {
		return 0, err
	}
	size := g.bytes
	if f.how.level >= 0 {
		size = h5GzipBound(size)
	}
	return f.bound(g, l.Samples, size), nil
}

// Measure cannot.
func (f h5Chunks) Measure(Layout, Content, []byte) (int64, error) { return 0, f.Available() }

// Write cannot.
func (f h5Chunks) Write(io.Writer, Layout, Content, []byte) error { return f.Available() }

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
