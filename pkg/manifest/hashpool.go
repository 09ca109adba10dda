package manifest

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/benchpin/benchpin/pkg/manifest/blake"
	"github.com/benchpin/benchpin/pkg/store"
)

const (
	// chunk is what a worker reads at once from a device: large enough for full speed, small enough for many workers.
	chunk = blake.GroupSize
	// cachedPiece is what it reads at once from the page cache: what was copied is hashed while it is still in the core's own cache.
	cachedPiece = 128 << 10
)

// hashJob is a file to be hashed. done is called once, by the worker that hashed it; an error that it returns ends all workers.
type hashJob struct {
	name string
	done func(FileHash, error) error
}

// hashPool hashes files side by side, and the groups of large ones too where a worker has nothing else to do.
type hashPool struct {
	src   Opener
	meter *meter
	jobs  <-chan hashJob
	// help offers large files to workers that wait. It has no buffer: an offer is taken at once or not at all.
	help chan *largeFile
	// owners counts the workers that may still begin a file or are at one; when it is 0, quiet is closed.
	owners atomic.Int64
	quiet  chan struct{}
}

// hashAll starts n workers (see workers) in g, which hash what comes from jobs until that is closed.
func hashAll(ctx context.Context, g *errgroup.Group, src Opener, jobs <-chan hashJob, n int, m *meter) {
	n = workers(n)
	p := &hashPool{src: src, meter: m, jobs: jobs, help: make(chan *largeFile), quiet: make(chan struct{})}
	p.owners.Store(int64(n))
	for range n {
		g.Go(func() error { return p.work(ctx) })
	}
}

// hashWorker is the memory of one worker.
type hashWorker struct {
	buf    []byte
	hasher blake.Hasher
}

// room returns n bytes to read into, n at most chunk.
func (w *hashWorker) room(n int64) []byte {
	if int64(len(w.buf)) < n {
		size := cachedPiece
		if n > cachedPiece {
			size = chunk
		}
		w.buf = store.AlignedBuffer(size)
	}
	return w.buf[:n]
}

func (p *hashPool) work(ctx context.Context) error {
	w := &hashWorker{}
	jobs := p.jobs
	for {
		select {
		case j, more := <-jobs:
			if !more {
				jobs = nil
				if p.owners.Add(-1) == 0 {
					close(p.quiet)
				}
				continue
			}
			h, err := p.file(ctx, w, j.name)
			if err == nil {
				p.meter.add(1, 0)
			}
			if err := j.done(h, err); err != nil {
				return err
			}
		case l := <-p.help:
			p.groups(ctx, w, l)
			l.helpers.Done()
		case <-p.quiet:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// inCache is what a store's file may tell: that reading it costs a copy only.
type inCache interface{ InCache() bool }

// alreadyDescribed is what a store's file may tell without asking once more: how it was when it was opened.
type alreadyDescribed interface{ Opened() store.Info }

// file hashes one file.
func (p *hashPool) file(ctx context.Context, w *hashWorker, name string) (h FileHash, err error) {
	f, err := p.src.Open(name)
	if err != nil {
		return h, fmt.Errorf("hash: %w", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("hash: %w", cerr)
		}
	}()
	if o, ok := f.(alreadyDescribed); ok {
		h.Info = o.Opened()
	} else if h.Info, err = f.Info(); err != nil {
		return h, fmt.Errorf("hash: %w", err)
	}
	l := &largeFile{file: f, name: name, size: h.Info.Size}
	if c, ok := f.(inCache); ok {
		l.cached = c.InCache()
	}
	if l.size <= blake.GroupSize {
		w.hasher.Reset()
		if err := p.read(ctx, w, l, 0); err != nil {
			return h, err
		}
		h.Digest = w.hasher.Sum()
	} else {
		h.Groups = make([][32]byte, blake.Groups(l.size))
		l.groups = h.Groups
		p.groups(ctx, w, l)
		l.helpers.Wait()
		if l.err != nil {
			return h, l.err
		}
		h.Digest = blake.Digest(h.Groups)
	}
	after, err := f.Info()
	if err != nil {
		return h, fmt.Errorf("hash: %w", err)
	}
	if !after.Same(h.Info) {
		return h, fmt.Errorf("hash %s: %w: before %s, after %s; stop what writes to the data set and try again",
			name, ErrUnstable, identity(h.Info), identity(after))
	}
	return h, nil
}

// largeFile is a file of which several workers may hash groups.
type largeFile struct {
	file    store.File
	name    string
	size    int64
	cached  bool
	groups  [][32]byte   // each is written by the worker that took its number
	next    atomic.Int64 // number of the group to be taken next
	helpers sync.WaitGroup

	mu  sync.Mutex
	err error
}

// fail keeps the first error, and leaves no group to be taken.
func (l *largeFile) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	l.next.Store(int64(len(l.groups)))
}

// groups hashes groups of a large file until none is left.
func (p *hashPool) groups(ctx context.Context, w *hashWorker, l *largeFile) {
	for {
		i := l.next.Add(1) - 1
		if i >= int64(len(l.groups)) {
			return
		}
		if i+1 < int64(len(l.groups)) {
			l.helpers.Add(1)
			select {
			case p.help <- l:
			default:
				l.helpers.Done()
			}
		}
		w.hasher.ResetGroup(i)
		if err := p.read(ctx, w, l, i); err != nil {
			l.fail(err)
			return
		}
		l.groups[i] = w.hasher.GroupCV()
	}
}

// read brings the bytes of a group into the hasher of the worker.
func (p *hashPool) read(ctx context.Context, w *hashWorker, l *largeFile, group int64) error {
	start := group * blake.GroupSize
	end := min(start+blake.GroupSize, l.size)
	for off := start; off < end; {
		if ctx.Err() != nil {
			return fmt.Errorf("hash %s: %w", l.name, context.Cause(ctx))
		}
		// A multiple of the block size is read from devices at the end of a file too, without a copy.
		ask := min(chunk, roundUp(end-off))
		if l.cached {
			ask = min(cachedPiece, end-off)
		}
		want := w.room(ask)
		n, err := l.file.ReadAt(want, off)
		n = int(min(int64(n), end-off)) // more than there was: the identity tells
		_, _ = w.hasher.Write(want[:n])
		off += int64(n)
		p.meter.add(0, int64(n))
		if err != nil && err != io.EOF {
			return fmt.Errorf("hash: %w", err)
		}
		if n < len(want) && off != end {
			return fmt.Errorf("hash %s: %w: expected %d bytes, reading ended after %d", l.name, ErrUnstable, l.size, off)
		}
	}
	return nil
}

// roundUp makes the last piece a multiple of the block size too, so that an uncached store can read it without a copy.
func roundUp(n int64) int64 { return (n + 4095) &^ 4095 }
