package sigstore_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/attest/sigstore"
	"github.com/benchpin/benchpin/pkg/attest/sigstore/sigstoretest"
)

const (
	someone  = "dev@example.com"
	idIssuer = "https://issuer.example"
	payload  = `{"_type":"https://in-toto.io/Statement/v1","subject":[],"predicateType":"x","predicate":{}}`
	kind     = "application/vnd.in-toto+json"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// parts are the parts of a bundle that the tests look at.
type parts struct {
	VerificationMaterial struct {
		Certificate *struct {
			RawBytes []byte `json:"rawBytes"`
		} `json:"certificate"`
		TlogEntries []map[string]any `json:"tlogEntries"`
	} `json:"verificationMaterial"`
}

func partsOf(t testing.TB, raw []byte) parts {
	t.Helper()
	var p parts
	must(t, json.Unmarshal(raw, &p))
	return p
}

func certificateOf(t testing.TB, raw []byte) *x509.Certificate {
	t.Helper()
	c, err := x509.ParseCertificate(partsOf(t, raw).VerificationMaterial.Certificate.RawBytes)
	must(t, err)
	return c
}

// One certificate serves as long as it lasts; when it is over another key is certified, with the token of then, for the same identity alone.
func TestCertificateIsRenewed(t *testing.T) {
	s := sigstoretest.New(t)
	who, asked := someone, 0
	k, err := sigstore.NewKeyless(context.Background(), sigstore.KeylessOptions{Fulcio: s.Fulcio, Rekor: s.Rekor,
		Token: func() (string, error) { asked++; return sigstoretest.Token(who, idIssuer), nil },
		Trust: sigstore.Options{TrustedRoot: s.TrustedRoot(t, true)}})
	must(t, err)
	if k.Identity != (sigstore.Identity{SAN: someone, Issuer: idIssuer}) || asked != 1 {
		t.Fatalf("certified %+v after %d tokens", k.Identity, asked)
	}
	sign := func() *x509.Certificate {
		t.Helper()
		raw, err := k.SignPayload(context.Background(), kind, []byte(payload))
		must(t, err)
		// What was signed before holds, and what is signed after too: the trust is in the identity.
		if v, err := k.Trust().Witness.Examine(raw, nil); err != nil || !strings.Contains(v.Signer, someone) {
			t.Fatalf("%+v, %v", v, err)
		}
		return certificateOf(t, raw)
	}
	first := sign()
	if again := sign(); !again.Equal(first) || asked != 1 {
		t.Errorf("another certificate while the first was good (%d tokens)", asked)
	}
	k.SetClock(func() time.Time { return first.NotAfter.Add(-time.Minute) })
	if second := sign(); second.Equal(first) || asked != 2 {
		t.Errorf("the certificate was not renewed (%d tokens)", asked)
	}
	// One signer is one identity: a token of somebody else does not do.
	who = "other@example.com"
	k.SetClock(func() time.Time { return first.NotAfter.Add(time.Hour) })
	if _, err := k.SignPayload(context.Background(), kind, []byte(payload)); err == nil || !strings.Contains(err.Error(), "one signer is one identity") {
		t.Errorf("signed as somebody else: %v", err)
	}
	if k.Identity.SAN != someone {
		t.Errorf("the signer became %+v", k.Identity)
	}
}

// A token that cannot be had, and roots that do not know the authority's kind, are said before anything is signed.
func TestNewKeylessFails(t *testing.T) {
	s := sigstoretest.New(t)
	lost := errors.New("the token is lost")
	good := sigstore.KeylessOptions{Fulcio: s.Fulcio, Token: func() (string, error) { return sigstoretest.Token(someone, idIssuer), nil },
		Trust: sigstore.Options{TrustedRoot: s.TrustedRoot(t, true)}}
	for name, c := range map[string]struct {
		change func(*sigstore.KeylessOptions)
		is     error
	}{
		"no token":           {func(o *sigstore.KeylessOptions) { o.Token = func() (string, error) { return "", lost } }, lost},
		"no roots":           {func(o *sigstore.KeylessOptions) { o.Trust = sigstore.Options{} }, sigstore.ErrRoots},
		"no authority in it": {func(o *sigstore.KeylessOptions) { o.Trust = sigstore.Options{TimestampRoots: s.Timestamps.PEM()} }, sigstore.ErrRoots},
		"nobody there":       {func(o *sigstore.KeylessOptions) { o.Fulcio = "http://127.0.0.1:1" }, nil},
	} {
		o := good
		c.change(&o)
		if _, err := sigstore.NewKeyless(context.Background(), o); err == nil || !strings.Contains(err.Error(), "certificate authority "+o.Fulcio) || (c.is != nil && !errors.Is(err, c.is)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
