package attest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/record"
)

// clockTolerance is how far the clocks of the host and of the verifier may differ where they are compared.
const clockTolerance = 5 * time.Minute

// judgment collects what a policy refuses, and what it asked.
type judgment struct {
	asked  []string
	faults []*fault.Fault
}

func (j *judgment) refuse(part, field, format string, args ...any) {
	j.faults = append(j.faults, fault.New(fault.Policy, field, fmt.Sprintf(format, args...)).In(part))
}

// among demands that what the record says is in a list; nil demands nothing.
func (j *judgment) among(what, field, found string, accepted []string) {
	j.within(TitleRecord, what, field, found, accepted)
}

// within is among for any part of the archive.
func (j *judgment) within(part, what, field, found string, accepted []string) {
	if accepted == nil {
		return
	}
	j.asked = append(j.asked, what)
	if !slices.Contains(accepted, found) {
		const most = 3
		list := fmt.Sprintf("%q", accepted[:min(most, len(accepted))])
		if len(accepted) > most {
			list += fmt.Sprintf(" and %d more", len(accepted)-most)
		}
		j.refuse(part, field, "found %q, the policy accepts %s", shorten(found), list)
	}
}

// demands adds the check "policy" where the policy demands more than the default does. It needs a record, and the attestations judged.
func (v *verifier) demands(r *record.Record) error {
	p, j := v.policy, &judgment{}
	j.signers(p, v.v.Attestations)
	j.among("data set", "dataset.root", r.Dataset.Root, p.DataRoots)
	j.verification(p.Verification, r)
	j.figures(p.Figures, r)
	if p.Preregistered {
		j.asked = append(j.asked, "pre-registration")
		if v.v.Preregistered == "" {
			j.refuse(TitleRecord, "preregistration", "no accepted key signed what this run would be judged by")
		}
	}
	if p.PreregisteredBefore {
		j.asked = append(j.asked, "pre-registration before the run")
		if v.v.Preregistered == "" || !v.v.PreregisteredBefore {
			j.refuse(TitleRecord, "preregistration", "no trusted time says that an accepted key signed what this run would be judged by before it began")
		}
	}
	j.rules(p.RuleEditions, v.v)
	j.notBefore(p.NotBefore, r)
	j.age(v, r)
	j.tool(p.Tool, r.Tool)
	j.among("workload's name", "workload.name", r.Workload.Name, p.Workload.Names)
	j.among("workload", "workload.digest", r.Workload.Digest, p.Workload.Digests)
	if len(j.asked) == 0 {
		return nil
	}
	return v.add("policy", record.HostOnly, "what the policy demands, against the record and its attestations: "+strings.Join(j.asked, ", "),
		"that different keys are held by different people; that figures, times and the program are what the host says", j.faults)
}

// policyUnchecked is the check where there is no record to judge.
func (v *verifier) policyUnchecked() error {
	if v.policy.zero() {
		return nil
	}
	return v.add("policy", record.HostOnly, "what the policy demands", "", []*fault.Fault{unchecked(TitleRecord, "the record is not readable")})
}

// zero reports whether nothing is demanded that demands judges.
func (p Policy) zero() bool {
	return p.Signers < 2 && len(p.Predicates) == 0 && p.DataRoots == nil && p.Verification == "" && len(p.Figures) == 0 && p.MaximumAge == 0 && p.RuleEditions == nil && p.NotBefore == nil && !p.Preregistered && !p.PreregisteredBefore &&
		p.Tool.Versions == nil && p.Tool.Minimum == "" && p.Tool.Commits == nil && p.Tool.Binaries == nil && !p.Tool.Unmodified &&
		p.Workload.Names == nil && p.Workload.Digests == nil
}

func (j *judgment) signers(p Policy, found []Attestation) {
	kinds := p.Predicates
	if len(kinds) == 0 {
		if p.Signers < 2 {
			return
		}
		kinds = []string{ResultType}
	}
	least := max(p.Signers, 1)
	j.asked = append(j.asked, fmt.Sprintf("signers (%d) of %d attestations", least, len(kinds)))
	for _, kind := range kinds {
		keys := map[string]bool{}
		for _, a := range found {
			// Reviews and replays are the word of their signers: whoever demands them accepts their keys for that. One that says FAILED is none.
			word := a.Status == Other && (a.Review != nil && a.Review.Passed() || a.Replay != nil)
			if a.PredicateType == kind && (a.Status == Holds || word) {
				keys[a.Key] = true
			}
		}
		if len(keys) < least {
			j.refuse("bundles", "", "%s is attested under %d accepted keys, the policy demands %d", kind, len(keys), least)
		}
	}
}

// levelOf is what a record says of how its data set was compared. Files that were not hashed although the mode says all make it none.
func levelOf(r *record.Record) VerificationLevel {
	switch d := r.Dataset.Verification; {
	case d.Mode == "inline" && d.Inline != nil, (d.Mode == "before" || d.Mode == "after") && d.Files >= r.Plan.Files:
		return VerifiedAll
	case d.Mode == "sample" && d.Sample != nil && d.Files > 0:
		return VerifiedSample
	}
	return VerifiedNone
}

func (j *judgment) verification(least VerificationLevel, r *record.Record) {
	if least == "" {
		return
	}
	j.asked = append(j.asked, "verification of the data set")
	if found := levelOf(r); least.rank() < 0 || found.rank() < least.rank() {
		j.refuse(TitleRecord, "dataset.verification.mode", "%q with %d files compared is %q, the policy demands at least %q",
			shorten(r.Dataset.Verification.Mode), r.Dataset.Verification.Files, found, least)
	}
}

// figureOf finds a figure of a record by name.
func figureOf(m *record.Metrics, name string) (record.Figure, bool) {
	switch name {
	case "au":
		return m.AU, true
	case "samples_per_second":
		return m.SamplesPerSecond, true
	case "bytes_per_second":
		return m.BytesPerSecond, true
	}
	f, ok := m.Other[name]
	return f, ok
}

func (j *judgment) figures(bounds map[string]Bounds, r *record.Record) {
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	for _, name := range sortedKeys(bounds) {
		j.asked = append(j.asked, name)
		b, field := bounds[name], "metrics."+name
		f, ok := figureOf(&r.Metrics, name)
		switch {
		case !ok:
			j.refuse(TitleRecord, field, "the policy bounds this figure, and the record does not have it")
		case f.Value == nil:
			j.refuse(TitleRecord, field, "the policy bounds this figure, and it could not be computed: %s", shorten(f.Absent))
		default:
			// Written so that a figure that is no number passes neither.
			if b.Minimum != nil && !(*f.Value >= *b.Minimum) {
				j.refuse(TitleRecord, field, "found %s %s, the policy demands at least %s", number(*f.Value), shorten(f.Unit), number(*b.Minimum))
			}
			if b.Maximum != nil && !(*f.Value <= *b.Maximum) {
				j.refuse(TitleRecord, field, "found %s %s, the policy demands at most %s", number(*f.Value), shorten(f.Unit), number(*b.Maximum))
			}
		}
	}
}

// rules demands that an accepted key registered the run to be judged by one of these editions of rules.
func (j *judgment) rules(accepted []string, v *Verification) {
	if accepted == nil {
		return
	}
	if v.Preregistered == "" {
		j.asked = append(j.asked, "edition of rules")
		j.refuse(TitleRecord, "preregistration", "the policy demands an edition of rules, and no accepted key signed by which this run would be judged")
		return
	}
	j.within(TitlePreregistration, "edition of rules", "rule_edition", v.RuleEdition, accepted)
}

// age judges how old the result is: by the host's clock, and by trusted times where the policy counts from these.
func (j *judgment) age(v *verifier, r *record.Record) {
	p := v.policy
	if p.MaximumAge <= 0 {
		return
	}
	j.asked = append(j.asked, "age by the host's clock")
	now := p.At
	if now.IsZero() {
		now = time.Now()
	}
	finished, err := time.Parse(time.RFC3339Nano, r.Finished)
	switch age := now.Sub(finished); {
	case err != nil:
		j.refuse(TitleRecord, "finished", "%q is no time", shorten(r.Finished))
	case age < -clockTolerance:
		j.refuse(TitleRecord, "finished", "%s is later than now, %s: one of the two clocks is wrong", r.Finished, now.UTC().Format(time.RFC3339))
	case age > p.MaximumAge:
		j.refuse(TitleRecord, "finished", "the run finished %s ago, the policy demands at most %s", age.Round(time.Second), p.MaximumAge)
	}
	if p.AgeFrom.rank() >= AgeFromTrustedTime.rank() {
		j.trustedAge(p.MaximumAge, now, v)
	}
	if p.AgeFrom == AgeFromNotBefore {
		j.bracketAge(v, r, now)
	}
}

// trustedAge counts from the first time at which a third party saw a statement of the result that holds, or the transcript's root.
func (j *judgment) trustedAge(most time.Duration, now time.Time, v *verifier) {
	j.asked = append(j.asked, "age by trusted time")
	first, ok := v.seen, v.isSeen
	if !ok {
		first, ok = firstTime(v.v.Attestations)
	}
	switch age := now.Sub(first.Time); {
	case !ok:
		j.refuse("bundle "+ResultType, "verificationMaterial", "the policy counts age from a trusted time, and no statement of the result that holds carries one")
	case age < -clockTolerance:
		j.refuse("bundle "+ResultType, "verificationMaterial", "it was signed by %s, which is later than now, %s: one of the two clocks is wrong", first, now.UTC().Format(time.RFC3339))
	case age > most:
		j.refuse("bundle "+ResultType, "verificationMaterial", "it was signed by %s, %s ago, the policy demands at most %s", first, age.Round(time.Second), most)
	}
}

// firstTime is the earliest trusted time of a statement of the result that holds.
func firstTime(found []Attestation) (first TrustedTime, ok bool) {
	for _, a := range found {
		for _, t := range a.Times {
			if a.Status == Holds && a.PredicateType == ResultType && (!ok || t.Time.Before(first.Time)) {
				first, ok = t, true
			}
		}
	}
	return first, ok
}

func (j *judgment) tool(p ToolPolicy, t record.Tool) {
	j.among("version", "tool.version", t.Version, p.Versions)
	if p.Minimum != "" {
		j.asked = append(j.asked, "least version")
		switch found := canonicalVersion(t.Version); {
		case found == "":
			j.refuse(TitleRecord, "tool.version", "%q is no semantic version, the policy demands at least %s", shorten(t.Version), p.Minimum)
		case semver.Compare(found, canonicalVersion(p.Minimum)) < 0:
			j.refuse(TitleRecord, "tool.version", "found %s, the policy demands at least %s", shorten(t.Version), p.Minimum)
		}
	}
	j.among("commit", "tool.commit", t.Commit, p.Commits)
	j.among("binary", "tool.binary", t.Binary, p.Binaries)
	if p.Unmodified {
		j.asked = append(j.asked, "unmodified source")
		// A build that does not know its commit does not know either whether it was changed.
		if t.Modified || t.Commit == "" {
			j.refuse(TitleRecord, "tool.modified", "the policy demands a program built from a known commit without changes")
		}
	}
}

// canonicalVersion is a semantic version with its "v", "" for what is none.
func canonicalVersion(s string) string {
	if s != "" && !strings.HasPrefix(s, "v") {
		s = "v" + s
	}
	return semver.Canonical(s)
}

// laterVersion is the greater of two least versions; "" is none.
func laterVersion(a, b string) string {
	if a == "" || (b != "" && semver.Compare(canonicalVersion(b), canonicalVersion(a)) > 0) {
		return b
	}
	return a
}
