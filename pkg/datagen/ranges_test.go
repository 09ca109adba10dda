package datagen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

// TestRanges: any ranges of any file, companions too, are those of the whole file, and no more of it is made than up to the last of them.
func TestRanges(t *testing.T) {
	everyContainer(t, func(t *testing.T, r Recipe) {
		rnd := rand.New(rand.NewPCG(1, 2))
		for _, entry := range []int{0, 7, r.Files() - 1, r.Entries() - 1} {
			var whole bytes.Buffer
			w := (&generator{r: r}).newWorker()
			if _, err := w.produce(context.Background(), r.Entry(entry), &whole); err != nil {
				t.Fatal(err)
			}
			size := int64(whole.Len())
			if size == 0 {
				continue
			}
			for range 20 {
				var offsets, lengths []int64
				for at := rnd.Int64N(size); at < size; {
					n := 1 + rnd.Int64N(min(size-at, 3000))
					offsets, lengths = append(offsets, at), append(lengths, n)
					at += n + rnd.Int64N(1+size/4)*rnd.Int64N(2)
				}
				calls := 0
				err := r.Ranges(context.Background(), entry, offsets, lengths, func(i int, b []byte) error {
					if want := whole.Bytes()[offsets[i] : offsets[i]+lengths[i]]; i != calls || !bytes.Equal(b, want) {
						t.Errorf("entry %d, bytes %d to %d: not those of the file", entry, offsets[i], offsets[i]+lengths[i])
					}
					calls++
					return nil
				})
				if err != nil || calls != len(offsets) {
					t.Fatalf("entry %d: %d of %d ranges: %v", entry, calls, len(offsets), err)
				}
			}
			ignore := func(int, []byte) error { return nil }
			if err := r.Ranges(context.Background(), entry, []int64{size - 1}, []int64{2}, ignore); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("entry %d: a byte more than there are: %v", entry, err)
			}
			if err := r.Ranges(context.Background(), entry, []int64{0, 0}, []int64{1, 1}, ignore); err == nil {
				t.Error("ranges that overlap")
			}
			stop := errors.New("stop")
			if err := r.Ranges(context.Background(), entry, []int64{0}, []int64{1}, func(int, []byte) error { return stop }); !errors.Is(err, stop) {
				t.Error(err)
			}
		}
	})
}
