package pipeline

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/certificate"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
)

// AttestOptions names a result and where its archive goes.
type AttestOptions struct {
	// Run is the run folder, Manifest the path of the manifest's header, Archive the folder of the archive: new, or empty. A run without
	// a data set, or whose data set was removed, has its manifest in the run folder (NoDataManifest), which is what "" stands for.
	Run, Manifest, Archive string
	// Certificate is the file of the data set's certificate (Certify), "" for none.
	Certificate string
	// Key signs.
	Key attest.Signer
}

// Attest packs the result of a run with its manifest into an archive, signs its attestations and attaches them. Before the archive gets
// its name, everything is checked that Verify checks: a record that says something else than what follows from the rest of the archive
// is refused, with the faults found (ErrVerification), and nothing is left. Incomplete runs are refused: attest.ErrIncomplete.
func Attest(ctx context.Context, o AttestOptions) (attest.ArchiveInfo, error) {
	return writeArchive(ctx, o, recompute)
}

// writeArchive is Attest with checks of the caller's choice beside those of attest.WriteArchive.
func writeArchive(ctx context.Context, o AttestOptions, also func(context.Context, *attest.Verification) error) (attest.ArchiveInfo, error) {
	b, err := store.ReadRegular(filepath.Join(o.Run, RecordName), record.MaxBytes)
	if err != nil {
		return attest.ArchiveInfo{}, fmt.Errorf("run folder: %w; \"benchpin run\" makes one", err)
	}
	if o.Manifest == "" {
		o.Manifest = filepath.Join(o.Run, NoDataManifest)
	}
	in := attest.ArchiveInput{Record: b, Manifest: o.Manifest, Folder: o.Run, Also: also}
	if o.Certificate != "" {
		if in.Certificate, err = store.ReadRegular(o.Certificate, certificate.MaxBytes); err != nil {
			return attest.ArchiveInfo{}, fmt.Errorf("certificate: %w; \"benchpin data certify --out\" makes one", err)
		}
	}
	return attest.WriteArchive(ctx, o.Archive, in, o.Key)
}

// AttestArchive signs with another key what an archive that stands in a folder attests, after all that Verify checks but the signatures
// that are there; see attest.AttestArchive.
func AttestArchive(ctx context.Context, archive string, key attest.Signer) (attest.ArchiveInfo, error) {
	return attest.AttestArchive(ctx, archive, key, recompute)
}
