package attest_test

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	testresult "github.com/in-toto/attestation/go/predicates/test_result/v0"
	summary "github.com/in-toto/attestation/go/predicates/vsa/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/benchpin/benchpin/pkg/attest"
)

// The statements, read by in-toto's own types, which refuse fields that they do not know, and judged by its own validation.
func TestInTotoReads(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	r := newRun(t, nil)
	dir := newArchive(t, r, k)
	bundles, _ := archiveParts(t, dir)
	v := verify(t, dir, attest.Policy{}, k.Public())
	review, err := attest.SignReview(t.Context(), k, v, attest.Policy{}, nil, "v1.2.3", reviewedAt)
	must(t, err)
	bundles[attest.ReviewType] = review
	refused := verify(t, dir, attest.Policy{Workload: attest.WorkloadPolicy{Names: []string{"x"}}}, k.Public())
	refusal, err := attest.SignRefusal(t.Context(), k, refused, attest.Policy{}, nil, "v1.2.3", reviewedAt)
	must(t, err)

	// read returns the predicate in its own type; strict refuses fields that it does not have.
	read := func(raw []byte, into proto.Message, strict bool) {
		t.Helper()
		verified, err := attest.VerifyBundle(raw, []attest.PublicKey{k.Public()})
		must(t, err)
		payload, err := verified.Statement.Encode()
		must(t, err)
		var s intoto.Statement
		if err := protojson.Unmarshal(payload, &s); err != nil {
			t.Fatalf("statement: %v\n%s", err, payload)
		}
		if err := s.Validate(); err != nil {
			t.Errorf("statement: %v", err)
		}
		if len(s.Subject) != 3 || s.PredicateType != verified.Statement.PredicateType {
			t.Errorf("statement: %v", &s)
		}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: !strict}).Unmarshal(verified.Statement.Predicate, into); err != nil {
			t.Fatalf("%s: %v\n%s", s.PredicateType, err, verified.Statement.Predicate)
		}
	}
	read(bundles[attest.ResultType], &structpb.Struct{}, true)

	var slsa provenance.Provenance
	read(bundles[attest.ProvenanceType], &slsa, true)
	must(t, slsa.Validate())
	// What issue and specification ask for, field by field.
	d, run := slsa.BuildDefinition, slsa.RunDetails
	if d.BuildType != "https://github.com/benchpin/benchpin/datagen/v1" || d.InternalParameters != nil {
		t.Errorf("build type %s, internal parameters %v", d.BuildType, d.InternalParameters)
	}
	recipe, err := d.ExternalParameters.Fields["recipe"].MarshalJSON()
	must(t, err)
	var said, made any
	must(t, json.Unmarshal(recipe, &said))
	must(t, json.Unmarshal(v.Manifest.Header().Recipe, &made))
	if a, b := canonicalJSON(t, said), canonicalJSON(t, made); a != b || len(d.ExternalParameters.Fields) != 1 {
		t.Errorf("external parameters: recipe %s, expected %s and nothing else", a, b)
	}
	for i, m := range r.record.Tool.Modules {
		dep := d.ResolvedDependencies[i]
		if dep.Name != m.Path || !strings.HasPrefix(dep.Uri, "pkg:golang/"+m.Path) || (m.Sum != "") != (len(dep.Digest["dirHash"]) == 64) {
			t.Errorf("dependency %v of the module %+v", dep, m)
		}
	}
	if len(d.ResolvedDependencies) != len(r.record.Tool.Modules) {
		t.Errorf("%d dependencies of %d modules", len(d.ResolvedDependencies), len(r.record.Tool.Modules))
	}
	b := run.Builder
	if b.Id != "https://github.com/benchpin/benchpin" || b.Version["benchpin"] != r.record.Tool.Version || b.Version["go"] != r.record.Tool.Go ||
		len(b.BuilderDependencies) != 1 || "blake3:"+b.BuilderDependencies[0].Digest["blake3"] != r.record.Tool.Binary {
		t.Errorf("builder: %v", b)
	}
	if run.Metadata != nil || len(run.Byproducts) > 0 {
		t.Errorf("what nobody said is filled in: %v", run)
	}

	var test testresult.TestResult
	read(bundles[attest.TestResultType], &test, true)
	if test.Result != "PASSED" || !slices.Equal(test.PassedTests, []string{"au"}) || len(test.Configuration) != 1 || test.Configuration[0].Validate() != nil {
		t.Errorf("test result: %v", &test)
	}

	for want, raw := range map[string][]byte{"PASSED": review, "FAILED": refusal} {
		var vsa summary.VerificationSummary
		// in-toto's type has no verifier.version, which SLSA 1.1 added; fields whose names are URIs are SLSA's place for what is somebody's own.
		read(raw, &vsa, false)
		if vsa.VerificationResult != want || vsa.SlsaVersion != "1.1" || len(vsa.VerifiedLevels) != 1 || strings.HasPrefix(vsa.VerifiedLevels[0], "SLSA_") ||
			vsa.Policy.Uri == "" || vsa.Verifier.Id == "" || !vsa.TimeVerified.AsTime().Equal(reviewedAt) || len(vsa.DependencyLevels) > 0 {
			t.Errorf("verification summary: %v", &vsa)
		}
		for i, in := range vsa.InputAttestations {
			if len(in.Digest["sha256"]) != hex.EncodedLen(32) {
				t.Errorf("input attestation %d: %v", i, in)
			}
		}
	}
}

func canonicalJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	must(t, err)
	return string(b)
}
