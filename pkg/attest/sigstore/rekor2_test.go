package sigstore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/sigstore"
	"github.com/benchpin/benchpin/pkg/attest/sigstore/sigstoretest"
)

// tiled is a signer who logs with version 2 of Rekor, and the verifier of what he signs.
func tiled(t *testing.T) (*sigstoretest.Sigstore, *sigstore.Keyless, attest.Witness) {
	t.Helper()
	s := sigstoretest.New(t)
	s.Tiles = sigstoretest.NewTiles(t)
	k, err := sigstore.NewKeyless(context.Background(), sigstore.KeylessOptions{Fulcio: s.Fulcio, Rekor: s.Tiles.URL, RekorVersion: 2,
		Token: func() (string, error) { return sigstoretest.Token(someone, idIssuer), nil }, Trust: sigstore.Options{TrustedRoot: s.TrustedRoot(t, true)}})
	must(t, err)
	return s, k, k.Trust().Witness
}

func stampedBy(s *sigstoretest.Sigstore, k attest.Signer, w attest.Witness) *sigstore.Stamped {
	return &sigstore.Stamped{Signer: k, URLs: []string{s.Timestamps.URL}, Verifier: w}
}

func change(t *testing.T, raw []byte, f func(material map[string]any)) []byte {
	t.Helper()
	var b map[string]any
	must(t, json.Unmarshal(raw, &b))
	f(b["verificationMaterial"].(map[string]any))
	out, err := json.Marshal(b)
	must(t, err)
	return out
}

// A log of version 2: its entry is demanded and compared, and the timestamp gives the time.
func TestRekorVersion2(t *testing.T) {
	s, k, w := tiled(t)
	signed := func(payload string) []byte {
		t.Helper()
		raw, err := stampedBy(s, k, w).SignPayload(context.Background(), kind, []byte(payload))
		must(t, err)
		return raw
	}
	good, other := signed(payload), signed(strings.Replace(payload, `"x"`, `"y"`, 1))
	v, err := w.Examine(good, nil)
	if err != nil || len(v.Times) != 1 || v.Times[0].Kind != "timestamp" || !strings.Contains(v.Signer, someone) || s.Tiles.Asked() != 2 {
		t.Fatalf("%+v, %v, %d entries", v, err, s.Tiles.Asked())
	}
	entries := func(raw []byte) any {
		var out any
		change(t, raw, func(m map[string]any) { out = m["tlogEntries"] })
		return out
	}
	for name, c := range map[string]struct {
		class fault.Class
		raw   []byte
	}{
		"no timestamp":         {fault.Identity, change(t, good, func(m map[string]any) { delete(m, "timestampVerificationData") })},
		"no entry":             {fault.LogEntry, change(t, good, func(m map[string]any) { delete(m, "tlogEntries") })},
		"of another statement": {fault.LogEntry, change(t, good, func(m map[string]any) { m["tlogEntries"] = entries(other) })},
		"no proof": {fault.VerificationMaterial, change(t, good, func(m map[string]any) {
			delete(m["tlogEntries"].([]any)[0].(map[string]any), "inclusionProof")
		})},
		"another checkpoint": {fault.LogEntry, change(t, good, func(m map[string]any) {
			p := m["tlogEntries"].([]any)[0].(map[string]any)["inclusionProof"].(map[string]any)
			p["checkpoint"] = entries(other).([]any)[0].(map[string]any)["inclusionProof"].(map[string]any)["checkpoint"]
		})},
		"a time that nobody signed": {fault.Identity, change(t, change(t, good, func(m map[string]any) { delete(m, "timestampVerificationData") }), func(m map[string]any) {
			m["tlogEntries"].([]any)[0].(map[string]any)["integratedTime"] = strconv.FormatInt(time.Now().Unix(), 10)
		})},
	} {
		if _, err := w.Examine(c.raw, nil); !errors.Is(err, c.class) {
			t.Errorf("%s: expected %s, found %v", name, c.class, err)
		}
	}
	// Another log of the same kind is not this one.
	stranger, _, _ := tiled(t)
	stranger.Fulcio, stranger.Timestamps = s.Fulcio, s.Timestamps
	s.Tiles, stranger.Tiles = stranger.Tiles, s.Tiles
	x, err := sigstore.NewVerifier(sigstore.Options{TrustedRoot: s.TrustedRoot(t, true), Identities: []sigstore.Identity{k.Identity}})
	must(t, err)
	if _, err := x.Examine(good, nil); !errors.Is(err, fault.LogEntry) {
		t.Errorf("another log: %v", err)
	}
}

// A log that answers something else leaves nothing that verifies.
func TestRekorVersion2Fails(t *testing.T) {
	s, k, w := tiled(t)
	for name, answer := range map[string]func(*protorekor.TransparencyLogEntry){
		"another log's name": func(e *protorekor.TransparencyLogEntry) { e.LogId.KeyId[0] ^= 1 },
		"another place":      func(e *protorekor.TransparencyLogEntry) { e.LogIndex = 3 },
		"no checkpoint":      func(e *protorekor.TransparencyLogEntry) { e.InclusionProof.Checkpoint.Envelope = "x\n1\n" },
		"another kind":       func(e *protorekor.TransparencyLogEntry) { e.KindVersion.Kind = "dsse" },
		"another version":    func(e *protorekor.TransparencyLogEntry) { e.KindVersion.Version = "0.0.1" },
		"another size":       func(e *protorekor.TransparencyLogEntry) { e.InclusionProof.TreeSize = 2 },
		"another root":       func(e *protorekor.TransparencyLogEntry) { e.InclusionProof.RootHash[0] ^= 1 },
		"another proof":      func(e *protorekor.TransparencyLogEntry) { e.InclusionProof.LogIndex = 1 },
		"a body of its own": func(e *protorekor.TransparencyLogEntry) {
			e.CanonicalizedBody = bytes.Replace(e.CanonicalizedBody, []byte(`"digest":"`), []byte(`"digest":"AAAA`), 1)
		},
		"a body that is empty": func(e *protorekor.TransparencyLogEntry) { e.CanonicalizedBody = []byte("{}") },
	} {
		s.Tiles.Answer = answer
		raw, err := stampedBy(s, k, w).SignPayload(context.Background(), kind, []byte(payload))
		if err == nil {
			_, err = w.Examine(raw, nil)
		}
		if err == nil {
			t.Errorf("%s: it verifies", name)
		}
		s.Tiles.Answer = func(e *protorekor.TransparencyLogEntry) {}
	}
	s.Tiles.Silent = true
	raw, err := stampedBy(s, k, w).SignPayload(context.Background(), kind, []byte(payload))
	if err == nil {
		_, err = w.Examine(raw, nil)
	}
	if err == nil {
		t.Error("a log that answers nothing: it verifies")
	}
}
