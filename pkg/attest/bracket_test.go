package attest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/sigstore"
	"github.com/benchpin/benchpin/pkg/attest/sigstore/sigstoretest"
	"github.com/benchpin/benchpin/pkg/record"
)

const rfc3339 = "2006-01-02T15:04:05.999999999Z"

// bracketed is a run of which the record has other parts, with a timestamp of its transcript among its files where there is one.
func bracketed(t *testing.T, change func(*record.Record), answer func(message []byte) []byte) run {
	t.Helper()
	r := newRun(t, change)
	if answer != nil {
		raw := answer(r.record.Transcript.Timestamped())
		must(t, os.WriteFile(filepath.Join(r.input.Folder, record.TimestampName), raw, 0o600))
		r.record.Files = append(r.record.Files, record.File{Name: record.TimestampName, Size: record.Int(len(raw)), Blake3: record.Digest(raw)})
		slices.SortFunc(r.record.Files, func(a, b record.File) int { return strings.Compare(a.Name, b.Name) })
	}
	var err error
	r.input.Record, err = r.record.Canonical()
	must(t, err)
	return r
}

// stampOf asks an authority for a timestamp of a message.
func stampOf(t *testing.T, a *sigstoretest.Timestamps) func([]byte) []byte {
	return func(message []byte) []byte {
		t.Helper()
		answer, err := sigstore.Timestamp(t.Context(), a.URL, message, timestampVerifier(t, a), nil)
		must(t, err)
		return answer
	}
}

// drawn makes a record of a run from 8 s to half a second before a time, drawn with a value that was known so long before it began.
func drawn(at time.Time, ago time.Duration) func(*record.Record) {
	return func(r *record.Record) {
		started := at.Add(-8 * time.Second)
		r.Started, r.Finished = started.UTC().Format(rfc3339), at.Add(-time.Second/2).UTC().Format(rfc3339)
		r.NotBefore = &record.NotBefore{Class: record.HostOnly, Value: "beacon 4711", Source: "beacon.example, round 4711", Time: started.Add(-ago).UTC().Format(rfc3339)}
	}
}

// A public value before the run, and a third party after it, bound the run: the verdict says to which rate, and what is assumed.
func TestTimeBracket(t *testing.T) {
	tsa := sigstoretest.NewTimestamps(t)
	k := newKey(t, attest.Ed25519)
	base := time.Now().Truncate(time.Second)
	tsa.Clock = func() time.Time { return base }
	w := timestampVerifier(t, tsa)
	r := bracketed(t, drawn(base, 10*time.Second), stampOf(t, tsa))
	dir := newArchive(t, r, k)
	v := verify(t, dir, attest.Policy{Witness: w}, k.Public())
	// 18 s, and a second for the granularity of timestamps, for 2 samples and 200 bytes.
	c := checkNamed(t, v, "time-bracket")
	if !v.OK() || c.Class != string(record.HostOnly) || !strings.Contains(c.Evidence, "at most 19 s") || !strings.Contains(c.Evidence, "at least 0.1053 samples/s (2 samples) and 10.53 B/s (200 bytes)") ||
		!strings.Contains(c.Evidence, `"beacon 4711"`) || !strings.Contains(c.Evidence, "where it is to be looked up") || !strings.Contains(c.Limits, "nobody knew the value earlier") {
		t.Errorf("%+v\n%s", c, describe(v))
	}
	// Who trusts nobody has no bound from above; who wrote the policy may know the value himself, and since when.
	v = verify(t, dir, attest.Policy{}, k.Public())
	if c := checkNamed(t, v, "time-bracket"); !v.OK() || c.Class != string(record.HostOnly) || !strings.Contains(c.Evidence, "nobody is trusted who could have made it") {
		t.Errorf("%+v\n%s", c, describe(v))
	}
	known := []attest.KnownValue{{Value: "another", Time: base}, {Value: "beacon 4711", Time: base.Add(-9 * time.Second)}}
	v = verify(t, dir, attest.Policy{Witness: w, NotBefore: known}, k.Public())
	if c := checkNamed(t, v, "time-bracket"); !v.OK() || c.Class != string(record.Witnessed) || !strings.Contains(c.Evidence, "at most 10 s") || !strings.Contains(c.Evidence, "by the policy") {
		t.Errorf("%+v\n%s", c, describe(v))
	}
	wantFault(t, verify(t, dir, attest.Policy{Witness: w, NotBefore: known[:1]}, k.Public()), "policy", fault.Policy, "record.json")
	// A bound that is shorter than what the record itself says is a contradiction, whoever says it.
	known[1].Time = base.Add(-5 * time.Second)
	wantFault(t, verify(t, dir, attest.Policy{Witness: w, NotBefore: known}, k.Public()), "time-bracket", fault.SigningTime, "record.json")
	known[1].Time = base.Add(10 * time.Minute) // by more than clocks differ after the start, and after the timestamp too
	if v := verify(t, dir, attest.Policy{Witness: w, NotBefore: known}, k.Public()); len(checkNamed(t, v, "time-bracket").Faults) != 2 {
		t.Errorf("expected two contradictions:\n%s", describe(v))
	}
	known[1].Time = base.Add(time.Minute)
	wantFault(t, verify(t, dir, attest.Policy{Witness: w, NotBefore: known}, k.Public()), "time-bracket", fault.SigningTime, "record.json")
	// A record that claims nothing has no check.
	for _, c := range verify(t, newArchive(t, newRun(t, nil), k), attest.Policy{Witness: w}, k.Public()).Checks {
		if c.Name == "time-bracket" {
			t.Errorf("found %+v", c)
		}
	}
	wantFault(t, verify(t, newArchive(t, newRun(t, nil), k), attest.Policy{NotBefore: known}, k.Public()), "policy", fault.Policy, "record.json")
}

// What the timestamp of a transcript must be: of these roots, by an authority that is trusted, after the end of the run.
func TestTimeBracketRefused(t *testing.T) {
	tsa, other := sigstoretest.NewTimestamps(t), sigstoretest.NewTimestamps(t)
	k := newKey(t, attest.Ed25519)
	base := time.Now().Truncate(time.Second)
	clock := base
	tsa.Clock = func() time.Time { return clock }
	w := timestampVerifier(t, tsa)
	for name, c := range map[string]struct {
		at     time.Duration
		answer func([]byte) []byte
		class  fault.Class
	}{
		"of another transcript":     {0, func([]byte) []byte { return stampOf(t, tsa)([]byte("benchpin transcript timestamp v1\nroot x\n")) }, fault.Timestamp},
		"of another authority":      {0, stampOf(t, other), fault.Timestamp},
		"no timestamp":              {0, func([]byte) []byte { return []byte("x") }, fault.Timestamp},
		"nothing":                   {0, func([]byte) []byte { return nil }, fault.Timestamp},
		"too large":                 {0, func([]byte) []byte { return make([]byte, 1<<20+1) }, fault.Limit},
		"before the run's start":    {-20 * time.Second, stampOf(t, tsa), fault.SigningTime},
		"before the end of the run": {-3 * time.Second, stampOf(t, tsa), fault.SigningTime},
	} {
		clock = base.Add(c.at)
		dir := newArchive(t, bracketed(t, drawn(base, 10*time.Second), c.answer), k)
		t.Log(name)
		wantFault(t, verify(t, dir, attest.Policy{Witness: w}, k.Public()), "time-bracket", c.class, record.TimestampName)
		if name == "before the run's start" { // and so before the value was known
			wantFault(t, verify(t, dir, attest.Policy{Witness: w}, k.Public()), "time-bracket", fault.SigningTime, "record.json")
		}
	}
	clock = base
	// A value that was not known when the run began is refused by the record itself.
	if _, err := attest.WriteArchive(t.Context(), filepath.Join(t.TempDir(), "a"), bracketed(t, drawn(base, -time.Second), nil).input, k); err == nil || !strings.Contains(err.Error(), "nobody could know the value yet") {
		t.Errorf("a value from the future: %v", err)
	}
	// A timestamp alone bounds from above; so does that of the result's signature.
	r := bracketed(t, func(r *record.Record) { drawn(base, 0)(r); r.NotBefore = nil }, stampOf(t, tsa))
	v := verify(t, newArchive(t, r, k), attest.Policy{Witness: w}, k.Public())
	if c := checkNamed(t, v, "time-bracket"); !v.OK() || c.Class != string(record.Witnessed) || !strings.Contains(c.Evidence, "was there by "+base.UTC().Format(time.RFC3339)) || !strings.Contains(c.Limits, "without a public value the root can be computed at any time") {
		t.Errorf("%+v\n%s", c, describe(v))
	}
	clock = base.Add(31 * time.Second)
	signed := stampedArchive(t, stamped(t, k, tsa), drawn(base, 10*time.Second))
	v = verify(t, signed, attest.Policy{Witness: w}, k.Public())
	if c := checkNamed(t, v, "time-bracket"); !v.OK() || !strings.Contains(c.Evidence, "at most 50 s") {
		t.Errorf("%+v\n%s", c, describe(v))
	}
	// Whose age is counted from the value needs one that whoever verifies knows, and a young one.
	known := []attest.KnownValue{{Value: "beacon 4711", Time: base.Add(-18 * time.Second)}}
	if v := verify(t, signed, attest.Policy{Witness: w, MaximumAge: time.Hour, AgeFrom: attest.AgeFromNotBefore, At: base}, k.Public()); v.OK() || !strings.Contains(describe(v), "is the host's word") {
		t.Errorf("by the host's word:\n%s", describe(v))
	}
	for at, good := range map[time.Duration]bool{time.Minute: true, 3 * time.Hour: false} {
		p := attest.Policy{Witness: w, MaximumAge: time.Hour, AgeFrom: attest.AgeFromNotBefore, At: base.Add(at), NotBefore: known}
		if v := verify(t, signed, p, k.Public()); v.OK() != good || (!good && !strings.Contains(describe(v), "the value was known from")) {
			t.Errorf("after %s:\n%s", at, describe(v))
		}
	}
	p := attest.Policy{Witness: w, MaximumAge: time.Hour, AgeFrom: attest.AgeFromNotBefore, At: base}
	bare := stampedArchive(t, stamped(t, k, tsa), func(r *record.Record) { drawn(base, 0)(r); r.NotBefore = nil })
	if v := verify(t, bare, p, k.Public()); v.OK() || !strings.Contains(describe(v), "the record names none") {
		t.Errorf("no value:\n%s", describe(v))
	}
}

// A pre-registration that was timestamped before the value of the order was known came before the run, whatever the host says of its start.
func TestPreregisteredBeforeTheValue(t *testing.T) {
	tsa := sigstoretest.NewTimestamps(t)
	k := newKey(t, attest.Ed25519)
	base := time.Now().Truncate(time.Second)
	for ago, proven := range map[time.Duration]bool{30 * time.Second: true, 12 * time.Second: false} {
		tsa.Clock = func() time.Time { return base.Add(-ago) }
		r := registeredRun(t, stamped(t, k, tsa), nil, nil)
		drawn(base, 10*time.Second)(r.record) // known 18 s before
		var err error
		r.input.Record, err = r.record.Canonical()
		must(t, err)
		v := verify(t, newArchive(t, r, k), attest.Policy{Witness: timestampVerifier(t, tsa), Preregistered: true}, k.Public())
		if c := checkNamed(t, v, "preregistration"); !v.OK() || strings.Contains(c.Evidence, "the bar came before the run") != proven {
			t.Errorf("%s: %+v\n%s", ago, c, describe(v))
		}
	}
}
