package attest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/certificate"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
)

// The titles of the layers that every archive has, in their order. Group digests, where the data set has some, and the files of the
// record, sorted by name, follow.
const (
	TitleRecord   = "record.json"
	TitleManifest = "manifest.json"
	TitleEntries  = "manifest.entries.jsonl.zst"
	TitleGroups   = "manifest.groups.bin"
)

// ErrIncomplete is returned when a record of a run that did not finish is to be attested: it is kept, and never signed.
var ErrIncomplete = errors.New("the record is incomplete")

// ArchiveInput names what goes into an archive.
type ArchiveInput struct {
	// Record are the bytes of the record, in canonical form.
	Record []byte
	// Manifest is the path of the manifest's header; its entries, and its group digests if there are some, are found beside it.
	Manifest string
	// Certificate are the bytes of the data set's certificate (pkg/certify), nil without one.
	Certificate []byte
	// EntriesPart is the size in bytes of the layers that the entries are cut into; 0 is 1 GiB, which nearly all fit into. Archives of another
	// size have another digest, and verify all the same.
	EntriesPart int64
	// Folder is the run folder: every file that the record lists is taken from it.
	Folder string
	// Also, if not nil, adds checks of the caller to those of the staged archive, as a caller of VerifyArchive may: when one of them
	// fails, the archive does not get its name.
	Also func(ctx context.Context, v *Verification) error
}

// ArchiveInfo says what was written.
type ArchiveInfo struct {
	// Archive, Record and Manifest are the digests of the three subjects: the OCI manifest, the record, the manifest's header.
	Archive, Record, Manifest oci.Digests
	// PredicateTypes are the attestations that were attached, in the order in which they were made.
	PredicateTypes []string
}

// WriteArchive packs record, manifest and files, signs every attestation of the result and attaches them; then it verifies what it
// made and moves it to dir. Nothing is left at dir when any of this fails. dir must not exist, or be an empty folder. The OCI
// manifest, and so the archive's digest, depends on the input alone.
//
// What does not agree with itself is refused before it is signed: ErrIncomplete for an unfinished run, *fault.Fault for a record or
// a manifest that is damaged or a file that is not the one that the record names.
func WriteArchive(ctx context.Context, dir string, in ArchiveInput, key Signer) (ArchiveInfo, error) {
	if absent(key) {
		return ArchiveInfo{}, errors.New("write archive: no private key was given; make one with `benchpin key generate`")
	}
	rec, err := record.Parse(in.Record)
	if err != nil {
		return ArchiveInfo{}, fmt.Errorf("write archive: %w", err)
	}
	if rec.Status != record.StatusComplete {
		return ArchiveInfo{}, fmt.Errorf("write archive: %w (%s): %s; run it again to its end", ErrIncomplete, rec.Status, rec.Reason)
	}
	w, err := oci.Create(dir)
	if err != nil {
		return ArchiveInfo{}, err
	}
	info, err := fill(ctx, w, rec, in, key)
	if err != nil {
		return ArchiveInfo{}, errors.Join(fmt.Errorf("write archive %s: %w", dir, err), w.Abort())
	}
	if err := w.Commit(); err != nil {
		return ArchiveInfo{}, err
	}
	return info, nil
}

func fill(ctx context.Context, w *oci.Writer, rec *record.Record, in ArchiveInput, key Signer) (ArchiveInfo, error) {
	header, parsed, err := loadHeader(in.Manifest)
	if err != nil {
		return ArchiveInfo{}, err
	}
	info := ArchiveInfo{}
	if info.Record, err = w.Add(ctx, oci.FromBytes(TitleRecord, record.MediaType, in.Record)); err != nil {
		return ArchiveInfo{}, err
	}
	if info.Manifest, err = w.Add(ctx, oci.FromBytes(TitleManifest, manifest.MediaType, header)); err != nil {
		return ArchiveInfo{}, err
	}
	if err := addEntries(ctx, w, manifest.EntriesPath(in.Manifest), in.EntriesPart); err != nil {
		return ArchiveInfo{}, err
	}
	groups := manifest.GroupsPath(in.Manifest)
	if _, err := os.Lstat(groups); err == nil {
		if _, err := w.Add(ctx, oci.FromFile(TitleGroups, manifest.GroupsMediaType, groups)); err != nil {
			return ArchiveInfo{}, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return ArchiveInfo{}, fmt.Errorf("group digests: %w", err)
	}
	for _, f := range rec.Files {
		g, err := w.Add(ctx, oci.FromFile(f.Name, MediaTypeOf(f.Name), filepath.Join(in.Folder, filepath.FromSlash(f.Name))))
		if err != nil {
			return ArchiveInfo{}, err
		}
		if bad := compareFile(f, g); bad != nil {
			return ArchiveInfo{}, bad.In(f.Name)
		}
	}
	var measured *certified
	if in.Certificate != nil {
		var bad *fault.Fault
		if measured, bad = parseCertificate(in.Certificate, parsed, info.Manifest.Blake3Digest().String()); bad != nil {
			return ArchiveInfo{}, bad
		}
		if _, err := w.Add(ctx, oci.FromBytes(TitleCertificate, certificate.MediaType, in.Certificate)); err != nil {
			return ArchiveInfo{}, err
		}
	}
	if info.Archive, err = w.Seal(ctx); err != nil {
		return ArchiveInfo{}, err
	}
	predicates, err := predicatesOf(rec, info.Record.Blake3Digest().String(), parsed, measured)
	if err != nil {
		return ArchiveInfo{}, err
	}
	signed, err := signAll(ctx, key, subjectsOf(info.Archive, info.Record, info.Manifest), predicates)
	if err != nil {
		return ArchiveInfo{}, err
	}
	for _, one := range signed {
		if err := w.Attach(ctx, one.PredicateType, one.Bundle); err != nil {
			return ArchiveInfo{}, err
		}
		info.PredicateTypes = append(info.PredicateTypes, one.PredicateType)
	}
	if err := w.Finish(); err != nil {
		return ArchiveInfo{}, err
	}
	return info, verifyStaged(ctx, w.Staged(), key, in.Also)
}

// verifyStaged reads the archive as anyone will, before it gets its name. A run that was not verified may be archived and signed: the
// record says so, and the default policy of whoever verifies refuses it.
func verifyStaged(ctx context.Context, dir string, key Signer, also func(context.Context, *Verification) error) error {
	trust := key.Trust()
	v, err := VerifyArchive(ctx, dir, trust.Keys, Policy{AllowUnverified: true, Witness: trust.Witness})
	if err != nil {
		return err
	}
	if also != nil {
		if err := also(ctx, v); err != nil {
			return errors.Join(err, v.Close())
		}
	}
	return errors.Join(v.Err(), v.Close())
}

func subjectsOf(archive, rec, header oci.Digests) []Subject {
	return []Subject{NewSubject(SubjectArchive, archive), NewSubject(SubjectRecord, rec), NewSubject(SubjectManifest, header)}
}

func loadHeader(headerPath string) ([]byte, *manifest.Header, error) {
	f, err := oci.OpenRegular(headerPath)
	if err != nil {
		return nil, nil, fmt.Errorf("read manifest: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, manifest.MaxHeaderBytes+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read manifest %s: %w", headerPath, err)
	}
	h, err := manifest.ParseHeader(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("read manifest %s: %w", headerPath, err)
	}
	return raw, h, nil
}

// compareFile compares a file with what the record says of it.
func compareFile(f record.File, g oci.Digests) *fault.Fault {
	switch {
	case int64(f.Size) != g.Size:
		return fault.New(fault.RecordFile, "", fmt.Sprintf("the record says %d bytes, found %d", f.Size, g.Size))
	case f.Blake3 != g.Blake3Digest().String():
		return fault.New(fault.RecordFile, "", fmt.Sprintf("the record says %s, found %s", f.Blake3, g.Blake3Digest()))
	}
	return nil
}

// MediaTypeOf is the media type of a file beside the record, by its name.
func MediaTypeOf(name string) string {
	switch path.Ext(name) {
	case ".parquet":
		return "application/vnd.apache.parquet"
	case ".json":
		return "application/json"
	case ".jsonl":
		return "application/jsonl"
	case ".yaml", ".yml":
		return "application/yaml"
	case ".csv":
		return "text/csv"
	case ".txt", ".log":
		return "text/plain"
	}
	return "application/octet-stream"
}
