package format

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// h5Heap is a fractal heap: objects of variable length in blocks whose sizes double.
type h5Heap struct {
	at            int64 // of its header
	offset, width int64 // bytes of an offset and of a length in an object's identifier
	idBytes       int64
	columns       int64 // blocks in a row
	block         int64 // bytes of a block of the first two rows
	largest       int64 // bytes of the largest block that holds objects
	root          uint64
	rows          int // of blocks below the root, 0 if the root itself holds objects
}

// h5Names is a B-tree of links by the hash of their names.
type h5Names struct {
	heap         h5Heap
	node, record int64    // bytes
	most         [4]int64 // records of a node, by its level
	pointer      [4]int64 // bytes of what a node says of a child, by the node's own level
	count        int64    // bytes of a child's number of records
}

// denseLinks takes the names of a group of more than eight: a B-tree of them, whose records identify links in a heap.
func (r *h5Reader) denseLinks(heap, tree uint64) error {
	h, err := r.heap(int64(min(heap, math.MaxInt64)))
	if err != nil {
		return err
	}
	at := int64(min(tree, math.MaxInt64))
	p, err := r.sealed(r.part, at, 38, "BTHD")
	if r.part = p; err != nil {
		return err
	}
	t := h5Names{heap: h, node: int64(binary.LittleEndian.Uint32(p[6:])), record: int64(binary.LittleEndian.Uint16(p[10:]))}
	depth, root, entries := int(binary.LittleEndian.Uint16(p[12:])), binary.LittleEndian.Uint64(p[16:]), int64(binary.LittleEndian.Uint16(p[24:]))
	switch {
	case p[4] != 0 || p[5] != 5 || t.record != 4+h.idBytes || t.node < 256 || t.node > 1<<20:
		return r.problem(at, "no tree of names here")
	case depth >= len(t.most):
		return r.unread(at, "a tree of names of depth %d, which only libhdf5 reads", depth)
	case entries == 0:
		return nil
	}
	// A node above the leaves says of each child where it is, how many records it has and, above other such nodes, how many
	// there are in all below it; each number takes the bytes of the largest that there can be.
	bytes := func(n int64) int64 { return int64(bits.Len64(uint64(n))+7) / 8 }
	t.most[0] = (t.node - 10) / t.record
	t.count = bytes(t.most[0])
	below := t.most[0]
	for level := 1; level <= depth; level++ {
		t.pointer[level] = 8 + t.count
		if level > 1 {
			t.pointer[level] += bytes(below)
		}
		t.most[level] = (t.node - 10 - t.pointer[level]) / (t.record + t.pointer[level])
		below = (t.most[level]+1)*below + t.most[level]
	}
	return r.denseNode(&t, int64(min(root, math.MaxInt64)), entries, depth)
}

// denseNode takes the names of a node with the given number of records, and of those below it.
func (r *h5Reader) denseNode(t *h5Names, at, entries int64, level int) error {
	if entries > t.most[level] {
		return r.problem(at, "%d names in a node for %d", entries, t.most[level])
	}
	signature, records, children := "BTLF", entries*t.record, int64(0)
	if level > 0 {
		signature, children = "BTIN", (entries+1)*t.pointer[level]
	}
	node, err := r.sealed(nil, at, 6+records+children+4, signature)
	if err != nil {
		return err
	}
	if err := r.denseRecords(t.heap, node[6:6+records], t.record, at); err != nil {
		return err
	}
	for p := node[6+records : 6+records+children]; len(p) > 0; p = p[t.pointer[level]:] {
		child := int64(min(binary.LittleEndian.Uint64(p), math.MaxInt64))
		if err := r.denseNode(t, child, int64(h5Number(p[8:8+t.count])), level-1); err != nil {
			return err
		}
	}
	return nil
}

// denseRecords takes the links that records (a hash of the name and an identifier each) lead to.
func (r *h5Reader) denseRecords(h h5Heap, p []byte, record, at int64) error {
	for ; len(p) > 0; p = p[record:] {
		id := p[4:record]
		if id[0] != 0 {
			return r.unread(at, "a name that is not in a block of its heap, which only libhdf5 reads")
		}
		where, n := h5Number(id[1:1+h.offset]), h5Number(id[1+h.offset:1+h.offset+h.width])
		address, err := r.heapObject(h, where, n)
		if err != nil {
			return err
		}
		if r.part, err = r.load(r.part, address, int64(n)); err != nil {
			return err
		}
		if err := r.linkMessage(r.part, address); err != nil {
			return err
		}
	}
	return nil
}

// h5Number reads a little-endian number of at most 8 bytes.
func h5Number(p []byte) (n uint64) {
	for i := len(p) - 1; i >= 0; i-- {
		n = n<<8 | uint64(p[i])
	}
	return n
}

// heap reads a heap's header.
func (r *h5Reader) heap(at int64) (h h5Heap, err error) {
	const size = 146
	p, err := r.sealed(r.part, at, size, "FRHP")
	if r.part = p; err != nil {
		return h, err
	}
	h = h5Heap{at: at, idBytes: int64(binary.LittleEndian.Uint16(p[5:])), columns: int64(binary.LittleEndian.Uint16(p[110:])),
		block: int64(min(binary.LittleEndian.Uint64(p[112:]), 1<<40)), largest: int64(min(binary.LittleEndian.Uint64(p[120:]), 1<<40)),
		root: binary.LittleEndian.Uint64(p[132:]), rows: int(binary.LittleEndian.Uint16(p[140:]))}
	maxObject, maxBits := uint64(binary.LittleEndian.Uint32(p[10:])), int64(binary.LittleEndian.Uint16(p[128:]))
	h.offset = (maxBits + 7) / 8
	h.width = (int64(bits.Len64(min(uint64(h.largest), maxObject))) + 7) / 8
	switch {
	case p[4] != 0 || h.columns == 0 || h.columns&(h.columns-1) != 0 || h.block == 0 || h.block&(h.block-1) != 0 ||
		h.largest < h.block || h.largest&(h.largest-1) != 0 || h.offset < 1 || h.offset > 8 || h.idBytes < 1+h.offset+h.width || h.idBytes > 64:
		return h, r.problem(at, "a heap of names whose numbers make no sense")
	case binary.LittleEndian.Uint16(p[7:]) != 0:
		return h, r.unread(at, "a compressed heap of names, which only libhdf5 reads")
	}
	return h, nil
}

// heapObject returns where the n bytes at position where of the heap are in the file.
func (r *h5Reader) heapObject(h h5Heap, where, n uint64) (int64, error) {
	if n > uint64(h.largest) || where > 1<<40 {
		return 0, r.problem(h.at, "a name of %d bytes at byte %d of its heap", n, where)
	}
	block, start, size := h.root, int64(0), h.block
	if h.rows > 0 {
		// The root lists blocks in rows of equally many; the first two rows have blocks of the first size, and each row after
		// them blocks of twice the size before.
		row, index := 0, int64(0)
		for ; start+h.columns*size <= int64(where); row++ {
			start += h.columns * size
			index += h.columns
			if row > 0 {
				size *= 2
			}
			if row+1 >= h.rows || size > h.largest {
				return 0, r.unread(h.at, "a heap of names of more than one level, which only libhdf5 reads")
			}
		}
		column := (int64(where) - start) / size
		index, start = index+column, start+column*size
		root := int64(min(h.root, math.MaxInt64))
		p, err := r.load(r.part, root, 5)
		if r.part = p; err != nil {
			return 0, err
		}
		if string(p[:4]) != "FHIB" || p[4] != 0 {
			return 0, r.problem(root, "no list of a heap's blocks here")
		}
		if r.part, err = r.load(r.part, root+5+8+h.offset+8*index, 8); err != nil {
			return 0, err
		}
		block = binary.LittleEndian.Uint64(r.part)
	}
	if uint64(size) < where-uint64(start)+n || block > uint64(r.size) {
		return 0, r.problem(h.at, "a name of %d bytes at byte %d of its heap, in a block of %d at byte %d", n, where, size, block)
	}
	at := int64(block)
	p, err := r.load(r.part, at, 5)
	if r.part = p; err != nil {
		return 0, err
	}
	if string(p[:4]) != "FHDB" || p[4] != 0 {
		return 0, r.problem(at, "no block of a heap here")
	}
	return at + int64(where) - start, nil
}
