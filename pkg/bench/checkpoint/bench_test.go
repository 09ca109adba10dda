package checkpoint

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/store"
)

// BenchmarkSave measures saving a state against writing as many bytes to the same store in pieces of the same size, one
// after the other in the same run: the ratio is what producing and hashing the content costs (goal: 0.9 or more where a
// core is free).
func BenchmarkSave(b *testing.B) {
	for _, size := range []int64{10240, 4 << 20, 256 << 20} {
		for _, sync := range []bool{false, true} {
			b.Run(fmt.Sprintf("%dB/sync=%v", size, sync), func(b *testing.B) {
				c := config()
				c.ModelSizeBytes = size
				p := plan(b, c)
				st, err := store.NewFolder(b.TempDir(), store.FolderOptions{Sync: sync})
				if err != nil {
					b.Fatal(err)
				}
				w := NewWriter(p, st)
				zero := make([]byte, pieceSize)
				f := p.Files(0)[0]
				newSource(f.arc, p.content(1, 0, &f)).read(zero)
				var ours, plain, starved time.Duration
				b.SetBytes(p.BytesPerCheckpoint())
				for i := 0; b.Loop(); i++ {
					save, err := w.Save(context.Background(), Point{i%MaxNumber + 1, 1, 1}, 0)
					if err != nil {
						b.Fatal(err)
					}
					ours, starved = ours+save.Duration, starved+save.Files[0].Starved
					start := time.Now()
					if err := write(st, save.Files[0].Path, zero, save.Files[0].Size); err != nil {
						b.Fatal(err)
					}
					plain += time.Since(start)
				}
				b.ReportMetric(plain.Seconds()/ours.Seconds(), "ratio")
				b.ReportMetric(starved.Seconds()/ours.Seconds(), "starved")
			})
		}
	}
}

// write is the reference: the same bytes in number, from memory, through the same store.
func write(st Creator, name string, piece []byte, size int64) error {
	out, err := st.Create(name, size)
	if err != nil {
		return err
	}
	defer out.Abort()
	for left := size; left > 0; {
		n := min(left, int64(len(piece)))
		if _, err := out.Write(piece[:n]); err != nil {
			return err
		}
		left -= n
	}
	return out.Commit()
}

// BenchmarkContent is what producing the content costs, by element type: the finite floats against the plain stream.
func BenchmarkContent(b *testing.B) {
	for _, ty := range types() {
		b.Run(ty.Name, func(b *testing.B) {
			p := plan(b, config())
			f := File{Tensors: []Tensor{{Type: ty, Elements: 1 << 40}}}
			fill, buf := p.content(1, 0, &f), make([]byte, pieceSize)
			b.SetBytes(pieceSize)
			for i := int64(0); b.Loop(); i++ {
				fill(buf, 0, i*pieceSize)
			}
		})
	}
}

// BenchmarkLoad measures reading a checkpoint back and comparing it against reading the same files in pieces of the same size, one
// after the other in the same run. Both come from the page cache: a store can only be slower.
func BenchmarkLoad(b *testing.B) {
	for _, compare := range []bool{false, true} {
		b.Run(fmt.Sprintf("compare=%v", compare), func(b *testing.B) {
			c := config()
			c.ModelSizeBytes = 256 << 20
			p, pt := plan(b, c), Point{1, 1, 1}
			st := saveAll(b, p, pt)
			r, buf := NewReader(p, st, compare), make([]byte, pieceSize)
			var ours, plain, waited time.Duration
			b.SetBytes(p.BytesPerCheckpoint())
			for b.Loop() {
				load, err := r.Load(context.Background(), pt, 0)
				if err != nil {
					b.Fatal(err)
				}
				ours, waited = ours+load.Duration, waited+load.Files[0].Waited
				start := time.Now()
				f, err := st.Open(load.Files[0].Path)
				if err != nil {
					b.Fatal(err)
				}
				for off := int64(0); off < load.Files[0].Size; off += pieceSize {
					if err := readFull(f, buf[:min(pieceSize, load.Files[0].Size-off)], off); err != nil {
						b.Fatal(err)
					}
				}
				if err := f.Close(); err != nil {
					b.Fatal(err)
				}
				plain += time.Since(start)
			}
			b.ReportMetric(plain.Seconds()/ours.Seconds(), "ratio")
			b.ReportMetric(waited.Seconds()/ours.Seconds(), "waited")
		})
	}
}
