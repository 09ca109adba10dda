package cluster

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// MaxProcesses is the largest number of processes of a world.
const MaxProcesses = 1 << 16

// maxReason bounds the text that an abort carries, in bytes.
const maxReason = 4 << 10

// World is the processes of one job, seen from one of them. Its collective methods (all that take a context, but Context) are called by
// every process in the same order, by one goroutine at a time; what begins with different calls in different processes is found out and
// is an error in all of them, never a wait. Any error of a collective method ends the world: every process gets it, naming the process
// whose it was, and every later call returns it at once.
type World struct {
	rank, size int
	node       string
	nodes      atomic.Pointer[[]string] // of all processes, once they are known
	t          Transport                // nil in a world of one

	busy   atomic.Bool
	header [4]int64 // what a meeting begins with; used by the one goroutine that is in a collective method

	once   sync.Once
	ctx    context.Context // ends with the world, with its error as the cause
	cancel context.CancelCauseFunc
}

// Alone is the world of a process that was started by itself: rank 0 of 1.
func Alone() *World {
	w := &World{size: 1}
	w.nodes.Store(&[]string{""})
	w.ctx, w.cancel = context.WithCancelCause(context.Background())
	return w
}

// New makes the world of the processes that t connects. It is collective: it returns when all have called it and know the names of each
// other's nodes.
func New(ctx context.Context, p Place, t Transport) (*World, error) {
	if p.Size < 1 || p.Size > MaxProcesses || p.Rank < 0 || p.Rank >= p.Size {
		return nil, fmt.Errorf("cluster: process %d of %d: expected 1 to %d processes, numbered from 0", p.Rank, p.Size, MaxProcesses)
	}
	if t == nil && p.Size > 1 {
		return nil, fmt.Errorf("cluster: %d processes without a transport", p.Size)
	}
	w := Alone()
	w.rank, w.size, w.node = p.Rank, p.Size, p.Node
	unknown := make([]string, p.Size)
	unknown[p.Rank] = p.Node
	w.nodes.Store(&unknown)
	if p.Size > 1 {
		w.t = t
	}
	if p.Notices != nil {
		go w.listen(p.Notices)
	}
	if err := w.exchangeNodes(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// listen ends the world with the first notice.
func (w *World) listen(notices <-chan Notice) {
	select {
	case n, ok := <-notices:
		if !ok {
			return
		}
		e := &ProcessError{Rank: n.Rank, Reason: n.Reason, Node: w.NodeOf(n.Rank)}
		w.once.Do(func() { w.cancel(e) })
	case <-w.ctx.Done():
	}
}

// Rank is the number of this process, 0 to Size-1. Process 0 is the one that writes what there is one of.
func (w *World) Rank() int { return w.rank }

// Size is the number of processes, at least 1.
func (w *World) Size() int { return w.size }

// Node names the host of this process; it is empty in a world that nobody gave names.
func (w *World) Node() string { return w.node }

// NodeOf names the host of a process; it is empty where nobody knows it.
func (w *World) NodeOf(rank int) string {
	nodes := *w.nodes.Load()
	if rank < 0 || rank >= len(nodes) {
		return ""
	}
	return nodes[rank]
}

// OnNode counts the processes on this one's host, and says which of them, from 0, this one is: the first does what is to be done once
// for each host.
func (w *World) OnNode() (index, count int) {
	for rank, node := range *w.nodes.Load() {
		if node == w.node {
			count++
			if rank < w.rank {
				index++
			}
		}
	}
	return index, count
}

// Err is the world's error: nil while it is whole.
func (w *World) Err() error { return context.Cause(w.ctx) }

// Context returns a context that ends with ctx and with the world, whose error is then its cause: whatever a process does between two
// meetings stops with the others. The returned function frees what watches; call it when done.
func (w *World) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	joined, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(w.ctx, func() { cancel(w.Err()) })
	return joined, func() {
		stop()
		cancel(nil)
	}
}

// Abort ends the world for all processes: every call, waiting or to come, returns an error with err's text and this process's name, and
// err itself in this process. Only the first abort counts, be it here or elsewhere. A nil err becomes ErrAborted. Anyone may call it at
// any time; it does not wait.
func (w *World) Abort(err error) {
	w.once.Do(func() {
		if err == nil {
			err = ErrAborted
		}
		w.cancel(err)
		if w.t != nil {
			w.t.Abort(Bounded(err.Error()))
		}
	})
}

// Close ends the world for this process only, which tells nobody: it is for a process that has met the others for the last time.
func (w *World) Close() { w.once.Do(func() { w.cancel(ErrClosed) }) }

// Bounded cuts the text of an abort to what one message carries.
func Bounded(s string) string {
	if len(s) <= maxReason {
		return s
	}
	s = s[:maxReason]
	for len(s) > 0 && !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}
