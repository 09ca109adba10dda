package attest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/internal/strictjson"
	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// ReviewType is SLSA's verification summary v1: somebody verified this archive. The archive does not determine it; it is the word of whoever
// signed it.
const ReviewType = "https://slsa.dev/verification_summary/v1"

// ReviewSchemaFile is the name of the JSON schema of Review, a narrower one than SLSA's, in package schemas.
const ReviewSchemaFile = "verification-summary-v1.schema.json"

const (
	reviewPassed = "PASSED"
	// reviewLevel is the one level that a review states: all checks passed. SLSA's own levels are about builds.
	reviewLevel = "BENCHPIN_VERIFIED"
	policyURI   = "https://github.com/benchpin/benchpin/policy/v1"
	// slsaVersion is the first with the verifier's version; up to this program's own, reviews said 1.0, which has no such field.
	slsaVersion = "1.1"
	// reviewFailed is both result and level of a review of an archive that did not verify, as SLSA says it.
	reviewFailed = "FAILED"
)

// Review is the predicate of type ReviewType as this program writes it.
type Review struct {
	Verifier ReviewVerifier `json:"verifier"`
	// TimeVerified is the reviewer's clock, RFC 3339 in UTC.
	TimeVerified string `json:"timeVerified"`
	// ResourceURI names the archive by the SHA-256 of its OCI manifest.
	ResourceURI string       `json:"resourceUri"`
	Policy      ReviewPolicy `json:"policy"`
	// InputAttestations are the bundles that held: what each attests, and its SHA-256.
	InputAttestations  []ReviewInput `json:"inputAttestations"`
	VerificationResult string        `json:"verificationResult"`
	VerifiedLevels     []string      `json:"verifiedLevels"`
	SLSAVersion        string        `json:"slsaVersion"`
	// Failed are the checks that did not pass, in a review that says FAILED; absent in others. SLSA's format leaves fields of others to names that
	// are URIs.
	Failed []FailedCheck `json:"https://github.com/benchpin/benchpin/failed_checks/v1,omitempty"`
}

// FailedCheck is a check that did not pass, and why.
type FailedCheck struct {
	Check string `json:"check"`
	// Classes are the classes of what was wrong, sorted, each once.
	Classes []fault.Class `json:"classes"`
}

// Passed reports whether the review says that every check passed.
func (r *Review) Passed() bool { return r.VerificationResult == reviewPassed }

// ReviewVerifier is the program that verified.
type ReviewVerifier struct {
	ID      string            `json:"id"`
	Version map[string]string `json:"version"`
}

// ReviewPolicy is the policy that was applied, whole: Content is base64 of a policy document in JSON, which --policy takes.
type ReviewPolicy struct {
	URI     string            `json:"uri"`
	Digest  map[string]string `json:"digest"`
	Content string            `json:"content"`
}

// ReviewInput is one bundle that held.
type ReviewInput struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest"`
}

// Errors of signing reviews.
var (
	// ErrNotPassed: a review that says so is signed only of an archive of which every check passed.
	ErrNotPassed = errors.New("the archive did not verify: no review is signed")
	// ErrPassed: none that says FAILED is signed of an archive that verified.
	ErrPassed = errors.New("every check passed: it cannot be signed that one failed")
	// ErrNothingToReview: the archive has no manifest, record or data set's manifest that can be read, so that a review would be about nothing.
	ErrNothingToReview = errors.New("the archive's own manifest, its record or the manifest of its data set cannot be read: a review has nothing to be about")
)

// SignReview signs that this archive was verified, with every check passed, under the policy, by the program of the given version at the
// given time. by signs; keys are those that were accepted. The result is a bundle for the archive.
func SignReview(ctx context.Context, by Signer, v *Verification, p Policy, keys []PublicKey, version string, at time.Time) ([]byte, error) {
	if !v.OK() || v.Record == nil {
		return nil, ErrNotPassed
	}
	return signReview(ctx, by, v, p, keys, version, at, Review{VerificationResult: reviewPassed, VerifiedLevels: []string{reviewLevel}})
}

// SignRefusal signs that this archive did not verify under the policy, and which checks failed. Its arguments are those of SignReview.
func SignRefusal(ctx context.Context, by Signer, v *Verification, p Policy, keys []PublicKey, version string, at time.Time) ([]byte, error) {
	if v.OK() {
		return nil, ErrPassed
	}
	r := Review{VerificationResult: reviewFailed, VerifiedLevels: []string{reviewFailed}}
	for _, c := range v.Checks {
		if c.OK || c.Waived {
			continue
		}
		failed := FailedCheck{Check: c.Name, Classes: []fault.Class{}}
		for _, f := range c.Faults {
			failed.Classes = append(failed.Classes, f.Class)
		}
		slices.Sort(failed.Classes)
		failed.Classes = slices.Compact(failed.Classes)
		r.Failed = append(r.Failed, failed)
	}
	return signReview(ctx, by, v, p, keys, version, at, r)
}

// signReview signs what r says, with everything else that a review has.
func signReview(ctx context.Context, by Signer, v *Verification, p Policy, keys []PublicKey, version string, at time.Time, r Review) ([]byte, error) {
	if v.layout == nil || v.Archive == (oci.Digests{}) {
		return nil, ErrNothingToReview
	}
	rec, header := v.layout.Layer(TitleRecord), v.layout.Layer(TitleManifest)
	if rec == nil || rec.Blob == nil || header == nil || header.Blob == nil {
		return nil, ErrNothingToReview
	}
	document, err := p.document(keys)
	if err != nil {
		return nil, fmt.Errorf("review: %w", err)
	}
	r.Verifier = ReviewVerifier{ID: builderID, Version: map[string]string{"benchpin": version}}
	r.TimeVerified, r.ResourceURI, r.SLSAVersion = at.UTC().Format(time.RFC3339), resourceURI(v.Archive), slsaVersion
	r.Policy = ReviewPolicy{URI: policyURI, Digest: map[string]string{"sha256": oci.DigestsOf(document).Hex()}, Content: base64.StdEncoding.EncodeToString(document)}
	r.InputAttestations = []ReviewInput{}
	for i, b := range v.layout.Bundles {
		if i < len(v.Attestations) && v.Attestations[i].Status == Holds && b.Blob != nil {
			r.InputAttestations = append(r.InputAttestations, ReviewInput{v.Attestations[i].PredicateType, map[string]string{"sha256": b.Blob.Hex()}})
		}
	}
	s, err := NewStatement(subjectsOf(v.Archive, rec.Blob.Digests, header.Blob.Digests), ReviewType, r)
	if err != nil {
		return nil, err
	}
	return signStatement(ctx, by, s)
}

func resourceURI(archive oci.Digests) string {
	return "urn:benchpin:archive:" + archive.SHA256Digest().String()
}

// document writes the policy as a policy document in JSON, with the accepted keys in PEM form.
func (p Policy) document(keys []PublicKey) ([]byte, error) {
	doc := map[string]any{"policy": PolicyName}
	put := func(into map[string]any, name string, value any, is bool) {
		if is {
			into[name] = value
		}
	}
	section := func(name string, m map[string]any) { put(doc, name, m, len(m) > 0) }
	var accepted []map[string]string
	for _, k := range keys {
		accepted = append(accepted, map[string]string{"pem": string(k.PEM())})
	}
	put(doc, "keys", accepted, len(accepted) > 0)
	put(doc, "identities", p.Trusted.Identities, len(p.Trusted.Identities) > 0)
	put(doc, "trusted_root", map[string]string{"json": string(p.Trusted.Root)}, len(p.Trusted.Root) > 0)
	put(doc, "timestamp_roots", map[string]string{"pem": string(p.Trusted.TimestampRoots)}, len(p.Trusted.TimestampRoots) > 0)
	put(doc, "signers", p.Signers, p.Signers > 0)
	put(doc, "predicates", p.Predicates, len(p.Predicates) > 0)
	data := map[string]any{}
	put(data, "roots", p.DataRoots, p.DataRoots != nil)
	put(data, "verification", VerifiedNone, p.AllowUnverified && p.Verification == "")
	put(data, "verification", p.Verification, p.Verification != "")
	section("data", data)
	put(doc, "figures", p.Figures, len(p.Figures) > 0)
	put(doc, "preregistered", true, p.Preregistered)
	put(doc, "preregistered_before", true, p.PreregisteredBefore)
	put(doc, "trusted_time", true, p.RequireTime)
	put(doc, "thresholds_met", true, p.RequireThresholds)
	put(doc, "maximum_age", fmt.Sprintf("%ds", int64(p.MaximumAge/time.Second)), p.MaximumAge >= time.Second)
	put(doc, "age_from", p.AgeFrom, p.AgeFrom != "")
	var known []map[string]string
	for _, k := range p.NotBefore {
		known = append(known, map[string]string{"value": k.Value, "time": k.Time.UTC().Format(time.RFC3339Nano)})
	}
	put(doc, "not_before", known, len(known) > 0)
	put(doc, "rule_editions", p.RuleEditions, p.RuleEditions != nil)
	put(doc, "allow_unavailable", true, p.AllowUnavailable)
	tool := map[string]any{}
	put(tool, "versions", p.Tool.Versions, p.Tool.Versions != nil)
	put(tool, "minimum", p.Tool.Minimum, p.Tool.Minimum != "")
	put(tool, "commits", p.Tool.Commits, p.Tool.Commits != nil)
	put(tool, "binaries", p.Tool.Binaries, p.Tool.Binaries != nil)
	put(tool, "unmodified", true, p.Tool.Unmodified)
	section("tool", tool)
	workload := map[string]any{}
	put(workload, "names", p.Workload.Names, p.Workload.Names != nil)
	put(workload, "digests", p.Workload.Digests, p.Workload.Digests != nil)
	section("workload", workload)
	return strictjson.Marshal(doc)
}

// parseReview reads a verification summary about this archive. It returns nil and no fault for one that another program made, which says
// what this one does not know.
func (v *verifier) parseReview(raw json.RawMessage) (*Review, *fault.Fault) {
	var whose struct {
		Verifier struct {
			ID string `json:"id"`
		} `json:"verifier"`
	}
	if json.Unmarshal(raw, &whose) != nil || whose.Verifier.ID != builderID {
		return nil, nil
	}
	var r Review
	if err := strictjson.Unmarshal(raw, limits.BundleBytes, &r); err != nil {
		return nil, asFault(inPayload(err))
	}
	wrong := func(field, expected, found string) (*Review, *fault.Fault) {
		return nil, fault.New(fault.PredicateMismatch, "payload.predicate."+field, fmt.Sprintf("expected %s, found %q", expected, shorten(found)))
	}
	content, err := base64.StdEncoding.Strict().DecodeString(r.Policy.Content)
	switch _, timeErr := time.Parse(time.RFC3339, r.TimeVerified); {
	case r.ResourceURI != resourceURI(v.v.Archive):
		return wrong("resourceUri", resourceURI(v.v.Archive), r.ResourceURI)
	case timeErr != nil:
		return wrong("timeVerified", "a time", r.TimeVerified)
	case err != nil || len(r.Policy.Digest) != 1 || r.Policy.Digest["sha256"] != oci.DigestsOf(content).Hex():
		return wrong("policy.digest", "the SHA-256 of its content", r.Policy.Digest["sha256"])
	case r.VerificationResult != reviewPassed && r.VerificationResult != reviewFailed:
		return wrong("verificationResult", reviewPassed+" or "+reviewFailed, r.VerificationResult)
	case len(r.VerifiedLevels) != 1 || r.VerifiedLevels[0] != map[bool]string{true: reviewLevel, false: reviewFailed}[r.Passed()]:
		return wrong("verifiedLevels", reviewLevel+", or "+reviewFailed+" with the result "+reviewFailed, strings.Join(r.VerifiedLevels, " "))
	case r.Passed() == (len(r.Failed) > 0):
		return wrong("failed_checks", "those that failed where the result is "+reviewFailed+", and none where not", fmt.Sprint(len(r.Failed)))
	}
	return &r, nil
}

// Assurance is how far a result rests on the word of one party, in one word.
type Assurance string

// The levels of assurance, from the lowest. They follow from which keys signed what kind of statement, and from nothing that a signer
// wrote about himself; that different keys are held by different parties is for whoever accepts them to know.
const (
	// NoAssurance: the archive did not verify.
	NoAssurance Assurance = ""
	// SelfAttested: one accepted key stands for everything.
	SelfAttested Assurance = "self-attested"
	// ThirdParty: another accepted key than that of the result signed the result too, or that it verified it.
	ThirdParty Assurance = "third-party"
	// Reproduced: another accepted key than that of the result signed that it replayed the run and reproduced its result.
	Reproduced Assurance = "reproduced"
)

// Assurance returns the level, and why it is that one. Ask it after all checks were added.
func (v *Verification) Assurance() (level Assurance, because string) {
	if !v.OK() {
		return NoAssurance, ""
	}
	result := map[string]bool{}
	for _, a := range v.Attestations {
		if a.Status == Holds && a.PredicateType == ResultType {
			result[a.Key] = true
		}
	}
	if len(result) == 0 {
		return NoAssurance, ""
	}
	another := func(key string) bool { return key != "" && (len(result) > 1 || !result[key]) }
	level, because = SelfAttested, "one key stands for everything"
	if len(result) > 1 {
		level, because = ThirdParty, fmt.Sprintf("%d different keys signed the result", len(result))
	}
	for _, a := range v.Attestations {
		switch {
		case !another(a.Key) || a.Status != Other:
		case a.Replay != nil && a.Replay.Level == LevelResult && !a.Replay.Unverified:
			return Reproduced, SignerText(a.Key) + ", which is not the only one of the result, signed that it reproduced it"
		case a.Review != nil && a.Review.Passed() && level == SelfAttested:
			level, because = ThirdParty, SignerText(a.Key)+", which is not that of the result, signed that it verified it"
		}
	}
	return level, because
}
