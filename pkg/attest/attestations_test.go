package attest_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/record"
)

// resigned is the bundle of a statement of an archive, changed and signed by k.
func resigned(t testing.TB, f forgery, by, k *attest.PrivateKey, change func(*attest.Statement)) []byte {
	t.Helper()
	verified, err := attest.VerifyBundle(f.bundles[0].raw, []attest.PublicKey{by.Public()})
	must(t, err)
	if change != nil {
		change(verified.Statement)
	}
	raw, err := attest.SignStatement(k, verified.Statement)
	must(t, err)
	return raw
}

// What anybody may attach, who has no accepted key, is listed, never counts, and spoils nothing.
func TestBundlesThatDoNotCount(t *testing.T) {
	k, stranger := newKey(t, attest.ECDSAP256), newKey(t, attest.ECDSAP256)
	run := newRun(t, nil)
	dir := newArchive(t, run, k)
	good := takeApart(t, dir)
	elsewhere := takeApart(t, newArchive(t, newRun(t, func(r *record.Record) { r.Tool.Version = "v0.2.0" }), k))
	hint := k.Public().Hint()
	kind := good.bundles[0].announced
	broken := []byte(strings.Replace(string(good.bundles[0].raw), `"sig":"`, `"sig":"AAAA`, 1))
	other := resigned(t, good, k, k, func(s *attest.Statement) { s.PredicateType = "https://example.com/review/v1" })
	for name, c := range map[string]struct {
		announced string
		raw       []byte
		status    attest.AttestationStatus
		key       string
		detail    string
	}{
		"a stranger's":                        {kind, resigned(t, good, k, stranger, nil), attest.NotCounted, "", "not among the keys given"},
		"a stranger's lie":                    {kind, resigned(t, good, k, stranger, func(s *attest.Statement) { s.Predicate = json.RawMessage(`{}`) }), attest.NotCounted, "", "not among"},
		"a stranger under our name":           {kind, []byte(strings.Replace(string(resigned(t, good, k, stranger, nil)), stranger.Public().Hint(), hint, 1)), attest.NotCounted, "", "not a signature"},
		"damaged":                             {kind, broken, attest.NotCounted, "", ""},
		"nothing":                             {kind, []byte("{}"), attest.NotCounted, "", "required"},
		"not JSON":                            {kind, []byte("\x00"), attest.NotCounted, "", ""},
		"replayed under another announcement": {"https://example.com/again", good.bundles[0].raw, attest.NotCounted, hint, "announces"},
		"replayed from another archive":       {elsewhere.bundles[0].announced, elsewhere.bundles[0].raw, attest.NotCounted, hint, "expected"},
		"of another type":                     {"https://example.com/review/v1", other, attest.Other, hint, "no attestation of this archive"},
		"again":                               {kind, resigned(t, good, k, k, nil), attest.Holds, hint, ""},
		"a stranger's of a type that nobody knows": {"https://example.com/x", resigned(t, good, k, stranger, func(s *attest.Statement) { s.PredicateType += "x" }), attest.NotCounted, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := forgery{layers: good.layers, bundles: append(good.bundles[:len(good.bundles):len(good.bundles)], forgedBundle{c.announced, c.raw})}
			dir := f.putTogether(t, k)
			v := verify(t, dir, attest.Policy{}, k.Public())
			if !v.OK() {
				t.Errorf("it spoils the archive:\n%s", describe(v))
			}
			found := 0
			for _, a := range v.Attestations {
				if a.Status == c.status && a.Key == c.key && strings.Contains(a.Detail, c.detail) && (a.Detail == "") == (c.status == attest.Holds) {
					found++
				}
			}
			if len(v.Attestations) != len(good.bundles)+1 || found == 0 {
				t.Errorf("expected one more that is %q, found %+v", c.status, v.Attestations)
			}
			// Whoever accepts only another key finds nothing that holds.
			if v := verify(t, dir, attest.Policy{}, newKey(t, attest.Ed25519).Public()); v.OK() {
				t.Error("it holds under a key that signed nothing")
			}
		})
	}
}

// The holder of an accepted key who contradicts the archive makes it fail, whatever else holds.
func TestAnAcceptedKeyContradicts(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	good := takeApart(t, newArchive(t, newRun(t, nil), k))
	for name, c := range map[string]struct {
		change func(*attest.Statement)
		check  string
		class  fault.Class
	}{
		"another figure": {func(s *attest.Statement) { s.Predicate = json.RawMessage(`{"n":1}`) }, "predicates", fault.PredicateMismatch},
		"another record": {func(s *attest.Statement) { s.Subject[1] = attest.NewSubject(attest.SubjectRecord, oci.DigestsOf(nil)) }, "subjects", fault.SubjectDigest},
		"a lying blake3": {func(s *attest.Statement) { s.Subject[0].Digest["blake3"] = strings.Repeat("0", 64) }, "subjects", fault.SubjectDigest},
	} {
		f := forgery{layers: good.layers, bundles: append(good.bundles[:len(good.bundles):len(good.bundles)],
			forgedBundle{good.bundles[0].announced, resigned(t, good, k, k, c.change)})}
		v := verify(t, f.putTogether(t, k), attest.Policy{}, k.Public())
		t.Log(name)
		wantFault(t, v, c.check, c.class, "bundle")
	}
}

// A second signer may attest the same. Either key is enough, and those that are accepted are named.
func TestTwoSigners(t *testing.T) {
	a, b := newKey(t, attest.Ed25519), newKey(t, attest.ECDSAP256)
	dir := newArchive(t, newRun(t, nil), a)
	f := takeApart(t, dir)
	for _, one := range f.bundles {
		only := forgery{bundles: []forgedBundle{one}}
		must(t, oci.Attach(context.Background(), dir, one.announced, resigned(t, only, a, b, nil)))
	}
	for _, c := range []struct {
		keys []attest.PublicKey
		hold int
	}{{[]attest.PublicKey{a.Public(), b.Public()}, 6}, {[]attest.PublicKey{a.Public()}, 3}, {[]attest.PublicKey{b.Public()}, 3}} {
		v := verify(t, dir, attest.Policy{}, c.keys...)
		hold := 0
		for _, one := range v.Attestations {
			if one.Status == attest.Holds {
				hold++
			}
		}
		if !v.OK() || len(v.Keys) != len(c.keys) || hold != c.hold || len(v.Attestations) != 6 {
			t.Errorf("%d keys, %d hold:\n%s", len(v.Keys), hold, describe(v))
		}
	}
}

// A required predicate that only a stranger attests is missing, and the page says why.
func TestOnePredicateByAStranger(t *testing.T) {
	a, b := newKey(t, attest.Ed25519), newKey(t, attest.ECDSAP256)
	f := takeApart(t, newArchive(t, newRun(t, nil), a))
	f.bundles[1].raw = resigned(t, forgery{bundles: f.bundles[1:]}, a, b, nil)
	v := verify(t, f.putTogether(t, a), attest.Policy{}, a.Public())
	wantFault(t, v, "signatures", fault.UnknownKey, "bundle")
	wantFault(t, v, "predicates", fault.PredicateMissing, f.bundles[1].announced)
}
