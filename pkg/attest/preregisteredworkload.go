package attest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	"github.com/benchpin/benchpin/pkg/attest/fault"
)

// PreregisteredWorkload identifies the workload, and holds it.
type PreregisteredWorkload struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
	// Canonical is the workload in full, as a record has it, so that a run that differs is told in what; absent from pre-registrations of versions
	// that named it by its digest alone.
	Canonical json.RawMessage `json:"canonical,omitempty"`
}

// mostDifferences is how many keys of a workload are named that differ.
const mostDifferences = 16

// differences says in what a run's workload differs from this one, which was signed: key by key where it was signed in full.
func (w PreregisteredWorkload) differences(run PreregisteredWorkload) ([]*fault.Fault, error) {
	var faults []*fault.Fault
	add := func(field, expected, found string) {
		faults = append(faults, fault.New(fault.Preregistration, field, fmt.Sprintf(
			"the run is not the one that was registered (expected is what was): expected %s, found %s", shorten(expected), shorten(found))))
	}
	if w.Name != run.Name {
		add("workload.name", strconv.Quote(w.Name), strconv.Quote(run.Name))
	}
	if w.Canonical != nil {
		signed, err := tree(w.Canonical)
		if err != nil {
			return nil, err
		}
		is, err := tree(run.Canonical)
		if err != nil {
			return nil, err
		}
		differ("workload.canonical", signed, is, func(field string, e, f any) {
			if len(faults) < mostDifferences {
				add(field, written(e), written(f))
			}
		})
	}
	if w.Digest != run.Digest && len(faults) == 0 {
		add("workload.digest", w.Digest, run.Digest)
	}
	return faults, nil
}

// notThere stands for the value of a key that is not there.
type notThere struct{}

// differ calls report for every key, list or single value in which two trees differ.
func differ(path string, e, f any, report func(path string, e, f any)) {
	a, isMap := e.(map[string]any)
	b, both := f.(map[string]any)
	if !isMap || !both {
		if !reflect.DeepEqual(e, f) {
			report(path, e, f)
		}
		return
	}
	all := map[string]struct{}{}
	for k := range a {
		all[k] = struct{}{}
	}
	for k := range b {
		all[k] = struct{}{}
	}
	value := func(m map[string]any, k string) any {
		if v, ok := m[k]; ok {
			return v
		}
		return notThere{}
	}
	for _, k := range sortedKeys(all) {
		differ(path+"."+k, value(a, k), value(b, k), report)
	}
}

// written is a value as JSON has it.
func written(v any) string {
	if v == (notThere{}) {
		return "none"
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// tree reads a document, with numbers as they are written.
func tree(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("pre-registration: the workload: %w", err)
	}
	return v, nil
}
