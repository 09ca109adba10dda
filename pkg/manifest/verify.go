package manifest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"sync"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"github.com/benchpin/benchpin/pkg/store"
)

// VerifyOptions are the choices of Verify. The zero value is good.
type VerifyOptions struct {
	// Workers is how many files are hashed at once; below 1: twice the number of cores.
	Workers int
	// Limit is the number of mismatches after which verifying stops; below 1: 100. It bounds memory and, for a data set
	// that is another one altogether, time.
	Limit int
	// Select, if not nil, says which files are hashed; of the others only presence and size are compared.
	Select func(Entry) bool
	// Share is this process's part where several verify together: only files whose index in the manifest leaves the remainder Index when
	// divided by Of are hashed. Process 0 lists the store and compares presence and size of all; the others list nothing, and look at nothing
	// but the files that they hash. Of below 2: all files.
	Share Share
	// MetadataOnly is true when no file is hashed, nor opened. What is found then is no evidence: bytes may differ in files of the same
	// size. It tells soon whether anything is missing, extra or cut off.
	MetadataOnly bool
	// Groups, if not nil, are the manifest's group digests: those of every file are held to its entry, and the error has the class of
	// the fault where they are damaged.
	Groups *Groups
	// Each, if not nil, is called for every file that was hashed and found equal, with its index in the manifest and the
	// identity that it had before and after. Calls come in any order, never two at once.
	Each func(index int64, e Entry, info store.Info)
	// Progress, if not nil, is called with the files and bytes hashed so far, never two calls at once.
	Progress func(files, bytes int64)
}

// Share is the part of process Index of Of processes.
type Share struct{ Index, Of int }

// has says whether a file is of this part.
func (s Share) has(index int64) bool { return s.Of < 2 || index%int64(s.Of) == int64(s.Index) }

// Report says what Verify did.
type Report struct {
	Root    digest.Digest // of the manifest; its entries were found to have it
	Files   int64         // hashed
	Bytes   int64         // hashed
	Skipped int64         // files of which only presence and size were compared, by choice of Select or MetadataOnly
	// Mismatches are the differences found, sorted by path.
	Mismatches []*MismatchError
	// Stopped is true when there were so many mismatches that verifying ended early; there may be more.
	Stopped bool
}

// errEnough ends a verification that found too much.
var errEnough = errors.New("too many mismatches")

// Verify compares a store with a manifest: every file that one of them has. It returns nil only if each is in both, with the
// size and the bytes that the manifest says, and the manifest itself is sound. What the manifest excludes may be in the store. If files differ, the error matches
// *MismatchError (the first by path) and the report holds them all up to the limit. Listing and entries are merged as they
// stream, so that memory does not grow with the number of files.
func Verify(ctx context.Context, m *Manifest, src Source, o VerifyOptions) (Report, error) {
	v := &verifier{src: src, o: o, limit: o.Limit, meter: meter{report: o.Progress}, jobs: make(chan hashJob)}
	if v.limit < 1 {
		v.limit = 100
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	v.cancel = cancel
	g, gctx := errgroup.WithContext(inner)
	g.Go(func() error {
		defer close(v.jobs)
		return v.walk(gctx, m)
	})
	hashAll(gctx, g, src, v.jobs, o.Workers, &v.meter)
	err := g.Wait()
	r := Report{Root: m.header.Root, Files: v.files, Bytes: v.bytes, Skipped: v.skipped, Mismatches: v.found}
	r.Stopped = v.stopped
	if v.stopped && ctx.Err() == nil && (errors.Is(err, errEnough) || errors.Is(err, context.Canceled)) {
		err = nil // what was in flight was told to end by us
	}
	if err != nil {
		return r, fmt.Errorf("verify: %w", err)
	}
	if r.Mismatches, err = v.renames(ctx); err != nil {
		return r, fmt.Errorf("verify: %w", err)
	}
	switch n := len(r.Mismatches); {
	case n == 0:
		return r, nil
	case n == 1 && !r.Stopped:
		return r, fmt.Errorf("verify: %w", r.Mismatches[0])
	case r.Stopped:
		return r, fmt.Errorf("verify: %w (and %d more, then verifying stopped)", r.Mismatches[0], n-1)
	default:
		return r, fmt.Errorf("verify: %w (and %d more)", r.Mismatches[0], n-1)
	}
}

type job struct {
	index int64
	e     Entry
}

type verifier struct {
	src     Source
	o       VerifyOptions
	limit   int
	cancel  context.CancelCauseFunc
	jobs    chan hashJob
	skipped int64

	meter meter

	mu           sync.Mutex // guards what follows
	found        []*MismatchError
	stopped      bool
	files, bytes int64
}

// walk merges listing and entries and hands out what is to be hashed.
func (v *verifier) walk(ctx context.Context, m *Manifest) error {
	if v.o.Share.Of > 1 && v.o.Share.Index > 0 {
		return v.own(ctx, m)
	}
	nextEntry, stopEntries := pull(func(yield func(Entry) error) error { return v.entries(ctx, m, yield) })
	defer stopEntries()
	nextInfo, stopInfos := pull(func(yield func(store.Info) error) error { return listExcept(ctx, v.src, m.exclude, yield) })
	defer stopInfos()

	e, haveE, err := nextEntry()
	if err != nil {
		return err
	}
	i, haveI, err := nextInfo()
	if err != nil {
		return err
	}
	for index := int64(0); haveE || haveI; {
		stepE := haveE && (!haveI || e.Path <= i.Path)
		stepI := haveI && (!haveE || i.Path <= e.Path)
		switch {
		case stepE && stepI:
			if err := v.both(ctx, index, e, i); err != nil {
				return err
			}
		case stepE:
			v.differ(&MismatchError{Kind: Missing, Path: e.Path, Expected: expected(e)})
		default:
			v.differ(&MismatchError{Kind: Extra, Path: i.Path, Found: &Side{Size: i.Size}})
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if stepE {
			index++
			if e, haveE, err = nextEntry(); err != nil {
				return err
			}
		}
		if stepI {
			before := i.Path
			if i, haveI, err = nextInfo(); err != nil {
				return err
			}
			if haveI && i.Path <= before {
				return fmt.Errorf("the store lists %q after %q, expected the order of raw bytes", i.Path, before)
			}
		}
	}
	return nil
}

// own hands out what this process is to hash, without a look at anything else.
func (v *verifier) own(ctx context.Context, m *Manifest) error {
	index := int64(0)
	return v.entries(ctx, m, func(e Entry) error {
		i := index
		index++
		if v.o.MetadataOnly || !v.o.Share.has(i) || v.o.Select != nil && !v.o.Select(e) {
			return ctx.Err()
		}
		return v.hash(ctx, i, e)
	})
}

// entries reads the manifest, and its group digests beside it where they are to be checked.
func (v *verifier) entries(ctx context.Context, m *Manifest, yield func(Entry) error) error {
	if v.o.Groups == nil {
		return m.Entries(ctx, yield)
	}
	return v.o.Groups.Each(ctx, m, func(_ int64, e Entry, _ [][32]byte) error { return yield(e) })
}

func expected(e Entry) *Side { return &Side{Size: e.Size, Digest: FormatDigest(e.Digest)} }

// both handles a path that manifest and store have.
func (v *verifier) both(ctx context.Context, index int64, e Entry, i store.Info) error {
	if e.Size != i.Size {
		v.differ(&MismatchError{Kind: Changed, Path: e.Path, Expected: expected(e), Found: &Side{Size: i.Size}})
		return nil
	}
	if v.o.MetadataOnly || !v.o.Share.has(index) || v.o.Select != nil && !v.o.Select(e) {
		v.skipped++
		return nil
	}
	return v.hash(ctx, index, e)
}

// hash hands out a file to be hashed.
func (v *verifier) hash(ctx context.Context, index int64, e Entry) error {
	select {
	case v.jobs <- hashJob{e.Path, func(h FileHash, err error) error { return v.compare(job{index, e}, h, err) }}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// compare compares what hashing gave with the entry.
func (v *verifier) compare(j job, h FileHash, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.differ(&MismatchError{Kind: Missing, Path: j.e.Path, Expected: expected(j.e)})
	case err != nil:
		return err
	case h.Digest != j.e.Digest || h.Info.Size != j.e.Size:
		v.differ(&MismatchError{Kind: Changed, Path: j.e.Path, Expected: expected(j.e), Found: &Side{h.Info.Size, FormatDigest(h.Digest)}})
	default:
		v.equal(j, h.Info)
	}
	return nil
}

func (v *verifier) equal(j job, info store.Info) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.files++
	v.bytes += info.Size
	if v.o.Each != nil {
		v.o.Each(j.index, j.e, info)
	}
}

func (v *verifier) differ(m *MismatchError) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stopped {
		return
	}
	v.found = append(v.found, m)
	if len(v.found) >= v.limit {
		v.stopped = true
		v.cancel(errEnough)
	}
}

// renames hashes those extra files that have the size of a missing one, and pairs equal ones.
func (v *verifier) renames(ctx context.Context) ([]*MismatchError, error) {
	sizes := map[int64]bool{}
	for _, m := range v.found {
		if m.Kind == Missing && !v.o.MetadataOnly {
			sizes[m.Expected.Size] = true
		}
	}
	digests := map[string]digest.Digest{}
	for _, m := range v.found {
		if m.Kind != Extra || !sizes[m.Found.Size] {
			continue
		}
		h, err := HashFile(ctx, v.src, m.Path, HashOptions{Workers: v.o.Workers})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return v.found, err
		}
		digests[m.Path] = FormatDigest(h.Digest)
	}
	return pairRenames(v.found, digests), nil
}

// pull turns a function that calls back into one that is asked for the next value. After the last value, next returns
// false and the function's error. stop must be called in the end.
func pull[T any](each func(yield func(T) error) error) (next func() (T, bool, error), stop func()) {
	errStop := errors.New("no more values wanted")
	var final error
	n, stop := iter.Pull(func(yield func(T) bool) {
		final = each(func(v T) error {
			if !yield(v) {
				return errStop
			}
			return nil
		})
	})
	return func() (T, bool, error) {
		v, ok := n()
		if ok {
			return v, true, nil
		}
		return v, false, final
	}, stop
}
