package attest_test

import (
	"encoding/json"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/attest/sigstore"
	"github.com/benchpin/benchpin/pkg/attest/sigstore/sigstoretest"
)

// A statement in the form of another program, which knows the archive's sha256 alone, is listed under whoever signed it, by key or by
// certificate, with a timestamp or without; under nobody who is not accepted.
func TestForeignStatements(t *testing.T) {
	s := sigstoretest.New(t)
	author, k := newKey(t, attest.Ed25519), newKey(t, attest.ECDSAP256)
	w := identityVerifier(t, s, true, sigstore.Identity{SAN: someone, Issuer: idIssuer})
	stranger := identityVerifier(t, s, true, sigstore.Identity{SAN: "other@example.com", Issuer: idIssuer})
	const kind = "https://example.com/scan"
	for name, c := range map[string]struct {
		by    attest.Signer
		times int
	}{
		"a key":                     {k, 0},
		"a key and a timestamp":     {&sigstore.Stamped{Signer: k, URLs: []string{s.Timestamps.URL}, Verifier: w}, 1},
		"an identity":               {keyless(t, s, true), 1},
		"an identity and timestamp": {&sigstore.Stamped{Signer: keyless(t, s, true), URLs: []string{s.Timestamps.URL}, Verifier: w}, 2},
	} {
		dir := newArchive(t, newRun(t, nil), author)
		v := verify(t, dir, attest.Policy{}, author.Public())
		payload, err := json.Marshal(map[string]any{"_type": "https://in-toto.io/Statement/v0.1", "predicateType": kind, "predicate": map[string]any{},
			"subject": []any{map[string]any{"name": "x", "digest": map[string]string{"sha256": v.Archive.Hex()}}}})
		must(t, err)
		raw, err := c.by.SignPayload(t.Context(), "application/vnd.in-toto+json", payload)
		must(t, err)
		must(t, oci.Attach(t.Context(), dir, kind, raw))
		for who, p := range map[string]attest.Policy{"accepted": {Witness: w}, "not accepted": {Witness: stranger}, "nobody trusted": {}} {
			keys := []attest.PublicKey{author.Public()}
			if who == "accepted" {
				keys = append(keys, k.Public())
			}
			v := verify(t, dir, p, keys...)
			if !v.OK() {
				t.Fatalf("%s, %s: the archive fails:\n%s", name, who, describe(v))
			}
			for _, a := range v.Attestations {
				if a.PredicateType != kind {
					continue
				}
				if want := map[bool]attest.AttestationStatus{true: attest.Other, false: attest.NotCounted}[who == "accepted"]; a.Status != want ||
					(who == "accepted" && len(a.Times) != c.times) || (a.Key == "") != (who != "accepted") {
					t.Errorf("%s, %s: %+v", name, who, a)
				}
			}
		}
	}
}
