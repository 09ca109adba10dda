package attest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/record"
)

// KnownValue is a public value of which whoever verifies knows since when it is known, such as one that he made up himself.
type KnownValue struct {
	Value string `json:"value"`
	// Time is from when anybody may have known it, RFC 3339.
	Time time.Time `json:"time"`
}

const bracketCheck = "time-bracket"

// knownByPolicy is by whose word a value is known where the policy names it.
const knownByPolicy = "by the policy"

// Two things that a bracket never shows, and that stand on every verdict.
const (
	bracketLimit = "that the samples were read in that time: the transcript's root follows from workload, manifest and value, and who does not read can compute it too; " +
		"that nobody knew the value earlier"
	seenLimit = "that the run took place by then, or was not long over: without a public value the root can be computed at any time, from workload and manifest"
)

// bracket judges the time within which a run must have taken place: after a public value that its order was drawn with was known, and
// before a third party saw its transcript's root. A record that has neither makes no claim, and has no check.
func (v *verifier) bracket() error {
	r := v.v.Record
	if r == nil {
		return nil
	}
	stamped := slices.ContainsFunc(r.Files, func(f record.File) bool { return f.Name == record.TimestampName })
	if r.NotBefore == nil && !stamped {
		return nil
	}
	var faults []*fault.Fault
	last, seen := firstTime(v.v.Attestations)
	defer func() { v.seen, v.isSeen = last, seen }()
	note := ""
	if stamped {
		t, f, judged := v.transcriptTime(r)
		switch {
		case f != nil:
			faults = append(faults, f.In(record.TimestampName))
		case !judged:
			note = "; " + record.TimestampName + " does not count: nobody is trusted who could have made it"
		default:
			if f := possible(r, []TrustedTime{t}); f != nil {
				faults = append(faults, f.In(record.TimestampName))
			}
			if !seen || t.Time.Before(last.Time) {
				last, seen = t, true
			}
		}
	}
	if r.NotBefore == nil {
		if !seen {
			return v.add(bracketCheck, record.HostOnly, "nothing that is trusted says when the transcript's root was there"+note, seenLimit, faults)
		}
		return v.add(bracketCheck, record.Witnessed, "the transcript's root was there by "+last.String()+note, seenLimit, faults)
	}
	first, by, f := v.knownFrom(r.NotBefore)
	// When the value was known is the host's word, unless whoever verifies knows it himself.
	class := record.HostOnly
	if by == knownByPolicy {
		class = record.Witnessed
	}
	if started, err := time.Parse(time.RFC3339Nano, r.Started); f == nil && err == nil && first.After(started.Add(clockTolerance)) {
		faults = append(faults, fault.New(fault.SigningTime, "not_before.value", fmt.Sprintf("it was known from %s %s, and the record says that the run began at %s: one of them is wrong",
			first.UTC().Format(time.RFC3339Nano), by, r.Started)).In(TitleRecord))
	}
	if f != nil {
		return v.add(bracketCheck, record.HostOnly, "the time from which the value was known"+note, bracketLimit, append(faults, f.In(TitleRecord)))
	}
	evidence := fmt.Sprintf("the order of samples, and the transcript's root, were drawn with the value %q, known from %s %s", shorten(r.NotBefore.Value), first.UTC().Format(time.RFC3339Nano), by)
	if !seen {
		return v.add(bracketCheck, record.HostOnly, evidence+"; nothing that is trusted says when the root was there, so that nothing bounds the run from above"+note, bracketLimit, faults)
	}
	span := last.Time.Add(timeGranularity).Sub(first)
	if took, ok := duration(r); ok && span > 0 && span < took {
		faults = append(faults, fault.New(fault.SigningTime, "not_before.time", fmt.Sprintf("between %s, from when the value was known %s, and the time at which the root was there, %s, are at most %s s, "+
			"and the record says that the run took %s s: one of them is wrong", first.UTC().Format(time.RFC3339Nano), by, last, plain(span.Seconds()), plain(took.Seconds()))).In(TitleRecord))
		return v.add(bracketCheck, class, evidence+note, bracketLimit, faults)
	}
	if span <= 0 {
		faults = append(faults, fault.New(fault.SigningTime, "not_before.time", fmt.Sprintf("the value was known from %s, and the root, which was drawn with it, was there by %s: one of them is wrong",
			first.UTC().Format(time.RFC3339Nano), last)).In(TitleRecord))
		return v.add(bracketCheck, class, evidence+note, bracketLimit, faults)
	}
	return v.add(bracketCheck, class, evidence+fmt.Sprintf("; the root was there by %s: the run took at most %s s, and so %s, if the samples were read", last,
		plain(span.Seconds()), provenRate(r, span))+note, bracketLimit, faults)
}

// transcriptTime judges the timestamp of the transcript's roots among the files; judged is false where nobody is trusted who could have made it.
func (v *verifier) transcriptTime(r *record.Record) (t TrustedTime, f *fault.Fault, judged bool) {
	blob := v.v.File(record.TimestampName)
	if blob == nil {
		return t, unchecked("", "it is missing or damaged"), true
	}
	if v.policy.Witness == nil {
		return t, nil, false
	}
	answer, err := blob.Bytes(limits.TimestampBytes)
	if err != nil {
		return t, fault.New(fault.Limit, "", err.Error()), true
	}
	if t, err = v.policy.Witness.Timestamped(answer, r.Transcript.Timestamped()); err != nil {
		return t, asFault(err), true
	}
	return t, nil, true
}

// knownFrom is since when a value is known, and by whose word: that of the policy, where it names values, which then must have this one, or
// else that of the source as the record gives it.
func (v *verifier) knownFrom(n *record.NotBefore) (from time.Time, by string, f *fault.Fault) {
	if v.policy.NotBefore != nil {
		i := slices.IndexFunc(v.policy.NotBefore, func(k KnownValue) bool { return k.Value == n.Value })
		if i >= 0 {
			return v.policy.NotBefore[i].Time, knownByPolicy, nil
		}
	}
	from, err := time.Parse(time.RFC3339Nano, n.Time)
	if err != nil {
		return from, "", fault.New(fault.Record, "not_before.time", fmt.Sprintf("%q is no time", shorten(n.Time)))
	}
	return from, fmt.Sprintf("by its source, %q, where it is to be looked up", shorten(n.Source)), nil
}

// duration is how long the run took, as the record says.
func duration(r *record.Record) (time.Duration, bool) {
	started, err := time.Parse(time.RFC3339Nano, r.Started)
	finished, ferr := time.Parse(time.RFC3339Nano, r.Finished)
	return finished.Sub(started), err == nil && ferr == nil
}

// provenRate is the least rate that follows from how long a run took at most.
func provenRate(r *record.Record, span time.Duration) string {
	samples, bytes := r.Transcript.Entries, r.Plan.BytesTotal
	if e, p := r.Transcript.Evaluation, r.Plan.Evaluation; e != nil && p != nil {
		samples += e.Entries
		bytes += p.BytesTotal
	}
	text := fmt.Sprintf("at least %s samples/s (%d samples)", plain(float64(samples)/span.Seconds()), samples)
	if bytes > 0 {
		text += fmt.Sprintf(" and %s/s (%d bytes)", byteText(float64(bytes)/span.Seconds()), bytes)
	}
	return text
}

// notBefore demands one of the values that a policy names.
func (j *judgment) notBefore(known []KnownValue, r *record.Record) {
	if known == nil {
		return
	}
	j.asked = append(j.asked, "public value")
	if r.NotBefore == nil {
		j.refuse(TitleRecord, "not_before", "the policy demands that the order of samples was drawn with a public value, and the record names none")
		return
	}
	if !slices.ContainsFunc(known, func(k KnownValue) bool { return k.Value == r.NotBefore.Value }) {
		j.refuse(TitleRecord, "not_before.value", "found %q, which is none of the %d values that the policy names", shorten(r.NotBefore.Value), len(known))
	}
}

// bracketAge counts from when the value was known: the run is no older than that.
func (j *judgment) bracketAge(v *verifier, r *record.Record, now time.Time) {
	j.asked = append(j.asked, "age by a public value")
	if r.NotBefore == nil {
		j.refuse(TitleRecord, "not_before", "the policy counts age from a public value that the order was drawn with, and the record names none")
		return
	}
	if v.policy.NotBefore == nil {
		j.refuse(TitleRecord, "not_before.time", "the policy counts age from a public value and names none (not_before): since when another one is known is the host's word")
		return
	}
	from, by, f := v.knownFrom(r.NotBefore)
	switch age := now.Sub(from); {
	case f != nil:
		j.refuse(TitleRecord, f.Field, "%s", f.Detail)
	case age > v.policy.MaximumAge:
		j.refuse(TitleRecord, "not_before.time", "the value was known from %s %s, %s ago, the policy demands at most %s", from.UTC().Format(time.RFC3339), by, age.Round(time.Second), v.policy.MaximumAge)
	}
}

// plain writes a number without an exponent: with four digits, or all of those before the point.
func plain(x float64) string {
	digits := 0
	for y := x; y < 1000 && digits < 9 && x > 0; y *= 10 {
		digits++
	}
	s := strconv.FormatFloat(x, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// byteText writes bytes in a decimal unit.
func byteText(x float64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB"}
	for len(units) > 1 && x >= 1000 {
		x, units = x/1000, units[1:]
	}
	return plain(x) + " " + units[0]
}
