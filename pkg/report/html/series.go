package html

import (
	"fmt"
	"math/bits"
)

// Step is one step of one accelerator, in nanoseconds; Start counts from the start of the timed run.
type Step struct {
	Epoch, Rank int
	// Start is when the accelerator began to wait for the batch, Load how long it waited, Compute how long it computed. Proc is the time
	// from Start to the end of that, and Barrier the wait for the others behind it.
	Start, Load, Compute, Proc, Barrier int64
}

// Series is what a page draws of the steps of a run. Its size does not depend on how many there are: times are kept in bins that become
// wider as the run becomes longer, and in histograms. Make it with NewSeries.
type Series struct {
	ranks int
	width int64 // of a bin
	bins  [binCount]bin
	end   int64
	steps int64
	// step, load and compute are spread over all steps of all ranks.
	step, load, compute histogram
	epochs              []epochSpan
}

// bin holds the nanoseconds that all ranks together spent in it.
type bin struct{ compute, load, barrier float64 }

// epochSpan is when an epoch began and ended, by its first and last step.
type epochSpan struct {
	epoch      int
	first, end int64
	compute    float64 // nanoseconds, over all ranks
}

const (
	binCount = 512
	firstBin = 1 << 16 // nanoseconds
	// mostEpochs is the number of epochs whose time is kept apart.
	mostEpochs = 4096
	// mostTime is the greatest time that is drawn: 104 days. Files of step times hold none above it.
	mostTime = 1 << 53
)

// NewSeries makes an empty series for so many accelerators.
func NewSeries(accelerators int) *Series {
	return &Series{ranks: max(1, accelerators), width: firstBin}
}

// Add takes the next step, in the order of their epochs. Steps that no run can have made are an error.
func (s *Series) Add(st *Step) error {
	for _, v := range [...]int64{st.Start, st.Load, st.Compute, st.Proc, st.Barrier} {
		if v < 0 || v > mostTime {
			return fmt.Errorf("epoch %d: a step has a time of %d ns, expected 0 to %d", st.Epoch, v, int64(mostTime))
		}
	}
	if st.Rank < 0 || st.Rank >= s.ranks {
		return fmt.Errorf("epoch %d: a step of accelerator %d, of 0 to %d", st.Epoch, st.Rank, s.ranks-1)
	}
	end := st.Start + st.Proc + st.Barrier
	if err := s.epoch(st, end); err != nil {
		return err
	}
	s.steps++
	s.end = max(s.end, end, st.Start+st.Load+st.Compute)
	for s.end > binCount*s.width {
		s.fold()
	}
	s.spread(st.Start, st.Load, func(b *bin, ns float64) { b.load += ns })
	s.spread(st.Start+st.Load, st.Compute, func(b *bin, ns float64) { b.compute += ns })
	s.spread(st.Start+st.Proc, st.Barrier, func(b *bin, ns float64) { b.barrier += ns })
	s.step.add(st.Proc + st.Barrier)
	s.load.add(st.Load)
	s.compute.add(st.Compute)
	return nil
}

func (s *Series) epoch(st *Step, end int64) error {
	n := len(s.epochs)
	if n > 0 && st.Epoch < s.epochs[n-1].epoch {
		return fmt.Errorf("a step of epoch %d follows one of epoch %d", st.Epoch, s.epochs[n-1].epoch)
	}
	if n == 0 || st.Epoch > s.epochs[n-1].epoch {
		if n == mostEpochs {
			return nil
		}
		s.epochs = append(s.epochs, epochSpan{epoch: st.Epoch, first: st.Start})
		n++
	}
	e := &s.epochs[n-1]
	if e.epoch == st.Epoch {
		e.first, e.end = min(e.first, st.Start), max(e.end, end)
		e.compute += float64(st.Compute)
	}
	return nil
}

// fold makes the bins twice as wide.
func (s *Series) fold() {
	for i := range binCount / 2 {
		a, b := s.bins[2*i], s.bins[2*i+1]
		s.bins[i] = bin{a.compute + b.compute, a.load + b.load, a.barrier + b.barrier}
	}
	clear(s.bins[binCount/2:])
	s.width *= 2
}

// spread gives every bin its part of the time from start on.
func (s *Series) spread(start, duration int64, add func(*bin, float64)) {
	for end := start + duration; start < end; {
		i := start / s.width
		next := min(end, (i+1)*s.width)
		add(&s.bins[i], float64(next-start))
		start = next
	}
}

// share is what accelerators did in a stretch of time, in parts of 1 of their time.
type share struct {
	from, to               float64 // seconds
	compute, load, barrier float64
}

// shares are at most so many stretches of equal length, from the start of the timed run to the end of the last step.
func (s *Series) shares(most int) []share {
	used := int((s.end + s.width - 1) / s.width)
	group := (used + most - 1) / most
	var list []share
	for i := 0; i < used; i += max(1, group) {
		var b bin
		for _, one := range s.bins[i:min(i+group, used)] {
			b.compute += one.compute
			b.load += one.load
			b.barrier += one.barrier
		}
		from, to := int64(i)*s.width, min(int64(i+group)*s.width, s.end)
		whole := float64(to-from) * float64(s.ranks)
		list = append(list, share{from: float64(from) / 1e9, to: float64(to) / 1e9, compute: min(1, b.compute/whole),
			load: min(1, b.load/whole), barrier: min(1, b.barrier/whole)})
	}
	return list
}

// histogram counts times in buckets of at most 1/1024 of their value; those below 2048 ns have a bucket each.
type histogram struct {
	counts   [(54 - subBits + 1) << subBits]int64
	n        int64
	min, max int64
}

const subBits = 10

// quantile is the least time that so many of 1000 do not exceed, but for the width of a bucket.
func (h *histogram) quantile(permille int64) int64 {
	need := (h.n*permille + 999) / 1000
	var seen int64
	for i, n := range h.counts {
		if seen += n; n > 0 && seen >= need {
			_, to := edges(i)
			return min(int64(to)-1, h.max)
		}
	}
	return h.max
}

func (h *histogram) add(v int64) {
	v = min(v, mostTime)
	if h.n == 0 || v < h.min {
		h.min = v
	}
	h.max = max(h.max, v)
	h.n++
	h.counts[bucket(v)]++
}

// bucket is the index of v's bucket: rising with v, without gaps.
func bucket(v int64) int {
	e := max(0, bits.Len64(uint64(v))-subBits-1)
	return e<<subBits + int(v>>e)
}

// edges are the ends of bucket i, in nanoseconds.
func edges(i int) (from, to float64) {
	if i < 2<<subBits {
		return float64(i), float64(i + 1)
	}
	e := i>>subBits - 1
	one := float64(int64(1) << e)
	return float64(i-e<<subBits) * one, float64(i-e<<subBits+1) * one
}
