package loader

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
)

// perThread is how many batches TensorFlow's parallel interleave keeps of each thread, the one being made included.
const perThread = 2

// TensorFlow emulates DLIO's tensorflow loader for everything but tfrecord: W generators, each of which makes whole batches of its own
// samples, sample by sample; an interleave that takes a batch from each in turn; and behind it prefetch(n), if n > 0. A generator is at
// most two batches ahead of what was taken from it. With a sampler that deals batches to threads likewise, batch b comes from thread
// b mod W. A prefetched batch leaves room for its thread's next but one, so that n + 2W batches are in flight.
//
// A TensorFlow serves one accelerator; its methods are for one goroutine.
type TensorFlow struct {
	c     TensorFlowConfig
	epoch int
	order Order
	next  int64 // batch that Next delivers
	slots []slot
	queue []chan int64
	// begin starts an epoch of the prefetching goroutine, room has a token for each batch that prefetch may hold, full the batches in it.
	begin, room chan struct{}
	full        chan error
	stop        chan struct{}
	wait        sync.WaitGroup
}

// TensorFlowConfig describes one accelerator's loader. All fields must be given.
type TensorFlowConfig struct {
	Source *Source
	Rank   int
	// BatchSize is in samples, Steps is the number of batches of an epoch.
	BatchSize int
	Steps     int64
	// Threads is reader.read_threads, at least 1; Prefetch is reader.prefetch_size.
	Threads, Prefetch int
}

// NewTensorFlow makes the loader and starts its threads, which live until Close or until ctx ends.
func NewTensorFlow(ctx context.Context, c TensorFlowConfig) (*TensorFlow, error) {
	if c.Source == nil || c.BatchSize < 1 || c.Steps < 0 || c.Threads < 1 || c.Prefetch < 0 {
		return nil, fmt.Errorf("data loader of accelerator %d: expected a source, a batch of at least 1, at least 1 thread and no negative "+
			"prefetch; found batch %d, %d steps, %d threads, prefetch %d", c.Rank, c.BatchSize, c.Steps, c.Threads, c.Prefetch)
	}
	l := &TensorFlow{c: c, stop: make(chan struct{})}
	// One slot more than batches in flight: the loop still looks at the batch it took.
	l.slots = make([]slot, min(int64(c.Prefetch)+perThread*int64(c.Threads), c.Steps)+1)
	for i := range l.slots {
		l.slots[i].ready = make(chan error, 1)
	}
	l.queue = make([]chan int64, c.Threads)
	for i := range l.queue {
		q := make(chan int64, perThread)
		l.queue[i] = q
		w := newWorker(ctx, c.Source, c.Rank)
		l.wait.Go(func() { l.work(w, q) })
	}
	// Prefetch never holds more than the batches of an epoch, however many it is asked to.
	if prefetch := min(int64(c.Prefetch), c.Steps); prefetch > 0 {
		l.begin, l.room = make(chan struct{}), make(chan struct{}, prefetch)
		l.full = make(chan error, prefetch)
		for range prefetch {
			l.room <- struct{}{}
		}
		l.wait.Go(func() { l.prefetch(ctx) })
	}
	return l, nil
}

// Start begins an epoch: see Loader.
func (l *TensorFlow) Start(epoch int, order Order) {
	l.epoch, l.order, l.next = epoch, order, 0
	for b := range min(perThread*int64(l.c.Threads), l.c.Steps) {
		l.send(b)
	}
	if l.begin != nil && l.c.Steps > 0 {
		select {
		case l.begin <- struct{}{}:
		case <-l.stop:
		}
	}
}

// send hands batch b to its thread, if there is such a batch. The thread's queue has room: it never has more than perThread batches that
// nobody took.
func (l *TensorFlow) send(b int64) {
	if b < l.c.Steps {
		l.queue[b%int64(len(l.queue))] <- b
	}
}

// prefetch takes batches out of the interleave as long as there is room for them.
func (l *TensorFlow) prefetch(ctx context.Context) {
	for {
		select {
		case <-l.begin:
		case <-l.stop:
			return
		case <-ctx.Done():
			return
		}
		for b := range l.c.Steps {
			select {
			case <-l.room:
			case <-l.stop:
				return
			case <-ctx.Done():
				return
			}
			var err error
			select {
			case err = <-l.slots[b%int64(len(l.slots))].ready:
			case <-l.stop:
				return
			case <-ctx.Done():
				return
			}
			if err == nil {
				l.send(b + perThread*int64(l.c.Threads))
			}
			l.full <- err // has room: see l.room
			if err != nil {
				return
			}
		}
	}
}

// Next waits for the next batch: see Loader.
func (l *TensorFlow) Next(ctx context.Context) (*Batch, error) { return next(ctx, l) }

// Take is the first half of Next: see Halved.
func (l *TensorFlow) Take(ctx context.Context) (*Batch, error) {
	if l.next >= l.c.Steps {
		return nil, io.EOF
	}
	s := &l.slots[l.next%int64(len(l.slots))]
	from := s.ready
	if l.full != nil {
		from = l.full
	}
	if err := receive(ctx, from); err != nil {
		return nil, err
	}
	l.next++
	return &s.batch, nil
}

// Refill is the second half of Next: see Halved.
func (l *TensorFlow) Refill() {
	if l.full != nil {
		l.room <- struct{}{}
	} else {
		l.send(l.next - 1 + perThread*int64(l.c.Threads))
	}
}

// receive waits for an outcome or for the end of ctx.
func receive(ctx context.Context, from <-chan error) error {
	select {
	case err := <-from: // without looking at ctx, whose one lock all accelerators would meet at
		return err
	default:
	}
	select {
	case err := <-from:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close tells all goroutines to end: see Loader.
func (l *TensorFlow) Close() { close(l.stop) }

// Wait returns when they have: see Loader.
func (l *TensorFlow) Wait() { l.wait.Wait() }

func (l *TensorFlow) work(w *worker, queue <-chan int64) {
	defer w.end()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-l.stop:
			return
		case b := <-queue:
			runtime.Gosched() // let accelerators go to sleep first: see PyTorch
			s := &l.slots[b%int64(len(l.slots))]
			if s.batch.Samples == nil {
				s.batch = l.c.Source.newBatch(l.c.BatchSize, 1)
			}
			err := w.fill(&s.batch, l.order, l.epoch, b*int64(l.c.BatchSize))
			if err != nil {
				err = fmt.Errorf("accelerator %d, epoch %d, batch %d: %w", l.c.Rank, l.epoch, b+1, err)
			}
			s.ready <- err
		}
	}
}
