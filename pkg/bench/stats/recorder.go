package stats

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// openSteps is how many steps may be incomplete at a time. The barrier after every step keeps the ranks within two steps of
	// each other, so more means that they are not in one run.
	openSteps = 4
	// spareSteps is how many complete steps may wait for the disk before the ranks have to.
	spareSteps = 60
)

// Recorder takes the steps of all ranks and writes them, sorted, as steps.parquet. What a rank does is to copy one row; encoding and
// writing happen on a goroutine of their own. Memory is bounded: when the disk falls behind, the ranks wait for it.
type Recorder struct {
	first int // the rank of ranks[0]
	ranks []RankRecorder
	w     *Writer

	mu   sync.Mutex
	open []*stepRows // steps not yet complete, oldest first; guarded by mu

	// err is the first error of the writing goroutine. It is not guarded by mu, which a rank may hold while it waits for that goroutine.
	err  atomic.Pointer[error]
	free chan *stepRows
	full chan *stepRows
	done chan struct{}
}

// stepRows holds one step of all ranks.
type stepRows struct {
	epoch int32
	step  int64
	n     int
	rows  []Step
	have  []bool
}

// RankRecorder takes the steps of one rank. It is used by that rank's goroutine only.
type RankRecorder struct {
	r    *Recorder
	rank int32
	// cur holds the block in its fields Epoch, Block and BlockStart.
	cur     Step
	inBlock bool
	// pending is the last step. It waits for the next one because the last row of a block holds the block's end.
	pending Step
	held    bool
	_       [32]byte // keeps neighbours off the same cache line
}

// NewRecorder writes the steps of so many ranks, numbered from 0, to w, which it does not close.
func NewRecorder(w io.Writer, ranks int) (*Recorder, error) { return NewRecorderOf(w, 0, ranks) }

// NewRecorderOf is NewRecorder for the ranks of one process of several: so many from first on.
func NewRecorderOf(w io.Writer, first, ranks int) (*Recorder, error) {
	if ranks < 1 || first < 0 {
		return nil, fmt.Errorf("steps: %d ranks from %d on: expected at least 1, from 0 or more", ranks, first)
	}
	r := &Recorder{
		first: first,
		ranks: make([]RankRecorder, ranks),
		w:     NewWriter(w),
		free:  make(chan *stepRows, openSteps+spareSteps),
		full:  make(chan *stepRows, openSteps+spareSteps),
		done:  make(chan struct{}),
	}
	for i := range r.ranks {
		r.ranks[i] = RankRecorder{r: r, rank: int32(first + i)}
	}
	// Few ranks make small steps and can afford many in waiting; for many ranks the same memory holds fewer.
	for range openSteps + max(4, spareSteps/ranks) {
		r.free <- &stepRows{rows: make([]Step, ranks), have: make([]bool, ranks)}
	}
	go r.write()
	return r, nil
}

// Rank returns the recorder of rank i; nil for a number that is none of its ranks.
func (r *Recorder) Rank(i int) *RankRecorder {
	if i -= r.first; i < 0 || i >= len(r.ranks) {
		return nil
	}
	return &r.ranks[i]
}

// SetDevice notes how many bytes came from block devices in an epoch, as the kernel counted them for this process.
func (r *Recorder) SetDevice(d Device) error { return r.w.SetDevice(d) }

// Close writes what is left and the file's footer. It must be called once, after every rank has stopped, also after a failed run:
// the file then holds every step that some rank has ended.
func (r *Recorder) Close() error {
	var errs []error
	for i := range r.ranks {
		errs = append(errs, r.ranks[i].flush())
	}
	r.mu.Lock()
	for _, s := range r.open {
		r.full <- s
	}
	r.open = nil
	r.mu.Unlock()
	close(r.full)
	<-r.done
	errs = append(errs, r.w.Close())
	if err := r.err.Load(); err != nil {
		return *err
	}
	return errors.Join(errs...)
}

// write is the writing goroutine.
func (r *Recorder) write() {
	defer close(r.done)
	for s := range r.full {
		if err := r.writeStep(s); err != nil {
			first := err // a variable of its own, so that only a failure allocates
			r.err.CompareAndSwap(nil, &first)
		}
		s.n = 0
		clear(s.have)
		r.free <- s
	}
}

func (r *Recorder) writeStep(s *stepRows) error {
	if s.n == len(s.rows) {
		return r.w.Write(s.rows)
	}
	for i, have := range s.have {
		if have {
			if err := r.w.Write(s.rows[i : i+1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// add takes one finished row.
func (r *Recorder) add(s *Step) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.err.Load(); err != nil {
		return *err
	}
	i := slices.IndexFunc(r.open, func(o *stepRows) bool { return o.epoch == s.Epoch && o.step == s.Step })
	if i < 0 {
		if len(r.open) == openSteps {
			return s.fault("%d earlier steps are not complete: the ranks are out of step", openSteps)
		}
		// Waits for the writing goroutine while holding the lock: the other ranks have to wait for it just the same.
		o := <-r.free
		o.epoch, o.step = s.Epoch, s.Step
		r.open = append(r.open, o)
		slices.SortFunc(r.open, func(a, b *stepRows) int {
			return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.step, b.step))
		})
		i = slices.Index(r.open, o)
	}
	o := r.open[i]
	at := int(s.Rank) - r.first
	if o.have[at] {
		return s.fault("recorded twice")
	}
	o.rows[at], o.have[at] = *s, true
	o.n++
	if o.n == len(o.rows) {
		r.open = slices.Delete(r.open, i, i+1)
		r.full <- o
	}
	return nil
}

// StartBlock begins a block of steps of an epoch at the offset at (ns). Blocks of an epoch are counted from 1 in order of their start.
func (k *RankRecorder) StartBlock(epoch int, at int64) error {
	if k.inBlock {
		return k.cur.fault("block %d is still open", k.cur.Block)
	}
	if k.cur.Epoch == int32(epoch) {
		k.cur.Block++
	} else {
		k.cur.Epoch, k.cur.Block = int32(epoch), 1
	}
	k.cur.Rank, k.cur.BlockStart, k.inBlock = k.rank, at, true
	return nil
}

// Add records one step of the open block. Rank, Epoch, Block, BlockStart and BlockEnd are filled in here; the caller gives the rest.
// It fails for a step that no run can have made, when the ranks are out of step, and when writing failed. It allocates nothing
// unless it fails.
func (k *RankRecorder) Add(s Step) error {
	s.Rank, s.Epoch, s.Block, s.BlockStart, s.BlockEnd = k.rank, k.cur.Epoch, k.cur.Block, k.cur.BlockStart, s.End()
	if !k.inBlock {
		return s.fault("no block is open")
	}
	if err := s.check(); err != nil {
		return err
	}
	if err := k.flush(); err != nil {
		return err
	}
	k.pending, k.held = s, true
	return nil
}

// EndBlock ends the open block at the offset at (ns). A block without steps leaves no row.
func (k *RankRecorder) EndBlock(at int64) error {
	if !k.inBlock {
		return k.cur.fault("no block is open")
	}
	k.inBlock = false
	if k.held {
		k.pending.BlockEnd = at
		if err := k.pending.check(); err != nil {
			return err
		}
	}
	return k.flush()
}

// flush hands the pending row on.
func (k *RankRecorder) flush() error {
	if !k.held {
		return nil
	}
	k.held = false
	return k.r.add(&k.pending)
}
