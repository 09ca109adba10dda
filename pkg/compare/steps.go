package compare

import (
	"context"
	"fmt"

	"github.com/benchpin/benchpin/pkg/bench/stats"
)

// Steps reads the series of a file of step times: samples in seconds, a step of all ranks together, each with the mean over its ranks of
// the time from the beginning of the wait for a batch to the end of the barrier. Only steps numbered from to to of each epoch are
// taken, the window that rates are computed over. A stretch is what lies between two checkpoints.
func Steps(ctx context.Context, r *stats.Reader, from, to int64) (Series, error) {
	var (
		s           Series
		epoch       int32
		block       int32
		step        int64
		ranks, span float64
		samples     float64
		rows        int
	)
	end := func() {
		if ranks > 0 {
			last := len(s) - 1
			s[last] = append(s[last], Step{Work: samples, Seconds: span / ranks / 1e9})
		}
		ranks, span, samples = 0, 0, 0
	}
	err := r.Each(func(row *stats.Step) error {
		if rows++; rows%1024 == 0 && ctx.Err() != nil {
			return fmt.Errorf("steps: stopped at row %d: %w", rows, context.Cause(ctx))
		}
		if row.Step < from || row.Step > to {
			return nil
		}
		if row.Epoch != epoch || row.Step != step {
			end()
			if row.Epoch != epoch || row.Block != block {
				s = append(s, nil)
			}
			epoch, block, step = row.Epoch, row.Block, row.Step
		}
		ranks++
		span += float64(row.Proc + row.Barrier)
		samples += float64(row.Samples)
		return nil
	})
	if err != nil {
		return nil, err
	}
	end()
	return s, nil
}
