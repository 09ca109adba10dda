package manifest

import (
	"math/bits"

	"github.com/zeebo/blake3"
)

// Tree computes the root of a Merkle tree as RFC 6962 (section 2.1) defines it, with BLAKE3 in place of SHA-256, while
// leaves are added one by one. It keeps one hash for each level: 32 x log2(n) bytes. The zero value is the empty tree.
//
// The two prefixes keep a leaf from being taken for a node, and the shape follows from the number of leaves alone.
type Tree struct {
	n     uint64
	stack [64][32]byte // roots of the complete subtrees so far, largest first: one for each bit set in n
	buf   []byte
}

const (
	leafPrefix = 0x00
	nodePrefix = 0x01
)

// LeafHash returns the hash of one leaf: BLAKE3(0x00 || data). In a manifest, data is the entry's line without its line end.
func LeafHash(data []byte) [32]byte {
	return blake3.Sum256(append([]byte{leafPrefix}, data...))
}

// NodeHash returns the hash of an inner node: BLAKE3(0x01 || left || right).
func NodeHash(left, right [32]byte) [32]byte {
	var b [65]byte
	b[0] = nodePrefix
	copy(b[1:], left[:])
	copy(b[33:], right[:])
	return blake3.Sum256(b[:])
}

// Add appends a leaf of that content.
func (t *Tree) Add(data []byte) {
	t.buf = append(append(t.buf[:0], leafPrefix), data...)
	t.AddHash(blake3.Sum256(t.buf))
}

// AddHash appends a leaf whose LeafHash is known already.
func (t *Tree) AddHash(leaf [32]byte) {
	top := bits.OnesCount64(t.n)
	for m := t.n; m&1 == 1; m >>= 1 {
		top--
		leaf = NodeHash(t.stack[top], leaf)
	}
	t.stack[top] = leaf
	t.n++
}

// Count returns the number of leaves.
func (t *Tree) Count() int64 { return int64(t.n) }

// Root returns the root over the leaves so far; more may be added after. The root of the empty tree is BLAKE3 of nothing.
func (t *Tree) Root() [32]byte {
	top := bits.OnesCount64(t.n)
	if top == 0 {
		return blake3.Sum256(nil)
	}
	r := t.stack[top-1]
	for i := top - 2; i >= 0; i-- {
		r = NodeHash(t.stack[i], r)
	}
	return r
}
