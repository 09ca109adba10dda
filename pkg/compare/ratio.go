package compare

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// Fewest is the number of chunks of steps below which nothing is said about noise.
const Fewest = 5

// fewestOfEpoch is the number of chunks that every epoch must have to be drawn from by itself.
const fewestOfEpoch = 4

// The errors of Ratio.
var (
	// ErrFew: too few steps.
	ErrFew = errors.New("too few steps to tell a difference from noise")
	// ErrNothing: the figure is 0, or cannot be computed, in one of the runs or in parts of it.
	ErrNothing = errors.New("the figure has no ratio")
)

// Options say how to draw. The zero value is 2,000 times, 95 %, seed 0.
type Options struct {
	Resamples  int
	Confidence float64 // of the interval, above 0 and below 1
	Seed       uint64
}

// Complete is o with what was left out.
func (o Options) Complete() Options {
	if o.Resamples < 1 {
		o.Resamples = 2000
	}
	if !(o.Confidence > 0 && o.Confidence < 1) {
		o.Confidence = 0.95
	}
	return o
}

// Estimate is a ratio and its confidence interval.
type Estimate struct{ Value, Low, High float64 }

// Noise says whether the ratio may be 1: the interval holds it.
func (e Estimate) Noise() bool { return e.Low <= 1 && 1 <= e.High }

// Verdict says where a ratio lies.
type Verdict string

// The verdicts.
const (
	// Within: the whole interval is within the tolerance.
	Within Verdict = "within"
	// Outside: nothing of the interval is.
	Outside Verdict = "outside"
	// Undecided: the noise is too large, or the steps are too few, to tell.
	Undecided Verdict = "undecided"
)

// Against holds a ratio to a tolerance: 0.05 is from 1/1.05 to 1.05.
func (e Estimate) Against(tolerance float64) Verdict {
	low, high := 1/(1+tolerance), 1+tolerance
	switch {
	case e.Low >= low && e.High <= high:
		return Within
	case e.High < low || e.Low > high:
		return Outside
	}
	return Undecided
}

// Ratio is the figure of b by that of a, with its interval (package comment). It fails with ErrFew and ErrNothing.
func Ratio(a, b *Series, f Figure, o Options) (Estimate, error) {
	known, ok := formulaOf(f)
	if !ok {
		return Estimate{}, fmt.Errorf("%w: no figure of step times is called %q", ErrNothing, f)
	}
	return ratios(a, b, []formula{known}, o)[0].get()
}

// result is what came of one figure.
type result struct {
	estimate Estimate
	err      error
}

func (r result) get() (Estimate, error) { return r.estimate, r.err }

// ratios are the ratios of several figures, all from the same draws.
func ratios(a, b *Series, figures []formula, o Options) []result {
	o = o.Complete()
	out := make([]result, len(figures))
	fail := func(err error) []result {
		for i := range out {
			out[i].err = err
		}
		return out
	}
	for _, s := range []*Series{a, b} {
		if n := s.Chunks(); n < Fewest {
			return fail(fmt.Errorf("%w: %d in the window, in %d chunks; expected at least %d chunks", ErrFew, s.steps, n, Fewest))
		}
	}
	da, db := newDrawn(a), newDrawn(b)
	if paired := da.shape(db); paired {
		da.draws, db.draws = rand.NewPCG(o.Seed, 1), rand.NewPCG(o.Seed, 1)
	} else {
		da.draws, db.draws = rand.NewPCG(o.Seed, 1), rand.NewPCG(o.Seed, 2)
	}
	logs := make([][]float64, len(figures))
	for i := range logs {
		logs[i] = make([]float64, 0, o.Resamples)
	}
	for range o.Resamples {
		ca, cb := da.draw(), db.draw()
		for i := range figures {
			logs[i] = append(logs[i], logRatio(&figures[i], &ca, &cb))
		}
	}
	widen := max(da.widen(o.Confidence), db.widen(o.Confidence))
	for i := range figures {
		out[i].estimate, out[i].err = interval(logRatio(&figures[i], &a.total, &b.total), logs[i], widen, o.Confidence)
	}
	return out
}

// logRatio is NaN or infinite where there is no ratio.
func logRatio(f *formula, a, b *chunk) float64 {
	x, ok := f.of(a)
	y, fine := f.of(b)
	if !ok || !fine {
		return math.NaN()
	}
	return math.Log(y) - math.Log(x)
}

// interval is that of the percentiles of logs, widened around the value.
func interval(value float64, logs []float64, widen, confidence float64) (Estimate, error) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return Estimate{}, fmt.Errorf("%w: it is 0, or absent, in one of the runs", ErrNothing)
	}
	slices.Sort(logs)
	tail := (1 - confidence) / 2
	n := float64(len(logs) - 1)
	low, high := logs[int(math.Floor(tail*n))], logs[int(math.Ceil((1-tail)*n))]
	if math.IsNaN(logs[0]) || math.IsInf(low, 0) || math.IsInf(high, 0) {
		return Estimate{}, fmt.Errorf("%w that can be told from noise: it is above 0 in few steps alone", ErrNothing)
	}
	// A value outside of what was drawn, which few chunks can give, stays inside of its interval.
	low, high = min(low, value), max(high, value)
	return Estimate{Value: math.Exp(value), Low: math.Exp(value + widen*(low-value)), High: math.Exp(value + widen*(high-value))}, nil
}

// drawn is a series to draw from.
type drawn struct {
	strata [][]chunk
	draws  *rand.PCG
}

// newDrawn takes each epoch by itself where all have chunks enough.
func newDrawn(s *Series) *drawn {
	for _, e := range s.epochs {
		if len(e) < fewestOfEpoch {
			return &drawn{strata: [][]chunk{slices.Concat(s.epochs...)}}
		}
	}
	return &drawn{strata: s.epochs}
}

// shape says whether both have the same chunks, of the same steps.
func (d *drawn) shape(o *drawn) bool {
	return slices.EqualFunc(d.strata, o.strata, func(x, y []chunk) bool {
		return slices.EqualFunc(x, y, func(p, q chunk) bool { return p[sumRows] == q[sumRows] && p[sumSamples] == q[sumSamples] })
	})
}

// draw sums as many chunks as there are, drawn with replacement from each stratum.
func (d *drawn) draw() chunk {
	var c chunk
	for _, chunks := range d.strata {
		for range chunks {
			// The high word of a product: a draw below len(chunks) whose bias, at most len(chunks) in 2^64, nobody can see.
			i, _ := bits.Mul64(d.draws.Uint64(), uint64(len(chunks)))
			c.add(&chunks[i])
		}
	}
	return c
}

// widen is widening for what is drawn.
func (d *drawn) widen(confidence float64) float64 {
	k := 0
	for _, chunks := range d.strata {
		k += len(chunks)
	}
	return widening(k, len(d.strata), confidence)
}

// widening is by how much deviations are multiplied, so that few chunks give an interval that is wide enough.
func widening(chunks, strata int, confidence float64) float64 {
	free := chunks - strata
	p := (1 + confidence) / 2
	return math.Sqrt(float64(chunks)/float64(free)) * studentQuantile(p, free) / normalQuantile(p)
}
