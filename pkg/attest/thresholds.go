package attest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/record"
)

// threshold is a least figure that a workload asks for, and what came of it.
type threshold struct {
	name   string
	field  string // of the record
	least  record.Figure
	figure record.Figure
	met    *bool // nil where it could not be judged
}

// thresholdsOf returns the thresholds of a record's workload: accelerator utilisation, which every workload has, and those of
// benchpin.thresholds that ask for anything, sorted by name.
func thresholdsOf(r *record.Record) []threshold {
	all := []threshold{{name: "au", field: "metrics.au_met", least: r.Metrics.Threshold, figure: r.Metrics.AU, met: r.Metrics.Met}}
	least, err := leastOf(r)
	if err != nil {
		// Who holds workloads to their form says what is wrong; here nothing can be judged.
		return append(all, threshold{name: "benchpin.thresholds", field: "workload.canonical", figure: record.Figure{Absent: "the workload is not readable"}})
	}
	figures := map[string]record.Figure{"samples_per_second": r.Metrics.SamplesPerSecond, "bytes_per_second": r.Metrics.BytesPerSecond}
	for _, name := range slices.Sorted(maps.Keys(least)) {
		f, known := figures[name]
		if !known {
			f = record.Figure{Absent: "no figure has this name"}
		}
		at := least[name]
		t := threshold{name: name, field: "metrics." + name, least: record.Figure{Value: &at, Unit: f.Unit}, figure: f}
		if f.Value != nil {
			met := *f.Value >= at
			t.met = &met
		}
		all = append(all, t)
	}
	return all
}

// leastOf reads benchpin.thresholds of a record's workload, without those that ask for nothing.
func leastOf(r *record.Record) (map[string]float64, error) {
	var canonical struct {
		Benchpin struct {
			Thresholds map[string]float64 `json:"thresholds"`
		} `json:"benchpin"`
	}
	if err := json.Unmarshal(r.Workload.Canonical, &canonical); err != nil {
		return nil, err
	}
	maps.DeleteFunc(canonical.Benchpin.Thresholds, func(_ string, least float64) bool { return !(least > 0) })
	return canonical.Benchpin.Thresholds, nil
}

// judgeThresholds refuses, where the policy demands that thresholds are met, every one that was not, or could not be judged.
func (v *verifier) judgeThresholds(r *record.Record) []*fault.Fault {
	if !v.policy.RequireThresholds {
		return nil
	}
	var faults []*fault.Fault
	for _, t := range thresholdsOf(r) {
		if t.met == nil || !*t.met {
			faults = append(faults, fault.New(fault.Policy, t.field, "the policy demands that thresholds are met; "+t.String()).In(TitleRecord))
		}
	}
	return faults
}

func thresholdEvidence(r *record.Record) string {
	all := thresholdsOf(r)
	texts := make([]string, len(all))
	for i, t := range all {
		texts[i] = t.String()
	}
	return strings.Join(texts, "; ")
}

// String says what was asked for, what was found and what that means.
func (t threshold) String() string {
	figure := func(f record.Figure) string {
		if f.Value == nil {
			return "absent (" + shorten(f.Absent) + ")"
		}
		return strconv.FormatFloat(*f.Value, 'f', 2, 64) + " " + shorten(f.Unit)
	}
	verdict := "could not be judged"
	if t.met != nil {
		verdict = map[bool]string{true: "met", false: "not met"}[*t.met]
	}
	name := t.name
	if name == "au" {
		name = "accelerator utilisation"
	}
	return fmt.Sprintf("%s %s against %s: %s", name, figure(t.figure), figure(t.least), verdict)
}

// testResultOf says whether the thresholds were met, each a test by its name. One that could not be judged is a warning: neither passed nor failed.
func testResultOf(r *record.Record, thresholds []threshold) testResult {
	t := testResult{
		Configuration: []resourceDescriptor{{Name: "workload", Digest: blake3Set(r.Workload.Digest)}},
		PassedTests:   []string{}, WarnedTests: []string{}, FailedTests: []string{},
	}
	for _, one := range thresholds {
		switch {
		case one.met == nil:
			t.WarnedTests = append(t.WarnedTests, one.name)
		case *one.met:
			t.PassedTests = append(t.PassedTests, one.name)
		default:
			t.FailedTests = append(t.FailedTests, one.name)
		}
	}
	switch {
	case len(t.FailedTests) > 0:
		t.Result = "FAILED"
	case len(t.WarnedTests) > 0:
		t.Result = "WARNED"
	default:
		t.Result = "PASSED"
	}
	return t
}
