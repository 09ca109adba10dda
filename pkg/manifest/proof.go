package manifest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"slices"
	"sort"
)

var (
	// ErrProof is wrapped by errors about proofs that do not show what they are said to show.
	ErrProof = errors.New("the proof does not hold")
	// ErrNoEntry is wrapped by errors about paths and numbers that a manifest has no entry for. It matches fs.ErrNotExist.
	ErrNoEntry = fmt.Errorf("no such entry in the manifest: %w", fs.ErrNotExist)
)

// MaxProofPath is the largest number of hashes in a proof: what 2^53 entries need.
const MaxProofPath = 53

// Proof shows that one line is an entry of the manifest with a root, without the other entries: the audit path of RFC 6962, section
// 2.1.1. It is made by [Manifest.Prove] and checked by [Proof.Verify] with nothing else at hand than the root.
type Proof struct {
	Index int64      // number of the entry, from 0
	Count int64      // entries of the manifest
	Line  []byte     // the entry's line, without its line end
	Path  [][32]byte // hashes of the siblings, from the leaf's upwards
}

// Verify checks the proof against a root and returns the entry it speaks of: path, size and digest of a file of that data set. The
// error matches ErrProof, or the [Class] of a line that is none.
//
// Index and Count are held to the shape of the path, and no more: the root does not say how many entries there are. The manifest's
// header does, so compare Count with it, where the number of the entry matters.
func (p Proof) Verify(root [32]byte) (Entry, error) {
	if err := VerifyProof(root, p.Index, p.Count, p.Line, p.Path); err != nil {
		return Entry{}, err
	}
	return ParseEntry(p.Line)
}

// VerifyProof checks that a line is leaf number index of the tree of count leaves with that root, by the audit path: the algorithm of
// RFC 9162, section 2.1.3.2. The error matches ErrProof.
func VerifyProof(root [32]byte, index, count int64, line []byte, path [][32]byte) error {
	if index < 0 || index >= count || count > MaxNumber {
		return fmt.Errorf("%w: it is about entry %d of %d", ErrProof, index, count)
	}
	if len(path) > MaxProofPath {
		return fmt.Errorf("%w: expected at most %d hashes, found %d", ErrProof, MaxProofPath, len(path))
	}
	hash := LeafHash(line)
	at, last := uint64(index), uint64(count-1)
	for i, sibling := range path {
		if last == 0 {
			return fmt.Errorf("%w: entry %d of %d has a path of %d hashes, found %d", ErrProof, index, count, i, len(path))
		}
		if at&1 == 1 || at == last {
			hash = NodeHash(sibling, hash)
			for at&1 == 0 && at != 0 { // no sibling on these levels: the right edge of the tree is ragged
				at >>= 1
				last >>= 1
			}
		} else {
			hash = NodeHash(hash, sibling)
		}
		at >>= 1
		last >>= 1
	}
	if last != 0 {
		return fmt.Errorf("%w: entry %d of %d has a path of more than %d hashes", ErrProof, index, count, len(path))
	}
	if hash != root {
		return fmt.Errorf("%w: expected root %s, its hashes lead to %s", ErrProof, FormatDigest(root), FormatDigest(hash))
	}
	return nil
}

// Find returns the entry of a path and its number. It reads the one frame that the entry must be in, so what it returns is as good as
// the header is, until the entries were read to the end. The error matches ErrNoEntry where there is none.
func (m *Manifest) Find(ctx context.Context, path string) (int64, Entry, error) {
	frames := m.header.Frames
	i := sort.Search(len(frames), func(i int) bool { return frames[i].Last >= path })
	if i == len(frames) || frames[i].First > path {
		return 0, Entry{}, fmt.Errorf("%w: path %q", ErrNoEntry, path)
	}
	var index int64
	for _, f := range frames[:i] {
		index += f.Count
	}
	r := entriesReader{m: m}
	var found *Entry
	r.yield = func(e Entry) error {
		if e.Path == path {
			found = &e
		}
		if found == nil {
			index++
		}
		return ctx.Err()
	}
	if err := r.frame(i); err != nil {
		return 0, Entry{}, err
	}
	if found == nil {
		return 0, Entry{}, fmt.Errorf("%w: path %q", ErrNoEntry, path)
	}
	return index, *found, nil
}

// Prove returns the proof for the entry of that number. It reads, and checks, the manifest once; memory: that of Entries and the proof.
func (m *Manifest) Prove(ctx context.Context, index int64) (Proof, error) {
	ps, err := m.ProveAll(ctx, []int64{index})
	if err != nil {
		return Proof{}, err
	}
	return ps[0], nil
}

// ProvePath returns the proof for the entry of that path. The error matches ErrNoEntry where there is none.
func (m *Manifest) ProvePath(ctx context.Context, path string) (Proof, error) {
	index, _, err := m.Find(ctx, path)
	if err != nil {
		return Proof{}, err
	}
	return m.Prove(ctx, index)
}

// ProveAll returns the proofs for the entries of those numbers, in the order given, reading the manifest once. Memory: that of Entries, and
// 32 x log2(n) bytes for each proof.
func (m *Manifest) ProveAll(ctx context.Context, indices []int64) ([]Proof, error) {
	n := m.header.Count
	for _, i := range indices {
		if i < 0 || i >= n {
			return nil, fmt.Errorf("%w: number %d, expected 0 to %d", ErrNoEntry, i, n-1)
		}
	}
	c := newCollector(uint64(n), indices)
	r := entriesReader{m: m, yield: func(Entry) error { return nil }, leaf: c.leaf}
	if err := r.all(ctx); err != nil {
		return nil, err
	}
	return c.proofs(indices), nil
}

// node is a complete subtree: the 2^level leaves that end before leaf number end.
type node struct {
	end   uint64
	level int
}

func compareNodes(a, b node) int {
	return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.level, b.level))
}

// collector picks those subtrees out of a tree that is built leaf by leaf that some proofs are made of.
type collector struct {
	n      uint64
	wanted []node // in the order in which they are complete, each once
	hashes [][32]byte
	lines  map[uint64][]byte // of the leaves proven; nil until they came
}

func newCollector(n uint64, indices []int64) *collector {
	c := &collector{n: n, lines: map[uint64][]byte{}}
	for _, i := range indices {
		c.lines[uint64(i)] = nil
		for lo, hi := range siblings(uint64(i), n) {
			for level := range complete(lo, hi) {
				c.wanted = append(c.wanted, level)
			}
		}
	}
	slices.SortFunc(c.wanted, compareNodes)
	c.wanted = slices.Compact(c.wanted)
	return c
}

// siblings yields the leaves [lo, hi) below each sibling on the way from leaf i up to the root of a tree of n leaves.
func siblings(i, n uint64) func(yield func(lo, hi uint64) bool) {
	return func(yield func(lo, hi uint64) bool) {
		var ranges [][2]uint64
		for lo, hi := uint64(0), n; hi-lo > 1; {
			k := uint64(1) << (bits.Len64(hi-lo-1) - 1) // the largest power of two below hi-lo
			if i < lo+k {
				ranges = append(ranges, [2]uint64{lo + k, hi})
				hi = lo + k
			} else {
				ranges = append(ranges, [2]uint64{lo, lo + k})
				lo += k
			}
		}
		for _, r := range slices.Backward(ranges) {
			if !yield(r[0], r[1]) {
				return
			}
		}
	}
}

// complete yields the complete subtrees that a subtree over the leaves [lo, hi) is made of, largest first: one for each bit set in
// its number of leaves. They are those of the whole tree, since lo is a multiple of the largest.
func complete(lo, hi uint64) func(yield func(node) bool) {
	return func(yield func(node) bool) {
		for lo < hi {
			level := bits.Len64(hi-lo) - 1
			lo += 1 << level
			if !yield(node{lo, level}) {
				return
			}
		}
	}
}

// leaf looks at a leaf before it is added to the tree.
func (c *collector) leaf(t *Tree, line []byte, hash [32]byte) {
	if _, proven := c.lines[t.n]; proven {
		c.lines[t.n] = bytes.Clone(line)
	}
	end, top := t.n+1, bits.OnesCount64(t.n)
	for level := 0; len(c.hashes) < len(c.wanted) && c.wanted[len(c.hashes)].end == end; level++ {
		if c.wanted[len(c.hashes)].level == level {
			c.hashes = append(c.hashes, hash)
		}
		if top--; top >= 0 {
			hash = NodeHash(t.stack[top], hash)
		}
	}
}

// proofs puts the proofs together, after the last leaf.
func (c *collector) proofs(indices []int64) []Proof {
	ps := make([]Proof, len(indices))
	for k, i := range indices {
		p := Proof{Index: i, Count: int64(c.n), Line: c.lines[uint64(i)]}
		for lo, hi := range siblings(uint64(i), c.n) {
			p.Path = append(p.Path, c.root(lo, hi))
		}
		ps[k] = p
	}
	return ps
}

// root is the hash over the leaves [lo, hi), from those of the complete subtrees they are made of.
func (c *collector) root(lo, hi uint64) [32]byte {
	var parts [][32]byte
	for part := range complete(lo, hi) {
		i, _ := slices.BinarySearchFunc(c.wanted, part, compareNodes)
		parts = append(parts, c.hashes[i])
	}
	hash := parts[len(parts)-1]
	for _, left := range slices.Backward(parts[:len(parts)-1]) {
		hash = NodeHash(left, hash)
	}
	return hash
}
