package format

import (
	"fmt"
	"io"
	"slices"
	"sync"
)

// hdf5 is an HDF5 file as DLIO writes it with h5py: data sets records_0 ... records_{k-1} of shape (samples, dims...), the first
// dimension divided by k, and labels, one int64 of 0 a sample. The elements lie in one piece (contiguous) unless chunks, a
// compression or a largest shape is asked for, which libhdf5 writes.
type hdf5 struct {
	datasets int
	readers  *sync.Pool
	foreign  bool       // data sets have any name
	shown    *sync.Pool // of *h5Shown, in a build with libhdf5
}

// h5Chunked is how data sets are stored that are not contiguous.
type h5Chunked struct {
	chunk    []int // chunk shape, empty to choose as h5py does
	maxShape []int // of one record, empty for the record's own
	level    int   // of gzip, -1 for none
}

const (
	// h5MaxDatasets bounds the names in a file, and with them the metadata that reading a sample walks through.
	h5MaxDatasets = 4096
	// h5Tag says what a build must have to go beyond contiguous data.
	h5Tag = "this binary was built without libhdf5 (go build -tags hdf5, with Debian's libhdf5-dev)"
)

// newHDF5 makes the format of spec s. Level 0 is the default level.
func newHDF5(s Spec) (Format, error) {
	if err := s.only("compression", "level", "datasets", "chunk", "max_shape"); err != nil {
		return nil, err
	}
	f := hdf5{datasets: 1, readers: &sync.Pool{New: func() any { return new(h5Reader) }}, shown: newH5Shown()}
	switch {
	case s.Datasets < 0 || s.Datasets > h5MaxDatasets:
		return nil, fmt.Errorf("dataset.hdf5.num_dset_per_record is %d; expected 1 to %d", s.Datasets, h5MaxDatasets)
	case s.Datasets > 0:
		f.datasets = s.Datasets
	}
	c := &h5Chunked{chunk: slices.Clone(s.Chunk), maxShape: slices.Clone(s.MaxShape), level: -1}
	switch s.Compression {
	case "":
		if s.Level != 0 {
			return nil, fmt.Errorf("dataset.compression_level is %d, but dataset.compression is none; remove it", s.Level)
		}
	case "gzip":
		if c.level = s.Level; c.level == 0 {
			c.level = defaultLevel
		}
		if c.level < 0 || c.level > 9 {
			return nil, fmt.Errorf("dataset.compression_level is %d; expected 1 to 9", s.Level)
		}
	case "lzf":
		return nil, fmt.Errorf("dataset.compression lzf is a filter of h5py, not of HDF5, and not available; use gzip or none")
	default:
		return nil, fmt.Errorf("dataset.compression %q is not available in hdf5; use gzip or none", s.Compression)
	}
	for _, d := range append(slices.Clone(c.chunk), c.maxShape...) {
		if d < 1 {
			return nil, fmt.Errorf("dataset.hdf5.chunk_dims is %v and max_shape %v; every number must be at least 1", c.chunk, c.maxShape)
		}
	}
	if len(c.chunk) == 0 && len(c.maxShape) == 0 && c.level < 0 {
		return f, nil
	}
	return newH5Chunks(f, c)
}

func (hdf5) Name() string { return "hdf5" }

// shape returns the shape of each data set.
func (f hdf5) shape(l Layout) ([]int, error) {
	if err := l.Check(); err != nil {
		return nil, fmt.Errorf("hdf5: %w", err)
	}
	shape := append(make([]int, 0, len(l.Dims)+1), l.Samples)
	if f.datasets > 1 {
		if len(l.Dims) == 0 || l.Dims[0]%f.datasets != 0 {
			return nil, fmt.Errorf("hdf5: dataset.hdf5.num_dset_per_record %d does not divide the first dimension of a sample, %v",
				f.datasets, l.Dims)
		}
	}
	for i, d := range l.Dims {
		if i == 0 {
			if d /= f.datasets; d == 1 {
				continue // as DLIO: a leading dimension of 1 is dropped
			}
		}
		shape = append(shape, d)
	}
	return shape, nil
}

func (f hdf5) Size(l Layout) (int64, error) {
	shape, err := f.shape(l)
	if err != nil {
		return 0, err
	}
	return f.plan(l, shape).size, nil
}

// AskedBytes is the metadata of our own files, in pages, and the rows.
func (f hdf5) AskedBytes(sampleBytes int64, _ int, size int64) int64 {
	_, group := h5GroupHeaderBytes(f.datasets)
	used := h5Superblock + group + int64(f.datasets)*h5HeaderBytes(0, h5DatasetHeader)
	return min(size, (used+h5PageSize-1)/h5PageSize*h5PageSize) + sampleBytes
}

func (f hdf5) Write(w io.Writer, l Layout, c Content, buf []byte) error {
	shape, err := f.shape(l)
	if err != nil {
		return err
	}
	p := f.plan(l, shape)
	out := writer{w: w, buf: buffer(buf)}
	if err := out.write(p.meta); err != nil {
		return err
	}
	if err := out.content(c, l.PayloadBytes()); err != nil {
		return err
	}
	if err := out.zeros(8 * int64(l.Samples)); err != nil {
		return err
	}
	return out.flush()
}

// ReadSample reads row k of each data set, and the metadata on the way to it, as h5py does for records_i[k] of a file just opened.
// The elements are those of rows, in pieces that end at multiples of len(buf); metadata are read in pages of 4 KiB.
func (f hdf5) ReadSample(file io.ReaderAt, size int64, k int, buf []byte) (Sample, error) {
	r := f.readers.Get().(*h5Reader)
	defer f.readers.Put(r)
	defer r.release()
	r.reset(file, size, buf)
	r.foreign = f.foreign
	s, err := r.sample(f.datasets, k)
	if err != nil && r.beyond && !f.foreign {
		if !h5Library {
			return Sample{}, fmt.Errorf("%w; %s", err, h5Tag)
		}
		return f.readLibrary(r, k, err)
	}
	return s, err
}
