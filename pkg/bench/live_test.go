package bench

import (
	"context"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/live"
	"github.com/benchpin/benchpin/pkg/workload"
)

// TestLiveEndsAsTheRecord holds what was shown last to the figures of the result, for runs with excluded steps at both ends, several
// epochs and accelerators, and checkpoints in the middle of epochs.
func TestLiveEndsAsTheRecord(t *testing.T) {
	for name, change := range map[string]func(w *workload.Workload){
		"one":           nil,
		"window":        func(w *workload.Workload) { w.Output.Metric.ExcludeStartSteps, w.Output.Metric.ExcludeEndSteps = 3, 2 },
		"whole epoch":   func(w *workload.Workload) { w.Output.Metric.ExcludeStartSteps = 0 },
		"accelerators":  func(w *workload.Workload) { w.Benchpin.Accelerators = 4 },
		"no threshold":  func(w *workload.Workload) { w.Metric.AU = 0 },
		"no processing": func(w *workload.Workload) { w.Train.ComputationTime = workload.Time{Type: workload.TimeConstant} },
		"checkpoints": func(w *workload.Workload) {
			w.Workflow.Checkpoint, w.Checkpoint.StepsBetweenCheckpoints = true, 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := testWorkload(func(w *workload.Workload) {
				w.Train.Epochs, w.Train.ComputationTime, w.Reader.PreprocessTime = 3, constant(100*ms), constant(30*ms)
				if change != nil {
					change(w)
				}
			})
			w.Dataset.NumFilesTrain = 8 * w.Benchpin.Accelerators
			var l Live
			if _, ok := l.Counts(); ok {
				t.Error("expected nothing to count before a run")
			}
			simulate(t, w, func(t *testing.T) *sim { return newSim(t, w.Dataset.NumFilesTrain, 1, 120*ms, 0, 0) }, func(o *Options) {
				o.Live = &l
				o.Checkpoints = &slowCheckpoints{commit: 70 * ms}
			}, func(t *testing.T, p *Plan, res *Result, err error) {
				if err != nil {
					t.Fatal(err)
				}
				c, ok := l.Counts()
				if !ok || c.Epoch != 3 || c.Epochs != 3 || c.Step != 8 || c.Steps != 8 || c.Samples != int64(24*p.Accelerators) || c.Samples != c.SamplesTotal ||
					c.Bytes != c.BytesTotal || c.Threshold != p.AUThreshold || c.EpochSamples != c.Samples*2/3 || c.EpochBytes != c.Bytes*2/3 {
					t.Errorf("expected all of 3 epochs of 8 steps, found %+v", c)
				}
				if res.Metrics.AU.Value != nil {
					if au := 100 * float64(c.Compute) / float64(c.Window); au != *res.Metrics.AU.Value {
						t.Errorf("AU: shown %v, recorded %v", au, *res.Metrics.AU.Value)
					}
				} else if c.Prescribed != 0 {
					t.Errorf("AU is absent (%s), and %v of compute was prescribed", res.Metrics.AU.Absent, c.Prescribed)
				}
				var all time.Duration
				for _, d := range c.Spent {
					all += d
				}
				if want := c.Elapsed * time.Duration(p.Accelerators); all != want {
					t.Errorf("expected the phases to cover the time of all accelerators, %v, found %v: %v", want, all, c.Spent)
				}
				m := res.Metrics.Other
				for _, one := range []struct {
					phase live.Phase
					total string
				}{{live.Load, "load_total"}, {live.Compute, "compute_total"}} {
					near(t, one.total, c.Spent[one.phase].Seconds(), figure(t, one.total, m[one.total]))
				}
				near(t, "preprocess", c.Worked[live.Preprocess].Seconds(), 0.03*float64(c.Samples))
				var saving float64
				for _, s := range res.Checkpoints.Saves {
					for _, d := range s.Seconds {
						saving += d
					}
				}
				near(t, "checkpoints", c.Spent[live.Checkpoint].Seconds(), saving)
				first := c.Elapsed
				time.Sleep(time.Second)
				if c, _ = l.Counts(); c.Elapsed != first {
					t.Errorf("the clock of a run that ended goes on: %v, was %v", c.Elapsed, first)
				}
			})
		})
	}
}

// TestLiveDropping: while the page cache is emptied before an epoch, whoever looks sees how far that is, and nothing of it in between.
func TestLiveDropping(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) { w.Train.Epochs, w.Train.ComputationTime = 2, constant(100*ms) })
	w.Dataset.NumFilesTrain = 8
	w.Benchpin.ColdCache = workload.ColdEpoch
	var l Live
	seen := 0
	simulate(t, w, func(t *testing.T) *sim { return newSim(t, w.Dataset.NumFilesTrain, 1, 120*ms, 0, 0) }, func(o *Options) {
		o.Live = &l
		o.Evict = func(context.Context) error {
			for done := range int64(8) {
				l.Dropping(done, 8)
				if c, ok := l.Counts(); !ok || c.Dropped != done || c.ToDrop != 8 {
					t.Errorf("after %d of 8 files: %+v, %v", done, c, ok)
				}
				seen++
			}
			l.Dropping(0, 0)
			return nil
		}
	}, func(t *testing.T, _ *Plan, _ *Result, err error) {
		if c, _ := l.Counts(); err != nil || c.Dropped != 0 || c.ToDrop != 0 {
			t.Errorf("in the end: %+v, %v", c, err)
		}
	})
	if seen != 16 {
		t.Errorf("%d files were dropped before 2 epochs, expected 16", seen)
	}
}

// TestLiveShowsWhatHangs looks at a run in which nothing has moved for a while: no step ends, and the wait is seen all the same.
func TestLiveShowsWhatHangs(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) { w.Train.ComputationTime = constant(100 * ms) })
	var l Live
	synctestRun(t, w, func(t *testing.T) *sim {
		s := newSim(t, w.Dataset.NumFilesTrain, 1, 10*ms, 0, 0)
		s.stall = map[int]time.Duration{5: 20 * time.Second}
		return s
	}, func(ctx context.Context, t *testing.T, o Options) {
		o.Live = &l
		var shown []live.Sample
		end := live.Follow(live.Options{Counts: l.Counts, Each: func(s live.Sample) { shown = append(shown, s) }})
		if _, err := Run(ctx, o); err != nil {
			t.Fatal(err)
		}
		end()
		hung := 0
		for _, s := range shown {
			if s.Slowest == "open" && s.Shares["load"] == 1 && s.Step == 5 && *s.Now.Samples == 0 {
				hung++
			}
		}
		if hung < 18 || !shown[len(shown)-1].Last {
			t.Errorf("expected some 19 samples of the 20 s in which nothing moved, found %d of %d", hung, len(shown))
		}
	})
}

// TestLiveOfEvaluation: passes are shown as such, and are no part of the AU.
func TestLiveOfEvaluation(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) {
		w.Train.ComputationTime = constant(100 * ms)
		w.Workflow.Evaluation, w.Dataset.NumFilesEval, w.Reader.BatchSizeEval = true, 16, 1
		w.Evaluation.EvalAfterEpoch, w.Evaluation.EpochsBetweenEvals, w.Evaluation.EvalTime = 1, 1, constant(200*ms)
	})
	var l Live
	bubble(t, func(t *testing.T) {
		train, eval := newSim(t, 16, 1, 10*ms, 0, 0), newSim(t, 16, 1, 10*ms, 0, 0)
		ds := withEval{train, eval}
		p, err := NewPlan(w, ds)
		if err != nil {
			t.Fatal(err)
		}
		var passes, samples int
		end := live.Follow(live.Options{Every: 50 * ms, Counts: l.Counts, Each: func(s live.Sample) {
			samples++
			if s.Evaluation {
				passes++
			}
		}})
		res, err := Run(t.Context(), Options{Plan: p, Dataset: ds, Data: train, Steps: &memFile{}, EvalSteps: &memFile{}, Live: &l,
			DeviceBytes: func() (int64, error) { return 0, nil }})
		end()
		if err != nil {
			t.Fatal(err)
		}
		c, _ := l.Counts()
		if c.Samples != 32 || c.SamplesTotal != 32 || c.Evaluation {
			t.Errorf("expected 16 samples and 16 of evaluation, which has ended, found %+v", c)
		}
		if au := 100 * float64(c.Compute) / float64(c.Window); au != *res.Metrics.AU.Value {
			t.Errorf("evaluation is in the AU that was shown: %v, recorded %v", au, *res.Metrics.AU.Value)
		}
		if share := float64(passes) / float64(samples); share < 0.5 || share > 0.8 {
			t.Errorf("expected evaluation in about two thirds of the samples, found %d of %d", passes, samples)
		}
	})
}

// TestLiveOfCheckpoints alone: bytes written and read back, by the time that they take.
func TestLiveOfCheckpoints(t *testing.T) {
	var l Live
	bubble(t, func(t *testing.T) {
		s := newMemoryStore()
		s.commit, s.open = 50*ms, 30*ms
		w := checkpointWorkload(nil)
		p, err := NewPlan(w, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Run(t.Context(), Options{Plan: p, Checkpoints: s, Saved: s, Live: &l, DeviceBytes: func() (int64, error) { return 0, nil }}); err != nil {
			t.Fatal(err)
		}
		c, _ := l.Counts()
		if c.Step != 4 || c.Steps != 4 || c.Bytes != c.BytesTotal || c.Bytes < 4*int64(p.CheckpointBytes) || c.SamplesTotal != 0 {
			t.Errorf("expected 2 checkpoints written and 2 read, found %+v", c)
		}
		if all := c.Spent[live.Checkpoint] + c.Spent[live.Idle]; all != 4*c.Elapsed || c.Spent[live.Checkpoint] < all/2 {
			t.Errorf("expected all time of 4 accelerators in %v to be checkpoints and meetings, found %v", c.Elapsed, c.Spent)
		}
	})
}
