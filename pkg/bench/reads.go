package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/benchpin/benchpin/pkg/bench/loader"
	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// Digested is a Dataset whose manifest is at hand. Each part of it has the method.
type Digested interface {
	// Digest is the BLAKE3 digest of file i by the manifest (companion 0), or of one of its companions from 1.
	Digest(i, companion int) [32]byte
}

// ReadForm says of which bytes the digest of a sample is.
type ReadForm = loader.Form

// The forms.
const (
	ReadNone   = loader.FormNone
	ReadFile   = loader.FormFile
	ReadRanges = loader.FormRanges
	ReadGroups = loader.FormGroups
	ReadStream = loader.FormStream
)

// digestBytes is the size of a digest.
const digestBytes = 32

// Inline is what the plan's runs hash while they run (docs/transcript.md); "" where benchpin.verify is not inline.
func (p *Plan) Inline() ReadForm {
	if p.order == nil || p.workload.Benchpin.Verify != workload.VerifyInline {
		return ""
	}
	return p.reading.form()
}

// form says of which bytes the digest of a sample is.
func (r *reading) form() loader.Form {
	switch {
	case r.fileless():
		return loader.FormNone
	case r.streamed != nil:
		return loader.FormStream
	case r.keep != loader.KeepSample && r.recalls():
		return loader.FormGroups
	case r.whole():
		return loader.FormFile
	}
	return loader.FormRanges
}

// recalls is true where workers have readers that remember.
func (r *reading) recalls() bool {
	_, ok := r.format.(format.Remembering)
	return ok
}

// HasReads is true where runs of the plan keep the digests of what was read (Reads): where they do not follow from the manifest.
func (p *Plan) HasReads() bool {
	f := p.Inline()
	return f != "" && f != loader.FormNone && f != loader.FormFile
}

// Reads are the digests of what is read of each sample of a data set that a run reads; of a sample that it does not, 32 zero bytes. They
// are what reads.bin holds: those of the training files, in the order of files and of samples in each, then those for evaluation.
type Reads struct {
	samples int64    // of a file
	parts   [2]int64 // files of training and of evaluation
	b       []byte
	locks   [64]sync.Mutex
}

// newReads makes the empty digests of a plan.
func newReads(p *Plan) *Reads {
	r := &Reads{samples: int64(p.SamplesPerFile), parts: [2]int64{p.order.Config().Files}}
	if p.eval != nil {
		r.parts[1] = p.eval.order.Config().Files
	}
	r.b = make([]byte, r.size())
	return r
}

func (r *Reads) size() int64 { return digestBytes * r.samples * (r.parts[0] + r.parts[1]) }

// OpenReads reads the digests of a run of the plan: its reads.bin of the given size in bytes.
func OpenReads(p *Plan, from io.ReaderAt, size int64) (*Reads, error) {
	if !p.HasReads() {
		return nil, errors.New("digests of what was read: the plan has none")
	}
	r := &Reads{samples: int64(p.SamplesPerFile), parts: [2]int64{p.order.Config().Files}}
	if p.eval != nil {
		r.parts[1] = p.eval.order.Config().Files
	}
	if want := r.size(); size != want {
		return nil, fmt.Errorf("digests of what was read: expected %d bytes, 32 for each of %d samples, found %d", want, want/digestBytes, size)
	}
	r.b = make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(from, 0, size), r.b); err != nil {
		return nil, fmt.Errorf("digests of what was read: %w", err)
	}
	return r, nil
}

// WriteTo writes them.
func (r *Reads) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(r.b)
	if err != nil {
		err = fmt.Errorf("digests of what was read: %w", err)
	}
	return int64(n), err
}

// at is the place of a digest; nil where there is no such sample.
func (r *Reads) at(f FileID, k int64) []byte {
	part, i := 0, int64(f.Index)
	if f.Evaluation {
		part = 1
	}
	if i < 0 || i >= r.parts[part] || k < 0 || k >= r.samples {
		return nil
	}
	if f.Evaluation {
		i += r.parts[0]
	}
	at := digestBytes * (i*r.samples + k)
	return r.b[at : at+digestBytes]
}

// Digest is that of sample k of a data file, false where it was not read.
func (r *Reads) Digest(f FileID, k int) ([32]byte, bool) {
	b := r.at(f, int64(k))
	if b == nil {
		return [32]byte{}, false
	}
	d := [32]byte(b)
	return d, d != [32]byte{}
}

// Positions are the samples of a data file that were read.
func (r *Reads) Positions(f FileID) []int {
	var p []int
	for k := range int(r.samples) {
		if _, ok := r.Digest(f, k); ok {
			p = append(p, k)
		}
	}
	return p
}

// set notes a digest, and returns the one that was there before, false if none was.
func (r *Reads) set(f FileID, k int64, d [32]byte) (before [32]byte, had bool) {
	l := &r.locks[f.Index%len(r.locks)]
	l.Lock()
	defer l.Unlock()
	b := r.at(f, k)
	if b == nil {
		return before, false
	}
	if before = [32]byte(b); before != [32]byte{} {
		return before, true
	}
	copy(b, d[:])
	return d, false
}

// ExpectedTranscriptOf is ExpectedTranscript of a plan whose runs keep digests of what was read. Without such digests (reads is nil) it
// computes what follows from workload and manifest alone: for runs that hash whole files, ds must be Digested.
func ExpectedTranscriptOf(ctx context.Context, p *Plan, ds Dataset, reads *Reads) (record.Transcript, error) {
	return expectedTranscript(ctx, p, ds, func(ds Dataset, evaluation bool) SampleSizes {
		return p.sized(ds, evaluation, reads)
	})
}

// sized is a part of a data set as the transcript wants it.
func (p *Plan) sized(ds Dataset, evaluation bool, reads *Reads) SampleSizes {
	s := p.reading.sizes(ds)
	switch f := p.Inline(); {
	case f == loader.FormNone:
		return withReads{s, func(int, int) ([32]byte, bool) { return [32]byte{}, true }}
	case f == loader.FormFile:
		if d, ok := ds.(Digested); ok {
			return withReads{s, func(i, _ int) ([32]byte, bool) { return d.Digest(i, 0), true }}
		}
	case f != "" && reads != nil:
		return withReads{s, func(i, k int) ([32]byte, bool) { return reads.Digest(FileID{Evaluation: evaluation, Index: i}, k) }}
	}
	return s
}

// withReads adds the digests of what is read.
type withReads struct {
	sizes
	digest func(file, position int) ([32]byte, bool)
}

func (w withReads) ReadDigest(file, position int) ([32]byte, bool) { return w.digest(file, position) }
