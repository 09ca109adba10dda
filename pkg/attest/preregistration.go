package attest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/internal/strictjson"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/record"
)

// PreregistrationType is the predicate of what is signed before a run: what it will be judged by. Its bundle is a file of the run, and so a
// layer of the archive, and not attached to it: there is no archive yet when it is signed.
const PreregistrationType = "https://github.com/benchpin/benchpin/preregistration/v1"

// PreregistrationSchemaFile is the name of the JSON schema of Preregistration in package schemas.
const PreregistrationSchemaFile = "preregistration-v1.schema.json"

// TitlePreregistration is the title of the layer that holds the pre-registration, where there is one.
const TitlePreregistration = record.PreregistrationName

// Preregistration is the predicate of type PreregistrationType. All of it follows from a workload and a manifest, before a run, and from a
// record, after it.
type Preregistration struct {
	Workload     PreregisteredWorkload `json:"workload"`
	Dataset      PreregisteredDataset  `json:"dataset"`
	Accelerators int                   `json:"accelerators"`
	Epochs       int                   `json:"epochs"`
	// OrderSeed is the seed of the order in which samples are read.
	OrderSeed record.Int `json:"order_seed"`
	// Verify is how the run compares the data set with its manifest.
	Verify string `json:"verify"`
	// RuleEdition is the edition of the rules by which the result will be judged, as their publisher writes it; absent where none was named. What
	// it demands is not known here, and a record does not repeat it.
	RuleEdition string `json:"rule_edition,omitempty"`
	// Thresholds are the least figures that are asked for, by name: au in percent, samples_per_second, bytes_per_second.
	Thresholds map[string]float64 `json:"thresholds"`
}

// PreregisteredDataset identifies the data set.
type PreregisteredDataset struct {
	Root string `json:"root"`
	// Manifest is the BLAKE3 digest of the manifest's header.
	Manifest string `json:"manifest"`
	// Seed is that of the recipe; absent for data that nobody generated.
	Seed string `json:"seed,omitempty"`
}

// PreregistrationOf is what a pre-registration must say of a run. It reads of the record only what is known before the run: workload,
// data set, plan.
func PreregistrationOf(r *record.Record) (Preregistration, error) {
	var canonical struct {
		Benchpin struct {
			Verify string `json:"verify"`
		} `json:"benchpin"`
	}
	if err := json.Unmarshal(r.Workload.Canonical, &canonical); err != nil {
		return Preregistration{}, fmt.Errorf("pre-registration: the workload: %w", err)
	}
	p := Preregistration{
		Workload:     PreregisteredWorkload{Name: r.Workload.Name, Digest: r.Workload.Digest, Canonical: r.Workload.Canonical},
		Dataset:      PreregisteredDataset{Root: r.Dataset.Root, Manifest: r.Dataset.Manifest, Seed: r.Dataset.Seed},
		Accelerators: r.Plan.Accelerators, Epochs: r.Plan.Epochs, OrderSeed: r.Plan.OrderSeed, Verify: canonical.Benchpin.Verify,
		Thresholds: map[string]float64{},
	}
	least, err := leastOf(r)
	if err != nil {
		return Preregistration{}, fmt.Errorf("pre-registration: the workload: %w", err)
	}
	maps.Copy(p.Thresholds, least)
	if r.Plan.AUThreshold > 0 {
		p.Thresholds["au"] = r.Plan.AUThreshold
	}
	return p, nil
}

// SignPreregistration signs what a run on the data set with this manifest header will be judged by, and returns the bundle.
func SignPreregistration(ctx context.Context, by Signer, p Preregistration, header []byte) ([]byte, error) {
	s, err := NewStatement([]Subject{NewSubject(SubjectManifest, oci.DigestsOf(header))}, PreregistrationType, p)
	if err != nil {
		return nil, err
	}
	return signStatement(ctx, by, s)
}

// SignedPreregistration is a pre-registration that was read. Its signature was not checked: see VerifyBundle.
type SignedPreregistration struct {
	Preregistration
	// Raw are the bytes of the bundle, and Digest their BLAKE3 digest.
	Raw    []byte
	Digest string

	statement *Statement
}

// ParsePreregistration reads the bundle of a pre-registration. Errors are *fault.Fault.
func ParsePreregistration(raw []byte) (*SignedPreregistration, error) {
	b, err := parseWitnessed(raw)
	if err != nil {
		return nil, err
	}
	s, err := ParseStatement(b.Envelope.Payload)
	if err != nil {
		return nil, inPayload(err)
	}
	if s.PredicateType != PreregistrationType {
		return nil, fault.New(fault.PredicateType, "payload.predicateType", fmt.Sprintf("expected %q, found %q", PreregistrationType, shorten(s.PredicateType)))
	}
	p := &SignedPreregistration{Raw: raw, Digest: oci.DigestsOf(raw).Blake3Digest().String(), statement: s}
	if err := strictjson.Unmarshal(s.Predicate, limits.BundleBytes, &p.Preregistration); err != nil {
		f := asFault(err)
		f.Field = "predicate." + f.Field
		return nil, inPayload(f)
	}
	return p, nil
}

// parseWitnessed reads the form of a bundle, with or without what third parties added, and verifies nothing.
func parseWitnessed(raw []byte) (*bundle, error) {
	var wide witnessedBundle
	if err := strictjson.Unmarshal(raw, limits.BundleBytes, &wide); err != nil {
		return nil, bundleFault(err)
	}
	m := wide.VerificationMaterial
	if m.bare() {
		return parseBundle(raw)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	b := &bundle{MediaType: wide.MediaType, Envelope: wide.Envelope}
	if m.PublicKey != nil {
		b.VerificationMaterial.PublicKey = *m.PublicKey
	}
	return b, b.check()
}

// Differences says in what a run differs from what was signed, one fault for each part; header are the digests of the header of its
// data set's manifest.
func (p *SignedPreregistration) Differences(run Preregistration, header oci.Digests) ([]*fault.Fault, error) {
	var faults []*fault.Fault
	for _, f := range p.statement.CheckSubjects([]Subject{NewSubject(SubjectManifest, header)}) {
		faults = append(faults, asFault(inPayload(f)))
	}
	signed, err := parts(p.Preregistration)
	if err != nil {
		return nil, err
	}
	is, err := parts(run)
	if err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(is) {
		if name == "workload" {
			differ, err := p.Workload.differences(run.Workload)
			if err != nil {
				return nil, err
			}
			faults = append(faults, differ...)
			continue
		}
		where, same, err := strictjson.Difference(signed[name], is[name], limits.BundleBytes)
		if err != nil {
			return nil, err
		}
		if !same {
			faults = append(faults, fault.New(fault.Preregistration, name, "the run is not the one that was registered (expected is what was): "+where))
		}
	}
	return faults, nil
}

func parts(p Preregistration) (map[string]json.RawMessage, error) {
	raw, err := strictjson.Marshal(p)
	if err != nil {
		return nil, err
	}
	var m map[string]json.RawMessage
	return m, json.Unmarshal(raw, &m)
}

// preregistration checks what was signed before the run, where the record names it. A record that names nothing makes no claim.
func (v *verifier) preregistration() error {
	r := v.v.Record
	if r == nil {
		return nil
	}
	layer := v.v.layout.Layer(TitlePreregistration)
	if r.Preregistration == nil && layer == nil {
		return nil
	}
	const evidence = "preregistration.json against the record and the manifest: workload, data set, seeds, accelerators, verification, thresholds"
	limit := "that it was signed before the run: no trusted time says so. The record names its digest, so that it is older than the record, " +
		"and only the host's word says that it is older than the result"
	check := func(evidence string, faults ...*fault.Fault) error {
		for i, f := range faults {
			faults[i] = f.In(TitlePreregistration)
		}
		return v.add("preregistration", record.Recomputable, evidence, limit, faults)
	}
	header := v.v.layout.Layer(TitleManifest)
	switch {
	case r.Preregistration == nil:
		return check(evidence, fault.New(fault.Preregistration, "", "it is there, and the record does not name it"))
	case layer == nil || layer.Blob == nil || header == nil || header.Blob == nil:
		return check(evidence, unchecked("", "it, or the data set's manifest, is missing or damaged"))
	case layer.Blob.Blake3Digest().String() != r.Preregistration.Digest:
		return check(evidence, fault.New(fault.Preregistration, "", fmt.Sprintf("the record names %s, found %s", shorten(r.Preregistration.Digest),
			layer.Blob.Blake3Digest())))
	}
	raw, err := layer.Blob.Bytes(limits.BundleBytes)
	if err != nil {
		return check(evidence, fault.New(fault.Limit, "", err.Error()))
	}
	p, err := ParsePreregistration(raw)
	if err != nil {
		return check(evidence, asFault(err))
	}
	run, err := PreregistrationOf(r)
	if err != nil {
		return check(evidence, fault.New(fault.Workload, "workload.canonical", err.Error()))
	}
	faults, err := p.Differences(run, header.Blob.Digests)
	if err != nil {
		return err
	}
	verified, err := verifyWitnessed(raw, v.keys, v.policy.Witness)
	switch {
	case err == nil:
		v.v.Preregistered, v.v.RuleEdition = verified.Signer(), p.RuleEdition
		said, shows, late := v.registeredAt(verified.Testimony.Times, r)
		if late != nil {
			faults = append(faults, late)
		}
		if p.RuleEdition != "" {
			said += fmt.Sprintf(", to be judged by the rules %q", shorten(p.RuleEdition))
		}
		if shows != "" {
			limit = shows
		}
		return check(evidence+"; signed by "+v.v.Preregistered+said, faults...)
	case errors.Is(err, fault.BadSignature):
		return check(evidence, append(faults, asFault(err))...)
	}
	return check(evidence+"; nobody who is accepted stands for it, so that it does not count: "+asFault(err).Detail, faults...)
}

// registeredAt says what trusted times prove of a pre-registration, and what they do not. Both are "" without times. The start of the run is the
// record's word; a public value that its order was drawn with bounds it without.
//
// The record names the digest of the bundle, with the timestamps in it: one of a time after the start cannot be in the file that the run kept to,
// and is a fault.
func (v *verifier) registeredAt(times []TrustedTime, r *record.Record) (said, limit string, late *fault.Fault) {
	started := r.Started
	if len(times) == 0 {
		return "", "", nil
	}
	first := times[0]
	for _, t := range times {
		if t.Time.Before(first.Time) {
			first = t
		}
	}
	said = ", no later than " + first.String()
	if r.NotBefore != nil {
		if known, by, f := v.knownFrom(r.NotBefore); f == nil && !first.Time.After(known) {
			v.v.PreregisteredBefore = true
			return said + fmt.Sprintf(", which is before %s, from when the value was known (%s) that the run's order was drawn with: the bar came before the run",
				known.UTC().Format(time.RFC3339Nano), by), "that nobody knew the value earlier, and that the order was not computed alone: see time-bracket", nil
		}
	}
	begun, err := time.Parse(time.RFC3339Nano, started)
	if err != nil || first.Time.After(begun) {
		limit = "that it was signed before the run: the trusted time is not before the start that the record gives, " + shorten(started)
		if err != nil || first.Time.After(begun.Add(timeGranularity)) {
			late = fault.New(fault.SigningTime, "verificationMaterial", fmt.Sprintf("it holds the time %s, and the record says that the run that kept to it began before, at %s: it was made, or stamped, after the start",
				first, shorten(started)))
		}
		return said, limit, late
	}
	v.v.PreregisteredBefore = true
	return said + fmt.Sprintf(", which is before the start that the record gives, %s: the bar came before the result, if that start is true", started),
		"that the run did not begin earlier than the record says: its start is the host's word", nil
}
