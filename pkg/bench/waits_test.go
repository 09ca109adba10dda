package bench

import (
	"bytes"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/workload"
)

// rowsOf reads a file of steps.
func rowsOf(t *testing.T, f StepsFile) []stats.Step {
	t.Helper()
	b := f.(*memFile).b
	r, err := stats.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var rows []stats.Step
	if err := r.Each(func(s *stats.Step) error { rows = append(rows, *s); return nil }); err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestWaits: every loader says how long nobody had begun a batch, and how long a batch was ready before it was wanted. A batch of 1
// sample takes read, a step computes for compute, and one worker works.
func TestWaits(t *testing.T) {
	const compute = 100 * ms
	for _, c := range []struct {
		name, loader string
		read         time.Duration
		threads      int
		preprocess   time.Duration
		// Of a step in the steady state: of a wait for the batch, the part before anybody began it; or how long it was ready.
		load, queue, ready time.Duration
	}{
		{name: "a slow store: the worker begins the next batch when the one before is done", loader: "pytorch", read: 250 * ms, threads: 1,
			load: 150 * ms},
		{name: "no workers: a batch is begun when it is wanted", loader: "pytorch", read: 50 * ms, load: 50 * ms},
		{name: "a fast store: two batches ahead", loader: "pytorch", read: 40 * ms, threads: 1, ready: 160 * ms},
		{name: "a slow store behind TensorFlow", loader: "tensorflow", read: 250 * ms, threads: 1, load: 150 * ms},
		{name: "a slow store behind DALI", loader: "dali", read: 250 * ms, threads: 1, load: 150 * ms},
		{name: "DALI: threads without a sample begin nothing", loader: "dali", read: 250 * ms, threads: 3, ready: -1},
		{name: "preprocessing is told apart", loader: "pytorch", read: 50 * ms, preprocess: 200 * ms, threads: 1, load: 150 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := testWorkload(func(w *workload.Workload) {
				w.Reader.DataLoader, w.Reader.ReadThreads, w.Train.ComputationTime = c.loader, c.threads, constant(compute)
				w.Reader.PreprocessTime = constant(c.preprocess)
				if c.loader == "tensorflow" {
					w.Framework = "tensorflow"
				}
			})
			var steps StepsFile
			simulate(t, w, func(t *testing.T) *sim { return newSim(t, w.Dataset.NumFilesTrain, 1, c.read, 0, 0) },
				func(o *Options) { steps = o.Steps },
				func(t *testing.T, _ *Plan, res *Result, err error) {
					if err != nil {
						t.Fatal(err)
					}
					rows := rowsOf(t, steps)
					s := rows[len(rows)/2]
					if got := [3]time.Duration{time.Duration(s.Load), time.Duration(s.Queue), time.Duration(s.Ready)}; c.ready >= 0 &&
						got != [3]time.Duration{c.load, c.queue, c.ready} {
						t.Errorf("load, queue, ready: found %v, expected %v, %v, %v", got, c.load, c.queue, c.ready)
					}
					if s.Preprocess != int64(c.preprocess) {
						t.Errorf("preprocess is %d, expected %d", s.Preprocess, c.preprocess)
					}
					if work := s.Open + s.Read + s.Decode; work != int64(c.read) {
						t.Errorf("the work on the batch is %d, expected %d", work, c.read)
					}
				})
		})
	}
}

// TestReadyBehindAStall: one file takes a second to open. The rank waits for its batch, which was begun long before, and the one behind it,
// made by the other worker meanwhile, has been ready for as long.
func TestReadyBehindAStall(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) {
		w.Dataset.NumFilesTrain, w.Reader.ReadThreads, w.Reader.PrefetchSize, w.Train.ComputationTime = 20, 2, 8, constant(10*ms)
	})
	var steps StepsFile
	simulate(t, w, func(t *testing.T) *sim {
		s := newSim(t, 20, 1, 10*ms, 0, 0)
		s.stall = map[int]time.Duration{6: time.Second}
		return s
	}, func(o *Options) { steps = o.Steps }, func(t *testing.T, _ *Plan, res *Result, err error) {
		if err != nil {
			t.Fatal(err)
		}
		rows := rowsOf(t, steps)
		if s := rows[6]; s.Load < int64(900*ms) || s.Queue != 0 {
			t.Errorf("the batch that stalls: load %d, queue %d", s.Load, s.Queue)
		}
		if s := rows[7]; s.Load != 0 || s.Ready < int64(900*ms) {
			t.Errorf("the one behind it on the other worker: load %d, ready %d", s.Load, s.Ready)
		}
	})
}

// TestQueued: a batch that waits for a read buffer has not been begun. Two accelerators share one buffer, and reading takes 250 ms; whoever
// is second waits 250 ms in which nobody works for it.
func TestQueued(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) {
		w.Benchpin.Accelerators, w.Reader.ReadThreads, w.Train.ComputationTime = 2, 0, constant(100*ms)
	})
	var steps StepsFile
	simulate(t, w, func(t *testing.T) *sim { return newSim(t, w.Dataset.NumFilesTrain, 1, 250*ms, 0, 0) },
		func(o *Options) { steps, o.Plan.Reads = o.Steps, 1 },
		func(t *testing.T, _ *Plan, res *Result, err error) {
			if err != nil {
				t.Fatal(err)
			}
			for i, rows := 0, rowsOf(t, steps); i < len(rows); i += 2 {
				a, b := rows[i], rows[i+1]
				if min(a.Queue, b.Queue) > 1 || max(a.Queue, b.Queue) != int64(250*ms) || max(a.Load, b.Load) != int64(500*ms) {
					t.Fatalf("step %d: queue %d and %d of load %d and %d", a.Step, a.Queue, b.Queue, a.Load, b.Load)
				}
			}
		})
}
