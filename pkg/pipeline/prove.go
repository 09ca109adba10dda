package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/benchpin/benchpin/pkg/datagen"
	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
)

// ProveOptions says what is proven to belong to a data set.
type ProveOptions struct {
	// Data is the folder or bucket of the data set; "": only the manifest is read, and no bytes are held to it. Manifest is the path of
	// the manifest's header.
	Data, Manifest string
	// File is the path of the file as the manifest has it, or below Data as the working folder sees it.
	File string
	// Range, if not nil, are the first byte and the one after the last. Sample, if not nil, is the number of a sample from 0 on, whose
	// bytes are the range. At most one is given.
	Range  *[2]int64
	Sample *int
	// Workers is how many goroutines hash; below 1: twice the number of cores.
	Workers int
	Notify
}

// ErrNoSample is wrapped by the error about a sample that a file does not have.
var ErrNoSample = errors.New("no such sample")

// Prove makes the proof that a file, or a part of it, belongs to the data set of a manifest, and holds the bytes to it that it is about.
func Prove(ctx context.Context, o ProveOptions) (*manifest.FileProof, error) {
	m, err := manifest.Open(o.Manifest)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	file, err := o.entry(ctx, m)
	if err != nil {
		return nil, err
	}
	p := manifest.ProveOptions{Workers: o.Workers}
	if o.Data != "" {
		st, err := OpenData(ctx, o.Data, store.FolderOptions{Uncached: true, Resident: true})
		if err != nil {
			return nil, err
		}
		defer st.Close()
		p.Source = st
	}
	if p.Groups, err = manifest.OpenGroupsIfAny(o.Manifest, m); err != nil {
		return nil, err
	}
	if p.Groups != nil {
		defer p.Groups.Close()
	}
	switch {
	case o.Range != nil:
		p.From, p.To = o.Range[0], o.Range[1]
	case o.Sample != nil:
		where, err := locate(ctx, m, p.Source, file, *o.Sample)
		if err != nil {
			return nil, err
		}
		p.From, p.To = where.from, where.to
		if where.why != "" {
			o.stage("sample   %d of %s: %s, so the proof is about the whole file", *o.Sample, file, where.why)
		} else {
			o.stage("sample   %d of %s: bytes %d to %d", *o.Sample, file, p.From, p.To)
		}
	}
	proof, err := m.ProveFile(ctx, file, p)
	if err != nil {
		return nil, fmt.Errorf("prove: %w", err)
	}
	return proof, nil
}

// entry finds the path under which the manifest has the file.
func (o ProveOptions) entry(ctx context.Context, m *manifest.Manifest) (string, error) {
	_, _, err := m.Find(ctx, o.File)
	if err == nil || !errors.Is(err, manifest.ErrNoEntry) || o.Data == "" || IsBucket(o.Data) {
		return o.File, err
	}
	below, rerr := filepath.Rel(o.Data, o.File)
	if rerr != nil || strings.HasPrefix(below, "..") {
		return "", err
	}
	if _, _, berr := m.Find(ctx, filepath.ToSlash(below)); berr != nil {
		return "", err
	}
	return filepath.ToSlash(below), nil
}

// located is where a sample is: bytes from up to but not including to; both 0 and why where that cannot be told more closely than the file.
type located struct {
	from, to int64
	why      string
}

// locate finds the bytes of a sample by reading it as a framework's reader does, and looking at what is asked of the file: a stretch that
// is as long as the sample is the sample.
func locate(ctx context.Context, m *manifest.Manifest, src manifest.Opener, path string, k int) (located, error) {
	f, samples, err := containerOf(m)
	if err != nil {
		return located{}, err
	}
	switch {
	case k < 0 || int64(k) >= samples:
		return located{}, fmt.Errorf("prove %s: %w: number %d, each file has %d, from 0 on", path, ErrNoSample, k, samples)
	case f == nil:
		return located{why: "the manifest does not say how samples lie in the files"}, nil
	case samples == 1:
		return located{why: "the file is one sample"}, nil
	case src == nil:
		return located{}, fmt.Errorf("prove %s: samples are found by reading the file: say where the data set is", path)
	}
	file, err := src.Open(path)
	if err != nil {
		return located{}, fmt.Errorf("prove: %w", err)
	}
	defer file.Close()
	info, err := file.Info()
	if err != nil {
		return located{}, fmt.Errorf("prove: %w", err)
	}
	asked := &asking{f: file}
	s, err := readSample(ctx, f, src, path, asked, info.Size, k)
	if err != nil {
		return located{}, fmt.Errorf("prove: sample %d of %s: %w", k, path, err)
	}
	if from, ok := asked.stretch(s.Logical); ok && s.Logical < info.Size {
		return located{from: from, to: from + s.Logical}, nil
	}
	if r := asked.reads; len(r) == 1 && r[0][1]-r[0][0] < info.Size { // the sample and what frames it: a record with its checksums
		return located{from: r[0][0], to: r[0][1]}, nil
	}
	return located{why: fmt.Sprintf("the bytes of a sample are not one stretch of a file of format %s", f.Name())}, nil
}

// containerOf returns the format of the files of a data set and how many samples each holds; nil where the manifest does not say.
func containerOf(m *manifest.Manifest) (format.Format, int64, error) {
	h := m.Header()
	if h.Layout == nil {
		return nil, math.MaxInt64, nil
	}
	if h.Recipe != nil {
		r, err := datagen.ParseRecipe(h.Recipe)
		if err != nil {
			return nil, 0, fmt.Errorf("recipe of the manifest: %w", err)
		}
		return r.Format(), h.Layout.SamplesPerFile, nil
	}
	f, err := format.NewForeign(format.Spec{Name: h.Layout.Format}, int(min(h.Layout.SamplesPerFile, math.MaxInt32)))
	if err != nil {
		return nil, h.Layout.SamplesPerFile, nil // pinned by somebody whose formats are not known here: the whole file is meant
	}
	return f, h.Layout.SamplesPerFile, nil
}

func readSample(ctx context.Context, f format.Format, src manifest.Opener, path string, file io.ReaderAt, size int64, k int) (format.Sample, error) {
	buf := store.AlignedBuffer(256 << 10)
	with, ok := f.(format.CompanionReader)
	if !ok {
		return f.ReadSample(file, size, k, buf)
	}
	var open []store.File
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	companions := f.(format.Companioned).Companions()
	return with.ReadSampleWith(file, size, func(i int) (io.ReaderAt, int64, error) {
		if ctx.Err() != nil {
			return nil, 0, context.Cause(ctx)
		}
		c, err := src.Open(companions[i].Path(path))
		if err != nil {
			return nil, 0, err
		}
		open = append(open, c)
		info, err := c.Info()
		return c, info.Size, err
	}, k, buf)
}

// asking remembers what is asked of a file.
type asking struct {
	f     io.ReaderAt
	reads [][2]int64 // first byte and the one after the last of each read, adjacent ones in one
	each  [][2]int64
}

func (a *asking) ReadAt(p []byte, off int64) (int, error) {
	n, err := a.f.ReadAt(p, off)
	r := [2]int64{off, off + int64(n)}
	a.each = append(a.each, r)
	if last := len(a.reads) - 1; last >= 0 && a.reads[last][1] == off {
		a.reads[last][1] = r[1]
	} else {
		a.reads = append(a.reads, r)
	}
	return n, err
}

// stretch finds what was read last of exactly n bytes in one stretch.
func (a *asking) stretch(n int64) (from int64, ok bool) {
	for _, all := range [][][2]int64{a.reads, a.each} {
		for i := len(all) - 1; i >= 0; i-- {
			if all[i][1]-all[i][0] == n && n > 0 {
				return all[i][0], true
			}
		}
	}
	return 0, false
}
