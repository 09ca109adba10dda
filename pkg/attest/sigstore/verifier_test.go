package sigstore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/sigstore"
	"github.com/benchpin/benchpin/pkg/attest/sigstore/sigstoretest"
)

func newKey(t testing.TB) *attest.PrivateKey {
	t.Helper()
	k, err := attest.GenerateKey(attest.ECDSAP256)
	must(t, err)
	return k
}

func rootsOf(t testing.TB, a *sigstoretest.Timestamps) *sigstore.Verifier {
	t.Helper()
	v, err := sigstore.NewVerifier(sigstore.Options{TimestampRoots: a.PEM()})
	must(t, err)
	return v
}

func pemOf(der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}) }

// Nothing is trusted but what is given, and what is no root is refused as that.
func TestRoots(t *testing.T) {
	s := sigstoretest.New(t)
	tsa := s.Timestamps
	both := bytes.Join([][]byte{tsa.PEM(), sigstoretest.NewTimestamps(t).PEM()}, []byte("\n \n"))
	for name, c := range map[string]struct {
		o    sigstore.Options
		good bool
	}{
		"nothing":                      {sigstore.Options{}, false},
		"a trusted root":               {sigstore.Options{TrustedRoot: s.TrustedRoot(t, true)}, true},
		"timestamp roots":              {sigstore.Options{TimestampRoots: tsa.PEM()}, true},
		"of two authorities":           {sigstore.Options{TimestampRoots: both}, true},
		"both":                         {sigstore.Options{TrustedRoot: s.TrustedRoot(t, false), TimestampRoots: tsa.PEM()}, true},
		"a root alone":                 {sigstore.Options{TimestampRoots: pemOf(tsa.Root.Raw)}, true},
		"an intermediate alone":        {sigstore.Options{TimestampRoots: pemOf(tsa.Intermediate.Raw)}, false},
		"an empty file":                {sigstore.Options{TimestampRoots: []byte{}}, false},
		"an empty trusted root":        {sigstore.Options{TrustedRoot: []byte{}}, false},
		"no PEM":                       {sigstore.Options{TimestampRoots: []byte("x")}, false},
		"PEM and something after it":   {sigstore.Options{TimestampRoots: append(tsa.PEM(), 'x')}, false},
		"a key":                        {sigstore.Options{TimestampRoots: newKey(t).Public().PEM()}, false},
		"no certificate":               {sigstore.Options{TimestampRoots: pemOf([]byte("x"))}, false},
		"PEM for a trusted root":       {sigstore.Options{TrustedRoot: tsa.PEM()}, false},
		"a trusted root cut short":     {sigstore.Options{TrustedRoot: s.TrustedRoot(t, true)[:200]}, false},
		"a trusted root of other kind": {sigstore.Options{TrustedRoot: []byte(`{"mediaType":"application/x"}`)}, false},
	} {
		_, err := sigstore.NewVerifier(c.o)
		if (err == nil) != c.good || (!c.good && !errors.Is(err, sigstore.ErrRoots)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if w, err := sigstore.NewWitness(attest.Trusted{}); w != nil || err != nil {
		t.Errorf("who trusts nobody has no witness: %v, %v", w, err)
	}
	if w, err := sigstore.NewWitness(attest.Trusted{TimestampRoots: tsa.PEM()}); w == nil || err != nil {
		t.Errorf("%v, %v", w, err)
	}
}

// A key's bundle with a timestamp: the time is that of the authority, for who trusts it and knows the key.
func TestExamineKey(t *testing.T) {
	tsa := sigstoretest.NewTimestamps(t)
	k := newKey(t)
	raw, err := (&sigstore.Stamped{Signer: k, URLs: []string{tsa.URL}, Verifier: rootsOf(t, tsa)}).SignPayload(context.Background(), kind, []byte(payload))
	must(t, err)
	public := k.Public()
	v, err := rootsOf(t, tsa).Examine(raw, &public)
	if err != nil || len(v.Times) != 1 || v.Times[0].Kind != "timestamp" || v.Signer != "" || !strings.Contains(v.Times[0].By, "CN=") {
		t.Errorf("%+v, %v", v, err)
	}
	bare, err := k.SignPayload(context.Background(), kind, []byte(payload))
	must(t, err)
	if v, err := rootsOf(t, tsa).Examine(bare, &public); err != nil || len(v.Times) != 0 {
		t.Errorf("no timestamp: %+v, %v", v, err)
	}
	for name, c := range map[string]struct {
		raw   []byte
		key   *attest.PublicKey
		class fault.Class
	}{
		"no bundle": {[]byte("{}"), &public, fault.VerificationMaterial},
		"no JSON":   {[]byte("x"), &public, fault.VerificationMaterial},
		"nobody's":  {raw, nil, fault.Identity},
		"another authority": {func() []byte {
			tsa2 := sigstoretest.NewTimestamps(t)
			out, err := (&sigstore.Stamped{Signer: k, URLs: []string{tsa2.URL}}).SignPayload(context.Background(), kind, []byte(payload))
			must(t, err)
			return out
		}(), &public, fault.Timestamp},
	} {
		if _, err := rootsOf(t, tsa).Examine(c.raw, c.key); !errors.Is(err, c.class) {
			t.Errorf("%s: expected %s, found %v", name, c.class, err)
		}
	}
}

// An entry of a log is compared with the key that signed, and with nothing that the bundle says of it.
func TestExamineLogged(t *testing.T) {
	s := sigstoretest.New(t)
	raw := signedBy(t, s)
	v, err := sigstore.NewVerifier(sigstore.Options{TrustedRoot: s.TrustedRoot(t, true), Identities: []sigstore.Identity{{SAN: someone, Issuer: idIssuer}}})
	must(t, err)
	got, err := v.Examine(raw, nil)
	if err != nil || len(got.Times) != 1 || got.Times[0].Kind != "log" {
		t.Fatalf("%+v, %v", got, err)
	}
	for name, c := range map[string]struct {
		class fault.Class
		f     func(map[string]any)
	}{
		"entry twice": {fault.LogEntry, func(m map[string]any) {
			m["tlogEntries"] = append(m["tlogEntries"].([]any), m["tlogEntries"].([]any)...)
		}},
		"another time": {fault.LogEntry, func(m map[string]any) { m["tlogEntries"].([]any)[0].(map[string]any)["integratedTime"] = "1764500000" }},
		"another log": {fault.LogEntry, func(m map[string]any) {
			m["tlogEntries"].([]any)[0].(map[string]any)["logId"] = map[string]any{"keyId": "AAAA"}
		}},
		"no entry":          {fault.Identity, func(m map[string]any) { delete(m, "tlogEntries") }},
		"no certificate":    {fault.VerificationMaterial, func(m map[string]any) { delete(m, "certificate") }},
		"a key's hint":      {fault.LogEntry, func(m map[string]any) { delete(m, "certificate"); m["publicKey"] = map[string]any{"hint": "x"} }},
		"an unknown field":  {fault.VerificationMaterial, func(m map[string]any) { m["x"] = 1 }},
		"other certificate": {fault.LogEntry, func(m map[string]any) { m["certificate"] = certificateIn(t, signedBy(t, s)) }},
	} {
		if _, err := v.Examine(change(t, raw, c.f), nil); !errors.Is(err, c.class) {
			t.Errorf("%s: expected %s, found %v", name, c.class, err)
		}
	}
	// Somebody else's payload under the same material.
	var b map[string]any
	must(t, json.Unmarshal(raw, &b))
	b["dsseEnvelope"].(map[string]any)["payload"] = "e30="
	changed, err := json.Marshal(b)
	must(t, err)
	if _, err := v.Examine(changed, nil); err == nil {
		t.Error("another payload is taken for the one that was signed")
	}
}

func certificateIn(t testing.TB, raw []byte) any {
	t.Helper()
	var b map[string]any
	must(t, json.Unmarshal(raw, &b))
	return b["verificationMaterial"].(map[string]any)["certificate"]
}

// A timestamp over a message, with no bundle around it.
func TestTimestamped(t *testing.T) {
	tsa, second := sigstoretest.NewTimestamps(t), sigstoretest.NewTimestamps(t)
	v, err := sigstore.NewVerifier(sigstore.Options{TimestampRoots: append(tsa.PEM(), second.PEM()...)})
	must(t, err)
	for _, a := range []*sigstoretest.Timestamps{tsa, second} { // any of those that are trusted
		answer, err := sigstore.Timestamp(context.Background(), a.URL, []byte("message"), v, nil)
		must(t, err)
		at, err := v.Timestamped(answer, []byte("message"))
		if err != nil || at.Kind != "timestamp" || at.Time.IsZero() {
			t.Errorf("%+v, %v", at, err)
		}
		for name, c := range map[string]struct{ answer, message []byte }{
			"another message": {answer, []byte("messagf")}, "no message": {answer, nil}, "no answer": {nil, []byte("message")},
			"cut short": {answer[:len(answer)-1], []byte("message")}, "something after it": {append(bytes.Clone(answer), 0), []byte("message")},
		} {
			if _, err := v.Timestamped(c.answer, c.message); !errors.Is(err, fault.Timestamp) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	answer, err := sigstore.Timestamp(context.Background(), tsa.URL, []byte("message"), v, nil)
	must(t, err)
	if _, err := rootsOf(t, second).Timestamped(answer, []byte("message")); !errors.Is(err, fault.Timestamp) {
		t.Errorf("another authority: %v", err)
	}
	s := sigstoretest.New(t)
	if w, err := sigstore.NewVerifier(sigstore.Options{TrustedRoot: s.TrustedRoot(t, true)}); err != nil {
		t.Error(err)
	} else if _, err := w.Timestamped(answer, []byte("message")); !errors.Is(err, fault.Timestamp) {
		t.Errorf("an authority that the root does not name: %v", err)
	}
	// Every bit of an answer counts, or its time is the same.
	good, err := v.Timestamped(answer, []byte("message"))
	must(t, err)
	for i := 0; i < len(answer); i += 7 {
		flipped := bytes.Clone(answer)
		flipped[i] ^= 1 << (i % 8)
		if at, err := v.Timestamped(flipped, []byte("message")); err == nil && !at.Time.Equal(good.Time) {
			t.Errorf("byte %d: another time, %s", i, at)
		}
	}
}

// A Verifier is asked by many at once.
func TestVerifierIsShared(t *testing.T) {
	s := sigstoretest.New(t)
	raw := signedBy(t, s)
	v, err := sigstore.NewVerifier(sigstore.Options{TrustedRoot: s.TrustedRoot(t, true), Identities: []sigstore.Identity{{SAN: someone, Issuer: idIssuer}}})
	must(t, err)
	k := newKey(t)
	bare, err := k.SignPayload(context.Background(), kind, []byte(payload))
	must(t, err)
	public := k.Public()
	asked := s.Asked()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := v.Examine(raw, nil); err != nil {
				t.Error(err)
			}
			if _, err := v.Examine(bare, &public); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if s.Asked() != asked {
		t.Error("verifying asked somebody")
	}
}
