package loader

import (
	"context"
	"fmt"
	"slices"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/store"
)

// Streaming says how files are streamed. Format is nil where samples are read by number.
type Streaming struct {
	Format   format.Streamed
	Transfer int
}

// Digests reads samples of one file as the workers of a loader read them, hashes what comes, and calls each with the digest of every
// sample of positions, which are in ascending order. Nothing is remembered of other files. The source captures what is read.
func Digests(ctx context.Context, src *Source, streaming Streaming, file int64, positions []int, each func(k int, digest [32]byte) error) (err error) {
	if src.Capture == nil || !slices.IsSorted(positions) {
		return fmt.Errorf("digests of what is read: expected a source that captures and positions in order, found %v", positions)
	}
	if len(positions) == 0 {
		return nil
	}
	w := newWorker(ctx, src, 0)
	defer func() {
		if cerr := w.end(); err == nil {
			err = cerr
		}
	}()
	x := NewHasher()
	if streaming.Format != nil {
		return w.streamed(x, streaming, file, positions, each)
	}
	buf, err := src.Buffers.Get(ctx)
	if err != nil {
		return err
	}
	defer src.Buffers.Put(buf)
	for _, k := range positions {
		s := Sample{File: file, Position: int64(k)}
		hold := w.keep()
		if err := w.sample(&s, buf, new(work)); err != nil {
			return err
		}
		w.sealed()
		if err := hashed(x, hold); err != nil {
			return err
		}
		if err := each(k, w.was.Digest()); err != nil {
			return err
		}
	}
	return nil
}

// streamed streams the file up to the last of the positions.
func (w *worker) streamed(x *Hasher, s Streaming, file int64, positions []int, each func(k int, digest [32]byte) error) error {
	if err := w.take(file); err != nil {
		return err
	}
	a := lane{w: w, stream: s.Format.Stream(w, w.cur.size, store.AlignedBuffer(s.Transfer)), chain: new([32]byte)}
	defer func() { a.stream.Close() }()
	for _, k := range positions {
		for a.done <= int64(k) {
			hold := w.keep()
			if _, err := a.next(); err != nil {
				return fmt.Errorf("read sample %d of %s: %w", a.done, w.cur.name, err)
			}
			a.done++
			w.sealed()
			if err := hashed(x, hold); err != nil {
				return err
			}
		}
		if err := each(k, w.was.Digest()); err != nil {
			return err
		}
	}
	return nil
}

// hashed hashes and links all of a hold.
func hashed(x *Hasher, h *Hold) error {
	for _, c := range h.Captures {
		if err := x.Hash(c); err != nil {
			return err
		}
		c.Link()
	}
	return nil
}
