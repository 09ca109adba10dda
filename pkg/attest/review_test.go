package attest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/schemas"
)

var reviewedAt = time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)

// attach signs a statement about an archive and attaches it.
func attachStatement(t *testing.T, dir string, v *attest.Verification, k *attest.PrivateKey, kind string, predicate any) {
	t.Helper()
	s, err := attest.NewStatement(subjectsIn(t, v, k, dir), kind, predicate)
	must(t, err)
	raw, err := attest.SignStatement(k, s)
	must(t, err)
	must(t, oci.Attach(t.Context(), dir, kind, raw))
}

// subjectsIn are the subjects of a statement of this archive, taken from a review of it.
func subjectsIn(t *testing.T, v *attest.Verification, k *attest.PrivateKey, dir string) []attest.Subject {
	t.Helper()
	raw, err := attest.SignReview(t.Context(), k, v, attest.Policy{}, nil, "test", reviewedAt)
	must(t, err)
	verified, err := attest.VerifyBundle(raw, []attest.PublicKey{k.Public()})
	must(t, err)
	return verified.Statement.Subject
}

func assurance(v *attest.Verification) attest.Assurance {
	level, _ := v.Assurance()
	return level
}

// The level of assurance follows from which keys signed what, and from nothing that is written in it.
func TestAssurance(t *testing.T) {
	host, judge, lab := newKey(t, attest.Ed25519), newKey(t, attest.ECDSAP256), newKey(t, attest.Ed25519)
	r := newRun(t, nil)
	dir := newArchive(t, r, host)
	all := []attest.PublicKey{host.Public(), judge.Public(), lab.Public()}
	check := func(what string, want attest.Assurance, p attest.Policy, keys ...attest.PublicKey) *attest.Verification {
		t.Helper()
		v := verify(t, dir, p, keys...)
		if level, because := v.Assurance(); level != want || (level == "") != (because == "") {
			t.Errorf("%s: expected %q, found %q (%s)\n%s", what, want, level, because, describe(v))
		}
		return v
	}
	v := check("the result alone", attest.SelfAttested, attest.Policy{}, all...)
	check("no accepted key", attest.NoAssurance, attest.Policy{}, judge.Public())

	// The holder of the only key reviews and replays himself: nothing is gained.
	own, err := attest.SignReview(t.Context(), host, v, attest.Policy{}, all, "test", reviewedAt)
	must(t, err)
	must(t, oci.Attach(t.Context(), dir, attest.ReviewType, own))
	replay := attest.ReplayPredicate{
		Original: attest.ReplayedRun{Run: r.record.ID, Record: oci.DigestsOf(v.RecordBytes).Blake3Digest().String()},
		Replay: attest.ReplayRun{Run: "20261201T141500Z-3f9c2b", Started: r.record.Started, Finished: r.record.Finished, Record: hexDigest("8"),
			Archive: "sha256:" + strings.Repeat("9", 64)},
		Tool: attest.NewReplayTool(r.record.Tool), Tolerance: 0.05, Level: attest.LevelResult, Items: []attest.ReplayItem{},
	}
	attachStatement(t, dir, v, host, attest.ReplayType, replay)
	check("one key for everything", attest.SelfAttested, attest.Policy{}, all...)

	// Another key verified it: for those who accept that key, and for them only.
	reviewed, err := attest.SignReview(t.Context(), judge, v, attest.Policy{}, all, "test", reviewedAt)
	must(t, err)
	must(t, oci.Attach(t.Context(), dir, attest.ReviewType, reviewed))
	check("reviewed", attest.ThirdParty, attest.Policy{}, all...)
	check("reviewed, by a key that is not accepted", attest.SelfAttested, attest.Policy{}, host.Public())
	must(t, check("a review is demanded", attest.ThirdParty, attest.Policy{Predicates: []string{attest.ReviewType}, Signers: 2}, all...).Err())
	if v := check("more reviews are demanded", attest.NoAssurance, attest.Policy{Predicates: []string{attest.ReviewType}, Signers: 3}, all...); v.OK() {
		t.Error("two reviewers count for three")
	}

	// Another key replayed it: short of the result, and with it.
	short := replay
	short.Level = attest.LevelSchedule
	attachStatement(t, dir, v, lab, attest.ReplayType, short)
	check("schedule replayed", attest.ThirdParty, attest.Policy{}, all...)
	unverified := replay
	unverified.Unverified = true
	attachStatement(t, dir, v, lab, attest.ReplayType, unverified)
	check("replayed unverified", attest.ThirdParty, attest.Policy{}, all...)
	attachStatement(t, dir, v, lab, attest.ReplayType, replay)
	check("replayed", attest.Reproduced, attest.Policy{}, all...)
	check("replayed, by a key that is not accepted", attest.ThirdParty, attest.Policy{}, host.Public(), judge.Public())
}

// A second signer of the result is another party too.
func TestAssuranceCountersigned(t *testing.T) {
	host, judge := newKey(t, attest.Ed25519), newKey(t, attest.ECDSAP256)
	dir := newArchive(t, newRun(t, nil), host)
	_, err := attest.AttestArchive(t.Context(), dir, judge, nil)
	must(t, err)
	if v := verify(t, dir, attest.Policy{Signers: 2}, host.Public(), judge.Public()); !v.OK() || assurance(v) != attest.ThirdParty {
		t.Errorf("found %q\n%s", assurance(v), describe(v))
	}
	if v := verify(t, dir, attest.Policy{}, judge.Public()); !v.OK() || assurance(v) != attest.SelfAttested {
		t.Errorf("found %q\n%s", assurance(v), describe(v))
	}
}

// A review holds the policy that was applied, whole, so that anybody can apply it again; and it is what its schema says.
func TestReview(t *testing.T) {
	host, judge := newKey(t, attest.Ed25519), newKey(t, attest.ECDSAP256)
	r := newRun(t, nil)
	dir := newArchive(t, r, host)
	p := attest.Policy{Signers: 1, Predicates: []string{attest.ResultType}, DataRoots: []string{r.record.Dataset.Root}, Verification: attest.VerifiedAll,
		Figures: map[string]attest.Bounds{"au": {Minimum: ptr(90.0)}}, MaximumAge: 10 * 365 * 24 * time.Hour, RequireThresholds: true, AllowUnavailable: true,
		Tool:     attest.ToolPolicy{Versions: []string{"v0.1.0"}, Minimum: "v0.1.0", Commits: []string{r.record.Tool.Commit}, Binaries: []string{r.record.Tool.Binary}, Unmodified: true},
		Workload: attest.WorkloadPolicy{Names: []string{"tiny"}, Digests: []string{r.record.Workload.Digest}}}
	judged := p
	judged.At = reviewedAt
	v := verify(t, dir, judged, host.Public())
	judged.RequireTime, p.RequireTime = true, true // to be written, whatever it would have found
	raw, err := attest.SignReview(t.Context(), judge, v, judged, []attest.PublicKey{host.Public()}, "v1.2.3", reviewedAt)
	must(t, err)
	verified, err := attest.VerifyBundle(raw, []attest.PublicKey{judge.Public()})
	must(t, err)
	text, err := schemas.FS.ReadFile(attest.ReviewSchemaFile)
	must(t, err)
	compiler := jsonschema.NewCompiler()
	must(t, compiler.AddResource(attest.ReviewSchemaFile, bytes.NewReader(text)))
	schema, err := compiler.Compile(attest.ReviewSchemaFile)
	must(t, err)
	var doc any
	must(t, json.Unmarshal(verified.Statement.Predicate, &doc))
	if err := schema.Validate(doc); err != nil {
		t.Errorf("%#v\n%s", err, verified.Statement.Predicate)
	}
	var review attest.Review
	must(t, json.Unmarshal(verified.Statement.Predicate, &review))
	if len(review.InputAttestations) != 3 || review.TimeVerified != "2026-12-01T08:00:00Z" || review.Verifier.Version["benchpin"] != "v1.2.3" {
		t.Errorf("found %+v", review)
	}
	content, err := base64.StdEncoding.DecodeString(review.Policy.Content)
	must(t, err)
	again, err := attest.ParsePolicy("again.yaml", content)
	must(t, err)
	a, err := json.Marshal(again.Policy)
	must(t, err)
	b, err := json.Marshal(p)
	must(t, err)
	if !bytes.Equal(a, b) || len(again.Keys) != 1 || again.Keys[0].Hint() != host.Public().Hint() {
		t.Errorf("the policy in the review is\n%s, expected\n%s", a, b)
	}
	// None is signed of an archive that failed.
	failed := verify(t, dir, attest.Policy{Workload: attest.WorkloadPolicy{Names: []string{"x"}}}, host.Public())
	if _, err := attest.SignReview(t.Context(), judge, failed, attest.Policy{}, nil, "", reviewedAt); !errors.Is(err, attest.ErrNotPassed) {
		t.Errorf("found %v", err)
	}
}

// A review of an archive that failed says so, and which checks failed and how; it is listed and counts for nothing.
func TestReviewFailed(t *testing.T) {
	host, judge := newKey(t, attest.Ed25519), newKey(t, attest.ECDSAP256)
	dir := newArchive(t, newRun(t, nil), host)
	demand := attest.Policy{Workload: attest.WorkloadPolicy{Names: []string{"x"}}}
	all := []attest.PublicKey{host.Public(), judge.Public()}
	good, failed := verify(t, dir, attest.Policy{}, all...), verify(t, dir, demand, host.Public())
	if _, err := attest.SignRefusal(t.Context(), judge, good, attest.Policy{}, all, "test", reviewedAt); !errors.Is(err, attest.ErrPassed) {
		t.Errorf("of an archive that verified: %v", err)
	}
	raw, err := attest.SignRefusal(t.Context(), judge, failed, demand, all, "test", reviewedAt)
	must(t, err)
	verified, err := attest.VerifyBundle(raw, []attest.PublicKey{judge.Public()})
	must(t, err)
	text, err := schemas.FS.ReadFile(attest.ReviewSchemaFile)
	must(t, err)
	schema, err := jsonschema.CompileString(attest.ReviewSchemaFile, string(text))
	must(t, err)
	var doc map[string]any
	must(t, json.Unmarshal(verified.Statement.Predicate, &doc))
	if err := schema.Validate(doc); err != nil {
		t.Errorf("%#v\n%s", err, verified.Statement.Predicate)
	}
	for _, change := range []func(){
		func() { doc["verifiedLevels"] = []any{"BENCHPIN_VERIFIED"} },
		func() { doc["verificationResult"], doc["verifiedLevels"] = "PASSED", []any{"BENCHPIN_VERIFIED"} },
	} {
		if change(); schema.Validate(doc) == nil {
			t.Errorf("the schema takes %v", doc)
		}
	}
	must(t, oci.Attach(t.Context(), dir, attest.ReviewType, raw))
	v := verify(t, dir, attest.Policy{}, all...)
	if !v.OK() || assurance(v) != attest.SelfAttested {
		t.Errorf("found %q\n%s", assurance(v), describe(v))
	}
	listed := false
	for _, a := range v.Attestations {
		if a.Review != nil {
			listed = true
			if f := a.Review.Failed; a.Review.Passed() || len(f) != 1 || f[0].Check != "policy" || len(f[0].Classes) != 1 || f[0].Classes[0] != fault.Policy {
				t.Errorf("found %+v", a.Review)
			}
		}
	}
	if !listed {
		t.Error("it is not listed")
	}
	if v := verify(t, dir, attest.Policy{Predicates: []string{attest.ReviewType}}, all...); v.OK() {
		t.Error("a review that says FAILED counts as one that is demanded")
	}

	// Neither half of a contradiction counts: FAILED without what failed, PASSED with it.
	for name, change := range map[string]func(*attest.Review){
		"failed by nothing": func(r *attest.Review) { r.Failed = nil },
		"passed by failing": func(r *attest.Review) {
			r.VerificationResult, r.VerifiedLevels = "PASSED", []string{"BENCHPIN_VERIFIED"}
		},
		"neither": func(r *attest.Review) { r.VerificationResult = "MAYBE" },
	} {
		dir := newArchive(t, newRun(t, nil), host)
		v := verify(t, dir, attest.Policy{}, host.Public())
		var review attest.Review
		must(t, json.Unmarshal(verified.Statement.Predicate, &review))
		review.ResourceURI = "urn:benchpin:archive:" + v.Archive.SHA256Digest().String()
		change(&review)
		attachStatement(t, dir, v, judge, attest.ReviewType, review)
		for _, a := range verify(t, dir, attest.Policy{}, all...).Attestations {
			if a.PredicateType == attest.ReviewType && a.Status != attest.NotCounted {
				t.Errorf("%s: %+v", name, a)
			}
		}
	}
}

// A review by an accepted key that says something that cannot be does not count, and spoils nothing.
func TestReviewRefused(t *testing.T) {
	host, judge := newKey(t, attest.Ed25519), newKey(t, attest.ECDSAP256)
	r := newRun(t, nil)
	for name, change := range map[string]func(*attest.Review){
		"another archive": func(r *attest.Review) { r.ResourceURI = "urn:benchpin:archive:sha256:" + strings.Repeat("0", 64) },
		"failed":          func(r *attest.Review) { r.VerificationResult = "FAILED" },
		"no time":         func(r *attest.Review) { r.TimeVerified = "yesterday" },
		"other policy": func(r *attest.Review) {
			r.Policy.Content = base64.StdEncoding.EncodeToString([]byte("policy: benchpin.policy/v1\n"))
		},
		"higher level": func(r *attest.Review) { r.VerifiedLevels = []string{"reproduced"} },
	} {
		dir := newArchive(t, r, host)
		v := verify(t, dir, attest.Policy{}, host.Public())
		raw, err := attest.SignReview(t.Context(), judge, v, attest.Policy{}, nil, "test", reviewedAt)
		must(t, err)
		verified, err := attest.VerifyBundle(raw, []attest.PublicKey{judge.Public()})
		must(t, err)
		var review attest.Review
		must(t, json.Unmarshal(verified.Statement.Predicate, &review))
		change(&review)
		attachStatement(t, dir, v, judge, attest.ReviewType, review)
		v = verify(t, dir, attest.Policy{}, host.Public(), judge.Public())
		counted := false
		for _, a := range v.Attestations {
			counted = counted || (a.PredicateType == attest.ReviewType && a.Status != attest.NotCounted)
		}
		if counted || !v.OK() || assurance(v) != attest.SelfAttested {
			t.Errorf("%s: counted %v, assurance %q\n%s", name, counted, assurance(v), describe(v))
		}
	}
	// One of another program says what this one does not know.
	dir := newArchive(t, r, host)
	v := verify(t, dir, attest.Policy{}, host.Public())
	attachStatement(t, dir, v, judge, attest.ReviewType, map[string]any{"verifier": map[string]any{"id": "https://example.org/verifier"}, "verificationResult": "PASSED"})
	if v = verify(t, dir, attest.Policy{}, host.Public(), judge.Public()); !v.OK() || assurance(v) != attest.SelfAttested {
		t.Errorf("found %q\n%s", assurance(v), describe(v))
	}
}
