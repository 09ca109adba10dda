package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// The names of the files that figures come from, in a run folder and in an archive.
const (
	recordName = "record.json"
	stepsName  = "steps.parquet"
	evalName   = "eval.parquet"
)

// Opened is a Source that holds files open.
type Opened struct {
	*Source
	close []func() error
}

// Close closes the files.
func (o *Opened) Close() error {
	var errs []error
	for _, c := range o.close {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// ErrOther is wrapped by the error about a file of step times that is not the one of the record.
var ErrOther = errors.New("not the file that the record names")

// Open opens a run folder, or an archive in OCI layout. The record must be in its canonical form and the files of step times those that it
// names, by their digests; no signature is checked.
func Open(ctx context.Context, path string) (*Opened, error) {
	_, err := os.Stat(filepath.Join(path, "oci-layout"))
	if err == nil {
		return openArchive(ctx, path)
	}
	b, err := store.ReadRegular(filepath.Join(path, recordName), record.MaxBytes)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s holds neither %s, as a run folder does, nor oci-layout, as an archive does: %w", path, recordName, err)
		}
		return nil, fmt.Errorf("run folder: %w", err)
	}
	o := &Opened{}
	err = o.fill(b, func(name string) (*File, error) {
		f, err := os.Open(filepath.Join(path, name))
		if err != nil {
			return nil, fmt.Errorf("step times: %w", err)
		}
		o.close = append(o.close, f.Close)
		info, err := f.Stat()
		if err != nil {
			return nil, fmt.Errorf("step times: %w", err)
		}
		return &File{Name: name, ReaderAt: f, Bytes: info.Size()}, nil
	})
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

func openArchive(ctx context.Context, path string) (*Opened, error) {
	l, err := oci.Read(ctx, path)
	if err != nil {
		return nil, err
	}
	o := &Opened{close: []func() error{l.Close}}
	if err := l.Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("archive %s is damaged: %w; \"benchpin verify\" says more", path, err), o.Close())
	}
	blob := func(name string) (*oci.Blob, error) {
		layer := l.Layer(name)
		if layer == nil || layer.Blob == nil {
			return nil, fmt.Errorf("archive %s has no layer %s", path, name)
		}
		return layer.Blob, nil
	}
	b, err := blob(recordName)
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(io.NewSectionReader(b, 0, b.Size), record.MaxBytes+1))
	}
	if err == nil {
		err = o.fill(text, func(name string) (*File, error) {
			b, err := blob(name)
			if err != nil {
				return nil, err
			}
			return &File{Name: name, ReaderAt: b, Bytes: b.Size}, nil
		})
	}
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// fill reads the record, and opens those files of step times that it names.
func (o *Opened) fill(b []byte, open func(name string) (*File, error)) error {
	r, err := record.Parse(b)
	if err != nil {
		return err
	}
	w, err := workload.ParseCanonical(r.Workload.Canonical)
	if err != nil {
		return fmt.Errorf("workload of the record: %w", err)
	}
	o.Source = &Source{Record: r, Workload: w}
	if r.Plan.Checkpoints+r.Plan.CheckpointReads > 0 {
		if o.DLIOCheckpointBytes, err = bench.DLIOCheckpointBytes(w, r.Plan.CheckpointForm); err != nil {
			return fmt.Errorf("checkpoints of the workload: %w", err)
		}
	}
	for _, listed := range r.Files {
		var at **File
		switch listed.Name {
		case stepsName:
			at = &o.Steps
		case evalName:
			at = &o.Eval
		default:
			continue
		}
		f, err := open(listed.Name)
		if err != nil {
			return err
		}
		h := blake3.New()
		if _, err := io.Copy(h, io.NewSectionReader(f, 0, f.Bytes)); err != nil {
			return fmt.Errorf("%s: %w", listed.Name, err)
		}
		if sum := fmt.Sprintf("blake3:%x", h.Sum(nil)); sum != listed.Blake3 {
			return fmt.Errorf("%s is %w: expected %s, found %s", listed.Name, ErrOther, listed.Blake3, sum)
		}
		*at = f
	}
	return nil
}
