package attest_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/sigstore"
	"github.com/benchpin/benchpin/pkg/attest/sigstore/sigstoretest"
	"github.com/benchpin/benchpin/pkg/record"
)

func timestampVerifier(t testing.TB, a *sigstoretest.Timestamps) *sigstore.Verifier {
	t.Helper()
	v, err := sigstore.NewVerifier(sigstore.Options{TimestampRoots: a.PEM()})
	must(t, err)
	return v
}

func stamped(t testing.TB, k *attest.PrivateKey, a *sigstoretest.Timestamps) *sigstore.Stamped {
	t.Helper()
	return &sigstore.Stamped{Signer: k, URLs: []string{a.URL}, Verifier: timestampVerifier(t, a)}
}

// stampedArchive is an archive of a run whose attestations an authority saw.
func stampedArchive(t testing.TB, s attest.Signer, change func(*record.Record)) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "archive")
	_, err := attest.WriteArchive(context.Background(), dir, newRun(t, change).input, s)
	must(t, err)
	return dir
}

func checkNamed(t testing.TB, v *attest.Verification, name string) attest.Check {
	t.Helper()
	for _, c := range v.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q:\n%s", name, describe(v))
	return attest.Check{}
}

// A plain key with a timestamp: the time of signing is witnessed, for who trusts the authority, and nobody else accepts the bundle.
func TestTimestamps(t *testing.T) {
	tsa := sigstoretest.NewTimestamps(t)
	for _, kind := range kinds {
		k := newKey(t, kind)
		before := time.Now().Add(-time.Second)
		dir := stampedArchive(t, stamped(t, k, tsa), nil)
		v := verify(t, dir, attest.Policy{Witness: timestampVerifier(t, tsa), RequireTime: true}, k.Public())
		c := checkNamed(t, v, "signing-time")
		if !v.OK() || c.Class != string(record.Witnessed) || !strings.Contains(c.Evidence, "CN=sigstore") {
			t.Errorf("%s: %+v\n%s", kind, c, describe(v))
		}
		for _, one := range v.Attestations {
			if len(one.Times) != 1 || one.Times[0].Kind != "timestamp" || one.Times[0].Time.Before(before) || one.Times[0].Time.After(time.Now().Add(time.Second)) {
				t.Errorf("%s: times %v", kind, one.Times)
			}
		}
		// Who was told of no authority refuses what nobody judged.
		wantFault(t, verify(t, dir, attest.Policy{}, k.Public()), "signatures", fault.VerificationMaterial, "bundle")
		// So does who trusts another one, of the same name.
		wantFault(t, verify(t, dir, attest.Policy{Witness: timestampVerifier(t, sigstoretest.NewTimestamps(t))}, k.Public()), "signatures", fault.Timestamp, "bundle")
		// A key limited to a span of time is accepted when it was used in it, and only then.
		w := timestampVerifier(t, tsa)
		for name, c := range map[string]struct {
			from, until time.Time
			good        bool
		}{
			"within": {before, time.Now().Add(time.Hour), true}, "too early": {time.Now().Add(time.Hour), time.Time{}, false},
			"too late": {time.Time{}, before, false},
		} {
			v := verify(t, dir, attest.Policy{Witness: w}, k.Public().WithValidity(c.from, c.until))
			if v.OK() != c.good {
				t.Errorf("%s, %s:\n%s", kind, name, describe(v))
			} else if !c.good {
				wantFault(t, v, "signatures", fault.KeyValidity, "bundle")
			}
		}
	}
}

// Without timestamps nothing is witnessed: that is said, and refused where a trusted time is demanded.
func TestNoTimestamps(t *testing.T) {
	tsa := sigstoretest.NewTimestamps(t)
	k := newKey(t, attest.Ed25519)
	dir := newArchive(t, newRun(t, nil), k)
	v := verify(t, dir, attest.Policy{Witness: timestampVerifier(t, tsa)}, k.Public())
	if c := checkNamed(t, v, "signing-time"); !v.OK() || c.Class != string(record.HostOnly) {
		t.Errorf("%+v\n%s", c, describe(v))
	}
	wantFault(t, verify(t, dir, attest.Policy{Witness: timestampVerifier(t, tsa), RequireTime: true}, k.Public()), "signing-time", fault.Policy, "bundle")
	wantFault(t, verify(t, dir, attest.Policy{RequireTime: true}, k.Public()), "signing-time", fault.Policy, "bundle")
	if tsa.Asked() != 0 {
		t.Errorf("the authority was asked %d times", tsa.Asked())
	}
	// With no key, timestamps let nobody in.
	if _, err := attest.VerifyArchive(context.Background(), dir, nil, attest.Policy{Witness: timestampVerifier(t, tsa)}); !errors.Is(err, attest.ErrNoKey) {
		t.Errorf("no key: %v", err)
	}
}

// What cannot be: signed before the run ended, or began.
func TestTimestampBeforeTheRun(t *testing.T) {
	tsa := sigstoretest.NewTimestamps(t)
	k := newKey(t, attest.Ed25519)
	for name, change := range map[string]func(*record.Record){
		"before its end": func(r *record.Record) { r.Finished = time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano) },
		"before its start": func(r *record.Record) {
			r.Started = time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
			r.Finished = time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339Nano)
		},
	} {
		input := newRun(t, change).input
		if _, err := attest.WriteArchive(context.Background(), filepath.Join(t.TempDir(), "a"), input, stamped(t, k, tsa)); !errors.Is(err, fault.SigningTime) {
			t.Errorf("%s: such an archive was made: %v", name, err)
		}
		// Somebody else may make it all the same.
		dir := stampedArchive(t, unverified{stamped(t, k, tsa)}, change)
		v := verify(t, dir, attest.Policy{Witness: timestampVerifier(t, tsa)}, k.Public())
		wantFault(t, v, "signing-time", fault.SigningTime, "bundle")
		if v.Attestations[0].Status != attest.Refused {
			t.Errorf("%s: %+v", name, v.Attestations[0])
		}
	}
	// Authorities give whole seconds, so that one may seem to be a moment early.
	dir := stampedArchive(t, stamped(t, k, tsa), func(r *record.Record) { r.Finished = time.Now().UTC().Format(time.RFC3339Nano) })
	if v := verify(t, dir, attest.Policy{Witness: timestampVerifier(t, tsa)}, k.Public()); !v.OK() {
		t.Error(describe(v))
	}
}

// unverified signs as another signer does, and has its bundles judged by the key alone, without what was added.
type unverified struct{ attest.Signer }

func (u unverified) Trust() attest.Trust {
	return attest.Trust{Keys: u.Signer.Trust().Keys, Witness: blind{}}
}

// blind takes everything that third parties add for nothing.
type blind struct{}

func (blind) Identifies() bool { return false }

func (blind) Timestamped([]byte, []byte) (attest.TrustedTime, error) {
	return attest.TrustedTime{}, nil
}

func (blind) Examine([]byte, *attest.PublicKey) (attest.Testimony, error) {
	return attest.Testimony{}, nil
}

// material changes the verification material of a bundle.
func material(t testing.TB, raw []byte, change func(map[string]any)) []byte {
	t.Helper()
	var b map[string]any
	must(t, json.Unmarshal(raw, &b))
	change(b["verificationMaterial"].(map[string]any))
	out, err := json.Marshal(b)
	must(t, err)
	return out
}

// Timestamps of other signatures, damaged ones, and lists that stand for nothing are refused, each by its class.
func TestForgedTimestamps(t *testing.T) {
	tsa := sigstoretest.NewTimestamps(t)
	k := newKey(t, attest.Ed25519)
	bundles, _ := archiveParts(t, stampedArchive(t, stamped(t, k, tsa), nil))
	good, other := bundles[attest.ResultType], bundles[attest.TestResultType]
	var otherMaterial map[string]any
	material(t, other, func(m map[string]any) { otherMaterial = m })
	const data = "timestampVerificationData"
	list := func(m map[string]any) []any { return m[data].(map[string]any)["rfc3161Timestamps"].([]any) }
	archive := takeApart(t, newArchive(t, newRun(t, nil), k))
	for name, c := range map[string]struct {
		class  fault.Class
		change func(map[string]any)
	}{
		"of another signature": {fault.Timestamp, func(m map[string]any) { m[data] = otherMaterial[data] }},
		"a second, of another signature": {fault.Timestamp, func(m map[string]any) {
			m[data] = map[string]any{"rfc3161Timestamps": append(list(m), list(otherMaterial)...)}
		}},
		"the same twice": {fault.Timestamp, func(m map[string]any) { m[data] = map[string]any{"rfc3161Timestamps": append(list(m), list(m)...)} }},
		"no timestamp":   {fault.Timestamp, func(m map[string]any) { list(m)[0] = map[string]any{"signedTimestamp": "AAAA"} }},
		"loose base64":   {fault.Base64, func(m map[string]any) { list(m)[0] = map[string]any{"signedTimestamp": "AAA"} }},
		"an empty list":  {fault.VerificationMaterial, func(m map[string]any) { m[data] = map[string]any{"rfc3161Timestamps": []any{}} }},
		"nothing":        {fault.VerificationMaterial, func(m map[string]any) { m[data] = map[string]any{} }},
		"too many": {fault.Limit, func(m map[string]any) {
			all := list(m)
			for len(all) < 9 {
				all = append(all, all[0])
			}
			m[data] = map[string]any{"rfc3161Timestamps": all}
		}},
		"an unknown field":       {fault.VerificationMaterial, func(m map[string]any) { m["x"] = 1 }},
		"a certificate too":      {fault.VerificationMaterial, func(m map[string]any) { m["certificate"] = map[string]any{"rawBytes": "AAAA"} }},
		"a certificate":          {fault.Identity, func(m map[string]any) { delete(m, "publicKey"); m["certificate"] = map[string]any{"rawBytes": "AAAA"} }},
		"nobody":                 {fault.VerificationMaterial, func(m map[string]any) { delete(m, "publicKey") }},
		"a log entry of nothing": {fault.VerificationMaterial, func(m map[string]any) { m["tlogEntries"] = []any{map[string]any{}} }},
		"no log entries":         {fault.VerificationMaterial, func(m map[string]any) { m["tlogEntries"] = []any{} }},
	} {
		f := forgery{layers: archive.layers, bundles: []forgedBundle{{attest.ResultType, material(t, good, c.change)}}}
		v := verify(t, f.putTogether(t, k), attest.Policy{Witness: timestampVerifier(t, tsa)}, k.Public())
		t.Log(name)
		wantFault(t, v, "signatures", c.class, "bundle")
	}
}

// An authority that is not there, or answers something else, leaves no archive behind.
func TestTimestampAuthorityFails(t *testing.T) {
	tsa, other := sigstoretest.NewTimestamps(t), sigstoretest.NewTimestamps(t)
	k := newKey(t, attest.Ed25519)
	var old []byte
	tsa.Answer = func(reply []byte) []byte { old = reply; return reply }
	stampedArchive(t, stamped(t, k, tsa), nil)
	for name, c := range map[string]struct {
		answer func([]byte) []byte
		signer *sigstore.Stamped
	}{
		"an old answer":     {func([]byte) []byte { return old }, stamped(t, k, tsa)},
		"no answer":         {func([]byte) []byte { return nil }, stamped(t, k, tsa)},
		"a long answer":     {func([]byte) []byte { return make([]byte, 1<<20+1) }, stamped(t, k, tsa)},
		"another authority": {nil, &sigstore.Stamped{Signer: k, URLs: []string{tsa.URL}, Verifier: timestampVerifier(t, other)}},
		"nobody there":      {nil, &sigstore.Stamped{Signer: k, URLs: []string{"http://127.0.0.1:1"}, Verifier: timestampVerifier(t, tsa)}},
		"no such page":      {nil, &sigstore.Stamped{Signer: k, URLs: []string{"http://" + strings.TrimPrefix(tsa.URL, "http://") + "\x7f"}, Verifier: timestampVerifier(t, tsa)}},
		"nobody trusts it":  {nil, &sigstore.Stamped{Signer: k, URLs: []string{tsa.URL}}},
	} {
		tsa.Answer = c.answer
		parent := t.TempDir()
		if _, err := attest.WriteArchive(context.Background(), filepath.Join(parent, "a"), newRun(t, nil).input, c.signer); err == nil {
			t.Errorf("%s: an archive was made", name)
		}
		if left, _ := filepath.Glob(filepath.Join(parent, "*")); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}
