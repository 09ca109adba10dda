// Package blake computes BLAKE3 (unkeyed, 256 bits) so that one file can be hashed in parts, by several goroutines, to the digest
// that every other implementation computes.
//
// BLAKE3 is a tree: chunks of 1024 bytes are its leaves, and a chaining value of 32 bytes stands for each subtree. A group is a subtree
// of 1 MiB. The chaining values of a file's groups combine to its digest, so that they can be computed apart, kept, and used to show
// that a range belongs to a file without reading the rest of it.
//
// Subtrees are computed by lukechampine.com/blake3/guts, and where the machine has AVX-512 by assembly of ours (compress_amd64.s, which
// gen.go writes), since guts gathers words one by one there and reaches half the speed. The package starts no goroutine, and knows no
// files.
package blake

import (
	"encoding/binary"

	"github.com/zeebo/blake3"
	"lukechampine.com/blake3/guts"
)

// GroupSize is the number of bytes of a group; the last one of a file may have fewer.
const GroupSize = 1 << 20

const (
	chunkSize   = guts.ChunkSize
	groupChunks = GroupSize / chunkSize
	lanes       = 16 // chunks or parents that are compressed side by side
)

// Lanes is how many inputs Blocks hashes side by side, BlockSize the bytes of a block of BLAKE3.
const (
	Lanes     = lanes
	BlockSize = guts.BlockSize
)

// CV is the chaining value of a subtree that is not the whole input: eight words, little-endian, as in BLAKE3's paper, section 2.
type CV = [32]byte

// Groups returns how many groups a file of size bytes has: 0 for an empty one.
func Groups(size int64) int64 { return (size + GroupSize - 1) / GroupSize }

// Group returns the chaining value of group number index of a file, whose bytes are p: GroupSize of them, or fewer if it is the last one,
// but not none. It is of use for files of more than one group only; the digest of a smaller one is [Sum].
func Group(p []byte, index int64) CV {
	var h Hasher
	h.ResetGroup(index)
	_, _ = h.Write(p)
	return h.GroupCV()
}

// Sum returns the digest of p.
func Sum(p []byte) [32]byte {
	var h Hasher
	_, _ = h.Write(p)
	return h.Sum()
}

// Blocks computes the digests of the first n of some inputs of one block each, side by side where the machine can. It is for chains, of which
// each link needs the one before, and which do not need each other. What it leaves in the other digests says nothing.
func Blocks(digests *[Lanes][32]byte, in *[Lanes][BlockSize]byte, n int) {
	if n > 2 && wide() { // two by themselves are as fast as sixteen together
		blocks16(digests, in)
		return
	}
	for i := range min(n, Lanes) {
		digests[i] = blake3.Sum256(in[i][:])
	}
}

// Parent returns the chaining value of the node over two subtrees, which is not the root.
func Parent(left, right CV) CV {
	return fromWords(guts.ChainingValue(guts.ParentNode(toWords(left), toWords(right), &guts.IV, 0)))
}

// RootParent returns the digest of a file whose two uppermost subtrees have these chaining values.
func RootParent(left, right CV) [32]byte {
	n := guts.ParentNode(toWords(left), toWords(right), &guts.IV, 0)
	n.Flags |= guts.FlagRoot
	return fromWords(guts.ChainingValue(n))
}

// Digest returns the digest of a file from the chaining values of its groups, of which there are two or more. It leaves them as they are.
func Digest(groups []CV) [32]byte {
	top := reduce(append([]CV(nil), groups...))
	return RootParent(top[0], top[1])
}

// reduce combines neighbours, level by level, until two subtrees are left, which it returns. An odd one at the end waits for the next
// level: so the left subtree of every node is complete and the largest that leaves something for the right one, as BLAKE3 demands.
func reduce(cvs []CV) []CV {
	for len(cvs) > 2 {
		pairs := len(cvs) / 2
		done := 0
		if wide() {
			// Results overwrite the first half of what was read for them, and nothing that is still to be read.
			for ; done < pairs && len(cvs)-2*done >= 2*lanes; done += lanes {
				parents16((*[lanes]CV)(cvs[done:]), (*[2 * lanes]CV)(cvs[2*done:]))
			}
			if pairs-done > 1 {
				var in [2 * lanes]CV
				var out [lanes]CV
				copy(in[:], cvs[2*done:2*pairs])
				parents16(&out, &in)
				copy(cvs[done:], out[:pairs-done])
				done = pairs
			}
		}
		for ; done < pairs; done++ {
			cvs[done] = Parent(cvs[2*done], cvs[2*done+1])
		}
		if len(cvs)%2 == 1 {
			cvs[pairs] = cvs[len(cvs)-1]
			pairs++
		}
		cvs = cvs[:pairs]
	}
	return cvs
}

func toWords(b CV) (w [8]uint32) {
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return w
}

func fromWords(w [8]uint32) (b CV) {
	for i, v := range w {
		binary.LittleEndian.PutUint32(b[4*i:], v)
	}
	return b
}
