package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/workload"
)

// archive attests a pipeline's complete run, verifies the archive, and gives it its place; only then does that of an earlier run make
// way. When it fails, for an interruption too, the earlier one still stands, and the error says how the run can be attested.
func (o *Options) archive(ctx context.Context, l Layout, out *Outcome) error {
	manifest := l.Manifest()
	if bench.CheckpointOnly(o.Workload.Workload) {
		manifest = "" // beside the record
	}
	staged := l.Archive() + ".new"
	// One that a killed pipeline left behind: nobody else is at work in this folder.
	if err := os.RemoveAll(staged); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	info, err := o.staged(ctx, AttestOptions{Run: out.Run, Manifest: manifest, Certificate: o.certificate, Archive: staged, Key: o.Key}, out)
	if err == nil {
		err = o.place(staged, l.Archive())
	}
	switch {
	case err == nil:
		out.Archive = l.Archive()
		o.stage("archive  %s, %s, %s", out.Archive, counted(len(info.PredicateTypes), "attestation"), info.Archive.SHA256Digest())
		return nil
	case errors.Is(err, ErrVerification):
		return errors.Join(err, os.RemoveAll(staged))
	}
	key := "YOUR.key"
	if out.PublicKey != "" {
		key = l.PrivateKey()
	}
	if manifest != "" {
		manifest = " --manifest " + manifest
	}
	return errors.Join(fmt.Errorf("%w; the run in %s is complete and has no archive yet: benchpin attest %s%s --archive %s-of-this-run --key %s makes it",
		err, out.Run, out.Run, manifest, l.Archive(), key), os.RemoveAll(staged))
}

// staged writes the archive of a run and verifies it, with every check.
func (o *Options) staged(ctx context.Context, a AttestOptions, out *Outcome) (attest.ArchiveInfo, error) {
	// Verify below makes the checks that Attest would.
	info, err := writeArchive(ctx, a, nil)
	if err != nil {
		return info, err
	}
	trust, policy := o.Key.Trust(), policyFor(o.Workload.Workload)
	policy.Witness = trust.Witness
	if out.Verification, err = Verify(ctx, a.Archive, trust.Keys, policy); err != nil {
		return info, err
	}
	return info, out.Verification.Err()
}

// policyFor is the policy with which a pipeline looks at its own archive: what the workload asked for is not held against it.
func policyFor(w *workload.Workload) attest.Policy {
	return attest.Policy{AllowUnverified: w.Benchpin.Verify == workload.VerifyNone}
}

// place gives an archive its place, and moves that of an earlier run aside: results are never overwritten.
func (o *Options) place(staged, archive string) error {
	if _, err := os.Lstat(archive); err == nil {
		aside := ""
		for n := 1; ; n++ {
			aside = fmt.Sprintf("%s-%d", archive, n)
			if _, err := os.Lstat(aside); errors.Is(err, os.ErrNotExist) {
				break
			} else if err != nil {
				return fmt.Errorf("archive: %w", err)
			}
		}
		if err := os.Rename(archive, aside); err != nil {
			return fmt.Errorf("move the archive of an earlier run aside: %w", err)
		}
		o.stage("archive  of an earlier run moved to %s", aside)
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("archive: %w", err)
	}
	if err := os.Rename(staged, archive); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return nil
}
