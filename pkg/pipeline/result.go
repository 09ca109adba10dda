package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
)

// Result is the record of a run folder or of an archive, read for a question about the record alone: the digests of an archive were
// checked, and no signature was. Close it.
type Result struct {
	Record *record.Record
	// RecordBytes are the bytes that Record was parsed from.
	RecordBytes []byte
	// Archive is true where it came from an archive.
	Archive bool

	folder string
	layout *oci.Layout
}

// OpenResult reads the record of a run folder, or of an archive. An archive that is damaged is refused with the faults found.
func OpenResult(ctx context.Context, path string) (*Result, error) {
	b, err := store.ReadRegular(filepath.Join(path, RecordName), record.MaxBytes)
	if err == nil {
		rec, err := record.Parse(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(path, RecordName), err)
		}
		return &Result{Record: rec, RecordBytes: b, folder: path}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	if _, lerr := os.Lstat(filepath.Join(path, "oci-layout")); lerr != nil {
		return nil, fmt.Errorf("%s: expected a run folder, with %s, or an archive, with oci-layout: %w", path, RecordName, lerr)
	}
	l, err := oci.Read(ctx, path)
	if err != nil {
		return nil, err
	}
	r := &Result{Archive: true, layout: l}
	if err := r.fromArchive(); err != nil {
		return nil, errors.Join(fmt.Errorf("archive %s: %w", path, err), l.Close())
	}
	return r, nil
}

func (r *Result) fromArchive() error {
	if err := r.layout.Err(); err != nil {
		return refused{err}
	}
	return r.recordOfArchive()
}

// recordOfArchive reads the record, whatever is wrong with the rest of the archive.
func (r *Result) recordOfArchive() error {
	blob := r.blob(attest.TitleRecord)
	if blob == nil {
		return refused{fmt.Errorf("it holds no %s", attest.TitleRecord)}
	}
	b, err := blob.Bytes(record.MaxBytes)
	if err != nil {
		return err
	}
	rec, err := record.Parse(b)
	if err != nil {
		return fmt.Errorf("%s: %w", attest.TitleRecord, err)
	}
	r.Record, r.RecordBytes = rec, b
	return nil
}

func (r *Result) blob(title string) *oci.Blob {
	if l := r.layout.Layer(title); l != nil {
		return l.Blob
	}
	return nil
}

// Manifest opens the manifest that the record names: that of the archive, or the one at path. It must have the record's digest. The
// caller closes it before the result.
func (r *Result) Manifest(path string) (*manifest.Manifest, error) {
	var m *manifest.Manifest
	switch {
	case path != "":
		var err error
		if m, err = manifest.Open(path); err != nil {
			return nil, err
		}
	case r.Archive:
		header := r.blob(attest.TitleManifest)
		entries, size, err := attest.Entries(r.layout)
		if header == nil || err != nil {
			return nil, refused{errors.Join(errors.New("the archive holds no manifest"), err)}
		}
		b, err := header.Bytes(manifest.MaxHeaderBytes)
		if err != nil {
			return nil, err
		}
		if m, err = manifest.OpenReaders(b, entries, size); err != nil {
			return nil, err
		}
	default:
		return nil, errors.New("a run folder holds no manifest; name it with --manifest")
	}
	if found := m.Digest().String(); found != r.Record.Dataset.Manifest {
		return nil, errors.Join(refused{fmt.Errorf("the record names the manifest %s, and this is %s", r.Record.Dataset.Manifest, found)}, m.Close())
	}
	return m, nil
}

// Close frees what the archive's content took.
func (r *Result) Close() error {
	if r.layout == nil {
		return nil
	}
	return r.layout.Close()
}
