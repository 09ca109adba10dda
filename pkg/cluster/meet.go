package cluster

import (
	"context"
	"fmt"
	"time"
)

// kind is what the processes meet for. It is the first thing that they compare: a barrier here and a broadcast there would wait for
// each other for ever.
type kind int64

const (
	kindBarrier kind = iota + 1
	kindAllreduce
	kindGather
	kindBroadcast
	kindClock
	kindEnd
)

func (k kind) String() string {
	switch k {
	case kindBarrier:
		return "a barrier"
	case kindAllreduce:
		return "a reduction"
	case kindGather:
		return "a gathering"
	case kindBroadcast:
		return "a broadcast"
	case kindClock:
		return "a comparison of clocks"
	case kindEnd:
		return "the end of their ranks"
	}
	return "something unknown"
}

// maxNumbers is how many numbers a reduction sends at a time.
const maxNumbers = 8 << 10

// Barrier returns nil once every process has called it.
func (w *World) Barrier(ctx context.Context) error { return w.meet(ctx, kindBarrier, 0, nil) }

// Allreduce replaces each number of v by that number of all processes combined; all give as many, and the same op.
func (w *World) Allreduce(ctx context.Context, v []int64, op Op) error {
	if op != Sum && op != Max {
		return fmt.Errorf("cluster: %v: expected %v or %v", op, Sum, Max)
	}
	return w.meet(ctx, kindAllreduce, int64(op)<<40|int64(len(v)), func(ctx context.Context) error {
		for len(v) > 0 {
			n := min(len(v), maxNumbers)
			if err := w.t.Allreduce(ctx, v[:n], op); err != nil {
				return err
			}
			v = v[n:]
		}
		return nil
	})
}

// meet brings the processes together for k, makes sure that all came for that and with the same detail, and runs f. In a world of one
// there is nobody to meet and f is not called.
func (w *World) meet(ctx context.Context, k kind, detail int64, f func(ctx context.Context) error) error {
	if !w.busy.CompareAndSwap(false, true) {
		err := fmt.Errorf("%w: process %d came to %v while it was in another meeting", ErrMisuse, w.rank, k)
		w.Abort(err)
		return err
	}
	defer w.busy.Store(false)
	if err := w.Err(); err != nil {
		return err
	}
	if w.t == nil {
		if ctx.Err() != nil {
			w.Abort(fmt.Errorf("cluster: stopped at %v: %w", k, context.Cause(ctx)))
		}
		return w.Err()
	}
	ctx, free := w.Context(ctx)
	defer free()
	w.header = [4]int64{int64(k), -int64(k), detail, -detail}
	err := w.t.Allreduce(ctx, w.header[:], Max)
	if err == nil {
		err = w.agreed(k)
	}
	if err == nil && f != nil {
		err = f(ctx)
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("cluster: stopped at %v: %w", k, context.Cause(ctx))
	}
	w.Abort(err) // nothing when the world has ended already
	return w.Err()
}

// agreed compares the headers of a meeting: the largest and, negated, the smallest of each number.
func (w *World) agreed(k kind) error {
	most, least := w.header[0], -w.header[1]
	if most != least {
		return fmt.Errorf("%w: some processes came to %v and others to %v; all must take the same steps (this one, process %d, came to %v)",
			ErrUneven, kind(least), kind(most), w.rank, k)
	}
	if w.header[2] != -w.header[3] {
		return fmt.Errorf("%w: the processes came to %v with different sizes, %d to %d", ErrUneven, k, -w.header[3], w.header[2])
	}
	return nil
}

// ClockOffset is how far a process's wall clock is ahead of process 0's.
type ClockOffset struct {
	Rank int
	Node string
	// Offset is that clock minus process 0's; the true one is within Uncertainty of it, as far as messages take equally long in both
	// directions at the extreme.
	Offset, Uncertainty time.Duration
}

// clockRounds is how many times each clock is asked; the quickest answer counts.
const clockRounds = 8

// ClockOffsets compares the wall clock of every process with that of process 0, as NTP does: process 0 asks, notes when it asked and
// when the answer came, and takes the middle of the quickest of several rounds. Every process gets all offsets, in the order of ranks;
// the first is 0. Each process is asked in turn: it takes some milliseconds for each.
func (w *World) ClockOffsets(ctx context.Context) ([]ClockOffset, error) {
	flat := make([]int64, 2*w.size)
	err := w.meet(ctx, kindClock, 0, func(ctx context.Context) error {
		var b [8]byte
		if w.rank != 0 {
			for range clockRounds {
				if err := w.t.Recv(ctx, 0, b[:]); err != nil {
					return err
				}
				putInt64(b[:], time.Now().UnixNano())
				if err := w.t.Send(ctx, 0, b[:]); err != nil {
					return err
				}
			}
			return nil
		}
		for rank := 1; rank < w.size; rank++ {
			for round := range clockRounds {
				asked := time.Now()
				if err := w.t.Send(ctx, rank, b[:]); err != nil {
					return err
				}
				if err := w.t.Recv(ctx, rank, b[:]); err != nil {
					return err
				}
				took := time.Since(asked)
				if half := int64(took+1) / 2; round == 0 || half < flat[2*rank+1] {
					flat[2*rank], flat[2*rank+1] = getInt64(b[:])-asked.UnixNano()-int64(took)/2, half
				}
			}
		}
		return nil
	})
	if err == nil {
		err = w.Allreduce(ctx, flat, Sum) // the others gave zeros
	}
	if err != nil {
		return nil, err
	}
	all := make([]ClockOffset, w.size)
	for i := range all {
		all[i] = ClockOffset{Rank: i, Node: w.NodeOf(i), Offset: time.Duration(flat[2*i]), Uncertainty: time.Duration(flat[2*i+1])}
	}
	return all, nil
}
