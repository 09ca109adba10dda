package attest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/record"
)

// asking gives a record a workload with these thresholds.
func asking(thresholds string) func(*record.Record) {
	return func(r *record.Record) {
		r.Workload.Canonical = []byte(`{"benchpin":{"thresholds":` + thresholds + `},"train":{"epochs":1}}`)
		r.Workload.Digest = record.Digest(r.Workload.Canonical)
	}
}

// Every threshold of a workload is a test of the test result, and is judged where a policy demands that.
func TestThresholds(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	for name, c := range map[string]struct {
		change                         func(*record.Record)
		result, passed, warned, failed string
		faults                         string
	}{
		"au alone":     {nil, "PASSED", "[au]", "[]", "[]", ""},
		"none asked":   {asking(`{"bytes_per_second":0,"samples_per_second":0}`), "PASSED", "[au]", "[]", "[]", ""},
		"met":          {asking(`{"bytes_per_second":1e6,"samples_per_second":42.25}`), "PASSED", "[au bytes_per_second samples_per_second]", "[]", "[]", ""},
		"one missed":   {asking(`{"bytes_per_second":1e6,"samples_per_second":42.26}`), "FAILED", "[au bytes_per_second]", "[]", "[samples_per_second]", "metrics.samples_per_second"},
		"nobody knows": {asking(`{"frames_per_second":1}`), "WARNED", "[au]", "[frames_per_second]", "[]", "metrics.frames_per_second"},
		"not readable": {asking(`[1]`), "WARNED", "[au]", "[benchpin.thresholds]", "[]", "workload.canonical"},
		"no figure": {func(r *record.Record) {
			asking(`{"samples_per_second":1}`)(r)
			r.Metrics.SamplesPerSecond = record.Figure{Unit: "samples/s", Class: record.HostOnly, Absent: "no steps"}
		}, "WARNED", "[au]", "[samples_per_second]", "[]", "metrics.samples_per_second"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newArchive(t, newRun(t, c.change), k)
			bundles, _ := archiveParts(t, dir)
			verified, err := attest.VerifyBundle(bundles[attest.TestResultType], []attest.PublicKey{k.Public()})
			must(t, err)
			var p map[string]any
			must(t, json.Unmarshal(verified.Statement.Predicate, &p))
			if p["result"] != c.result || fmt.Sprint(p["passedTests"]) != c.passed || fmt.Sprint(p["warnedTests"]) != c.warned || fmt.Sprint(p["failedTests"]) != c.failed {
				t.Errorf("test result %s", verified.Statement.Predicate)
			}
			if v := verify(t, dir, attest.Policy{}, k.Public()); !v.OK() {
				t.Error(describe(v))
			}
			v := verify(t, dir, attest.Policy{RequireThresholds: true}, k.Public())
			if v.OK() != (c.faults == "") {
				t.Error(describe(v))
			}
			for _, f := range checkNamed(t, v, "thresholds").Faults {
				if f.Class != fault.Policy || f.Field != c.faults {
					t.Errorf("expected %q, found %+v", c.faults, f)
				}
			}
		})
	}
}

// A test result of utilisation alone, as earlier versions wrote it, holds where it comes to the same as that of all thresholds, and nowhere else.
func TestFormerTestResult(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	former := map[string]any{"result": "PASSED", "passedTests": []string{"au"}, "warnedTests": []string{}, "failedTests": []string{}}
	for least, holds := range map[string]bool{"42": true, "43": false} {
		r := newRun(t, asking(`{"samples_per_second":`+least+`}`))
		dir := newArchive(t, r, k)
		v := verify(t, dir, attest.Policy{}, k.Public())
		former["configuration"] = []map[string]any{{"name": "workload", "digest": map[string]string{"blake3": strings.TrimPrefix(r.record.Workload.Digest, "blake3:")}}}
		attachStatement(t, dir, v, k, attest.TestResultType, former)
		v = verify(t, dir, attest.Policy{}, k.Public())
		if v.OK() != holds {
			t.Errorf("samples_per_second of at least %s:\n%s", least, describe(v))
		}
		if !holds {
			wantFault(t, v, "predicates", fault.PredicateMismatch, attest.TestResultType)
		}
	}
}
