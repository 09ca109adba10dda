package attest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/schemas"
)

func subjects(n int) []attest.Subject {
	var all []attest.Subject
	for i := range n {
		all = append(all, attest.NewSubject(fmt.Sprint(i), oci.DigestsOf([]byte{byte(i)})))
	}
	return all
}

// Each limit of statements, bundles and keys at its value and one above.
func TestLimits(t *testing.T) {
	const maxSubjects, maxDigests, maxKeys, maxBundle, maxKeyFile = 16, 8, 64, 4 << 20, 64 << 10
	k := newKey(t, attest.Ed25519)
	encode := func(s []attest.Subject, predicate any) error {
		st, err := attest.NewStatement(s, "t", predicate)
		must(t, err)
		_, err = st.Encode()
		return err
	}
	must(t, encode(subjects(maxSubjects), struct{}{}))
	if err := encode(subjects(maxSubjects+1), struct{}{}); !errors.Is(err, fault.Limit) {
		t.Errorf("subjects: %v", err)
	}
	many := subjects(1)
	for i := range maxDigests - 2 {
		many[0].Digest[fmt.Sprint(i)] = ""
	}
	if err := encode(many, struct{}{}); !errors.Is(err, fault.SubjectDigest) {
		t.Errorf("at the limit of digests it is their kind that is wrong: %v", err)
	}
	many[0].Digest["x"] = ""
	if err := encode(many, struct{}{}); !errors.Is(err, fault.Limit) {
		t.Errorf("digests: %v", err)
	}

	s, err := attest.NewStatement(subjects(1), "t", struct{}{})
	must(t, err)
	raw, err := attest.SignStatement(k, s)
	must(t, err)
	padded := func(n int) []byte { return append(bytes.Clone(raw), bytes.Repeat([]byte(" "), n-len(raw))...) }
	_, err = attest.VerifyBundle(padded(maxBundle), []attest.PublicKey{k.Public()})
	must(t, err)
	if _, err := attest.VerifyBundle(padded(maxBundle+1), []attest.PublicKey{k.Public()}); !errors.Is(err, fault.Limit) {
		t.Errorf("bundle: %v", err)
	}
	keys := make([]attest.PublicKey, maxKeys+1)
	for i := range keys {
		keys[i] = k.Public()
	}
	_, err = attest.VerifyBundle(raw, keys[:maxKeys])
	must(t, err)
	if _, err := attest.VerifyBundle(raw, keys); err == nil {
		t.Error("too many keys were taken")
	}
	pem := k.Public().PEM()
	_, err = attest.ParsePublic(append(bytes.Clone(pem), bytes.Repeat([]byte("\n"), maxKeyFile-len(pem))...))
	must(t, err)
	if _, err := attest.ParsePublic(append(bytes.Clone(pem), bytes.Repeat([]byte("\n"), maxKeyFile-len(pem)+1)...)); !errors.Is(err, attest.ErrKeyFile) {
		t.Errorf("key file: %v", err)
	}
}

// The signed bytes must be DSSE's, as the reference implementation computes them: a bundle whose signature is over these verifies.
func TestSignsPreAuthEncoding(t *testing.T) {
	k := newKey(t, attest.ECDSAP256)
	s, err := attest.NewStatement(subjects(3), "t", map[string]string{"ä": "<&>"})
	must(t, err)
	payload, err := s.Encode()
	must(t, err)
	if !bytes.Equal(dsse.PAE(inToto, payload), pae(inToto, string(payload))) {
		t.Error("the tests' encoding is not DSSE's")
	}
	raw, err := attest.SignStatement(k, s)
	must(t, err)
	var b struct {
		Envelope struct {
			Payload    []byte
			Signatures []struct{ Sig []byte }
		} `json:"dsseEnvelope"`
	}
	must(t, json.Unmarshal(raw, &b))
	if !bytes.Equal(b.Envelope.Payload, payload) || !bytes.Contains(payload, []byte("<&>")) {
		t.Errorf("payload is %s", b.Envelope.Payload)
	}
	public := publicECDSA(t, k.Public())
	sum := sha256.Sum256(dsse.PAE(inToto, payload))
	if !public(sum[:], b.Envelope.Signatures[0].Sig) {
		t.Error("the signature is not over DSSE's encoding")
	}
}

// The bundle of an Ed25519 key is the same bytes every time.
func TestBundleIsDeterministic(t *testing.T) {
	k := seededKey(t, "bundle")
	s, err := attest.NewStatement(subjects(1), "t", struct{}{})
	must(t, err)
	a, err := attest.SignStatement(k, s)
	must(t, err)
	b, err := attest.SignStatement(k, s)
	must(t, err)
	if !bytes.Equal(a, b) || !strings.HasPrefix(string(a), `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":"`) {
		t.Errorf("bundles are\n%s\n%s", a, b)
	}
}

func TestPredicates(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	predicate := func(r run, kind string) map[string]any {
		bundles, _ := archiveParts(t, newArchive(t, r, k))
		raw, there := bundles[kind]
		if !there {
			return nil
		}
		v, err := attest.VerifyBundle(raw, []attest.PublicKey{k.Public()})
		must(t, err)
		if v.Statement.PredicateType != kind {
			t.Errorf("%s holds %s", kind, v.Statement.PredicateType)
		}
		var p map[string]any
		must(t, json.Unmarshal(v.Statement.Predicate, &p))
		return p
	}
	good := newRun(t, nil)
	result := predicate(good, attest.ResultType)
	must(t, resultSchema(t).Validate(result))
	if at(result, "figures", "au", "value") != 97.5 || at(result, "dataset", "root") != good.record.Dataset.Root || at(result, "threshold_met") != true ||
		at(result, "dataset", "bytes") != "300" || at(result, "run", "record") != record.Digest(good.input.Record) {
		t.Errorf("result is %v", result)
	}
	for _, remove := range []string{"run", "tool", "workload", "dataset", "plan", "transcript", "figures"} {
		c := map[string]any{}
		for key, v := range result {
			if key != remove {
				c[key] = v
			}
		}
		if resultSchema(t).Validate(c) == nil {
			t.Errorf("the schema takes a result without %s", remove)
		}
	}
	result["x"] = 1.0
	if resultSchema(t).Validate(result) == nil {
		t.Error("the schema takes a field that results do not have")
	}

	for want, change := range map[string]func(*record.Record){
		"PASSED": func(r *record.Record) {},
		"FAILED": func(r *record.Record) { r.Metrics.AU.Value, r.Metrics.Met = ptr(10.0), ptr(false) },
		"WARNED": func(r *record.Record) {
			r.Metrics.AU = record.Figure{Unit: "%", Class: record.HostOnly, Absent: "no steps"}
			r.Metrics.Met = nil
		},
	} {
		p := predicate(newRun(t, change), attest.TestResultType)
		list := map[string]string{"PASSED": "passedTests", "FAILED": "failedTests", "WARNED": "warnedTests"}[want]
		if p["result"] != want || fmt.Sprint(p[list]) != "[au]" || len(p["configuration"].([]any)) != 1 {
			t.Errorf("expected %s, found %v", want, p)
		}
	}

	p := predicate(good, attest.ProvenanceType)
	modules := at(p, "buildDefinition", "resolvedDependencies").([]any)
	if at(p, "buildDefinition", "externalParameters", "recipe", "seed") != "18446744073709551615" || len(modules) != 2 ||
		at(modules[0], "uri") != "pkg:golang/github.com/blang/semver@v3.5.1%2Bincompatible" ||
		at(modules[1], "digest", "dirHash") != "29840f921a51b5caa1d2cb0661c28b1b5258bdd764100f10c0233fc81aa16992" ||
		at(p, "runDetails", "builder", "version", "benchpin") != "v0.1.0" {
		t.Errorf("provenance is %v", p)
	}
	// Data that nobody generated has no provenance, and needs none.
	taken := newRunOver(t, manifest.Meta{}, func(r *record.Record) { r.Dataset.Generated, r.Dataset.Seed = false, "" })
	if p := predicate(taken, attest.ProvenanceType); p != nil {
		t.Errorf("data of unknown origin has provenance %v", p)
	}
	if v := verify(t, newArchive(t, taken, k), attest.Policy{}, k.Public()); !v.OK() {
		t.Error(describe(v))
	}
	bad := newRun(t, func(r *record.Record) { r.Tool.Modules[0].Sum = "h2:x" })
	if _, err := attest.WriteArchive(context.Background(), filepath.Join(t.TempDir(), "a"), bad.input, k); err == nil {
		t.Error("a module digest of unknown kind was attested")
	}
}

func at(v any, path ...string) any {
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

func resultSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	raw, err := schemas.FS.ReadFile(attest.ResultSchemaFile)
	must(t, err)
	s, err := jsonschema.CompileString(attest.ResultSchemaFile, string(raw))
	must(t, err)
	return s
}

func FuzzBundle(f *testing.F) {
	k := seededKey(f, "fuzz")
	s, err := attest.NewStatement(subjects(3), "t", struct{}{})
	must(f, err)
	good, err := attest.SignStatement(k, s)
	must(f, err)
	f.Add(good)
	paths, err := filepath.Glob("testdata/vectors/*.json")
	must(f, err)
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		must(f, err)
		var v vector
		must(f, json.Unmarshal(raw, &v))
		f.Add([]byte(v.Bundle))
	}
	payload, err := s.Encode()
	must(f, err)
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := attest.VerifyBundle(raw, []attest.PublicKey{k.Public()})
		if err == nil {
			// Nobody but the holder of the key can make another statement.
			again, err := v.Statement.Encode()
			if err != nil || !bytes.Equal(again, payload) {
				t.Fatalf("accepted %s", again)
			}
			return
		}
		if known := (*fault.Fault)(nil); !errors.As(err, &known) {
			t.Fatalf("an error without a class: %v", err)
		}
	})
}

func FuzzStatement(f *testing.F) {
	s, err := attest.NewStatement(subjects(3), "t", map[string]any{"a": []any{1, nil}})
	must(f, err)
	good, err := s.Encode()
	must(f, err)
	f.Add(good)
	f.Add([]byte(`{"_type":"https://in-toto.io/Statement/v1","subject":[],"predicateType":"t","predicate":{}}`))
	paths, err := filepath.Glob("testdata/vectors/*.json")
	must(f, err)
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		must(f, err)
		var b struct {
			DSSEEnvelope struct{ Payload []byte }
		}
		if json.Unmarshal([]byte(decodeVector[vector](f, raw).Bundle), &b) == nil {
			f.Add(b.DSSEEnvelope.Payload)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := attest.ParseStatement(raw)
		if err == nil {
			again, err := s.Encode()
			if err != nil {
				t.Fatalf("%s is read and cannot be written: %v", raw, err)
			}
			s2, err := attest.ParseStatement(again)
			if err != nil || len(s2.CheckSubjects(s.Subject)) > 0 || s2.PredicateType != s.PredicateType {
				t.Fatalf("%s became %s: %v", raw, again, err)
			}
			return
		}
		if known := (*fault.Fault)(nil); !errors.As(err, &known) {
			t.Fatalf("an error without a class: %v", err)
		}
	})
}
