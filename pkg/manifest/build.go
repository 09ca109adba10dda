package manifest

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchpin/benchpin/pkg/store"
)

// BuildOptions are the choices of Build. The zero value is good.
type BuildOptions struct {
	// Workers is how many files are hashed at once; below 1: twice the number of cores.
	Workers int
	// Exclude is what is no part of the data set: what dst was told to exclude.
	Exclude *Exclude
	// Cache, if not nil, has the digests of files that are as they were: they are not read. Build adds what it finds; the caller commits.
	Cache *DigestCache
	// Progress, if not nil, is called with the files and bytes hashed so far, never from two goroutines at once.
	Progress func(files, bytes int64)
}

// Adder receives entries in ascending order of their paths: a Writer or a File.
type Adder interface {
	Add(Entry) error
}

// GroupAdder is an Adder that takes the chaining values of the groups of files larger than 1 MiB too: a File.
type GroupAdder interface {
	AddGroups(e Entry, groups [][32]byte) error
}

// adding is how a destination takes files: with their groups where it can.
func adding(dst Adder) func(Entry, [][32]byte) error {
	if d, ok := dst.(GroupAdder); ok {
		return d.AddGroups
	}
	return func(e Entry, _ [][32]byte) error { return dst.Add(e) }
}

// hashed is a file on its way to a manifest.
type hashed struct {
	FileHash
	path   string
	begun  time.Time
	cached *cacheRecord // where its digest was known
}

// buildWindow is how many files may be hashed ahead of the oldest that is not done yet.
const buildWindow = 4096

// Build pins a store: it hashes every file that is not excluded and adds its entry to dst, in order. The result does not depend on the
// number of workers. Left-over temporary files are refused, since nobody means to pin them.
func Build(ctx context.Context, src Source, dst Adder, o BuildOptions) error {
	g, ctx := errgroup.WithContext(ctx)
	jobs := make(chan hashJob)
	order := make(chan chan hashed, buildWindow)
	add := adding(dst)
	m := &meter{report: o.Progress}

	g.Go(func() error {
		defer close(jobs)
		defer close(order)
		return listExcept(ctx, src, o.Exclude, func(i store.Info) error {
			if store.IsTemporary(i.Path) {
				return fmt.Errorf("pin %s: it is a temporary file that an interrupted program left behind; remove it first", i.Path)
			}
			result := make(chan hashed, 1)
			select {
			case order <- result:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if o.Cache != nil {
				if r := o.Cache.lookup(i); r != nil {
					m.add(1, i.Size)
					result <- hashed{FileHash: FileHash{r.digest, r.info, r.groups}, path: i.Path, cached: r}
					return nil
				}
			}
			begun := time.Now()
			select {
			case jobs <- hashJob{i.Path, func(h FileHash, err error) error {
				if err == nil {
					result <- hashed{FileHash: h, path: i.Path, begun: begun}
				}
				return err
			}}:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})
	hashAll(ctx, g, src, jobs, o.Workers, m)
	g.Go(func() error {
		for result := range order {
			select {
			case h := <-result:
				if err := add(Entry{Path: h.path, Size: h.Info.Size, Digest: h.Digest}, h.Groups); err != nil {
					return err
				}
				if o.Cache != nil && h.cached != nil {
					o.Cache.add(h.cached)
				} else if o.Cache != nil {
					o.Cache.keep(h.FileHash, h.path, h.begun)
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	return g.Wait()
}
