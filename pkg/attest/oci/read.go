package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
)

// Layout is an archive as it was read: what could be read of it, and everything that is wrong with its files. Close frees it.
type Layout struct {
	// Manifest are the digests of the archive's manifest, zero when it could not be read.
	Manifest Digests
	// Layers stand in the order of the manifest.
	Layers []Layer
	// Bundles stand in the order of the index.
	Bundles []Bundle
	// Faults are all faults found in the folder, in a fixed order; none means that every byte of every file is accounted for.
	Faults []*fault.Fault

	copies stager
}

// Layer is one layer of the archive.
type Layer struct {
	Title     string
	MediaType string
	// Part names the layer in messages: its title and its file.
	Part string
	// Blob is the verified content, nil when it is missing or damaged (a fault says so).
	Blob *Blob
}

// Bundle is one attestation bundle that is attached to the archive. Its signature was not checked here.
type Bundle struct {
	// PredicateType is what the referrer announces; the bundle itself may say something else.
	PredicateType string
	// Part names the bundle in messages.
	Part string
	// Blob is the content, nil when it is missing or damaged (a fault says so).
	Blob *Blob

	manifest Digests
}

// Err returns all faults as one error, or nil.
func (l *Layout) Err() error {
	all := make([]error, len(l.Faults))
	for i, f := range l.Faults {
		all[i] = f
	}
	return errors.Join(all...)
}

// Layer returns the layer with a title, or nil.
func (l *Layout) Layer(title string) *Layer {
	for i := range l.Layers {
		if l.Layers[i].Title == title {
			return &l.Layers[i]
		}
	}
	return nil
}

// Close frees the copies of the content. Blobs must not be used afterwards.
func (l *Layout) Close() error { return l.copies.close() }

// Read reads the archive in folder dir. Every file that belongs to it is read exactly once; what the layout then serves are the bytes
// that were checked. A file that no document names is not read, nor one that cannot be what the document says: it is a fault, as is
// damage of any kind, and content that the folder for temporary files (TMPDIR) has no room for. An error means that reading itself
// failed: no such folder, no permission, ctx cancelled.
func Read(ctx context.Context, dir string) (*Layout, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("read archive: %w", err)
	}
	defer root.Close()
	r := &reader{ctx: ctx, root: root, l: &Layout{}, blobs: map[string]*Blob{}, damaged: map[string]*fault.Fault{},
		present: map[string]bool{}, names: map[string][]string{}, used: map[string]bool{}}
	if err := r.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("read archive %s: %w", dir, err), r.l.Close())
	}
	return r.l, nil
}

type reader struct {
	ctx  context.Context
	root *os.Root
	l    *Layout

	present map[string]bool         // by hex SHA-256 in the name; a regular file, read when a document names it
	blobs   map[string]*Blob        // by hex SHA-256; content is what the name says
	damaged map[string]*fault.Fault // by hex SHA-256 in the name; content is something else
	names   map[string][]string     // by hex SHA-256: how messages call the blob
	used    map[string]bool         // named by the index or a manifest
	failed  error                   // reading itself failed; nothing more is read
}

func (r *reader) fault(f *fault.Fault) { r.l.Faults = append(r.l.Faults, f) }

func (r *reader) read() error {
	present, err := r.listTop()
	if err != nil {
		return err
	}
	if present[layoutName] {
		raw, err := r.small(layoutName)
		if err != nil {
			return err
		}
		if raw != nil && string(raw) != layoutBytes {
			r.fault(fault.New(fault.NotCanonical, "", firstDifference([]byte(layoutBytes), raw)).In(layoutName))
		}
	}
	if present[blobsName] {
		if err := r.listBlobs(); err != nil {
			return err
		}
	}
	if present[indexName] {
		raw, err := r.small(indexName)
		if err != nil {
			return err
		}
		if raw != nil {
			r.readIndex(raw)
		}
		if r.failed != nil {
			return r.failed
		}
	}
	r.finish()
	return nil
}

// listTop checks the names in the folder itself and returns those that are what they must be.
func (r *reader) listTop() (map[string]bool, error) {
	expected := map[string]fs.FileMode{layoutName: 0, indexName: 0, blobsName: fs.ModeDir}
	present, err := r.list(".", "", expected)
	if err != nil {
		return nil, err
	}
	if present[blobsName] {
		below, err := r.list(blobsName, blobsName+"/", map[string]fs.FileMode{"sha256": fs.ModeDir})
		if err != nil {
			return nil, err
		}
		present[blobsName] = below["sha256"]
	}
	return present, nil
}

func (r *reader) list(folder, prefix string, expected map[string]fs.FileMode) (map[string]bool, error) {
	entries, err := r.entries(folder)
	if err != nil {
		return nil, err
	}
	present := map[string]bool{}
	for _, e := range entries {
		mode, known := expected[e.Name()]
		switch {
		case !known:
			r.fault(fault.New(fault.FileUnexpected, "", "this does not belong to an archive").In(prefix + e.Name()))
		case e.Type() != mode:
			r.fault(fault.New(fault.FileUnexpected, "", fmt.Sprintf("expected %s, found %s", modeName(mode), modeName(e.Type()))).In(prefix + e.Name()))
			present[e.Name()] = false
		default:
			present[e.Name()] = true
		}
	}
	for _, name := range slices.Sorted(keys(expected)) {
		if _, found := present[name]; !found {
			r.fault(fault.New(fault.FileMissing, "", "this is missing from the archive").In(prefix + name))
		}
	}
	return present, nil
}

func keys(m map[string]fs.FileMode) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func modeName(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m.IsDir():
		return "a folder"
	case m.IsRegular():
		return "a regular file"
	}
	return "a special file (" + m.String() + ")"
}

// entries lists a folder by name. More names than any archive needs are a fault, and the rest is not looked at.
func (r *reader) entries(folder string) ([]fs.DirEntry, error) {
	f, err := r.root.Open(folder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := f.ReadDir(limits.LayoutEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	if len(all) > limits.LayoutEntries {
		r.fault(fault.New(fault.Limit, "", fmt.Sprintf("more than %d files", limits.LayoutEntries)).In(folder))
		all = all[:limits.LayoutEntries]
	}
	return all, nil
}

// open opens a regular file without following a link and without waiting for a pipe's other end.
func (r *reader) open(name string) (*os.File, error) {
	f, err := r.root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s became %s while the archive was read", name, modeName(info.Mode()))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// small reads one of the two documents that have no digest; nil means that it was refused.
func (r *reader) small(name string) ([]byte, error) {
	f, err := r.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limits.ManifestBytes+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > limits.ManifestBytes {
		r.fault(fault.New(fault.Limit, "", fmt.Sprintf("more than %d bytes", limits.ManifestBytes)).In(name))
		return nil, nil
	}
	return raw, nil
}

// listBlobs notes which blobs there are. None is read before a document names it.
func (r *reader) listBlobs() error {
	entries, err := r.entries(blobsFolder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := blobsFolder + "/" + e.Name()
		switch {
		case len(e.Name()) != 64 || strings.Trim(e.Name(), "0123456789abcdef") != "":
			r.fault(fault.New(fault.FileUnexpected, "", "a name that is not 64 lower-case hex digits").In(name))
		case !e.Type().IsRegular():
			r.damaged[e.Name()] = fault.New(fault.FileUnexpected, "", "expected a regular file, found "+modeName(e.Type()))
		default:
			info, err := e.Info()
			if err != nil {
				return err
			}
			if f := blobTooLarge(info.Size()); f != nil {
				r.damaged[e.Name()] = f
				continue
			}
			r.present[e.Name()] = true
		}
	}
	return nil
}

// readBlob reads a blob that a document names, once, into blobs or damaged. Whoever made the archive chose what stands in it, so that
// nothing is copied that cannot be what the document says: files larger than most, and files of another size than it declares. Of the
// latter small ones are read while memory has room, to say whether the file or the document is wrong.
func (r *reader) readBlob(d descriptor, most int64) error {
	hex := d.Digest.hex()
	f, err := r.open(blobsFolder + "/" + hex)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	switch {
	case size > most:
		r.damaged[hex] = fault.New(fault.Limit, "", fmt.Sprintf("%d bytes, at most %d are read", size, most))
		return nil
	case size != d.Size && size > r.l.copies.room():
		r.damaged[hex] = fault.New(fault.SizeMismatch, "", fmt.Sprintf("expected %d bytes, found %d; not read", d.Size, size))
		return nil
	}
	b, err := r.l.copies.stage(r.ctx, io.LimitReader(f, size+1))
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		r.damaged[hex] = fault.New(fault.Limit, "", fmt.Sprintf("its %d bytes could not be read: %v", size, err))
		return nil
	}
	if err != nil {
		return err
	}
	if b.Hex() != hex {
		r.damaged[hex] = fault.New(fault.DigestMismatch, "",
			fmt.Sprintf("expected content with sha256 %s, found %s in %d bytes", hex, b.Hex(), b.Size))
		return nil
	}
	r.blobs[hex] = b
	return nil
}

func blobTooLarge(size int64) *fault.Fault {
	if size <= limits.BlobBytes {
		return nil
	}
	return fault.New(fault.Limit, "", fmt.Sprintf("%d bytes, at most %d are read", size, int64(limits.BlobBytes)))
}
