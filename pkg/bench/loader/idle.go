package loader

import (
	"context"
	"fmt"
	"io"
)

// Idle hands out batches without reading anything: DLIO's loaders synthetic (tensors that were made at the start) and none. The
// samples have the names that the order gives them and no bytes.
type Idle struct {
	rank  int
	steps int64
	next  int64
	order Order
	batch Batch
}

// NewIdle makes the loader of one accelerator, with batches of so many samples and so many batches in an epoch.
func NewIdle(rank, batchSize int, steps int64) (*Idle, error) {
	if batchSize < 1 || steps < 0 {
		return nil, fmt.Errorf("data loader of accelerator %d: expected a batch of at least 1, found %d, %d steps", rank, batchSize, steps)
	}
	return &Idle{rank: rank, steps: steps, batch: Batch{Samples: make([]Sample, batchSize)}}, nil
}

// Start begins an epoch: see Loader.
func (l *Idle) Start(_ int, order Order) { l.order, l.next = order, 0 }

// Next returns the next batch at once: see Loader.
func (l *Idle) Next(context.Context) (*Batch, error) {
	if l.next >= l.steps {
		return nil, io.EOF
	}
	for i := range l.batch.Samples {
		s := &l.batch.Samples[i]
		pos := l.next*int64(len(l.batch.Samples)) + int64(i)
		if s.Index, s.File, s.Position = l.order.Sample(l.rank, pos); s.Index < 0 {
			return nil, fmt.Errorf("the order of samples has no position %d for accelerator %d", pos, l.rank)
		}
	}
	l.next++
	return &l.batch, nil
}

// Close does nothing: there are no goroutines.
func (l *Idle) Close() {}

// Wait does nothing.
func (l *Idle) Wait() {}
