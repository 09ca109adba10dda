package checkpoint

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// element reads one element as a float64, the half types by their definition.
func element(t Type, b []byte) float64 {
	switch t.Name {
	case "fp16":
		v := binary.LittleEndian.Uint16(b)
		e, m := int(v>>10&31), float64(v&1023)
		if e == 31 {
			return math.Inf(1)
		}
		return math.Ldexp(m/1024, e)
	case "bf16":
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
	case "fp32":
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case "fp64":
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return float64(b[0])
}

// TestElementsAreFinite: in a stream of all bit patterns none is infinite or not a number, and every one that already was finite stays
// as it is.
func TestElementsAreFinite(t *testing.T) {
	for _, ty := range types() {
		raw := make([]byte, 1<<17+16)
		for i := range 1 << 16 { // every pattern of 16 bits, at both halves of a word of 32
			binary.LittleEndian.PutUint16(raw[2*i:], uint16(i))
		}
		for i := range 1 << 12 {
			binary.LittleEndian.PutUint64(raw[8*i:], uint64(i)<<52|uint64(i))
		}
		got := make([]byte, len(raw))
		ty.fill(got, 0, func(dst []byte, off int64) { copy(dst, raw[off:]) })
		changed := 0
		for i := 0; i+int(ty.Size) <= len(raw); i += int(ty.Size) {
			was, is := raw[i:i+int(ty.Size)], got[i:i+int(ty.Size)]
			if v := element(ty, is); math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("%s: element %x became %x, which is %v", ty.Name, was, is, v)
			}
			if v := element(ty, was); bytes.Equal(was, is) {
				continue
			} else if !math.IsNaN(v) && !math.IsInf(v, 0) {
				t.Fatalf("%s: finite element %x became %x", ty.Name, was, is)
			}
			changed++
			want := bytes.Clone(was)
			want[len(want)-1] &^= 0x40
			if !bytes.Equal(want, is) {
				t.Fatalf("%s: element %x became %x, expected %x", ty.Name, was, is, want)
			}
		}
		if (changed > 0) != (ty.exponent != 0) {
			t.Errorf("%s: %d elements were changed", ty.Name, changed)
		}
	}
}

// TestFillAnyPart: a part of a tensor is that part of the whole, wherever it begins and ends.
func TestFillAnyPart(t *testing.T) {
	const size = 3*inCache + 77
	p := plan(t, config())
	whole := map[string][]byte{}
	for _, ty := range types() {
		raw := make([]byte, size)
		ty.fill(raw, 0, func(dst []byte, off int64) { p.family.Fill(dst, 5, uint64(off)) })
		whole[ty.Name] = raw
	}
	rapid.Check(t, func(t *rapid.T) {
		ty := rapid.SampledFrom(types()).Draw(t, "type")
		off := rapid.IntRange(0, size).Draw(t, "offset")
		n := rapid.OneOf(rapid.IntRange(0, min(20, size-off)), rapid.IntRange(0, size-off)).Draw(t, "length")
		got := make([]byte, n)
		ty.fill(got, int64(off), func(dst []byte, off int64) { p.family.Fill(dst, 5, uint64(off)) })
		if !bytes.Equal(got, whole[ty.Name][off:off+n]) {
			t.Fatalf("%s: bytes [%d, %d) are others than in the whole", ty.Name, off, off+n)
		}
	})
}

func TestTypesOfOtherNames(t *testing.T) {
	for _, name := range []string{"", "fp8", "FP16", "float32"} {
		if _, err := ParseType(name); err == nil {
			t.Errorf("%q: no error", name)
		}
	}
}
