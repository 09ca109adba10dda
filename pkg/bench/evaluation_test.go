package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/workload"
)

// withEval is a simulated data set whose files for evaluation are the same as those for training.
type withEval struct {
	*sim
	valid *sim
}

func (w withEval) Evaluation() Dataset { return evalPart{w.valid} }

type evalPart struct{ *sim }

func (e evalPart) Path(i int) string { return fmt.Sprintf("train/img_%d.npy", i) }

// evaluated runs a workload in virtual time on a store that needs latency for each file, with evaluation files alike.
func evaluated(t *testing.T, w *workload.Workload, latency time.Duration, check func(t *testing.T, p *Plan, res *Result, eval *memFile)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		data := newSim(t, w.Dataset.NumFilesTrain, w.Dataset.NumSamplesPerFile, latency, 0, 0)
		ds := withEval{data, newSim(t, w.Dataset.NumFilesEval, w.Dataset.NumSamplesPerFile, latency, 0, 0)}
		p, err := NewPlan(w, ds)
		if err != nil {
			t.Fatal(err)
		}
		eval := &memFile{}
		res, err := Run(t.Context(), Options{Plan: p, Dataset: ds, Data: data, Steps: &memFile{}, EvalSteps: eval,
			DeviceBytes: func() (int64, error) { return 7, nil }})
		if err != nil || !res.Complete {
			t.Fatalf("not complete: %v", err)
		}
		check(t, p, res, eval)
	})
}

// TestEvaluationPasses: passes follow the epochs asked for, have figures of their own, and change nothing in those of training.
//
// Of 5 epochs, passes follow epochs 2 and 4. A pass has floor(13 / (2 x 2)) = 3 steps of 2 samples for each of 2 accelerators. One worker reads
// a batch in 2 x 30 ms, an evaluation step computes 50 ms: a step takes 60 ms, and the pass ends with the last one's compute.
func TestEvaluationPasses(t *testing.T) {
	var training [2][]float64
	var roots []string
	for i, evaluate := range []bool{true, false} {
		w := testWorkload(func(w *workload.Workload) {
			w.Workflow.Evaluation, w.Dataset.NumFilesEval, w.Reader.BatchSizeEval = evaluate, 13, 2
			w.Benchpin.Accelerators, w.Train.Epochs, w.Train.ComputationTime = 2, 5, constant(100*ms)
			w.Evaluation.EvalTime, w.Evaluation.EvalAfterEpoch, w.Evaluation.EpochsBetweenEvals = constant(50*ms), 2, 2
			w.Reader.FileShuffle = "seed"
		})
		evaluated(t, w, 30*ms, func(t *testing.T, p *Plan, res *Result, eval *memFile) {
			for _, e := range res.Metrics.Epochs {
				training[i] = append(training[i], figure(t, "AU", e.AU), figure(t, "samples/s", e.SamplesPerSecond), figure(t, "seconds", e.Seconds))
			}
			roots = append(roots, res.Transcript.Root)
			v := res.Metrics.Evaluation
			if !evaluate {
				if v != nil || p.Evaluation != nil || res.Transcript.Evaluation != nil || len(eval.b) != 0 {
					t.Errorf("found an evaluation where none was asked for: %+v", v)
				}
				return
			}
			e := p.Evaluation
			if e.Passes != 2 || e.Steps != 3 || e.SamplesPerPass != 12 || e.SamplesDropped != 1 || e.Files != 13 || e.AfterEpoch != 2 || e.EpochsBetween != 2 ||
				e.BytesTotal != 2*12*10128 || e.ComputeSeconds != 0.05 {
				t.Errorf("plan: found %+v", e)
			}
			if len(v.Passes) != 2 || v.Passes[0].Epoch != 2 || v.Passes[1].Epoch != 4 {
				t.Fatalf("found %+v", v.Passes)
			}
			for _, m := range v.Passes {
				near(t, "AU", figure(t, "AU", m.AU), 100*50./60)
				near(t, "samples/s", figure(t, "samples/s", m.SamplesPerSecond), 4/0.06)
				near(t, "seconds", figure(t, "seconds", m.Seconds), 3*0.06+0.05)
				near(t, "bytes asked", figure(t, "bytes", m.BytesAsked), 12*10128)
				near(t, "bytes from devices", figure(t, "bytes", m.BytesDevice), 0)
			}
			// DLIO's: AU of the block's wall time less the excluded first step's load and compute; samples over the whole wall time.
			near(t, "DLIO's AU", res.Metrics.DLIO["eval_au_mean_percentage"].(float64), 100*2*50./(230-110))
			near(t, "DLIO's samples/s", res.Metrics.DLIO["eval_throughput_mean_samples_per_second"].(float64), 2*3/0.23*2)
			if meets := res.Metrics.DLIO["eval_au_meet_expectation"]; meets != "fail" {
				t.Errorf("found %v", meets)
			}
			near(t, "longest load", figure(t, "load", res.Metrics.Other["eval_load_max"]), 0.06)
			if x := res.Transcript.Evaluation; x.Entries != 24 || x.Root != x.Expected || len(x.Ranks) != 2 || x.Root == res.Transcript.Root {
				t.Errorf("transcript: found %+v", x)
			}
			near(t, "expected seconds", p.ExpectedSeconds, 5*8*0.1+2*3*0.05)
			r, err := stats.Open(eval, int64(len(eval.b)))
			if err != nil || r.Rows() != 12 {
				t.Fatalf("%d rows: %v", r.Rows(), err)
			}
		})
	}
	if !slices.Equal(training[0], training[1]) || roots[0] != roots[1] {
		t.Errorf("evaluation changed the figures of training or its transcript: %v and %v, %v", training[0], training[1], roots)
	}
}

// TestEvaluationHasNoBarrier: accelerators that draw longer times are not waited for in each step, but at the end. The window of each runs from
// its second step to its last, so AU is 100 % although times differ.
func TestEvaluationHasNoBarrier(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) {
		w.Workflow.Evaluation, w.Dataset.NumFilesEval, w.Reader.BatchSizeEval = true, 60, 1
		w.Benchpin.Accelerators, w.Dataset.NumFilesTrain = 3, 3
		w.Evaluation.EvalTime, w.Evaluation.EvalAfterEpoch, w.Evaluation.EpochsBetweenEvals =
			workload.Time{Type: workload.TimeUniform, Min: 0.05, Max: 0.25}, 1, 1
	})
	evaluated(t, w, ms, func(t *testing.T, p *Plan, res *Result, _ *memFile) {
		near(t, "AU", figure(t, "AU", res.Metrics.Evaluation.AU), 100)
		var longest time.Duration
		for r := range 3 {
			var sum time.Duration
			for s := range int64(20) {
				sum += p.eval.compute.at(1, r, s)
			}
			longest = max(longest, sum)
		}
		near(t, "seconds", figure(t, "seconds", res.Metrics.Evaluation.Passes[0].Seconds), 0.001+longest.Seconds())
		near(t, "barrier", figure(t, "barrier", res.Metrics.Other["eval_barrier_total"]), 0)
	})
}

func TestImpossibleEvaluations(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *workload.Workload)
		parts  []string
	}{
		"no files":     {func(w *workload.Workload) { w.Dataset.NumFilesEval = 0 }, []string{"num_files_eval is 0", "workflow.evaluation=false"}},
		"too few":      {func(w *workload.Workload) { w.Dataset.NumFilesEval = 9 }, []string{"num_files_eval is 9", "has 8 files for evaluation"}},
		"0 steps":      {func(w *workload.Workload) { w.Reader.BatchSizeEval = 9 }, []string{"0 steps of evaluation: 8 files x 1 sample < batch 9", "batch_size_eval"}},
		"no batch":     {func(w *workload.Workload) { w.Reader.BatchSizeEval = 0 }, []string{"batch_size_eval 0"}},
		"never":        {func(w *workload.Workload) { w.Evaluation.EpochsBetweenEvals = 0 }, []string{"epochs_between_evals 0"}},
		"before epoch": {func(w *workload.Workload) { w.Evaluation.EvalAfterEpoch = 0 }, []string{"eval_after_epoch is 0"}},
	} {
		w := testWorkload(func(w *workload.Workload) {
			w.Workflow.Evaluation, w.Dataset.NumFilesEval, w.Reader.BatchSizeEval = true, 8, 1
			w.Evaluation.EvalAfterEpoch, w.Evaluation.EpochsBetweenEvals = 1, 1
			c.change(w)
		})
		ds := withEval{newSim(t, 16, 1, 0, 0, 0), newSim(t, 8, 1, 0, 0, 0)}
		_, err := NewPlan(w, ds)
		if !errors.Is(err, ErrImpossible) {
			t.Errorf("%s: found %v", name, err)
			continue
		}
		contains(t, err, c.parts...)
	}
	w := testWorkload(func(w *workload.Workload) {
		w.Workflow.Evaluation, w.Evaluation.EvalAfterEpoch, w.Evaluation.EpochsBetweenEvals, w.Reader.BatchSizeEval = true, 2, 1, 1
	})
	p, err := NewPlan(w, equalFiles(16, 1000))
	if err != nil || p.Evaluation != nil || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "would follow epoch 2 of 1") {
		t.Errorf("a first evaluation after the last epoch: %v, %+v", err, p)
	}
}

// TestEvaluationWithoutItsParts: a run without a place for the step times is refused, and one that reads something else is no result.
func TestEvaluationWithoutItsParts(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) {
		w.Workflow.Evaluation, w.Dataset.NumFilesEval, w.Reader.BatchSizeEval = true, 8, 1
		w.Evaluation.EvalAfterEpoch, w.Evaluation.EpochsBetweenEvals = 1, 1
	})
	data := newSim(t, 16, 1, 0, 0, 0)
	ds := withEval{data, newSim(t, 8, 1, 0, 0, 0)}
	p, err := NewPlan(w, ds)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Plan: p, Dataset: ds, Data: data, Steps: &memFile{}}
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "place for their step times") {
		t.Errorf("found %v", err)
	}
	ds.valid.sample++
	o.Dataset, o.Steps, o.EvalSteps = ds, &memFile{}, &memFile{}
	res, err := Run(t.Context(), o)
	if !errors.Is(err, ErrTranscript) || res.Complete || !strings.Contains(err.Error(), "evaluation: expected root") {
		t.Errorf("found %v", err)
	}
}

// TestTensorFlowKnownAnswers: the loaders in a whole run, as TestKnownAnswers does it for PyTorch. T = 100 ms.
func TestTensorFlowKnownAnswers(t *testing.T) {
	const n = 12
	for _, c := range []struct {
		name    string
		w       func(w *workload.Workload)
		read    time.Duration
		au      float64
		seconds float64
	}{
		{"iterator, one thread, b = 200 ms: a step takes b",
			func(w *workload.Workload) {}, 200 * ms, 50, n*0.2 + 0.1},
		{"iterator, no threads are one", func(w *workload.Workload) { w.Reader.ReadThreads = 0 }, 200 * ms, 50, n*0.2 + 0.1},
		{"iterator, two threads, b = 200 ms: hidden", func(w *workload.Workload) { w.Reader.ReadThreads = 2 }, 200 * ms, 100, 0.2 + n*0.1},
		{"iterator, preprocessing is the thread's time", func(w *workload.Workload) { w.Reader.PreprocessTime = constant(100 * ms) }, 100 * ms, 50, n*0.2 + 0.1},
		{"dali, four threads share a batch of 4: b = 200 ms", func(w *workload.Workload) {
			w.Framework, w.Reader.DataLoader, w.Reader.ReadThreads, w.Reader.BatchSize = "pytorch", "dali", 4, 4
		}, 200 * ms, 50, n*0.2 + 0.1},
		{"native_dali, two threads share a batch of 4: b = 4/2 x 50 ms = T", func(w *workload.Workload) {
			w.Framework, w.Reader.DataLoader, w.Reader.ReadThreads, w.Reader.BatchSize = "pytorch", "native_dali", 2, 4
		}, 50 * ms, 100, 0.1 + n*0.1},
		{"synthetic: nothing is read", func(w *workload.Workload) { w.Reader.DataLoader = "synthetic" }, time.Hour, 100, n * 0.1},
		{"none: nothing is read", func(w *workload.Workload) { w.Reader.DataLoader = "none" }, time.Hour, 100, n * 0.1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := testWorkload(func(w *workload.Workload) {
				w.Framework, w.Reader.DataLoader, w.Train.ComputationTime, w.Train.Epochs = "tensorflow", "tensorflow", constant(100*ms), 2
				c.w(w)
			})
			w.Dataset.NumFilesTrain = n * w.Reader.BatchSize
			simulate(t, w, func(t *testing.T) *sim { return newSim(t, w.Dataset.NumFilesTrain, 1, c.read, 0, 0) }, nil,
				func(t *testing.T, p *Plan, res *Result, err error) {
					if err != nil || !res.Complete {
						t.Fatalf("not complete: %v", err)
					}
					if p.Loader != w.Reader.DataLoader {
						t.Errorf("the plan's loader is %q", p.Loader)
					}
					idle := w.Reader.DataLoader == "synthetic" || w.Reader.DataLoader == "none"
					if idle != (p.BytesTotal == 0) || idle != (p.RequiredBytesPerSecond == nil) {
						t.Errorf("found %d bytes, rate %v", p.BytesTotal, p.RequiredBytesPerSecond)
					}
					for _, e := range res.Metrics.Epochs {
						near(t, "AU", figure(t, "AU", e.AU), c.au)
						near(t, "seconds", figure(t, "seconds", e.Seconds), c.seconds)
						near(t, "bytes asked", figure(t, "bytes asked", e.BytesAsked), float64(p.BytesPerEpoch))
					}
				})
		})
	}
}
