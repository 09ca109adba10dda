package bench

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/workload"
)

// digested is a data set of equal files on disk with their digest.
type digested struct {
	*realFiles
	sum [32]byte
}

func (d digested) Digest(int, int) [32]byte { return d.sum }

func newDigested(b testing.TB, n, side int) digested {
	b.Helper()
	r := newRealFiles(b, n, side)
	content, err := os.ReadFile(r.full[0])
	if err != nil {
		b.Fatal(err)
	}
	return digested{r, blake3.Sum256(content)}
}

// timed runs a workload and returns the seconds of its epochs, its AU in percent (0 without compute time), and what was hashed.
func (d digested) timed(b testing.TB, w *workload.Workload, verify string) (time.Duration, float64, *Inline) {
	b.Helper()
	with := *w
	with.Benchpin.Verify = verify
	p, err := NewPlan(&with, d)
	if err != nil {
		b.Fatal(err)
	}
	res, err := Run(b.Context(), Options{Plan: p, Dataset: d, Data: d.folder, Steps: &memFile{}})
	if err != nil {
		b.Fatal(err)
	}
	var sum, au float64
	for _, e := range res.Metrics.Epochs {
		sum += *e.Seconds.Value
	}
	if v := res.Metrics.AU.Value; v != nil {
		au = *v
	}
	return time.Duration(sum * 1e9), au, res.Inline
}

// BenchmarkInline runs the same workload without hashing and with it, in turns. With no compute time there is no sleep to hash in: ratio, the rate with
// hashing by the rate without, is the worst that there is, and hash-GB/cpu-s is what bounds it. With compute time AU-points is what AU lost.
// cpu-s/GB and hashed-cpu-s/GB are the processor time of everything that a run does, which a busy machine disturbs less.
func BenchmarkInline(b *testing.B) {
	cores := runtime.GOMAXPROCS(0)
	for _, c := range []struct {
		name               string
		files, side, batch int
		compute            time.Duration
	}{
		{"100KB/no compute", 1000, 316, 10, 0},
		{"140MB/no compute", 4, 11832, 1, 0},
		{"100KB/20ms", 400, 316, 10, 20 * time.Millisecond},
		{"140MB/200ms", 6, 11832, 1, 200 * time.Millisecond},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := newDigested(b, c.files, c.side)
			w := testWorkload(func(w *workload.Workload) {
				w.Dataset.Format, w.Dataset.NumFilesTrain, w.Reader.BatchSize = "npz", c.files, c.batch
				w.Train.Epochs, w.Train.ComputationTime = 2, constant(c.compute)
				w.Reader.ReadThreads, w.Reader.PrefetchSize = cores, 4
			})
			d.timed(b, w, workload.VerifyNone)
			var plain, hashed time.Duration
			var before, after, cpu, used float64
			var plainCPU, hashedCPU time.Duration
			for i := 0; b.Loop(); i++ {
				turn := func(verify string) {
					began := cpuTime()
					t, au, in := d.timed(b, w, verify)
					took := cpuTime() - began
					if in == nil {
						plain, before, plainCPU = plain+t, before+au, plainCPU+took
						return
					}
					hashedCPU += took
					hashed, after = hashed+t, after+au
					cpu, used = cpu+in.HashCPUSeconds, used+in.Cores
				}
				if i%2 == 0 {
					turn(workload.VerifyNone)
					turn(workload.VerifyInline)
				} else {
					turn(workload.VerifyInline)
					turn(workload.VerifyNone)
				}
			}
			bytes := float64(d.size) * float64(c.files*w.Train.Epochs*b.N)
			b.ReportMetric(plain.Seconds()/hashed.Seconds(), "ratio")
			b.ReportMetric((after-before)/float64(b.N), "AU-points")
			b.ReportMetric(used/float64(b.N), "cores")
			b.ReportMetric(plainCPU.Seconds()/bytes*1e9, "cpu-s/GB")
			b.ReportMetric(hashedCPU.Seconds()/bytes*1e9, "hashed-cpu-s/GB")
			b.ReportMetric(bytes/1e9/cpu, "hash-GB/cpu-s")
			b.ReportMetric(bytes/hashed.Seconds()/1e9, "GB/s")
			b.ReportMetric(0, "ns/op") // says nothing: an operation is both runs
		})
	}
}

// TestInlineOffCostsNothing: without hashing a batch has no reads and no holds, and a run of the plan starts no hashers.
func TestInlineOffCostsNothing(t *testing.T) {
	d := newDigested(t, 8, 20)
	w := testWorkload(func(w *workload.Workload) { w.Dataset.Format, w.Dataset.NumFilesTrain = "npz", 8 })
	before := runtime.NumGoroutine()
	p, err := NewPlan(w, d)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRun(t.Context(), Options{Plan: p, Dataset: d, Data: d.folder, Steps: &memFile{}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.rec.Close()
	if r.inline != nil || r.src.Capture != nil || r.ledger(0) != nil {
		t.Error("hashing is prepared for")
	}
	if n := runtime.NumGoroutine() - before; n > 1 { // the recorder's
		t.Error(fmt.Sprint(n, " goroutines were started"))
	}
}
