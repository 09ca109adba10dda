//go:build !hdf5

package format

import (
	"errors"
	"io"
)

// h5Library says whether this build has libhdf5.
const h5Library = false

// errH5Library cannot be met: newHDF5 and ReadSample turn to libhdf5 only in a build that has it.
var errH5Library = errors.New("hdf5: " + h5Tag)

func (hdf5) sizeChunked(Layout, []int) (int64, error) { return 0, errH5Library }

func (hdf5) writeChunked(io.Writer, Layout, []int, Content, []byte) error { return errH5Library }

func (hdf5) readLibrary(io.ReaderAt, int64, int, []byte) (Sample, error) {
	return Sample{}, errH5Library
}
