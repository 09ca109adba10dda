package manifest

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/benchpin/benchpin/pkg/store"
)

// BuildOptions are the choices of Build. The zero value is good.
type BuildOptions struct {
	// Workers is how many files are hashed at once; below 1: twice the number of cores.
	Workers int
	// Progress, if not nil, is called with the files and bytes hashed so far, never from two goroutines at once.
	Progress func(files, bytes int64)
}

// Adder receives entries in ascending order of their paths: a Writer or a File.
type Adder interface {
	Add(Entry) error
}

// buildWindow is how many files may be hashed ahead of the oldest that is not done yet.
const buildWindow = 4096

// Build pins a store: it hashes every file and adds its entry to dst, in order. The result does not depend on the
// number of workers. Left-over temporary files are refused, since nobody means to pin them.
func Build(ctx context.Context, src Source, dst Adder, o BuildOptions) error {
	type slot struct {
		path string
		done chan Entry
	}
	n := workers(o.Workers)
	g, ctx := errgroup.WithContext(ctx)
	jobs := make(chan slot)
	order := make(chan slot, buildWindow)
	m := &meter{report: o.Progress}

	g.Go(func() error {
		defer close(jobs)
		defer close(order)
		return src.List(ctx, func(i store.Info) error {
			if store.IsTemporary(i.Path) {
				return fmt.Errorf("pin %s: it is a temporary file that an interrupted program left behind; remove it first", i.Path)
			}
			s := slot{i.Path, make(chan Entry, 1)}
			select {
			case order <- s:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			select {
			case jobs <- s:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})
	for range n {
		g.Go(func() error {
			buf := store.AlignedBuffer(chunk)
			for s := range jobs {
				sum, info, err := HashFile(ctx, src, s.path, buf, m.piece)
				if err != nil {
					return err
				}
				m.add(1, 0)
				s.done <- Entry{Path: s.path, Size: info.Size, Digest: sum}
			}
			return nil
		})
	}
	g.Go(func() error {
		for s := range order {
			select {
			case e := <-s.done:
				if err := dst.Add(e); err != nil {
					return err
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	return g.Wait()
}
