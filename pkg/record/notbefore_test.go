package record

import (
	"strings"
	"testing"
)

func TestNotBefore(t *testing.T) {
	good := NotBefore{Class: HostOnly, Value: "beacon 4711", Source: "beacon.example", Time: "2026-01-01T00:00:00Z"}
	for name, c := range map[string]struct {
		change func(*NotBefore)
		field  string
	}{
		"good":          {func(*NotBefore) {}, ""},
		"class":         {func(n *NotBefore) { n.Class = Recomputable }, "not_before.class"},
		"no value":      {func(n *NotBefore) { n.Value = "" }, "not_before.value"},
		"long value":    {func(n *NotBefore) { n.Value = strings.Repeat("x", 1025) }, "not_before.value"},
		"no source":     {func(n *NotBefore) { n.Source = "" }, "not_before.source"},
		"no time":       {func(n *NotBefore) { n.Time = "yesterday" }, "not_before.time"},
		"another zone":  {func(n *NotBefore) { n.Time = "2026-01-01T00:00:00+01:00" }, "not_before.time"},
		"after the run": {func(n *NotBefore) { n.Time = "2999-01-01T00:00:00Z" }, "not_before.time"},
	} {
		r, n := sample(), good
		c.change(&n)
		r.NotBefore = &n
		var found []string
		for _, p := range r.Check() {
			found = append(found, p.Field)
		}
		if want := c.field; (want == "") != (len(found) == 0) || (want != "" && (len(found) != 1 || found[0] != want)) {
			t.Errorf("%s: expected %q, found %q", name, want, found)
		}
		if c.field == "" {
			if err := ValidateSchema(mustCanonical(t, r)); err != nil {
				t.Error(err)
			}
		}
	}
}

// The text that is timestamped is fixed: who verifies makes it again.
func TestTimestamped(t *testing.T) {
	tr := Transcript{Root: "blake3:00"}
	if got := string(tr.Timestamped()); got != "benchpin transcript timestamp v1\nroot blake3:00\n" {
		t.Errorf("%q", got)
	}
	tr.Evaluation = &EvaluationTranscript{Root: "blake3:01"}
	if got := string(tr.Timestamped()); got != "benchpin transcript timestamp v1\nroot blake3:00\nevaluation blake3:01\n" {
		t.Errorf("%q", got)
	}
}
