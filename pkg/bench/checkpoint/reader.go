package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// FileLoad is one file as it was read back. The durations are on the monotonic clock.
type FileLoad struct {
	// Path is relative to the checkpoint folder.
	Path string
	// Size is in bytes; all of them were read.
	Size int64
	// Read is the time from before Open to after Close.
	Read time.Duration
	// Waited is the part of Read in which reading waited for what was read before to be compared: what the benchmark itself cost.
	Waited time.Duration
}

// RankLoad is what one rank read of a checkpoint; empty where it reads nothing.
type RankLoad struct {
	Point Point
	// Rank is the one whose files were read.
	Rank int
	// Started is when Load was called, the zero time where nothing was to be read.
	Started time.Time
	Files   []FileLoad
	// Duration is the sum of Read over the files. Comparing what is left when a file was read is not in it.
	Duration time.Duration
}

// Reader reads checkpoints back. It is safe for concurrent use by several ranks; each load in progress holds Plan.LoadMemoryBytes.
type Reader struct {
	plan    *Plan
	st      Opener
	compare bool
	buffers sync.Pool
	bytes   atomic.Int64
}

// Read is how many bytes all loads together have read so far.
func (r *Reader) Read() int64 { return r.bytes.Load() }

// NewReader makes a reader of the files in st, whose root is the checkpoint folder. With compare, every byte that is read is
// compared with what the seed gives.
func NewReader(plan *Plan, st Opener, compare bool) *Reader {
	return &Reader{plan: plan, st: st, compare: compare}
}

// Load reads the files that a rank saved, one after the other, from their first to their last byte, and returns the times. The first
// error ends it: *DifferError for a file that is not what was saved, the store's error for one that is not there. A file of another
// size differs even where bytes are not compared.
func (r *Reader) Load(ctx context.Context, pt Point, rank int) (RankLoad, error) {
	load := RankLoad{Point: pt, Rank: rank}
	if err := r.plan.checkPoint(pt, rank); err != nil {
		return load, err
	}
	files := r.plan.Files(rank)
	if len(files) > 0 {
		load.Started = time.Now()
	}
	load.Files = make([]FileLoad, 0, len(files))
	var before *source
	for i := range files {
		var src *source
		if r.compare {
			src = newSourceAfter(files[i].arc, r.plan.content(pt.Number, rank, &files[i]), before)
			before = src
		}
		fl, err := r.file(ctx, &files[i], pt, src)
		if err != nil {
			return load, fmt.Errorf("load checkpoint %s, files of rank %d: %w", pt.Name(), rank, err)
		}
		load.Files = append(load.Files, fl)
		load.Duration += fl.Read
	}
	return load, nil
}

// file reads one file.
func (r *Reader) file(ctx context.Context, f *File, pt Point, src *source) (fl FileLoad, err error) {
	fl.Path, fl.Size = pt.Name()+"/"+f.Name, f.Size
	check := r.comparison(f, fl.Path, src)
	defer check.stop()
	start := time.Now()
	in, err := r.st.Open(fl.Path)
	if err != nil {
		return fl, err
	}
	open := true
	defer func() {
		if open {
			_ = in.Close() // the error at hand says more
		}
	}()
	info, err := in.Info()
	if err != nil {
		return fl, err
	}
	if info.Size != f.Size {
		return fl, wrongSize(fl.Path, f.Size, info.Size)
	}
	for off := int64(0); off < f.Size; off += pieceSize {
		if err := ctx.Err(); err != nil {
			return fl, fmt.Errorf("%s: %w", fl.Path, err)
		}
		asked := time.Now()
		b := check.buffer()
		fl.Waited += time.Since(asked)
		piece := b[:min(pieceSize, f.Size-off)]
		if err := readFull(in, piece, off); err != nil {
			return fl, fmt.Errorf("%s: %w", fl.Path, err)
		}
		r.bytes.Add(int64(len(piece)))
		check.read(piece)
		if err := check.failed(); err != nil {
			return fl, err
		}
	}
	open = false
	if err := in.Close(); err != nil {
		return fl, err
	}
	fl.Read = time.Since(start)
	return fl, check.finish()
}

func wrongSize(path string, expected, found int64) error {
	return &DifferError{Path: path, Offset: min(found, expected), Part: "end", Expected: expected, Found: found, WrongSize: true}
}

// readFull reads all of p, or says where the file ended.
func readFull(in io.ReaderAt, p []byte, off int64) error {
	n, err := in.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read at byte %d: %w", off+int64(n), err)
}

// A comparison compares the pieces of a file behind the reading. A file of one piece, and one that is not compared, needs no
// goroutine.
type comparison struct {
	pool *sync.Pool
	path string
	arc  *archive
	src  *source // nil: nothing is compared
	free chan *[pieceSize]byte
	full chan []byte
	done sync.WaitGroup
	own  *[pieceSize]byte // the one buffer where there is no goroutine
	last []byte           // what own holds and is not compared yet
	end  bool

	mu  sync.Mutex
	off int64 // bytes compared
	err error // the first difference; guarded by mu
}

// comparison makes what compares a file with src, or nothing where src is nil.
func (r *Reader) comparison(f *File, path string, src *source) *comparison {
	c := &comparison{pool: &r.buffers, path: path, arc: f.arc, src: src}
	if c.src == nil || f.Size <= pieceSize {
		c.own = buffer(c.pool)
		return c
	}
	n := int(min(pieces, (f.Size+pieceSize-1)/pieceSize))
	c.free, c.full = make(chan *[pieceSize]byte, n), make(chan []byte, n)
	for range n {
		c.free <- buffer(c.pool)
	}
	c.done.Go(func() {
		expected := buffer(c.pool)
		defer c.pool.Put(expected)
		for p := range c.full {
			c.compare(p, expected)
			c.free <- (*[pieceSize]byte)(p[:pieceSize])
		}
	})
	return c
}

func buffer(pool *sync.Pool) *[pieceSize]byte {
	if b, ok := pool.Get().(*[pieceSize]byte); ok {
		return b
	}
	return new([pieceSize]byte)
}

// compare compares the next piece of the file. After a difference it does nothing.
func (c *comparison) compare(found []byte, buf *[pieceSize]byte) {
	if c.failed() != nil {
		return
	}
	expected := buf[:c.src.read(buf[:len(found)])]
	off := c.off
	c.off += int64(len(found))
	if err := differ(c.path, c.arc, off, expected, found); err != nil {
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
	}
}

// differ returns the first difference of two pieces of a file.
func differ(path string, arc *archive, off int64, expected, found []byte) error {
	if bytes.Equal(found, expected) {
		return nil
	}
	i := 0
	for found[i] == expected[i] {
		i++
	}
	at := off + int64(i)
	return &DifferError{Path: path, Offset: at, Part: arc.where(at), Expected: int64(expected[i]), Found: int64(found[i])}
}

func (c *comparison) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// buffer waits for a buffer to read into.
func (c *comparison) buffer() *[pieceSize]byte {
	if c.own != nil {
		return c.own
	}
	return <-c.free
}

// read takes a piece, in the order of the file.
func (c *comparison) read(p []byte) {
	if c.own != nil {
		c.last = p
		return
	}
	c.full <- p // never blocks: as many places as buffers
}

// finish waits until everything is compared, and returns the first difference.
func (c *comparison) finish() error {
	if c.own != nil {
		if c.src != nil && len(c.last) > 0 {
			expected := buffer(c.pool)
			c.compare(c.last, expected)
			c.pool.Put(expected)
		}
		return c.failed()
	}
	c.stop()
	return c.failed()
}

// stop ends the goroutine and gives the buffers back.
func (c *comparison) stop() {
	if c.end {
		return
	}
	c.end = true
	if c.own != nil {
		c.pool.Put(c.own)
		return
	}
	close(c.full)
	c.done.Wait()
	for {
		select {
		case b := <-c.free:
			c.pool.Put(b)
		default:
			return
		}
	}
}
