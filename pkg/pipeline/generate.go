package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/benchpin/benchpin/pkg/datagen"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// GenerateOptions says which data set to make and where.
type GenerateOptions struct {
	Workload *workload.Workload
	// Data is the folder of the data set, Manifest the path of the manifest's header.
	Data, Manifest string
	// Workers is how many files are written at once; below 1: the number of cores.
	Workers int
	Notify
}

// Generate makes the data set of a workload and its manifest, hashing while it writes. Files that are there already are compared with
// what the recipe says and kept when equal; a folder that holds anything else is refused.
func Generate(ctx context.Context, o GenerateOptions) (manifest.Header, error) {
	recipe, err := datagen.FromWorkload(o.Workload)
	if err != nil {
		return manifest.Header{}, err
	}
	if err := apart(o.Data, place{o.Manifest, "--manifest"}); err != nil {
		return manifest.Header{}, err
	}
	st, err := store.NewFolder(o.Data, store.FolderOptions{})
	if err != nil {
		return manifest.Header{}, err
	}
	defer st.Close()
	o.stage("generate %d files into %s", recipe.Files(), o.Data)
	start := time.Now()
	h, err := datagen.Generate(ctx, st, recipe, datagen.Options{
		Workers: o.Workers, Manifest: o.Manifest,
		Progress: func(p datagen.Progress) { o.progress("generate", p.Files, p.AllFiles, p.Bytes, p.AllBytes) },
	})
	if err != nil {
		return manifest.Header{}, fmt.Errorf("generate: %w", err)
	}
	took := time.Since(start).Seconds()
	o.stage("pinned   %d files, %s, root %s (%.1f s, %s/s)", h.Count, gigabytes(h.Bytes), h.Root, took, gigabytes(int64(float64(h.Bytes)/took)))
	return h, nil
}

// PinOptions says which folder to pin.
type PinOptions struct {
	Data, Manifest string
	Workers        int
	Notify
}

// Pin hashes every file of a folder as it is, and writes the manifest.
func Pin(ctx context.Context, o PinOptions) (manifest.Header, error) {
	if err := apart(o.Data, place{o.Manifest, "--manifest"}); err != nil {
		return manifest.Header{}, err
	}
	st, err := store.NewFolder(o.Data, store.FolderOptions{Uncached: true})
	if err != nil {
		return manifest.Header{}, err
	}
	defer st.Close()
	f, err := manifest.Create(o.Manifest, manifest.Meta{})
	if err != nil {
		return manifest.Header{}, err
	}
	defer f.Abort()
	err = manifest.Build(ctx, st, f, manifest.BuildOptions{Workers: o.Workers, Progress: func(files, bytes int64) {
		o.progress("pin", files, -1, bytes, -1)
	}})
	if err != nil {
		return manifest.Header{}, fmt.Errorf("pin %s: %w", o.Data, err)
	}
	return f.Commit()
}
