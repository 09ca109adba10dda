package format

import (
	"encoding/binary"
	"math/bits"
	"strconv"
)

const (
	h5Signature = "\x89HDF\r\n\x1a\n"
	h5Undefined = 1<<64 - 1 // an address that leads nowhere

	// Messages of an object header.
	h5MsgNil          = 0x00
	h5MsgDataspace    = 0x01
	h5MsgLinkInfo     = 0x02
	h5MsgDatatype     = 0x03
	h5MsgFill         = 0x05
	h5MsgLink         = 0x06
	h5MsgExternal     = 0x07
	h5MsgLayout       = 0x08
	h5MsgGroupInfo    = 0x0a
	h5MsgContinuation = 0x10
	h5MsgSymbolTable  = 0x11

	// h5Block is what libhdf5 allocates for metadata at a time; the data come after the last such block.
	h5Block = 2048
	// h5DatasetHeader is the room that libhdf5 gives the messages of a data set.
	h5DatasetHeader = 257
	// h5GroupHeader is the room that libhdf5 gives the messages of a group.
	h5GroupHeader = 120

	h5Superblock  = 48 // bytes, of version 2
	h5MessageHead = 4  // type, size, flags
)

// h5Plan is where everything in a contiguous file lies.
type h5Plan struct {
	meta []byte // everything before the elements
	size int64  // of the file
}

// plan lays out the file: superblock, root group, data sets' headers, zeros up to a multiple of 2048, records_0, records_1, ...,
// labels. The payload is the elements of the data sets in that order.
func (f hdf5) plan(l Layout, shape []int) h5Plan {
	names, total := h5GroupHeaderBytes(f.datasets)
	each := l.PayloadBytes() / int64(f.datasets)
	records := h5DatasetMessages(shape, h5Datatype(l.DType), 0, each)
	labels := h5DatasetMessages(shape[:1], h5Datatype(DType{Descr: "<i8", Size: 8}), 0, 8*int64(shape[0]))
	recordsBytes, labelsBytes := h5HeaderBytes(len(records), h5DatasetHeader), h5HeaderBytes(len(labels), h5DatasetHeader)
	at := h5Superblock + total
	used := at + int64(f.datasets)*recordsBytes + labelsBytes
	front := (used + h5Block - 1) / h5Block * h5Block
	p := h5Plan{size: front + l.PayloadBytes() + 8*int64(shape[0])}

	b := append(make([]byte, 0, front), h5Signature...)
	b = append(b, 2, 8, 8, 0) // version, bytes of an offset and of a length, flags
	b = binary.LittleEndian.AppendUint64(b, 0)
	b = binary.LittleEndian.AppendUint64(b, h5Undefined) // no extension
	b = binary.LittleEndian.AppendUint64(b, uint64(p.size))
	b = binary.LittleEndian.AppendUint64(b, h5Superblock) // root group
	b = binary.LittleEndian.AppendUint32(b, h5Checksum(b))

	group := make([]byte, 0, names)
	group = h5Message(group, h5MsgLinkInfo, 0, 18)
	group = append(group, 0, 0)
	group = binary.LittleEndian.AppendUint64(group, h5Undefined)
	group = binary.LittleEndian.AppendUint64(group, h5Undefined)
	group = append(h5Message(group, h5MsgGroupInfo, 1, 2), 0, 0)
	for i := range f.datasets {
		group = h5Link(group, "records_"+strconv.Itoa(i), uint64(at+int64(i)*recordsBytes))
	}
	group = h5Link(group, "labels", uint64(at+int64(f.datasets)*recordsBytes))
	b = h5Header(b, group, h5GroupHeader)
	for i := range f.datasets {
		h5SetAddress(records, uint64(front+int64(i)*each))
		b = h5Header(b, records, h5DatasetHeader)
	}
	h5SetAddress(labels, uint64(front+l.PayloadBytes()))
	b = h5Header(b, labels, h5DatasetHeader)
	p.meta = b[:front] // the rest is zeros: b was made in one piece
	return p
}

// h5GroupHeaderBytes returns the bytes of the root group's messages, and of its whole header.
func h5GroupHeaderBytes(datasets int) (messages int, total int64) {
	const link = h5MessageHead + 3 + 8
	messages = h5MessageHead + 18 + h5MessageHead + 2 + link + len("labels")
	for i := range datasets {
		messages += link + len("records_") + len(strconv.Itoa(i))
	}
	return messages, h5HeaderBytes(messages, h5GroupHeader)
}

// h5HeaderBytes returns the bytes of an object header with room for its messages.
func h5HeaderBytes(messages, room int) int64 {
	if messages > room {
		room = messages
	}
	return int64(4 + 1 + 1 + 4 + room + 4) // signature, version, flags, size, messages, checksum
}

// h5Header appends an object header of version 2, and fills what its messages leave of the room with an empty one.
func h5Header(p, messages []byte, room int) []byte {
	start := len(p)
	p = append(p, "OHDR"...)
	p = append(p, 2, 2) // version; four bytes of size, no times
	p = binary.LittleEndian.AppendUint32(p, uint32(max(room, len(messages))))
	p = append(p, messages...)
	if rest := room - len(messages); rest >= h5MessageHead {
		p = h5Message(p, h5MsgNil, 0, rest-h5MessageHead)
		p = append(p, make([]byte, rest-h5MessageHead)...)
	} else if rest > 0 {
		p = append(p, make([]byte, rest)...)
	}
	return binary.LittleEndian.AppendUint32(p, h5Checksum(p[start:]))
}

// h5Message appends the head of a message of n bytes.
func h5Message(p []byte, kind, flags byte, n int) []byte {
	p = append(p, kind)
	return append(binary.LittleEndian.AppendUint16(p, uint16(n)), flags)
}

// h5Link appends a message that names the object whose header is at address.
func h5Link(p []byte, name string, address uint64) []byte {
	p = h5Message(p, h5MsgLink, 0, 3+len(name)+8)
	p = append(p, 1, 0, byte(len(name))) // version, one byte of length
	p = append(p, name...)
	return binary.LittleEndian.AppendUint64(p, address)
}

// h5DatasetMessages returns what a contiguous data set's header says; its last 16 bytes are address and size.
func h5DatasetMessages(shape []int, datatype []byte, address uint64, size int64) []byte {
	p := h5Message(nil, h5MsgDataspace, 0, 4+8*len(shape))
	p = append(p, 2, byte(len(shape)), 0, 1) // version, dimensions, no largest ones, simple
	for _, d := range shape {
		p = binary.LittleEndian.AppendUint64(p, uint64(d))
	}
	p = h5Message(p, h5MsgDatatype, 1, len(datatype))
	p = append(p, datatype...)
	p = h5Message(p, h5MsgFill, 1, 2)
	p = append(p, 3, 0x0a) // version; allocated late, filled if a value is set, which none is
	p = h5Message(p, h5MsgLayout, 0, 18)
	p = append(p, 3, 1) // version, contiguous
	p = binary.LittleEndian.AppendUint64(p, address)
	return binary.LittleEndian.AppendUint64(p, uint64(size))
}

// h5SetAddress changes the address at the end of a data set's messages.
func h5SetAddress(messages []byte, address uint64) {
	binary.LittleEndian.PutUint64(messages[len(messages)-16:], address)
}

// h5Datatype describes an element as h5py does: bool is an enumeration of FALSE and TRUE, complex a compound of r and i.
func h5Datatype(d DType) []byte {
	head := func(class, bits0, bits1 byte, size int) []byte {
		return binary.LittleEndian.AppendUint32([]byte{class, bits0, bits1, 0}, uint32(size))
	}
	integer := func(size int, signed byte) []byte {
		p := append(head(0x10, signed, 0, size), 0, 0)
		return binary.LittleEndian.AppendUint16(p, uint16(8*size))
	}
	float := func(size int) []byte {
		exponent, mantissa, bias := 5, 10, uint32(15)
		switch size {
		case 4:
			exponent, mantissa, bias = 8, 23, 127
		case 8:
			exponent, mantissa, bias = 11, 52, 1023
		}
		// Implied leading bit; the sign is the last bit.
		p := append(head(0x11, 0x20, byte(8*size-1), size), 0, 0)
		p = binary.LittleEndian.AppendUint16(p, uint16(8*size))
		p = append(p, byte(mantissa), byte(exponent), 0, byte(mantissa))
		return binary.LittleEndian.AppendUint32(p, bias)
	}
	switch d.Descr[1] {
	case 'b':
		p := append(head(0x38, 2, 0, 1), integer(1, 8)...)
		return append(p, "FALSE\x00TRUE\x00\x00\x01"...)
	case 'f':
		return float(d.Size)
	case 'c':
		part := float(d.Size / 2)
		p := append(head(0x36, 2, 0, d.Size), 'r', 0, 0)
		p = append(append(p, part...), 'i', 0, byte(d.Size/2))
		return append(p, part...)
	case 'i':
		return integer(d.Size, 8)
	default:
		return integer(d.Size, 0)
	}
}

// h5Checksum is the hash of HDF5's metadata: Bob Jenkins' lookup3, hashlittle with the initial value 0.
func h5Checksum(p []byte) uint32 {
	a := 0xdeadbeef + uint32(len(p))
	b, c := a, a
	for ; len(p) > 12; p = p[12:] {
		a += binary.LittleEndian.Uint32(p)
		b += binary.LittleEndian.Uint32(p[4:])
		c += binary.LittleEndian.Uint32(p[8:])
		a = (a - c) ^ bits.RotateLeft32(c, 4)
		c += b
		b = (b - a) ^ bits.RotateLeft32(a, 6)
		a += c
		c = (c - b) ^ bits.RotateLeft32(b, 8)
		b += a
		a = (a - c) ^ bits.RotateLeft32(c, 16)
		c += b
		b = (b - a) ^ bits.RotateLeft32(a, 19)
		a += c
		c = (c - b) ^ bits.RotateLeft32(b, 4)
		b += a
	}
	if len(p) == 0 {
		return c
	}
	var last [12]byte
	copy(last[:], p)
	a += binary.LittleEndian.Uint32(last[:])
	b += binary.LittleEndian.Uint32(last[4:])
	c += binary.LittleEndian.Uint32(last[8:])
	c = (c ^ b) - bits.RotateLeft32(b, 14)
	a = (a ^ c) - bits.RotateLeft32(c, 11)
	b = (b ^ a) - bits.RotateLeft32(a, 25)
	c = (c ^ b) - bits.RotateLeft32(b, 16)
	a = (a ^ c) - bits.RotateLeft32(c, 4)
	b = (b ^ a) - bits.RotateLeft32(a, 14)
	return (c ^ b) - bits.RotateLeft32(b, 24)
}
