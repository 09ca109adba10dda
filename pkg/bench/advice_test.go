package bench

import (
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
	"github.com/benchpin/benchpin/pkg/workload"
)

// TestAdvice runs workloads whose AU is missed for a known reason, on stores of a known speed in virtual time, and follows the advice: where it
// names threads or a prefetch, the same run with them meets its AU.
func TestAdvice(t *testing.T) {
	for _, c := range []struct {
		name    string
		w       func(w *workload.Workload)
		latency time.Duration
		rate    float64 // bytes/s of a server
		servers int
		stall   map[int]time.Duration
		plain   float64 // what plain reads come to, in bytes/s
		cause   report.Cause
		met     bool // with the advice
	}{
		{name: "one reader on a store of high latency", latency: 400 * ms, plain: 1e9, cause: report.CauseReaders, met: true},
		{name: "the same, and nobody measured plain reads", latency: 400 * ms, cause: report.CauseReaders, met: true},
		{name: "preprocessing", latency: ms, plain: 1e9, cause: report.CauseReaders, met: true,
			w: func(w *workload.Workload) { w.Reader.PreprocessTime = constant(350 * ms) }},
		{name: "no readers", latency: 80 * ms, plain: 1e9, cause: report.CauseTurns, met: true,
			w: func(w *workload.Workload) { w.Reader.ReadThreads = 0 }},
		{name: "a store that stalls now and then", latency: 10 * ms, plain: 1e9, cause: report.CausePrefetch, met: true,
			stall: map[int]time.Duration{20: time.Second, 40: time.Second, 60: time.Second}},
		{name: "a store that gives 4 files a second", rate: 4 * 10128, servers: 1, plain: 4 * 10128, cause: report.CauseStore},
		{name: "the same with many accelerators and readers", rate: 100 * 10128, servers: 1, plain: 100 * 10128, cause: report.CauseStore,
			w: func(w *workload.Workload) {
				w.Benchpin.Accelerators, w.Reader.ReadThreads, w.Reader.PrefetchSize = 16, 4, 8
			}},
		{name: "too few readers on a store that would not be enough with more", latency: 400 * ms, plain: 7 * 10128, cause: report.CauseStore},
		{name: "accelerators that stall in turn", latency: 10 * ms, plain: 1e9, cause: report.CauseOthers,
			w:     func(w *workload.Workload) { w.Benchpin.Accelerators = 4 },
			stall: map[int]time.Duration{15: 900 * ms, 130: 900 * ms, 250: 900 * ms, 370: 900 * ms}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := testWorkload(func(w *workload.Workload) {
				w.Train.Epochs, w.Train.ComputationTime = 2, constant(100*ms)
				if c.w != nil {
					c.w(w)
				}
			})
			w.Dataset.NumFilesTrain = 80 * w.Benchpin.Accelerators
			if c.cause == report.CauseOthers {
				w.Dataset.NumFilesTrain = 400
			}
			adviceOf := func() (advice *report.Advice, met bool) {
				simulate(t, w, func(t *testing.T) *sim {
					s := newSim(t, w.Dataset.NumFilesTrain, 1, c.latency, c.rate, c.servers)
					s.stall = c.stall
					return s
				}, nil, func(t *testing.T, p *Plan, res *Result, err error) {
					if err != nil {
						t.Fatal(err)
					}
					r := &record.Record{Status: record.StatusComplete, Plan: p.Plan, Metrics: res.Metrics}
					var plain *report.PlainReads
					if c.plain > 0 {
						plain = &report.PlainReads{Rates: []report.PlainRate{{Readers: 1, BytesPerSecond: c.plain / 2}, {Readers: 4, BytesPerSecond: c.plain}}}
					}
					advice, met = report.Advise(r, plain), *res.Metrics.Met
				})
				return advice, met
			}
			a, met := adviceOf()
			if met || a == nil {
				t.Fatalf("expected a run that misses its AU, and advice; found %+v", a)
			}
			if a.Cause != c.cause || len(a.Went) == 0 || len(a.Found) == 0 || len(a.Try) == 0 {
				t.Errorf("expected the cause %s, found %+v", c.cause, a)
			}
			if !c.met {
				return
			}
			if a.Threads > 0 {
				w.Reader.ReadThreads = a.Threads
			}
			if a.Prefetch > 0 {
				w.Reader.PrefetchSize = a.Prefetch
			}
			if again, met := adviceOf(); !met || again != nil {
				t.Errorf("with %d read threads and a prefetch of %d, as advised, AU is missed still: %+v", w.Reader.ReadThreads, w.Reader.PrefetchSize, again)
			}
		})
	}
}
