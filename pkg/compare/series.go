package compare

import (
	"context"
	"fmt"

	"github.com/benchpin/benchpin/pkg/bench/stats"
)

// Window are the steps of each epoch that figures are computed over, by their numbers from 1: From is the first, To the last one.
type Window struct{ From, To int64 }

// WindowOf is the window of epochs of so many steps without the first and the last ones (output.metric.exclude_start_steps and
// exclude_end_steps).
func WindowOf(steps, excludeStart, excludeEnd int64) Window {
	return Window{From: excludeStart + 1, To: steps - excludeEnd}
}

// The sums that figures are made of. Times are in nanoseconds.
const (
	sumRows       = iota // steps, one a rank
	sumCompute           // compute, over all ranks
	sumPrescribed        // the same as the workload asked for it
	sumLap               // window time of the ranks: from the end of a rank's step before to its own
	sumWall              // the same of all ranks together
	sumSamples
	sumBytes
	sumLoad
	sumBarrier
	sumStep // proc and barrier
	sums
)

// chunk are the sums over some consecutive steps.
type chunk [sums]int64

func (c *chunk) add(o *chunk) {
	for i := range c {
		c[i] += o[i]
	}
}

// Series are the steps of a run, summed in chunks of consecutive ones.
type Series struct {
	epochs [][]chunk
	total  chunk
	steps  int64
	// all are the times of all steps, those outside of the window too, in order.
	all ordering
}

// Steps is the number of steps in the window of all epochs, each of all ranks.
func (s *Series) Steps() int64 { return s.steps }

// Chunks is the number of chunks that the steps were cut into.
func (s *Series) Chunks() int {
	n := 0
	for _, e := range s.epochs {
		n += len(e)
	}
	return n
}

// Read reads the series of a file of step times. It fails with what the reader fails with, and with ctx's error when cancelled. It holds the
// sums of the steps of one epoch in memory, and the times of up to 131,072 steps of ranks.
func Read(ctx context.Context, r *stats.Reader, w Window) (*Series, error) {
	b := &builder{window: w, series: &Series{}}
	n := 0
	err := r.Each(func(row *stats.Step) error {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return fmt.Errorf("steps: stopped at row %d: %w", n, context.Cause(ctx))
		}
		b.series.all.add(row)
		b.add(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	b.end()
	return b.series, nil
}

func (b *builder) end() {
	b.endEpoch()
	b.series.all.end()
}

// builder makes a series from rows in the order of epoch, step, rank.
type builder struct {
	window Window
	series *Series

	epoch, block int32
	step         int64
	blocks       [][]chunk // of the epoch being read: the steps of each block
	ends         map[int32]int64
	wallEnd      int64
	// first is the first start of any rank in a block's first step, until the step is whole.
	first int64
}

func (b *builder) add(row *stats.Step) {
	if row.Step < b.window.From || row.Step > b.window.To {
		return
	}
	if row.Epoch != b.epoch {
		b.endEpoch()
		b.epoch, b.block = row.Epoch, 0
	}
	if row.Block != b.block {
		b.endStep()
		b.block, b.step = row.Block, 0
		b.blocks = append(b.blocks, nil)
		b.ends = map[int32]int64{}
		b.first, b.wallEnd = row.Start, 0
	}
	if row.Step != b.step {
		b.endStep()
		b.step = row.Step
		last := len(b.blocks) - 1
		b.blocks[last] = append(b.blocks[last], chunk{})
	}
	steps := b.blocks[len(b.blocks)-1]
	c := &steps[len(steps)-1]
	begun, ok := b.ends[row.Rank]
	if !ok {
		begun = row.Start
	}
	if len(steps) == 1 {
		b.first = min(b.first, row.Start)
	}
	b.ends[row.Rank] = row.End()
	c.add(&chunk{sumRows: 1, sumCompute: row.Compute, sumPrescribed: row.Prescribed, sumLap: row.End() - begun, sumSamples: row.Samples, sumBytes: row.Bytes,
		sumLoad: row.Load, sumBarrier: row.Barrier, sumStep: row.Proc + row.Barrier})
}

// endStep closes the wall time of a step: from the last end of any rank before it to the last end in it.
func (b *builder) endStep() {
	if len(b.blocks) == 0 || len(b.blocks[len(b.blocks)-1]) == 0 {
		return
	}
	steps := b.blocks[len(b.blocks)-1]
	begun := b.wallEnd
	if len(steps) == 1 {
		begun = b.first
	}
	end := begun
	for _, e := range b.ends {
		end = max(end, e)
	}
	steps[len(steps)-1][sumWall] = end - begun
	b.wallEnd = end
}

func (b *builder) endEpoch() {
	b.endStep()
	n := 0
	for _, steps := range b.blocks {
		n += len(steps)
	}
	if n == 0 {
		return
	}
	s := b.series
	var chunks []chunk
	for _, steps := range b.blocks {
		chunks = append(chunks, cut(steps, chunkLength(n))...)
	}
	for i := range chunks {
		s.total.add(&chunks[i])
	}
	s.epochs = append(s.epochs, chunks)
	s.steps += int64(n)
	b.blocks = nil
}

// chunkLength is the third root of the number of steps, rounded up.
func chunkLength(steps int) int {
	k := 1
	for k*k*k < steps {
		k++
	}
	return k
}

// cut sums consecutive steps in chunks of at least the given length, or of all steps where there are fewer; lengths differ by at most 1.
func cut(steps []chunk, length int) []chunk {
	n := max(1, len(steps)/length)
	chunks := make([]chunk, n)
	for i := range chunks {
		for k := i * len(steps) / n; k < (i+1)*len(steps)/n; k++ {
			chunks[i].add(&steps[k])
		}
	}
	return chunks
}
