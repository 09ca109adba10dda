package loader

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
)

// PyTorch emulates torch.utils.data.DataLoader as DLIO uses it (persistent workers, drop_last): every worker fetches
// whole batches, sample by sample; batch b belongs to worker b mod W; Workers x Prefetch batches are in flight, counted from
// the batch that the training loop took last; delivery is in order; every epoch starts with empty queues. Without workers a
// batch is read when the training loop asks for it, and not before. (A goroutine reads it all the same, so that a store that
// hangs can never hold the loop: it always notices that the run has ended.)
//
// A PyTorch serves one accelerator; its methods are for one goroutine.
type PyTorch struct {
	c     PyTorchConfig
	epoch int
	order Order
	ahead int64 // batches in flight: 0 without workers
	sent  int64 // batches handed to workers in this epoch
	next  int64 // batch that Next delivers
	slots []slot
	queue []chan int64
	wait  sync.WaitGroup
}

// PyTorchConfig describes one accelerator's loader. All fields must be given.
type PyTorchConfig struct {
	Source *Source
	Rank   int
	// BatchSize is in samples, Steps is the number of batches of an epoch.
	BatchSize int
	Steps     int64
	// Workers is reader.read_threads; Prefetch is the factor for each worker (PrefetchFactor).
	Workers, Prefetch int
}

type slot struct {
	batch Batch
	ready chan error
}

// PrefetchFactor is torch's prefetch_factor as DLIO derives it from reader.prefetch_size and reader.read_threads:
// ceil(size / workers), and 2 where that is 0. It is 0 without workers, where nothing is prefetched.
func PrefetchFactor(size, workers int) int {
	if workers <= 0 {
		return 0
	}
	if size <= 0 {
		return 2
	}
	return (size + workers - 1) / workers
}

// NewPyTorch makes the loader and starts its workers, which live until Close or until ctx ends.
func NewPyTorch(ctx context.Context, c PyTorchConfig) (*PyTorch, error) {
	if c.Source == nil || c.BatchSize < 1 || c.Steps < 0 || c.Workers < 0 || (c.Workers > 0 && c.Prefetch < 1) {
		return nil, fmt.Errorf("data loader of accelerator %d: expected a source, a batch of at least 1, and a prefetch factor of at "+
			"least 1 where there are workers; found batch %d, %d steps, %d workers, prefetch factor %d",
			c.Rank, c.BatchSize, c.Steps, c.Workers, c.Prefetch)
	}
	// No queue holds more than the batches of an epoch, however far ahead the workload asks to read.
	prefetch := min(int64(c.Prefetch), c.Steps)
	l := &PyTorch{c: c, ahead: min(int64(c.Workers)*prefetch, c.Steps)}
	// One slot more than batches in flight: the loop still looks at the batch it took while its successor is being read.
	l.slots = make([]slot, l.ahead+1)
	for i := range l.slots {
		l.slots[i].ready = make(chan error, 1)
	}
	l.queue = make([]chan int64, max(c.Workers, 1))
	for i := range l.queue {
		q := make(chan int64, max(prefetch, 1))
		l.queue[i] = q
		w := newWorker(ctx, c.Source, c.Rank)
		l.wait.Go(func() { l.work(w, q) })
	}
	return l, nil
}

// Start begins epoch (counted from 1) with empty queues: it hands the first batches to the workers and returns at once. It
// must not be called before the last batch of the epoch before was delivered.
func (l *PyTorch) Start(epoch int, order Order) {
	l.epoch, l.order, l.sent, l.next = epoch, order, 0, 0
	for range l.ahead {
		l.send()
	}
}

// send hands the next batch, if there is one, to the worker whose turn it is. Its queue has room: a worker never has more
// than Prefetch batches that were not delivered.
func (l *PyTorch) send() {
	if l.sent < l.c.Steps {
		l.queue[l.sent%int64(len(l.queue))] <- l.sent
		l.sent++
	}
}

// Next waits for the next batch in order. It returns io.EOF after the last batch of the epoch, the error of the worker that
// read the batch, or the cause of ctx.
func (l *PyTorch) Next(ctx context.Context) (*Batch, error) { return next(ctx, l) }

// Take is the first half of Next: see Halved.
func (l *PyTorch) Take(ctx context.Context) (*Batch, error) {
	if l.next >= l.c.Steps {
		return nil, io.EOF
	}
	if l.ahead == 0 {
		l.send()
	}
	s := &l.slots[l.next%int64(len(l.slots))]
	if err := receive(ctx, s.ready); err != nil {
		return nil, err
	}
	l.next++
	return &s.batch, nil
}

// Refill is the second half of Next: see Halved.
func (l *PyTorch) Refill() {
	if l.ahead > 0 {
		l.send()
	}
}

// Close tells the workers to end. It does not wait for them: see Wait.
func (l *PyTorch) Close() {
	for _, q := range l.queue {
		close(q)
	}
	l.queue = nil
}

// Wait returns when all workers have ended after Close. A read that hangs in the store delays it.
func (l *PyTorch) Wait() { l.wait.Wait() }

func (l *PyTorch) work(w *worker, queue <-chan int64) {
	defer w.end()
	for {
		select {
		case <-w.ctx.Done():
			return
		case b, ok := <-queue:
			if !ok {
				return
			}
			// Let the accelerators run first that wait for a processor: they only have to go to sleep, and a read in between would
			// make the whole group later. With hundreds of them on few cores this is most of what the engine costs.
			runtime.Gosched()
			// The slot is free: this batch was handed out only after the slot's last batch had been left behind.
			s := &l.slots[b%int64(len(l.slots))]
			s.ready <- l.fill(w, s, b)
		}
	}
}

// fill reads batch b into s. l.epoch and l.order are read by workers only between Start, which hands out the first batch
// of an epoch, and the delivery of its last.
func (l *PyTorch) fill(w *worker, s *slot, b int64) error {
	if s.batch.Samples == nil {
		s.batch = l.c.Source.newBatch(l.c.BatchSize, 1)
	}
	if err := w.fill(&s.batch, l.order, l.epoch, b*int64(l.c.BatchSize)); err != nil {
		return fmt.Errorf("accelerator %d, epoch %d, batch %d: %w", l.c.Rank, l.epoch, b+1, err)
	}
	return nil
}
