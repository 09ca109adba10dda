//go:build hdf5 && cgo

package format

/*
#cgo pkg-config: hdf5
#include <stdlib.h>
#include "hdf5lib.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/zlib"
)

// h5Library says whether this build has libhdf5.
const h5Library = true

const (
	h5FilterDeflate    = 1
	h5FilterShuffle    = 2
	h5FilterFletcher32 = 3
)

// h5Shown is what libhdf5 has been shown of a file, and what it made of it.
type h5Shown struct {
	numbers []uint64 // pages, sorted
	pages   []byte
	row     C.h5lib_row
	packed  h5Packed
	inflate io.ReadCloser
	out     []byte
}

func newH5Shown() *sync.Pool { return &sync.Pool{New: func() any { return new(h5Shown) }} }

// readLibrary reads sample k of a file that r does not read by itself, for the reason that problem says. libhdf5 finds the rows; the
// input is done here. It is a parser in C: what it makes of damaged files is its own affair.
func (f hdf5) readLibrary(r *h5Reader, k int, problem error) (Sample, error) {
	var at int64
	if e := (*DataError)(nil); errors.As(problem, &e) {
		at = e.Offset
	}
	found := f.shown.Get().(*h5Shown)
	defer f.shown.Put(found)
	found.numbers, found.pages = found.numbers[:0], found.pages[:0]
	r.work = h5Work
	var s Sample
	for i := range f.datasets {
		name := "records_" + strconv.Itoa(i)
		if r.plain {
			name = "records"
		}
		n, err := r.libraryRow(found, name, k, at)
		if err != nil {
			return Sample{}, err
		}
		s.Logical += n
	}
	s.Asked = r.asked
	return s, nil
}

// find asks libhdf5 for a row, and gives it the pages that it misses.
func (r *h5Reader) find(found *h5Shown, name string, k int, first uint64, at int64) error {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	for {
		switch C.h5lib_find((*C.uchar)(unsafe.SliceData(found.pages)), (*C.uint64_t)(unsafe.SliceData(found.numbers)),
			C.size_t(len(found.numbers)), C.uint64_t(r.size), text, C.uint64_t(k), C.uint64_t(first), &found.row) {
		case C.H5LIB_OK:
			return nil
		case C.H5LIB_FAILED:
			return r.problem(at, "libhdf5 does not read %s: %s", name, C.GoString(&found.row.problem[0]))
		}
		if err := r.give(found, int64(found.row.miss_at), int64(found.row.miss_n)); err != nil {
			return err
		}
	}
}

// give reads the pages that hold n bytes at byte off.
func (r *h5Reader) give(found *h5Shown, off, n int64) error {
	for page := off / h5PageSize; page*h5PageSize < off+n; page++ {
		where, have := slices.BinarySearch(found.numbers, uint64(page))
		if have {
			continue
		}
		if r.work -= h5PageSize; r.work < 0 {
			return r.problem(off, "more than %d bytes of metadata on the way to one sample", h5Work)
		}
		found.numbers = slices.Insert(found.numbers, where, uint64(page))
		end := len(found.pages)
		found.pages = append(found.pages, make([]byte, h5PageSize)...)
		copy(found.pages[(where+1)*h5PageSize:], found.pages[where*h5PageSize:end])
		p := found.pages[where*h5PageSize : (where+1)*h5PageSize]
		clear(p)
		if err := r.page(p, page); err != nil {
			return err
		}
	}
	return nil
}

// page fills p with a page of the file: one that was read already, or one that is read now.
func (r *h5Reader) page(p []byte, number int64) error {
	if known := &r.pages[number%h5Pages]; known.number == number {
		copy(p, known.data[:known.n])
		return nil
	}
	start := number * h5PageSize
	return r.read(p[:min(h5PageSize, r.size-start)], start)
}

// libraryRow reads row k of one data set.
func (r *h5Reader) libraryRow(found *h5Shown, name string, k int, at int64) (int64, error) {
	if err := r.find(found, name, max(k, 0), 0, at); err != nil {
		return 0, err
	}
	row := &found.row
	switch {
	case row.number == 0:
		return 0, r.problem(at, "the elements of %s are not numbers", name)
	case row.rank == 0:
		return 0, r.problem(at, "%s is one element, not an array", name)
	case k < 0 || uint64(k) >= uint64(row.dims[0]):
		return 0, r.problem(at, "sample %d is asked for; %s holds %d", k, name, uint64(row.dims[0]))
	}
	n, chunk := int64(row.element), int64(row.element)
	for i := range int(row.rank) {
		if i > 0 {
			n = mul(n, int64(min(row.dims[i], 1<<62)))
		}
		chunk = mul(chunk, int64(min(row.chunk[i], 1<<62)))
	}
	switch row.storage {
	case 0: // the elements are in the header, which is read
		return n, nil
	case 1:
		if row.address == h5Undefined || n > r.size || int64(row.address) > r.size-n*int64(k+1) {
			return 0, r.problem(at, "row %d of %s is not in the file", k, name)
		}
		return n, r.rowAt(int64(row.address)+int64(k)*n, n)
	case 2:
		return n, r.libraryChunks(found, name, k, at, chunk)
	default:
		return 0, r.problem(at, "%s is a view of other data sets (virtual), which is not read", name)
	}
}

// libraryChunks reads every chunk that holds a part of row k, and undoes its compression.
func (r *h5Reader) libraryChunks(found *h5Shown, name string, k int, at, plain int64) error {
	for first := uint64(0); ; {
		row := &found.row
		for i := range int(row.got) {
			where, n := int64(row.at[i]), int64(row.n[i])
			if n == 0 {
				continue // never written: the framework gets the fill value without reading
			}
			if where < 0 || n < 0 || where > r.size || n > r.size-where {
				return r.problem(r.size, "a chunk of %s of %d bytes at byte %d, beyond the end of the file", name, n, where)
			}
			if err := r.libraryChunk(found, name, where, n, plain, uint32(row.skipped[i])); err != nil {
				return err
			}
		}
		if first += uint64(row.got); first >= uint64(row.chunks) || row.got == 0 {
			return nil
		}
		if err := r.find(found, name, k, first, at); err != nil {
			return err
		}
	}
}

// libraryChunk reads a chunk of n bytes that holds plain bytes of elements.
func (r *h5Reader) libraryChunk(found *h5Shown, name string, where, n, plain int64, skipped uint32) error {
	packed := &found.packed
	*packed = h5Packed{r: r, at: where, left: n}
	defer packed.release()
	deflated := false
	for i := int(found.row.filters) - 1; i >= 0; i-- {
		if skipped&(1<<i) != 0 {
			continue
		}
		switch found.row.filter[i] {
		case h5FilterShuffle: // another order of the same bytes
		case h5FilterFletcher32:
			if !deflated {
				packed.left -= 4 // a checksum at the end
			} else {
				plain += 4
			}
		case h5FilterDeflate:
			if deflated {
				return r.problem(where, "a chunk of %s that was compressed twice", name)
			}
			deflated = true
		default:
			return r.problem(where, "a chunk of %s went through filter %d; gzip, shuffle and fletcher32 are read", name, int(found.row.filter[i]))
		}
	}
	tail := n - packed.left
	if !deflated {
		if packed.left != plain {
			return r.problem(where, "a chunk of %s has %d bytes, and should have %d", name, packed.left, plain)
		}
		return r.rowAt(where, n)
	}
	got, err := found.inflated(packed, plain)
	if packed.err != nil {
		return packed.err
	}
	if err != nil || got != plain || packed.left != 0 || len(packed.data) != 0 {
		return &DataError{Format: "hdf5", Offset: min(packed.at, r.size), Err: err,
			Problem: fmt.Sprintf("a compressed chunk of %s is not exactly %d bytes, or is damaged", name, plain)}
	}
	return r.rowAt(packed.at, tail)
}

// inflated inflates one chunk, and returns how many bytes came out, at most one more than plain.
func (f *h5Shown) inflated(packed *h5Packed, plain int64) (got int64, err error) {
	if f.inflate == nil {
		f.out = make([]byte, 64<<10)
		f.inflate, err = zlib.NewReader(packed)
	} else {
		err = f.inflate.(zlib.Resetter).Reset(packed, nil)
	}
	for err == nil && got <= plain {
		var n int
		n, err = f.inflate.Read(f.out)
		got += int64(n)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return got, err
}

// h5Packed hands a chunk's bytes to zlib, in pieces of the reader's buffer.
type h5Packed struct {
	r    *h5Reader
	at   int64 // of the next piece
	left int64 // bytes not yet read
	data []byte
	err  error
}

// release forgets the caller's memory.
func (p *h5Packed) release() { p.r, p.data = nil, nil }

func (p *h5Packed) more() error {
	if p.left <= 0 {
		return io.EOF
	}
	size := int64(len(p.r.buf))
	p.data = p.r.buf[:min(p.left, size-p.at%size)]
	if p.err = p.r.read(p.data, p.at); p.err != nil {
		p.data = nil
		return p.err
	}
	p.at, p.left = p.at+int64(len(p.data)), p.left-int64(len(p.data))
	return nil
}

// ReadByte makes zlib ask for no byte more than it needs.
func (p *h5Packed) ReadByte() (byte, error) {
	if len(p.data) == 0 {
		if err := p.more(); err != nil {
			return 0, err
		}
	}
	b := p.data[0]
	p.data = p.data[1:]
	return b, nil
}

func (p *h5Packed) Read(to []byte) (int, error) {
	if len(p.data) == 0 {
		if err := p.more(); err != nil {
			return 0, err
		}
	}
	n := copy(to, p.data)
	p.data = p.data[n:]
	return n, nil
}
