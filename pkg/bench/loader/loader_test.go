package loader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/store"
)

const mib = 1 << 20

// memory is a store of equal files that exist only as a size; reading takes latency plus bytes over rate.
type memory struct {
	size    int64
	latency time.Duration
	rate    float64 // bytes/s; 0 = infinite
	fail    map[string]error
	info    func(name string) store.Info

	reading, most atomic.Int64
	mu            sync.Mutex
	opened        []string
}

func (m *memory) Open(name string) (store.File, error) {
	if err := m.fail[name]; err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.opened = append(m.opened, name)
	m.mu.Unlock()
	return &memFile{m: m, name: name}, nil
}

type memFile struct {
	m    *memory
	name string
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	n := f.m.reading.Add(1)
	for {
		most := f.m.most.Load()
		if n <= most || f.m.most.CompareAndSwap(most, n) {
			break
		}
	}
	d := f.m.latency
	if f.m.rate > 0 {
		d += time.Duration(float64(len(p)) / f.m.rate * 1e9)
	}
	if d > 0 {
		time.Sleep(d)
	}
	f.m.reading.Add(-1)
	return len(p), nil
}

func (f *memFile) Info() (store.Info, error) {
	if f.m.info != nil {
		return f.m.info(f.name), nil
	}
	return store.Info{Path: f.name, Size: f.m.size}, nil
}

func (f *memFile) Close() error { return nil }

// whole reads a file whole, in pieces of the buffer's size.
type whole struct{}

func (whole) ReadSample(f io.ReaderAt, size int64, k int, buf []byte) (format.Sample, error) {
	for off := int64(0); off < size; {
		n := min(int64(len(buf)), size-off)
		if _, err := f.ReadAt(buf[:n], off); err != nil {
			return format.Sample{}, err
		}
		off += n
	}
	return format.Sample{Logical: size, Asked: size}, nil
}

// inOrder is the order 0, 1, 2, ... of one-sample files; rank r starts at r x perRank.
type inOrder struct{ perRank int64 }

func (o inOrder) Sample(rank int, pos int64) (int64, int64, int64) {
	g := int64(rank)*o.perRank + pos
	return g, g, 0
}

func source(t testing.TB, m *memory, buf, limit int) *Source {
	t.Helper()
	b, err := NewBuffers(buf, limit)
	if err != nil {
		t.Fatal(err)
	}
	return &Source{
		Store: m, Decoder: whole{}, Buffers: b,
		Path: func(i int64) string { return fmt.Sprintf("f%d", i) },
		Size: func(int64) int64 { return m.size },
	}
}

func TestPrefetchFactor(t *testing.T) {
	for _, c := range []struct{ size, workers, want int }{
		{0, 4, 2}, {2, 4, 1}, {4, 4, 1}, {5, 4, 2}, {8, 3, 3}, {2, 1, 2}, {2, 0, 0}, {-1, 2, 2},
	} {
		if got := PrefetchFactor(c.size, c.workers); got != c.want {
			t.Errorf("PrefetchFactor(%d, %d) = %d, want %d", c.size, c.workers, got, c.want)
		}
	}
}

// TestInOrder: whatever the number of workers, prefetch factor and speed of single reads, batches come in order, each sample
// once, in every epoch.
func TestInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		workers := rapid.IntRange(0, 7).Draw(rt, "workers")
		prefetch := rapid.IntRange(1, 4).Draw(rt, "prefetch")
		batch := rapid.IntRange(1, 5).Draw(rt, "batch")
		steps := rapid.Int64Range(0, 30).Draw(rt, "steps")
		rank := rapid.IntRange(0, 3).Draw(rt, "rank")
		slow := rapid.Uint64().Draw(rt, "slow")
		synctest.Test(t, func(t *testing.T) {
			m := &memory{size: 1000, latency: time.Millisecond}
			src := source(t, m, 300, 64)
			src.Preprocess = func(epoch, rank int, pos int64) time.Duration {
				return time.Duration((slow>>(uint(pos)%60))&7) * time.Millisecond
			}
			l, err := NewPyTorch(t.Context(), PyTorchConfig{Source: src, Rank: rank, BatchSize: batch, Steps: steps,
				Workers: workers, Prefetch: prefetch})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			for epoch := 1; epoch <= 2; epoch++ {
				want := int64(rank) * steps * int64(batch)
				l.Start(epoch, inOrder{perRank: steps * int64(batch)})
				for s := range steps {
					b, err := l.Next(t.Context())
					if err != nil {
						t.Fatalf("step %d: %v", s, err)
					}
					if len(b.Samples) != batch || b.Asked() != int64(batch)*1000 {
						t.Fatalf("step %d: found %d samples, %d bytes", s, len(b.Samples), b.Asked())
					}
					for _, x := range b.Samples {
						if x.Index != want || x.File != want || x.Logical != 1000 {
							t.Fatalf("step %d: found %+v, expected sample %d", s, x, want)
						}
						want++
					}
				}
				if _, err := l.Next(t.Context()); err != io.EOF {
					t.Fatalf("after the last batch: expected EOF, found %v", err)
				}
			}
			if got, want := int64(len(m.opened)), 2*steps*int64(batch); got != want {
				t.Fatalf("opened %d files, expected %d: one for each sample and epoch", got, want)
			}
		})
	})
}

// TestInFlight: Workers x Prefetch batches are read ahead and not one more; taking one lets the next one start.
func TestInFlight(t *testing.T) {
	for _, c := range []struct{ workers, prefetch int }{{1, 1}, {1, 2}, {3, 1}, {4, 2}} {
		synctest.Test(t, func(t *testing.T) {
			m := &memory{size: 10, latency: time.Second}
			l, err := NewPyTorch(t.Context(), PyTorchConfig{Source: source(t, m, 10, 64), BatchSize: 1, Steps: 40,
				Workers: c.workers, Prefetch: c.prefetch})
			if err != nil {
				t.Fatal(err)
			}
			l.Start(1, inOrder{})
			ahead := c.workers * c.prefetch
			time.Sleep(time.Minute)
			synctest.Wait()
			for taken := range 5 {
				if got := len(m.opened); got != ahead+taken {
					t.Errorf("%+v: %d batches were taken, %d were read; expected %d", c, taken, got, ahead+taken)
				}
				if _, err := l.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
			}
			if got := m.most.Load(); got != int64(c.workers) {
				t.Errorf("%+v: %d reads were under way at once, expected one a worker", c, got)
			}
			l.Close()
		})
	}
}

// TestBatchesBelongToWorkers: a batch is read by one worker, one sample after the other, so that a batch of 5 samples takes
// five latencies although three workers stand by.
func TestBatchesBelongToWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{size: 10, latency: time.Second}
		l, err := NewPyTorch(t.Context(), PyTorchConfig{Source: source(t, m, 10, 64), BatchSize: 5, Steps: 6, Workers: 3, Prefetch: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		start := time.Now()
		l.Start(1, inOrder{})
		// The three first batches are ready together after 5 s; each successor starts when its place is taken.
		for i, want := range []time.Duration{5, 5, 5, 10, 10, 10} {
			if _, err := l.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(start); got != want*time.Second {
				t.Errorf("batch %d came after %v, expected %v", i, got, want*time.Second)
			}
		}
	})
}

// TestBuffersBound: more workers than buffers wait for a buffer and hold none.
func TestBuffersBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{size: 10 * mib, latency: time.Millisecond}
		src := source(t, m, mib, 3)
		l, err := NewPyTorch(t.Context(), PyTorchConfig{Source: src, BatchSize: 2, Steps: 64, Workers: 16, Prefetch: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		l.Start(1, inOrder{})
		for {
			if _, err := l.Next(t.Context()); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if src.Buffers.Made() != 3 || m.most.Load() != 3 {
			t.Errorf("made %d buffers, %d reads at once; expected 3 of both", src.Buffers.Made(), m.most.Load())
		}
	})
}

func TestErrorNamesFile(t *testing.T) {
	for _, workers := range []int{0, 2} {
		synctest.Test(t, func(t *testing.T) {
			boom := errors.New("boom")
			m := &memory{size: 10, fail: map[string]error{"f3": boom}}
			l, err := NewPyTorch(t.Context(), PyTorchConfig{Source: source(t, m, 10, 8), BatchSize: 1, Steps: 9, Workers: workers, Prefetch: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			l.Start(1, inOrder{})
			for i := 0; ; i++ {
				_, err := l.Next(t.Context())
				if err == nil {
					continue
				}
				if i != 3 || !errors.Is(err, boom) || !strings.Contains(err.Error(), "f3") {
					t.Errorf("batch %d: expected boom at batch 3 naming f3, found %v", i, err)
				}
				break
			}
		})
	}
}

func TestCancel(t *testing.T) {
	for _, workers := range []int{0, 2} {
		synctest.Test(t, func(t *testing.T) {
			stop := errors.New("stop")
			ctx, cancel := context.WithCancelCause(t.Context())
			m := &memory{size: 100 * mib, latency: 10 * time.Millisecond}
			src := source(t, m, mib, 8)
			l, err := NewPyTorch(ctx, PyTorchConfig{Source: src, BatchSize: 4, Steps: 9, Workers: workers, Prefetch: 2})
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				time.Sleep(1500 * time.Millisecond)
				cancel(stop)
			}()
			start := time.Now()
			l.Start(1, inOrder{})
			for err == nil {
				_, err = l.Next(ctx)
			}
			l.Close()
			l.Wait()
			if !errors.Is(err, stop) {
				t.Errorf("expected the cause of the context, found %v", err)
			}
			if d := time.Since(start); d > 1600*time.Millisecond {
				t.Errorf("returned %v after the start, expected within 100 ms of 1.5 s", d)
			}
		})
	}
}

func TestIdentity(t *testing.T) {
	good := store.Info{Path: "f0", Size: 10, ModTime: 1, ChangeTime: 2, Inode: 3, Device: 4}
	for name, change := range map[string]func(*store.Info){
		"none":   func(*store.Info) {},
		"size":   func(i *store.Info) { i.Size++ },
		"mtime":  func(i *store.Info) { i.ModTime++ },
		"ctime":  func(i *store.Info) { i.ChangeTime++ },
		"inode":  func(i *store.Info) { i.Inode++ },
		"device": func(i *store.Info) { i.Device++ },
	} {
		t.Run(name, func(t *testing.T) {
			found := good
			change(&found)
			m := &memory{size: 10, info: func(string) store.Info { return found }}
			src := source(t, m, 10, 1)
			src.Identity = func(int64, int) (store.Info, bool) { return good, true }
			l, err := NewPyTorch(t.Context(), PyTorchConfig{Source: src, BatchSize: 1, Steps: 1})
			if err != nil {
				t.Fatal(err)
			}
			l.Start(1, inOrder{})
			_, err = l.Next(t.Context())
			var bad *IdentityError
			if got := errors.As(err, &bad); got != (found != good) {
				t.Fatalf("expected an identity error: %v; found %v", found != good, err)
			}
			if bad != nil && (bad.Path != "f0" || bad.Expected != good || bad.Found != found) {
				t.Errorf("found %+v", bad)
			}
			if src.Rechecked() != 1 {
				t.Errorf("rechecked %d, expected 1", src.Rechecked())
			}
		})
	}
}

// TestSizeWithoutIdentity: a file that nobody verified must still have the size that the plan counted.
func TestSizeWithoutIdentity(t *testing.T) {
	m := &memory{size: 10, info: func(string) store.Info { return store.Info{Size: 11} }}
	l, err := NewPyTorch(t.Context(), PyTorchConfig{Source: source(t, m, 10, 1), BatchSize: 1, Steps: 1})
	if err != nil {
		t.Fatal(err)
	}
	l.Start(1, inOrder{})
	if _, err = l.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "expected 10 bytes, found 11") {
		t.Errorf("found %v", err)
	}
}

// steady is a store whose open allocates nothing, so that what is left is the loader's own.
type steady struct{ f memFile }

func (s *steady) Open(string) (store.File, error) { return &s.f, nil }

// TestSteadyStateAllocatesNothing counts over a whole epoch after a first one.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, workers := range []int{0, 1, 3} {
		m := &memory{size: 100}
		src := source(t, m, 64, 16)
		src.Store = &steady{memFile{m: m}}
		src.Path = func(int64) string { return "f" }
		l, err := NewPyTorch(t.Context(), PyTorchConfig{Source: src, BatchSize: 4, Steps: 500, Workers: workers, Prefetch: 2})
		if err != nil {
			t.Fatal(err)
		}
		order := Order(inOrder{})
		epoch := 0
		perEpoch := testing.AllocsPerRun(5, func() {
			epoch++
			l.Start(epoch, order)
			for {
				if _, err := l.Next(t.Context()); err == io.EOF {
					return
				} else if err != nil {
					t.Fatal(err)
				}
			}
		})
		// 2,000 samples an epoch: anything that a sample, a batch or an open allocates shows as 500 and more.
		if perEpoch > 20 {
			t.Errorf("%d workers: %.0f allocations in an epoch of 500 batches, expected none", workers, perEpoch)
		}
		l.Close()
	}
}
