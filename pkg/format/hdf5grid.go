package format

import (
	"fmt"
	"math"
	"slices"
)

// h5MaxChunks bounds the chunks of a file: where each of them lies is kept in memory while the file is written.
const h5MaxChunks = 1 << 24

// h5Chunks is hdf5 with data sets in chunks. libhdf5 lays out the file; the bytes of the chunks are ours. A build without libhdf5 knows
// such files, so far as to plan runs and to check what was written about them, and can neither write nor read them.
type h5Chunks struct {
	hdf5
	how h5Chunked
}

// AskedBytes is a guess: a file's bytes for each of its samples, although a chunk is read as a whole.
func (f h5Chunks) AskedBytes(_ int64, samples int, size int64) int64 {
	return size / int64(max(samples, 1))
}

// h5Grid is the chunks of one data set.
type h5Grid struct {
	shape, chunk, max []int
	across            []int64 // chunks in each dimension
	chunks            int64
	element           int64
	bytes             int64 // of one chunk
	part              int64 // of the payload: one data set
}

// grid cuts the data sets of layout l into chunks.
func (f h5Chunks) grid(l Layout) (*h5Grid, error) {
	shape, err := f.shape(l)
	if err != nil {
		return nil, err
	}
	g := &h5Grid{shape: shape, chunk: f.how.chunk, max: shape, chunks: 1, element: int64(l.DType.Size), part: l.PayloadBytes() / int64(f.datasets)}
	if len(f.how.maxShape) > 0 {
		g.max = append(shape[:1:1], f.how.maxShape...)
	}
	if len(g.chunk) == 0 {
		g.chunk = h5GuessChunk(shape, l.DType.Size)
	}
	if len(g.max) != len(shape) || len(g.chunk) != len(shape) {
		return nil, fmt.Errorf("hdf5: data sets of shape %v have %d dimensions; dataset.hdf5.max_shape has one less, dataset.hdf5.chunk_dims as many: "+
			"they have %d and %d", shape, len(shape), len(g.max)-1, len(g.chunk))
	}
	g.bytes = g.element
	for i, d := range shape {
		if g.max[i] < d || g.chunk[i] > g.max[i] {
			return nil, fmt.Errorf("hdf5: data sets of shape %v: neither the shape nor a chunk %v may exceed the largest shape %v", shape, g.chunk, g.max)
		}
		g.across = append(g.across, int64((d-1)/g.chunk[i]+1))
		g.chunks = mul(g.chunks, g.across[i])
		g.bytes = mul(g.bytes, int64(g.chunk[i]))
	}
	switch {
	case g.bytes > math.MaxUint32:
		return nil, fmt.Errorf("hdf5: a chunk %v of %s has %d bytes; HDF5 takes less than 4 GiB", g.chunk, l.DType.Name, g.bytes)
	case mul(g.chunks, int64(f.datasets)) > h5MaxChunks:
		return nil, fmt.Errorf("hdf5: chunks of %v make %d of each of %d data sets; at most %d in a file", g.chunk, g.chunks, f.datasets, h5MaxChunks)
	}
	return g, nil
}

// h5GuessChunk chooses a chunk as h5py does: halving one dimension after the other until the bytes are near a target that grows
// slowly with the data set. The target is rounded, so that the last bit of a logarithm does not matter.
func h5GuessChunk(shape []int, element int) []int {
	const base, least, most = 16 << 10, 8 << 10, 1 << 20
	chunk := slices.Clone(shape)
	bytes := func() int64 {
		n := int64(element)
		for _, c := range chunk {
			n = mul(n, int64(c))
		}
		return n
	}
	target := int64(math.Round(base * math.Exp2(math.Log10(float64(bytes())/(1<<20)))))
	target = max(least, min(target, most))
	for i := 0; ; i++ {
		n := bytes()
		if n < most && (n < target || 2*(n-target) < target) || n == int64(element) {
			return chunk
		}
		chunk[i%len(chunk)] = (chunk[i%len(chunk)] + 1) / 2
	}
}

// h5GzipBound is the most that a chunk of n bytes can become: zlib's header, the deflated bytes, their checksum.
func h5GzipBound(n int64) int64 { return 2 + deflateBound(n) + 4 }

// bound is at least the size of a file of these chunks, each of at most size bytes: the chunks, the labels, and more than all that
// libhdf5 keeps beside them. An entry of an index of chunks takes up to 20 bytes, and blocks of metadata and small chunks may leave gaps of
// 2 KiB each.
func (f h5Chunks) bound(g *h5Grid, samples int, size int64) int64 {
	const file, set, entry, gap = 64 << 10, 8 << 10, 32, 2 << 10
	each := size + entry
	if size < gap {
		each += size // what is left of a block in which another chunk has no room
	}
	n := mul(mul(g.chunks, int64(f.datasets)), each)
	return sum(n, 8*int64(samples)+file+set*int64(f.datasets))
}

// sum adds numbers that are 0 or more, and stops at math.MaxInt64.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
