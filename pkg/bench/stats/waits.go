package stats

import (
	"math/bits"

	"github.com/benchpin/benchpin/pkg/record"
)

// The parts of waiting (record.WaitParts), in its order.
const (
	partLoad = iota
	partQueue
	partOpen
	partRead
	partDecode
	partOther
	partBarrier
	partOversleep
	waitParts
)

// waiting takes the rows of one epoch.
type waiting struct {
	steps  [waitParts]histogram
	totals [waitParts]int64
	ranks  [][waitParts]int64
}

// split divides the wait for the batch of a row, in nanoseconds. Of the time in which the batch was begun and not there, each of opening,
// reading and decoding has its share of the work on the batch, rounded down; what is left is Other.
func split(st *Step) (p [waitParts]int64) {
	p[partLoad], p[partQueue], p[partBarrier] = st.Load, st.Queue, st.Barrier
	p[partOversleep] = max(0, st.Compute-st.Prescribed)
	rest := st.Load - st.Queue
	p[partOther] = rest
	if work := st.Open + st.Read + st.Decode + st.Preprocess; work > 0 { // each is at most 2^53
		p[partOpen], p[partRead], p[partDecode] = share(rest, st.Open, work), share(rest, st.Read, work), share(rest, st.Decode, work)
		p[partOther] -= p[partOpen] + p[partRead] + p[partDecode]
	}
	return p
}

// share is a times b over c, rounded down, with b at most c and none negative.
func share(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(c)) // hi < c because b <= c and a < 2^64
	return int64(q)
}

// add takes one row.
func (w *waiting) add(s *summary, st *Step) {
	if w.ranks == nil {
		w.ranks = make([][waitParts]int64, s.p.Accelerators)
	}
	p := split(st)
	rank := &w.ranks[st.Rank]
	for i, v := range p {
		w.steps[i].add(v)
		s.plus(&w.totals[i], v)
		s.plus(&rank[i], v)
		s.plus(&s.total.waits[i], v)
	}
	s.queue.add(st.Queue)
	s.ready.add(st.Ready)
}

// end makes the epoch's figures and is empty again.
func (w *waiting) end(ranks int) *record.Waits {
	if w.ranks == nil { // an epoch without rows
		return nil
	}
	m := &record.Waits{Class: record.HostOnly, Steps: spreads(&w.steps, w.totals)}
	var of [waitParts]histogram
	for r := range w.ranks {
		for i, v := range w.ranks[r] {
			of[i].add(v)
		}
	}
	m.Accelerators = spreads(&of, w.totals)
	if ranks <= record.MostWaitRanks {
		for r := range w.ranks {
			v := &w.ranks[r]
			sec := func(part int) float64 { return nanos(v[part]) / 1e9 }
			m.Ranks = append(m.Ranks, record.RankWaits{Load: sec(partLoad), Queue: sec(partQueue), Open: sec(partOpen), Read: sec(partRead),
				Decode: sec(partDecode), Other: sec(partOther), Barrier: sec(partBarrier), Oversleep: sec(partOversleep)})
		}
	}
	clear(w.ranks)
	w.totals = [waitParts]int64{}
	for i := range w.steps {
		w.steps[i].reset()
	}
	return m
}

func spreads(h *[waitParts]histogram, totals [waitParts]int64) record.WaitParts {
	at := func(part int) record.Spread {
		q := func(permille int64) float64 {
			v, _ := h[part].quantile(permille)
			return nanos(v) / 1e9
		}
		return record.Spread{Total: nanos(totals[part]) / 1e9, P50: q(500), P90: q(900), P99: q(990), Max: q(1000)}
	}
	return record.WaitParts{Load: at(partLoad), Queue: at(partQueue), Open: at(partOpen), Read: at(partRead), Decode: at(partDecode),
		Other: at(partOther), Barrier: at(partBarrier), Oversleep: at(partOversleep)}
}
