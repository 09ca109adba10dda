package bench

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/benchpin/benchpin/pkg/bench/sampler"
)

// Visits are the samples that a plan's runs consume, each once however often it is read: one bit for every sample of the data set.
type Visits struct {
	samples int64
	parts   [2][]uint64
}

// Visits walks through the order of all epochs and passes.
func (p *Plan) Visits(ctx context.Context) (*Visits, error) {
	v := &Visits{samples: int64(p.SamplesPerFile)}
	if p.order == nil {
		return v, nil
	}
	if err := v.walk(ctx, 0, p.order, p.BatchSize, int64(p.StepsPerEpoch), epochs1(p.Epochs)); err != nil {
		return nil, err
	}
	if e := p.eval; e != nil {
		if err := v.walk(ctx, 1, e.order, e.batch, e.steps, e.epochs); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (v *Visits) walk(ctx context.Context, part int, order *sampler.Order, batch int, steps int64, epochs []int) error {
	v.parts[part] = make([]uint64, (order.Config().Files*v.samples+63)/64)
	for _, e := range epochs {
		o, err := order.Epoch(e)
		if err != nil {
			return fmt.Errorf("order of epoch %d: %w", e, err)
		}
		for rank := range order.Config().Accelerators {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			for pos := range steps * int64(batch) {
				_, file, k := o.Sample(rank, pos)
				n := file*v.samples + k
				v.parts[part][n/64] |= 1 << (n % 64)
			}
		}
	}
	return nil
}

// Samples is the number of samples that are consumed.
func (v *Visits) Samples() int64 {
	n := 0
	for _, part := range v.parts {
		for _, w := range part {
			n += bits.OnesCount64(w)
		}
	}
	return int64(n)
}

// Sample says whether sample k of a data file is consumed.
func (v *Visits) Sample(f FileID, k int) bool {
	words := v.parts[part(f.Evaluation)]
	n := int64(f.Index)*v.samples + int64(k)
	return n/64 < int64(len(words)) && words[n/64]&(1<<(n%64)) != 0
}

// File says whether a sample of a data file is.
func (v *Visits) File(f FileID) bool {
	for k := range int(v.samples) {
		if v.Sample(f, k) {
			return true
		}
	}
	return false
}
