package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"time"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// lookAt takes the identity of one file, which must be there with its size. The path is left out: it is the manifest's.
func (r *run) lookAt(e manifest.Entry) (store.Info, error) {
	info, err := r.data.StatSettled(e.Path)
	wanted := &manifest.Side{Size: e.Size, Digest: manifest.FormatDigest(e.Digest)}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return info, &manifest.MismatchError{Kind: manifest.Missing, Path: e.Path, Expected: wanted}
	case err != nil:
		return info, err
	case info.Size != e.Size:
		return info, &manifest.MismatchError{Kind: manifest.Changed, Path: e.Path, Expected: wanted, Found: &manifest.Side{Size: info.Size}}
	}
	info.Path = ""
	return info, nil
}

// look takes the identity of every file before a run whose data set is verified after it: what is hashed then must be what was read.
func (r *run) look(ctx context.Context) error {
	if IsBucket(r.Data) {
		known, err := r.lookAtBucket(ctx)
		return r.looked(ctx, known, err)
	}
	known := make([]store.Info, len(r.files.byEntry))
	index, now, again := 0, time.Now(), false
	err := r.manifest.Entries(ctx, func(e manifest.Entry) error {
		if !r.mine(index) {
			index++
			return nil
		}
		info, err := r.lookAt(e)
		if err != nil {
			return err
		}
		known[r.files.byEntry[index]] = info
		index++
		again = again || fresh(info, now)
		return nil
	})
	if err != nil {
		err = fmt.Errorf("look at the data set: %w", err)
	} else if first := r.known == nil; again && first {
		// What is seen now is what a change from here on differs from.
		if err = aged(ctx); err == nil {
			r.known = known
			return r.look(ctx)
		}
	}
	return r.looked(ctx, known, err)
}

// looked joins what the processes found out about their shares of the files.
func (r *run) looked(ctx context.Context, known []store.Info, err error) error {
	if err := agreed(ctx, r.World, err); err != nil {
		return err
	}
	r.known = known
	return r.shareKnown(ctx)
}

// verify compares the data set with its manifest without leaving more of it in the page cache than was there.
func (r *run) verify(ctx context.Context) error {
	uncached, err := r.at(ctx, r.Data, store.FolderOptions{Uncached: true, Resident: true, Settle: true})
	if err != nil {
		return err
	}
	defer uncached.Close()
	h := r.manifest.Header()
	files, bytes := h.Count, h.Bytes
	var drawn func(manifest.Entry) bool
	if r.w.Benchpin.Verify == workload.VerifySample {
		s, err := sampleOf(ctx, r.manifest, r.w, cmp.Or(r.SampleSeed, newSeed()))
		if err != nil {
			return err
		}
		files, bytes, r.verified.Sample = s.files, s.bytes, &s.verified
		drawn = func(e manifest.Entry) bool { return s.paths[e.Path] }
	}
	r.stage("verify   %s, %s, against %s", counted(files, "file"), gigabytes(bytes), h.Root)
	r.verified.ResidentBefore = r.resident()
	known, before := make([]store.Info, len(r.files.byEntry)), r.known
	copy(known, before) // those outside of a sample stay as they were seen
	var replaced error
	start := time.Now()
	young := map[string]store.Info{}
	report, err := manifest.Verify(ctx, r.manifest, uncached, manifest.VerifyOptions{
		Workers: r.Workers, Select: drawn, Share: r.share(),
		Each: func(index int64, e manifest.Entry, info store.Info) {
			if fresh(info, start) {
				young[e.Path] = info
			}
			info.Path = "" // the plan knows it; a million paths need not be kept twice
			i := r.files.byEntry[index]
			known[i] = info
			if before != nil && replaced == nil && !info.Same(before[i]) {
				replaced = &bench.IdentityError{Path: e.Path, Expected: before[i], Found: info}
			}
		},
		Progress: func(n, done int64) { r.progress("verify", r.ofAll(n, files), files, r.ofAll(done, bytes), bytes) },
	})
	if err == nil {
		err = replaced
	}
	if err == nil && hashesBefore(r.w.Benchpin.Verify) {
		err = r.hashFresh(ctx, uncached, young)
	}
	if err != nil {
		err = asVerification(fmt.Errorf("verify the data set: %w", err))
	}
	if err := agreed(ctx, r.World, err); err != nil {
		return err
	}
	if err := summed(ctx, r.World, &report.Files, &report.Bytes); err != nil {
		return err
	}
	r.verified.Seconds = time.Since(start).Seconds()
	r.verified.Files, r.verified.Bytes = record.Int(report.Files), record.Int(report.Bytes)
	r.verified.ResidentAfter = r.resident()
	r.known = known
	if err := r.shareKnown(ctx); err != nil {
		return err
	}
	r.stage("verified %s in %.1f s", gigabytes(report.Bytes), r.verified.Seconds)
	return nil
}

// parts are those of the data set that the run reads.
func (r *run) parts() []pinnedPart {
	if r.w.Workflow.Evaluation {
		return []pinnedPart{r.files.pinnedPart, r.files.valid}
	}
	return []pinnedPart{r.files.pinnedPart}
}

// read gives the paths of all files that the run reads.
func (r *run) read() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, p := range r.parts() {
			for path := range p.all() {
				if !yield(path) {
					return
				}
			}
		}
	}
}

// resident returns how many bytes of the files that the run reads are in the page cache, or nil where the host does not tell.
func (r *run) resident() *record.Int {
	if !leads(r.World) {
		return nil // the record has what the first process finds on its host
	}
	var sum record.Int
	for name := range r.read() {
		n, err := r.data.Resident(name)
		if err != nil {
			return nil
		}
		sum += record.Int(n)
	}
	return &sum
}

// evict drops the files that the run reads from the page cache.
func (r *run) evict(ctx context.Context) error {
	var done, all int64
	if r.dropping != nil {
		for _, p := range r.parts() {
			all += int64(p.count) * int64(1+len(p.companions))
		}
		defer r.dropping(0, 0)
	}
	for name := range r.read() {
		if r.dropping != nil {
			r.dropping(done, all)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.data.Evict(name); err != nil {
			return err
		}
		done++
	}
	if r.w.Benchpin.ColdCache == workload.ColdAll {
		return dropAll()
	}
	return nil
}

// identity returns what was known of a file when its bytes were verified.
func (r *run) identity(f bench.FileID) (store.Info, bool) {
	if r.known == nil {
		return store.Info{}, false
	}
	part := &r.files.pinnedPart
	if f.Evaluation {
		part = &r.files.valid
	}
	return r.known[part.entry(f.Index, f.Companion)], true
}
