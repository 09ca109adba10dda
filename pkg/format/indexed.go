package format

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"sync"
)

// indexed is Megatron's kind of file: the samples back to back without any structure, and two indexes of one little-endian uint64 a
// sample, its offset in the file and its length, both in bytes.
//
// DLIO lets the offsets begin again at 0 in each piece of generation_buffer_size bytes that its generator writes, so that its reader
// takes other samples than the one asked for. Here they are offsets in the file.
type indexed struct {
	name string
	// page is what the reader asks for at least: a memory map is read in whole pages, explicit reads in bytes.
	page    int64
	readers *sync.Pool
}

func newIndexed() Format { return indexedBy("indexed_binary", 1) }

// newMappedIndexed makes the format whose files a framework maps into memory. DLIO takes a slice of the map and never looks at it, so
// that nothing is read; here the pages that the sample lies in are read, which is what looking at it does.
func newMappedIndexed() Format { return indexedBy("mmap_indexed_binary", 4096) }

func indexedBy(name string, page int64) Format {
	return indexed{name, page, &sync.Pool{New: func() any { return &reader{format: name} }}}
}

func (f indexed) Name() string { return f.name }

func (f indexed) check(l Layout) error {
	if err := l.Check(); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return nil
}

func (f indexed) Size(l Layout) (int64, error) {
	if err := f.check(l); err != nil {
		return 0, err
	}
	return l.PayloadBytes(), nil
}

func (f indexed) Write(w io.Writer, l Layout, c Content, buf []byte) error {
	if err := f.check(l); err != nil {
		return err
	}
	out := writer{w: w, buf: buffer(buf)}
	if err := out.content(c, l.PayloadBytes()); err != nil {
		return err
	}
	return out.flush()
}

// indexEntry is the bytes of one number in an index.
const indexEntry = 8

// Companions are the offsets, then the lengths.
func (f indexed) Companions() []Companion {
	index := func(suffix string, entry func(l Layout, k int64) int64) Companion {
		return Companion{
			Path: func(data string) string { return data + suffix },
			Size: func(l Layout) (int64, error) {
				if err := f.check(l); err != nil {
					return 0, err
				}
				return indexEntry * int64(l.Samples), nil
			},
			Write: func(w io.Writer, l Layout) error {
				if err := f.check(l); err != nil {
					return err
				}
				out := writer{w: w, buf: make([]byte, min(32<<10, mul(indexEntry, int64(l.Samples))))}
				var number [indexEntry]byte
				for k := range int64(l.Samples) {
					binary.LittleEndian.PutUint64(number[:], uint64(entry(l, k)))
					if err := out.write(number[:]); err != nil {
						return err
					}
				}
				return out.flush()
			},
		}
	}
	return []Companion{
		index(".off.idx", func(l Layout, k int64) int64 { return k * l.SampleBytes() }),
		index(".sz.idx", func(l Layout, _ int64) int64 { return l.SampleBytes() }),
	}
}

// ReadSample refuses: nothing in the file says where a sample is.
func (f indexed) ReadSample(io.ReaderAt, int64, int, []byte) (Sample, error) {
	return Sample{}, fmt.Errorf("%s: a sample's place is in the files .off.idx and .sz.idx beside the data; read it with them", f.name)
}

// ReadSampleWith reads the sample's offset and length, then its bytes, or the pages that they lie in.
func (f indexed) ReadSampleWith(file io.ReaderAt, size int64, open func(int) (io.ReaderAt, int64, error), k int, buf []byte) (Sample, error) {
	r := f.readers.Get().(*reader)
	defer f.readers.Put(r)
	defer r.release()
	var place [2]int64
	entries := int64(0)
	for i, what := range [...]string{"offset", "length"} {
		index, bytes, err := open(i)
		if err != nil {
			return Sample{}, err
		}
		r.reset(index, bytes, buf)
		switch {
		case bytes%indexEntry != 0:
			r.window(bytes, 0)
			return Sample{}, r.problem(fmt.Sprintf("index of %ss: %d bytes; expected a multiple of %d", what, bytes, indexEntry))
		case i == 0:
			entries = bytes / indexEntry
		case bytes/indexEntry != entries:
			r.window(bytes, 0)
			return Sample{}, r.problem(fmt.Sprintf("indexes of %d offsets and %d lengths; expected as many of both", entries, bytes/indexEntry))
		}
		if k < 0 || int64(k) >= entries {
			return Sample{}, r.problem(fmt.Sprintf("index of %ss: sample %d is asked for; it has %d", what, k, entries))
		}
		r.window(int64(k)*indexEntry, indexEntry)
		p, err := r.take(indexEntry)
		if err != nil {
			return Sample{}, err
		}
		place[i] = int64(min(binary.LittleEndian.Uint64(p), math.MaxInt64))
	}
	at, n := place[0], place[1]
	r.reset(file, size, buf)
	if at > size || n > size-at {
		r.window(min(at, size), 0)
		return Sample{}, r.problem(fmt.Sprintf("the index has sample %d, %d bytes, at %d; the file has %d bytes", k, n, at, size))
	}
	if n == 0 {
		return Sample{Asked: 2 * indexEntry}, nil
	}
	start := at / f.page * f.page
	end := min((at+n-1)/f.page*f.page+f.page, size)
	r.buf = r.buf[:int64(len(r.buf))/f.page*f.page]
	r.window(start, end-start)
	if err := r.skip(end - start); err != nil {
		return Sample{}, err
	}
	return Sample{Logical: n, Asked: 2*indexEntry + end - start}, nil
}

// AskedBytes is a sample, in pages where it is mapped, and its two numbers.
func (f indexed) AskedBytes(sampleBytes int64, _ int, size int64) int64 {
	n := sampleBytes
	if n%f.page != 0 {
		n += f.page - 1 // the mean over all places that a sample may have in its first page
	}
	return min(n, size) + 2*indexEntry
}

var (
	_ Companioned     = indexed{}
	_ CompanionReader = indexed{}
	_ Partial         = indexed{}
)
