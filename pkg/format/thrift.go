package format

import (
	"encoding/binary"
	"fmt"
)

// Thrift's compact protocol, as far as parquet uses it. Reading builds nothing: it walks, bounded by the bytes that are there, so
// that no length in a file makes this program take memory.

// The types of the compact protocol.
const (
	thriftStop, thriftTrue, thriftFalse, thriftByte = 0, 1, 2, 3
	thriftI16, thriftI32, thriftI64, thriftDouble   = 4, 5, 6, 7
	thriftBinary, thriftList, thriftSet             = 8, 9, 10
	thriftStruct                                    = 12
	// thriftDepth bounds the nesting of structures; parquet's own nest to about 8.
	thriftDepth = 32
)

// thriftWriter appends a structure to b.
type thriftWriter struct {
	b    []byte
	last int64 // number of the field before
}

// field begins field id.
func (w *thriftWriter) field(id int64, typ byte) {
	w.b = append(w.b, byte(id-w.last)<<4|typ) // no structure here leaves out 15 fields in a row
	w.last = id
}

func (w *thriftWriter) varint(v int64) {
	w.b = binary.AppendUvarint(w.b, uint64(v)<<1^uint64(v>>63))
}

func (w *thriftWriter) i32(id, v int64) {
	w.field(id, thriftI32)
	w.varint(v)
}

func (w *thriftWriter) i64(id, v int64) {
	w.field(id, thriftI64)
	w.varint(v)
}

func (w *thriftWriter) text(id int64, s string) {
	w.field(id, thriftBinary)
	w.b = append(binary.AppendUvarint(w.b, uint64(len(s))), s...)
}

// list begins a list of n elements.
func (w *thriftWriter) list(id int64, typ byte, n int) {
	w.field(id, thriftList)
	if n < 15 {
		w.b = append(w.b, byte(n)<<4|typ)
		return
	}
	w.b = binary.AppendUvarint(append(w.b, 0xf0|typ), uint64(n))
}

// begin begins a structure in field id, or one of a list if id is 0, and returns what end needs.
func (w *thriftWriter) begin(id int64) (outer int64) {
	if id > 0 {
		w.field(id, thriftStruct)
	}
	outer, w.last = w.last, 0
	return outer
}

func (w *thriftWriter) end(outer int64) {
	w.b = append(w.b, thriftStop)
	w.last = outer
}

// varintLen is the number of bytes of v, 0 or more, as a signed number.
func varintLen(v int64) int64 {
	n := int64(1)
	for u := uint64(v) << 1; u >= 0x80; u >>= 7 {
		n++
	}
	return n
}

// octet reads one byte.
func (r *reader) octet() (byte, error) {
	if len(r.data) == 0 {
		if err := r.more(); err != nil {
			return 0, err
		}
	}
	b := r.data[0]
	r.data = r.data[1:]
	return b, nil
}

func (r *reader) uvarint() (uint64, error) {
	var v uint64
	for shift := uint(0); shift < 64; shift += 7 {
		b, err := r.octet()
		if err != nil {
			return 0, err
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, nil
		}
	}
	return 0, r.problem("a number of more than 64 bits")
}

func (r *reader) varint() (int64, error) {
	u, err := r.uvarint()
	return int64(u>>1) ^ -int64(u&1), err
}

// field reads the head of the next field of a structure, *id being the number of the one before, and returns its type; thriftStop
// at the end.
func (r *reader) field(id *int64) (byte, error) {
	head, err := r.octet()
	if err != nil || head == thriftStop {
		return thriftStop, err
	}
	if delta := head >> 4; delta != 0 {
		*id += int64(delta)
	} else if *id, err = r.varint(); err != nil {
		return thriftStop, err
	}
	if head&0x0f == thriftStop {
		return thriftStop, r.problem("a field without a type")
	}
	return head & 0x0f, nil
}

// textLen reads the length of a text, and checks that so much is there.
func (r *reader) textLen() (int64, error) {
	n, err := r.uvarint()
	if err == nil && n > uint64(r.size-r.at()) {
		err = r.problem(fmt.Sprintf("a text of %d bytes where %d are left", n, r.size-r.at()))
	}
	return int64(n), err
}

// listHead reads the head of a list: how many elements of which type.
func (r *reader) listHead() (n uint64, typ byte, err error) {
	head, err := r.octet()
	if err != nil {
		return 0, 0, err
	}
	if n = uint64(head >> 4); n == 15 {
		if n, err = r.uvarint(); err != nil {
			return 0, 0, err
		}
	}
	if n > uint64(r.size-r.at()) { // each takes at least one byte
		return 0, 0, r.problem(fmt.Sprintf("a list of %d elements where %d bytes are left", n, r.size-r.at()))
	}
	return n, head & 0x0f, nil
}

// pass steps over the value of a field.
func (r *reader) pass(typ byte, depth int) error {
	if typ == thriftTrue || typ == thriftFalse { // the value is in the type
		return nil
	}
	return r.passElement(typ, depth)
}

// passElement steps over a value in a list.
func (r *reader) passElement(typ byte, depth int) error {
	if depth > thriftDepth {
		return r.problem("structures nested too deep")
	}
	switch typ {
	case thriftTrue, thriftFalse, thriftByte:
		_, err := r.octet()
		return err
	case thriftI16, thriftI32, thriftI64:
		_, err := r.uvarint()
		return err
	case thriftDouble:
		return r.skip(8)
	case thriftBinary:
		n, err := r.textLen()
		if err != nil {
			return err
		}
		return r.skip(n)
	case thriftList, thriftSet:
		n, typ, err := r.listHead()
		for ; n > 0 && err == nil; n-- {
			err = r.passElement(typ, depth+1)
		}
		return err
	case thriftStruct:
		var id int64
		for {
			typ, err := r.field(&id)
			if err != nil || typ == thriftStop {
				return err
			}
			if err := r.pass(typ, depth+1); err != nil {
				return err
			}
		}
	}
	return r.problem(fmt.Sprintf("a value of type %d, which parquet's structures do not have", typ))
}
