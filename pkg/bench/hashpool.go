package bench

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/bench/loader"
)

// hashing is one batch whose bytes are hashed.
type hashing struct {
	captures []*loader.Capture
	next     int          // of captures; guarded by the pool's lock
	left     atomic.Int64 // captures that are not hashed
	failed   atomic.Pointer[error]
	done     chan struct{} // has a token when all are
	ready    bool          // the token was taken

	// What the transcript needs when they are.
	evaluation bool
	epoch      int
	step       int64
	samples    []loader.Sample
	reads      []loader.Read
}

// hashPool is a small number of goroutines that hash the batches of all accelerators, in the order in which they were handed over. They
// leave a processor to the accelerators and their workers where there is more than one.
type hashPool struct {
	check func(h *hashing, c *loader.Capture) error

	mu     sync.Mutex
	more   sync.Cond
	queue  []*hashing
	closed bool

	workers         int
	wait            sync.WaitGroup
	cpu, bytes, all atomic.Int64 // nanoseconds of processor time; bytes; captures
}

// newHashPool starts the goroutines; close ends them. check is called with each capture that was hashed.
func newHashPool(check func(h *hashing, c *loader.Capture) error) *hashPool {
	p := &hashPool{check: check, workers: max(1, runtime.GOMAXPROCS(0)-1)}
	p.more.L = &p.mu
	for range p.workers {
		p.wait.Go(p.work)
	}
	return p
}

// add hands a batch over.
func (p *hashPool) add(h *hashing) {
	h.next = 0
	h.left.Store(int64(len(h.captures)))
	if len(h.captures) == 0 {
		h.done <- struct{}{}
		return
	}
	p.mu.Lock()
	p.queue = append(p.queue, h)
	p.mu.Unlock()
	if len(h.captures) == 1 {
		p.more.Signal()
	} else {
		p.more.Broadcast()
	}
}

// close ends the goroutines. What they have not begun stays as it is.
func (p *hashPool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.more.Broadcast()
	p.wait.Wait()
}

// take waits for the next capture; nil after close.
func (p *hashPool) take() (*hashing, *loader.Capture) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 && !p.closed {
		p.more.Wait()
	}
	if p.closed {
		return nil, nil
	}
	h := p.queue[0]
	c := h.captures[h.next]
	if h.next++; h.next == len(h.captures) {
		copy(p.queue, p.queue[1:])
		p.queue = p.queue[:len(p.queue)-1]
	}
	return h, c
}

func (p *hashPool) work() {
	x := loader.NewHasher()
	for {
		h, c := p.take()
		if h == nil {
			return
		}
		bytes := c.Bytes()
		// Processor time is that of a thread, so the goroutine keeps its own while it hashes.
		runtime.LockOSThread()
		start := threadTime()
		err := x.Hash(c)
		p.cpu.Add(threadTime() - start)
		runtime.UnlockOSThread()
		p.bytes.Add(bytes)
		p.all.Add(1)
		if err == nil {
			err = p.check(h, c)
		}
		if err != nil {
			first := err
			h.failed.CompareAndSwap(nil, &first)
		}
		if h.left.Add(-1) == 0 {
			h.done <- struct{}{} // has room: nobody hands a batch over again before it was taken
		}
		runtime.Gosched() // let accelerators run that woke up meanwhile
	}
}

// threadTime is the processor time of this thread in nanoseconds, or of the clock where the system does not tell.
func threadTime() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return time.Now().UnixNano()
	}
	return t.Nano()
}
