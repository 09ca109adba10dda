package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

const ms = time.Millisecond

// TestKnownAnswers compares AU, samples/s and the epoch's duration with closed forms. T is the compute time of a step, b the
// time in which one worker reads one batch, N the steps of an epoch, W the workers. The first step is excluded.
func TestKnownAnswers(t *testing.T) {
	const n = 13 // 3 x 4 + 1
	for _, c := range []struct {
		name       string
		w          func(w *workload.Workload)
		read       time.Duration // of one sample, all of it latency
		rate       float64
		servers    int
		au         float64
		perSecond  float64
		seconds    float64
		accelerate int
	}{
		{name: "compute-bound: b < T, the worker is always ahead: AU = 1, rate = B/T",
			w:    func(w *workload.Workload) { w.Reader.BatchSize = 2; w.Train.ComputationTime = constant(100 * ms) },
			read: 25 * ms, au: 100, perSecond: 2 / 0.1, seconds: 0.05 + n*0.1},
		{name: "compute-bound to the edge: b = T",
			w:    func(w *workload.Workload) { w.Reader.BatchSize = 2; w.Train.ComputationTime = constant(100 * ms) },
			read: 50 * ms, au: 100, perSecond: 2 / 0.1, seconds: 0.1 + n*0.1},
		{name: "io-bound, one worker: a step takes b: AU = T/b",
			w:    func(w *workload.Workload) { w.Reader.BatchSize = 2; w.Train.ComputationTime = constant(100 * ms) },
			read: 125 * ms, au: 100 * 100. / 250, perSecond: 2 / 0.25, seconds: n*0.25 + 0.1},
		{name: "io-bound, three workers: three steps take b: AU = 3T/b",
			w: func(w *workload.Workload) {
				w.Reader.ReadThreads, w.Reader.PrefetchSize, w.Train.ComputationTime = 3, 3, constant(100*ms)
			},
			read: 600 * ms, au: 100 * 300. / 600, perSecond: 3 / 0.6, seconds: 5*0.6 + 0.1},
		{name: "io-bound, three workers, prefetch factor 2: the same, because workers cannot read more than they can",
			w: func(w *workload.Workload) {
				w.Reader.ReadThreads, w.Reader.PrefetchSize, w.Train.ComputationTime = 3, 6, constant(100*ms)
			},
			read: 600 * ms, au: 100 * 300. / 600, perSecond: 3 / 0.6, seconds: 5*0.6 + 0.1},
		{name: "three workers hide b <= 3T",
			w: func(w *workload.Workload) {
				w.Reader.ReadThreads, w.Reader.PrefetchSize, w.Train.ComputationTime = 3, 3, constant(100*ms)
			},
			read: 300 * ms, au: 100, perSecond: 10, seconds: 0.3 + n*0.1},
		{name: "no workers: reading and computing take turns: AU = T/(b+T)",
			w: func(w *workload.Workload) {
				w.Reader.ReadThreads, w.Reader.BatchSize, w.Train.ComputationTime = 0, 2, constant(100*ms)
			},
			read: 50 * ms, au: 50, perSecond: 2 / 0.2, seconds: n * 0.2},
		{name: "preprocessing is the worker's time: b = B (read + preprocess)",
			w: func(w *workload.Workload) {
				w.Reader.BatchSize, w.Train.ComputationTime, w.Reader.PreprocessTime = 2, constant(100*ms), constant(75*ms)
			},
			read: 50 * ms, au: 40, perSecond: 2 / 0.25, seconds: n*0.25 + 0.1},
		{name: "four accelerators share a bandwidth of 8 files/s: rate = 8/s, AU = 4 x T x 8/4 ",
			w: func(w *workload.Workload) {
				w.Benchpin.Accelerators, w.Train.ComputationTime = 4, constant(100*ms)
			},
			rate: 8 * 10128, servers: 1, accelerate: 4, au: 20, perSecond: 8, seconds: n*0.5 + 0.1},
		{name: "no compute time: the rate is the store's, AU is absent",
			w:    func(w *workload.Workload) { w.Reader.BatchSize = 2 },
			read: 50 * ms, au: -1, perSecond: 20, seconds: n * 0.1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := testWorkload(c.w)
			w.Dataset.NumFilesTrain = n * w.Reader.BatchSize * w.Benchpin.Accelerators
			w.Train.Epochs = 2
			simulate(t, w, func(t *testing.T) *sim { return newSim(t, w.Dataset.NumFilesTrain, 1, c.read, c.rate, c.servers) }, nil,
				func(t *testing.T, p *Plan, res *Result, err error) {
					if err != nil || !res.Complete {
						t.Fatalf("not complete: %v %s", err, res.Reason)
					}
					for _, e := range res.Metrics.Epochs {
						if c.au < 0 {
							if e.AU.Value != nil || e.AU.Absent == "" {
								t.Errorf("AU: expected none, with a reason; found %+v", e.AU)
							}
						} else {
							near(t, "AU", figure(t, "AU", e.AU), c.au)
						}
						near(t, "samples/s", figure(t, "samples/s", e.SamplesPerSecond), c.perSecond)
						near(t, "bytes/s", figure(t, "bytes/s", e.BytesPerSecond), c.perSecond*10128)
						near(t, "seconds", figure(t, "seconds", e.Seconds), c.seconds)
						near(t, "bytes asked", figure(t, "bytes asked", e.BytesAsked), float64(p.BytesPerEpoch))
					}
					if len(res.Metrics.Epochs) != 2 {
						t.Errorf("found %d epochs, expected 2", len(res.Metrics.Epochs))
					}
				})
		})
	}
}

// TestPrefetchHidesStalls: one file takes S to open. Its batch is begun when p batches before it are still to be computed, so that
// the loop waits S - pT for it.
func TestPrefetchHidesStalls(t *testing.T) {
	const stall = time.Second
	for _, p := range []int{1, 2, 4, 20} {
		w := testWorkload(func(w *workload.Workload) {
			w.Dataset.NumFilesTrain, w.Reader.PrefetchSize, w.Train.ComputationTime = 30, p, constant(100*ms)
		})
		simulate(t, w, func(t *testing.T) *sim {
			s := newSim(t, 30, 1, 0, 0, 0)
			s.stall = map[int]time.Duration{22: stall}
			return s
		}, nil, func(t *testing.T, _ *Plan, res *Result, err error) {
			if err != nil {
				t.Fatal(err)
			}
			wait := max(0, stall.Seconds()-float64(p)*0.1)
			near(t, fmt.Sprintf("AU, prefetch %d", p), figure(t, "AU", res.Metrics.AU), 100*2.9/(2.9+wait))
		})
	}
}

// TestBarrierSkew: every step takes as long as its slowest accelerator. AU = sum of all compute times / (R x sum of the longest).
func TestBarrierSkew(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) {
		w.Benchpin.Accelerators, w.Dataset.NumFilesTrain = 5, 200
		w.Train.ComputationTime = workload.Time{Type: workload.TimeUniform, Min: 0.05, Max: 0.25}
	})
	simulate(t, w, func(t *testing.T) *sim { return newSim(t, 200, 1, ms, 0, 0) }, nil, func(t *testing.T, p *Plan, res *Result, err error) {
		if err != nil {
			t.Fatal(err)
		}
		var sum, longest, all time.Duration
		for s := range int64(40) {
			var m time.Duration
			for r := range 5 {
				c := p.compute.at(1, r, s)
				if c < 50*ms || c > 250*ms {
					t.Fatalf("drew %v, expected 50 to 250 ms", c)
				}
				m = max(m, c)
				if s > 0 {
					sum += c
				}
			}
			all += m
			if s > 0 {
				longest += m
			}
		}
		near(t, "AU", figure(t, "AU", res.Metrics.AU), 100*sum.Seconds()/(5*longest.Seconds()))
		near(t, "samples/s", figure(t, "samples/s", res.Metrics.SamplesPerSecond), 39*5/longest.Seconds())
		near(t, "seconds", figure(t, "seconds", res.Metrics.Epochs[0].Seconds), 0.001+all.Seconds())
		near(t, "the plan's expected seconds", p.ExpectedSeconds, all.Seconds())
	})
}

// TestCheckpointsBySteps: a checkpoint after every 4th step takes D, is no part of AU, and is a part of the epoch's time.
func TestCheckpointsBySteps(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) {
		w.Workflow.Checkpoint, w.Checkpoint.StepsBetweenCheckpoints = true, 4
		w.Dataset.NumFilesTrain, w.Benchpin.Accelerators, w.Train.Epochs = 26, 2, 2
		w.Train.ComputationTime = constant(100 * ms)
	})
	var c slowCheckpoints
	simulate(t, w, func(t *testing.T) *sim { return newSim(t, 26, 1, 10*ms, 0, 0) }, func(o *Options) {
		c.commit = 700 * ms
		o.Checkpoints, o.CheckpointsDurable = &c, true
	}, func(t *testing.T, p *Plan, res *Result, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Checkpoints != 6 || len(res.Checkpoints.Saves) != 6 {
			t.Fatalf("planned %d checkpoints, wrote %d; expected 6 of both", p.Checkpoints, len(res.Checkpoints.Saves))
		}
		for i, s := range res.Checkpoints.Saves {
			name := fmt.Sprintf("global_epoch%d_step%d", 1+i/3, 4*(1+i%3))
			if s.Name != name || !strings.HasPrefix(c.names[i], name+"/") {
				t.Errorf("checkpoint %d: found %s, written %s, expected %s", i, s.Name, c.names[i], name)
			}
			near(t, "seconds of rank 0", s.Seconds[0], 0.7)
			if len(s.Seconds) != 2 || s.Bytes <= 10240 {
				t.Errorf("found %+v", s)
			}
		}
		expected, err := ExpectedCheckpoints(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range expected {
			if s := res.Checkpoints.Saves[i]; e.Digest != s.Digest || e.Bytes != s.Bytes || e.Name != s.Name {
				t.Errorf("checkpoint %d: wrote %+v, expected %+v", i, s, e)
			}
		}
		if expected[0].Digest == expected[1].Digest {
			t.Error("two checkpoints have the same content")
		}
		for _, e := range res.Metrics.Epochs {
			// Rank 1 writes nothing and waits at the barrier of the step after a checkpoint, in its own step time: AU falls below
			// 100 for it only.
			near(t, "seconds", figure(t, "seconds", e.Seconds), 0.01+13*0.1+3*0.7)
			near(t, "AU", figure(t, "AU", e.AU), 100*2*1.2/(1.2+1.2+3*0.7))
		}
	})
}

// TestCheckpointAfterEpochs: DLIO's unet3d writes one checkpoint, after the last of five epochs, named by the step after the last.
func TestCheckpointAfterEpochs(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) {
		w.Workflow.Checkpoint, w.Checkpoint.CheckpointAfterEpoch, w.Checkpoint.EpochsBetweenCheckpoints = true, 5, 2
		w.Train.Epochs = 5
	})
	var c slowCheckpoints
	simulate(t, w, func(t *testing.T) *sim { return newSim(t, 16, 1, ms, 0, 0) }, func(o *Options) { o.Checkpoints = &c },
		func(t *testing.T, p *Plan, res *Result, err error) {
			if err != nil {
				t.Fatal(err)
			}
			if len(c.names) != 1 || c.names[0] != "global_epoch5_step17/model_states-0.pt" || len(res.Checkpoints.Saves) != 1 {
				t.Errorf("wrote %v", c.names)
			}
		})
}

// TestShuffledRunFollowsItsPlan: with shuffled files, several samples in each and a part left out, the transcript is the expected one
// and the bytes asked are those of the plan.
func TestShuffledRunFollowsItsPlan(t *testing.T) {
	roots := map[string]bool{}
	for _, workers := range []int{0, 1, 3} {
		for _, order := range []string{workload.OrderNumpy, workload.OrderDLIO} {
			w := testWorkload(func(w *workload.Workload) {
				w.Reader.FileShuffle, w.Reader.SampleShuffle, w.Reader.ReadThreads = "seed", "seed", workers
				w.Dataset.NumFilesTrain, w.Dataset.NumSamplesPerFile, w.Reader.BatchSize = 7, 5, 4
				w.Benchpin.Accelerators, w.Benchpin.Order, w.Train.Epochs = 2, order, 3
			})
			simulate(t, w, func(t *testing.T) *sim { return newSim(t, 7, 5, ms, 0, 0) }, nil, func(t *testing.T, p *Plan, res *Result, err error) {
				if err != nil || !res.Complete || res.Transcript.Root != res.Transcript.Expected || res.Transcript.Entries != 3*32 {
					t.Fatalf("%d workers, %s: %v %+v", workers, order, err, res.Transcript)
				}
				var asked float64
				for _, e := range res.Metrics.Epochs {
					asked += figure(t, "bytes asked", e.BytesAsked)
				}
				if asked != float64(p.BytesTotal) {
					t.Errorf("asked for %.0f bytes, the plan says %d", asked, p.BytesTotal)
				}
				roots[res.Transcript.Root] = true
			})
		}
	}
	if len(roots) != 2 {
		t.Errorf("found %d transcripts, expected 2: one for each order, whatever the workers", len(roots))
	}
}

// TestColdCache: eviction happens before the epochs that the workload names, never inside the clock.
func TestColdCache(t *testing.T) {
	for word, want := range map[string]int{workload.ColdNone: 0, workload.ColdStart: 1, workload.ColdEpoch: 3} {
		w := testWorkload(func(w *workload.Workload) {
			w.Benchpin.ColdCache, w.Train.Epochs, w.Train.ComputationTime = word, 3, constant(100*ms)
		})
		evicted := 0
		simulate(t, w, func(t *testing.T) *sim { return newSim(t, 16, 1, ms, 0, 0) }, func(o *Options) {
			data := o.Data.(*sim)
			o.Evict = func(context.Context) error {
				if got := data.opened.Load(); got%16 != 0 {
					t.Errorf("evicted after %d files were opened, in the middle of an epoch", got)
				}
				evicted++
				time.Sleep(time.Minute)
				return nil
			}
		}, func(t *testing.T, _ *Plan, res *Result, err error) {
			if err != nil {
				t.Fatal(err)
			}
			if evicted != want {
				t.Errorf("%s: evicted %d times, expected %d", word, evicted, want)
			}
			for _, e := range res.Metrics.Epochs {
				near(t, "seconds", figure(t, "seconds", e.Seconds), 0.001+16*0.1)
			}
		})
	}
	boom := errors.New("boom")
	w := testWorkload(func(w *workload.Workload) { w.Benchpin.ColdCache = workload.ColdStart })
	simulate(t, w, func(t *testing.T) *sim { return newSim(t, 16, 1, ms, 0, 0) },
		func(o *Options) { o.Evict = func(context.Context) error { return boom } },
		func(t *testing.T, _ *Plan, res *Result, err error) {
			if !errors.Is(err, boom) || res.Complete {
				t.Errorf("found %v", err)
			}
		})
}

// TestProgressAndDevice: progress ends at the plan's totals; device bytes are the counter's growth in each epoch.
func TestProgressAndDevice(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) {
		w.Train.Epochs, w.Train.ComputationTime, w.Benchpin.Accelerators = 2, constant(100*ms), 2
	})
	var last Progress
	calls := 0
	simulate(t, w, func(t *testing.T) *sim { return newSim(t, 16, 1, ms, 0, 0) }, func(o *Options) {
		counter := int64(1000)
		o.DeviceBytes = func() (int64, error) { counter *= 2; return counter, nil }
		o.Progress = func(p Progress) { last = p; calls++ }
	}, func(t *testing.T, p *Plan, res *Result, err error) {
		if err != nil {
			t.Fatal(err)
		}
		near(t, "device bytes of epoch 1", figure(t, "device", res.Metrics.Epochs[0].BytesDevice), 2000)
		near(t, "device bytes of epoch 2", figure(t, "device", res.Metrics.Epochs[1].BytesDevice), 8000)
		if last.SamplesTotal != 32 || last.Samples != 32 || last.Step != 8 || last.Bytes != last.BytesTotal || last.Epoch != 2 || last.BytesTotal != int64(p.BytesTotal) || calls < 5 || calls > 20 {
			t.Errorf("%d calls, the last one %+v", calls, last)
		}
	})
}

// TestSameRunTwice: two runs of one plan differ in times only.
func TestSameRunTwice(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) {
		w.Reader.FileShuffle = "seed"
		w.Train.ComputationTime = workload.Time{Type: workload.TimeNormal, Center: 0.1, Stdev: 0.05}
	})
	var got []record.Transcript
	var au []float64
	for range 2 {
		simulate(t, w, func(t *testing.T) *sim { return newSim(t, 16, 1, ms, 0, 0) }, nil, func(t *testing.T, _ *Plan, res *Result, err error) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, res.Transcript)
			au = append(au, figure(t, "samples/s", res.Metrics.SamplesPerSecond))
		})
	}
	if got[0].Root != got[1].Root || au[0] != au[1] {
		t.Errorf("two runs: %s and %s, %v and %v", got[0].Root, got[1].Root, au[0], au[1])
	}
}
