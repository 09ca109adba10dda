package checkpoint

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/store"
)

const (
	// pieceSize is the size of the writes, and of the buffers: all but the last write of a file are this long and begin at a multiple
	// of it.
	pieceSize = 1 << 20
	// pieces is the number of buffers of a save: one being produced, one being written, one being hashed, one to spare.
	pieces = 4
)

// Creator makes files; a store does. Whether a committed file is durable is the creator's matter (store.FolderOptions.Sync).
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

// FileSave is one file as it was written. The durations are on the monotonic clock and include the time before them in the list.
type FileSave struct {
	FileSum
	// Starved is the time that the writing waited for content to be produced: what the benchmark itself cost.
	Starved time.Duration
	// Write is the time from before Create to the return of the last Write.
	Write time.Duration
	// Durable is the time from before Create to the return of Commit. The file is durable then if the store was told to sync.
	Durable time.Duration
}

// RankSave is the share of one rank in a checkpoint; empty for a rank that writes nothing.
type RankSave struct {
	Point Point
	Rank  int
	Files []FileSave
	// Duration is the time from the start of the save to the last Commit; hashing that is left over then is not in it.
	Duration time.Duration
}

// Writer saves checkpoints. It is safe for concurrent use by several ranks; each save in progress holds Plan.MemoryBytes.
type Writer struct {
	plan    *Plan
	st      Creator
	buffers sync.Pool
}

// NewWriter makes a writer that creates files in st, whose root is the checkpoint folder (checkpoint.checkpoint_folder).
func NewWriter(plan *Plan, st Creator) *Writer {
	return &Writer{plan: plan, st: st}
}

// Save writes the files of one rank, one after the other, and returns their digests and times. The first error ends it; the file being
// written is removed, files of this save that were committed before stay. A cancelled context ends it with the context's error
// before the next write.
func (w *Writer) Save(ctx context.Context, pt Point, rank int) (RankSave, error) {
	save := RankSave{Point: pt, Rank: rank}
	if err := w.plan.checkPoint(pt, rank); err != nil {
		return save, err
	}
	files := w.plan.Files(rank)
	save.Files = make([]FileSave, 0, len(files))
	for i := range files {
		fs, err := w.file(ctx, &files[i], pt, rank)
		if err != nil {
			return save, fmt.Errorf("save checkpoint %s, rank %d: %w", pt.Name(), rank, err)
		}
		save.Files = append(save.Files, fs)
		save.Duration += fs.Durable
	}
	return save, nil
}

// file writes one file.
func (w *Writer) file(ctx context.Context, f *File, pt Point, rank int) (fs FileSave, err error) {
	fs.Path, fs.Size = pt.Name()+"/"+f.Name, f.Size
	if err := ctx.Err(); err != nil {
		return fs, fmt.Errorf("%s: %w", fs.Path, err)
	}
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
	flow := w.flow(newSource(f.arc, w.plan.content(pt.Number, rank, f)), f.Size)
	defer flow.stop()
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
		flow.written(piece)
	}
	fs.Write = time.Since(start)
	if err := out.Commit(); err != nil {
		return fs, err
	}
	fs.Durable = time.Since(start)
	fs.Digest = flow.sum()
	return fs, nil
}

// A flow produces the pieces of a file ahead of the writing, and hashes them behind it, so that storage waits for neither. A file of
// one piece needs no goroutines: it is produced in the caller, and hashed there when the clock has stopped.
type flow struct {
	pool   *sync.Pool
	src    *source
	free   chan *[pieceSize]byte
	ready  chan []byte
	hash   chan []byte
	cancel chan struct{}
	done   sync.WaitGroup
	hasher *blake3.Hasher
	single *[pieceSize]byte
	last   []byte // of a single piece: hashed when the clock has stopped
	ended  bool
}

func (w *Writer) flow(src *source, size int64) *flow {
	f := &flow{pool: &w.buffers, src: src, hasher: blake3.New()}
	if size <= pieceSize {
		f.single = w.buffer()
		return f
	}
	n := int(min(pieces, (size+pieceSize-1)/pieceSize))
	f.free, f.ready, f.hash = make(chan *[pieceSize]byte, n), make(chan []byte, n), make(chan []byte, n)
	f.cancel = make(chan struct{})
	for range n {
		f.free <- w.buffer()
	}
	f.done.Go(f.produce)
	f.done.Go(f.digest)
	return f
}

func (w *Writer) buffer() *[pieceSize]byte {
	if b, ok := w.buffers.Get().(*[pieceSize]byte); ok {
		return b
	}
	return new([pieceSize]byte)
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
			f.ready <- b[:n] // never blocks: as many places as buffers, like free and hash
		case <-f.cancel:
			return
		}
	}
}

func (f *flow) digest() {
	for p := range f.hash {
		_, _ = f.hasher.Write(p) // cannot fail
		f.free <- (*[pieceSize]byte)(p[:pieceSize])
	}
}

// piece waits for the next piece. It may be called only while bytes are left.
func (f *flow) piece() []byte {
	if f.single != nil {
		f.last = f.single[:f.src.read(f.single[:])]
		return f.last
	}
	return <-f.ready
}

// written gives the piece on to be hashed.
func (f *flow) written(p []byte) {
	if f.single == nil {
		f.hash <- p
	}
}

// sum waits for the digest of all pieces.
func (f *flow) sum() (d [32]byte) {
	_, _ = f.hasher.Write(f.last) // cannot fail
	f.stop()
	f.hasher.Sum(d[:0])
	return d
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
