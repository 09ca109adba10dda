package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchpin/benchpin/pkg/bench/loader"
	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
)

// confirm compares what was read of parts of files with the manifest, when the clock has stopped: each file that was read is hashed as a
// whole, and then read again as the run read it, sample by sample; what comes must have the digests of the run.
func (v *inline) confirm(ctx context.Context, r *run) error {
	start := time.Now()
	from := r.o.Confirm
	if from == nil {
		from = r.o.Data
	}
	type job struct {
		evaluation bool
		file       int
	}
	jobs, cores, workers := make(chan job), runtime.GOMAXPROCS(0), 1
	if v.reads.parts[0]+v.reads.parts[1] < int64(cores) {
		workers = cores // few files, which may be large
	}
	var files, bytes, samples atomic.Int64
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(jobs)
		for p, n := range v.reads.parts {
			for f := r.world.Rank(); f < int(n); f += r.world.Size() { // each process has its share
				select {
				case jobs <- job{p == 1, f}:
				case <-gctx.Done():
					return context.Cause(gctx)
				}
			}
		}
		return nil
	})
	for range cores {
		g.Go(func() error {
			c := confirmer{inline: v, p: r.p, from: from, workers: workers}
			defer func() { files.Add(c.files); bytes.Add(c.bytes); samples.Add(c.samples) }()
			for j := range jobs {
				if err := c.file(gctx, FileID{Evaluation: j.evaluation, Index: j.file}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("compare what was read with the manifest: %w", err)
	}
	v.files, v.bytes = files.Load(), bytes.Load()
	v.confirmed = &record.InlineConfirmation{Samples: record.Int(samples.Load()), Seconds: time.Since(start).Seconds()}
	return nil
}

// confirmer works on one file at a time.
type confirmer struct {
	*inline
	p    *Plan
	from loader.Opener
	// workers is how many goroutines hash one file.
	workers int

	files, bytes, samples int64
}

// file confirms what was read of one data file and its companions; nothing if nothing was.
func (c *confirmer) file(ctx context.Context, f FileID) error {
	positions := c.reads.Positions(f)
	if len(positions) == 0 {
		return nil
	}
	ds := c.parts[part(f.Evaluation)]
	known := make([]store.Info, 1, 2)
	info, err := c.whole(ctx, ds, f)
	if err != nil {
		return err
	}
	known[0] = info
	var companions []format.Companion
	if c.form != loader.FormStream {
		companions = c.p.reading.companions()
	}
	for i := range companions {
		if info, err = c.whole(ctx, ds, FileID{f.Evaluation, f.Index, i + 1}); err != nil {
			return err
		}
		known = append(known, info)
	}
	// The bytes that are read again are those that were hashed: the files are the same when they are opened, and still when they were read.
	src, err := c.p.samplesOf(ds, c.from)
	if err != nil {
		return err
	}
	src.Identity = func(_ int64, companion int) (store.Info, bool) { return known[companion], true }
	err = c.p.digests(ctx, src, int64(f.Index), positions, func(k int, found [32]byte) error {
		c.samples++
		if read, _ := c.reads.Digest(f, k); read != found {
			return fmt.Errorf("%w: sample %d of %s: the file's bytes, which the manifest has, give the digest %s; in the run bytes with %s were read; "+
				"leave the data set alone during a run", ErrRead, k, ds.Path(f.Index), digestText(found), digestText(read))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range known {
		if err := c.still(ds, FileID{f.Evaluation, f.Index, i}, known[i]); err != nil {
			return err
		}
	}
	return nil
}

// path is that of a data file or of its companion.
func (c *confirmer) path(ds Dataset, f FileID) string {
	path := ds.Path(f.Index)
	if f.Companion == 0 {
		return path
	}
	return c.p.reading.companions()[f.Companion-1].Path(path)
}

// whole hashes a file and compares it with the manifest.
func (c *confirmer) whole(ctx context.Context, ds Dataset, f FileID) (store.Info, error) {
	path := c.path(ds, f)
	got, err := manifest.HashFile(ctx, c.from, path, manifest.HashOptions{Workers: c.workers})
	sum, info := got.Digest, got.Info
	want := ds.(Digested).Digest(f.Index, f.Companion)
	side := &manifest.Side{Digest: manifest.FormatDigest(want)}
	if f.Companion == 0 {
		side.Size = ds.Size(f.Index)
	} else {
		side.Size = info.Size // the digest tells
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return info, &manifest.MismatchError{Kind: manifest.Missing, Path: path, Expected: side}
	case err != nil:
		return info, err
	case sum != want:
		return info, &manifest.MismatchError{Kind: manifest.Changed, Path: path, Expected: side,
			Found: &manifest.Side{Size: info.Size, Digest: manifest.FormatDigest(sum)}}
	}
	c.files++
	c.bytes += info.Size
	return info, nil
}

// still compares the identity of a file with what it was.
func (c *confirmer) still(ds Dataset, f FileID, known store.Info) error {
	path := c.path(ds, f)
	file, err := c.from.Open(path)
	if err != nil {
		return fmt.Errorf("open %s again: %w", path, err)
	}
	defer file.Close()
	info, err := file.Info()
	if err != nil {
		return fmt.Errorf("look at %s again: %w", path, err)
	}
	if !info.Same(known) {
		return &IdentityError{Path: path, Expected: known, Found: info}
	}
	return nil
}

// samplesOf is a source of single samples, read as the plan's runs read them.
func (p *Plan) samplesOf(ds Dataset, from loader.Opener) (*loader.Source, error) {
	buffers, err := loader.NewBuffers(p.BufferBytes, 1)
	if err != nil {
		return nil, err
	}
	blocks, err := loader.NewBlocks(p.BufferBytes)
	if err != nil {
		return nil, err
	}
	src := p.source(ds)
	src.Store, src.Buffers, src.Capture = from, buffers, &loader.Capturing{Form: p.Inline(), Blocks: blocks}
	return src, nil
}

// digests computes the digests of samples of one file.
func (p *Plan) digests(ctx context.Context, src *loader.Source, file int64, positions []int, each func(k int, digest [32]byte) error) error {
	return loader.Digests(ctx, src, loader.Streaming{Format: p.reading.streamed, Transfer: p.reading.transfer}, file, positions, each)
}

// SampleDigests computes what the transcript holds of samples of file i of a part of a data set, from the bytes of the file and its companions: what an
// auditor does who made the file again. positions are in order; each is called for each of them.
func SampleDigests(ctx context.Context, p *Plan, ds Dataset, from loader.Opener, i int, positions []int, each func(k int, digest [32]byte) error) error {
	if f := p.Inline(); f == "" || f == loader.FormNone {
		return errors.New("digests of what is read: the plan's runs have none")
	}
	src, err := p.samplesOf(ds, from)
	if err != nil {
		return err
	}
	return p.digests(ctx, src, int64(i), positions, each)
}
