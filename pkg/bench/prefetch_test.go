package bench

import (
	"fmt"
	"testing"

	"github.com/benchpin/benchpin/pkg/workload"
)

// TestPrefetchBeyondAnEpoch: reading ahead further than an epoch reaches is reading an epoch ahead, in what runs and in the memory planned.
func TestPrefetchBeyondAnEpoch(t *testing.T) {
	for _, name := range []string{"pytorch", "tensorflow", "dali"} {
		for _, size := range []int{16, 1 << 40} {
			w := testWorkload(func(w *workload.Workload) {
				w.Reader.DataLoader, w.Reader.PrefetchSize, w.Reader.ReadThreads, w.Train.Epochs = name, size, 2, 2
				if name == "tensorflow" {
					w.Framework = name
				}
			})
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				simulate(t, w, func(t *testing.T) *sim { return newSim(t, 16, 1, ms, 0, 0) }, nil, func(t *testing.T, p *Plan, res *Result, err error) {
					if err != nil || !res.Complete {
						t.Errorf("found %v", err)
					}
					if m := int64(p.MemoryBytes); m > 1<<20 {
						t.Errorf("planned %d bytes", m)
					}
				})
			})
		}
	}
}

// TestPlannedQueues: the memory of queues is part of the plan.
func TestPlannedQueues(t *testing.T) {
	memory := func(change func(w *workload.Workload)) int64 {
		p, err := NewPlan(testWorkload(func(w *workload.Workload) { w.Dataset.NumFilesTrain = 1 << 16; change(w) }), equalFiles(1<<16, 1000))
		if err != nil {
			t.Fatal(err)
		}
		return int64(p.MemoryBytes)
	}
	for _, name := range []string{"pytorch", "tensorflow", "dali"} {
		ahead := func(size int) int64 {
			return memory(func(w *workload.Workload) {
				w.Reader.DataLoader, w.Reader.ReadThreads, w.Reader.PrefetchSize = name, 1, size
				if name == "tensorflow" {
					w.Framework = name
				}
			})
		}
		near, far := ahead(1), ahead(1<<40)
		// An account, a slot and a place of 8 bytes at least for each of the 65,536 batches.
		if got := far - near; got < (1<<16-3)*(40+slotBytes+8) || got > 1<<16*(40+slotBytes+64) {
			t.Errorf("%s: an epoch ahead takes %d bytes", name, got)
		}
	}
}
