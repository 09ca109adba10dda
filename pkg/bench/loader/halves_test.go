package loader

import (
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// TestHalves: the first half of Next makes no work for readers, the second one does, and an epoch in halves is the epoch of Next.
func TestHalves(t *testing.T) {
	const steps = 9
	for _, name := range []string{"tensorflow", "tensorflow without prefetch", "dali", "tfrecord", "pytorch", "idle"} {
		synctest.Test(t, func(t *testing.T) {
			m := &memory{size: 100, latency: time.Second}
			src := source(t, m, 4096, 64)
			src.Decoder = records{1}
			all := every(t, t.Context(), src, steps)
			torch, err := NewPyTorch(t.Context(), PyTorchConfig{Source: src, BatchSize: 2, Steps: steps, Workers: 2, Prefetch: 1})
			if err != nil {
				t.Fatal(err)
			}
			idle, err := NewIdle(0, 2, steps)
			if err != nil {
				t.Fatal(err)
			}
			all["pytorch"], all["idle"] = torch, idle
			l := InHalves(all[name])
			opened := func() int {
				time.Sleep(time.Minute) // all that can be read without more is read then
				m.mu.Lock()
				defer m.mu.Unlock()
				return len(m.opened)
			}
			all[name].Start(1, orderFor(steps))
			var got []Sample
			for b := range steps {
				before := opened()
				batch, err := l.Take(t.Context())
				if err != nil {
					t.Fatalf("%s: batch %d: %v", name, b, err)
				}
				got = append(got, batch.Samples...)
				if after := opened(); after != before {
					t.Errorf("%s: batch %d: the first half had %d files opened", name, b, after-before)
				}
				l.Refill()
				if after := opened(); b == 0 && after == before && name != "idle" {
					t.Errorf("%s: the second half had no files opened", name)
				}
			}
			if _, err := l.Take(t.Context()); err != io.EOF {
				t.Errorf("%s: after the last batch: %v", name, err)
			}
			seen := map[int64]bool{}
			for _, s := range got {
				seen[s.File] = true
			}
			if len(got) != 2*steps || len(seen) != 2*steps {
				t.Errorf("%s: expected %d samples of as many files, found %d of %d", name, 2*steps, len(got), len(seen))
			}
			for _, other := range all {
				other.Close()
				other.Wait()
			}
		})
	}
}

// TestUndivided: a loader of one half is taken whole.
func TestUndivided(t *testing.T) {
	idle, err := NewIdle(0, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	idle.Start(1, inOrder{6})
	l := InHalves(idle)
	for range 3 {
		if b, err := l.Take(t.Context()); err != nil || len(b.Samples) != 2 {
			t.Fatalf("found %v, %v", b, err)
		}
		l.Refill()
	}
	if _, err := l.Take(t.Context()); err != io.EOF {
		t.Errorf("expected the end, found %v", err)
	}
}
