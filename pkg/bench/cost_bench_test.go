package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/workload"
)

// costOf runs a plan and returns what the epochs took of the processor, without what comes before and after them.
func costOf(b *testing.B, w *workload.Workload, data *steady) time.Duration {
	b.Helper()
	p, err := NewPlan(w, data)
	if err != nil {
		b.Fatal(err)
	}
	var cost, start time.Duration
	looks := 0
	// The engine looks at the kernel's counter when an epoch begins and when it ends.
	device := func() (int64, error) {
		if looks++; looks%2 == 1 {
			start = cpuTime()
		} else {
			cost += cpuTime() - start
		}
		return 0, nil
	}
	if _, err := Run(b.Context(), Options{Plan: p, Dataset: data, Data: data, Steps: &memFile{}, DeviceBytes: device}); err != nil {
		b.Fatal(err)
	}
	if looks != 2*p.Epochs {
		b.Fatalf("%d looks at the counter in %d epochs", looks, p.Epochs)
	}
	return cost
}

// BenchmarkCost measures what the engine itself costs with 1 to 4,096 accelerators, from a store that opens and reads in no time: processor
// time for each step of an accelerator that reads one sample, and for each further sample of a batch. step-flat and sample-flat are these as parts of
// what they are with one accelerator in the same run: at most 1 where they do not grow.
func BenchmarkCost(b *testing.B) {
	const inAll = 1 << 17 // steps of all accelerators, or samples
	const batch = 64
	var step1, sample1 float64
	for _, accelerators := range []int{1, 8, 64, 512, 4096} {
		b.Run(fmt.Sprint(accelerators, "accelerators"), func(b *testing.B) {
			cost := func(batch, steps int) float64 {
				w := testWorkload(func(w *workload.Workload) {
					w.Dataset.NumFilesTrain = accelerators * batch * steps
					w.Reader.BatchSize, w.Reader.ReadThreads, w.Benchpin.Accelerators = batch, 2, accelerators
				})
				data := &steady{sim: newSim(b, w.Dataset.NumFilesTrain, 1, 0, 0, 0)}
				data.f = steadyFile{simFile{data.sim, 0}}
				return float64(costOf(b, w, data)) / float64(accelerators*steps)
			}
			var steps, samples []float64
			for b.Loop() {
				one := cost(1, max(128, inAll/accelerators)) // so many that buffers and stacks have their size
				steps = append(steps, one)
				many := cost(batch, max(16, 4*inAll/batch/accelerators))
				samples = append(samples, (many-one)/(batch-1))
			}
			step, sample := median(steps), median(samples)
			if step1 == 0 {
				step1, sample1 = step, sample
			}
			b.ReportMetric(step, "cpu-ns/step")
			b.ReportMetric(sample, "cpu-ns/sample")
			b.ReportMetric(step/step1, "step-flat")
			b.ReportMetric(sample/sample1, "sample-flat")
			b.ReportMetric(0, "ns/op")
		})
	}
}
