package format

import (
	"fmt"
	"io"
	"sync"
)

// npy is one array as numpy.save writes it.
type npy struct{ readers *sync.Pool }

func newNPY() Format {
	return npy{&sync.Pool{New: func() any { return &reader{format: "npy"} }}}
}

func (npy) Name() string { return "npy" }

// header returns the bytes before the payload.
func (npy) header(l Layout) []byte {
	shape := append(append(make([]int, 0, len(l.Dims)+1), l.Dims...), l.Samples)
	return appendNPYHeader(nil, l.DType.Descr, shape)
}

func (f npy) Size(l Layout) (int64, error) {
	if err := l.Check(); err != nil {
		return 0, fmt.Errorf("npy: %w", err)
	}
	return int64(len(f.header(l))) + l.PayloadBytes(), nil
}

func (f npy) Write(w io.Writer, l Layout, c Content, buf []byte) error {
	if err := l.Check(); err != nil {
		return fmt.Errorf("npy: %w", err)
	}
	out := writer{w: w, buf: buffer(buf)}
	if err := out.write(f.header(l)); err != nil {
		return err
	}
	if err := out.content(c, l.PayloadBytes()); err != nil {
		return err
	}
	return out.flush()
}

// ReadSample reads the whole file, as numpy.load does.
func (f npy) ReadSample(file io.ReaderAt, size int64, k int, buf []byte) (Sample, error) {
	r := f.readers.Get().(*reader)
	defer f.readers.Put(r)
	defer r.release()
	r.reset(file, size, buf)
	h, err := readNPYHeader(r)
	if err != nil {
		return Sample{}, err
	}
	if rest := size - h.length; rest != h.payload {
		return Sample{}, r.problem(fmt.Sprintf("the header announces %d bytes of elements, and %d follow", h.payload, rest))
	}
	if k < 0 || int64(k) >= h.samples {
		return Sample{}, r.problem(fmt.Sprintf("sample %d is asked for; the file holds %d", k, h.samples))
	}
	if err := r.skip(h.payload); err != nil {
		return Sample{}, err
	}
	return Sample{Logical: h.sampleBytes(), Asked: size}, nil
}
