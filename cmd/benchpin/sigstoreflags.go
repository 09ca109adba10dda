package main

import (
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

// trusted is whom the flags name.
func (f *trustFlags) trusted() (attest.Trusted, error) {
	var t attest.Trusted
	if f.identifies() {
		t.Identities = []attest.Identity{f.who}
	}
	for _, part := range []struct {
		file string
		to   *[]byte
	}{{f.trustedRoot, &t.Root}, {f.timestampRoots, &t.TimestampRoots}} {
		if part.file == "" {
			continue
		}
		data, err := store.ReadRegular(part.file, rootBytes)
		if err != nil {
			return t, err
		}
		*part.to = data
	}
	return t, nil
}
