package checkpoint

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Type is the element type of a tensor.
type Type struct {
	// Name is DLIO's name of the type.
	Name string
	// Size is in bytes.
	Size    int64
	storage string // PyTorch's storage class
	// tensorflow is TensorFlow's number of the type.
	tensorflow int64
	// exponent has the exponent bits of every element of a word of 64 bits set, lowest the lowest bit of each exponent. Both are 0
	// for integers.
	exponent, lowest uint64
}

// types are DLIO's element types.
func types() []Type {
	return []Type{
		{Name: "int8", Size: 1, storage: "CharStorage", tensorflow: 6},
		{Name: "uint8", Size: 1, storage: "ByteStorage", tensorflow: 4},
		{Name: "fp16", Size: 2, storage: "HalfStorage", tensorflow: 19, exponent: 0x7c007c007c007c00, lowest: 0x0400040004000400},
		{Name: "bf16", Size: 2, storage: "BFloat16Storage", tensorflow: 14, exponent: 0x7f807f807f807f80, lowest: 0x0080008000800080},
		{Name: "fp32", Size: 4, storage: "FloatStorage", tensorflow: 1, exponent: 0x7f8000007f800000, lowest: 0x0080000000800000},
		{Name: "fp64", Size: 8, storage: "DoubleStorage", tensorflow: 2, exponent: 0x7ff0000000000000, lowest: 0x0010000000000000},
	}
}

// ParseType returns the element type of that name: int8, uint8, fp16, bf16, fp32 or fp64.
func ParseType(name string) (Type, error) {
	var names []string
	for _, t := range types() {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Type{}, fmt.Errorf("element type %q: expected one of %s", name, strings.Join(names, ", "))
}

// Int8 is the type of every tensor of fixed size.
func Int8() Type { return types()[0] }

const (
	// wordSize is the unit in which elements are made finite.
	wordSize = 8
	// inCache is how many bytes are made finite while they are in the processor's first cache.
	inCache = 16 << 10
)

// fill writes bytes [off, off+len(dst)) of a tensor, given a way to get the stream's bytes. The elements are those of the stream, but
// a floating-point number that would be infinite or not a number loses the highest bit of its exponent: a model's weights are
// numbers, and a program that reads the file may look at them.
func (t *Type) fill(dst []byte, off int64, raw func(dst []byte, off int64)) {
	if t.exponent == 0 {
		raw(dst, off)
		return
	}
	// A word that is only partly wanted is made whole first.
	if skip := int(off % wordSize); skip != 0 {
		n := t.word(dst, off, skip, raw)
		dst, off = dst[n:], off+int64(n)
	}
	for len(dst) >= wordSize {
		part := dst[:min(len(dst), inCache)&^(wordSize-1)]
		raw(part, off)
		t.finite(part)
		dst, off = dst[len(part):], off+int64(len(part))
	}
	t.word(dst, off, 0, raw)
}

// word fills dst from the word around off, of which skip bytes come before off, and returns how many bytes it gave.
func (t *Type) word(dst []byte, off int64, skip int, raw func(dst []byte, off int64)) int {
	if len(dst) == 0 {
		return 0
	}
	var w [wordSize]byte
	raw(w[:], off-int64(skip))
	t.finite(w[:])
	return copy(dst, w[skip:])
}

// finite clears, in whole words, the highest exponent bit of every element whose exponent bits are all ones. Adding one to such an
// exponent, and to no other, carries into the place of the sign, which was masked out.
func (t *Type) finite(words []byte) {
	le := binary.LittleEndian
	exponent, lowest, sign := t.exponent, t.lowest, t.exponent+t.lowest
	for len(words) >= 4*wordSize { // four at a time: one alone is all overhead
		p := words[: 4*wordSize : 4*wordSize]
		a, b, c, d := le.Uint64(p), le.Uint64(p[8:]), le.Uint64(p[16:]), le.Uint64(p[24:])
		le.PutUint64(p, a&^((a&exponent+lowest)&sign>>1))
		le.PutUint64(p[8:], b&^((b&exponent+lowest)&sign>>1))
		le.PutUint64(p[16:], c&^((c&exponent+lowest)&sign>>1))
		le.PutUint64(p[24:], d&^((d&exponent+lowest)&sign>>1))
		words = words[4*wordSize:]
	}
	for len(words) >= wordSize {
		w := le.Uint64(words)
		le.PutUint64(words, w&^((w&exponent+lowest)&sign>>1))
		words = words[wordSize:]
	}
}
