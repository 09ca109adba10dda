package attest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/internal/strictjson"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/record"
)

// AttestationStatus says what a bundle counts for.
type AttestationStatus string

// What a bundle may count for. Anybody who may write to a registry can attach bundles to an archive there, copies and damaged ones
// included. So a bundle that no accepted key stands for never counts, and never spoils those that do.
const (
	// Holds: signed by an accepted key, about this archive, and saying what the archive says. Nothing else counts.
	Holds AttestationStatus = "holds"
	// Other: signed by an accepted key, about this archive, of a type that the archive does not determine: nobody here knows whether
	// what it says is true.
	Other AttestationStatus = "other"
	// NotCounted: no accepted key signed it, or it is about something else, or it is damaged.
	NotCounted AttestationStatus = "not-counted"
	// Refused: an accepted key signed, about this archive, what the archive contradicts. The archive fails.
	Refused AttestationStatus = "refused"
)

// Attestation is what was found of one bundle.
type Attestation struct {
	// Part names the bundle in messages.
	Part string `json:"part"`
	// PredicateType is that of the signed statement; where no accepted key signed it, the one that its manifest announces.
	PredicateType string `json:"predicate_type"`
	// Key is the hint of the accepted key that signed it, or the accepted identity in its certificate; "" for none.
	Key string `json:"key,omitempty"`
	// Times are those at which third parties saw the signature, and which whoever verifies trusts.
	Times []TrustedTime `json:"times,omitempty"`
	// Status says what it counts for, Detail why it is not "holds".
	Status AttestationStatus `json:"status"`
	Detail string            `json:"detail,omitempty"`
	// Replay is what a statement of type ReplayType by an accepted key says; nil for others. It is the word of the key's holder.
	Replay *ReplayPredicate `json:"replay,omitempty"`
	// Review is what a statement of type ReviewType says that an accepted key signed with this program; nil for others. It too is the word
	// of the key's holder.
	Review *Review `json:"review,omitempty"`
}

// The checks that bundles can fail, in their order.
const (
	signaturesCheck = iota
	subjectsCheck
	predicatesCheck
	timeCheck
	bundleChecks
)

// judgedBundle is a bundle with everything that is wrong with it, by check.
type judgedBundle struct {
	Attestation
	faults [bundleChecks][]*fault.Fault
}

func (j *judgedBundle) settle(s AttestationStatus, check int, faults ...*fault.Fault) {
	j.Status = s
	for _, f := range faults {
		j.faults[check] = append(j.faults[check], f.In(j.Part))
	}
	if len(faults) > 0 {
		j.Detail = fault.Printable(faults[0].Detail)
	}
}

// expectation is what statements must say about the archive; the slices are nil where the archive is too damaged to tell.
type expectation struct {
	subjects   []Subject
	predicates []typedPredicate
}

// attestations judges every bundle, and adds the checks "signatures", "subjects" and "predicates". The faults of bundles that do not
// count are shown in them only where a predicate that the archive must carry does not hold: they say why.
func (v *verifier) attestations() error {
	x, subjectFaults, predicateFaults := v.expect()
	var judged []*judgedBundle
	for _, b := range v.v.layout.Bundles {
		j := &judgedBundle{Attestation: Attestation{Part: b.Part, PredicateType: fault.Printable(b.PredicateType), Status: NotCounted}}
		if err := v.judgeBundle(j, b, x); err != nil {
			return err
		}
		judged = append(judged, j)
		v.v.Attestations = append(v.v.Attestations, j.Attestation)
	}
	holds := func(kind string) bool {
		return slices.ContainsFunc(judged, func(j *judgedBundle) bool { return j.Status == Holds && j.PredicateType == kind })
	}
	signed, short := 0, x.predicates == nil || x.subjects == nil
	for _, e := range x.predicates {
		short = short || !holds(e.kind)
	}
	var faults [bundleChecks][]*fault.Fault
	attested := map[string]bool{}
	for _, j := range judged {
		if j.Key != "" {
			signed++
			attested[j.PredicateType] = true
		}
		for i := range faults {
			if short || j.Status == Refused {
				faults[i] = append(faults[i], j.faults[i]...)
			}
		}
	}
	if len(judged) == 0 {
		faults[signaturesCheck] = append(faults[signaturesCheck], fault.New(fault.PredicateMissing, "", "the archive carries no attestation").In("bundles"))
	}
	for _, k := range v.keys {
		if slices.ContainsFunc(judged, func(j *judgedBundle) bool { return j.Key == k.Hint() }) {
			v.v.Keys = append(v.v.Keys, k.Hint())
		}
	}
	for _, j := range judged {
		if j.Key != "" && !slices.Contains(v.v.Keys, j.Key) { // an identity in a certificate
			v.v.Keys = append(v.v.Keys, j.Key)
		}
	}
	if subjectFaults == nil && signed == 0 {
		subjectFaults = []*fault.Fault{unchecked("subjects", "there is no statement with a good signature")}
	}
	for _, e := range x.predicates {
		// One that is attested and does not hold has a fault of its own, which is shown; that is not left to chance.
		if !attested[e.kind] || (!holds(e.kind) && slices.IndexFunc(faults[:], func(f []*fault.Fault) bool { return len(f) > 0 }) < 0) {
			predicateFaults = append(predicateFaults, fault.New(fault.PredicateMissing, "", "no bundle with a good signature attests "+e.kind).In("bundle "+e.kind))
		}
	}
	_ = v.add("signatures", record.Recomputable,
		fmt.Sprintf("form of every bundle and its signature; %d of %d signed by the keys given%s%s", signed, len(judged), within(v.v.Keys), notCounted(judged)),
		"whose the key is, and when it signed: that is known only from where the key came from", faults[signaturesCheck])
	_ = v.add("subjects", record.Recomputable,
		"sha256 and blake3 of the OCI manifest, of record.json and of manifest.json, recomputed, against every statement: all of them, in order",
		"which copy of the archive this is: the same statements verify every identical copy", append(subjectFaults, faults[subjectsCheck]...))
	v.signingTime(judged, x, faults[timeCheck])
	return v.add("predicates", record.Recomputable,
		"every predicate made again from record.json and manifest.json, against the signed one, field by field; none that must be there is missing",
		"that the builder named in a provenance made the files: it says what yields them; class H", append(faults[predicatesCheck], predicateFaults...))
}

// within lists names in parentheses, where there are any.
func within(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// notCounted says how many bundles are there and prove nothing here.
func notCounted(judged []*judgedBundle) string {
	n := map[AttestationStatus]int{}
	for _, j := range judged {
		n[j.Status]++
	}
	var s string
	if n[NotCounted] > 0 {
		s += fmt.Sprintf("; %d do not count", n[NotCounted])
	}
	if n[Other] > 0 {
		s += fmt.Sprintf("; %d attest something else, which is not judged", n[Other])
	}
	return s
}

// expect works out what statements must say, and what is wrong where it cannot be known.
func (v *verifier) expect() (x expectation, subjects, predicates []*fault.Fault) {
	l := v.v.layout
	rec, header := l.Layer(TitleRecord), l.Layer(TitleManifest)
	if l.Manifest == (oci.Digests{}) || rec == nil || rec.Blob == nil || header == nil || header.Blob == nil {
		subjects = []*fault.Fault{unchecked("subjects", "the OCI manifest, the record or the data set's manifest is missing or damaged")}
	} else {
		x.subjects = subjectsOf(l.Manifest, rec.Blob.Digests, header.Blob.Digests)
	}
	if v.v.Record == nil || v.header == nil {
		return x, subjects, []*fault.Fault{unchecked("predicates", "the record or the data set's manifest is not readable")}
	}
	var err error
	x.predicates, err = predicatesOf(v.v.Record, oci.DigestsOf(v.v.RecordBytes).Blake3Digest().String(), v.header, v.certified)
	if err != nil {
		predicates = []*fault.Fault{fault.New(fault.Record, "tool.modules", err.Error()).In(TitleRecord)}
	}
	return x, subjects, predicates
}

// judgeBundle decides what one bundle counts for. An error is one of this program.
func (v *verifier) judgeBundle(j *judgedBundle, b oci.Bundle, x expectation) error {
	if b.Blob == nil {
		j.settle(Refused, signaturesCheck, unchecked(b.Part, "its content is missing or damaged"))
		return nil
	}
	raw, err := b.Blob.Bytes(limits.BundleBytes)
	if err != nil {
		j.settle(NotCounted, signaturesCheck, fault.New(fault.Limit, "", err.Error()))
		return nil
	}
	verified, err := verifyWitnessed(raw, v.keys, v.policy.Witness)
	if err != nil {
		j.settle(NotCounted, signaturesCheck, asFault(err))
		v.judgeForeign(j, b.PredicateType, raw)
		return nil
	}
	s := verified.Statement
	j.Key, j.PredicateType, j.Times = verified.Signer(), fault.Printable(s.PredicateType), verified.Testimony.Times
	if b.PredicateType != s.PredicateType {
		j.settle(NotCounted, predicatesCheck, fault.New(fault.PredicateType, "payload.predicateType",
			fmt.Sprintf("its manifest announces %q, the statement is %q", shorten(b.PredicateType), shorten(s.PredicateType))))
	}
	if x.subjects != nil {
		var wrong []*fault.Fault
		for _, f := range s.CheckSubjects(x.subjects) {
			wrong = append(wrong, asFault(inPayload(f)))
		}
		about := slices.ContainsFunc(s.Subject, func(found Subject) bool { return found.Digest["sha256"] == x.subjects[0].Digest["sha256"] })
		switch {
		case len(wrong) > 0 && !about:
			// A statement about another archive is true of that one. Whoever carries it here proves nothing, and spoils nothing.
			j.settle(NotCounted, subjectsCheck, wrong...)
			return nil
		case len(wrong) > 0:
			j.settle(Refused, subjectsCheck, wrong...)
			return nil
		}
	}
	at := slices.IndexFunc(x.predicates, func(e typedPredicate) bool { return e.kind == s.PredicateType })
	if at < 0 {
		if len(j.faults[predicatesCheck]) > 0 {
			return nil // announced as something else: it does not count, whatever it says
		}
		if s.PredicateType == ReplayType && x.subjects != nil {
			p, f := v.parseReplay(s.Predicate)
			if f != nil {
				j.settle(NotCounted, predicatesCheck, f)
				return nil
			}
			j.Replay, j.Status = p, Other
			j.Detail = "it says that the run was replayed, which is not judged here"
			return nil
		}
		if s.PredicateType == ReviewType && x.subjects != nil {
			r, f := v.parseReview(s.Predicate)
			if f != nil {
				j.settle(NotCounted, predicatesCheck, f)
				return nil
			}
			if r != nil {
				j.Review, j.Status = r, Other
				j.Detail = "it says that the archive was verified, which is not judged here"
				if !r.Passed() {
					j.Detail = "it says that the archive did not verify, which is not judged here"
				}
				return nil
			}
		}
		if x.predicates != nil {
			j.settle(Other, predicatesCheck, fault.New(fault.PredicateType, "payload.predicateType",
				fmt.Sprintf("%q is no attestation of this archive", shorten(s.PredicateType))))
		}
		return nil
	}
	f, err := comparePredicate(x.predicates[at].value, s.Predicate)
	if former := x.predicates[at].former; f != nil && former != nil {
		if g, ferr := comparePredicate(former, s.Predicate); g == nil && ferr == nil {
			f = nil
		}
	}
	switch {
	case err != nil:
		return err
	case f != nil:
		j.settle(Refused, predicatesCheck, f)
	case len(j.faults[predicatesCheck]) == 0 && x.subjects != nil:
		j.Status = Holds
		if f := possible(v.v.Record, j.Times); f != nil {
			j.settle(Refused, timeCheck, f)
		}
	}
	return nil
}

// foreignStatement is as much of an in-toto statement of any version as says what it is about.
type foreignStatement struct {
	Type    string `json:"_type"`
	Subject []struct {
		Digest map[string]string `json:"digest"`
	} `json:"subject"`
	PredicateType string `json:"predicateType"`
}

// BundleInfo is what a bundle says it is. Nobody checked a signature.
type BundleInfo struct {
	// PredicateType is that of its statement, Key the hint of the key that it names, "" where a certificate says who signed.
	PredicateType, Key string
	// SHA256 are the SHA-256 digests of the subjects of its statement, in hex, in order.
	SHA256 []string
}

// DescribeBundle reads what a Sigstore bundle with an in-toto statement of any version says it is, without a key. It checks the form and
// nothing else. Errors are *fault.Fault.
func DescribeBundle(data []byte) (*BundleInfo, error) {
	b, err := parseWitnessed(data)
	if err != nil {
		return nil, err
	}
	s, err := parseForeign(b.Envelope.Payload)
	if err != nil {
		return nil, inPayload(err)
	}
	info := &BundleInfo{PredicateType: s.PredicateType, Key: b.VerificationMaterial.PublicKey.Hint}
	for _, subject := range s.Subject {
		info.SHA256 = append(info.SHA256, subject.Digest["sha256"])
	}
	return info, nil
}

func parseForeign(payload []byte) (*foreignStatement, error) {
	if err := strictjson.Valid(payload, limits.BundleBytes); err != nil {
		return nil, err
	}
	var s foreignStatement
	if err := json.Unmarshal(payload, &s); err != nil {
		return nil, fault.New(fault.WrongType, "", "no in-toto statement: "+err.Error())
	}
	switch {
	case !strings.HasPrefix(s.Type, "https://in-toto.io/Statement/v"):
		return nil, fault.New(fault.StatementType, "_type", fmt.Sprintf("expected an in-toto statement, found %q", shorten(s.Type)))
	case s.PredicateType == "":
		return nil, fault.New(fault.PredicateType, "predicateType", "it is empty")
	case len(s.Subject) > limits.Subjects:
		return nil, fault.New(fault.Limit, "subject", fmt.Sprintf("%d subjects, at most %d are read", len(s.Subject), limits.Subjects))
	}
	return &s, nil
}

// judgeForeign looks at a bundle that is none of ours: signed by an accepted key, with an in-toto statement that other programs write,
// such as cosign's, which is still Statement/v0.1 and knows only the archive's sha256.
func (v *verifier) judgeForeign(j *judgedBundle, announced string, raw []byte) {
	b, err := parseWitnessed(raw)
	if err != nil {
		return
	}
	if j.Key, j.Times, err = v.foreignSigner(b, raw); err != nil {
		return
	}
	s, err := parseForeign(b.Envelope.Payload)
	if err != nil {
		return
	}
	j.PredicateType = fault.Printable(shorten(s.PredicateType))
	if announced != s.PredicateType {
		return
	}
	// It is about this archive where any of its subjects is.
	for _, subject := range s.Subject {
		if v.v.Archive != (oci.Digests{}) && subject.Digest["sha256"] == v.v.Archive.Hex() {
			j.Status = Other
			j.Detail = fault.Printable(fmt.Sprintf("a %s about this archive, which is not judged", shorten(s.Type)))
			return
		}
	}
}

// foreignSigner is who signed a bundle whose form was checked: an accepted key, or an accepted identity, with the times at which third parties
// saw it.
func (v *verifier) foreignSigner(b *bundle, raw []byte) (string, []TrustedTime, error) {
	var wide witnessedBundle
	if err := strictjson.Unmarshal(raw, limits.BundleBytes, &wide); err != nil {
		return "", nil, err
	}
	m, w := wide.VerificationMaterial, v.policy.Witness
	if m.bare() {
		key, err := b.verify(v.keys)
		if err != nil {
			return "", nil, err
		}
		return key.Hint(), nil, nil
	}
	if w == nil || (m.Certificate != nil && !w.Identifies()) {
		return "", nil, fault.New(fault.VerificationMaterial, "verificationMaterial", "nobody is trusted for what it carries")
	}
	var key *PublicKey
	if m.PublicKey != nil {
		k, err := b.signer(v.keys)
		if err != nil {
			return "", nil, err
		}
		key = &k
	}
	t, err := w.Examine(raw, key)
	switch {
	case err != nil:
		return "", nil, err
	case key == nil && (t.Signer == "" || len(t.Times) == 0):
		return "", nil, fault.New(fault.Identity, "verificationMaterial.certificate", "nothing proves who signed")
	case key == nil:
		return t.Signer, t.Times, nil
	}
	if f := key.validAt(t.Times); f != nil {
		return "", nil, f
	}
	return key.Hint(), t.Times, nil
}
