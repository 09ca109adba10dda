//go:build mpi && cgo

package mpi

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/benchpin/benchpin/pkg/cluster"
)

// process is this process's link to the others.
type process struct {
	t     *thread
	world *cluster.World
}

// join starts the library and makes the world.
func join(ctx context.Context, l Launcher) (*Process, error) {
	t, err := startThread(ctx)
	if err != nil {
		return nil, err
	}
	if l.Size > 0 && t.size != l.Size {
		return nil, fmt.Errorf("%w: %s, and the library (%s) sees %d: use that library's launcher (mpirun.mpich or mpirun.openmpi where both "+
			"are installed; srun --mpi=pmix or --mpi=pmi2), or build benchpin with the launcher's library", ErrLauncher, l, firstLine(Library()), t.size)
	}
	w, err := cluster.New(ctx, cluster.Place{Rank: t.rank, Size: t.size, Node: t.node, Notices: t.notices}, transport{t})
	if err != nil {
		return nil, err
	}
	return &Process{world: w, link: &process{t, w}}, nil
}

// firstLine is what a message shows of a library's version: its name and number.
func firstLine(version string) string {
	line, _, _ := strings.Cut(version, "\n")
	line, _, _ = strings.Cut(line, ",")
	return strings.Join(strings.Fields(line), " ")
}

// transport is the world's way through the thread.
type transport struct{ t *thread }

func (x transport) Allreduce(ctx context.Context, v []int64, op cluster.Op) error {
	if len(v) == 0 {
		return nil
	}
	return x.do(&call{ctx: ctx, v: v, op: op})
}

func (x transport) Send(ctx context.Context, to int, p []byte) error {
	return x.do(&call{ctx: ctx, p: p, peer: to})
}

func (x transport) Recv(ctx context.Context, from int, p []byte) error {
	return x.do(&call{ctx: ctx, p: p, peer: from, recv: true})
}

func (x transport) do(c *call) error {
	c.answer = make(chan error, 1)
	x.t.calls <- c
	return <-c.answer
}

func (x transport) Abort(reason string) { x.t.aborts <- reason }

// end is Process.End.
func (p *process) end(code int, reason error) int {
	failing := p.world.Err() != nil
	if reason != nil && !failing {
		failing = true
		p.t.fails <- cluster.Bounded(reason.Error())
	}
	var other *cluster.ProcessError
	e := &ending{bye: bye{code: code, foreign: errors.As(p.world.Err(), &other)}, failing: failing, answer: make(chan int, 1)}
	p.t.ends <- e
	code = <-e.answer
	p.world.Close()
	return code
}

// end waits until all processes have come to their end, and ends the library. A failure anywhere sets the time that is left for it.
func (t *thread) end(e *ending) int {
	select { // a failure that was told a moment ago
	case reason := <-t.aborts:
		t.tellAll(sayAbort, reason)
	case reason := <-t.fails:
		t.tellAll(sayFail, reason)
	default:
	}
	t.over = t.over || e.failing
	own := e.bye
	own.dirty = t.dirty
	if t.rank == 0 {
		t.byes[0] = own
	} else {
		t.tell(0, sayBye, own.bytes())
	}
	var since time.Time
	limit := endLimit
	if t.rank != 0 {
		limit += endLimit / 3 // process 0 decides, if it lives
	}
	for t.leave == nil {
		t.listen()
		if t.rank == 0 && len(t.byes) == t.size {
			t.leave = t.allReady()
			t.tellAll(sayGo, string(t.leave.bytes()))
			break
		}
		if t.rank == 0 && len(t.lost) > 0 && t.allButLost() {
			return t.force(t.allReady().code, "")
		}
		if t.over && since.IsZero() {
			since = time.Now()
		}
		if !since.IsZero() && time.Since(since) > limit {
			return t.force(e.code, fmt.Sprintf("not all processes came to their end within %v of a failure: ending them all", limit))
		}
		time.Sleep(endingEvery)
	}
	return t.depart(*t.leave)
}

// allButLost is true when every process has said its last word but those that cannot.
func (t *thread) allButLost() bool {
	for rank := range t.size {
		if _, said := t.byes[rank]; !said && !t.lost[rank] {
			return false
		}
	}
	return true
}

// allReady is what all processes end with, once all have said theirs: the code of process 0, or where that is 0 the largest; but a process
// that only ends with the others does not count beside those that have a code of their own.
func (t *thread) allReady() *bye {
	first := t.byes[0]
	all := bye{}
	own := 0
	for _, b := range t.byes {
		all.dirty = all.dirty || b.dirty
		all.code = max(all.code, b.code)
		if !b.foreign {
			own = max(own, b.code)
		}
	}
	switch {
	case !first.foreign && first.code != 0:
		all.code = first.code
	case own != 0:
		all.code = own
	}
	return &all
}

// depart ends the library. Where an operation was left in the middle it cannot end in order, and process 0 makes an end.
func (t *thread) depart(b bye) int {
	for until := time.Now().Add(politeness); time.Now().Before(until); time.Sleep(endingEvery) {
		t.listen()
		var pending C.int
		if code := C.shim_control_pending(&pending); len(t.outbox) == 0 && (code != 0 || pending == 0) {
			break
		}
	}
	if b.dirty {
		if t.rank == 0 {
			return t.force(b.code, "")
		}
		time.Sleep(endLimit / 3) // process 0 ends this one meanwhile
		return b.code
	}
	// All has been said and written: what the library does at its end can only be in the way.
	stuck := time.AfterFunc(endLimit/3, func() {
		fmt.Fprintf(os.Stderr, "benchpin: the MPI library did not end within %v; what the job has done is complete\n", endLimit/3)
		os.Exit(b.code)
	})
	defer stuck.Stop()
	if code := C.shim_finish(); code != 0 {
		return max(b.code, 1)
	}
	return b.code
}

// force ends all processes of the job. It does not return unless the library fails in this too.
func (t *thread) force(code int, why string) int {
	if why != "" {
		fmt.Fprintln(os.Stderr, "benchpin: "+why)
	}
	code = max(code, 1)
	stuck := time.AfterFunc(endLimit/3, func() { os.Exit(code) })
	defer stuck.Stop()
	C.shim_abort(C.int(code))
	return code
}
