package blake

import (
	"lukechampine.com/blake3/guts"
)

// Hasher computes a digest and the chaining values of the groups while bytes are written to it, in about 50 KiB of memory and 32 bytes
// for each group. The zero value is ready. It is not safe for concurrent use.
type Hasher struct {
	chunk  [groupChunks]CV // of the group under way
	n      int             // of them, so far
	number uint64          // of the first chunk of the group under way
	groups []CV            // of the groups that are complete and not the last

	tail     [lanes * chunkSize]byte // bytes after the last of those chunks
	tailSize int
}

// Reset makes the hasher as new, for a file from its beginning. What Groups returned before is not touched.
func (h *Hasher) Reset() { h.n, h.number, h.groups, h.tailSize = 0, 0, nil, 0 }

// ResetGroup makes the hasher ready for the bytes of one group, the one of that number in its file, and GroupCV.
func (h *Hasher) ResetGroup(index int64) { h.resetSubtree(index * groupChunks) }

// resetSubtree makes it ready for a subtree of at most a group that begins with that chunk of its file.
func (h *Hasher) resetSubtree(chunk int64) {
	h.Reset()
	h.number = uint64(chunk)
}

// Write adds bytes. It takes all of them and never fails.
func (h *Hasher) Write(p []byte) (int, error) {
	written := len(p)
	if h.tailSize > 0 {
		n := copy(h.tail[h.tailSize:], p)
		h.tailSize += n
		p = p[n:]
		if len(p) == 0 {
			return written, nil
		}
		h.full(&h.tail)
		h.tailSize = 0
	}
	for len(p) > len(h.tail) { // what may be the last bytes of all stays in the tail, since the root is computed in another way
		h.full((*[lanes * chunkSize]byte)(p))
		p = p[len(h.tail):]
	}
	h.tailSize = copy(h.tail[:], p)
	return written, nil
}

// full takes 16 whole chunks that others follow.
func (h *Hasher) full(p *[lanes * chunkSize]byte) {
	h.next()
	number := h.number + uint64(h.n)
	if wide() {
		chunks16((*[lanes]CV)(h.chunk[h.n:]), p, number)
	} else {
		// One value for all 16, that of their subtree: reduce would come to it, but guts does it at once.
		h.chunk[h.n/lanes] = fromWords(guts.ChainingValue(guts.CompressBuffer(p, len(p), &guts.IV, number, 0)))
	}
	h.n += lanes
}

// next closes the group under way if it is complete: more bytes follow it.
func (h *Hasher) next() {
	if h.n < groupChunks {
		return
	}
	h.groups = append(h.groups, fold(h.chunk[:h.values()]))
	h.number += groupChunks
	h.n = 0
}

// values is how many chaining values stand for the first n chunks.
func (h *Hasher) values() int {
	if wide() {
		return h.n
	}
	return h.n / lanes
}

// cvs returns what stands for the chunks of the group so far, the tail among them, to be reduced.
func (h *Hasher) cvs() []CV {
	at := h.values()
	number := h.number + uint64(h.n)
	if !wide() {
		h.chunk[at] = fromWords(guts.ChainingValue(guts.CompressBuffer(&h.tail, h.tailSize, &guts.IV, number, 0)))
		return h.chunk[:at+1]
	}
	whole := h.tailSize / chunkSize
	if whole > 1 {
		var out [lanes]CV // of the chunks behind the tail too, which nobody looks at
		chunks16(&out, &h.tail, number)
		at += copy(h.chunk[at:], out[:whole])
	} else if whole == 1 {
		h.chunk[at] = one(h.tail[:chunkSize], number)
		at++
	}
	if rest := h.tail[whole*chunkSize : h.tailSize]; len(rest) > 0 {
		h.chunk[at] = one(rest, number+uint64(whole))
		at++
	}
	return h.chunk[:at]
}

func one(p []byte, number uint64) CV {
	return fromWords(guts.ChainingValue(guts.CompressChunk(p, &guts.IV, number, 0)))
}

// GroupCV returns the chaining value of the group whose bytes, at least one and no more than GroupSize, were written since ResetGroup.
// Only a reset may follow.
func (h *Hasher) GroupCV() CV {
	return fold(h.cvs())
}

func fold(cvs []CV) CV {
	cvs = reduce(cvs)
	if len(cvs) == 1 {
		return cvs[0]
	}
	return Parent(cvs[0], cvs[1])
}

// Sum returns the digest of all bytes written since Reset. Only Groups and a reset may follow.
func (h *Hasher) Sum() [32]byte {
	h.next()
	if len(h.groups) > 0 {
		h.groups = append(h.groups, fold(h.cvs()))
		return Digest(h.groups)
	}
	if h.n == 0 && h.tailSize <= chunkSize {
		n := guts.CompressChunk(h.tail[:h.tailSize], &guts.IV, 0, 0)
		n.Flags |= guts.FlagRoot
		return fromWords(guts.ChainingValue(n))
	}
	if h.n == 0 && !wide() { // one value would stand for all
		n := guts.CompressBuffer(&h.tail, h.tailSize, &guts.IV, 0, 0)
		n.Flags |= guts.FlagRoot
		return fromWords(guts.ChainingValue(n))
	}
	cvs := reduce(h.cvs())
	return RootParent(cvs[0], cvs[1])
}

// Groups returns the chaining values of the groups of a file of more than GroupSize bytes, after Sum; for a smaller file none. The
// caller may keep them.
func (h *Hasher) Groups() []CV { return h.groups }
