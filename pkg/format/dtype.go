package format

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/benchpin/benchpin/pkg/stream"
)

// DType is an element type of numpy.
type DType struct {
	Name  string // numpy's name: "uint8", "float32", ...
	Descr string // numpy's type string as it stands in a header: "|u1", "<f4", ...; always little-endian
	Size  int    // bytes of one element
}

// dtypes lists the element types with numpy's other names for them on 64-bit Linux.
func dtypes() []struct {
	DType
	also string
} {
	return []struct {
		DType
		also string
	}{
		{DType{"bool", "|b1", 1}, "? bool_ bool8 b1"},
		{DType{"int8", "|i1", 1}, "b byte i1"},
		{DType{"int16", "<i2", 2}, "h short i2"},
		{DType{"int32", "<i4", 4}, "i intc i4"},
		{DType{"int64", "<i8", 8}, "l q int int_ long longlong intp i8"},
		{DType{"uint8", "|u1", 1}, "B ubyte u1"},
		{DType{"uint16", "<u2", 2}, "H ushort u2"},
		{DType{"uint32", "<u4", 4}, "I uintc u4"},
		{DType{"uint64", "<u8", 8}, "L Q uint ulong ulonglong uintp u8"},
		{DType{"float16", "<f2", 2}, "e half f2"},
		{DType{"float32", "<f4", 4}, "f single f4"},
		{DType{"float64", "<f8", 8}, "d double float float_ f8"},
		{DType{"complex64", "<c8", 8}, "F csingle c8"},
		{DType{"complex128", "<c16", 16}, "D cdouble complex complex_ c16"},
	}
}

// ParseDType returns the element type that numpy means by name on a 64-bit little-endian machine: a name ("float32"), an
// alias ("single") or a type string ("<f4", "f4"). Big-endian types are not generated. The error lists the names.
func ParseDType(name string) (DType, error) {
	bare := name
	if len(name) > 1 && strings.ContainsRune("<=|", rune(name[0])) {
		bare = name[1:]
	}
	var names []string
	for _, d := range dtypes() {
		names = append(names, d.Name)
		if name == d.Name {
			return d.DType, nil
		}
		for _, a := range strings.Fields(d.also) {
			if bare == a {
				return d.DType, nil
			}
		}
	}
	return DType{}, fmt.Errorf("element type %q is not available; there are: %s", name, strings.Join(names, ", "))
}

// Fill writes the bytes [off, off+len(dst)) of the elements of file index into dst; off is 0 or more and need not be the
// start of an element. Element bytes are those of the stream at the same offsets, so that integers take every value of
// their type (DLIO never gives the largest), mapped as follows, x being the unsigned little-endian integer they make:
//
//	bool               x mod 2
//	float16            (x >> 5) 2^-11     \
//	float32            (x >> 8) 2^-24      } exact, finite, uniform in [0, 1)
//	float64            (x >> 11) 2^-53    /
//	complex64, 128     real and imaginary part each as float32, float64
func (d DType) Fill(dst []byte, s *stream.Seeded, index uint64, off int64) {
	width := int64(d.Size)
	var convert func([]byte)
	switch d.Descr[1:] {
	case "b1":
		convert = toBool
	case "f2":
		convert = toFloat16
	case "f4":
		convert = toFloat32
	case "f8":
		convert = toFloat64
	case "c8":
		convert, width = toFloat32, 4
	case "c16":
		convert, width = toFloat64, 8
	default:
		s.Fill(dst, index, uint64(off))
		return
	}
	if in := off % width; in != 0 {
		n := d.fillPart(dst, convert, s, index, off-in, in, width)
		dst, off = dst[n:], off+int64(n)
	}
	whole := int64(len(dst)) / width * width
	s.Fill(dst[:whole], index, uint64(off))
	convert(dst[:whole])
	if rest := dst[whole:]; len(rest) > 0 {
		d.fillPart(rest, convert, s, index, off+whole, 0, width)
	}
}

// fillPart writes the bytes from in on of the one element at offset start, as far as dst reaches, and returns how many.
func (DType) fillPart(dst []byte, convert func([]byte), s *stream.Seeded, index uint64, start, in, width int64) int {
	var element [8]byte
	s.Fill(element[:width], index, uint64(start))
	convert(element[:width])
	return copy(dst, element[in:width])
}

func toBool(p []byte) {
	for i := range p {
		p[i] &= 1
	}
}

func toFloat16(p []byte) {
	for ; len(p) >= 8; p = p[8:] {
		x := binary.LittleEndian.Uint64(p)
		binary.LittleEndian.PutUint64(p, uint64(unit16(uint16(x)))|uint64(unit16(uint16(x>>16)))<<16|
			uint64(unit16(uint16(x>>32)))<<32|uint64(unit16(uint16(x>>48)))<<48)
	}
	for ; len(p) >= 2; p = p[2:] {
		binary.LittleEndian.PutUint16(p, unit16(binary.LittleEndian.Uint16(p)))
	}
}

// unit16 returns the half-precision bits of (x >> 5) 2^-11. A half has 11 significant bits, so that the float32 of the
// same value, its exponent's bias changed from 127 to 15 and its 13 last bits (zeros) dropped, is the half.
func unit16(x uint16) uint16 {
	if x < 1<<5 {
		return 0
	}
	return uint16(math.Float32bits(float32(int32(x>>5))*0x1p-11)>>13 - (127-15)<<10)
}

func toFloat32(p []byte) {
	for ; len(p) >= 16; p = p[16:] { // four at a time: the loop, not the arithmetic, is what costs
		q := (*[16]byte)(p)
		a, b := binary.LittleEndian.Uint64(q[:8]), binary.LittleEndian.Uint64(q[8:])
		binary.LittleEndian.PutUint64(q[:8], uint64(unit32(uint32(a)))|uint64(unit32(uint32(a>>32)))<<32)
		binary.LittleEndian.PutUint64(q[8:], uint64(unit32(uint32(b)))|uint64(unit32(uint32(b>>32)))<<32)
	}
	for ; len(p) >= 4; p = p[4:] {
		binary.LittleEndian.PutUint32(p, unit32(binary.LittleEndian.Uint32(p)))
	}
}

// unit32 returns the bits of (x >> 8) 2^-24.
func unit32(x uint32) uint32 { return math.Float32bits(float32(int32(x>>8)) * 0x1p-24) }

func toFloat64(p []byte) {
	for ; len(p) >= 8; p = p[8:] {
		x := binary.LittleEndian.Uint64(p)
		binary.LittleEndian.PutUint64(p, math.Float64bits(float64(int64(x>>11))*0x1p-53))
	}
}

// seeded is the content of one file of a family.
type seeded struct {
	dtype  DType
	family *stream.Seeded
	index  uint64
}

func (c seeded) Fill(dst []byte, off int64) { c.dtype.Fill(dst, c.family, c.index, off) }

// Seeded returns the content that stream index of family s gives for elements of type d.
func (d DType) Seeded(s *stream.Seeded, index uint64) Content { return seeded{d, s, index} }
