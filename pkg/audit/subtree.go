package audit

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/benchpin/benchpin/pkg/manifest/blake"
)

// maxSubtree is the largest number of values in the path of a group: what a file of 2^53 bytes needs.
const maxSubtree = 33

// left is the number of groups in the left subtree over n of them, as BLAKE3 has it: the largest power of two below n.
func left(n int64) int64 { return 1 << (bits.Len64(uint64(n-1)) - 1) }

// subtreePath returns the chaining values beside the way from group k up to the digest of its file, the lowest first. A file of one group
// has none.
func subtreePath(groups [][32]byte, k int64) [][32]byte {
	n := int64(len(groups))
	if n <= 1 {
		return nil
	}
	if l := left(n); k < l {
		return append(subtreePath(groups[:l], k), subtree(groups[l:]))
	} else {
		return append(subtreePath(groups[l:], k-l), subtree(groups[:l]))
	}
}

// subtree is the chaining value over some groups that are not all of a file.
func subtree(groups [][32]byte) [32]byte {
	if len(groups) == 1 {
		return groups[0]
	}
	l := left(int64(len(groups)))
	return blake.Parent(subtree(groups[:l]), subtree(groups[l:]))
}

// errOtherBytes is the error about bytes that are not those of the manifest.
var errOtherBytes = errors.New("the bytes are not those that the manifest pins")

// checkChunk checks that the bytes are group c.Group of the file with this digest, by the values beside its way up.
func checkChunk(c Chunk, bytes []byte, path [][32]byte, digest [32]byte) error {
	if int64(len(bytes)) != c.Length() {
		return fmt.Errorf("expected %d bytes, found %d", c.Length(), len(bytes))
	}
	n := chunks(c.Size)
	if want := depth(c.Group, n); len(path) != want {
		return fmt.Errorf("group %d of %d has a path of %d values, found %d", c.Group, n, want, len(path))
	}
	if n == 1 {
		if blake.Sum(bytes) != digest {
			return errOtherBytes
		}
		return nil
	}
	if fold(blake.Group(bytes, c.Group), c.Group, n, path) != digest {
		return errOtherBytes
	}
	return nil
}

// depth is the number of values beside the way of group k of n.
func depth(k, n int64) int {
	d := 0
	for ; n > 1; d++ {
		if l := left(n); k < l {
			n = l
		} else {
			k, n = k-l, n-l
		}
	}
	return d
}

// fold combines a group with the values beside its way up, to the digest of its file. path has as many values as depth says, one or more.
func fold(cv [32]byte, k, n int64, path [][32]byte) [32]byte {
	// Sides from the root downwards; the path goes upwards.
	rights := make([]bool, 0, maxSubtree)
	for n > 1 {
		l := left(n)
		rights = append(rights, k >= l)
		if k < l {
			n = l
		} else {
			k, n = k-l, n-l
		}
	}
	for i, sibling := range path {
		join := blake.Parent
		if i == len(path)-1 {
			join = blake.RootParent
		}
		if rights[len(rights)-1-i] {
			cv = join(sibling, cv)
		} else {
			cv = join(cv, sibling)
		}
	}
	return cv
}
