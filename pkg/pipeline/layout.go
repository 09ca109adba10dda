package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
)

// PinLayout says how samples lie in the files of a data set that is pinned, for its manifest.
type PinLayout struct {
	// Format is the container of the files.
	Format string
	// SamplesPerFile is what each file is taken to hold; 0: found out by looking into every file where the container says it (rows of hdf5 and
	// parquet, records of tfrecord, entries of an index), which must be the same for all, and 1 for other containers.
	SamplesPerFile int
	// DType is numpy's name of the element type; "" is uint8. Nothing follows from it.
	DType string
}

// errLayout is the error about files that do not lie as they are said to.
var errLayout = errors.New("the files do not have the layout")

// layoutOf collects what is pinned and finds its layout.
type layoutOf struct {
	manifest.Adder
	asked  *PinLayout
	paths  []string
	files  int64 // that were added
	layout *manifest.Layout
}

// newLayoutOf returns a layout that is filled in by find, and nil where none was asked for.
func newLayoutOf(asked *PinLayout) (*layoutOf, error) {
	if asked == nil {
		return &layoutOf{}, nil
	}
	l := &layoutOf{asked: asked, layout: &manifest.Layout{Format: asked.Format, DType: asked.DType, SamplesPerFile: int64(asked.SamplesPerFile)}}
	if asked.DType == "" {
		l.layout.DType = "uint8"
	}
	d, err := format.ParseDType(l.layout.DType)
	if err != nil {
		return nil, unfit(err)
	}
	l.layout.DType = d.Name
	if asked.SamplesPerFile < 0 {
		return nil, unfit(fmt.Errorf("%d samples in a file: expected 1 or more", asked.SamplesPerFile))
	}
	if _, err := format.NewForeign(format.Spec{Name: asked.Format}, max(1, asked.SamplesPerFile)); err != nil {
		return nil, unfit(err)
	}
	return l, nil
}

// Add adds an entry and keeps its path.
func (l *layoutOf) Add(e manifest.Entry) error {
	l.files++
	if l.asked != nil {
		l.paths = append(l.paths, e.Path)
	}
	return l.Adder.Add(e)
}

// AddGroups is Add of an entry with the chaining values of its groups, for a destination that takes them.
func (l *layoutOf) AddGroups(e manifest.Entry, groups [][32]byte) error {
	d, ok := l.Adder.(manifest.GroupAdder)
	if !ok {
		return l.Add(e)
	}
	l.files++
	if l.asked != nil {
		l.paths = append(l.paths, e.Path)
	}
	return d.AddGroups(e, groups)
}

// to makes dst what entries are added to.
func (l *layoutOf) to(dst manifest.Adder) *layoutOf { l.Adder = dst; return l }

var _ manifest.GroupAdder = (*layoutOf)(nil)

// find fills in the layout when all files are known.
func (l *layoutOf) find(ctx context.Context, st store.Store) error {
	if l.asked == nil {
		return nil
	}
	f, err := format.ByName(l.asked.Format)
	if err != nil {
		return unfit(err)
	}
	owner, err := pairs(l.paths, f)
	if err != nil {
		return fmt.Errorf("%w: %w", errLayout, err)
	}
	split := slices.ContainsFunc(l.paths, func(p string) bool { return strings.HasPrefix(p, trainPart) })
	first := ""
	for i, p := range l.paths {
		if owner != nil && owner[i] != i {
			continue
		}
		switch {
		case !split || strings.HasPrefix(p, trainPart):
			l.layout.Train++
		case strings.HasPrefix(p, validPart):
			l.layout.Valid++
		default:
			return unfit(fmt.Errorf("%w: %s; pin the data set without it (--exclude)", errParts, p))
		}
		if l.asked.SamplesPerFile > 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := countSamples(st, f, p, owner != nil)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %s: %w; where it is no sample, leave it out (--exclude)", errLayout, p, err)
		case n < 1:
			return fmt.Errorf("%w: %s holds no sample; leave it out (--exclude)", errLayout, p)
		case first == "":
			first, l.layout.SamplesPerFile = p, n
		case n != l.layout.SamplesPerFile:
			return fmt.Errorf("%w: %s holds %s and %s %d; say how many a run reads of each (--samples-per-file N): with 1 each file is one sample, whole",
				errLayout, first, counted(l.layout.SamplesPerFile, "sample"), p, n)
		}
	}
	l.layout.SamplesPerFile = max(1, l.layout.SamplesPerFile)
	return nil
}

// countSamples looks into one file.
func countSamples(st store.Store, f format.Format, name string, companions bool) (n int64, err error) {
	var open []store.File
	defer func() {
		for _, o := range open {
			err = errors.Join(err, o.Close())
		}
	}()
	at := func(name string) (io.ReaderAt, int64, error) {
		o, err := st.Open(name)
		if err != nil {
			return nil, 0, err
		}
		open = append(open, o)
		info, err := o.Info()
		return o, info.Size, err
	}
	file, size, err := at(name)
	if err != nil {
		return 0, err
	}
	var beside func(i int) (io.ReaderAt, int64, error)
	if c, ok := f.(format.Companioned); ok && companions {
		beside = func(i int) (io.ReaderAt, int64, error) { return at(c.Companions()[i].Path(name)) }
	}
	n, known, err := format.CountSamples(f, file, size, beside)
	if !known {
		return 1, nil
	}
	return n, err
}

// same reports whether a manifest has the layout that was asked for, or none was.
func (l *layoutOf) same(there *manifest.Layout) bool {
	return l.asked == nil || there != nil && *there == *l.layout
}
