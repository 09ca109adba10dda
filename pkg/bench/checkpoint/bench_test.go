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
