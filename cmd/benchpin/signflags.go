package main

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/sigstore"
	"github.com/benchpin/benchpin/pkg/store"
)

// signFlags say how to sign. They are the same in every command that signs: with a key, or without one by a certificate; with timestamps, or
// without.
type signFlags struct {
	// trust is whom to trust for what others answer: flags of its own, or those by which the command verifies.
	trust *trustFlags
	// flag is the name of the flag of the key.
	flag       string
	key        string
	timestamps []string

	fulcio, rekor, token, tokenFile string
	rekorVersion                    uint32
}

const keyForms = ": a file, env://NAME (a variable that holds it) or SCHEME://KEY (the program sigstore-kms-SCHEME keeps it)"

// add adds the flags, with flag for the key and usage for what it signs. trust are the command's flags for whom to trust; where it has none,
// nil adds them.
func (f *signFlags) add(cmd *cobra.Command, flag, usage string, trust *trustFlags) {
	if f.flag, f.trust = flag, trust; trust == nil {
		f.trust = &trustFlags{}
		f.trust.add(cmd)
	}
	cmd.Flags().StringVar(&f.key, flag, "", "private `KEY` "+usage)
	cmd.Flags().StringArrayVar(&f.timestamps, "timestamp-url", nil, "`URL` of an RFC 3161 timestamp authority that is asked for a timestamp of every signature; may be repeated")
	cmd.Flags().StringVar(&f.fulcio, "fulcio-url", "", "`URL` of a Fulcio-compatible authority that certifies a key made for this one call, in place of --"+flag)
	cmd.Flags().StringVar(&f.rekor, "rekor-url", "", "`URL` of the Rekor log in which the signatures are entered (with --fulcio-url)")
	cmd.Flags().Uint32Var(&f.rekorVersion, "rekor-version", 1, "`version` of that log's interface: 1, or 2, whose entries prove no time and need --timestamp-url")
	cmd.Flags().StringVar(&f.token, "identity-token", "", "OpenID Connect `token` that says who you are; other users of the machine can see it on a command line, so prefer the variable or the file")
	cmd.Flags().StringVar(&f.tokenFile, "identity-token-file", "", "`file` that holds the token; it is read when there is something to sign")
}

// asked reports whether anything is to be signed.
func (f *signFlags) asked() bool { return f.key != "" || f.fulcio != "" }

// check refuses what cannot be carried out, before anything is done. roots says that there are roots by which to judge what others answer.
func (f *signFlags) check(roots bool) error {
	if err := webAddresses(map[string][]string{"timestamp-url": f.timestamps, "fulcio-url": {f.fulcio}, "rekor-url": {f.rekor}}); err != nil {
		return err
	}
	switch {
	case f.fulcio == "" && (f.rekor != "" || f.tokenFile != ""):
		return usagef("--rekor-url and --identity-token-file go with --fulcio-url")
	case f.fulcio == "" && f.key == "" && len(f.timestamps) > 0:
		return usagef("--timestamp-url needs --%s: a timestamp is of your signature", f.flag)
	case f.fulcio == "" && len(f.timestamps) > 0 && !roots:
		return usagef("--timestamp-url needs --timestamp-roots or --trusted-root: what an authority answers is verified before it is kept")
	case f.fulcio == "":
		return nil
	case f.key != "":
		return usagef("--%s and --fulcio-url are two ways to sign: give one", f.flag)
	case f.rekor == "" && len(f.timestamps) == 0:
		return usagef("--fulcio-url needs --rekor-url or --timestamp-url: a certificate is for minutes, and somebody must see that it was valid when you signed")
	case f.rekorVersion != 1 && f.rekorVersion != 2:
		return usagef("--rekor-version %d: expected 1 or 2", f.rekorVersion)
	case f.rekor == "" && f.rekorVersion != 1:
		return usagef("--rekor-version goes with --rekor-url")
	case f.rekorVersion == 2 && len(f.timestamps) == 0:
		return usagef("--rekor-version 2 needs --timestamp-url: the entry of such a log proves no time, and a certificate is for minutes")
	case (f.token == "") == (f.tokenFile == ""):
		return usagef("--fulcio-url needs --identity-token or --identity-token-file, one of them")
	}
	return nil
}

// bearer is the token, read anew from its file.
func (f *signFlags) bearer() (string, error) {
	if f.tokenFile == "" {
		return f.token, nil
	}
	data, err := store.ReadRegular(f.tokenFile, rootBytes)
	return strings.TrimSpace(string(data)), err
}

// signer is who signs; nil where nothing is to be signed.
func (a *app) signer(ctx context.Context, f *signFlags) (attest.Signer, error) {
	t, err := f.trust.trusted()
	if err != nil {
		return nil, err
	}
	return a.signerTrusting(ctx, f, t)
}

// signerTrusting is signer where whom to trust was found already.
func (a *app) signerTrusting(ctx context.Context, f *signFlags, t attest.Trusted) (attest.Signer, error) {
	t.Identities = nil // whom to accept is no matter of who signs
	if err := f.check(!t.Empty()); err != nil {
		return nil, err
	}
	if f.fulcio != "" {
		return f.keyless(ctx, t)
	}
	w, err := witness(t)
	if err != nil || f.key == "" {
		return nil, err
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

// keyless is a signer with a certificate.
func (f *signFlags) keyless(ctx context.Context, t attest.Trusted) (attest.Signer, error) {
	if t.Root == nil {
		return nil, usagef("--fulcio-url needs --trusted-root: what the authority answers is verified before it is kept")
	}
	k, err := sigstore.NewKeyless(ctx, sigstore.KeylessOptions{Fulcio: f.fulcio, Token: f.bearer, Rekor: f.rekor, RekorVersion: f.rekorVersion,
		Trust: sigstore.Options{TrustedRoot: t.Root, TimestampRoots: t.TimestampRoots}})
	if errors.Is(err, sigstore.ErrRoots) {
		return nil, &usageError{err}
	}
	if err != nil {
		return nil, err
	}
	if len(f.timestamps) == 0 {
		return k, nil
	}
	return &sigstore.Stamped{Signer: k, URLs: f.timestamps, Verifier: k.Trust().Witness}, nil
}

// again are the flags to give where the result is verified, beside those for a key: whom to trust, and who signed by certificate.
func (f *signFlags) again(by attest.Signer) string {
	s := f.trust.again()
	if stamped, ok := by.(*sigstore.Stamped); ok {
		by = stamped.Signer
	}
	if k, ok := by.(*sigstore.Keyless); ok {
		s += " --certificate-identity " + quoted(k.Identity.SAN) + " --certificate-oidc-issuer " + quoted(k.Identity.Issuer)
	}
	return s
}

// webAddresses refuses what is no address of a server.
func webAddresses(flags map[string][]string) error {
	for name, all := range flags {
		for _, text := range all {
			if u, err := url.Parse(text); text != "" && (err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "") {
				return usagef("--%s %q: expected http://HOST/PATH or https://HOST/PATH", name, text)
			}
		}
	}
	return nil
}
