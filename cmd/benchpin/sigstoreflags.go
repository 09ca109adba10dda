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

// rootBytes is the size of the largest file of trusted roots that is read; Sigstore's own has 7 kB.
const rootBytes = 4 << 20

// trustFlags name whom to trust beside keys. Nothing is trusted without.
type trustFlags struct {
	trustedRoot, timestampRoots string
	who                         sigstore.Identity
}

func (f *trustFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.trustedRoot, "trusted-root", "", "Sigstore trusted_root.json `file`: the timestamp authorities and logs to trust")
	cmd.Flags().StringVar(&f.timestampRoots, "timestamp-roots", "", "PEM `file` with root and intermediate certificates of timestamp authorities to trust")
}

// addIdentity adds the flags that name who is accepted by certificate.
func (f *trustFlags) addIdentity(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.who.SAN, "certificate-identity", "", "accept signers with a certificate of this `name`, such as an e-mail address or a URI (with --trusted-root)")
	cmd.Flags().StringVar(&f.who.SANPattern, "certificate-identity-regexp", "", "`pattern` for the whole of that name, in its place")
	cmd.Flags().StringVar(&f.who.Issuer, "certificate-oidc-issuer", "", "`issuer` who must have vouched for the name")
	cmd.Flags().StringVar(&f.who.IssuerPattern, "certificate-oidc-issuer-regexp", "", "`pattern` for the whole of the issuer, in its place")
}

// identifies reports whether anybody is accepted by certificate.
func (f *trustFlags) identifies() bool { return f.who != sigstore.Identity{} }

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
	o, err := f.options()
	if err != nil || (o.TrustedRoot == nil && o.TimestampRoots == nil && !f.identifies()) {
		return nil, err
	}
	v, err := sigstore.NewVerifier(o)
	if errors.Is(err, sigstore.ErrRoots) || errors.Is(err, sigstore.ErrIdentity) {
		return nil, &usageError{err}
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// options are whom the flags name.
func (f *trustFlags) options() (sigstore.Options, error) {
	var o sigstore.Options
	if f.identifies() {
		o.Identities = []sigstore.Identity{f.who}
	}
	for _, part := range []struct {
		file string
		to   *[]byte
	}{{f.trustedRoot, &o.TrustedRoot}, {f.timestampRoots, &o.TimestampRoots}} {
		if part.file == "" {
			continue
		}
		data, err := store.ReadRegular(part.file, rootBytes)
		if err != nil {
			return o, err
		}
		*part.to = data
	}
	return o, nil
}

// signFlags say how to sign.
type signFlags struct {
	trustFlags
	key        string
	timestamps []string

	fulcio, rekor, token, tokenFile string
}

// addKeyless adds the flags for signing without a key. A certificate is for minutes: commands that measure first do not have them.
func (f *signFlags) addKeyless(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.fulcio, "fulcio-url", "", "`URL` of a Fulcio-compatible authority that certifies a key made for this one call, in place of --key")
	cmd.Flags().StringVar(&f.rekor, "rekor-url", "", "`URL` of the Rekor v1 log in which the signatures are entered (with --fulcio-url)")
	cmd.Flags().StringVar(&f.token, "identity-token", "", "OpenID Connect `token` that says who you are; other users of the machine can see it on a command line, so prefer the variable or the file")
	cmd.Flags().StringVar(&f.tokenFile, "identity-token-file", "", "`file` that holds the token")
}

// keyless is a signer with a certificate.
func (f *signFlags) keyless(ctx context.Context) (attest.Signer, error) {
	switch {
	case f.key != "":
		return nil, usagef("--key and --fulcio-url are two ways to sign: give one")
	case f.rekor == "" && len(f.timestamps) == 0:
		return nil, usagef("--fulcio-url needs --rekor-url or --timestamp-url: a certificate is for minutes, and somebody must see that it was valid when you signed")
	case (f.token == "") == (f.tokenFile == ""):
		return nil, usagef("--fulcio-url needs --identity-token or --identity-token-file, one of them")
	case f.trustedRoot == "":
		return nil, usagef("--fulcio-url needs --trusted-root: what the authority answers is verified before it is kept")
	}
	token := f.token
	if f.tokenFile != "" {
		data, err := store.ReadRegular(f.tokenFile, rootBytes)
		if err != nil {
			return nil, err
		}
		token = strings.TrimSpace(string(data))
	}
	o, err := f.options()
	if err != nil {
		return nil, err
	}
	k, err := sigstore.NewKeyless(ctx, sigstore.KeylessOptions{Fulcio: f.fulcio, Token: token, Rekor: f.rekor, Trust: o})
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

func (f *signFlags) add(cmd *cobra.Command, otherwise string) {
	f.trustFlags.add(cmd)
	cmd.Flags().StringVar(&f.key, "key", "", "private `KEY` to sign with: a file, env://NAME (a variable that holds it) or SCHEME://KEY (the program sigstore-kms-SCHEME keeps it)"+otherwise)
	cmd.Flags().StringArrayVar(&f.timestamps, "timestamp-url", nil, "`URL` of an RFC 3161 timestamp authority that is asked for a timestamp of every signature; may be repeated")
}

// signer is who signs; nil without a key.
func (a *app) signer(ctx context.Context, f *signFlags) (attest.Signer, error) {
	if err := webAddresses(map[string][]string{"timestamp-url": f.timestamps, "fulcio-url": {f.fulcio}, "rekor-url": {f.rekor}}); err != nil {
		return nil, err
	}
	if f.fulcio != "" {
		return f.keyless(ctx)
	}
	if f.rekor != "" || f.token != "" || f.tokenFile != "" {
		return nil, usagef("--rekor-url and --identity-token go with --fulcio-url")
	}
	if f.key == "" {
		if len(f.timestamps) > 0 {
			return nil, usagef("--timestamp-url needs --key: a timestamp is of your signature")
		}
		return nil, nil
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
