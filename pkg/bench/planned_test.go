package bench

import (
	"bytes"
	"runtime/debug"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/workload"
)

// TestPlannedMemoryIsTrue: where storage is so slow that all reads are under way at once, a run needs the memory that its plan says, and never
// more. (Where storage is fast it needs a small part of it: BenchmarkMemory.)
func TestPlannedMemoryIsTrue(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector has memory of its own for each goroutine and each byte")
	}
	for _, c := range []struct{ accelerators, threads, side int }{{1, 64, 500}, {64, 4, 500}, {512, 2, 250}, {2048, 1, 100}} {
		files := c.accelerators * 2 * c.threads // two batches for each reader
		w := testWorkload(func(w *workload.Workload) {
			w.Dataset.NumFilesTrain, w.Benchpin.Accelerators, w.Reader.BatchSize, w.Reader.ReadThreads = files, c.accelerators, 1, c.threads
		})
		data := newSim(t, files, 1, 0, 0, 0)
		data.content, data.sample = npyOf(t, c.side), int64(c.side*c.side)
		p, err := NewPlan(w, data)
		if err != nil {
			t.Fatal(err)
		}
		data.rate = float64(len(data.content)) / time.Second.Seconds() // a second for each file, all at once
		debug.FreeOSMemory()
		before := residentBytes(t)
		r, err := newRun(t.Context(), Options{Plan: p, Dataset: data, Data: data, Steps: &memFile{}})
		if err != nil {
			t.Fatal(err)
		}
		most, done, watched := before, make(chan struct{}), make(chan struct{})
		go func() {
			defer close(watched)
			for {
				most = max(most, residentBytes(t))
				select {
				case <-done:
					return
				case <-time.After(5 * time.Millisecond):
				}
			}
		}()
		err = r.all(t.Context())
		close(done)
		<-watched
		if cerr := r.rec.Close(); err != nil || cerr != nil {
			t.Fatal(err, cerr)
		}
		grown, planned := most-before, float64(p.MemoryBytes)
		t.Logf("%d accelerators with %d threads: grown by %.1f MB, planned %.1f MB", c.accelerators, c.threads, grown/1e6, planned/1e6)
		// Beside what is planned stand the rows of some steps, what the library of steps.parquet has, and what the heap has to spare.
		if slack := 24e6 + float64(c.accelerators)*8*stepBytes; grown > 1.2*planned+slack || grown < planned/2 {
			t.Errorf("%d accelerators: grown by %.0f bytes, planned are %.0f", c.accelerators, grown, planned)
		}
	}
}

// npyOf is a file of one square sample.
func npyOf(t testing.TB, side int) []byte {
	t.Helper()
	u8, err := format.ParseDType("uint8")
	if err != nil {
		t.Fatal(err)
	}
	npy, err := format.ByName("npy")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := npy.Write(&b, format.Layout{Dims: []int{side, side}, Samples: 1, DType: u8}, zeros{}, make([]byte, 1<<16)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
