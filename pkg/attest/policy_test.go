package attest_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/record"
)

// Every demand passes where it is met, and is refused with its own field where it is not.
func TestPolicyDemands(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	r := newRun(t, func(r *record.Record) {
		r.Metrics.Other = map[string]record.Figure{
			"load_seconds_p99": {Value: ptr(0.25), Unit: "s", Class: record.HostOnly},
			"barrier_seconds":  {Unit: "s", Class: record.HostOnly, Absent: "one rank"},
		}
	})
	dir := newArchive(t, r, k)
	finished, err := time.Parse(time.RFC3339Nano, r.record.Finished)
	must(t, err)
	other := hexDigest("e")
	for _, c := range []struct {
		name   string
		policy attest.Policy
		field  string // "" for a demand that is met
	}{
		{"signer", attest.Policy{Signers: 1, Predicates: []string{attest.ResultType, attest.ProvenanceType}}, ""},
		{"signers", attest.Policy{Signers: 2}, "is attested under 1 accepted keys, the policy demands 2"},
		{"predicate", attest.Policy{Predicates: []string{"https://example.org/x/v1"}}, "https://example.org/x/v1 is attested under 0"},
		{"root", attest.Policy{DataRoots: []string{other, r.record.Dataset.Root}}, ""},
		{"other root", attest.Policy{DataRoots: []string{other}}, "dataset.root"},
		{"no root", attest.Policy{DataRoots: []string{}}, "dataset.root"},
		{"verified", attest.Policy{Verification: attest.VerifiedAll}, ""},
		{"unknown level", attest.Policy{Verification: "most"}, "dataset.verification.mode"},
		{"figure", attest.Policy{Figures: map[string]attest.Bounds{"au": {Minimum: ptr(97.5), Maximum: ptr(97.5)}, "load_seconds_p99": {Maximum: ptr(0.25)}}}, ""},
		{"low", attest.Policy{Figures: map[string]attest.Bounds{"au": {Minimum: ptr(97.6)}}}, "metrics.au"},
		{"high", attest.Policy{Figures: map[string]attest.Bounds{"load_seconds_p99": {Maximum: ptr(0.2)}}}, "metrics.load_seconds_p99"},
		{"absent", attest.Policy{Figures: map[string]attest.Bounds{"barrier_seconds": {Minimum: ptr(0.0)}}}, "metrics.barrier_seconds"},
		{"unknown", attest.Policy{Figures: map[string]attest.Bounds{"speed": {Minimum: ptr(0.0)}}}, "metrics.speed"},
		{"young", attest.Policy{MaximumAge: time.Hour, At: finished.Add(time.Hour)}, ""},
		{"old", attest.Policy{MaximumAge: time.Hour, At: finished.Add(time.Hour + 1)}, "finished"},
		{"clocks differ little", attest.Policy{MaximumAge: time.Hour, At: finished.Add(-5 * time.Minute)}, ""},
		{"from the future", attest.Policy{MaximumAge: time.Hour, At: finished.Add(-6 * time.Minute)}, "finished"},
		{"version", attest.Policy{Tool: attest.ToolPolicy{Versions: []string{"v0.1.0"}, Minimum: "0.0.9", Unmodified: true}}, ""},
		{"other version", attest.Policy{Tool: attest.ToolPolicy{Versions: []string{"v0.1.1"}}}, "tool.version"},
		{"least version", attest.Policy{Tool: attest.ToolPolicy{Minimum: "v0.10.0"}}, "tool.version"},
		{"commit", attest.Policy{Tool: attest.ToolPolicy{Commits: []string{"abc"}}}, "tool.commit"},
		{"binary", attest.Policy{Tool: attest.ToolPolicy{Binaries: []string{other}}}, "tool.binary"},
		{"workload", attest.Policy{Workload: attest.WorkloadPolicy{Names: []string{"tiny"}, Digests: []string{r.record.Workload.Digest}}}, ""},
		{"workload's name", attest.Policy{Workload: attest.WorkloadPolicy{Names: []string{"small"}}}, "workload.name"},
		{"workload's digest", attest.Policy{Workload: attest.WorkloadPolicy{Digests: []string{other}}}, "workload.digest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := verify(t, dir, c.policy, k.Public())
			last := v.Checks[len(v.Checks)-1]
			if last.Name != "policy" {
				t.Fatalf("the policy was not judged; the last check is %s", last.Name)
			}
			if c.field == "" {
				if !v.OK() {
					t.Errorf("expected a policy that is met:\n%s", describe(v))
				}
				return
			}
			if v.OK() || last.OK || len(last.Faults) != 1 || last.Faults[0].Class != fault.Policy || !strings.Contains(last.Problem, c.field) {
				t.Errorf("expected one refusal that names %q:\n%s", c.field, describe(v))
			}
		})
	}
	if v := verify(t, dir, attest.Policy{}, k.Public()); v.Checks[len(v.Checks)-1].Name == "policy" {
		t.Error("a check was added for a policy that demands nothing")
	}
}

// All reasons are listed, not only the first.
func TestPolicyListsAll(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	dir := newArchive(t, newRun(t, nil), k)
	v := verify(t, dir, attest.Policy{Signers: 3, Predicates: []string{"https://example.org/x/v1", attest.ResultType}, DataRoots: []string{hexDigest("e")},
		Figures: map[string]attest.Bounds{"au": {Minimum: ptr(99.0)}, "speed": {Minimum: ptr(1.0)}}, MaximumAge: time.Second,
		At: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), Tool: attest.ToolPolicy{Versions: []string{"v9.0.0"}, Minimum: "v9.0.0", Commits: []string{"a"},
			Binaries: []string{hexDigest("e")}}, Workload: attest.WorkloadPolicy{Names: []string{"a"}, Digests: []string{hexDigest("e")}}}, k.Public())
	if last := v.Checks[len(v.Checks)-1]; len(last.Faults) != 12 || v.OK() {
		t.Errorf("expected 12 reasons, found %d:\n%s", len(last.Faults), last.Problem)
	}
}

// The levels are ordered. (That a mode says all while files were left out is refused before any policy: record.Check.)
func TestPolicyVerification(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	for _, c := range []struct {
		mode  string
		files record.Int
		level attest.VerificationLevel // the highest that it meets
	}{{"before", 3, attest.VerifiedAll}, {"after", 3, attest.VerifiedAll}, {"none", 0, attest.VerifiedNone}} {
		dir := newArchive(t, newRun(t, func(r *record.Record) {
			r.Dataset.Verification = record.Verification{Class: record.HostOnly, Mode: c.mode, Files: c.files, Bytes: c.files * 100}
			if c.files > 0 {
				r.Dataset.Verification.Seconds, r.Dataset.Verification.IdentityRechecked = 0.5, 2
			}
		}), k)
		met := true
		for _, level := range []attest.VerificationLevel{attest.VerifiedNone, attest.VerifiedSample, attest.VerifiedAll} {
			// Flags that allow more do not loosen what is demanded.
			v := verify(t, dir, attest.Policy{Verification: level, AllowUnverified: true}, k.Public())
			if v.OK() != met {
				t.Errorf("%s with %d files under %q: accepted %v, expected %v\n%s", c.mode, c.files, level, v.OK(), met, describe(v))
			}
			met = met && level != c.level
		}
	}
}

func TestPolicyAnd(t *testing.T) {
	a := attest.Policy{Signers: 2, Predicates: []string{"b", "a"}, DataRoots: []string{"r", "s"}, Verification: attest.VerifiedSample,
		Figures:    map[string]attest.Bounds{"au": {Minimum: ptr(1.0), Maximum: ptr(9.0)}},
		MaximumAge: time.Hour, Tool: attest.ToolPolicy{Minimum: "v1.9.0"}, AllowUnverified: true}
	b := attest.Policy{Predicates: []string{"c", "a"}, DataRoots: []string{"s", "t"}, Verification: attest.VerifiedAll, RequireThresholds: true,
		Figures:    map[string]attest.Bounds{"au": {Minimum: ptr(2.0), Maximum: ptr(10.0)}, "x": {Maximum: ptr(1.0)}},
		MaximumAge: time.Minute, Tool: attest.ToolPolicy{Minimum: "v1.10.0", Commits: []string{"c"}}, Workload: attest.WorkloadPolicy{Names: []string{"w"}}}
	for _, p := range []attest.Policy{a.And(b), b.And(a)} {
		found := fmt.Sprintln(p.Signers, p.Predicates, p.DataRoots, p.Verification, p.RequireThresholds, *p.Figures["au"].Minimum, *p.Figures["au"].Maximum,
			*p.Figures["x"].Maximum, p.MaximumAge, p.Tool.Minimum, p.Tool.Commits, p.Workload.Names, p.AllowUnverified)
		if expected := "2 [a b c] [s] all true 2 9 1 1m0s v1.10.0 [c] [w] true\n"; found != expected {
			t.Errorf("expected %s, found %s", expected, found)
		}
	}
	if *a.Figures["au"].Minimum != 1 || len(a.Predicates) != 2 {
		t.Error("the policies were changed")
	}
	disjoint := attest.Policy{DataRoots: []string{"r"}}.And(attest.Policy{DataRoots: []string{"t"}})
	if disjoint.DataRoots == nil || len(disjoint.DataRoots) != 0 {
		t.Errorf("two lists without a common root must accept none, found %v", disjoint.DataRoots)
	}
}

// A document that says everything is read as what it says.
func TestPolicyDocument(t *testing.T) {
	dir := t.TempDir()
	file, inline, absent := newKey(t, attest.ECDSAP256).Public(), newKey(t, attest.Ed25519).Public(), newKey(t, attest.Ed25519).Public()
	must(t, os.WriteFile(filepath.Join(dir, "lab.pub"), file.PEM(), 0o600))
	text := `# of the lab
policy: benchpin.policy/v1
keys:
  - file: lab.pub
    hint: ` + file.Hint() + `
  - pem: |
      ` + strings.ReplaceAll(strings.TrimSpace(string(inline.PEM())), "\n", "\n      ") + `
  - hint: "` + absent.Hint() + `"
signers: 2
predicates: [https://slsa.dev/provenance/v1]
data: {roots: ["` + hexDigest("1") + `"], verification: all}
figures:
  au: {minimum: 90}
  load_seconds_p99: {maximum: 2.5e-1}
thresholds_met: true
trusted_time: true
maximum_age: 90d
allow_unavailable: true
tool: {versions: [v1.0.0], minimum: v1.0.0, commits: [abc], binaries: [` + hexDigest("2") + `, blake3:` + strings.Repeat("0123abcd", 8) + `], unmodified: true}
workload:
  names: [unet3d]
  digests:
    - ` + hexDigest("3") + `
    - blake3:` + strings.Repeat("0123abcd", 8) + `
`
	must(t, os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(text), 0o600))
	d, err := attest.LoadPolicy(filepath.Join(dir, "policy.yaml"))
	must(t, err)
	must(t, d.Check())
	found := fmt.Sprintln(d.Signers, d.Predicates, d.DataRoots, d.Verification, *d.Figures["au"].Minimum, *d.Figures["load_seconds_p99"].Maximum,
		d.RequireThresholds, d.MaximumAge, d.AllowUnavailable, d.Tool, d.Workload, d.AllowUnverified, d.RequireTime)
	expected := fmt.Sprintln(2, []string{attest.ProvenanceType}, []string{hexDigest("1")}, "all", 90, 0.25, true, 90*24*time.Hour, true,
		attest.ToolPolicy{Versions: []string{"v1.0.0"}, Minimum: "v1.0.0", Commits: []string{"abc"}, Binaries: []string{hexDigest("2"), "blake3:" + strings.Repeat("0123abcd", 8)}, Unmodified: true},
		attest.WorkloadPolicy{Names: []string{"unet3d"}, Digests: []string{hexDigest("3"), "blake3:" + strings.Repeat("0123abcd", 8)}}, false, true)
	if found != expected {
		t.Errorf("expected %s\nfound    %s", expected, found)
	}
	// A hint accepts a key, and does not bring one.
	keys, err := d.Accept([]attest.PublicKey{absent, file})
	must(t, err)
	if len(d.Keys) != 2 || len(keys) != 3 || len(d.Hints) != 3 {
		t.Errorf("expected 2 keys of the document and 3 with the one given, found %d and %d (%d hints)", len(d.Keys), len(keys), len(d.Hints))
	}
	if _, err := d.Accept([]attest.PublicKey{newKey(t, attest.Ed25519).Public()}); err == nil {
		t.Error("a key that the policy does not name was accepted")
	}
	open, err := attest.ParsePolicy("p", []byte("policy: benchpin.policy/v1\n"))
	must(t, err)
	if keys, err := open.Accept([]attest.PublicKey{file}); err != nil || len(keys) != 1 {
		t.Errorf("a policy without keys must take those given: %v, %v", keys, err)
	}
	if keys, err := open.Accept(nil); err != nil || len(keys) != 0 {
		t.Errorf("a policy without keys brings none: %v, %v", keys, err)
	}
}

// Whatever is not understood is refused, with its place.
func TestPolicyRefused(t *testing.T) {
	const head = "policy: benchpin.policy/v1\n"
	deep := strings.Repeat("[", 10_000)
	for _, c := range []struct{ text, at, says string }{
		{"", "p.yaml: ", "empty"},
		{"# nothing\n", "p.yaml: ", "empty"},
		{"signers: 1\n", "p.yaml:1:1: ", "missing properties: 'policy'"},
		{"policy: benchpin.policy/v2\n", "p.yaml:1:1: ", "benchpin.policy/v1"},
		{head + "signer: 2\n", "p.yaml:2:1: ", `the key "signer" does not exist`},
		{head + "data:\n  root: [x]\n", "p.yaml:3:3: ", `"data/root" does not exist`},
		{head + "data:\n  verification: inline\n", "p.yaml:3:3: ", "verification"},
		{head + "data:\n  roots:\n    - blake3:00\n", "p.yaml:4:7: ", "data/roots/0"},
		{head + "data: {roots: []}\n", "p.yaml:2:8: ", "minimum 1 items"},
		{head + "signers: 0\n", "p.yaml:2:1: ", "signers"},
		{head + "signers: two\n", "p.yaml:2:1: ", "expected integer"},
		{head + "signers: 2.0\n", "p.yaml:2:1: ", "signers: expected a whole number without a point, found number 2.0"},
		{"[]\n", "p.yaml:1:1: ", "the document: expected object"},
		{head + "signers: 0x2\n", "p.yaml:2:10: ", "decimal"},
		{head + "signers:\n", "p.yaml:2:", "without a value"},
		{head + "signers: ~\n", "p.yaml:2:10: ", "without a value"},
		{head + "signers: 1\nsigners: 2\n", "p.yaml:3:1: ", "given twice"},
		{head + "thresholds_met: yes\n", "p.yaml:2:1: ", "expected boolean"},
		{head + "figures: {au: {}}\n", "p.yaml:2:11: ", "figures/au"},
		{head + "figures: {au: {minimum: .nan}}\n", "p.yaml:2:25: ", "value was expected"},
		{head + "figures: {au: {minimum: .inf}}\n", "p.yaml:2:25: ", "value was expected"},
		{head + "figures: {au: {minimum: 9, maximum: 8}}\n", "p.yaml:2:11: ", "nothing would pass"},
		{head + "maximum_age: 1w\n", "p.yaml:2:1: ", "maximum_age"},
		{head + "maximum_age: 999999999d\n", "p.yaml:2:1: ", "more than can be counted"},
		{head + "tool: {minimum: new}\n", "p.yaml:2:8: ", "no semantic version"},
		{head + "tool: &t {minimum: v1.0.0}\n", "p.yaml:2:", "anchors"},
		{head + "tool: !!map {minimum: v1.0.0}\n", "p.yaml:2:", "tags"},
		{head + "keys: [{file: absent.pub}]\n", "p.yaml:2:", "absent.pub"},
		{head + "keys: [{pem: nonsense}]\n", "p.yaml:2:", "PEM"},
		{head + "keys: [{pem: a, file: b}]\n", "p.yaml:2:", "keys/0"},
		{head + "keys: []\n", "p.yaml:2:1: ", "minimum 1 items"},
		{head + "---\npolicy: x\n", "p.yaml:3:", "second YAML document"},
		{head + "a: [b\n", "p.yaml:2:", "not YAML"},
		{head + "a: " + deep, "p.yaml:2:", "levels of nesting"},
		{"- a\n", "p.yaml:1:1: ", "expected object"},
		{head + "a: \"\xff\"\n", "p.yaml: ", "UTF-8"},
		{head + "#" + strings.Repeat("x", 256<<10), "p.yaml: ", "at most"},
		{head + "predicates: [" + strings.Repeat("a,", 20_000) + "a]\n", "p.yaml:2:", "values"},
	} {
		_, err := attest.ParsePolicy("p.yaml", []byte(c.text))
		if err == nil || !errors.Is(err, attest.ErrPolicy) || !strings.HasPrefix(err.Error(), c.at) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.60q: expected an error at %s that says %q, found %v", c.text, c.at, c.says, err)
		}
	}
	// All that is wrong is reported, in the order of the file.
	_, err := attest.ParsePolicy("p.yaml", []byte(head+"signers: -1\nx: 1\ndata: {y: 2}\n"))
	if err == nil || strings.Count(err.Error(), "\n") != 2 || strings.Index(err.Error(), ":2:") > strings.Index(err.Error(), ":3:") {
		t.Errorf("expected three errors in order, found %v", err)
	}
}

// A policy is no way around the rule that a verifier told nothing refuses, and neither is a record that cannot be read.
func TestPolicyWithoutRecord(t *testing.T) {
	k, other := newKey(t, attest.Ed25519), newKey(t, attest.Ed25519)
	dir := newArchive(t, newRun(t, nil), k)
	if v := verify(t, dir, attest.Policy{Signers: 1, Predicates: []string{attest.ResultType}}, other.Public()); v.OK() {
		t.Error("an archive that no accepted key signed was accepted")
	}
	entries, err := filepath.Glob(filepath.Join(dir, "blobs", "sha256", "*"))
	must(t, err)
	for _, e := range entries {
		if raw, err := os.ReadFile(e); err == nil && strings.Contains(string(raw[:min(len(raw), 40)]), "benchpin.record/v1") {
			must(t, os.WriteFile(e, raw[1:], 0o600))
		}
	}
	v := verify(t, dir, attest.Policy{DataRoots: []string{hexDigest("1")}}, k.Public())
	if last := v.Checks[len(v.Checks)-1]; last.Name != "policy" || last.OK || last.Faults[0].Class != fault.Unchecked {
		t.Errorf("expected the policy not to be judged:\n%s", describe(v))
	}
}

func TestParseBound(t *testing.T) {
	name, b, err := attest.ParseBound("au>=90.5")
	if err != nil || name != "au" || *b.Minimum != 90.5 || b.Maximum != nil {
		t.Errorf("found %s %v %v", name, b, err)
	}
	if _, b, err = attest.ParseBound("p99<=1e-3"); err != nil || *b.Maximum != 1e-3 || b.Minimum != nil {
		t.Errorf("found %v %v", b, err)
	}
	for _, bad := range []string{"", "au", "au>90", "au=90", ">=1", "au>=", "au>=NaN", "au>=inf", "au>=0x1", "AU>=1", "a b>=1", "au>=1e999"} {
		if _, _, err := attest.ParseBound(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
