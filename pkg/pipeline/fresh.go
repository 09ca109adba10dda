package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
)

// clockTick is how far apart two changes of a file must lie for their times to differ surely. Kernels stamp files with a clock that moves
// every 1 to 10 ms, so that a change right after another one leaves the same times.
const clockTick = 20 * time.Millisecond

// fresh is true for a file that was changed so shortly before now that a change after it might not show in its times.
func fresh(i store.Info, now time.Time) bool {
	return max(i.ChangeTime, i.ModTime) > now.Add(-clockTick).UnixNano()
}

// aged waits until a change of a file that was fresh would show.
func aged(ctx context.Context) error {
	t := time.NewTimer(2 * clockTick)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hashFresh hashes files again that were changed shortly before they were hashed, once a change after that would show: whoever changed
// one meanwhile is noticed.
func (r *run) hashFresh(ctx context.Context, src manifest.Source, files map[string]store.Info) error {
	if len(files) == 0 {
		return nil
	}
	if err := aged(ctx); err != nil {
		return err
	}
	var changed error
	_, err := manifest.Verify(ctx, r.manifest, src, manifest.VerifyOptions{
		Workers: r.Workers,
		Share:   r.share(),
		Select:  func(e manifest.Entry) bool { _, ok := files[e.Path]; return ok },
		Each: func(_ int64, e manifest.Entry, info store.Info) {
			if was := files[e.Path]; changed == nil && !info.Same(was) {
				changed = &bench.IdentityError{Path: e.Path, Expected: was, Found: info}
			}
		},
	})
	if err != nil {
		return fmt.Errorf("hash what was new again: %w", err)
	}
	return changed
}

// unchanged compares the identity of every file that the run read with what it was before, when the clock has stopped: a file that was
// changed while it was open, and not opened again, shows here.
func (r *run) unchanged(ctx context.Context) error {
	if r.known == nil {
		return nil
	}
	type file struct {
		path  string
		known store.Info
	}
	files := make(chan file)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(files)
		n := 0
		for _, p := range r.parts() {
			for i := range p.Files() {
				if n++; !r.mine(n) {
					continue
				}
				for c := range 1 + len(p.companions) {
					select {
					case files <- file{p.name(i, c), r.known[p.entry(i, c)]}:
					case <-gctx.Done():
						return context.Cause(gctx)
					}
				}
			}
		}
		return nil
	})
	looking := 16 // at once: a network takes its time to tell
	if IsBucket(r.Data) {
		looking = lookingAtOnce
	}
	for range looking {
		g.Go(func() error {
			for f := range files {
				info, err := r.data.Stat(f.path)
				if errors.Is(err, fs.ErrNotExist) {
					return &manifest.MismatchError{Kind: manifest.Missing, Path: f.path, Expected: &manifest.Side{Size: f.known.Size}}
				}
				if err != nil {
					return err
				}
				if !info.Same(f.known) {
					return &bench.IdentityError{Path: f.path, Expected: f.known, Found: info}
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("look at the data set after the run: %w", err)
	}
	return nil
}
