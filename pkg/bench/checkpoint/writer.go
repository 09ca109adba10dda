package checkpoint

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/store"
)

const (
	// pieceSize is the size of the writes, and of the buffers: all but the last write of a file are this long and begin
	// at a multiple of it.
	pieceSize = 1 << 20
	// pieces is the number of buffers of a save: one being produced, one ready, one being written, one being hashed,
	// and those that wait to be hashed.
	pieces = 4 + hashQueue
	// hashQueue is how many written pieces may wait to be hashed before hashing gives up keeping pace.
	hashQueue = 2
	// hashSlice is hashed at a stretch before other work gets the processor.
	hashSlice = 128 << 10
)

// Creator makes files; a store does. Whether a committed file is durable is the creator's matter
// (store.FolderOptions.Sync).
type Creator interface {
	Create(name string, size int64) (store.Writer, error)
}

// FileSum identifies one file of a checkpoint by content.
type FileSum struct {
	// Path is relative to the checkpoint folder: "global_epoch{E}_step{S}/NAME".
	Path string
	// Size is in bytes.
	Size int64
	// Digest is the BLAKE3 digest of the content.
	Digest [32]byte
}

// FileSave is one file as it was written. The durations are on the monotonic clock.
type FileSave struct {
	FileSum
	// Starved is the time that the writing waited for content to be produced: what the benchmark itself cost.
	Starved time.Duration
	// Write is the time from before Create to the return of the last Write.
	Write time.Duration
	// Durable is the time from before Create to the return of Commit. The file is durable then if the store was told to
	// sync.
	Durable time.Duration
}

// RankSave is the share of one rank in a checkpoint; empty for a rank that writes nothing.
type RankSave struct {
	Point Point
	Rank  int
	// Started is when Save was called, the zero time where nothing was to be written.
	Started time.Time
	Files   []FileSave
	// Duration is the sum of Durable over the files. Producing the first pieces and hashing what is left are not in it.
	Duration time.Duration
}

// Writer saves checkpoints. It is safe for concurrent use by several ranks; each save in progress holds
// Plan.MemoryBytes.
type Writer struct {
	plan    *Plan
	st      Creator
	buffers sync.Pool
	bytes   atomic.Int64
}

// Written is how many bytes all saves together have written so far.
func (w *Writer) Written() int64 { return w.bytes.Load() }

// NewWriter makes a writer that creates files in st, whose root is the checkpoint folder
// (checkpoint.checkpoint_folder).
func NewWriter(plan *Plan, st Creator) *Writer {
	return &Writer{plan: plan, st: st}
}

// Save writes the files of one rank, one after the other, and returns their digests and times. The first error ends it;
// the file being written is removed, files of this save that were committed before stay. A cancelled context ends it
// with the context's error before the next write.
func (w *Writer) Save(ctx context.Context, pt Point, rank int) (RankSave, error) {
	save := RankSave{Point: pt, Rank: rank}
	if err := w.plan.checkPoint(pt, rank); err != nil {
		return save, err
	}
	files := w.plan.Files(rank)
	if len(files) > 0 {
		save.Started = time.Now()
	}
	save.Files = make([]FileSave, 0, len(files))
	var before *source
	for i := range files {
		src := newSourceAfter(files[i].arc, w.plan.content(pt.Number, rank, &files[i]), before)
		before = src
		fs, err := w.file(ctx, &files[i], pt, src)
		if err != nil {
			return save, fmt.Errorf("save checkpoint %s, rank %d: %w", pt.Name(), rank, err)
		}
		save.Files = append(save.Files, fs)
		save.Duration += fs.Durable
	}
	return save, nil
}

// file writes one file.
func (w *Writer) file(ctx context.Context, f *File, pt Point, src *source) (fs FileSave, err error) {
	fs.Path, fs.Size = pt.Name()+"/"+f.Name, f.Size
	if err := ctx.Err(); err != nil {
		return fs, fmt.Errorf("%s: %w", fs.Path, err)
	}
	flow := w.flow(src, f.Size)
	defer flow.stop()
	start := time.Now()
	out, err := w.st.Create(fs.Path, f.Size)
	if err != nil {
		return fs, err
	}
	defer func() {
		if err != nil {
			_ = out.Abort() // the error at hand says more
		}
	}()
	for off := int64(0); off < f.Size; {
		if err := ctx.Err(); err != nil {
			return fs, fmt.Errorf("%s: %w", fs.Path, err)
		}
		asked := time.Now()
		piece := flow.piece()
		fs.Starved += time.Since(asked)
		n, err := out.Write(piece)
		if err == nil && n < len(piece) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return fs, fmt.Errorf("%s: write at byte %d: %w", fs.Path, off, err)
		}
		off += int64(len(piece))
		w.bytes.Add(int64(len(piece)))
		flow.written(piece)
	}
	fs.Write = time.Since(start)
	if err := out.Commit(); err != nil {
		return fs, err
	}
	fs.Durable = time.Since(start)
	if fs.Digest, err = flow.sum(ctx); err != nil {
		return fs, fmt.Errorf("%s: %w", fs.Path, err)
	}
	return fs, nil
}

// A flow produces the pieces of a file ahead of the writing and hashes them behind it. The writing never waits for the
// hashing: where storage is faster, what is not hashed yet is produced once more and hashed when the clock has stopped.
// The first pieces are produced before the clock starts, as a model's state is there when it is saved. A file of one
// piece needs no goroutines.
type flow struct {
	pool   *sync.Pool
	src    *source
	free   chan *[pieceSize]byte
	ready  chan []byte
	hash   chan []byte
	cancel chan struct{}
	done   sync.WaitGroup
	hasher *blake3.Hasher
	queued int64 // bytes given to the hasher
	behind bool  // hashing gave up keeping pace
	single *[pieceSize]byte
	last   []byte // the content of single
	ended  bool
}

func (w *Writer) flow(src *source, size int64) *flow {
	f := &flow{pool: &w.buffers, src: src, hasher: blake3.New()}
	if size <= pieceSize {
		f.single = buffer(&w.buffers)
		f.last = f.single[:src.read(f.single[:])]
		return f
	}
	n := int(min(pieces, (size+pieceSize-1)/pieceSize))
	f.free, f.ready, f.hash = make(chan *[pieceSize]byte, n), make(chan []byte, n), make(chan []byte, hashQueue)
	f.cancel = make(chan struct{})
	for range n {
		b := buffer(&w.buffers)
		f.ready <- b[:src.read(b[:])]
	}
	f.done.Go(f.produce)
	f.done.Go(f.digest)
	return f
}

func (f *flow) produce() {
	for {
		select {
		case b := <-f.free:
			n := f.src.read(b[:])
			if n == 0 {
				f.free <- b
				return
			}
			f.ready <- b[:n] // never blocks: as many places as buffers, like free
		case <-f.cancel:
			return
		}
	}
}

func (f *flow) digest() {
	for p := range f.hash {
		f.write(p)
		f.free <- (*[pieceSize]byte)(p[:pieceSize])
	}
}

// write hashes p.
func (f *flow) write(p []byte) {
	for part := range slices.Chunk(p, hashSlice) {
		_, _ = f.hasher.Write(part) // cannot fail
		runtime.Gosched()
	}
}

// piece waits for the next piece. It may be called only while bytes are left.
func (f *flow) piece() []byte {
	if f.single != nil {
		return f.last
	}
	return <-f.ready
}

// written takes the piece back. In the order of the file, it is hashed then or later.
func (f *flow) written(p []byte) {
	if f.single != nil {
		return
	}
	if !f.behind {
		select {
		case f.hash <- p:
			f.queued += int64(len(p))
			return
		default:
			f.behind = true
		}
	}
	f.free <- (*[pieceSize]byte)(p[:pieceSize])
}

// sum returns the digest of all pieces.
func (f *flow) sum(ctx context.Context) (d [32]byte, err error) {
	f.write(f.last)
	f.stop()
	if f.behind {
		b := buffer(f.pool)
		rest := f.src.resume(f.queued)
		for n := rest.read(b[:]); n > 0; n = rest.read(b[:]) {
			if err := ctx.Err(); err != nil {
				return d, fmt.Errorf("hash: %w", err)
			}
			f.write(b[:n])
		}
		f.pool.Put(b)
	}
	f.hasher.Sum(d[:0])
	return d, nil
}

// stop ends the goroutines and gives the buffers back.
func (f *flow) stop() {
	if f.ended {
		return
	}
	f.ended = true
	if f.single != nil {
		f.pool.Put(f.single)
		return
	}
	close(f.cancel)
	close(f.hash)
	f.done.Wait()
	for {
		select {
		case b := <-f.free:
			f.pool.Put(b)
		default:
			return
		}
	}
}
