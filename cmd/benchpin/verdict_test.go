package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
)

// TestVerdictCautions: the verdict says what the page of the result says against its AU.
func TestVerdictCautions(t *testing.T) {
	r := &record.Record{Plan: record.Plan{Epochs: 1}, Metrics: record.NoMetrics(90, "no step was run")}
	caution := func(n string) bool { return strings.HasPrefix(n, "CAUTION: compute sleeps") }
	if h := verdictHeader("a", &attest.Verification{Record: r}); slices.ContainsFunc(h.Notes, caution) {
		t.Errorf("found %q", h.Notes)
	}
	over, compute := 1.0, 4.0
	r.Metrics.Other["oversleep_total"] = record.Figure{Value: &over, Unit: "s"}
	r.Metrics.Other["compute_total"] = record.Figure{Value: &compute, Unit: "s"}
	if h := verdictHeader("a", &attest.Verification{Record: r}); !slices.ContainsFunc(h.Notes, caution) {
		t.Errorf("no caution among %q", h.Notes)
	}
}

// TestVerdictFigures: the verdict writes AU as the page of the result does.
func TestVerdictFigures(t *testing.T) {
	au := 99.9456
	r := &record.Record{Plan: record.Plan{Epochs: 1}, Metrics: record.NoMetrics(90, "no step was run")}
	r.Metrics.AU.Value, r.Metrics.AU.Absent = &au, ""
	if h := verdictHeader("a", &attest.Verification{Record: r}); !strings.HasPrefix(h.Result, "AU 99.94 %, absent: no step was run, ") {
		t.Errorf("found %q", h.Result)
	}
}

// TestVerdictOfOneCheckpoint: one is no plural.
func TestVerdictOfOneCheckpoint(t *testing.T) {
	r := &record.Record{Metrics: record.NoMetrics(90, "no step was run"), Checkpoints: record.Checkpoints{Saves: make([]record.Checkpoint, 1)}}
	if h := verdictHeader("a", &attest.Verification{Record: r}); !strings.HasPrefix(h.Result, "1 checkpoint written, 0 read back") {
		t.Errorf("found %q", h.Result)
	}
}

// TestVerdictOrigin: the verdict names what a data set was derived from, and what its manifest leaves out, and says whose word that is.
func TestVerdictOrigin(t *testing.T) {
	parents := make([]manifest.Parent, 7)
	for i := range parents {
		d := digest.Digest("blake3:" + strings.Repeat("0", 63) + string(rune('0'+i)))
		parents[i] = manifest.Parent{Name: "p" + string(rune('0'+i)) + ".json", Manifest: d, Root: d}
	}
	l, err := manifest.NewLineage("clean.py", parents...)
	if err != nil {
		t.Fatal(err)
	}
	notes := originNotes(&manifest.Header{Lineage: l, Exclude: []string{"*.tmp"}})
	if len(notes) != 2 || !strings.Contains(notes[0], `p4.json (root blake3:`) || strings.Contains(notes[0], "p5.json") ||
		!strings.Contains(notes[0], `2 more by "clean.py": so says the one who pinned it`) || !strings.Contains(notes[1], `"*.tmp"`) {
		t.Errorf("%q", notes)
	}
	if notes := originNotes(&manifest.Header{}); notes != nil {
		t.Errorf("%q", notes)
	}
}
