//go:build hdf5 && cgo

package format

/*
#include <stdlib.h>
#include "hdf5lib.h"
*/
import "C"

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"io"
	"slices"
	"sync"
	"unsafe"
)

// h5Gzip is h5Chunks with compressed chunks, so that a file's size follows from its content.
type h5Gzip struct {
	h5Chunks
	packers *sync.Pool
}

func newH5Chunks(f hdf5, c *h5Chunked) (Format, error) {
	if c.level >= 0 {
		return h5Gzip{h5Chunks{f, *c}, &sync.Pool{New: newH5Packer}}, nil
	}
	return h5Chunks{f, *c}, nil
}

// each hands the elements of chunk k to emit, in order: n bytes of the payload at off, or n bytes of zeros where off is -1, outside
// the shape.
func (g *h5Grid) each(k int64, emit func(off, n int64) error) error {
	set, rest := k/g.chunks, k%g.chunks
	start := make([]int64, len(g.shape))
	for i := len(g.shape) - 1; i >= 0; i-- {
		start[i] = rest % g.across[i] * int64(g.chunk[i])
		rest /= g.across[i]
	}
	return g.walk(start, 0, set*g.part, g.part, g.bytes, emit)
}

// walk goes through dimension i of a chunk: whole bytes of the payload at base are the index space from there on, and size those
// of the chunk.
func (g *h5Grid) walk(start []int64, i int, base, whole, size int64, emit func(off, n int64) error) error {
	whole /= int64(g.shape[i]) // of one step in this dimension
	size /= int64(g.chunk[i])
	in := min(int64(g.chunk[i]), int64(g.shape[i])-start[i])
	at := base + start[i]*whole
	if slices.Equal(g.shape[i+1:], g.chunk[i+1:]) { // the dimensions after this one are covered: one run
		if err := emit(at, in*whole); err != nil {
			return err
		}
	} else {
		for j := range in {
			if err := g.walk(start, i+1, at+j*whole, whole, size, emit); err != nil {
				return err
			}
		}
	}
	if pad := (int64(g.chunk[i]) - in) * size; pad > 0 {
		return emit(-1, pad)
	}
	return nil
}

// layout lets libhdf5 place chunks of the given sizes.
func (f h5Chunks) layout(g *h5Grid, d DType, sizes []uint64) (*C.h5lib_image, error) {
	p := C.h5lib_plan{datasets: C.int(f.datasets), rank: C.int(len(g.shape)), level: C.int(f.how.level)}
	for i := range g.shape {
		p.dims[i], p.max[i], p.chunk[i] = C.uint64_t(g.shape[i]), C.uint64_t(g.max[i]), C.uint64_t(g.chunk[i])
	}
	encoded := append([]byte{h5MsgDatatype, 0}, h5Datatype(d)...) // as H5Tencode: what it is, version
	for i, b := range encoded {
		p._type[i] = C.uchar(b)
	}
	p.type_n = C.int(len(encoded))
	var problem [C.H5LIB_TEXT]C.char
	image := C.h5lib_layout(&p, (*C.uint64_t)(&sizes[0]), C.uint64_t(len(sizes)), &problem[0])
	if image == nil {
		return nil, fmt.Errorf("hdf5: data sets of shape %v in chunks %v: libhdf5: %s", g.shape, g.chunk, C.GoString(&problem[0]))
	}
	return image, nil
}

// equal returns the sizes of chunks that are all alike.
func (f h5Chunks) equal(g *h5Grid, size int64) []uint64 {
	return slices.Repeat([]uint64{uint64(size)}, int(g.chunks)*f.datasets)
}

// sized returns the size of a file with chunks of the given sizes.
func (f h5Chunks) sized(g *h5Grid, d DType, sizes []uint64) (int64, error) {
	image, err := f.layout(g, d, sizes)
	if err != nil {
		return 0, err
	}
	defer C.h5lib_free(image)
	return int64(C.h5lib_size(image)), nil
}

func (f h5Chunks) Size(l Layout) (int64, error) {
	g, err := f.grid(l)
	if err != nil {
		return 0, err
	}
	return f.sized(g, l.DType, f.equal(g, g.bytes))
}

func (f h5Chunks) Write(w io.Writer, l Layout, c Content, buf []byte) error {
	g, err := f.grid(l)
	if err != nil {
		return err
	}
	out := writer{w: w, buf: buffer(buf)}
	return f.stream(&out, g, l.DType, f.equal(g, g.bytes), func(k int64) error {
		return g.each(k, func(off, n int64) error {
			if off < 0 {
				return out.zeros(n)
			}
			return out.content(shifted{c, off}, n)
		})
	})
}

// shifted is a content from an offset on.
type shifted struct {
	Content
	by int64
}

func (s shifted) Fill(dst []byte, off int64) { s.Content.Fill(dst, s.by+off) }

// stream writes the file from front to back: what libhdf5 laid out, and between it the chunks.
func (f h5Chunks) stream(out *writer, g *h5Grid, d DType, sizes []uint64, chunk func(k int64) error) error {
	image, err := f.layout(g, d, sizes)
	if err != nil {
		return err
	}
	defer C.h5lib_free(image)
	addresses := unsafe.Slice((*uint64)(C.h5lib_addresses(image)), len(sizes))
	order := make([]int32, len(sizes))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(addresses[a], addresses[b]) })
	at := uint64(0)
	metadata := func(to uint64) error {
		for at < to {
			free, err := out.space(int64(to - at))
			if err != nil {
				return err
			}
			C.h5lib_copy(image, C.uint64_t(at), C.uint64_t(len(free)), (*C.uchar)(&free[0]))
			at += uint64(len(free))
		}
		return nil
	}
	for _, k := range order {
		if err := metadata(addresses[k]); err != nil {
			return err
		}
		if err := chunk(int64(k)); err != nil {
			return err
		}
		at += sizes[k]
	}
	if err := metadata(uint64(C.h5lib_size(image))); err != nil {
		return err
	}
	return out.flush()
}

// Size is an upper bound: that of chunks that grow as much as compression can make them.
func (f h5Gzip) Size(l Layout) (int64, error) {
	g, err := f.grid(l)
	if err != nil {
		return 0, err
	}
	n, err := f.sized(g, l.DType, f.equal(g, h5GzipBound(g.bytes)))
	return n + 2*h5Block, err // small chunks may leave gaps where larger ones do not
}

// Measure compresses every chunk, and lays out the file.
func (f h5Gzip) Measure(l Layout, c Content, buf []byte) (int64, error) {
	g, err := f.grid(l)
	if err != nil {
		return 0, err
	}
	sizes, err := f.sizes(g, c, buffer(buf))
	if err != nil {
		return 0, err
	}
	return f.sized(g, l.DType, sizes)
}

// Write compresses every chunk twice: first to know where the next one lies, then to write it. So memory is bounded by the buffer.
func (f h5Gzip) Write(w io.Writer, l Layout, c Content, buf []byte) error {
	g, err := f.grid(l)
	if err != nil {
		return err
	}
	buf = buffer(buf)
	sizes, err := f.sizes(g, c, buf)
	if err != nil {
		return err
	}
	half := len(buf) / 2
	out := writer{w: w, buf: buf[:half]}
	packer := f.packers.Get().(*h5Packer)
	defer f.packers.Put(packer)
	return f.stream(&out, g, l.DType, sizes, func(k int64) error {
		_, err := packer.pack(g, c, k, f.how.level, buf[half:], &out)
		return err
	})
}

// sizes returns the bytes of every chunk when compressed.
func (f h5Gzip) sizes(g *h5Grid, c Content, buf []byte) ([]uint64, error) {
	packer := f.packers.Get().(*h5Packer)
	defer f.packers.Put(packer)
	sizes := make([]uint64, g.chunks*int64(f.datasets))
	for k := range sizes {
		n, err := packer.pack(g, c, int64(k), f.how.level, buf, nil)
		if err != nil {
			return nil, err
		}
		sizes[k] = uint64(n)
	}
	return sizes, nil
}

// h5Packer compresses chunks to zlib's format, as HDF5's gzip filter has them.
type h5Packer struct{ deflate *deflater }

func newH5Packer() any { return &h5Packer{newDeflater()} }

// pack compresses chunk k in pieces of buf, and returns its bytes; a nil out only counts them. The level stands in the header, as
// zlib would put it there, and changes nothing else: of random elements there is only one thing to gain.
func (p *h5Packer) pack(g *h5Grid, c Content, k int64, level int, buf []byte, out *writer) (int64, error) {
	if out != nil {
		if err := out.write([]byte{0x78, [...]byte{0x01, 0x01, 0x5e, 0x5e, 0x5e, 0x5e, 0x9c, 0xda, 0xda, 0xda}[level]}); err != nil {
			return 0, err
		}
	}
	p.deflate.reset(out)
	sum := adler32.New()
	if err := g.each(k, func(off, n int64) error {
		for n > 0 {
			piece := buf[:min(n, int64(len(buf)))]
			if off < 0 {
				clear(piece)
			} else {
				c.Fill(piece, off)
				off += int64(len(piece))
			}
			n -= int64(len(piece))
			if out != nil {
				sum.Write(piece)
			}
			if err := p.deflate.write(piece); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return 0, err
	}
	n, err := p.deflate.close()
	if err != nil || out == nil {
		return 2 + n + 4, err
	}
	return 2 + n + 4, out.write(binary.BigEndian.AppendUint32(nil, sum.Sum32()))
}
