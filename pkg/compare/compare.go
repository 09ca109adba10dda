// Package compare says whether two measured rates differ by more than the noise in their step times. It holds statistics and nothing
// else: it knows no record, reads no file but step times, and never prints.
//
// The noise that it sees is that between the steps of a run. What changes from one run to the next, and stays the same during a run (the
// placement of files, a neighbour on the same device, the temperature of a processor), is not in it; only repeated runs show that.
package compare

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Step is one step of a run: how much was done in it and how long it took, in any unit of work and in seconds.
type Step struct{ Work, Seconds float64 }

// Series are the steps of one run: stretches of consecutive steps, such as the steps of an epoch between two checkpoints. Steps of
// different stretches do not follow on each other.
type Series [][]Step

// Steps is the number of steps.
func (s Series) Steps() int {
	n := 0
	for _, stretch := range s {
		n += len(stretch)
	}
	return n
}

// Rate is all work by all seconds; NaN for a series without time.
func (s Series) Rate() float64 {
	var work, seconds float64
	for _, stretch := range s {
		for _, step := range stretch {
			work += step.Work
			seconds += step.Seconds
		}
	}
	return work / seconds
}

// Fewest is the number of steps below which nothing is said about noise.
const Fewest = 8

// ErrFew is the error about a series that has fewer steps than Fewest, or none that took time.
var ErrFew = errors.New("too few steps to tell a difference from noise")

// Options say how often to resample. The zero value is 2000 times, 95 %, and a fixed seed: the same steps give the same interval.
type Options struct {
	Resamples  int
	Confidence float64 // of the interval, such as 0.95
	Seed       uint64
}

func (o Options) complete() Options {
	if o.Resamples < 1 {
		o.Resamples = 2000
	}
	if !(o.Confidence > 0 && o.Confidence < 1) {
		o.Confidence = 0.95
	}
	return o
}

// Estimate is a figure with its confidence interval.
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Rate is the rate of a series with its interval: see Ratio.
func Rate(s Series, o Options) (Estimate, error) {
	o = o.complete()
	b, err := newBlocks(s)
	if err != nil {
		return Estimate{}, err
	}
	draw := rand.New(rand.NewPCG(o.Seed, 1))
	rates := make([]float64, o.Resamples)
	for i := range rates {
		rates[i] = b.resample(draw)
	}
	return estimate(s.Rate(), rates, o.Confidence), nil
}

// Ratio is the rate of b by the rate of a, with a confidence interval by a moving-block bootstrap: each run is resampled by itself from
// blocks of its consecutive steps, so that steps which hang together (a batch that was prefetched while another was slow) stay together.
// A block has the third root of the number of steps, rounded up, and never reaches beyond its stretch. The interval is that of the
// percentiles. (H. Künsch: The jackknife and the bootstrap for general stationary observations. Annals of Statistics 17, 1989; P. Hall,
// J. Horowitz, B.-Y. Jing: On blocking rules for the bootstrap with dependent data. Biometrika 82, 1995.)
func Ratio(a, b Series, o Options) (Estimate, error) {
	o = o.complete()
	x, err := newBlocks(a)
	if err != nil {
		return Estimate{}, fmt.Errorf("first run: %w", err)
	}
	y, err := newBlocks(b)
	if err != nil {
		return Estimate{}, fmt.Errorf("second run: %w", err)
	}
	first, second := rand.New(rand.NewPCG(o.Seed, 1)), rand.New(rand.NewPCG(o.Seed, 2))
	ratios := make([]float64, o.Resamples)
	for i := range ratios {
		ratios[i] = y.resample(second) / x.resample(first)
	}
	return estimate(b.Rate()/a.Rate(), ratios, o.Confidence), nil
}

func estimate(value float64, resampled []float64, confidence float64) Estimate {
	slices.Sort(resampled)
	tail := (1 - confidence) / 2
	n := float64(len(resampled) - 1)
	return Estimate{Value: value, Low: resampled[int(math.Floor(tail*n))], High: resampled[int(math.Ceil((1-tail)*n))]}
}

// blocks is a series from which blocks are drawn in constant time each.
type blocks struct {
	length int
	// work and seconds are sums over the steps before each, through all stretches.
	work, seconds []float64
	// starts are the steps that a block may begin at; ends is where that one ends.
	starts, ends []int
	draws        int
}

func newBlocks(s Series) (*blocks, error) {
	n := s.Steps()
	if n < Fewest {
		return nil, fmt.Errorf("%w: %d, expected at least %d", ErrFew, n, Fewest)
	}
	b := &blocks{length: int(math.Ceil(math.Cbrt(float64(n)))), work: make([]float64, 1, n+1), seconds: make([]float64, 1, n+1)}
	at := 0
	for _, stretch := range s {
		for _, step := range stretch {
			if !(step.Seconds >= 0) || !(step.Work >= 0) || math.IsInf(step.Seconds, 0) || math.IsInf(step.Work, 0) {
				return nil, fmt.Errorf("step %d: work %v in %v s: expected numbers of at least 0", at, step.Work, step.Seconds)
			}
			b.work = append(b.work, b.work[at]+step.Work)
			b.seconds = append(b.seconds, b.seconds[at]+step.Seconds)
			at++
		}
		first := at - len(stretch)
		for start := first; start < at && (start == first || start+b.length <= at); start++ {
			b.starts = append(b.starts, start)
			b.ends = append(b.ends, min(start+b.length, at))
		}
	}
	if b.seconds[at] == 0 || b.work[at] == 0 {
		return nil, fmt.Errorf("%w: %v of work in %v s", ErrFew, b.work[at], b.seconds[at])
	}
	all := 0
	for i := range b.starts {
		all += b.ends[i] - b.starts[i]
	}
	b.draws = max(1, (n*len(b.starts)+all-1)/all) // blocks of short stretches are shorter: as many as make n steps in the mean
	return b, nil
}

// resample is the rate of as many steps as there are, in the mean, drawn in blocks.
func (b *blocks) resample(draw *rand.Rand) float64 {
	var work, seconds float64
	for range b.draws {
		i := draw.IntN(len(b.starts))
		work += b.work[b.ends[i]] - b.work[b.starts[i]]
		seconds += b.seconds[b.ends[i]] - b.seconds[b.starts[i]]
	}
	if seconds == 0 { // only steps without time were drawn
		return math.Inf(1)
	}
	return work / seconds
}

// Verdict says where a ratio lies.
type Verdict string

// The verdicts.
const (
	// Within: the whole interval is within the tolerance.
	Within Verdict = "within"
	// Outside: none of the interval is.
	Outside Verdict = "outside"
	// Undecided: the noise is too large, or the steps too few, to tell.
	Undecided Verdict = "undecided"
)

// Against holds a ratio to a tolerance of, for example, 0.05: from 1/1.05 to 1.05.
func (e Estimate) Against(tolerance float64) Verdict {
	low, high := 1/(1+tolerance), 1+tolerance
	switch {
	case e.Low >= low && e.High <= high:
		return Within
	case e.High < low, e.Low > high:
		return Outside
	}
	return Undecided
}

// Noise reports whether a ratio may be 1: the interval holds it.
func (e Estimate) Noise() bool { return e.Low <= 1 && e.High >= 1 }
