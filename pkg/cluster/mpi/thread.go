//go:build mpi && cgo

package mpi

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"github.com/benchpin/benchpin/pkg/cluster"
)

// Time limits: how long a start may take, after what silence a process counts as lost, and how long processes may take to put away what
// they have when the world has ended.
const (
	startLimit   = 2 * time.Minute
	silenceLimit = 20 * time.Second
	endLimit     = 15 * time.Second
)

const (
	// beatEvery is how often a process tells the next one that it lives.
	beatEvery = time.Second
	// idleEvery is how often an idle process lets the library work and listens.
	idleEvery = 50 * time.Millisecond
	// endingEvery is the same for a process that waits for the others' end.
	endingEvery = 2 * time.Millisecond
	// sliceMicros is how long a wait stays in the library before it looks for what Go has to say.
	sliceMicros = 2000
	// politeness is how long a process that fails alone waits before the others are disturbed: failures that all know of come from all
	// of them in that time.
	politeness = time.Second
)

// What processes tell each other outside of the meetings: one letter, then what the letter needs.
const (
	sayBeat  = 'b' // this process lives
	sayAbort = 'a' // reason: the world has ended
	sayFail  = 'f' // reason: this process ends with a failure
	sayLost  = 'l' // process, reason: another process is lost, so the world has ended
	sayBye   = 'e' // bye: this process is ready to end
	sayGo    = 'g' // bye: all are
)

// call is one operation of the transport.
type call struct {
	ctx    context.Context
	v      []int64 // of an Allreduce
	op     cluster.Op
	p      []byte // of a message
	peer   int
	recv   bool
	answer chan error
}

// ending is what a process says when it comes to its end.
type ending struct {
	bye
	failing bool
	answer  chan int
}

// thread is the goroutine that owns the library, and what it knows. Everything below notices belongs to it alone.
type thread struct {
	rank, size int
	node       string
	provided   int

	calls   chan *call
	aborts  chan string
	fails   chan string
	ends    chan *ending
	notices chan cluster.Notice

	outbox   map[int][][]byte // control messages that wait for an earlier one
	beat     time.Time        // when the last was sent
	polled   time.Time        // when the library was last asked
	silent   time.Duration    // for how long the process before this one has said nothing, as far as this one was there to hear it
	lost     map[int]bool
	fault    *cluster.Notice // another process's failure, to be told when it is due
	faultDue time.Time
	dirty    bool // an operation was left in the middle
	over     bool // somebody has ended the world
	byes     map[int]bye
	leave    *bye
}

// bye is a process's last word.
type bye struct {
	code int
	// foreign says that the code is no finding of this process: it ends because another has failed.
	foreign bool
	// dirty says that an operation of the library was left in the middle.
	dirty bool
}

// libraryError is a failure of the library itself.
func libraryError(what string, code C.int) error {
	var text [512]C.char
	C.shim_error(code, &text[0], C.int(len(text)))
	return fmt.Errorf("mpi: %s: %s", what, C.GoString(&text[0]))
}

// Library names the MPI library that this build speaks, empty for none.
func Library() string {
	var text [1024]C.char
	C.shim_version(&text[0], C.int(len(text)))
	return C.GoString(&text[0])
}

// startThread starts the library on a thread of its own. The thread ends with the process, or at the end of the world.
func startThread(ctx context.Context) (*thread, error) {
	t := &thread{
		calls: make(chan *call), aborts: make(chan string, 1), fails: make(chan string, 1), ends: make(chan *ending),
		notices: make(chan cluster.Notice, 16), outbox: map[int][][]byte{}, byes: map[int]bye{}, lost: map[int]bool{},
	}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := t.start()
		started <- err
		if err == nil {
			t.loop()
		}
	}()
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	select {
	case err := <-started:
		return t, err
	case <-ctx.Done():
		return nil, fmt.Errorf("mpi: interrupted while the library started: %w", context.Cause(ctx))
	case <-limit.C:
		return nil, fmt.Errorf("mpi: the library did not start within %v: a process of the job is missing, or the hosts do not reach each other", startLimit)
	}
}

func (t *thread) start() error {
	var rank, size, provided C.int
	var node [256]C.char
	if code := C.shim_start(&rank, &size, &provided, &node[0], C.int(len(node))); code != 0 {
		return libraryError("start", code)
	}
	t.rank, t.size, t.provided, t.node = int(rank), int(size), int(provided), C.GoString(&node[0])
	t.polled = time.Now()
	return nil
}

// loop serves until the process ends.
func (t *thread) loop() {
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	for {
		select {
		case c := <-t.calls:
			c.answer <- t.serve(c)
		case reason := <-t.aborts:
			t.tellAll(sayAbort, reason)
			t.over = true
		case reason := <-t.fails:
			t.tellAll(sayFail, reason)
		case e := <-t.ends:
			e.answer <- t.end(e)
			return
		case <-tick.C:
		}
		t.listen()
	}
}

// serve carries out one operation, listening meanwhile.
func (t *thread) serve(c *call) error {
	if t.dirty {
		return fmt.Errorf("mpi: an operation was asked for after one that was not finished")
	}
	if err := t.begin(c); err != nil {
		return err
	}
	begin := time.Now()
	for {
		done, err := t.wait(time.Since(begin).Microseconds(), sliceMicros)
		if err != nil {
			t.dirty = true
			return err
		}
		if done {
			return t.finish(c)
		}
		select {
		case <-c.ctx.Done():
			t.dirty = true
			return context.Cause(c.ctx)
		case reason := <-t.aborts:
			t.tellAll(sayAbort, reason)
			t.over = true
		default:
		}
	}
}

// begin starts an operation.
func (t *thread) begin(c *call) error {
	var code C.int
	n := C.int(max(len(c.v), len(c.p)))
	switch {
	case c.v != nil:
		room := C.shim_numbers(n)
		if room == nil {
			return fmt.Errorf("mpi: no memory for %d numbers", n)
		}
		copy(unsafe.Slice((*int64)(unsafe.Pointer(room)), len(c.v)), c.v)
		largest := C.int(0)
		if c.op == cluster.Max {
			largest = 1
		}
		code = C.shim_allreduce(n, largest)
	default:
		room := C.shim_bytes(n)
		if room == nil && n > 0 {
			return fmt.Errorf("mpi: no memory for a message of %d bytes", n)
		}
		if c.recv {
			code = C.shim_recv(n, C.int(c.peer))
			break
		}
		copy(unsafe.Slice((*byte)(room), len(c.p)), c.p)
		code = C.shim_send(n, C.int(c.peer))
	}
	if code != 0 {
		return libraryError("send or receive", code)
	}
	return nil
}

// finish brings back what an operation came to.
func (t *thread) finish(c *call) error {
	n := C.int(max(len(c.v), len(c.p)))
	switch {
	case c.v != nil:
		copy(c.v, unsafe.Slice((*int64)(unsafe.Pointer(C.shim_numbers(n))), len(c.v)))
	case c.recv && n > 0:
		copy(c.p, unsafe.Slice((*byte)(C.shim_bytes(n)), len(c.p)))
	}
	return nil
}

// listen lets the library work once.
func (t *thread) listen() {
	if _, err := t.wait(0, 0); err != nil {
		t.notice(cluster.Notice{Rank: t.rank, Reason: err.Error()})
	}
}

// wait waits for the operation for a while, and does everything that is to be done beside it.
func (t *thread) wait(waited int64, limit int) (done bool, err error) {
	var finished, heard, from C.int
	if code := C.shim_wait(C.long(waited), C.long(limit), &finished, &heard, &from); code != 0 {
		return false, libraryError("wait", code)
	}
	now := time.Now()
	// A process that was itself stopped for a while has heard nothing in that time, and may not blame others for it.
	t.silent += min(now.Sub(t.polled), beatEvery)
	t.polled = now
	if heard >= 0 {
		message := C.GoBytes(unsafe.Pointer(C.shim_control_message()), heard)
		if code := C.shim_control_next(); code != 0 {
			return false, libraryError("listen", code)
		}
		t.hear(int(from), message)
	}
	t.tend(now)
	return finished != 0, nil
}

// before is the process that this one listens for, after the one that listens for it.
func (t *thread) before() int { return (t.rank + t.size - 1) % t.size }
func (t *thread) after() int  { return (t.rank + 1) % t.size }

// hear takes a control message.
func (t *thread) hear(from int, message []byte) {
	if from == t.before() {
		t.silent = 0
	}
	if len(message) == 0 {
		return
	}
	rest := message[1:]
	switch message[0] {
	case sayAbort:
		t.notice(cluster.Notice{Rank: from, Reason: string(rest)})
		t.over = true
	case sayLost:
		if len(rest) >= 4 {
			rank := int(binary.LittleEndian.Uint32(rest))
			t.lost[rank] = true
			t.notice(cluster.Notice{Rank: rank, Reason: string(rest[4:])})
			t.over = true
		}
	case sayFail:
		if t.fault == nil {
			t.fault, t.faultDue = &cluster.Notice{Rank: from, Reason: string(rest)}, time.Now().Add(politeness)
		}
	case sayBye:
		t.byes[from] = parseBye(rest)
	case sayGo:
		b := parseBye(rest)
		t.leave = &b
	}
}

func (b bye) bytes() []byte {
	var flags byte
	if b.dirty {
		flags |= 1
	}
	if b.foreign {
		flags |= 2
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(int32(b.code))), flags)
}

func parseBye(p []byte) bye {
	if len(p) != 5 {
		return bye{code: 1, dirty: true}
	}
	return bye{code: int(int32(binary.LittleEndian.Uint32(p))), dirty: p[4]&1 != 0, foreign: p[4]&2 != 0}
}

// notice hands the world a reason to end. The first counts; what does not fit is later than 16 others.
func (t *thread) notice(n cluster.Notice) {
	select {
	case t.notices <- n:
	default:
	}
}

// tend does what is due: beats, messages that waited, and news of others.
func (t *thread) tend(now time.Time) {
	for to, waiting := range t.outbox {
		for len(waiting) > 0 && t.say(to, waiting[0]) {
			waiting = waiting[1:]
		}
		if t.outbox[to] = waiting; len(waiting) == 0 {
			delete(t.outbox, to)
		}
	}
	if now.Sub(t.beat) >= beatEvery && len(t.outbox[t.after()]) == 0 {
		t.say(t.after(), []byte{sayBeat}) // one that finds the last still under way need not be sent
		t.beat = now
	}
	if t.fault != nil && !now.Before(t.faultDue) {
		t.notice(*t.fault)
		t.fault.Rank, t.faultDue = t.rank, now.Add(time.Hour)
		t.over = true
	}
	if gone := t.before(); t.silent > silenceLimit && !t.lost[gone] {
		t.lost[gone] = true
		t.over = true
		reason := fmt.Sprintf("it has not been heard of for %v: it was killed, is stopped or cut off", silenceLimit)
		t.notice(cluster.Notice{Rank: gone, Reason: reason})
		t.tellAll(sayLost, string(binary.LittleEndian.AppendUint32(nil, uint32(gone)))+reason)
	}
}

// say sends a control message unless an earlier one to the same process is still under way.
func (t *thread) say(to int, message []byte) bool {
	p := C.CBytes(message)
	defer C.free(p)
	var busy C.int
	if code := C.shim_control_send((*C.uchar)(p), C.int(len(message)), C.int(to), &busy); code != 0 {
		t.notice(cluster.Notice{Rank: t.rank, Reason: libraryError("tell another process", code).Error()})
		return true
	}
	return busy == 0
}

// tell sends a control message, later if need be.
func (t *thread) tell(to int, letter byte, rest []byte) {
	message := append([]byte{letter}, rest...)
	if len(t.outbox[to]) > 0 || !t.say(to, message) {
		t.outbox[to] = append(t.outbox[to], message)
	}
}

func (t *thread) tellAll(letter byte, rest string) {
	for to := range t.size {
		if to != t.rank {
			t.tell(to, letter, []byte(rest))
		}
	}
}
