package pipeline

import (
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/environment"
)

// TestRealRowGroups runs MLPerf's dlrm with the row groups, columns and batches that it has, and fewer and shorter files: in order and
// shuffled among the rows of few groups, what is asked for is what was planned, and memory stays near what was planned.
func TestRealRowGroups(t *testing.T) {
	set := []string{"dataset.num_files_train=2", "dataset.num_samples_per_file=24576"}
	tool, err := environment.Tool("test", "")
	if err != nil {
		t.Fatal(err)
	}
	made := Layout{t.TempDir()}
	if _, err := Generate(t.Context(), GenerateOptions{Workload: ready(t, "dlrm_b200", set...).Workload, Data: made.Data(), Manifest: made.Manifest()}); err != nil {
		t.Fatal(err)
	}
	for name, more := range map[string][]string{
		"in order":    nil,
		"many ranks":  {"benchpin.accelerators=8", "reader.batch_size=1024"},
		"small batch": {"reader.batch_size=100", "train.total_training_steps=300", "train.computation_time=0"},
	} {
		w := ready(t, "dlrm_b200", append(set[:2:2], more...)...)
		if g := w.Workload.Dataset.Parquet.RowGroupSize; g != 6144 {
			t.Fatalf("row groups of %d rows", g)
		}
		peak := peakHeap()
		rec, err := Run(t.Context(), RunOptions{Workload: w, Data: made.Data(), Manifest: made.Manifest(), Out: filepath.Join(t.TempDir(), "run"), Tool: tool})
		used := peak()
		if rec == nil {
			t.Fatalf("%s: %v", name, err)
		}
		asked := 0.0
		for _, e := range rec.Metrics.Epochs {
			asked += *e.BytesAsked.Value
		}
		if asked != float64(rec.Plan.BytesTotal) || asked < 160*float64(rec.Plan.SamplesPerEpoch) {
			t.Errorf("%s: %.0f bytes asked for, %d planned, %d rows of 160 bytes that are read", name, asked, rec.Plan.BytesTotal, rec.Plan.SamplesPerEpoch)
		}
		// A group's columns that are read have a MB, the file 18 of them; verification has a buffer for each file that is hashed.
		if limit := 2*uint64(rec.Plan.MemoryBytes) + 32<<20; used > limit {
			t.Errorf("%s: %d bytes of heap, %d planned", name, used, rec.Plan.MemoryBytes)
		}
	}
}

// peakHeap watches the heap, and returns what gives the most that there was beyond its size at the beginning.
func peakHeap() func() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	start, most := m.HeapInuse, m.HeapInuse
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapInuse)
			}
		}
	})
	return func() uint64 {
		close(stop)
		done.Wait()
		return most - start
	}
}
