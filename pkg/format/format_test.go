package format

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
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

// sequence is a file that notes how it is read.
type sequence struct {
	data  []byte
	asked []int64 // offset, length, ...
}

func (s *sequence) ReadAt(p []byte, off int64) (int, error) {
	s.asked = append(s.asked, off, int64(len(p)))
	return bytes.NewReader(s.data).ReadAt(p, off)
}

// TestContract is what every format must do, for any layout and any buffer.
func TestContract(t *testing.T) {
	if names := Names(); !slices.IsSorted(names) || len(slices.Compact(names)) != len(Names()) {
		t.Errorf("names %v are not sorted, or not unique", names)
	}
	for _, name := range Names() {
		f, err := ByName(name)
		if err != nil || f.Name() != name {
			t.Fatalf("ByName(%q) = %v, %v", name, f, err)
		}
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				l := Layout{
					Dims:    rapid.SliceOfN(rapid.IntRange(1, 9), 0, 4).Draw(rt, "dims"),
					Samples: rapid.IntRange(1, 40).Draw(rt, "samples"),
					DType:   rapid.SampledFrom(dtypes()).Draw(rt, "dtype").DType,
				}
				if rapid.Bool().Draw(rt, "long") {
					l.Dims = append(l.Dims, 3000)
				}
				seed := rapid.Uint64().Draw(rt, "seed")
				data := written(t, f, l, seed, rapid.IntRange(MinBuffer, 1<<20).Draw(rt, "buffer"))
				if again := written(t, f, l, seed, rapid.IntRange(0, 70000).Draw(rt, "other buffer")); !bytes.Equal(data, again) {
					rt.Fatal("the bytes depend on the buffer's length")
				}
				if size, err := f.Size(l); err != nil || size != int64(len(data)) {
					rt.Fatalf("Size = %d, %v; %d bytes were written", size, err, len(data))
				}
				checkReading(rt, f, l, data, rapid.IntRange(MinBuffer, 100000).Draw(rt, "reading buffer"))
				cut := rapid.IntRange(0, len(data)-1).Draw(rt, "cut")
				checkTruncated(rt, f, data[:cut], int64(cut))
				checkTruncated(rt, f, data[:cut], int64(len(data))) // shrunk since its size was taken
				// Damage is found or not, but never a panic and never another number of bytes.
				at := rapid.IntRange(0, len(data)-1).Draw(rt, "damaged byte")
				bent := slices.Clone(data)
				bent[at] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "damaged bit")
				if got, err := f.ReadSample(bytes.NewReader(bent), int64(len(bent)), 0, nil); err == nil && got.Asked != int64(len(bent)) {
					rt.Fatalf("damage at byte %d: %+v", at, got)
				}
			})
		})
	}
}

func checkReading(t *rapid.T, f Format, l Layout, data []byte, buf int) {
	k := l.Samples - 1
	file := &sequence{data: data}
	got, err := f.ReadSample(file, int64(len(data)), k, make([]byte, buf))
	if want := (Sample{Logical: l.SampleBytes(), Asked: int64(len(data))}); err != nil || got != want {
		t.Fatalf("sample %d: %+v, %v; want %+v", k, got, err, want)
	}
	next := int64(0)
	for i := 0; i < len(file.asked); i += 2 {
		off, n := file.asked[i], file.asked[i+1]
		if off != next || off%int64(buf) != 0 || n > int64(buf) {
			t.Fatalf("piece %d: %d bytes at %d, buffer %d, expected at %d", i/2, n, off, buf, next)
		}
		next += n
	}
	if next != int64(len(data)) {
		t.Fatalf("%d of %d bytes were read", next, len(data))
	}
	for _, k := range []int{-1, l.Samples, math.MaxInt, math.MinInt} {
		if _, err := f.ReadSample(file, int64(len(data)), k, nil); err == nil {
			t.Fatalf("sample %d of %d was read", k, l.Samples)
		}
	}
}

func checkTruncated(t *rapid.T, f Format, data []byte, size int64) {
	_, err := f.ReadSample(bytes.NewReader(data), size, 0, nil)
	var damage *DataError
	if !errors.As(err, &damage) {
		t.Fatalf("a file cut to %d bytes (of size %d): error %v, want a *DataError", len(data), size, err)
	}
	if damage.Format != f.Name() || damage.Offset < 0 || damage.Offset > int64(len(data)) {
		t.Fatalf("a file cut to %d bytes: %v names %s, offset %d", len(data), err, damage.Format, damage.Offset)
	}
}

// failing fails with err once more than left bytes went through it.
type failing struct {
	left int
	err  error
}

func (w *failing) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return w.left, w.err
	}
	w.left -= len(p)
	return len(p), nil
}

type failingFile struct{ err error }

func (f failingFile) ReadAt([]byte, int64) (int, error) { return 0, f.err }

func TestErrorsOfTheStorePassThrough(t *testing.T) {
	want := errors.New("disk on fire")
	l := Layout{Dims: []int{100, 100}, Samples: 3, DType: dtype(t, "int16")}
	for _, name := range Names() {
		f, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadSample(failingFile{want}, 1000, 0, nil); !errors.Is(err, want) {
			t.Errorf("%s: reading gave %v", name, err)
		}
		for left := 0; left < 60000; left += 997 {
			if err := f.Write(&failing{left, want}, l, zeros{}, make([]byte, MinBuffer)); !errors.Is(err, want) {
				t.Errorf("%s: writing to a disk of %d bytes gave %v", name, left, err)
			}
		}
		if err := f.Write(&failing{59999, nil}, l, zeros{}, make([]byte, MinBuffer)); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%s: a short write gave %v", name, err)
		}
	}
}

func TestBadLayouts(t *testing.T) {
	u8 := dtype(t, "uint8")
	for _, l := range []Layout{
		{}, {Dims: []int{0}, Samples: 1, DType: u8}, {Dims: []int{2, -1}, Samples: 1, DType: u8}, {Dims: []int{2}, DType: u8},
		{Dims: []int{2}, Samples: 1}, {Dims: []int{1 << 31, 1 << 31}, Samples: 3, DType: u8},
		{Dims: []int{1 << 62, 1 << 62, 1 << 62}, Samples: 1, DType: u8}, {Dims: slices.Repeat([]int{1}, MaxDims+1), Samples: 1, DType: u8},
	} {
		for _, name := range Names() {
			f, err := ByName(name)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := f.Size(l); err == nil {
				t.Errorf("%s of layout %+v has %d bytes, want an error", name, l, n)
			}
			if err := f.Write(io.Discard, l, zeros{}, nil); err == nil {
				t.Errorf("%s of layout %+v was written", name, l)
			}
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
