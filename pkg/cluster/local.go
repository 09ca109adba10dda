package cluster

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// MaxRanks is the largest number of ranks of one process.
const MaxRanks = 1 << 20

// Local is the ranks of one process: a group by themselves (NewLocal), or this process's part of a group that several processes make
// up (NewGroup). Its barrier allocates nothing: every rank has a channel of one place, and the last rank
// to arrive puts a token into each. The tokens are the sense of the barrier: a rank takes its token before it can arrive again, so
// an early rank can never pass the next barrier with the token of this one. An abort puts tokens too, and a rank looks at the group's
// error whenever it took one: waiting on one channel instead of three halves the cost of a barrier of hundreds of ranks.
//
// In a group of several processes the last rank of a process to arrive meets the other processes, one rank of each, before it puts the
// tokens: a barrier costs one meeting of processes, however many ranks each of them has.
type Local struct {
	members []Member
	// first is the number of the first rank, and size the number of ranks of all processes.
	first, size int
	// world is nil in a group of one process. ctx ends with the group, so that a meeting does.
	world *World
	ctx   context.Context
	end   context.CancelCauseFunc
	// unwatch stops looking at the end of the world.
	unwatch func() bool
	// state counts in one word, so that no interleaving can miss an uneven end: ranks waiting in the low half, ranks that left in
	// the high half.
	state atomic.Uint64
	// slots hold the values of a reduction, in two sets used in turn: a set is written again only after every rank has passed the
	// barrier that follows its reading. results are what they combine to.
	slots   [2][]int64
	results [2]int64

	abortOnce sync.Once
	aborted   chan struct{}
	err       error // set before aborted is closed
}

// oneLeft is one rank that left, in Local.state.
const oneLeft = 1 << 32

// Member is one rank of a Local group.
type Member struct {
	group *Local
	rank  int // in the whole group
	index int // in this process
	wake  chan struct{}
	// busy is true while the rank is in a barrier; a second goroutine in it is a fault that would otherwise hang the group.
	busy atomic.Bool
	// done is the channel of the context of the latest barrier, id its number among those of this rank, and stop ends its being
	// watched. The three are used by the rank's goroutine only.
	done <-chan struct{}
	id   uint64
	stop func() bool
	// inside is the id of the context of the barrier that the rank is in, 0 outside.
	inside atomic.Uint64
	// left is true once the rank has left.
	left atomic.Bool
	// round picks the set of slots of the next reduction. Used by the rank's goroutine only.
	round uint
	_     [24]byte // keeps neighbours off the same cache line
}

var (
	_ Cluster = (*Member)(nil)
	_ Reducer = (*Member)(nil)
)

// NewLocal makes a group of n ranks, 1 to MaxRanks.
func NewLocal(n int) (*Local, error) {
	if n < 1 || n > MaxRanks {
		return nil, fmt.Errorf("cluster: %d ranks: expected 1 to %d", n, MaxRanks)
	}
	l := &Local{members: make([]Member, n), size: n, aborted: make(chan struct{})}
	l.slots[0], l.slots[1] = make([]int64, n), make([]int64, n)
	for i := range l.members {
		l.members[i] = Member{group: l, rank: i, index: i, wake: make(chan struct{}, 1)}
	}
	return l, nil
}

// NewGroup makes one group of the ranks of all processes, of which this one brings n, 1 to MaxRanks; the others may bring more or fewer.
// It is collective. Ranks are numbered through in the order of processes. The error of any of them is the error of all: it ends the
// group in every process, and the world.
func NewGroup(ctx context.Context, w *World, n int) (*Local, error) {
	l, err := NewLocal(n)
	if err != nil {
		w.Abort(err) // the others would wait for ranks that do not come
		return nil, err
	}
	counts := make([]int64, w.Size())
	counts[w.Rank()] = int64(n)
	if err := w.Allreduce(ctx, counts, Sum); err != nil {
		return nil, err
	}
	if w.Size() == 1 {
		return l, nil
	}
	l.size = 0
	for process, count := range counts {
		if process == w.Rank() {
			l.first = l.size
		}
		l.size += int(count)
	}
	for i := range l.members {
		l.members[i].rank = l.first + i
	}
	l.world = w
	l.ctx, l.end = context.WithCancelCause(context.Background())
	l.unwatch = context.AfterFunc(w.ctx, func() { l.Abort(w.Err()) })
	return l, nil
}

// Size is the number of ranks of the whole group.
func (l *Local) Size() int { return l.size }

// Local is how many ranks this process has, and First the number of the first of them; the others follow it.
func (l *Local) Local() int { return len(l.members) }

// First is the number of this process's first rank.
func (l *Local) First() int { return l.first }

// Rank returns rank r of the group, and nil for a number that no rank of this process has.
func (l *Local) Rank(r int) *Member {
	if r < l.first || r >= l.first+len(l.members) {
		return nil
	}
	return &l.members[r-l.first]
}

// Abort ends the group with err, as Cluster.Abort. A nil err becomes ErrAborted.
func (l *Local) Abort(err error) {
	l.abortOnce.Do(func() {
		if err == nil {
			err = ErrAborted
		}
		l.err = err
		close(l.aborted)
		l.wake(-1)
		if l.world != nil {
			l.end(err)
			l.world.Abort(err)
		}
	})
}

// wake puts a token into every rank's channel but one rank's. A channel that is full wakes its rank just the same.
func (l *Local) wake(but int) {
	for i := range l.members {
		if i != but {
			select {
			case l.members[i].wake <- struct{}{}:
			default:
			}
		}
	}
}

// Err is the group's error: nil while it is whole.
func (l *Local) Err() error {
	select {
	case <-l.aborted:
		return l.err
	default:
		return nil
	}
}

// Aborted is closed when the group is aborted: what a rank does outside the barrier can stop with the others.
func (l *Local) Aborted() <-chan struct{} { return l.aborted }

// Run runs f once for each rank, each on its own goroutine, and waits for all of them. The first rank that returns an error or
// panics aborts the group, and Run returns that error, once, whatever the other ranks returned because of it. ctx, handed to f, is
// cancelled when the group is aborted, with the group's error as its cause. A rank whose f returned nil has left: if others wait for
// it then, or later, they get an error that wraps ErrUneven. In a group of several processes Run is collective: it returns nil when the
// ranks of all processes returned nil, and a process whose ranks have ended while those of another still wait for them is found out in
// the same way. A group can be run once.
func (l *Local) Run(ctx context.Context, f func(ctx context.Context, m *Member) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-l.aborted:
			cancel(l.err)
		case <-done:
		}
	}()
	var wg sync.WaitGroup
	for i := range l.members {
		m := &l.members[i]
		wg.Go(func() {
			if err := guard(ctx, m, f); err != nil {
				l.Abort(err)
				return
			}
			m.Leave()
		})
	}
	wg.Wait()
	if l.world != nil {
		defer l.unwatch()
		if l.Err() == nil {
			if err := l.world.meet(ctx, kindEnd, 0, nil); err != nil {
				l.Abort(err)
			}
		}
	}
	return l.Err()
}

// guard turns a panic of f into an error that names the rank: one rank's fault must stop all and be reported once.
func guard(ctx context.Context, m *Member, f func(ctx context.Context, m *Member) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("cluster: rank %d panicked: %v\n%s", m.rank, v, debug.Stack())
		}
	}()
	return f(ctx, m)
}

// Rank is this rank's number.
func (m *Member) Rank() int { return m.rank }

// Index is this rank's number among those of its process, from 0.
func (m *Member) Index() int { return m.index }

// Size is the number of ranks in the group.
func (m *Member) Size() int { return m.group.size }

// Abort ends the group, as Cluster.Abort.
func (m *Member) Abort(err error) { m.group.Abort(err) }

// Leave says that this rank comes to no further barrier. A group in which some have left and others wait is aborted with an error
// that wraps ErrUneven. Leaving twice does nothing.
func (m *Member) Leave() {
	if m.left.Swap(true) {
		return
	}
	if m.stop != nil {
		m.stop()
	}
	if s := m.group.state.Add(oneLeft); s%oneLeft != 0 {
		m.group.Abort(fmt.Errorf("%w: rank %d ended while %d others waited at the barrier; every rank must have the same number "+
			"of steps", ErrUneven, m.rank, s%oneLeft))
	}
}

// Barrier waits for all ranks, as Cluster.Barrier. A rank whose barrier was complete when the group was aborted gets the error too
// if it had not returned yet. It allocates nothing unless it fails, but for the meeting of processes where there are several.
func (m *Member) Barrier(ctx context.Context) error { return m.meet(ctx, 0, 0, nil) }

// meet is a barrier at which, unless op is 0, slots are combined into result.
func (m *Member) meet(ctx context.Context, op Op, round uint, slots []int64) error {
	l := m.group
	if m.left.Load() || !m.busy.CompareAndSwap(false, true) {
		l.Abort(fmt.Errorf("%w: rank %d came to the barrier twice at a time, or after it had left", ErrMisuse, m.rank))
		return l.err
	}
	defer m.outside()
	if done := ctx.Done(); done != m.done {
		m.observe(ctx)
	}
	m.inside.Store(m.id)
	// In this order: a context that is cancelled before inside was set is noticed here, and after that by its watcher.
	if ctx.Err() != nil {
		m.cancelled(ctx)
		return l.err
	}
	if err := l.Err(); err != nil {
		return err
	}
	s := l.state.Add(1)
	if left := s / oneLeft; left != 0 {
		l.Abort(fmt.Errorf("%w: rank %d came to a barrier that %d of %d ranks will never reach; every rank must have the same "+
			"number of steps", ErrUneven, m.rank, left, len(l.members)))
		return l.err
	}
	if int(s) == len(l.members) {
		// All others wait: nobody else touches the count, slots and results until the tokens are out.
		if err := l.complete(op, round, slots); err != nil {
			l.Abort(err)
			return l.err
		}
		l.state.Add(^uint64(len(l.members) - 1))
		l.wake(m.index)
		return nil
	}
	<-m.wake
	return l.Err()
}

// outside is the end of every barrier.
func (m *Member) outside() {
	m.inside.Store(0)
	m.busy.Store(false)
}

// observe makes the end of ctx abort the group while this rank is in a barrier with it, in place of the context before. It costs an
// allocation, once for each context.
func (m *Member) observe(ctx context.Context) {
	if m.stop != nil {
		m.stop()
	}
	m.done = ctx.Done()
	m.id++
	id := m.id
	m.stop = context.AfterFunc(ctx, func() {
		// The end of a context of an earlier barrier is none of this one's business.
		if m.inside.Load() == id {
			m.cancelled(ctx)
		}
	})
}

// cancelled aborts the group because ctx is done. Where the world has ended, that is why.
func (m *Member) cancelled(ctx context.Context) {
	if w := m.group.world; w != nil && w.Err() != nil {
		m.group.Abort(w.Err())
		return
	}
	m.group.Abort(fmt.Errorf("cluster: rank %d stopped at the barrier: %w", m.rank, context.Cause(ctx)))
}

// complete is what the last rank of a process does before it lets the others go: combine, and meet the other processes.
func (l *Local) complete(op Op, round uint, slots []int64) error {
	if op != 0 {
		combined := slots[0]
		for _, x := range slots[1:] {
			combined = op.Combine(combined, x)
		}
		l.results[round] = combined
	}
	switch {
	case l.world == nil:
		return nil
	case op == 0:
		return l.world.Barrier(l.ctx)
	}
	return l.world.Allreduce(l.ctx, l.results[round:round+1], op)
}

// Sum returns the sum of v over all ranks, as Reducer.Sum.
func (m *Member) Sum(ctx context.Context, v int64) (int64, error) { return m.reduce(ctx, v, Sum) }

// Max returns the largest v of all ranks, as Reducer.Max.
func (m *Member) Max(ctx context.Context, v int64) (int64, error) { return m.reduce(ctx, v, Max) }

// reduce returns the values of all ranks combined.
func (m *Member) reduce(ctx context.Context, v int64, op Op) (int64, error) {
	round := m.round % 2
	slots := m.group.slots[round]
	m.round++
	slots[m.index] = v
	if err := m.meet(ctx, op, round, slots); err != nil {
		return 0, err
	}
	return m.group.results[round], nil
}
