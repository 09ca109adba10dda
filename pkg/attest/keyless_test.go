package attest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/sigstore"
	"github.com/benchpin/benchpin/pkg/attest/sigstore/sigstoretest"
	"github.com/benchpin/benchpin/pkg/record"
)

const (
	someone  = "dev@example.com"
	idIssuer = "https://issuer.example"
)

// tokenOfSomeone is an OpenID Connect token.
func tokenOfSomeone() (string, error) { return sigstoretest.Token(someone, idIssuer), nil }

func keyless(t testing.TB, s *sigstoretest.Sigstore, logs bool) *sigstore.Keyless {
	t.Helper()
	o := sigstore.KeylessOptions{Fulcio: s.Fulcio, Token: tokenOfSomeone, Trust: sigstore.Options{TrustedRoot: s.TrustedRoot(t, logs)}}
	if logs {
		o.Rekor = s.Rekor
	}
	k, err := sigstore.NewKeyless(context.Background(), o)
	must(t, err)
	return k
}

func identityVerifier(t testing.TB, s *sigstoretest.Sigstore, logs bool, who ...sigstore.Identity) *sigstore.Verifier {
	t.Helper()
	v, err := sigstore.NewVerifier(sigstore.Options{TrustedRoot: s.TrustedRoot(t, logs), Identities: who})
	must(t, err)
	return v
}

// A whole round without a key: certificate, log and timestamp, and nobody but the right identity is accepted, exactly or by pattern.
func TestKeyless(t *testing.T) {
	s := sigstoretest.New(t)
	for name, signer := range map[string]attest.Signer{
		"log":               keyless(t, s, true),
		"log and timestamp": &sigstore.Stamped{Signer: keyless(t, s, true), URLs: []string{s.Timestamps.URL}, Verifier: identityVerifier(t, s, true, sigstore.Identity{SAN: someone, Issuer: idIssuer})},
		"timestamp, no log": &sigstore.Stamped{Signer: keyless(t, s, false), URLs: []string{s.Timestamps.URL}, Verifier: identityVerifier(t, s, false, sigstore.Identity{SAN: someone, Issuer: idIssuer})},
	} {
		logs := strings.HasPrefix(name, "log")
		dir := stampedArchive(t, signer, nil)
		asked := s.Asked() + s.Timestamps.Asked()
		for _, c := range []struct {
			who  sigstore.Identity
			good bool
		}{
			{sigstore.Identity{SAN: someone, Issuer: idIssuer}, true},
			{sigstore.Identity{SANPattern: `[a-z]+@example\.com`, IssuerPattern: `https://.*`}, true},
			{sigstore.Identity{SAN: "other@example.com", Issuer: idIssuer}, false},
			{sigstore.Identity{SAN: someone, Issuer: "https://other.example"}, false},
			// A pattern is for the whole text.
			{sigstore.Identity{SANPattern: `dev@example`, Issuer: idIssuer}, false},
			{sigstore.Identity{SANPattern: `x|ev@example.com`, Issuer: idIssuer}, false},
		} {
			v := verify(t, dir, attest.Policy{Witness: identityVerifier(t, s, logs, c.who), RequireTime: true})
			if v.OK() != c.good {
				t.Fatalf("%s, %+v:\n%s", name, c.who, describe(v))
			}
			if !c.good {
				wantFault(t, v, "signatures", fault.Identity, "bundle")
				continue
			}
			if at := checkNamed(t, v, "signing-time"); at.Class != string(record.Witnessed) || len(v.Keys) != 1 || !strings.Contains(v.Keys[0], someone) || !strings.Contains(v.Keys[0], idIssuer) {
				t.Errorf("%s: %v, %+v", name, v.Keys, at)
			}
		}
		if now := s.Asked() + s.Timestamps.Asked(); now != asked {
			t.Errorf("%s: verifying asked somebody %d times", name, now-asked)
		}
		// Nobody named, another authority, and a key: refused.
		if _, err := attest.VerifyArchive(context.Background(), dir, nil, attest.Policy{}); !errors.Is(err, attest.ErrNoKey) {
			t.Errorf("%s: nobody accepted: %v", name, err)
		}
		if _, err := attest.VerifyArchive(context.Background(), dir, nil, attest.Policy{Witness: identityVerifier(t, s, logs)}); !errors.Is(err, attest.ErrNoKey) {
			t.Errorf("%s: no identity accepted: %v", name, err)
		}
		stranger := identityVerifier(t, sigstoretest.New(t), logs, sigstore.Identity{SAN: someone, Issuer: idIssuer})
		if v := verify(t, dir, attest.Policy{Witness: stranger}); v.OK() {
			t.Errorf("%s: accepted from another authority", name)
		}
		wantFault(t, verify(t, dir, attest.Policy{}, newKey(t, attest.Ed25519).Public()), "signatures", fault.VerificationMaterial, "bundle")
		wantFault(t, verify(t, dir, attest.Policy{Witness: timestampVerifier(t, s.Timestamps)}, newKey(t, attest.Ed25519).Public()), "signatures", fault.Identity, "bundle")
	}
}

// Certificates that were not valid at the time of signing, and bundles put together from two.
func TestKeylessAttacks(t *testing.T) {
	s := sigstoretest.New(t)
	who := sigstore.Identity{SAN: someone, Issuer: idIssuer}
	for name, shift := range map[string]time.Duration{"expired": -time.Hour, "not yet valid": time.Hour} {
		s.Shift = shift
		for _, logs := range []bool{true, false} {
			k := &sigstore.Stamped{Signer: keyless(t, s, logs), URLs: []string{s.Timestamps.URL}, Verifier: identityVerifier(t, s, logs, who)}
			if _, err := attest.WriteArchive(context.Background(), t.TempDir()+"/a", newRun(t, nil).input, k); !errors.Is(err, fault.Identity) && !errors.Is(err, fault.LogEntry) {
				t.Errorf("%s, log %v: %v", name, logs, err)
			}
		}
	}
	s.Shift = 0
	mute := keyless(t, s, true)
	s.Silent = true
	if _, err := attest.WriteArchive(context.Background(), t.TempDir()+"/a", newRun(t, nil).input, mute); err == nil || !strings.Contains(err.Error(), "the log") {
		t.Errorf("a log that answers nothing: %v", err)
	}
	if _, err := sigstore.NewKeyless(context.Background(), sigstore.KeylessOptions{Fulcio: s.Fulcio, Token: tokenOfSomeone,
		Trust: sigstore.Options{TrustedRoot: s.TrustedRoot(t, true)}}); err == nil {
		t.Error("an authority that answers nothing")
	}
	s.Silent = false
	signer := keyless(t, s, true)
	bundles, _ := archiveParts(t, stampedArchive(t, signer, nil))
	second, _ := archiveParts(t, stampedArchive(t, keyless(t, s, true), nil))
	good := bundles[attest.ResultType]
	part := func(raw []byte, name string) (out any) {
		material(t, raw, func(m map[string]any) { out = m[name] })
		return out
	}
	archive := takeApart(t, newArchive(t, newRun(t, nil), newKey(t, attest.Ed25519)))
	for name, c := range map[string]struct {
		class  fault.Class
		change func(map[string]any)
	}{
		"log entry of another bundle": {fault.LogEntry, func(m map[string]any) { m["tlogEntries"] = part(bundles[attest.TestResultType], "tlogEntries") }},
		"log entry of another key":    {fault.LogEntry, func(m map[string]any) { m["tlogEntries"] = part(second[attest.ResultType], "tlogEntries") }},
		"log entry twice": {fault.LogEntry, func(m map[string]any) {
			m["tlogEntries"] = append(m["tlogEntries"].([]any), m["tlogEntries"].([]any)...)
		}},
		"no log entry":               {fault.Identity, func(m map[string]any) { delete(m, "tlogEntries") }},
		"certificate of another key": {fault.LogEntry, func(m map[string]any) { m["certificate"] = part(second[attest.ResultType], "certificate") }},
		"later in the log": {fault.LogEntry, func(m map[string]any) {
			m["tlogEntries"].([]any)[0].(map[string]any)["integratedTime"] = "4000000000"
		}},
	} {
		f := forgery{layers: archive.layers, bundles: []forgedBundle{{attest.ResultType, material(t, good, c.change)}}}
		v := verify(t, f.putTogether(t, newKey(t, attest.Ed25519)), attest.Policy{Witness: identityVerifier(t, s, true, who)})
		t.Log(name)
		wantFault(t, v, "signatures", c.class, "bundle")
	}
	// A log that the trusted root has is demanded, a timestamp notwithstanding.
	k := &sigstore.Stamped{Signer: keyless(t, s, false), URLs: []string{s.Timestamps.URL}, Verifier: identityVerifier(t, s, false, who)}
	wantFault(t, verify(t, stampedArchive(t, k, nil), attest.Policy{Witness: identityVerifier(t, s, true, who)}), "signatures", fault.LogEntry, "bundle")
}

// Keyless and key stand beside each other.
func TestKeylessBesideAKey(t *testing.T) {
	s := sigstoretest.New(t)
	k := newKey(t, attest.ECDSAP256)
	dir := newArchive(t, newRun(t, nil), k)
	for range 2 { // signed again by the same identity, nothing is added
		_, err := attest.AttestArchive(context.Background(), dir, keyless(t, s, true), nil)
		must(t, err)
	}
	w := identityVerifier(t, s, true, sigstore.Identity{SAN: someone, Issuer: idIssuer})
	if v := verify(t, dir, attest.Policy{Witness: w, Signers: 2}, k.Public()); !v.OK() || len(v.Keys) != 2 || len(v.Attestations) != 6 {
		t.Errorf("%d bundles, %v:\n%s", len(v.Attestations), v.Keys, describe(v))
	}
	if v := verify(t, dir, attest.Policy{}, k.Public()); !v.OK() {
		t.Error(describe(v))
	}
	if v := verify(t, dir, attest.Policy{Witness: w}); !v.OK() {
		t.Error(describe(v))
	}
}

func TestIdentitiesAreWhole(t *testing.T) {
	s := sigstoretest.New(t)
	for name, who := range map[string]sigstore.Identity{
		"nobody": {}, "no issuer": {SAN: someone}, "no name": {Issuer: idIssuer}, "both": {SAN: someone, SANPattern: "x", Issuer: idIssuer},
		"no pattern": {SANPattern: "(", Issuer: idIssuer}, "closes the group": {SANPattern: `x)|(?:.*`, Issuer: idIssuer},
	} {
		if _, err := sigstore.NewVerifier(sigstore.Options{TrustedRoot: s.TrustedRoot(t, true), Identities: []sigstore.Identity{who}}); !errors.Is(err, sigstore.ErrIdentity) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := sigstore.NewVerifier(sigstore.Options{TimestampRoots: s.Timestamps.PEM(), Identities: []sigstore.Identity{{SAN: someone, Issuer: idIssuer}}}); !errors.Is(err, sigstore.ErrRoots) {
		t.Errorf("no authority: %v", err)
	}
	if _, err := sigstore.NewKeyless(context.Background(), sigstore.KeylessOptions{Fulcio: s.Fulcio, Token: func() (string, error) { return "x", nil }, Trust: sigstore.Options{TrustedRoot: s.TrustedRoot(t, true)}}); err == nil {
		t.Error("certified without a token")
	}
}
