package format

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/benchpin/benchpin/pkg/stream"
)

// TestReadingDeflatedAllocatesNothing is TestReadingAllocatesNothing for files of other origin.
func TestReadingDeflatedAllocatesNothing(t *testing.T) {
	keptScratch(t)
	npz := newNPZ()
	data := deflated(t, written(t, newNPY(), Layout{Dims: []int{300, 300}, Samples: 2, DType: dtype(t, "uint8")}, 1, 0))
	buf, r := make([]byte, 1<<16), bytes.NewReader(data)
	if got := testing.AllocsPerRun(200, func() {
		if _, err := npz.ReadSample(r, int64(len(data)), 1, buf); err != nil {
			t.Fatal(err)
		}
	}); got >= 1 {
		t.Errorf("reading a sample allocates %.1f times", got)
	}
}

func BenchmarkReadSample(b *testing.B) {
	for _, side := range []int{316, 4000} {
		for _, s := range specimens() {
			l := s.fitted(Layout{Dims: []int{side, side}, Samples: 2, DType: s.types(b)[0]})
			size, err := s.format(b).Size(l)
			if err != nil {
				b.Fatal(err)
			}
			read := s.reading(b, l)
			b.Run(fmt.Sprintf("%s/%d", s, size), func(b *testing.B) {
				b.SetBytes(size)
				b.ReportAllocs()
				for b.Loop() {
					read()
				}
			})
		}
	}
}

// BenchmarkReadFile reads whole files of the page cache, beside the same input without a format.
func BenchmarkReadFile(b *testing.B) {
	for _, side := range []int{316, 4000} {
		l := Layout{Dims: []int{side, side}, Samples: 1, DType: dtype(b, "uint8")}
		for _, name := range []string{"npy", "npz"} {
			f, err := ByName(name)
			if err != nil {
				b.Fatal(err)
			}
			path := filepath.Join(b.TempDir(), "x")
			if err := os.WriteFile(path, written(b, f, l, 1, 0), 0o644); err != nil {
				b.Fatal(err)
			}
			file, err := os.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			defer file.Close()
			size, err := f.Size(l)
			if err != nil {
				b.Fatal(err)
			}
			buf := make([]byte, 256<<10)
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				b.SetBytes(size)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := f.ReadSample(file, size, 0, buf); err != nil {
						b.Fatal(err)
					}
				}
			})
			// The reference: the same bytes of the same file, asked for in the same pieces, and nothing else.
			b.Run(fmt.Sprintf("plain-%s/%d", name, size), func(b *testing.B) {
				b.SetBytes(size)
				for b.Loop() {
					for off := int64(0); off < size; off += int64(len(buf)) {
						if _, err := file.ReadAt(buf[:min(int64(len(buf)), size-off)], off); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	s := stream.New("benchpin/test", 1, 1)
	for _, sp := range specimens() {
		f := sp.format(b)
		for _, d := range sp.types(b) {
			if d.Name != "uint8" && d.Name != "float32" {
				continue
			}
			l := sp.fitted(Layout{Dims: []int{4000, 4000}, Samples: 1, DType: d})
			size, err := f.Size(l)
			if err != nil {
				b.Fatal(err)
			}
			buf := make([]byte, 512<<10)
			b.Run(sp.String()+"/"+d.Name, func(b *testing.B) {
				b.SetBytes(size)
				for i := uint64(0); b.Loop(); i++ {
					if err := f.Write(&failing{left: 1 << 40}, l, l.DType.Seeded(s, i), buf); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkFill(b *testing.B) {
	s, buf := stream.New("benchpin/test", 1, 1), make([]byte, 256<<10)
	for _, name := range []string{"uint8", "float16", "float32", "float64"} {
		d := dtype(b, name)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				d.Fill(buf, s, 1, 0)
			}
		})
	}
}
