package loader

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
)

// DALI emulates DLIO's dali and native_dali loaders: the samples of each batch are shared by W threads, and Depth batches are in flight,
// counted from the one that the training loop took last. The sample at position p of the epoch belongs to thread p mod W.
//
// A DALI serves one accelerator; its methods are for one goroutine.
type DALI struct {
	c     DALIConfig
	epoch int
	order Order
	ahead int64
	sent  int64
	next  int64
	slots []shared
	queue []chan int64
	stop  chan struct{}
	wait  sync.WaitGroup
}

// DALIConfig describes one accelerator's loader. All fields must be given.
type DALIConfig struct {
	Source *Source
	Rank   int
	// BatchSize is in samples, Steps is the number of batches of an epoch.
	BatchSize int
	Steps     int64
	// Threads is reader.read_threads, at least 1; Depth the depth of the prefetch queue, at least 1 (QueueDepth).
	Threads, Depth int
}

// QueueDepth is DALI's prefetch_queue_depth as DLIO derives it from reader.prefetch_size: 2 where that is 0.
func QueueDepth(size int) int {
	if size <= 0 {
		return 2
	}
	return size
}

// shared is a slot that all threads work on.
type shared struct {
	slot
	parts []work
	errs  []error
	left  atomic.Int64 // threads that are not done
}

// NewDALI makes the loader and starts its threads, which live until Close or until ctx ends.
func NewDALI(ctx context.Context, c DALIConfig) (*DALI, error) {
	if c.Source == nil || c.BatchSize < 1 || c.Steps < 0 || c.Threads < 1 || c.Depth < 1 {
		return nil, fmt.Errorf("data loader of accelerator %d: expected a source, a batch, a thread and a queue of at least 1 each; found "+
			"batch %d, %d steps, %d threads, queue %d", c.Rank, c.BatchSize, c.Steps, c.Threads, c.Depth)
	}
	l := &DALI{c: c, ahead: min(int64(c.Depth), c.Steps), stop: make(chan struct{})}
	l.slots = make([]shared, l.ahead+1)
	for i := range l.slots {
		l.slots[i].ready = make(chan error, 1)
		l.slots[i].parts, l.slots[i].errs = make([]work, c.Threads), make([]error, c.Threads)
	}
	l.queue = make([]chan int64, c.Threads)
	for i := range l.queue {
		q := make(chan int64, l.ahead)
		l.queue[i] = q
		w := newWorker(ctx, c.Source, c.Rank)
		l.wait.Go(func() { l.work(w, i, q) })
	}
	return l, nil
}

// Start begins an epoch: see Loader.
func (l *DALI) Start(epoch int, order Order) {
	l.epoch, l.order, l.sent, l.next = epoch, order, 0, 0
	for range l.ahead {
		l.send()
	}
}

// send hands the next batch, if there is one, to all threads. Their queues have room for all batches in flight.
func (l *DALI) send() {
	if l.sent == l.c.Steps {
		return
	}
	s := &l.slots[l.sent%int64(len(l.slots))]
	if s.batch.Samples == nil {
		s.batch = l.c.Source.newBatch(l.c.BatchSize, l.c.Threads)
	}
	s.left.Store(int64(len(l.queue)))
	for _, q := range l.queue {
		q <- l.sent
	}
	l.sent++
}

// Next waits for the next batch: see Loader.
func (l *DALI) Next(ctx context.Context) (*Batch, error) { return next(ctx, l) }

// Take is the first half of Next: see Halved.
func (l *DALI) Take(ctx context.Context) (*Batch, error) {
	if l.next >= l.c.Steps {
		return nil, io.EOF
	}
	s := &l.slots[l.next%int64(len(l.slots))]
	if err := receive(ctx, s.ready); err != nil {
		return nil, err
	}
	l.next++
	return &s.batch, nil
}

// Refill is the second half of Next: see Halved.
func (l *DALI) Refill() { l.send() }

// Close tells all goroutines to end: see Loader.
func (l *DALI) Close() { close(l.stop) }

// Wait returns when they have: see Loader.
func (l *DALI) Wait() { l.wait.Wait() }

func (l *DALI) work(w *worker, thread int, queue <-chan int64) {
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
			first, threads := b*int64(l.c.BatchSize), int64(len(l.queue))
			from := (int64(thread) - first%threads + threads) % threads
			s.errs[thread] = w.part(&s.batch, thread, l.order, l.epoch, first, int(from), len(l.queue), &s.parts[thread])
			if s.left.Add(-1) == 0 {
				s.ready <- l.join(s, b)
			}
		}
	}
}

// join adds up what the threads did for a batch, and returns the error of the first thread that has one.
func (l *DALI) join(s *shared, b int64) error {
	var sum work
	for i := range s.parts {
		if err := s.errs[i]; err != nil {
			return fmt.Errorf("accelerator %d, epoch %d, batch %d: %w", l.c.Rank, l.epoch, b+1, err)
		}
		sum.open += s.parts[i].open
		sum.read += s.parts[i].read
		sum.decode += s.parts[i].decode
		sum.preprocess += s.parts[i].preprocess
		if begun := s.parts[i].begun; begun > 0 && (sum.begun == 0 || begun < sum.begun) { // a thread without samples began nothing
			sum.begun = begun
		}
		sum.ready = max(sum.ready, s.parts[i].ready)
	}
	s.batch.Open, s.batch.Read, s.batch.Decode, s.batch.Preprocess = sum.open, sum.read, sum.decode, sum.preprocess
	s.batch.Begun, s.batch.Ready = sum.begun, sum.ready
	return nil
}
