package bench

import (
	"context"
	"fmt"
)

// Read is one entry of the expected transcript, with what its numbers stand for.
type Read struct {
	Entry
	// Evaluation is true in the passes over the files for evaluation, whose files are numbered for themselves.
	Evaluation bool
	Rank       int
	// Path is that of the file in the data set.
	Path string
}

// Which are the entries that EachRead yields.
type Which struct {
	// Epoch is the only epoch, 0 for all; Rank the only rank, below 0 for all.
	Epoch, Rank int
}

// EachRead yields what a run of the plan must read, without any data: epoch by epoch, in an epoch step by step, in a step rank by rank,
// and in a rank in the order in which the batch is consumed. The pass over the files for evaluation that follows an epoch comes after it.
// The argument of yield is used again for the next call. It ends with the error of yield or of ctx.
func EachRead(ctx context.Context, p *Plan, ds Dataset, w Which, yield func(*Read) error) error {
	if w.Epoch < 0 || w.Epoch > p.Epochs {
		return fmt.Errorf("epoch %d: the plan has epochs 1 to %d", w.Epoch, p.Epochs)
	}
	if w.Rank >= p.Accelerators {
		return fmt.Errorf("rank %d: the plan has ranks 0 to %d", w.Rank, p.Accelerators-1)
	}
	if p.order == nil {
		return nil
	}
	eval, passes := p.EvaluationSchedule()
	valid := evaluationOf(ds)
	if passes && valid == nil {
		return fmt.Errorf("transcript: the plan has %d evaluations, and the data set no files for them", p.Evaluation.Passes)
	}
	first, last := 1, p.Epochs
	if w.Epoch > 0 {
		first, last = w.Epoch, w.Epoch
	}
	for e := first; e <= last; e++ {
		if err := epochReads(ctx, p, p.Schedule(), ds, e, w.Rank, yield); err != nil {
			return err
		}
		if passes {
			if err := epochReads(ctx, p, eval, valid, e, w.Rank, yield); err != nil {
				return err
			}
		}
	}
	return nil
}

// epochReads yields one epoch of training, or the pass that follows it.
func epochReads(ctx context.Context, p *Plan, s Schedule, ds Dataset, epoch, only int, yield func(*Read) error) error {
	if !s.due(epoch) {
		return nil
	}
	order := p.order
	if s.Evaluation {
		order = p.eval.order
	}
	eo, err := order.Epoch(epoch)
	if err != nil {
		return fmt.Errorf("transcript: %w", err)
	}
	size := p.reading.sizes(ds)
	r := Read{Evaluation: s.Evaluation, Entry: Entry{Epoch: uint32(epoch)}}
	for step := int64(1); step <= s.StepsPerEpoch; step++ {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("transcript: stopped at epoch %d: %w", epoch, context.Cause(ctx))
		}
		for rank := range s.Accelerators {
			if only >= 0 && rank != only {
				continue
			}
			for i := range int64(s.BatchSize) {
				g, file, k := eo.Sample(rank, (step-1)*int64(s.BatchSize)+i)
				r.Rank, r.Step, r.Sample, r.File, r.Position, r.Logical = rank, uint32(step), uint64(g), uint32(file), uint32(k), 0
				if !s.Idle {
					r.Logical = uint64(size.SampleBytes(int(file)))
				}
				r.Path = ds.Path(int(file))
				if err := yield(&r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
