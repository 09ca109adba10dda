package bench

import (
	"runtime"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/live"
	"github.com/benchpin/benchpin/pkg/workload"
)

// BenchmarkLive compares runs that are shown with runs that are not, in turns. They read small files from the page cache and compute for no
// time, so that a step is as short as steps get. ratio is shown/not shown, cpu-ratio the same of processor time; the goal is 1. lane-ns is what the accelerator itself pays for
// a step: three phases entered and one step added, the latter during its sleep.
func BenchmarkLive(b *testing.B) {
	r := newRealFiles(b, 2000, 32)
	w := testWorkload(func(w *workload.Workload) {
		w.Dataset.Format, w.Dataset.NumFilesTrain, w.Benchpin.Accelerators, w.Train.Epochs = "npz", 2000, 2, 10
	})
	var l Live
	r.engine(b, w, nil)
	var shown, plain, shownCPU, plainCPU time.Duration
	for b.Loop() {
		before := cpuTime()
		plain += r.engine(b, w, nil)
		between := cpuTime()
		end := live.Follow(live.Options{Counts: l.Counts, Each: func(live.Sample) {}})
		shown += r.engine(b, w, &l)
		end()
		plainCPU += between - before
		shownCPU += cpuTime() - between
	}
	b.ReportMetric(shown.Seconds()/plain.Seconds(), "ratio")
	b.ReportMetric(shownCPU.Seconds()/plainCPU.Seconds(), "cpu-ratio")
	const steps = 1_000_000
	one, step := new(lane), stats.Step{Compute: 5, Prescribed: 4, Proc: 9, Barrier: 1, Read: 3}
	began := time.Now()
	for i := range int64(steps) {
		one.enter(live.Load, i)
		one.enter(live.Compute, i)
		one.enter(live.Barrier, i)
		one.step(&step, true)
	}
	b.ReportMetric(float64(time.Since(began).Nanoseconds())/steps, "lane-ns/step")
	runtime.KeepAlive(one)
	b.ReportMetric(0, "ns/op")
}

// BenchmarkLiveScale does so with many accelerators, whose AU lacks to 100 % what the engine costs: au-lost is what being shown takes of it, in
// points.
func BenchmarkLiveScale(b *testing.B) {
	const accelerators, steps = 512, 40
	r := newRealFiles(b, 64, 100)
	data := &repeated{r, accelerators * steps}
	w := testWorkload(func(w *workload.Workload) {
		w.Dataset.Format, w.Dataset.NumFilesTrain, w.Benchpin.Accelerators = "npz", data.n, accelerators
		w.Reader.ReadThreads, w.Train.ComputationTime = 2, constant(100*time.Millisecond)
	})
	p, err := NewPlan(w, data)
	if err != nil {
		b.Fatal(err)
	}
	au := func(l *Live) float64 {
		res, err := Run(b.Context(), Options{Plan: p, Dataset: data, Data: r.folder, Steps: &memFile{}, Live: l})
		if err != nil {
			b.Fatal(err)
		}
		return *res.Metrics.AU.Value
	}
	var l Live
	var plain, shown float64
	for b.Loop() {
		plain += au(nil)
		end := live.Follow(live.Options{Counts: l.Counts, Each: func(live.Sample) {}})
		shown += au(&l)
		end()
	}
	b.ReportMetric(plain/float64(b.N), "AU-%")
	b.ReportMetric((plain-shown)/float64(b.N), "au-lost")
	b.ReportMetric(0, "ns/op")
}
