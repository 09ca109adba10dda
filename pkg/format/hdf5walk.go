package format

import (
	"bytes"
	"encoding/binary"
	"math"
)

// h5Contiguous is the storage class of data in one piece.
const h5Contiguous = 1

// h5Object is what an object header says, as far as reading a sample needs it.
type h5Object struct {
	at int64 // of the header

	// Of a data set.
	haveSpace, haveType, haveLayout, external bool
	rank                                      int
	count                                     uint64 // rows
	rowElements, elementSize                  int64
	class                                     byte
	address, bytes                            uint64

	// Of a group: its old tables, or its links. dense and names are the heap and the tree of those that are not in the header.
	haveTable, haveLinks bool
	table, heap          uint64
	dense, names         uint64
}

func newH5Object() h5Object {
	return h5Object{table: h5Undefined, heap: h5Undefined, dense: h5Undefined, names: h5Undefined}
}

// object reads the object header at byte at, whose parts may be spread over the file.
func (r *h5Reader) object(at int64, o *h5Object) error {
	*o = newH5Object()
	o.at = at
	p, err := r.load(r.part, at, 16)
	if r.part = p; err != nil {
		return err
	}
	if string(p[:4]) == "OHDR" {
		return r.object2(at, o)
	}
	if p[0] != 1 {
		return r.problem(at, "no object header here")
	}
	return r.object1(at, o, p)
}

// h5More is a list of the parts of an object header that are still to be read.
type h5More struct {
	parts [64]struct{ at, n int64 }
	n     int
}

func (m *h5More) add(r *h5Reader, at int64, p []byte) error {
	if len(p) < 16 {
		return r.problem(at, "object header: a continuation of %d bytes", len(p))
	}
	if m.n == len(m.parts) {
		return r.problem(at, "object header of more than %d parts", len(m.parts))
	}
	where, n := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
	if where > math.MaxInt64 || n > h5Work {
		return r.problem(at, "object header: a continuation of %d bytes at byte %d", n, where)
	}
	m.parts[m.n].at, m.parts[m.n].n = int64(where), int64(n)
	m.n++
	return nil
}

// object1 reads a header of version 1, whose first bytes are p.
func (r *h5Reader) object1(at int64, o *h5Object, p []byte) error {
	messages := int(binary.LittleEndian.Uint16(p[2:]))
	var more h5More
	more.parts[0].at, more.parts[0].n, more.n = at+16, int64(binary.LittleEndian.Uint32(p[8:])), 1
	for i := 0; i < more.n; i++ {
		part := more.parts[i]
		var err error
		if r.header, err = r.load(r.header, part.at, part.n); err != nil {
			return err
		}
		where := part.at
		for p := r.header; len(p) >= 8 && messages > 0; messages-- {
			kind, n, flags := binary.LittleEndian.Uint16(p), int(binary.LittleEndian.Uint16(p[2:])), p[4]
			if n > len(p)-8 {
				return r.problem(where, "object header: a message of %d bytes where %d are left", n, len(p)-8)
			}
			if err := r.message(o, &more, kind, flags, p[8:8+n], where); err != nil {
				return err
			}
			p, where = p[8+n:], where+8+int64(n)
		}
	}
	return nil
}

// object2 reads a header of version 2.
func (r *h5Reader) object2(at int64, o *h5Object) error {
	p := r.part
	flags := p[5]
	if p[4] != 2 {
		return r.problem(at+4, "object header of version %d; 1 and 2 are known", p[4])
	}
	front := int64(6)
	if flags&0x20 != 0 {
		front += 16 // times
	}
	if flags&0x10 != 0 {
		front += 4 // when a group's links become dense
	}
	width := int64(1) << (flags & 3)
	p, err := r.load(r.part, at, front+width)
	if r.part = p; err != nil {
		return err
	}
	var n uint64
	for i := width - 1; i >= 0; i-- {
		n = n<<8 | uint64(p[front+i])
	}
	if n > h5Work {
		return r.problem(at, "object header of %d bytes", n)
	}
	head := int64(h5MessageHead)
	if flags&4 != 0 {
		head += 2 // order of creation
	}
	var more h5More
	more.parts[0].at, more.parts[0].n, more.n = at, front+width+int64(n)+4, 1
	for i := 0; i < more.n; i++ {
		part, signature, skip := more.parts[i], "OCHK", int64(4)
		if i == 0 {
			signature, skip = "OHDR", front+width
		}
		if part.n < skip+4 {
			return r.problem(part.at, "object header: a part of %d bytes", part.n)
		}
		if r.header, err = r.sealed(r.header, part.at, part.n, signature); err != nil {
			return err
		}
		where := part.at + skip
		for p := r.header[skip : part.n-4]; int64(len(p)) >= head; {
			kind, n, flags := uint16(p[0]), int64(binary.LittleEndian.Uint16(p[1:])), p[3]
			if n > int64(len(p))-head {
				return r.problem(where, "object header: a message of %d bytes where %d are left", n, int64(len(p))-head)
			}
			if err := r.message(o, &more, kind, flags, p[head:head+n], where); err != nil {
				return err
			}
			p, where = p[head+n:], where+head+n
		}
	}
	return nil
}

// message takes from one message what it says about o.
func (r *h5Reader) message(o *h5Object, more *h5More, kind uint16, flags byte, p []byte, at int64) error {
	const shared = 2
	switch kind {
	case h5MsgDataspace, h5MsgDatatype, h5MsgLayout:
		if flags&shared != 0 {
			return r.unread(at, "a shape, element type or storage that is kept elsewhere (shared message)")
		}
	}
	short := false
	switch kind {
	case h5MsgDataspace:
		return r.dataspace(o, p, at)
	case h5MsgDatatype:
		return r.datatype(o, p, at)
	case h5MsgLayout:
		return r.layout(o, p, at)
	case h5MsgExternal:
		o.external = true
	case h5MsgContinuation:
		return more.add(r, at, p)
	case h5MsgSymbolTable:
		if short = len(p) < 16; !short {
			o.haveTable, o.table, o.heap = true, binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
		}
	case h5MsgLinkInfo:
		if short = len(p) < 2 || len(p) < 18+int(p[1]&1)*8; !short {
			p = p[2+int(p[1]&1)*8:]
			o.haveLinks, o.dense, o.names = true, binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
		}
	case h5MsgLink:
		return r.linkMessage(p, at)
	}
	if short {
		return r.problem(at, "object header: a message of only %d bytes", len(p))
	}
	return nil
}

func (r *h5Reader) dataspace(o *h5Object, p []byte, at int64) error {
	if len(p) < 4 || p[0] < 1 || p[0] > 2 {
		return r.problem(at, "a shape of unknown version; 1 and 2 are known")
	}
	dims := 4
	if p[0] == 1 {
		dims = 8
	}
	o.rank = int(p[1])
	if o.rank > MaxDims+1 || len(p) < dims+8*o.rank {
		return r.problem(at, "a shape of %d dimensions in %d bytes", o.rank, len(p))
	}
	o.haveSpace, o.rowElements = true, 1
	for i, p := 0, p[dims:]; i < o.rank; i, p = i+1, p[8:] {
		d := binary.LittleEndian.Uint64(p)
		if i == 0 {
			o.count = d
			continue
		}
		o.rowElements = mul(o.rowElements, int64(min(d, math.MaxInt64)))
	}
	return nil
}

// datatype takes the bytes of an element; what they mean does not matter, as long as they are the element itself.
func (r *h5Reader) datatype(o *h5Object, p []byte, at int64) error {
	if len(p) < 8 {
		return r.problem(at, "an element type in %d bytes", len(p))
	}
	switch class := p[0] & 15; class {
	case 0, 1, 4, 6, 8: // integer, float, bits, compound, enumeration
		o.haveType, o.elementSize = true, int64(binary.LittleEndian.Uint32(p[4:]))
		return nil
	default:
		return r.problem(at, "elements of HDF5's type class %d; expected numbers", class)
	}
}

func (r *h5Reader) layout(o *h5Object, p []byte, at int64) error {
	if len(p) < 2 {
		return r.problem(at, "storage described in %d bytes", len(p))
	}
	if p[0] != 3 && p[0] != 4 {
		return r.unread(at, "storage described by version %d, not 3 or 4", p[0])
	}
	o.haveLayout, o.class = true, p[1]
	switch {
	case o.class > 3:
		return r.problem(at, "storage of unknown class %d", o.class)
	case o.class != h5Contiguous:
		return nil
	case len(p) < 18:
		return r.problem(at, "storage described in %d bytes", len(p))
	}
	o.address, o.bytes = binary.LittleEndian.Uint64(p[2:]), binary.LittleEndian.Uint64(p[10:])
	return nil
}

// linkMessage takes one name of a group.
func (r *h5Reader) linkMessage(p []byte, at int64) error {
	if len(p) < 3 || p[0] != 1 {
		return r.problem(at, "a link of unknown version; 1 is known")
	}
	flags, kind := p[1], byte(0)
	p = p[2:]
	if flags&8 != 0 {
		kind, p = p[0], p[1:]
	}
	for _, skip := range [...]struct {
		flag byte
		n    int
	}{{4, 8}, {16, 1}} { // order of creation, character set
		if flags&skip.flag != 0 {
			p = p[min(skip.n, len(p)):]
		}
	}
	width := 1 << (flags & 3)
	if len(p) < width {
		return r.problem(at, "a link that ends before its name")
	}
	var n uint64
	for i := width - 1; i >= 0; i-- {
		n = n<<8 | uint64(p[i])
	}
	if p = p[width:]; n > uint64(len(p)) {
		return r.problem(at, "a link whose name has %d bytes, of which %d are there", n, len(p))
	}
	name, p := p[:n], p[n:]
	if kind != 0 {
		return nil // soft and external links lead to no data of this file
	}
	if len(p) < 8 {
		return r.problem(at, "a link that ends before its address")
	}
	r.link(name, binary.LittleEndian.Uint64(p))
	return nil
}

// symbols takes the names of a group in the form of HDF5 before 1.8: a B-tree over nodes of entries, and a heap of names.
func (r *h5Reader) symbols(tree, heap uint64) error {
	p, err := r.load(r.part, int64(min(heap, math.MaxInt64)), 32)
	if r.part = p; err != nil {
		return err
	}
	if string(p[:4]) != "HEAP" || p[4] != 0 {
		return r.problem(int64(heap), "no heap of names here")
	}
	size, data := binary.LittleEndian.Uint64(p[8:]), binary.LittleEndian.Uint64(p[24:])
	if data > uint64(r.size) || size > uint64(r.size)-data {
		return r.problem(int64(heap), "a heap of %d bytes at byte %d, beyond the end of the file", size, data)
	}
	return r.symbolNode(tree, 1<<16, int64(data), int64(size))
}

// symbolNode walks through one node, below one of the given level.
func (r *h5Reader) symbolNode(tree uint64, above int, heap, heapSize int64) error {
	at := int64(min(tree, math.MaxInt64))
	p, err := r.load(nil, at, 24)
	if err != nil {
		return err
	}
	level, entries := int(p[5]), int64(binary.LittleEndian.Uint16(p[6:]))
	if string(p[:4]) != "TREE" || p[4] != 0 || level >= above {
		return r.problem(at, "no node of a group's tree here")
	}
	// Keys and children alternate; the names are in the leaves, so the keys do not matter.
	for i := range entries {
		if p, err = r.load(p, at+24+16*i+8, 8); err != nil {
			return err
		}
		child := binary.LittleEndian.Uint64(p)
		if level > 0 {
			err = r.symbolNode(child, level, heap, heapSize)
		} else {
			err = r.symbolLeaf(child, heap, heapSize)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// symbolLeaf takes the entries of one node.
func (r *h5Reader) symbolLeaf(address uint64, heap, heapSize int64) error {
	at := int64(min(address, math.MaxInt64))
	p, err := r.load(r.part, at, 8)
	if r.part = p; err != nil {
		return err
	}
	if string(p[:4]) != "SNOD" || p[4] != 1 {
		return r.problem(at, "no node of names here")
	}
	entries := int64(binary.LittleEndian.Uint16(p[6:]))
	for i := range entries {
		where := at + 8 + 40*i
		if r.part, err = r.load(r.part, where, 40); err != nil {
			return err
		}
		name := binary.LittleEndian.Uint64(r.part)
		if name >= uint64(heapSize) {
			return r.problem(where, "a name at byte %d of a heap of %d", name, heapSize)
		}
		if binary.LittleEndian.Uint32(r.part[16:]) == 2 {
			continue // a soft link
		}
		// Longer names are none of ours.
		const longest = len("records_0000") + 1
		if r.spare, err = r.load(r.spare, heap+int64(name), min(heapSize-int64(name), int64(longest))); err != nil {
			return err
		}
		if end := bytes.IndexByte(r.spare, 0); end >= 0 {
			r.link(r.spare[:end], binary.LittleEndian.Uint64(r.part[8:]))
		}
	}
	return nil
}
