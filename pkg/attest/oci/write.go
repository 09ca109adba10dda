package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/internal/strictjson"
)

// Source is the content of one layer before it is packed.
type Source struct {
	// Title is the name of the layer: a relative path with slashes.
	Title string
	// MediaType says what the layer is.
	MediaType string
	// Open returns the content; it is read once, to its end.
	Open func() (io.ReadCloser, error)
}

// Writer makes a new archive beside its final place and moves it there when it is complete, so that an archive is there whole or
// not at all. It is not safe for concurrent use. The order of calls is Add, Seal, Attach, Commit; Abort is allowed at any time and
// does nothing after Commit.
type Writer struct {
	dir       string
	staging   string
	layers    []descriptor
	titles    []string
	subject   Digests
	sealed    bool
	referrers []descriptor

	// Of an archive that is made in a folder that another attempt may have left: its lock, and the names of the blobs that belong to it.
	lock *os.File
	used map[string]bool
}

// ErrExists is returned by Create when something that is not an empty folder is in the archive's place.
var ErrExists = errors.New("the place of the archive is taken")

// Create starts an archive that will stand at dir, which must not exist or be an empty folder. Missing parent folders are made.
func Create(dir string) (*Writer, error) {
	dir = filepath.Clean(dir)
	if err := mustBeFree(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return nil, fmt.Errorf("create archive %s: %w", dir, err)
	}
	staging, err := os.MkdirTemp(filepath.Dir(dir), ".benchpin-archive-*")
	if err != nil {
		return nil, fmt.Errorf("create archive %s: %w", dir, err)
	}
	w := &Writer{dir: dir, staging: staging}
	err = os.MkdirAll(filepath.Join(staging, filepath.FromSlash(blobsFolder)), 0o777)
	if err == nil {
		// MkdirTemp's folder is for its owner alone; an archive is to be handed on.
		err = os.Chmod(staging, 0o755)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create archive %s: %w", dir, err), w.Abort())
	}
	return w, nil
}

func mustBeFree(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && !info.IsDir() {
		return fmt.Errorf("create archive %s: %w: expected nothing or an empty folder, found %s", dir, ErrExists, modeName(info.Mode()))
	}
	names, err := os.ReadDir(dir)
	switch {
	case err != nil:
		return fmt.Errorf("create archive %s: %w", dir, err)
	case len(names) > 0:
		return fmt.Errorf("create archive %s: %w: it holds %q; give a folder that is new or empty", dir, ErrExists, names[0].Name())
	}
	return nil
}

// Add packs one layer and returns its digests. Layers stand in the manifest in the order in which they were added.
func (w *Writer) Add(ctx context.Context, s Source) (Digests, error) {
	if w.sealed {
		return Digests{}, fmt.Errorf("add layer %s: the archive's manifest is already written", s.Title)
	}
	if len(w.layers) == limits.Layers {
		return Digests{}, fmt.Errorf("add layer %s: an archive holds at most %d layers", s.Title, limits.Layers)
	}
	if err := checkTitles(append(w.titles[:len(w.titles):len(w.titles)], s.Title)); err != nil {
		return Digests{}, fmt.Errorf("add layer: %w", err)
	}
	r, err := s.Open()
	if err != nil {
		return Digests{}, fmt.Errorf("add layer %s: %w", s.Title, err)
	}
	g, err := writeBlob(ctx, w.staging, w.staging, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return Digests{}, fmt.Errorf("add layer %s: %w", s.Title, err)
	}
	d := describe(s.MediaType, g)
	d.Annotations = map[string]string{annotationTitle: s.Title}
	w.layers, w.titles = append(w.layers, d), append(w.titles, s.Title)
	return g, nil
}

// Seal writes the archive's manifest and returns its digests. They depend on the layers and nothing else.
func (w *Writer) Seal(ctx context.Context) (Digests, error) {
	if w.sealed || len(w.layers) == 0 {
		return Digests{}, errors.New("seal archive: it must have layers, and be sealed once")
	}
	if _, err := writeBytes(ctx, w.staging, w.staging, []byte(emptyBytes)); err != nil {
		return Digests{}, fmt.Errorf("seal archive: %w", err)
	}
	g, err := writeDocument(ctx, w.staging, w.staging, archiveManifest(w.layers))
	if err != nil {
		return Digests{}, fmt.Errorf("seal archive: %w", err)
	}
	w.subject, w.sealed = g, true
	w.uses(g.Hex(), emptyConfig().Digest.hex())
	return g, nil
}

// Attach adds one attestation bundle as a referrer of the sealed archive. predicateType is announced beside it, so that others
// find the bundle they look for without opening all.
func (w *Writer) Attach(ctx context.Context, predicateType string, bundle []byte) error {
	if !w.sealed {
		return errors.New("attach bundle: the archive has no manifest yet; seal it first")
	}
	if err := checkReferrer(len(w.referrers), bundle); err != nil {
		return err
	}
	d, err := writeReferrer(ctx, w.staging, w.staging, w.subject, predicateType, bundle)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(w.referrers, func(o descriptor) bool { return o.Digest == d.Digest }) {
		return nil // it is there already
	}
	w.referrers = append(w.referrers, d)
	w.uses(d.Digest.hex(), digestsOf(bundle).Hex())
	return nil
}

// Staged is the folder in which the archive stands until Commit; it is complete after Finish.
func (w *Writer) Staged() string { return w.staging }

// Finish writes the index, after which the staged folder is a whole archive that can be read. Commit calls it.
func (w *Writer) Finish() error {
	if !w.sealed {
		return errors.New("finish archive: it has no manifest yet; seal it first")
	}
	raw, err := strictjson.Marshal(layoutIndex(archiveEntry(w.subject), w.referrers))
	if err != nil {
		return fmt.Errorf("finish archive: %w", err)
	}
	if err := w.sweep(); err != nil {
		return fmt.Errorf("finish archive: %w", err)
	}
	if err := writeFile(filepath.Join(w.staging, layoutName), []byte(layoutBytes)); err != nil {
		return fmt.Errorf("finish archive: %w", err)
	}
	if err := writeFile(filepath.Join(w.staging, indexName), raw); err != nil {
		return fmt.Errorf("finish archive: %w", err)
	}
	return nil
}

// Commit finishes the archive and moves it to its place.
func (w *Writer) Commit() error {
	if err := w.Finish(); err != nil {
		return errors.Join(err, w.Abort())
	}
	for _, folder := range []string{blobsFolder, blobsName, "."} {
		if err := syncFolder(filepath.Join(w.staging, filepath.FromSlash(folder))); err != nil {
			return errors.Join(fmt.Errorf("commit archive: %w", err), w.Abort())
		}
	}
	// An empty folder in the place makes way; one that was filled meanwhile stays, and the rename fails.
	err := os.Remove(w.dir)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err == nil {
		err = os.Rename(w.staging, w.dir)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("commit archive %s: %w", w.dir, err), w.Abort())
	}
	w.staging = ""
	return errors.Join(syncFolder(filepath.Dir(w.dir)), w.unlock())
}

// Abort removes what was staged.
func (w *Writer) Abort() error {
	if w.staging == "" {
		return nil
	}
	staging := w.staging
	w.staging = ""
	if err := errors.Join(os.RemoveAll(staging), w.unlock()); err != nil {
		return fmt.Errorf("abort archive: %w", err)
	}
	return nil
}

// Pack makes an archive of the given layers, without attestations, and returns the digests of its manifest. The same layers give
// the same digests.
func Pack(ctx context.Context, dir string, sources []Source) (Digests, error) {
	w, err := Create(dir)
	if err != nil {
		return Digests{}, err
	}
	for _, s := range sources {
		if _, err := w.Add(ctx, s); err != nil {
			return Digests{}, errors.Join(err, w.Abort())
		}
	}
	g, err := w.Seal(ctx)
	if err != nil {
		return Digests{}, errors.Join(err, w.Abort())
	}
	return g, w.Commit()
}

// Attestation is a bundle to be attached, with the predicate type that is announced beside it.
type Attestation struct {
	PredicateType string
	Bundle        []byte
}

// ErrChanged: the archive in the folder is not the one that was read before.
var ErrChanged = errors.New("the archive was changed meanwhile")

// Attach adds one bundle to an archive that stands at dir already; see AttachAll.
func Attach(ctx context.Context, dir, predicateType string, bundle []byte) error {
	return AttachAll(ctx, dir, nil, []Attestation{{predicateType, bundle}})
}

// AttachAll adds bundles to an archive that stands at dir already, which must be free of faults, and, where subject is not nil, be the
// archive of these digests. All of them are added or none; what stands is not touched. New files are written beside the folder and
// moved into it, the index last; when that is cut off, the left-over files are what reading reports as unexpected. Processes that attach to
// one archive at the same time wait for each other, where the file system has locks.
func AttachAll(ctx context.Context, dir string, subject *Digests, bundles []Attestation) error {
	lock, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("attach bundle: %w", err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil && !errors.Is(err, unix.ENOTSUP) && !errors.Is(err, unix.ENOLCK) {
		return fmt.Errorf("attach bundle: lock %s: %w", dir, err)
	}
	l, err := Read(ctx, dir)
	if err != nil {
		return fmt.Errorf("attach bundle: %w", err)
	}
	defer l.Close()
	if err := l.Err(); err != nil {
		return fmt.Errorf("attach bundle: nothing is added to a damaged archive: %w", err)
	}
	if subject != nil && l.Manifest != *subject {
		return fmt.Errorf("attach bundle: %w: expected %s in %s, found %s", ErrChanged, subject.SHA256Digest(), dir, l.Manifest.SHA256Digest())
	}
	for i, b := range bundles {
		if err := checkReferrer(len(l.Bundles)+i, b.Bundle); err != nil {
			return err
		}
	}
	staging, err := os.MkdirTemp(filepath.Dir(filepath.Clean(dir)), ".benchpin-attach-*")
	if err != nil {
		return fmt.Errorf("attach bundle: %w", err)
	}
	defer os.RemoveAll(staging)
	var referrers []descriptor
	for _, b := range bundles {
		d, err := writeReferrer(ctx, staging, dir, l.Manifest, b.PredicateType, b.Bundle)
		if err != nil {
			return err
		}
		referrers = append(referrers, d)
	}
	for _, b := range l.Bundles {
		referrers = append(referrers, referrerEntry(b.manifest, b.PredicateType))
	}
	// What is attached twice is attached once.
	seen := map[string]bool{}
	referrers = slices.DeleteFunc(referrers, func(d descriptor) bool {
		twice := seen[d.Digest.hex()]
		seen[d.Digest.hex()] = true
		return twice
	})
	raw, err := strictjson.Marshal(layoutIndex(archiveEntry(l.Manifest), referrers))
	if err != nil {
		return fmt.Errorf("attach bundle: %w", err)
	}
	next := filepath.Join(staging, indexName)
	if err := writeFile(next, raw); err != nil {
		return fmt.Errorf("attach bundle: %w", err)
	}
	if err := os.Rename(next, filepath.Join(dir, indexName)); err != nil {
		return fmt.Errorf("attach bundle: %w", err)
	}
	return syncFolder(dir)
}

func checkReferrer(already int, bundle []byte) error {
	if len(bundle) > limits.BundleBytes {
		return fault.New(fault.Limit, "", fmt.Sprintf("attach bundle: it has %d bytes, at most %d are allowed", len(bundle), limits.BundleBytes))
	}
	if already >= limits.Referrers {
		return fault.New(fault.Limit, "", fmt.Sprintf("attach bundle: an archive holds at most %d", limits.Referrers))
	}
	return nil
}

// writeReferrer writes bundle and referrer manifest into the layout and returns the entry for its index.
func writeReferrer(ctx context.Context, staging, layout string, subject Digests, predicateType string, bundle []byte) (descriptor, error) {
	b, err := writeBytes(ctx, staging, layout, bundle)
	if err != nil {
		return descriptor{}, fmt.Errorf("attach bundle: %w", err)
	}
	m, err := writeDocument(ctx, staging, layout, referrerManifest(subject, b, predicateType))
	if err != nil {
		return descriptor{}, fmt.Errorf("attach bundle: %w", err)
	}
	return referrerEntry(m, predicateType), nil
}
