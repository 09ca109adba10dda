package stats

import (
	"fmt"
	"math"

	"github.com/benchpin/benchpin/pkg/record"
)

// summary takes the rows of a file in order and keeps what the figures need: sums in whole nanoseconds.
type summary struct {
	p      Params
	ranks  []rankSums
	epochs []epochSums
	cur    *epochSums // the epoch being read; nil before the first row
	block  span       // the block being read, over all ranks
	last   Step       // the last row
	any    bool
	// overflow is set when some sum does not fit into 64 bits.
	overflow bool

	load, compute, oversleep, barrier, step histogram
	total                                   totals

	// waits is nil where the file does not split the wait for a batch.
	waits        *waiting
	queue, ready histogram
}

// totals are sums over all steps of all ranks.
type totals struct {
	bytes                                                                   int64
	load, open, read, decode, compute, oversleep, barrier, excludedBarriers int64
	preprocess                                                              int64
	waits                                                                   [waitParts]int64
}

// span is a block over all ranks: wall times of its window and of the whole.
type span struct {
	number           int32 // 0 before the first row
	winFirst, winEnd int64
	inWindow         bool
}

// rankSums is one rank's state in the current epoch.
type rankSums struct {
	last    Step
	started bool // has a row in this epoch
	// Of the current block: DLIO's arrays, reduced to what DLIO takes from them.
	blockLen, blockCompute, blockExcluded int64
	// Window of the current block.
	winFirst, winEnd int64
	inWindow         bool
	// Of the epoch: when its first block began, and what the loader's workers did.
	first, work int64
	// Of the epoch's ended blocks: DLIO's step-weighted sums, and the number of steps.
	auWeighted, rateWeighted float64
	steps                    int64
}

// epochSums is what one epoch comes to.
type epochSums struct {
	epoch                         int
	steps                         int64 // steps that at least one rank ended
	first, end                    int64 // offsets of the epoch's first block start and last block end
	compute, prescribed, window   int64 // in the window, summed over ranks
	winWall, winSamples, winBytes int64
	bytes                         int64
	dlioAU, dlioRate              float64
	dlioAbsent                    bool
	waits                         *record.Waits
}

func newSummary(p Params, waits bool) *summary {
	s := &summary{p: p, ranks: make([]rankSums, p.Accelerators)}
	if waits {
		s.waits = &waiting{}
	}
	return s
}

// add takes the next row.
func (s *summary) add(st *Step) error {
	if err := s.place(st); err != nil {
		return err
	}
	if s.cur == nil || int(st.Epoch) != s.cur.epoch {
		if err := s.endEpoch(); err != nil {
			return err
		}
		s.epochs = append(s.epochs, epochSums{epoch: int(st.Epoch), first: math.MaxInt64})
		s.cur = &s.epochs[len(s.epochs)-1]
	}
	k := &s.ranks[st.Rank]
	if err := s.continueRank(k, st); err != nil {
		return err
	}
	if s.block.number != st.Block {
		s.endSpan()
		s.block = span{number: st.Block}
	}
	s.count(k, st)
	k.last, k.started = *st, true
	s.last, s.any = *st, true
	return nil
}

// place checks that a row stands where the plan has it: epochs, steps and ranks in order and, in a complete run, none left out.
func (s *summary) place(st *Step) error {
	p := &s.p
	if int(st.Epoch) > p.Epochs || st.Step > p.StepsPerEpoch || int(st.Rank) >= p.Accelerators {
		return fmt.Errorf("%w: epoch %d step %d rank %d: the plan has %d epochs of %d steps on %d accelerators", ErrPlan, st.Epoch,
			st.Step, st.Rank, p.Epochs, p.StepsPerEpoch, p.Accelerators)
	}
	if st.Samples != int64(p.BatchSize) {
		return fmt.Errorf("%w: epoch %d step %d rank %d: %d samples, the batch is %d", ErrPlan, st.Epoch, st.Step, st.Rank, st.Samples,
			p.BatchSize)
	}
	if l := &s.last; l.Epoch == st.Epoch && l.Step == st.Step && l.Block != st.Block {
		return st.fault("it is in block %d, and in block %d for rank %d", st.Block, l.Block, l.Rank)
	}
	epoch, step, rank := int32(1), int64(1), int32(0)
	if s.any {
		epoch, step, rank = s.last.Epoch, s.last.Step, s.last.Rank+1
		if int(rank) == p.Accelerators {
			step, rank = step+1, 0
		}
		if step > p.StepsPerEpoch {
			epoch, step = epoch+1, 1
		}
	}
	got, want := [3]int64{int64(st.Epoch), st.Step, int64(st.Rank)}, [3]int64{int64(epoch), step, int64(rank)}
	if got == want || p.Partial && after(got, want) {
		return nil
	}
	return fmt.Errorf("%w: found epoch %d step %d rank %d where epoch %d step %d rank %d belongs", ErrPlan, st.Epoch, st.Step, st.Rank,
		epoch, step, rank)
}

// after says whether a comes after b in the order of rows.
func after(a, b [3]int64) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] > b[i]
		}
	}
	return false
}

// continueRank checks that a row follows the rank's row before it, and ends the rank's block when the row begins another.
func (s *summary) continueRank(k *rankSums, st *Step) error {
	l := &k.last
	if l.Epoch != 0 {
		begun := l.End()
		if l.Epoch != st.Epoch || l.Block != st.Block {
			begun = l.BlockEnd
			if st.BlockStart < begun {
				return st.fault("its block begins at %d, before the rank's block before it ended at %d", st.BlockStart, begun)
			}
		} else if l.BlockStart != st.BlockStart {
			return st.fault("its block began at %d in this row and at %d in the row before", st.BlockStart, l.BlockStart)
		} else if l.BlockEnd != l.End() {
			return l.fault("block_end_ns is not the end of the step, but the block goes on")
		}
		if st.Start < begun {
			return st.fault("start_ns %d is before the rank's step before it ended at %d", st.Start, begun)
		}
	}
	if k.started && l.Block != st.Block {
		if st.Block < l.Block {
			return st.fault("block %d follows block %d", st.Block, l.Block)
		}
		return s.endBlock(k)
	}
	return nil
}

// count adds a row to all sums.
func (s *summary) count(k *rankSums, st *Step) {
	c := s.cur
	c.steps = max(c.steps, st.Step)
	s.plus(&c.bytes, st.Bytes)
	c.first = min(c.first, st.BlockStart)
	c.end = max(c.end, st.BlockEnd)

	if !k.started {
		k.first = st.BlockStart
	}
	s.plus(&k.work, st.Open+st.Read+st.Decode+st.Preprocess)

	// DLIO's window: indices of the epoch, on the arrays of the block.
	i := k.blockLen
	k.blockLen++
	if i >= s.p.ExcludeStart && i <= s.p.StepsPerEpoch-1-s.p.ExcludeEnd {
		s.plus(&k.blockCompute, st.Compute)
	} else {
		s.plus(&k.blockExcluded, st.Proc)
	}

	if s.p.inWindow(st.Step) {
		s.plus(&c.compute, st.Compute)
		s.plus(&c.prescribed, st.Prescribed)
		s.plus(&c.winSamples, st.Samples)
		s.plus(&c.winBytes, st.Bytes)
		if !k.inWindow {
			k.inWindow, k.winFirst = true, st.Start
		}
		k.winEnd = st.End()
		if b := &s.block; !b.inWindow {
			b.inWindow, b.winFirst, b.winEnd = true, st.Start, st.End()
		} else {
			b.winFirst, b.winEnd = min(b.winFirst, st.Start), max(b.winEnd, st.End())
		}
	} else {
		s.plus(&s.total.excludedBarriers, st.Barrier)
	}

	over := max(0, st.Compute-st.Prescribed)
	s.load.add(st.Load)
	s.compute.add(st.Compute)
	s.oversleep.add(over)
	s.barrier.add(st.Barrier)
	s.step.add(st.Proc + st.Barrier)
	t := &s.total
	s.plus(&t.bytes, st.Bytes)
	s.plus(&t.load, st.Load)
	s.plus(&t.open, st.Open)
	s.plus(&t.read, st.Read)
	s.plus(&t.decode, st.Decode)
	s.plus(&t.compute, st.Compute)
	s.plus(&t.oversleep, over)
	s.plus(&t.barrier, st.Barrier)
	if s.waits != nil {
		s.plus(&t.preprocess, st.Preprocess)
		s.waits.add(s, st)
	}
}

// endBlock closes a rank's block: DLIO's figures of the block, and the block's part of the window.
func (s *summary) endBlock(k *rankSums) error {
	if k.inWindow {
		s.plus(&s.cur.window, k.winEnd-k.winFirst)
	}
	t := k.last.BlockEnd - k.last.BlockStart - k.blockExcluded
	n := float64(k.blockLen)
	var au float64
	if k.blockCompute != 0 {
		au = 100 * nanos(k.blockCompute) / nanos(t)
	}
	if au > 100 {
		return k.last.fault("AU of block %d is %v%%", k.last.Block, au)
	}
	if t <= 0 {
		// DLIO divides by zero here.
		s.cur.dlioAbsent = true
	} else {
		counted, wall := n-2, t
		if s.p.Evaluation {
			counted, wall = n, k.last.BlockEnd-k.last.BlockStart
		}
		rate := float64(counted/(nanos(wall)/1e9)) * float64(s.p.BatchSize)
		k.rateWeighted += float64(rate * n)
	}
	k.auWeighted += float64(au * n)
	k.steps += k.blockLen
	k.blockLen, k.blockCompute, k.blockExcluded, k.inWindow = 0, 0, 0, false
	return nil
}

// endSpan closes the block over all ranks.
func (s *summary) endSpan() {
	if s.block.inWindow {
		s.plus(&s.cur.winWall, s.block.winEnd-s.block.winFirst)
	}
	s.block = span{}
}

// endEpoch closes the epoch, rank after rank in order, so that the float sums have one order.
func (s *summary) endEpoch() error {
	c := s.cur
	if c == nil {
		return nil
	}
	s.endSpan()
	for r := range s.ranks {
		k := &s.ranks[r]
		if !k.started {
			continue
		}
		if err := s.endBlock(k); err != nil {
			return err
		}
		if took := k.last.BlockEnd - k.first; s.p.Readers > 0 && k.work/int64(s.p.Readers) > took {
			return fmt.Errorf("%w: epoch %d rank %d: its %d readers worked for %d ns in %d ns", ErrImpossible, c.epoch, r, s.p.Readers, k.work, took)
		}
		n := float64(k.steps)
		c.dlioAU += k.auWeighted / n
		c.dlioRate += k.rateWeighted / n
		*k = rankSums{last: k.last}
	}
	if s.waits != nil {
		c.waits = s.waits.end(s.p.Accelerators)
	}
	c.dlioAU /= float64(s.p.Accelerators)
	if s.p.ExcludeStart+s.p.ExcludeEnd >= s.p.StepsPerEpoch {
		// DLIO's two excluded ranges overlap and its window time loses steps twice.
		c.dlioAbsent = true
	}
	return nil
}

// nanos is an integer as a float. Sums below 2^53 ns (104 days of one rank) are exact; greater ones are rounded once.
func nanos(v int64) float64 { return float64(v) }

// plus adds v, which is not negative, to a sum. One that no longer fits into 64 bits is remembered and fails the summary.
func (s *summary) plus(sum *int64, v int64) {
	if *sum += v; *sum < 0 {
		s.overflow = true
	}
}
