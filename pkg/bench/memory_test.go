package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// steady is a store whose open allocates nothing, so that what is counted is the engine's own.
type steady struct {
	*sim
	f steadyFile
}

type steadyFile struct{ simFile }

func (f *steadyFile) Info() (store.Info, error) {
	return store.Info{Size: int64(len(f.s.content))}, nil
}

func (s *steady) Open(string) (store.File, error) { return &s.f, nil }
func (s *steady) Path(int) string                 { return "train/img_0.npy" }

// TestSteadyStateAllocatesNothing compares the timed part of a run with another of four times as many steps: what the added steps allocate is what a
// step allocates.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes pools forget things on purpose: allocations say nothing with it")
	}
	const batch, accelerators, short, long = 4, 3, 300, 1200
	for _, workers := range []int{0, 2} {
		mallocs := func(steps int) float64 {
			w := testWorkload(func(w *workload.Workload) {
				w.Dataset.NumFilesTrain = steps * batch * accelerators
				w.Reader.BatchSize, w.Reader.ReadThreads, w.Benchpin.Accelerators = batch, workers, accelerators
				w.Train.ComputationTime = workload.Time{Type: workload.TimeExponential, Scale: 1e-6}
			})
			data := &steady{sim: newSim(t, w.Dataset.NumFilesTrain, 1, 0, 0, 0)}
			data.f = steadyFile{simFile{data.sim, 0}}
			p, err := NewPlan(w, data)
			if err != nil {
				t.Fatal(err)
			}
			r, err := newRun(t.Context(), Options{Plan: p, Dataset: data, Data: data, Steps: &memFile{}})
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := r.all(t.Context()); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			if err := r.rec.Close(); err != nil {
				t.Fatal(err)
			}
			return float64(after.Mallocs - before.Mallocs)
		}
		few, many := mallocs(short), mallocs(long)
		perStep := (many - few) / ((long - short) * accelerators)
		t.Logf("%d workers: %.3f allocations a step and accelerator (%.0f and %.0f in a run)", workers, perStep, few, many)
		// A sample that allocated once would give 4, a step that did 1; writing the rows takes a small part.
		if perStep > 0.2 {
			t.Errorf("%d workers: a step allocates %.2f times", workers, perStep)
		}
	}
}

// residentBytes is this process's memory as the kernel sees it.
func residentBytes(b testing.TB) float64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Fatal(err)
	}
	f := bytes.Fields(raw)
	if len(f) < 2 {
		b.Fatalf("/proc/self/statm: found %q", raw)
	}
	pages, err := strconv.ParseInt(string(f[1]), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return float64(pages) * float64(os.Getpagesize())
}

// BenchmarkMemory runs 256 accelerators with four read threads each in this process, and reports how much larger it grew, beside what
// the plan says.
func BenchmarkMemory(b *testing.B) {
	for _, accelerators := range []int{1, 256, 1024} {
		b.Run(fmt.Sprint(accelerators, "accelerators"), func(b *testing.B) {
			const steps = 6
			r := newRealFiles(b, 256, 1024) // 1 MiB each, every one read many times
			data := &repeated{r, accelerators * steps}
			w := testWorkload(func(w *workload.Workload) {
				w.Dataset.Format, w.Dataset.NumFilesTrain, w.Benchpin.Accelerators = "npz", data.n, accelerators
				w.Reader.ReadThreads, w.Train.ComputationTime, w.Train.Epochs = 4, constant(20*time.Millisecond), 2
			})
			p, err := NewPlan(w, data)
			if err != nil {
				b.Fatal(err)
			}
			runtime.GC()
			before, most := residentBytes(b), 0.0
			for b.Loop() {
				steps, err := os.Create(filepath.Join(b.TempDir(), "steps.parquet"))
				if err != nil {
					b.Fatal(err)
				}
				done, watched := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(watched)
					for {
						most = max(most, residentBytes(b))
						select {
						case <-done:
							return
						case <-time.After(10 * time.Millisecond):
						}
					}
				}()
				_, err = Run(b.Context(), Options{Plan: p, Dataset: data, Data: r.folder, Steps: steps})
				close(done)
				<-watched
				steps.Close()
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((most-before)/1e6, "grown-MB")
			b.ReportMetric((most-before)/1e3/float64(accelerators), "KB/accelerator")
			b.ReportMetric(float64(p.MemoryBytes)/1e6, "planned-MB")
			b.ReportMetric(most/1e6, "process-MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// repeated has the files of another data set again and again.
type repeated struct {
	*realFiles
	n int
}

func (r *repeated) Files() int        { return r.n }
func (r *repeated) Path(i int) string { return r.paths[i%len(r.paths)] }
