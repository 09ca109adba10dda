package blake

import (
	"errors"
	"fmt"
	"math/bits"
)

// ChunkSize is the number of bytes of a chunk, a leaf of the tree; the last one of a file may have fewer.
const ChunkSize = chunkSize

// Chunks returns how many chunks a file of size bytes has. An empty one has one.
func Chunks(size int64) int64 { return max(1, (size+chunkSize-1)/chunkSize) }

// Subtree returns the chaining value of a subtree that is not the root and has at most GroupSize bytes, p, the first of which is the
// first of that chunk of its file.
func Subtree(p []byte, chunk int64) CV {
	var h Hasher
	h.resetSubtree(chunk)
	_, _ = h.Write(p)
	return h.GroupCV()
}

// Fold returns the chaining value of a subtree that is not the root from those of its groups, one or more. It leaves them as they are.
func Fold(groups []CV) CV { return fold(append([]CV(nil), groups...)) }

// Part says what a subtree is to a range of a file.
type Part int

// The subtrees into which a range divides a file, each the largest of its kind, in the order of their bytes.
const (
	Outside Part = iota // no byte of it is in the range
	Inside              // all of it is
	Edge                // a chunk of which some bytes are in the range, and some are not
)

// Range is a part of a file: the bytes from From up to but not including To, at least one and not all. It divides the file's tree into
// at most four times as many subtrees as the tree has levels, and the digest of the file follows from their chaining values.
type Range struct {
	Size     int64 // of the file
	From, To int64
}

// ErrRange is wrapped by errors about ranges that are none.
var ErrRange = errors.New("no such range")

// Check reports whether r is a range of its file, and not all of it.
func (r Range) Check() error {
	switch {
	case r.From < 0 || r.To > r.Size || r.From >= r.To:
		return fmt.Errorf("%w: bytes %d to %d of a file of %d bytes", ErrRange, r.From, r.To, r.Size)
	case r.From == 0 && r.To == r.Size:
		return fmt.Errorf("%w: bytes %d to %d are all of the file", ErrRange, r.From, r.To)
	}
	return nil
}

// Edges returns the chunks at the ends of the range that are partly in it; -1 where the range ends with a chunk. Both may be the same.
func (r Range) Edges() (first, last int64) {
	first, last = -1, -1
	if r.From%chunkSize != 0 {
		first = r.From / chunkSize
	}
	if r.To%chunkSize != 0 && r.To != r.Size {
		last = r.To / chunkSize
	}
	return first, last
}

// Digest computes the digest of the file from the subtrees of a range, which must be sound. value gives their chaining values: of the
// chunks from first up to but not including end, in ascending order. In a file of one chunk the value of that chunk, an Edge, is asked
// for as the digest of the file.
func (r Range) Digest(value func(part Part, first, end int64) (CV, error)) ([32]byte, error) {
	n := Chunks(r.Size)
	if n == 1 {
		return value(Edge, 0, 1)
	}
	w := rangeWalk{value: value, from: r.From / chunkSize, to: (r.To + chunkSize - 1) / chunkSize}
	w.first, w.last = r.Edges()
	k := leftSize(n)
	left, err := w.cv(0, k)
	if err != nil {
		return left, err
	}
	right, err := w.cv(k, n)
	if err != nil {
		return right, err
	}
	return RootParent(left, right), nil
}

// leftSize is how many of n chunks, two or more, are in the left subtree: the largest power of two below n.
func leftSize(n int64) int64 { return 1 << (bits.Len64(uint64(n-1)) - 1) }

// rangeWalk goes through the chunks from up to but not including to, of which first and last may be edges.
type rangeWalk struct {
	value       func(part Part, first, end int64) (CV, error)
	from, to    int64
	first, last int64
}

func (w *rangeWalk) cv(lo, hi int64) (CV, error) {
	edge := func(c int64) bool { return c >= 0 && lo <= c && c < hi }
	switch {
	case hi <= w.from || lo >= w.to:
		return w.value(Outside, lo, hi)
	case hi-lo == 1 && (lo == w.first || lo == w.last):
		return w.value(Edge, lo, hi)
	case w.from <= lo && hi <= w.to && !edge(w.first) && !edge(w.last):
		return w.value(Inside, lo, hi)
	}
	k := leftSize(hi - lo)
	left, err := w.cv(lo, lo+k)
	if err != nil {
		return left, err
	}
	right, err := w.cv(lo+k, hi)
	if err != nil {
		return right, err
	}
	return Parent(left, right), nil
}
