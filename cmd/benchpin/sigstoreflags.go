package main

import (
	"context"
	"errors"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/sigstore"
	"github.com/benchpin/benchpin/pkg/store"
)

// rootBytes is the size of the largest file of trusted roots that is read; Sigstore's own has 7 kB.
const rootBytes = 4 << 20

// trustFlags name whom to trust beside keys. Nothing is trusted without.
type trustFlags struct {
	trustedRoot, timestampRoots string
}

func (f *trustFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.trustedRoot, "trusted-root", "", "Sigstore trusted_root.json `file`: the timestamp authorities and logs to trust")
	cmd.Flags().StringVar(&f.timestampRoots, "timestamp-roots", "", "PEM `file` with root and intermediate certificates of timestamp authorities to trust")
}

// again are the flags to give once more where the result is verified.
func (f *trustFlags) again() string {
	var s string
	if f.trustedRoot != "" {
		s += " --trusted-root " + quoted(f.trustedRoot)
	}
	if f.timestampRoots != "" {
		s += " --timestamp-roots " + quoted(f.timestampRoots)
	}
	return s
}

// witness is who judges what third parties added; nil where nobody is to be trusted.
func (f *trustFlags) witness() (attest.Witness, error) {
	var o sigstore.Options
	for _, part := range []struct {
		file string
		to   *[]byte
	}{{f.trustedRoot, &o.TrustedRoot}, {f.timestampRoots, &o.TimestampRoots}} {
		if part.file == "" {
			continue
		}
		data, err := store.ReadRegular(part.file, rootBytes)
		if err != nil {
			return nil, err
		}
		*part.to = data
	}
	if o.TrustedRoot == nil && o.TimestampRoots == nil {
		return nil, nil
	}
	v, err := sigstore.NewVerifier(o)
	if errors.Is(err, sigstore.ErrRoots) {
		return nil, &usageError{err}
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// signFlags say how to sign.
type signFlags struct {
	trustFlags
	key        string
	timestamps []string
}

func (f *signFlags) add(cmd *cobra.Command, otherwise string) {
	f.trustFlags.add(cmd)
	cmd.Flags().StringVar(&f.key, "key", "", "private `KEY` to sign with: a file, env://NAME (a variable that holds it) or SCHEME://KEY (the program sigstore-kms-SCHEME keeps it)"+otherwise)
	cmd.Flags().StringArrayVar(&f.timestamps, "timestamp-url", nil, "`URL` of an RFC 3161 timestamp authority that is asked for a timestamp of every signature; may be repeated")
}

// signer is who signs; nil without a key.
func (a *app) signer(ctx context.Context, f *signFlags) (attest.Signer, error) {
	if f.key == "" {
		if len(f.timestamps) > 0 {
			return nil, usagef("--timestamp-url needs --key: a timestamp is of your signature")
		}
		return nil, nil
	}
	for _, text := range f.timestamps {
		if u, err := url.Parse(text); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return nil, usagef("--timestamp-url %q: expected http://HOST/PATH or https://HOST/PATH", text)
		}
	}
	w, err := f.witness()
	if err != nil {
		return nil, err
	}
	if len(f.timestamps) > 0 && w == nil {
		return nil, usagef("--timestamp-url needs --timestamp-roots or --trusted-root: what an authority answers is verified before it is kept")
	}
	key, err := a.privateKey(ctx, f.key)
	if err != nil {
		return nil, err
	}
	if len(f.timestamps) == 0 {
		return key, nil
	}
	return &sigstore.Stamped{Signer: key, URLs: f.timestamps, Verifier: w}, nil
}
