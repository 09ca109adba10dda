package pipeline

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// spanSlack is how much shorter than its steps a run may be by the host's clock, which may be corrected meanwhile.
const spanSlack = time.Second

// spanAgain compares the duration of the run by the host's clock with what its step times, or its checkpoints, span: a run cannot be over
// before its last step is. It is for archives whose figures hold.
func spanAgain(v *attest.Verification, plan *bench.Plan) *fault.Fault {
	r := v.Record
	started, err1 := time.Parse(time.RFC3339Nano, r.Started)
	finished, err2 := time.Parse(time.RFC3339Nano, r.Finished)
	if err1 != nil || err2 != nil {
		return nil // the record's own check names it
	}
	span, from := checkpointSpan(r), "the last checkpoint"
	for _, name := range []string{StepsName, EvalStepsName} {
		f := v.File(name)
		if f == nil || plan.Epochs == 0 {
			continue
		}
		steps, err := stats.Open(f, f.Size)
		if err != nil {
			return fault.New(fault.RecordFile, "", err.Error()).In(name)
		}
		end, err := steps.End(plan.Accelerators)
		steps.Close()
		if err != nil {
			return fault.New(fault.RecordFile, "", err.Error()).In(name)
		}
		if d := time.Duration(end); d > span {
			span, from = d, "the last step of "+name
		}
	}
	if wall := finished.Sub(started); wall < span-spanSlack {
		return differs("finished", fmt.Sprintf("the run lasted %v by its clock (started %s, finished %s), but %s ends after %v", wall, r.Started, r.Finished,
			from, span))
	}
	// Before its steps a run computes what it must read, and after them it compares, hashes and sums up: none of that takes days.
	if wall, most := finished.Sub(started), longest(span, r); wall > most {
		return differs("finished", fmt.Sprintf("the run lasted %v by its clock (started %s, finished %s), and %s ends after %v: expected at most %v", wall, r.Started,
			r.Finished, from, span, most))
	}
	return nil
}

// longest is the longest time that a run may have taken, around steps of the given span: a day, and as long again as what is known of it.
func longest(span time.Duration, r *record.Record) time.Duration {
	if in := r.Dataset.Verification.Inline; in != nil && in.Confirmed != nil {
		span += time.Duration(min(in.Confirmed.Seconds, workload.MaxSeconds) * float64(time.Second))
	}
	return 24*time.Hour + 2*min(span, time.Duration(math.MaxInt64)/4)
}

// checkpointSpan is the time from the start of the run to the end of its last checkpoint, as far as the record has it.
func checkpointSpan(r *record.Record) time.Duration {
	last := 0.0
	end := func(start float64, seconds []float64) {
		if len(seconds) > 0 {
			last = max(last, start+slices.Max(seconds))
		}
	}
	for _, s := range r.Checkpoints.Saves {
		if s.Start != nil {
			end(*s.Start, s.Seconds)
		}
	}
	for _, l := range r.Checkpoints.Loads {
		end(l.Start, l.Seconds)
	}
	return time.Duration(min(last, workload.MaxSeconds) * float64(time.Second))
}
