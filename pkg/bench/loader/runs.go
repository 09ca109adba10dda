package loader

import "github.com/benchpin/benchpin/pkg/format"

// runs is an Order that knows how many positions follow each other in a file (sampler.EpochOrder.Run).
type runs interface {
	Run(rank int, pos int64) (sample, file, position, n int64)
}

// walk goes through the positions of one accelerator in rising order. Where samples are not shuffled, thousands of positions follow from one
// look at the order.
type walk struct {
	order Order
	runs  runs // nil where the order has none
	rank  int
	// The run at hand: n positions from pos on.
	pos, n                 int64
	sample, file, position int64
}

func newWalk(o Order, rank int) walk {
	w := walk{order: o, rank: rank}
	w.runs, _ = o.(runs)
	return w
}

// at fills in what stands at pos. It is false where nothing does.
func (w *walk) at(pos int64, s *Sample) bool {
	i := pos - w.pos
	if i < 0 || i >= w.n {
		if w.runs == nil {
			s.Index, s.File, s.Position = w.order.Sample(w.rank, pos)
			return s.Index >= 0
		}
		w.pos, i = pos, 0
		w.sample, w.file, w.position, w.n = w.runs.Run(w.rank, pos)
	}
	s.Index, s.File, s.Position = w.sample+i, w.file, w.position+i
	return w.n > 0
}

// cover is what a worker's reader has at hand of the file that it read last: samples from up to, but not including, to. The zero value
// covers nothing.
type cover struct {
	file, from, to, logical int64
}

// has says whether a sample needs no reading.
func (c *cover) has(s *Sample) bool {
	return s.Position >= c.from && s.Position < c.to && s.File == c.file
}

// covered is what the reader covers after it read s. What is captured, or slept for, is so sample by sample.
func (w *worker) covered(s *Sample) cover {
	if w.covering == nil {
		return cover{}
	}
	from, to := w.covering.Covered()
	return cover{file: s.File, from: int64(from), to: int64(to), logical: s.Logical}
}

// coverer is the reader of a source as one that covers samples; nil where each sample has work of its own.
func coverer(src *Source, mem format.SampleReader) format.Covering {
	if src.Capture != nil || src.Preprocess != nil || src.Idle {
		return nil
	}
	c, _ := mem.(format.Covering)
	return c
}
