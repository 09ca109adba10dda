package loader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/store"
)

// held is a file that a worker has open, or has read whole and would have in memory.
type held struct {
	name    string
	size    int64
	file    store.File // nil where the file is in memory
	logical int64      // of each sample, where the file is in memory
	read    Read       // what it was read as, where the file is in memory
	device  uint64     // that it lies on, 0 where its store does not say
	sides   []side
}

// side is an open companion. It is the io.ReaderAt that a Decoder sees.
type side struct {
	w      *worker
	number int64      // from 1
	file   store.File // nil until it is needed
	size   int64
}

// ReadAt reads from the companion and keeps the time.
func (s *side) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.w.readAt(s.file, p, off)
	if s.w.now != nil {
		s.w.now.add(s.number, off, p[:n])
	}
	return n, err
}

// worker reads samples, one at a time, for one goroutine. It is the io.ReaderAt that a Decoder sees.
type worker struct {
	ctx  context.Context
	src  *Source
	rank int
	with format.CompanionReader // nil where samples are read without companions
	open func(i int) (io.ReaderAt, int64, error)
	mem  format.SampleReader // nil where a reader has no memory
	// covering is mem where it says which samples it has at hand, and nothing else is done for them.
	covering format.Covering

	cur    *held         // the file being read
	count  *atomic.Int64 // of the bytes asked of device
	device uint64
	index  int64 // its number
	kept   map[int64]*held
	spare  held // the memory of cur where files are not kept for ever

	// opened is when the file had been opened, last when the sample before was done; a look at the clock costs as much as some
	// system calls, so each moment is looked at once.
	opened, last time.Time
	read, aside  time.Duration // aside: opening companions
	begun        bool          // a first read or a companion came after opened
	epoch        int

	keeping // nothing without Source.Capture
}

func newWorker(ctx context.Context, src *Source, rank int) *worker {
	w := &worker{ctx: ctx, src: src, rank: rank}
	if c, ok := src.Decoder.(format.CompanionReader); ok && len(src.Companions) > 0 {
		w.with, w.open = c, w.companion
	}
	if m, ok := src.Decoder.(format.Remembering); ok && src.Keep != KeepSample {
		w.mem = m.Remember()
		w.covering = coverer(src, w.mem)
	}
	if src.Keep == KeepAll {
		w.kept = map[int64]*held{}
	}
	return w
}

// ReadAt reads from the open file, keeps the time, and stops between two reads when the run has ended.
func (w *worker) ReadAt(p []byte, off int64) (int, error) {
	n, err := w.readAt(w.cur.file, p, off)
	if w.now != nil {
		w.now.add(0, off, p[:n])
	}
	return n, err
}

func (w *worker) readAt(f store.File, p []byte, off int64) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	start := w.opened
	if w.begun {
		start = time.Now()
	}
	w.begun = true
	n, err := f.ReadAt(p, off)
	w.read += time.Since(start)
	if n < 0 || n > len(p) || n < len(p) && err == nil {
		return 0, fmt.Errorf("%w: %d bytes for %d at byte %d of %s, without an error", errStoreLies, n, len(p), off, w.cur.name)
	}
	return n, err
}

// errStoreLies is wrapped by the error of a store that says that it read what cannot be.
var errStoreLies = errors.New("the store returned an impossible number of bytes")

// companion opens companion i of the file being read, unless it is open.
func (w *worker) companion(i int) (io.ReaderAt, int64, error) {
	if i < 0 || i >= len(w.cur.sides) {
		return nil, 0, fmt.Errorf("%s has %d companions: there is no number %d", w.cur.name, len(w.cur.sides), i)
	}
	s := &w.cur.sides[i]
	if s.file == nil {
		start := time.Now()
		f, _, size, err := w.src.openFile(w.rank, w.index, i+1)
		w.aside += time.Since(start)
		w.begun = true
		if err != nil {
			return nil, 0, err
		}
		s.file, s.size = f, size
	}
	return s, s.size, nil
}

// work is a share of a batch: what a worker spent on it, and when (Batch.Begun, Batch.Ready).
type work struct{ open, read, decode, preprocess, begun, ready time.Duration }

// fill reads the samples that stand at first, first+1, ... into b.
func (w *worker) fill(b *Batch, order Order, epoch int, first int64) error {
	var spent work
	err := w.part(b, 0, order, epoch, first, 0, 1, &spent)
	b.Open, b.Read, b.Decode, b.Preprocess, b.Begun, b.Ready = spent.open, spent.read, spent.decode, spent.preprocess, spent.begun, spent.ready
	return err
}

// part reads samples from, from+step, ... of a batch whose first stands at position first, as the given one of the goroutines that share it.
func (w *worker) part(b *Batch, thread int, order Order, epoch int, first int64, from, step int, spent *work) error {
	*spent = work{}
	samples := b.Samples
	if w.src.Capture != nil {
		b.Holds[thread] = w.keep()
	}
	if from >= len(samples) {
		return nil
	}
	buf, err := w.src.Buffers.Get(w.ctx)
	if err != nil {
		return err
	}
	w.last = time.Now()
	spent.begun = w.src.since(w.last)
	if w.epoch != epoch {
		// Each epoch has new readers, which keep nothing of the one before unless everything is kept.
		w.epoch = epoch
		if w.kept == nil {
			if w.mem != nil {
				w.mem.Forget()
			}
			if err := w.drop(); err != nil {
				w.src.Buffers.Put(buf)
				return err
			}
		}
	}
	at, hand := newWalk(order, w.rank), cover{}
	for i := from; i < len(samples); i += step {
		s := &samples[i]
		pos := first + int64(i)
		if !at.at(pos, s) {
			w.src.Buffers.Put(buf)
			return fmt.Errorf("the order of samples has no position %d for accelerator %d", pos, w.rank)
		}
		if hand.has(s) {
			s.Logical, s.Asked = hand.logical, 0
			continue
		}
		if err := w.sample(s, buf, spent); err != nil {
			w.src.Buffers.Put(buf)
			return err
		}
		hand = w.covered(s)
		if b.Reads != nil {
			b.Reads[i] = w.was
		}
		if w.src.Preprocess == nil {
			continue
		}
		if d := w.src.Preprocess(epoch, w.rank, pos); d > 0 {
			// No buffer is held while nothing is read.
			w.src.Buffers.Put(buf)
			start := time.Now()
			if err := sleep(w.ctx, d); err != nil {
				return err
			}
			spent.preprocess += time.Since(start)
			if buf, err = w.src.Buffers.Get(w.ctx); err != nil {
				return err
			}
			w.last = time.Now()
		}
	}
	w.src.Buffers.Put(buf)
	end := time.Now()
	spent.open += end.Sub(w.last) // closing the last file
	spent.ready = w.src.since(end)
	w.sealed()
	return nil
}

// sample reads one sample.
func (w *worker) sample(s *Sample, buf []byte, spent *work) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	if w.src.Idle {
		s.Logical, s.Asked = w.src.sampleBytes(s.File), 0
		return nil
	}
	if err := w.take(s.File); err != nil {
		return err
	}
	if w.cur.file == nil { // in memory
		s.Logical, s.Asked = w.cur.logical, 0
		w.was = w.cur.read
		return nil
	}
	if w.hold != nil {
		w.begin(s)
	}
	w.opened, w.read, w.aside, w.begun = time.Now(), 0, 0, false
	var got format.Sample
	var err error
	if w.mem != nil {
		got, err = w.mem.ReadSampleOf(s.File, w, w.cur.size, int(s.Position), buf)
	} else if w.with != nil {
		got, err = w.with.ReadSampleWith(w, w.cur.size, w.open, int(s.Position), buf)
	} else {
		got, err = w.src.Decoder.ReadSample(w, w.cur.size, int(s.Position), buf)
	}
	done := time.Now()
	name := w.cur.name
	s.Logical, s.Asked = got.Logical, got.Asked
	w.count.Add(got.Asked)
	if got.Logical == format.Unsaid || w.src.Shared {
		s.Logical = w.src.sampleBytes(s.File)
	}
	if w.hold != nil {
		w.finish(err == nil)
	}
	if cerr := w.leave(s.Logical, err != nil); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("read sample %d of %s: %w", s.Position, name, err)
	}
	spent.open += w.opened.Sub(w.last) + w.aside
	spent.read += w.read
	spent.decode += done.Sub(w.opened) - w.read - w.aside
	w.last = done
	return nil
}

// take makes file i the current one.
func (w *worker) take(i int64) error {
	if w.cur != nil && w.index == i {
		return nil
	}
	if w.kept != nil {
		if h := w.kept[i]; h != nil {
			w.cur, w.index = h, i
			w.meter(h.device)
			return nil
		}
	} else if err := w.drop(); err != nil {
		return err
	}
	f, name, size, err := w.src.openFile(w.rank, i, 0)
	if err != nil {
		return err
	}
	h := &w.spare
	if w.kept != nil {
		h = new(held)
		w.kept[i] = h
	}
	if h.sides == nil && w.with != nil {
		h.sides = make([]side, len(w.src.Companions))
		for j := range h.sides {
			h.sides[j].w, h.sides[j].number = w, int64(j)+1
		}
	}
	h.name, h.size, h.file, h.device = name, size, f, 0
	if o, ok := f.(opened); ok {
		h.device = o.Opened().Device
	}
	w.cur, w.index = h, i
	w.meter(h.device)
	return nil
}

// meter makes count the counter of a device.
func (w *worker) meter(device uint64) {
	if w.count == nil || w.device != device {
		w.count, w.device = w.src.askedOn(device), device
	}
}

// leave does what is to be done with the current file after a sample of it was read: it is closed if it is not kept, or if all of it
// is in memory now.
func (w *worker) leave(logical int64, failed bool) error {
	switch {
	case failed || w.src.Keep == KeepSample:
		return w.drop()
	case w.src.Whole:
		w.cur.logical, w.cur.read = logical, w.was
		return w.cur.close()
	}
	return nil
}

// drop closes the current file.
func (w *worker) drop() error {
	if w.cur == nil {
		return nil
	}
	h := w.cur
	w.cur = nil
	return h.close()
}

// close closes the file and its companions.
func (h *held) close() error {
	var err error
	if h.file != nil {
		err = h.file.Close()
		h.file = nil
	}
	for i := range h.sides {
		if s := &h.sides[i]; s.file != nil {
			if cerr := s.file.Close(); err == nil {
				err = cerr
			}
			s.file = nil
		}
	}
	return err
}

// end closes everything that the worker has open.
func (w *worker) end() error {
	err := w.drop()
	for _, h := range w.kept {
		err = errors.Join(err, h.close())
	}
	clear(w.kept)
	return err
}
