package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/pipeline"
)

// reviewFlags are those by which whoever verified signs that.
type reviewFlags struct {
	sign   signFlags
	out    string
	attach bool
	failed bool
}

func (f *reviewFlags) add(cmd *cobra.Command, trust *trustFlags) {
	f.sign.add(cmd, "attest", "to sign with that every check passed"+keyForms, trust)
	cmd.Flags().StringVar(&f.out, "out", "", "with --attest or --fulcio-url: new `file` of what is signed")
	cmd.Flags().BoolVar(&f.failed, "attest-failed", false, "with --attest or --fulcio-url: where a check failed, sign that and which (the exit code stays 4)")
	cmd.Flags().BoolVar(&f.attach, "attach", false, "with --attest or --fulcio-url: attach what is signed to the archive, there where it is")
}

// check refuses what cannot be carried out, before anything is verified.
func (f *reviewFlags) check() error {
	switch {
	case !f.sign.asked() && (f.out != "" || f.attach || f.failed):
		return usagef("--out, --attach and --attest-failed: expected --attest KEY, the key that signs that every check passed, or --fulcio-url")
	case f.sign.asked() && f.out == "" && !f.attach:
		return usagef("--attest, --fulcio-url: expected --out FILE or --attach: where what is signed goes")
	case f.out != "" && fileExists(f.out):
		return usagef("--out %s is there already: nothing is written over", f.out)
	}
	return nil
}

// review signs that an archive was verified, or that it was not, and puts that where it was asked for.
func (a *app) review(ctx context.Context, archive string, f *reviewFlags, remote *registryFlags, v *attest.Verification, p attest.Policy,
	keys []attest.PublicKey) error {
	by, err := a.signerTrusting(ctx, &f.sign, p.Trusted)
	if err != nil {
		return err
	}
	sign := attest.SignReview
	if !v.OK() {
		sign = attest.SignRefusal
	}
	bundle, err := sign(ctx, by, v, p, keys, a.toolVersion(), a.now())
	if err != nil {
		return err
	}
	path := f.out
	if path == "" {
		folder, err := os.MkdirTemp("", "benchpin-review-*")
		if err != nil {
			return fmt.Errorf("attest: %w", err)
		}
		defer os.RemoveAll(folder)
		path = filepath.Join(folder, "review.sigstore.json")
	} else if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("attest: %s is there already: nothing is written over", path)
	}
	if err := pipeline.WriteFile(path, bundle); err != nil {
		return err
	}
	if f.out != "" {
		a.notef("attestation: %s", path)
	}
	if !f.attach {
		return nil
	}
	attached, err := a.attach(ctx, archive, []string{path}, remote)
	if err != nil {
		return err
	}
	a.notef("attached to %s", attached.Archive)
	return nil
}
