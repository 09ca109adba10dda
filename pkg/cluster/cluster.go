// Package cluster is how the accelerators of a run meet: ranks, the barrier that ends every step, and the few reductions that a
// run needs; and how the processes that carry them meet, on one host or many. It is for the engine's loop and anything else that must
// stop together.
//
// What can go wrong in a meeting is made an error here and never a wait for ever: a rank that fails aborts the group and every
// rank gets that one error at once; a cancelled context does the same; a rank that has left while others still wait is found out
// and named. The package never starts a run's clock, never looks at data, and never carries the data set between processes.
//
// Local is the ranks of one process, alone or in a group with those of others. World is the processes: what they compare, gather and
// broadcast. It speaks through a Transport; the one over MPI is in the package below this one, and nothing here knows of MPI.
package cluster

import (
	"context"
	"errors"
)

// Cluster is one rank's place in a group. Its methods are called by that rank's goroutine only; Abort may be called by anyone.
type Cluster interface {
	// Rank is this rank's number, 0 to Size-1.
	Rank() int
	// Size is the number of ranks in the group, at least 1.
	Size() int
	// Barrier returns nil once every rank of the group has called it. It returns the group's error at once when the group is
	// aborted before that, and aborts the group itself when ctx is done: a group that missed one meeting never meets again.
	Barrier(ctx context.Context) error
	// Abort ends the group: every Barrier, waiting or to come, returns err. Only the first call counts.
	Abort(err error)
}

// Reducer is a group that can also combine numbers. Every rank must take part, in the same order of calls.
type Reducer interface {
	// Sum returns the sum of every rank's v. Integers only, so the order of ranks cannot show in the result; an overflow wraps.
	Sum(ctx context.Context, v int64) (int64, error)
	// Max returns the largest of every rank's v.
	Max(ctx context.Context, v int64) (int64, error)
}

// ErrAborted is what a group's error wraps when it was aborted without a reason of its own.
var ErrAborted = errors.New("cluster: the group was aborted")

// ErrUneven is what a group's error wraps when some ranks ended while others still waited for them at the barrier.
var ErrUneven = errors.New("cluster: ranks took different numbers of steps")

// ErrMisuse is what a group's error wraps when one rank was used by two goroutines at a time, or after it had left.
var ErrMisuse = errors.New("cluster: a rank was used wrongly")

// ErrClosed is the error of a world that this process has left.
var ErrClosed = errors.New("cluster: this process has left its world")
