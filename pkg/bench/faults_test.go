package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// TestOneFaultStopsAll: one accelerator cannot read; all stop, the error comes once and names the file.
func TestOneFaultStopsAll(t *testing.T) {
	boom := errors.New("boom")
	w := testWorkload(func(w *workload.Workload) {
		w.Dataset.NumFilesTrain, w.Benchpin.Accelerators, w.Reader.ReadThreads, w.Train.ComputationTime = 400, 40, 2, constant(time.Second)
	})
	simulate(t, w, func(t *testing.T) *sim {
		s := newSim(t, 400, 1, ms, 0, 0)
		s.fail = map[int]error{237: boom}
		return s
	}, nil, func(t *testing.T, _ *Plan, res *Result, err error) {
		if !errors.Is(err, boom) || strings.Count(err.Error(), "boom") != 1 {
			t.Errorf("found %v", err)
		}
		contains(t, err, "accelerator 23", "train/img_237.npy")
		if res == nil || res.Complete || res.Reason == "" {
			t.Errorf("found %+v", res)
		}
	})
}

// TestFilesThatChange: a file that is not the verified one stops the run.
func TestFilesThatChange(t *testing.T) {
	w := testWorkload(nil)
	identity := func(i int) store.Info {
		return store.Info{Path: fmt.Sprintf("train/img_%d.npy", i), Size: 10128, ModTime: 5, ChangeTime: 6, Inode: uint64(i), Device: 8}
	}
	for _, change := range []int{-1, 3} {
		simulate(t, w, func(t *testing.T) *sim {
			s := newSim(t, 16, 1, ms, 0, 0)
			s.info = func(i int) store.Info {
				in := identity(i)
				if i == change {
					in.ChangeTime++
				}
				return in
			}
			return s
		}, func(o *Options) {
			o.Identity = func(f FileID) (store.Info, bool) { return identity(f.Index), true }
		}, func(t *testing.T, _ *Plan, res *Result, err error) {
			if change < 0 {
				if err != nil || res.IdentityRechecked != 16 {
					t.Errorf("rechecked %d of 16 files: %v", res.IdentityRechecked, err)
				}
				return
			}
			contains(t, err, "train/img_3.npy", "expected size 10128", "000000006Z", "000000007Z")
		})
	}
}

// wrongSizes says that samples are larger than they are.
type wrongSizes struct{ *sim }

func (wrongSizes) SampleBytes(int) int64 { return 10001 }

// TestOtherTranscriptIsNoResult: what was read is not what was to be read.
func TestOtherTranscriptIsNoResult(t *testing.T) {
	simulate(t, testWorkload(nil), func(t *testing.T) *sim { return newSim(t, 16, 1, ms, 0, 0) },
		func(o *Options) { o.Dataset = wrongSizes{o.Dataset.(*sim)} },
		func(t *testing.T, _ *Plan, res *Result, err error) {
			if !errors.Is(err, ErrTranscript) || res.Complete || res.Reason == "" {
				t.Errorf("found %v, complete %v", err, res.Complete)
			}
			contains(t, err, res.Transcript.Root, res.Transcript.Expected)
		})
}

// TestInterrupted: a cancelled run returns within a second with what it has, in virtual time and with a store that hangs.
func TestInterrupted(t *testing.T) {
	stop := errors.New("stop now")
	for _, workers := range []int{0, 4} {
		w := testWorkload(func(w *workload.Workload) {
			w.Dataset.NumFilesTrain, w.Benchpin.Accelerators, w.Reader.ReadThreads = 1000, 10, workers
			w.Train.ComputationTime = constant(3 * time.Second)
		})
		var cancelled time.Time
		simulateCancelled(t, w, stop, &cancelled, func(t *testing.T, res *Result, file *memFile, err error) {
			if !errors.Is(err, stop) {
				t.Errorf("expected the cause, found %v", err)
			}
			contains(t, err, "epoch 1 of 1", "of 100")
			if d := res.Finished.Sub(cancelled); d > time.Second {
				t.Errorf("returned after %v", d)
			}
			if res.Complete || res.Reason == "" || res.Transcript.Expected == "" || res.Transcript.Entries == 0 {
				t.Errorf("found %+v", res)
			}
			r, err := stats.Open(file, int64(len(file.b)))
			if err != nil {
				t.Fatal(err)
			}
			// 50 s of steps of 3 s: 16 were done by all.
			if r.Rows() < 160 || r.Rows() > 170 {
				t.Errorf("steps.parquet holds %d rows, expected 16 steps of 10 accelerators", r.Rows())
			}
			if res.Metrics.AU.Value == nil {
				t.Errorf("no AU of the part that was run: %s", res.Metrics.AU.Absent)
			}
		})
	}
}

func simulateCancelled(t *testing.T, w *workload.Workload, cause error, at *time.Time, check func(t *testing.T, res *Result, file *memFile, err error)) {
	t.Helper()
	s := func(t *testing.T) *sim { return newSim(t, w.Dataset.NumFilesTrain, 1, ms, 0, 0) }
	synctestRun(t, w, s, func(ctx context.Context, t *testing.T, o Options) {
		ctx, cancel := context.WithCancelCause(ctx)
		go func() {
			time.Sleep(50 * time.Second)
			*at = time.Now()
			cancel(cause)
		}()
		res, err := Run(ctx, o)
		check(t, res, o.Steps.(*memFile), err)
	})
}

// TestStoreThatHangs: a read that never returns does not hold up an interrupted run. In real time: goroutines are left behind.
func TestStoreThatHangs(t *testing.T) {
	for _, workers := range []int{0, 2} {
		w := testWorkload(func(w *workload.Workload) { w.Reader.ReadThreads = workers })
		data := newSim(t, 16, 1, 0, 0, 0)
		p, err := NewPlan(w, data)
		if err != nil {
			t.Fatal(err)
		}
		hang := make(chan struct{})
		t.Cleanup(func() { close(hang) })
		ctx, cancel := context.WithCancel(t.Context())
		var cancelled atomic.Int64
		o := Options{Plan: p, Dataset: data, Data: hanging{data, hang}, Steps: &memFile{}}
		time.AfterFunc(100*ms, func() { cancelled.Store(time.Now().UnixNano()); cancel() })
		res, err := Run(ctx, o)
		d := time.Duration(time.Now().UnixNano() - cancelled.Load())
		if !errors.Is(err, context.Canceled) || res == nil || res.Complete {
			t.Errorf("found %v", err)
		}
		if d > 950*ms {
			t.Errorf("%d workers: returned %v after the interruption, expected less than a second", workers, d)
		}
	}
}

// hanging opens the third file for ever.
type hanging struct {
	*sim
	hang chan struct{}
}

func (h hanging) Open(name string) (store.File, error) {
	if name == "train/img_3.npy" {
		<-h.hang
	}
	return h.sim.Open(name)
}

// TestInterruptedBeforeItBegan: what comes back is an incomplete result all the same.
func TestInterruptedBeforeItBegan(t *testing.T) {
	stop := errors.New("stop now")
	synctestRun(t, testWorkload(nil), func(t *testing.T) *sim { return newSim(t, 16, 1, ms, 0, 0) }, func(ctx context.Context, t *testing.T, o Options) {
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(stop)
		res, err := Run(ctx, o)
		if !errors.Is(err, stop) || res == nil || res.Complete || res.Reason == "" || res.Transcript.Entries != 0 {
			t.Fatalf("found %v, %+v", err, res)
		}
		if o.Data.(*sim).opened.Load() != 0 {
			t.Error("files were opened")
		}
	})
}

// full is a place for step times on a disk that is full after some bytes.
type full struct {
	memFile
	left int
}

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.left {
		return 0, syscall.ENOSPC
	}
	f.left -= len(p)
	return f.memFile.Write(p)
}

// TestNoRoomForStepTimes: a run whose step times cannot be written ends with that error, and its figures are absent with a reason.
func TestNoRoomForStepTimes(t *testing.T) {
	for _, left := range []int{0, 100} {
		simulate(t, testWorkload(nil), func(t *testing.T) *sim { return newSim(t, 16, 1, ms, 0, 0) }, func(o *Options) { o.Steps = &full{left: left} },
			func(t *testing.T, p *Plan, res *Result, err error) {
				if !errors.Is(err, syscall.ENOSPC) || res == nil || res.Complete || !strings.Contains(res.Reason, syscall.ENOSPC.Error()) {
					t.Fatalf("found %v, %+v", err, res)
				}
				m := &res.Metrics
				if m.AU.Absent == "" || m.SamplesPerSecond.Absent == "" || m.Threshold.Value == nil || *m.Threshold.Value != p.AUThreshold || m.Epochs == nil {
					t.Errorf("figures are neither there nor absent with a reason: %+v", m)
				}
			})
	}
}

// TestMissingParts: a run without what its plan needs is refused before anything happens.
func TestMissingParts(t *testing.T) {
	data := newSim(t, 16, 1, 0, 0, 0)
	plan := func(change func(w *workload.Workload)) *Plan {
		p, err := NewPlan(testWorkload(change), data)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	whole := Options{Plan: plan(nil), Dataset: data, Data: data, Steps: &memFile{}}
	for name, c := range map[string]struct {
		change func(o *Options)
		part   string
	}{
		"plan":  {func(o *Options) { o.Plan = nil }, "expected a plan"},
		"steps": {func(o *Options) { o.Steps = nil }, "place for the step times"},
		"checkpoints": {func(o *Options) { o.Plan = plan(func(w *workload.Workload) { w.Workflow.Checkpoint = true }) },
			"writes 1 checkpoints"},
		"eviction": {func(o *Options) { o.Plan = plan(func(w *workload.Workload) { w.Benchpin.ColdCache = "epoch" }) },
			"benchpin.cold_cache is epoch"},
		"descriptors": {func(o *Options) { o.Plan = plan(nil); o.Plan.Reads = 1 << 40 }, "open files"},
	} {
		o := whole
		c.change(&o)
		res, err := Run(t.Context(), o)
		if res != nil {
			t.Errorf("%s: found a result", name)
		}
		contains(t, err, c.part)
	}
}
