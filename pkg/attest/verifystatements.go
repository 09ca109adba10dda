package attest

import (
	"encoding/json"
	"fmt"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/internal/strictjson"
	"github.com/benchpin/benchpin/pkg/record"
)

func comparePredicate(expected any, signed json.RawMessage) (*fault.Fault, error) {
	raw, err := strictjson.Marshal(expected)
	if err != nil {
		return nil, err
	}
	where, same, err := strictjson.Difference(raw, signed, limits.BundleBytes)
	switch {
	case err != nil:
		return asFault(inPayload(err)), nil
	case !same:
		return fault.New(fault.PredicateMismatch, "payload.predicate", where), nil
	}
	return nil, nil
}

// judge applies the policy to a record that is what it must be.
func (v *verifier) judge() error {
	r := v.v.Record
	if r == nil {
		_ = v.add("dataset", record.HostOnly, "how the data set was compared with its manifest", "",
			[]*fault.Fault{unchecked(TitleRecord, "the record is not readable")})
		_ = v.add("thresholds", record.HostOnly, "whether the figures meet the thresholds", "",
			[]*fault.Fault{unchecked(TitleRecord, "the record is not readable")})
		return v.policyUnchecked()
	}
	d := r.Dataset.Verification
	var faults []*fault.Fault
	evidence := fmt.Sprintf("the record says that %d files, %d bytes, were compared with the manifest (%s)", d.Files, d.Bytes, shorten(d.Mode))
	switch full := d.Mode == "before" || d.Mode == "after"; {
	case d.Mode == "inline" && d.Inline != nil:
		// How many files that must be is computed from the order of samples, by who knows it.
		evidence += fmt.Sprintf(" by hashing what the timed run read, %d samples", d.Inline.Samples)
	case d.Mode == "sample" && d.Sample != nil && d.Files > 0:
		evidence += fmt.Sprintf(": a SAMPLE of %d of %d files, which hits one of %d damaged files (%.3g %% of all) with 95 %%; fewer may be damaged "+
			"and nobody knows", d.Files, d.Sample.Of, d.Sample.Found95, d.Sample.Share95)
	case v.policy.AllowUnverified:
	case !full:
		faults = append(faults, fault.New(fault.Policy, "dataset.verification.mode",
			fmt.Sprintf("%q: which bytes were read is not known; the policy demands before, inline, after or sample", shorten(d.Mode))).In(TitleRecord))
	case d.Files < r.Plan.Files:
		faults = append(faults, fault.New(fault.Policy, "dataset.verification.files",
			fmt.Sprintf("the run reads %d files and %d were compared with the manifest", r.Plan.Files, d.Files)).In(TitleRecord))
	}
	_ = v.add("dataset", record.HostOnly, evidence, "that it was so: only the host saw the files. Replay, or the transcript, say more", faults)
	_ = v.add("thresholds", record.HostOnly, thresholdEvidence(r), "that the times are true: they are class H", v.judgeThresholds(r))
	return v.demands(r)
}

// recipeSeed returns the seed that a recipe names as text, when it names one.
func recipeSeed(recipe json.RawMessage) (string, bool) {
	var r struct {
		Seed *string `json:"seed"`
	}
	if recipe == nil || json.Unmarshal(recipe, &r) != nil || r.Seed == nil {
		return "", false
	}
	return *r.Seed, true
}
