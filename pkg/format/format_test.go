package format

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/stream"
)

func dtype(t testing.TB, name string) DType {
	t.Helper()
	d, err := ParseDType(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// written returns a file of format f.
func written(t testing.TB, f Format, l Layout, seed uint64, buf int) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := f.Write(&out, l, l.DType.Seeded(stream.New("benchpin/test", 1, seed), 3), make([]byte, buf)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestSizes has DLIO's own files (names of its runs) and the sizes that its documentation's workloads give.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name, format, dtype string
		dims                []int
		samples             int
		want                int64
	}{
		{"gen_npy", "npy", "uint8", []int{4096, 4096}, 1, 16777344},
		{"gen_npz_100k", "npz", "uint8", []int{320, 320}, 1, 102898},
		{"gen_npz_dims", "npz", "float32", []int{64, 64, 16}, 1, 262642},
		{"gen_npz_multi", "npz", "uint8", []int{1024, 1024}, 8, 8389162},
		{"unet3d, no spread", "npz", "uint8", []int{12107, 12107}, 1, 12107*12107 + 8 + 490},
		{"resnet50", "npz", "uint8", []int{338, 338}, 1251, 114244*1251 + 8*1251 + 490},
	} {
		f, err := ByName(c.format)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Size(Layout{Dims: c.dims, Samples: c.samples, DType: dtype(t, c.dtype)})
		if err != nil || got != c.want {
			t.Errorf("%s: %d bytes, %v; want %d", c.name, got, err, c.want)
		}
	}
}

func TestUnknownNames(t *testing.T) {
	if _, err := ByName("hdf6"); err == nil || !strings.Contains(err.Error(), strings.Join(Names(), ", ")) {
		t.Errorf("ByName(hdf6): %v", err)
	}
	for _, name := range []string{"", "<", ">f4", "float31", "object", "|", "u9", "UINT8"} {
		if d, err := ParseDType(name); err == nil || !strings.Contains(err.Error(), "uint8, uint16") {
			t.Errorf("ParseDType(%q) = %v, %v", name, d, err)
		}
	}
	for name, want := range map[string]string{"f4": "float32", "<f4": "float32", "half": "float16", "B": "uint8", "|u1": "uint8",
		"int": "int64", "double": "float64", "=i2": "int16", "?": "bool", "complex": "complex128"} {
		if d := dtype(t, name); d.Name != want {
			t.Errorf("ParseDType(%q) = %s, want %s", name, d.Name, want)
		}
	}
}

// Elements have no seams: any slice of any element type equals that slice of the whole.
func TestSliceOfWhole(t *testing.T) {
	s := stream.New("benchpin/test", 1, 4)
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(dtypes()).Draw(t, "dtype").DType
		base := int64(d.Size) * rapid.Int64Range(0, 1<<40).Draw(t, "element")
		whole := make([]byte, 512)
		d.Fill(whole, s, 8, base)
		a := rapid.IntRange(0, len(whole)).Draw(t, "a")
		b := rapid.IntRange(a, len(whole)).Draw(t, "b")
		part := make([]byte, b-a)
		d.Seeded(s, 8).Fill(part, base+int64(a))
		if !bytes.Equal(part, whole[a:b]) {
			t.Fatalf("%s: bytes [%d,%d) alone differ from the whole", d.Name, a, b)
		}
	})
}
