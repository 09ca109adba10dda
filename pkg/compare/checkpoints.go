package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/benchpin/benchpin/pkg/record"
)

// FewestCheckpoints is the number of checkpoints below which nothing is said about noise between them.
const FewestCheckpoints = 3

// ErrFewCheckpoints: too few checkpoints were written, or read back.
var ErrFewCheckpoints = errors.New("too few checkpoints to tell a difference from noise")

// checkpointFigure is a mean over checkpoints: how long one took, by its slowest accelerator, or the rate that this makes.
type checkpointFigure struct {
	name string
	load bool // of reads
	rate bool
}

// checkpointFigures are those that are judged, by their names in records.
func checkpointFigures() []checkpointFigure {
	return []checkpointFigure{
		{"other.save_checkpoint_seconds_mean", false, false}, {"other.save_checkpoint_bytes_per_second_mean", false, true},
		{"other.load_checkpoint_seconds_mean", true, false}, {"other.load_checkpoint_bytes_per_second_mean", true, true},
	}
}

// values are the figure of each checkpoint of a record, in order; false where one of them took no time.
func (f *checkpointFigure) values(r *record.Record) ([]float64, bool) {
	var list []float64
	add := func(ranks []float64) {
		if len(ranks) == 0 {
			return
		}
		v := slices.Max(ranks)
		if f.rate {
			v = float64(r.Plan.CheckpointBytes) / v
		}
		list = append(list, v)
	}
	if f.load {
		for i := range r.Checkpoints.Loads {
			add(r.Checkpoints.Loads[i].Seconds)
		}
	} else {
		for i := range r.Checkpoints.Saves {
			add(r.Checkpoints.Saves[i].Seconds)
		}
	}
	for _, v := range list {
		if !(v > 0) || math.IsInf(v, 0) {
			return nil, false
		}
	}
	return list, true
}

// checkpointRatios are the ratios of the figures of checkpoints, by their names.
func checkpointRatios(a, b *record.Record, o Options) map[string]result {
	o = o.Complete()
	out := map[string]result{}
	for _, f := range checkpointFigures() {
		x, fine := f.values(a)
		y, ok := f.values(b)
		switch {
		case !fine || !ok:
			out[f.name] = result{err: fmt.Errorf("%w: a checkpoint took no time", ErrNothing)}
		case len(x) < FewestCheckpoints || len(y) < FewestCheckpoints:
			out[f.name] = result{err: fmt.Errorf("%w: %d and %d; expected at least %d in each run", ErrFewCheckpoints, len(x), len(y), FewestCheckpoints)}
		default:
			out[f.name] = result{estimate: meanRatio(x, y, o.Confidence)}
		}
	}
	return out
}

// CheckpointRatio is the ratio of the rates at which checkpoints were written, or read back.
type CheckpointRatio struct {
	Load     bool // they were read back
	Estimate Estimate
	// Err is that of an estimate that there is none of: it wraps ErrFewCheckpoints or ErrNothing.
	Err error
}

// CheckpointRates compares the rates of b's checkpoints with those of a's: writes, and reads, where both runs have some.
func CheckpointRates(a, b *record.Record, o Options) []CheckpointRatio {
	all := checkpointRatios(a, b, o)
	var out []CheckpointRatio
	for _, f := range checkpointFigures() {
		x, _ := f.values(a)
		y, _ := f.values(b)
		if f.rate && len(x) > 0 && len(y) > 0 {
			r := all[f.name]
			out = append(out, CheckpointRatio{f.load, r.estimate, r.err})
		}
	}
	return out
}

// meanRatio is the ratio of two means and its interval by Student's distribution, of the logarithm of the ratio linearised at the means
// (ratio estimator: Cochran 1977, Sampling Techniques, section 6.3). As many values on either side are taken in pairs, by their places:
// the first checkpoint of a run is like the first of another. Where it takes many times as long as the others, and its noise is as many times
// theirs, that interval is too narrow; that of the mean logarithm of the pairs' ratios is not, so the interval spans both. Others are
// independent samples, with the degrees of freedom of Welch (1947).
func meanRatio(a, b []float64, confidence float64) Estimate {
	ma, mb := mean(a), mean(b)
	ratio := mb / ma
	var spread float64
	var free int
	if len(a) == len(b) {
		n := len(a)
		rest := make([]float64, n)
		for i := range rest {
			rest[i] = b[i]/mb - a[i]/ma
		}
		spread, free = math.Sqrt(variance(rest)/float64(n)), n-1
	} else {
		na, nb := float64(len(a)), float64(len(b))
		va, vb := variance(a)/(ma*ma)/na, variance(b)/(mb*mb)/nb
		spread = math.Sqrt(va + vb)
		free = min(len(a), len(b)) - 1
		if va+vb > 0 {
			free = max(free, int((va+vb)*(va+vb)/(va*va/(na-1)+vb*vb/(nb-1))))
		}
	}
	t := studentQuantile((1+confidence)/2, free)
	e := Estimate{Value: ratio, Low: ratio * math.Exp(-t*spread), High: ratio * math.Exp(t*spread)}
	if len(a) == len(b) {
		logs := make([]float64, len(a))
		for i := range logs {
			logs[i] = math.Log(b[i]) - math.Log(a[i])
		}
		m, wide := mean(logs), t*math.Sqrt(variance(logs)/float64(len(logs)))
		e.Low, e.High = min(e.Low, math.Exp(m-wide)), max(e.High, math.Exp(m+wide))
	}
	return e
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// variance is that of a sample.
func variance(v []float64) float64 {
	m, sum := mean(v), 0.0
	for _, x := range v {
		sum += float64((x - m) * (x - m))
	}
	return sum / float64(len(v)-1)
}
