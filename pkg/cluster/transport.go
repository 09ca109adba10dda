package cluster

import (
	"context"
	"fmt"
)

// Op is how a reduction combines two numbers.
type Op int

const (
	// Sum adds; an overflow wraps.
	Sum Op = iota + 1
	// Max takes the larger.
	Max
)

// Combine returns a and b combined.
func (o Op) Combine(a, b int64) int64 {
	if o == Max {
		return max(a, b)
	}
	return a + b
}

func (o Op) String() string {
	switch o {
	case Sum:
		return "sum"
	case Max:
		return "max"
	}
	return fmt.Sprintf("operation %d", int(o))
}

// Transport carries what processes say to each other. A World calls all but Abort from one goroutine at a time, in an order that is
// the same for every process, and never after Abort. Every call blocks until it is done, or until ctx is: it then returns the context's
// cause at once, and the transport is good for nothing but Abort.
type Transport interface {
	// Allreduce replaces each number of v by that number of all processes combined. All give as many, and the same op.
	Allreduce(ctx context.Context, v []int64, op Op) error
	// Send hands p to process to, where a Recv with as many bytes takes it. Messages from one process to another keep their order.
	Send(ctx context.Context, to int, p []byte) error
	// Recv fills p with the next message from process from.
	Recv(ctx context.Context, from int, p []byte) error
	// Abort tells every other process that this one has given up, and why: they find it in their Place.Notices, whatever they are
	// doing. It returns at once, may be called while another call blocks, and is called once at most.
	Abort(reason string)
}

// Place is where a process stands in its world.
type Place struct {
	// Rank is the number of this process, 0 to Size-1, and Size the number of processes.
	Rank, Size int
	// Node names the host that the process runs on. It is for people and for counting hosts: processes with equal names share one.
	Node string
	// Notices delivers the aborts of other processes, and whatever else the transport finds out about their end. The first counts.
	Notices <-chan Notice
}

// Notice is the news that a process has ended the world.
type Notice struct {
	// Rank is the process that gave up or was lost, -1 when nobody knows.
	Rank   int
	Reason string
}

// ProcessError is the error of a world that another process has ended.
type ProcessError struct {
	// Rank is the process, -1 when nobody knows which; Node is its host, empty when nobody knows that.
	Rank   int
	Node   string
	Reason string
}

func (e *ProcessError) Error() string {
	if e.Rank < 0 {
		return e.Reason
	}
	return fmt.Sprintf("%s: %s", processName(e.Rank, e.Node), e.Reason)
}

// processName is how messages name a process.
func processName(rank int, node string) string {
	if node == "" {
		return fmt.Sprintf("process %d", rank)
	}
	return fmt.Sprintf("process %d on %s", rank, node)
}
