package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
)

// ErrNoRecord is returned when a run is to be described and only a manifest was given.
var ErrNoRecord = errors.New("a manifest describes a data set and no run")

// ErrNeedManifest is returned when a run folder was given without the manifest of its data set.
var ErrNeedManifest = errors.New("a run folder does not hold the manifest of its data set")

// Source is what is described: an archive, a run folder with the manifest of its data set, or a manifest alone. Close it.
type Source struct {
	// Record is nil where there is a manifest alone.
	Record   *record.Record
	Manifest *manifest.Manifest
	// Archive is the SHA-256 digest of the archive's OCI manifest, "" for others.
	Archive string
	// Contents are the files: the record, manifest and entries, and the files of the record, in this order. Attestations are the bundles of an
	// archive.
	Contents     []Content
	Attestations []Content

	close []func() error
}

// Content is one file, whose digests are known.
type Content struct {
	// Name is a relative path with slashes.
	Name      string
	MediaType string
	Digests   oci.Digests
	// PredicateType is what an attestation announces, "" for others.
	PredicateType string

	open func() (io.Reader, func() error, error)
}

// Open opens what a path names: the folder of an archive, a run folder, or the header of a manifest. manifestPath is the header of the manifest
// of a run folder's data set, and "" for others. What does not have the digest that an archive, a record or a manifest says is refused: the error
// is or wraps a *fault.Fault, or a manifest.Class.
func Open(ctx context.Context, path, manifestPath string) (s *Source, err error) {
	s = &Source{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	info, err := os.Stat(path)
	if err != nil {
		return s, fmt.Errorf("export: %w", err)
	}
	if !info.IsDir() {
		if manifestPath != "" {
			return s, fmt.Errorf("export: %s is a manifest itself, and --manifest names another", path)
		}
		return s, s.openManifest(ctx, path)
	}
	_, err = os.Lstat(filepath.Join(path, "oci-layout"))
	switch {
	case err == nil:
		return s, s.openArchive(ctx, path)
	case !errors.Is(err, fs.ErrNotExist):
		return s, fmt.Errorf("export: %w", err)
	}
	return s, s.openRun(ctx, path, manifestPath)
}

// Close frees what the source holds open.
func (s *Source) Close() error {
	var errs []error
	for i := len(s.close) - 1; i >= 0; i-- {
		errs = append(errs, s.close[i]())
	}
	s.close = nil
	return errors.Join(errs...)
}

// content returns the file with a name, nil where there is none.
func (s *Source) content(name string) *Content {
	for i := range s.Contents {
		if s.Contents[i].Name == name {
			return &s.Contents[i]
		}
	}
	return nil
}

// headerName and entriesName are the names of the manifest's two files in Contents.
func (s *Source) headerName() string  { return s.manifestContent(manifest.MediaType) }
func (s *Source) entriesName() string { return s.manifestContent(manifest.EntriesMediaType) }

func (s *Source) manifestContent(mediaType string) string {
	for _, c := range s.Contents {
		if c.MediaType == mediaType {
			return c.Name
		}
	}
	return ""
}

func (s *Source) add(c Content) { s.Contents = append(s.Contents, c) }

func (s *Source) addBytes(name, mediaType string, b []byte) {
	s.add(Content{Name: name, MediaType: mediaType, Digests: oci.DigestsOf(b),
		open: func() (io.Reader, func() error, error) { return bytes.NewReader(b), func() error { return nil }, nil }})
}

func (s *Source) addReaderAt(name, mediaType string, g oci.Digests, r io.ReaderAt) {
	s.add(Content{Name: name, MediaType: mediaType, Digests: g,
		open: func() (io.Reader, func() error, error) {
			return io.NewSectionReader(r, 0, g.Size), func() error { return nil }, nil
		}})
}

// addFile hashes a file and adds it. It is read again, and compared with its digest, when it is copied.
func (s *Source) addFile(ctx context.Context, name, mediaType, path string) (oci.Digests, error) {
	open := func() (io.Reader, func() error, error) {
		f, err := store.OpenRegular(path)
		if err != nil {
			return nil, nil, err
		}
		return f, f.Close, nil
	}
	c := Content{Name: name, MediaType: mediaType, open: open}
	g, err := c.copyTo(ctx, io.Discard)
	if err != nil {
		return g, fmt.Errorf("export: %s: %w", path, err)
	}
	c.Digests = g
	s.add(c)
	return g, nil
}

// openManifest opens a manifest and its entries.
func (s *Source) openManifest(ctx context.Context, path string) error {
	m, err := manifest.Open(path)
	if err != nil {
		return err
	}
	s.Manifest, s.close = m, append(s.close, m.Close)
	s.addBytes(filepath.Base(path), manifest.MediaType, m.HeaderBytes())
	entries := manifest.EntriesPath(path)
	_, err = s.addFile(ctx, filepath.Base(entries), manifest.EntriesMediaType, entries)
	return err
}

func (s *Source) openRun(ctx context.Context, path, manifestPath string) error {
	b, err := store.ReadRegular(filepath.Join(path, attest.TitleRecord), record.MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("export: %s: expected an archive (with oci-layout), a run folder (with %s), or the file of a manifest: %w", path, attest.TitleRecord, err)
	}
	if err != nil {
		return fmt.Errorf("export: run folder: %w", err)
	}
	if s.Record, err = record.Parse(b); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(path, attest.TitleRecord), err)
	}
	if manifestPath == "" {
		return fmt.Errorf("export: %s: %w: name it with --manifest", path, ErrNeedManifest)
	}
	s.addBytes(attest.TitleRecord, record.MediaType, b)
	if err := s.openManifest(ctx, manifestPath); err != nil {
		return err
	}
	if err := s.sameManifest(); err != nil {
		return err
	}
	for _, f := range s.Record.Files {
		if _, err := s.addFile(ctx, f.Name, attest.MediaTypeOf(f.Name), filepath.Join(path, filepath.FromSlash(f.Name))); err != nil {
			return err
		}
		if err := s.sameFile(f); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) openArchive(ctx context.Context, path string) error {
	l, err := oci.Read(ctx, path)
	if err != nil {
		return err
	}
	s.close = append(s.close, l.Close)
	if err := l.Err(); err != nil {
		return fmt.Errorf("archive %s is damaged: %w; \"benchpin verify\" says more", path, err)
	}
	s.Archive = l.Manifest.SHA256Digest().String()
	rec, header := l.Layer(attest.TitleRecord), l.Layer(attest.TitleManifest)
	if rec == nil || header == nil {
		return fmt.Errorf("archive %s: %w", path, fault.New(fault.FileMissing, "", "it holds no record, or no manifest"))
	}
	b, err := rec.Blob.Bytes(record.MaxBytes)
	if err != nil {
		return err
	}
	if s.Record, err = record.Parse(b); err != nil {
		return fmt.Errorf("archive %s: %w", path, err)
	}
	h, err := header.Blob.Bytes(manifest.MaxHeaderBytes)
	if err != nil {
		return err
	}
	entries, size, err := attest.Entries(l)
	if err != nil {
		return fmt.Errorf("archive %s: %w", path, err)
	}
	if s.Manifest, err = manifest.OpenReaders(h, entries, size); err != nil {
		return fmt.Errorf("archive %s: %w", path, err)
	}
	s.close = append(s.close, s.Manifest.Close)
	s.addBytes(attest.TitleRecord, record.MediaType, b)
	s.addBytes(attest.TitleManifest, manifest.MediaType, h)
	g, err := digestsOf(ctx, io.NewSectionReader(entries, 0, size))
	if err != nil {
		return err
	}
	s.addReaderAt(attest.TitleEntries, manifest.EntriesMediaType, g, entries)
	if err := s.sameManifest(); err != nil {
		return err
	}
	for _, layer := range l.Layers {
		if s.content(layer.Title) == nil && layer.MediaType != attest.EntriesPartMediaType {
			s.addReaderAt(layer.Title, layer.MediaType, layer.Blob.Digests, layer.Blob)
		}
	}
	for _, f := range s.Record.Files {
		if err := s.sameFile(f); err != nil {
			return err
		}
	}
	for i, one := range l.Bundles {
		blob := one.Blob
		s.Attestations = append(s.Attestations, Content{Name: fmt.Sprintf("attestations/%d.sigstore.json", i+1), MediaType: oci.BundleType,
			Digests: blob.Digests, PredicateType: one.PredicateType,
			open: func() (io.Reader, func() error, error) {
				return io.NewSectionReader(blob, 0, blob.Size), func() error { return nil }, nil
			}})
	}
	return nil
}

// sameManifest refuses a manifest that is not the one of the record.
func (s *Source) sameManifest() error {
	if found := s.Manifest.Digest().String(); found != s.Record.Dataset.Manifest {
		return fault.New(fault.Manifest, "dataset.manifest", fmt.Sprintf("the record names the manifest %s, and this is %s", s.Record.Dataset.Manifest, found))
	}
	return nil
}

// sameFile refuses a file that is not the one of the record.
func (s *Source) sameFile(f record.File) error {
	c := s.content(f.Name)
	switch {
	case c == nil:
		return fault.New(fault.FileMissing, "", "the record lists it, and it is not there").In(f.Name)
	case c.Digests.Blake3Digest().String() != f.Blake3:
		return fault.New(fault.RecordFile, "", fmt.Sprintf("the record says %s, found %s", f.Blake3, c.Digests.Blake3Digest())).In(f.Name)
	}
	return nil
}
