// Package clustertest runs several processes of a world inside one, over memory, for tests: as many goroutines, which may be in a
// testing/synctest bubble. It never leaves out what a real transport does to its users: messages are copied, a send waits for its
// receiver, and a process that is killed is found out by the others.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/benchpin/benchpin/pkg/cluster"
)

// Net connects the processes of one world in memory.
type Net struct {
	places  []cluster.Place
	notices []chan cluster.Notice
	pipes   [][]chan message // from, to
	killed  []chan struct{}  // closed when that process was killed
	once    []sync.Once

	mu    sync.Mutex
	round *round
}

// message is one under way: its receiver copies the bytes and closes taken.
type message struct {
	p     []byte
	taken chan struct{}
}

// round is one Allreduce.
type round struct {
	v      []int64
	op     cluster.Op
	joined int
	done   chan struct{}
	err    error
}

// New connects n processes. Their nodes are named node0, node1, ... with perNode processes on each, all on one where perNode is 0.
func New(n, perNode int) *Net {
	t := &Net{places: make([]cluster.Place, n), notices: make([]chan cluster.Notice, n), pipes: make([][]chan message, n),
		killed: make([]chan struct{}, n), once: make([]sync.Once, n)}
	for i := range n {
		node := 0
		if perNode > 0 {
			node = i / perNode
		}
		t.notices[i] = make(chan cluster.Notice, n)
		t.places[i] = cluster.Place{Rank: i, Size: n, Node: fmt.Sprintf("node%d", node), Notices: t.notices[i]}
		t.killed[i] = make(chan struct{})
		t.pipes[i] = make([]chan message, n)
		for j := range n {
			t.pipes[i][j] = make(chan message)
		}
	}
	return t
}

// World joins the world as process rank. It is collective.
func (t *Net) World(ctx context.Context, rank int) (*cluster.World, error) {
	return cluster.New(ctx, t.places[rank], &transport{t, rank})
}

// Kill ends a process as the kernel would, without a word of its own: whatever it sends from now on is lost, it hears nothing, and the
// others get a notice, as a launcher gives.
func (t *Net) Kill(rank int) {
	t.once[rank].Do(func() {
		close(t.killed[rank])
		t.tell(rank, "it was killed")
	})
}

// tell gives all others a notice.
func (t *Net) tell(rank int, reason string) {
	for i, c := range t.notices {
		if i != rank {
			select {
			case c <- cluster.Notice{Rank: rank, Reason: reason}:
			default: // it has more of them than there are processes
			}
		}
	}
}

// Run runs f as each of n processes, all on one node, and returns what each returned, joined; a process whose f ends with an error
// ends the world.
func Run(ctx context.Context, n int, f func(ctx context.Context, w *cluster.World) error) error {
	return New(n, 0).Run(ctx, f)
}

// Run is Run over t.
func (t *Net) Run(ctx context.Context, f func(ctx context.Context, w *cluster.World) error) error {
	errs := make([]error, len(t.places))
	var wg sync.WaitGroup
	for rank := range t.places {
		wg.Go(func() {
			w, err := t.World(ctx, rank)
			if err != nil {
				errs[rank] = err
				return
			}
			defer w.Close()
			joined, free := w.Context(ctx)
			defer free()
			if errs[rank] = f(joined, w); errs[rank] != nil {
				w.Abort(errs[rank])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ErrKilled is what a killed process gets from its transport.
var ErrKilled = errors.New("clustertest: this process was killed")

// transport is one process's.
type transport struct {
	net  *Net
	rank int
}

func (t *transport) Allreduce(ctx context.Context, v []int64, op cluster.Op) error {
	n := t.net
	n.mu.Lock()
	if n.round == nil {
		n.round = &round{v: slices.Clone(v), op: op, done: make(chan struct{})}
	} else if r := n.round; len(v) != len(r.v) || op != r.op {
		r.err = fmt.Errorf("clustertest: a reduction of %d numbers by %v met one of %d by %v", len(v), op, len(r.v), r.op)
	} else {
		for i := range v {
			r.v[i] = op.Combine(r.v[i], v[i])
		}
	}
	r := n.round
	if r.joined++; r.joined == len(n.places) {
		n.round = nil
		close(r.done)
	}
	n.mu.Unlock()
	select {
	case <-r.done:
		copy(v, r.v)
		return r.err
	case <-n.killed[t.rank]:
		return ErrKilled
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *transport) Send(ctx context.Context, to int, p []byte) error {
	m := message{p, make(chan struct{})}
	select {
	case t.net.pipes[t.rank][to] <- m:
	case <-t.net.killed[t.rank]:
		return ErrKilled
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	<-m.taken // its receiver is copying
	return nil
}

func (t *transport) Recv(ctx context.Context, from int, p []byte) error {
	select {
	case m := <-t.net.pipes[from][t.rank]:
		n := copy(p, m.p)
		close(m.taken)
		if n != len(p) || n != len(m.p) {
			return fmt.Errorf("clustertest: process %d sent %d bytes where process %d expected %d", from, len(m.p), t.rank, len(p))
		}
		return nil
	case <-t.net.killed[t.rank]:
		return ErrKilled
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *transport) Abort(reason string) {
	select {
	case <-t.net.killed[t.rank]:
	default:
		t.net.tell(t.rank, reason)
	}
}
