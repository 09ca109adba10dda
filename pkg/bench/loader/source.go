package loader

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/store"
)

// Opener opens a file of the data set by its path.
type Opener interface {
	Open(name string) (store.File, error)
}

// Decoder reads sample k out of a file of size bytes, using buf and no other memory.
type Decoder interface {
	ReadSample(f io.ReaderAt, size int64, k int, buf []byte) (format.Sample, error)
}

// Source is what the loaders of all accelerators of a run read from. It is shared by their workers; the functions given must
// be safe for concurrent use and pure.
type Source struct {
	Store   Opener
	Decoder Decoder
	Buffers *Buffers
	// Path and Size are the path and the size in bytes of the data set's file i.
	Path func(i int64) string
	Size func(i int64) int64
	// Identity returns what was known of file i when its bytes were verified, and false where nothing is known. Nil: nothing
	// is known of any file.
	Identity func(i int64) (store.Info, bool)
	// Preprocess returns how long a worker sleeps after it read the sample at position pos. Nil: not at all.
	Preprocess func(epoch, rank int, pos int64) time.Duration

	rechecked atomic.Int64
}

// Rechecked is the number of times that a file's identity was compared again when a worker opened it.
func (s *Source) Rechecked() int64 { return s.rechecked.Load() }

// IdentityError says that a file is not the one that was verified.
type IdentityError struct {
	Path            string
	Expected, Found store.Info
}

func (e *IdentityError) Error() string {
	d := func(i store.Info) string {
		return fmt.Sprintf("size %d, modified %s, changed %s, inode %d on device %d", i.Size, stamp(i.ModTime), stamp(i.ChangeTime), i.Inode, i.Device)
	}
	return fmt.Sprintf("%s was changed or replaced after it was verified: expected %s; found %s; "+
		"leave the data set alone during a run, and start again", e.Path, d(e.Expected), d(e.Found))
}

func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000000Z") }

// worker reads samples, one at a time, for one goroutine. It is the io.ReaderAt that a Decoder sees.
type worker struct {
	ctx  context.Context
	src  *Source
	rank int
	file store.File
	// opened is when the file had been opened, last when the sample before was done; a look at the clock costs as much as some
	// system calls, so each moment is looked at once.
	opened, last time.Time
	read         time.Duration
	reads        int
}

func newWorker(ctx context.Context, src *Source, rank int) *worker {
	return &worker{ctx: ctx, src: src, rank: rank}
}

// ReadAt reads from the open file, keeps the time, and stops between two reads when the run has ended.
func (w *worker) ReadAt(p []byte, off int64) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	start := w.opened
	if w.reads++; w.reads > 1 {
		start = time.Now()
	}
	n, err := w.file.ReadAt(p, off)
	w.read += time.Since(start)
	return n, err
}

// fill reads the samples that stand at first, first+1, ... into b.
func (w *worker) fill(b *Batch, order Order, epoch int, first int64) error {
	b.Open, b.Read, b.Decode = 0, 0, 0
	buf, err := w.src.Buffers.Get(w.ctx)
	if err != nil {
		return err
	}
	w.last = time.Now()
	for i := range b.Samples {
		s := &b.Samples[i]
		pos := first + int64(i)
		if s.Index, s.File, s.Position = order.Sample(w.rank, pos); s.Index < 0 {
			w.src.Buffers.Put(buf)
			return fmt.Errorf("the order of samples has no position %d for accelerator %d", pos, w.rank)
		}
		if err := w.sample(b, s, buf); err != nil {
			w.src.Buffers.Put(buf)
			return err
		}
		if w.src.Preprocess == nil {
			continue
		}
		if d := w.src.Preprocess(epoch, w.rank, pos); d > 0 {
			// No buffer is held while nothing is read.
			w.src.Buffers.Put(buf)
			if err := w.sleep(d); err != nil {
				return err
			}
			if buf, err = w.src.Buffers.Get(w.ctx); err != nil {
				return err
			}
			w.last = time.Now()
		}
	}
	w.src.Buffers.Put(buf)
	b.Open += time.Since(w.last) // closing the last file
	return nil
}

// longestNap bounds how long a worker takes to notice that the run has ended.
const longestNap = 100 * time.Millisecond

func (w *worker) sleep(d time.Duration) error {
	for end := time.Now().Add(d); ; {
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		time.Sleep(min(left, longestNap))
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
	}
}

func (w *worker) sample(b *Batch, s *Sample, buf []byte) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	name := w.src.Path(s.File)
	f, err := w.src.Store.Open(name)
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	if err := w.check(f, name, s.File); err != nil {
		f.Close()
		return err
	}
	w.opened = time.Now()
	w.file, w.read, w.reads = f, 0, 0
	got, err := w.src.Decoder.ReadSample(w, w.src.Size(s.File), int(s.Position), buf)
	done := time.Now()
	w.file = nil
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("read sample %d of %s: %w", s.Position, name, err)
	}
	s.Logical, s.Asked = got.Logical, got.Asked
	b.Open += w.opened.Sub(w.last)
	b.Read += w.read
	b.Decode += done.Sub(w.opened) - w.read
	w.last = done
	return nil
}

// opened is what files of a store may have: their identity as it was found when they were opened, after the name was resolved.
type opened interface{ Opened() store.Info }

// check compares the open file with what is known of it: its size always, its whole identity where it was verified.
func (w *worker) check(f store.File, name string, file int64) error {
	var info store.Info
	if o, ok := f.(opened); ok {
		info = o.Opened()
	} else {
		var err error
		if info, err = f.Info(); err != nil {
			return fmt.Errorf("look at open file %s: %w", name, err)
		}
	}
	if w.src.Identity != nil {
		if want, ok := w.src.Identity(file); ok {
			w.src.rechecked.Add(1)
			if info.Size != want.Size || info.ModTime != want.ModTime || info.ChangeTime != want.ChangeTime ||
				info.Inode != want.Inode || info.Device != want.Device {
				return &IdentityError{Path: name, Expected: want, Found: info}
			}
			return nil
		}
	}
	if want := w.src.Size(file); info.Size != want {
		return fmt.Errorf("%s has another size than the manifest says: expected %d bytes, found %d; "+
			"verify the data set (benchpin data verify)", name, want, info.Size)
	}
	return nil
}
