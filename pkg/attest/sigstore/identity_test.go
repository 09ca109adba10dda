package sigstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/sigstore"
	"github.com/benchpin/benchpin/pkg/attest/sigstore/sigstoretest"
)

func signedBy(t testing.TB, s *sigstoretest.Sigstore) []byte {
	t.Helper()
	k, err := sigstore.NewKeyless(context.Background(), sigstore.KeylessOptions{Fulcio: s.Fulcio, Rekor: s.Rekor,
		Token: func() (string, error) { return sigstoretest.Token(someone, idIssuer), nil }, Trust: sigstore.Options{TrustedRoot: s.TrustedRoot(t, true)}})
	must(t, err)
	raw, err := k.SignPayload(context.Background(), kind, []byte(payload))
	must(t, err)
	return raw
}

// Who is accepted is accepted exactly, or by a pattern for the whole text; nothing that looks like it is.
func TestIdentities(t *testing.T) {
	s := sigstoretest.New(t)
	raw := signedBy(t, s)
	for _, c := range []struct {
		who  sigstore.Identity
		good bool
	}{
		{sigstore.Identity{SAN: someone, Issuer: idIssuer}, true},
		{sigstore.Identity{SANPattern: `dev@example\.com`, Issuer: idIssuer}, true},
		{sigstore.Identity{SANPattern: `(dev|test)@.*`, IssuerPattern: `https://[a-z.]+`}, true},
		{sigstore.Identity{SANPattern: `(?i)DEV@EXAMPLE\.COM`, Issuer: idIssuer}, true},
		{sigstore.Identity{SAN: "Dev@example.com", Issuer: idIssuer}, false},
		{sigstore.Identity{SAN: someone + " ", Issuer: idIssuer}, false},
		{sigstore.Identity{SAN: "example.com", Issuer: idIssuer}, false},
		{sigstore.Identity{SAN: someone, Issuer: idIssuer + "/"}, false},
		{sigstore.Identity{SAN: someone, Issuer: "http://issuer.example"}, false},
		{sigstore.Identity{SAN: `dev@example\.com`, Issuer: idIssuer}, false}, // a pattern that is given as a name is a name
		{sigstore.Identity{SANPattern: `dev@example`, Issuer: idIssuer}, false},
		{sigstore.Identity{SANPattern: `ev@example\.com`, Issuer: idIssuer}, false},
		{sigstore.Identity{SANPattern: `x|dev@example\.co`, Issuer: idIssuer}, false},
		{sigstore.Identity{SANPattern: `^dev@example\.com|$x`, Issuer: idIssuer}, true}, // anchors of its own change nothing
		{sigstore.Identity{SANPattern: `(?m)^dev@example\.com$`, Issuer: idIssuer}, true},
		{sigstore.Identity{SAN: someone, IssuerPattern: `https://issuer`}, false},
	} {
		v, err := sigstore.NewVerifier(sigstore.Options{TrustedRoot: s.TrustedRoot(t, true), Identities: []sigstore.Identity{c.who}})
		must(t, err)
		got, err := v.Examine(raw, nil)
		if (err == nil) != c.good || (!c.good && !errors.Is(err, fault.Identity)) {
			t.Errorf("%+v: %v", c.who, err)
		}
		if c.good && got.Signer != "identity "+someone+", by "+idIssuer {
			t.Errorf("%+v: the signer is %q", c.who, got.Signer)
		}
	}
	// Any of several is enough, and none is not.
	several := []sigstore.Identity{{SAN: "a@example.com", Issuer: idIssuer}, {SAN: someone, Issuer: idIssuer}}
	v, err := sigstore.NewVerifier(sigstore.Options{TrustedRoot: s.TrustedRoot(t, true), Identities: several})
	must(t, err)
	if _, err := v.Examine(raw, nil); err != nil || !v.Identifies() {
		t.Errorf("one of two: %v", err)
	}
	v, err = sigstore.NewVerifier(sigstore.Options{TrustedRoot: s.TrustedRoot(t, true)})
	must(t, err)
	if _, err := v.Examine(raw, nil); !errors.Is(err, fault.Identity) || v.Identifies() {
		t.Errorf("nobody: %v", err)
	}
}

// What names nobody, or two, is refused before anything is verified; so are patterns that would close the group around them.
func TestIdentityRefused(t *testing.T) {
	s := sigstoretest.New(t)
	for name, who := range map[string]sigstore.Identity{
		"nobody": {}, "no issuer": {SAN: someone}, "no name": {Issuer: idIssuer},
		"two names": {SAN: someone, SANPattern: "x", Issuer: idIssuer}, "two issuers": {SAN: someone, Issuer: idIssuer, IssuerPattern: "x"},
		"no pattern": {SANPattern: "(", Issuer: idIssuer}, "no issuer pattern": {SAN: someone, IssuerPattern: "["},
		"closes the group": {SANPattern: `x)|(?:.*`, Issuer: idIssuer}, "closes the issuer's group": {SAN: someone, IssuerPattern: `x)|(?:.*`},
	} {
		if err := who.Check(); err == nil {
			t.Errorf("%s: it is taken for an identity", name)
		}
		if _, err := sigstore.NewVerifier(sigstore.Options{TrustedRoot: s.TrustedRoot(t, true), Identities: []sigstore.Identity{who}}); !errors.Is(err, sigstore.ErrIdentity) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := sigstore.NewWitness(attest.Trusted{Root: s.TrustedRoot(t, true), Identities: []attest.Identity{who}}); !errors.Is(err, sigstore.ErrIdentity) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
