package format

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/benchpin/benchpin/pkg/stream"
)

// TestReadingAllocatesNothing holds the steady state of a run: whatever the format, once warm.
func TestReadingAllocatesNothing(t *testing.T) {
	l := Layout{Dims: []int{300, 300}, Samples: 2, DType: dtype(t, "uint8")}
	npz, npy := newNPZ(), newNPY()
	for _, c := range []struct {
		name string
		f    Format
		data []byte
	}{
		{"npy", npy, written(t, npy, l, 1, 0)}, {"npz", npz, written(t, npz, l, 1, 0)},
		{"npz deflated", npz, deflated(t, written(t, npy, l, 1, 0))},
	} {
		buf, r := make([]byte, 1<<16), bytes.NewReader(c.data)
		got := testing.AllocsPerRun(200, func() {
			if _, err := c.f.ReadSample(r, int64(len(c.data)), 1, buf); err != nil {
				t.Fatal(err)
			}
		})
		if got >= 1 { // a garbage collection in between may empty the pool once
			t.Errorf("%s: reading a sample allocates %.1f times", c.name, got)
		}
	}
}

// TestWritingNeedsOnlyItsBuffer writes a file of 64 MiB and counts what was allocated.
func TestWritingNeedsOnlyItsBuffer(t *testing.T) {
	l := Layout{Dims: []int{1 << 13, 1 << 13}, Samples: 1, DType: dtype(t, "uint8")}
	for _, name := range Names() {
		f, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1<<20)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := f.Write(&failing{left: 1 << 40}, l, zeros{}, buf); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
			t.Errorf("%s: writing 64 MiB allocates %d bytes", name, n)
		}
	}
}

func BenchmarkReadSample(b *testing.B) {
	for _, side := range []int{316, 4000} {
		l := Layout{Dims: []int{side, side}, Samples: 1, DType: dtype(b, "uint8")}
		for _, name := range Names() {
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
	for _, name := range Names() {
		f, err := ByName(name)
		if err != nil {
			b.Fatal(err)
		}
		for _, d := range []string{"uint8", "float32"} {
			l := Layout{Dims: []int{4000, 4000}, Samples: 1, DType: dtype(b, d)}
			buf := make([]byte, 512<<10)
			b.Run(name+"/"+d, func(b *testing.B) {
				b.SetBytes(l.PayloadBytes())
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
