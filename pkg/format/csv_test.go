package format

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/stream"
)

// TestTableSizes: DLIO's 20 files of 320 x 320 bytes as text (its run gen_csv_100k) have 365,051 to 365,724 bytes. A random byte takes
// 914/256 of them with its comma, and varies by 0.57, so that 102,400 bytes take 365,600, and 182 more or less. (DLIO's bytes end at
// 254, which makes 175 less.)
func TestTableSizes(t *testing.T) {
	f, err := New(Spec{Name: "csv"})
	if err != nil {
		t.Fatal(err)
	}
	l := Layout{Dims: []int{320, 320}, Samples: 1, DType: dtype(t, "uint8")}
	if bound, err := f.Size(l); err != nil || bound != 4*102400 {
		t.Errorf("bound %d, %v; want four bytes an element", bound, err)
	}
	sum := int64(0)
	const files = 20
	for i := range uint64(files) {
		n, err := f.(Measured).Measure(l, l.DType.Seeded(stream.New("benchpin/test", 1, 1), i), nil)
		if err != nil || n < 365600-6*182 || n > 365600+6*182 {
			t.Errorf("file %d: %d bytes, %v", i, n, err)
		}
		sum += n
	}
	if mean := float64(sum) / files; math.Abs(mean-365600) > 6*182/math.Sqrt(files) {
		t.Errorf("%d files have %.0f bytes on average, want 365600", files, mean)
	}
}

// TestTableCompression: what is gained is what the code of eleven characters gains.
func TestTableCompression(t *testing.T) {
	l := Layout{Dims: []int{1000, 1000}, Samples: 1, DType: dtype(t, "uint8")}
	plain, err := New(Spec{Name: "csv"})
	if err != nil {
		t.Fatal(err)
	}
	n := len(written(t, plain, l, 1, 0))
	for compression, extension := range map[string]string{"gzip": "csv.gz", "bz2": "csv.bz2", "zip": "csv.zip", "xz": "csv.xz"} {
		f, err := New(Spec{Name: "csv", Compression: compression})
		if err != nil {
			t.Fatal(err)
		}
		if got := Extension(f); got != extension {
			t.Errorf("%s: extension %s, want %s", compression, got, extension)
		}
		if packed := len(written(t, f, l, 1, 0)); packed > n*42/100 || packed < n*29/100 {
			t.Errorf("%s: %d bytes of %d", compression, packed, n)
		}
	}
}

func TestTableOptions(t *testing.T) {
	for s, want := range map[*Spec]string{
		{Name: "csv", Compression: "lzf"}: "gzip, bz2, zip or xz", {Name: "csv", Compression: "zstd"}: "gzip, bz2, zip or xz", {Name: "csv", Level: 4}: "compression_level",
	} {
		if f, err := New(*s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, %v; want an error that names %s", *s, f, err, want)
		}
	}
}

// Every half-precision number survives as text: half is the inverse of what a table's reader does.
func TestHalf(t *testing.T) {
	for bits := range 1 << 16 {
		x := half(uint16(bits))
		sign, exponent, fraction := bits>>15, bits>>10&31, float64(bits&1023)
		want := math.Ldexp(1+fraction/1024, exponent-15)
		switch {
		case exponent == 0:
			want = math.Ldexp(fraction, -24)
		case exponent == 31 && fraction == 0:
			want = math.Inf(1)
		case exponent == 31:
			want = math.NaN()
		}
		if sign == 1 {
			want = -want
		}
		if float64(x) != want && !(x != x && want != want) || math.Signbit(float64(x)) != (sign == 1) {
			t.Fatalf("half(%#x) = %v, want %v", bits, x, want)
		}
	}
	for u := range 1 << 16 {
		if got, want := half(unit16(uint16(u))), float32(u>>5)/2048; got != want {
			t.Fatalf("element %d is %v, want %v", u, got, want)
		}
	}
}

// extremes is the content whose text is longest.
type extremes []byte

func (e extremes) Fill(p []byte, off int64) {
	for i := range p {
		p[i] = e[(off+int64(i))%int64(len(e))]
	}
}

// No content is longer than the bound.
func TestTableBound(t *testing.T) {
	le := func(v uint64, n int) extremes {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(v >> (8 * i))
		}
		return b
	}
	f32 := uint64(math.Float32bits(-1.17549435e-38))
	for name, worst := range map[string][]extremes{
		"bool": {le(255, 1)}, "int8": {le(1<<7, 1)}, "int16": {le(1<<15, 2)}, "int32": {le(1<<31, 4)}, "int64": {le(1<<63, 8)},
		"uint8": {le(255, 1)}, "uint16": {le(1<<16-1, 2)}, "uint32": {le(1<<32-1, 4)}, "uint64": {le(math.MaxUint64, 8)},
		"float16": {le(0x8001, 2), le(0xfbff, 2)}, "float32": {le(f32, 4), le(f32+1, 4), le(0x80000001, 4)},
		"float64": {le(math.Float64bits(-2.2250738585072014e-308), 8), le(math.Float64bits(-1.2345678901234567e-300), 8)},
	} {
		for _, c := range worst {
			for _, compression := range []string{"", "gzip", "bz2", "zip", "xz"} {
				f, err := New(Spec{Name: "csv", Compression: compression})
				if err != nil {
					t.Fatal(err)
				}
				l := Layout{Dims: []int{100}, Samples: 3, DType: dtype(t, name)}
				bound, err := f.Size(l)
				if err != nil {
					t.Fatal(err)
				}
				if n, err := f.(Measured).Measure(l, c, nil); err != nil || n > bound {
					t.Errorf("%s %s: %d bytes, %v; bound %d", name, compression, n, err, bound)
				}
			}
		}
	}
}

func TestTableNamesThePlace(t *testing.T) {
	f, err := New(Spec{Name: "csv"})
	if err != nil {
		t.Fatal(err)
	}
	for text, at := range map[string]int64{
		"": 0, "1,2\n3\n": 5, "1,2\n3,4,5\n": 9, "1,2\n3,\x00\n": 6, "1,2\n3,4": 7, "\n\n": 2, "1;2\n": 1,
	} {
		_, err := f.ReadSample(strings.NewReader(text), int64(len(text)), 0, nil)
		var damage *DataError
		if !errors.As(err, &damage) || damage.Offset != at {
			t.Errorf("%q: %v, want an error at byte %d", text, err, at)
		}
	}
	// The same in the second piece of a file.
	long := strings.Repeat(strings.Repeat("7,", 99)+"7\n", 50)
	text := long + "1,2\n"
	_, err = f.ReadSample(strings.NewReader(text), int64(len(text)), 0, make([]byte, MinBuffer))
	var damage *DataError
	if !errors.As(err, &damage) || damage.Offset != int64(len(text)-1) {
		t.Errorf("%v, want an error at byte %d", err, len(text)-1)
	}
}

func FuzzReadTable(f *testing.F) {
	var formats []Format
	for i, compression := range []string{"", "gzip", "bz2", "zip", "xz"} {
		t, err := New(Spec{Name: "csv", Compression: compression})
		if err != nil {
			f.Fatal(err)
		}
		formats = append(formats, t)
		for _, name := range []string{"uint8", "int32", "float32"} {
			f.Add(written(f, t, Layout{Dims: []int{30}, Samples: 4, DType: dtype(f, name)}, 1, 0), 3, byte(i))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, k int, which byte) {
		fm := formats[int(which)%len(formats)]
		small, err1 := fm.ReadSample(bytes.NewReader(data), int64(len(data)), k, make([]byte, MinBuffer))
		large, err2 := fm.ReadSample(bytes.NewReader(data), int64(len(data)), k, make([]byte, 1<<16))
		if small != large || (err1 == nil) != (err2 == nil) {
			t.Fatalf("buffer 4 KiB: %+v, %v\nbuffer 64 KiB: %+v, %v", small, err1, large, err2)
		}
		if err1 == nil && small != (Sample{Logical: Unsaid, Asked: int64(len(data))}) {
			t.Fatalf("%+v of a file of %d bytes", small, len(data))
		}
		if fm != formats[0] || err1 != nil {
			return
		}
		// What is accepted has as many rows as lines that are not blank.
		rows := 0
		for line := range strings.Lines(string(data)) {
			if strings.Trim(line, "\r\n") != "" {
				rows++
			}
		}
		if k >= rows {
			t.Fatalf("row %s of %d was read", strconv.Itoa(k), rows)
		}
	})
}

// BenchmarkTable compares making text with the bytes that it is made of.
func BenchmarkTable(b *testing.B) {
	for _, name := range []string{"uint8", "int32", "float32", "float64"} {
		for _, compression := range []string{"", "gzip", "bz2", "zip", "xz"} {
			f, err := New(Spec{Name: "csv", Compression: compression})
			if err != nil {
				b.Fatal(err)
			}
			l := Layout{Dims: []int{1 << 20}, Samples: 1, DType: dtype(b, name)}
			c := l.DType.Seeded(stream.New("benchpin/test", 1, 1), 1)
			b.Run(fmt.Sprintf("%s/%s", name, Extension(f)), func(b *testing.B) {
				b.SetBytes(l.PayloadBytes())
				for b.Loop() {
					if err := f.Write(&failing{left: 1 << 40}, l, c, make([]byte, 1<<19)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
