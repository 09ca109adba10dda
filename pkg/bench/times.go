package bench

import (
	"math"
	"time"

	"github.com/benchpin/benchpin/pkg/stream"
	"github.com/benchpin/benchpin/pkg/workload"
)

// Names and version of the streams that times are drawn from. They are part of what determines a run: a change is a new
// version.
const (
	computeDomain    = "benchpin/bench/computation_time"
	preprocessDomain = "benchpin/bench/preprocess_time"
	evaluationDomain = "benchpin/bench/eval_time"
	timesVersion     = 1
)

// times draws the durations of one kind of sleep. Draw i of accelerator r in epoch e depends on train.seed, (e, r, i) and
// nothing else: not on the other accelerators, nor on what was drawn before. Without seed_change_epoch all epochs draw alike.
type times struct {
	form     workload.Time
	family   *stream.Seeded
	constant time.Duration
	drawn    bool
	perEpoch bool
}

func newTimes(domain string, form workload.Time, train workload.Train) *times {
	t := &times{form: form, perEpoch: train.SeedChangeEpoch}
	switch form.Type {
	case "", workload.TimeConstant:
		t.constant = duration(form.Center)
	default:
		t.drawn = true
		t.family = stream.New(domain, timesVersion, uint64(train.Seed))
	}
	return t
}

// at is draw i of accelerator rank in epoch (counted from 1).
func (t *times) at(epoch, rank int, i int64) time.Duration {
	if !t.drawn {
		return t.constant
	}
	index := uint64(rank)
	if t.perEpoch {
		index |= uint64(epoch) << 32
	}
	return duration(t.draw(index, uint64(i)))
}

// draw returns seconds. Products are rounded before they are added, so that no architecture fuses the two.
func (t *times) draw(index, i uint64) float64 {
	f := t.form
	switch f.Type {
	case workload.TimeNormal:
		return f.Center + float64(f.Stdev*t.family.Normal(index, i))
	case workload.TimeUniform:
		return f.Min + float64((f.Max-f.Min)*t.family.Float64(index, i))
	case workload.TimeGamma:
		return float64(f.Scale * t.family.Gamma(index, i, f.Shape))
	case workload.TimeExponential:
		return float64(f.Scale * t.family.Exponential(index, i))
	case workload.TimePoisson:
		return t.family.Poisson(index, i, f.Lam)
	}
	return 0
}

// zero is true when nothing is ever slept.
func (t *times) zero() bool { return !t.drawn && t.constant == 0 }

// longestSleep bounds a drawn time: whatever a distribution gives, arithmetic on the clock must not overflow.
const longestSleep = 1000 * time.Hour

// duration is the absolute value of seconds, rounded to nanoseconds, as DLIO takes the absolute value of what it draws.
func duration(seconds float64) time.Duration {
	ns := math.RoundToEven(math.Abs(seconds) * 1e9)
	if !(ns < float64(longestSleep)) {
		return longestSleep
	}
	return time.Duration(ns)
}
