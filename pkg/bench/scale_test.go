package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/workload"
)

// scaleSteps are the steps of a run of BenchmarkScale.
const scaleSteps = 40

// BenchmarkScale runs many accelerators that compute for 100 ms a step and hardly read: what AU lacks to 100 % is the engine's own cost. The
// goal is less than 1 point with 512 accelerators on 2 cores. plain-loss-points is what as many goroutines lose in the same run that do nothing
// but sleep and meet at the barrier; prescribed-loss-points counts what timers oversleep as a loss too. Each is the median of all passes.
func BenchmarkScale(b *testing.B) {
	const compute = 100 * time.Millisecond
	for _, accelerators := range []int{1, 8, 64, 512, 4096} {
		b.Run(fmt.Sprint(accelerators, "accelerators"), func(b *testing.B) {
			r := newRealFiles(b, 64, 100)
			data := &repeated{r, accelerators * scaleSteps}
			w := testWorkload(func(w *workload.Workload) {
				w.Dataset.Format, w.Dataset.NumFilesTrain, w.Benchpin.Accelerators = "npz", data.n, accelerators
				w.Reader.ReadThreads, w.Train.ComputationTime = 2, constant(compute)
			})
			p, err := NewPlan(w, data)
			if err != nil {
				b.Fatal(err)
			}
			runtime.GC()
			before := residentBytes(b)
			var engine, prescribed, plain []float64
			var grown float64
			var cpu time.Duration
			for b.Loop() {
				plain = append(plain, plainLoss(b, accelerators, compute))
				start := cpuTime()
				res, err := Run(b.Context(), Options{Plan: p, Dataset: data, Data: r.folder, Steps: &memFile{}})
				if err != nil {
					b.Fatal(err)
				}
				cpu += cpuTime() - start
				grown = max(grown, residentBytes(b)-before)
				engine = append(engine, 100-*res.Metrics.AU.Value)
				prescribed = append(prescribed, 100-*res.Metrics.Other["au_prescribed"].Value)
			}
			b.ReportMetric(median(engine), "loss-points")
			b.ReportMetric(median(prescribed), "prescribed-loss-points")
			b.ReportMetric(median(plain), "plain-loss-points")
			b.ReportMetric(float64(cpu.Microseconds())/float64(b.N*scaleSteps*accelerators), "cpu-us/step")
			b.ReportMetric(grown/1e6, "grown-MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// plainLoss is the AU that so many goroutines lose which only sleep and meet, in points.
func plainLoss(b *testing.B, n int, compute time.Duration) float64 {
	group, err := cluster.NewLocal(n)
	if err != nil {
		b.Fatal(err)
	}
	slept, all := make([]time.Duration, n), make([]time.Duration, n)
	err = group.Run(b.Context(), func(ctx context.Context, m *cluster.Member) error {
		if err := m.Barrier(ctx); err != nil {
			return err
		}
		start := time.Now()
		for s := range scaleSteps {
			begun := time.Now()
			time.Sleep(compute)
			if s > 0 { // AU leaves the first step out
				slept[m.Rank()] += time.Since(begun)
			}
			if err := m.Barrier(ctx); err != nil {
				return err
			}
			if s == 0 {
				start = time.Now()
			}
		}
		all[m.Rank()] = time.Since(start)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	var sleep, total time.Duration
	for i := range slept {
		sleep += slept[i]
		total += all[i]
	}
	return 100 - 100*sleep.Seconds()/total.Seconds()
}

func median(of []float64) float64 {
	s := slices.Sorted(slices.Values(of))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}
