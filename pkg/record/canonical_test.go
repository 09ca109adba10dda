package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func ptr[T any](v T) *T { return &v }

func figure(v float64, unit string, c Class) Figure { return Figure{Value: &v, Unit: unit, Class: c} }

func mustCanonical(t testing.TB, r *Record) []byte {
	t.Helper()
	b, err := r.Canonical()
	if err != nil {
		t.Fatalf("Canonical: %v", err)
	}
	return b
}

func TestCanonicalRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Record)
		want   string
	}{
		"NaN in a figure":       {func(r *Record) { r.Metrics.AU.Value = ptr(math.NaN()) }, "metrics.au.value"},
		"infinity in the plan":  {func(r *Record) { r.Plan.ExpectedSeconds = math.Inf(1) }, "plan.expected_seconds"},
		"infinity in DLIO's":    {func(r *Record) { r.Metrics.DLIO["x"] = []float64{1, math.Inf(-1)} }, "metrics.dlio.x[1]"},
		"minus zero":            {func(r *Record) { r.Plan.ComputeSeconds = math.Copysign(0, -1) }, "plan.compute_seconds"},
		"text that is no UTF-8": {func(r *Record) { r.Workload.Overrides = []string{"a", "\xff"} }, "workload.overrides[1]"},
		"key that is no UTF-8":  {func(r *Record) { r.Metrics.Other["\xff"] = Figure{} }, "metrics.other"},
		"long whole number":     {func(r *Record) { r.Metrics.DLIO["x"] = int64(1<<60 + 1) }, "metrics.dlio"},
		"no workload":           {func(r *Record) { r.Workload.Canonical = nil }, "workload.canonical"},
		"workload with newline": {func(r *Record) { r.Workload.Canonical = []byte("{}\n") }, "workload.canonical"},
		"two workloads":         {func(r *Record) { r.Workload.Canonical = []byte("{} {}") }, "workload.canonical"},
		"repeated key":          {func(r *Record) { r.Workload.Canonical = []byte(`{"a":1,"a":2}`) }, `"a"`},
		"other schema":          {func(r *Record) { r.Schema = "benchpin.record/v2" }, "benchpin.record/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := sample()
			c.change(r)
			b, err := r.Canonical()
			if !errors.Is(err, ErrUnwritable) {
				t.Fatalf("expected ErrUnwritable, found %v and %d bytes", err, len(b))
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error does not name %q: %v", c.want, err)
			}
		})
	}
}

func TestCanonicalForm(t *testing.T) {
	r := sample()
	r.Workload.Overrides = nil
	r.Workload.Name = "a<b>&c\u2028"
	b := mustCanonical(t, r)
	for _, want := range []string{
		`"name": "a<b>&c\u2028"`, `"overrides": [],`, `"canonical": ` + string(r.Workload.Canonical) + "\n", "\n}\n",
	} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("canonical form lacks %q", want)
		}
	}
	if r.Workload.Overrides != nil {
		t.Error("Canonical changed the record it was called on")
	}
	if other, err := json.MarshalIndent(json.RawMessage(b), "", "  "); err != nil || len(other) == 0 {
		t.Errorf("another JSON reader does not accept it: %v", err)
	}
}

// TestParseRefuses changes the canonical bytes in ways that leave the meaning, or nearly, as it was.
func TestParseRefuses(t *testing.T) {
	good := string(mustCanonical(t, sample()))
	one := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the sample has no %q", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for name, c := range map[string]struct {
		doc  string
		want error
	}{
		"unknown field":     {one(`"id":`, `"more": 1,`+"\n  "+`"id":`), ErrNotRecord},
		"unknown deep":      {one(`"fsync":`, `"more": 1,`+"\n    "+`"fsync":`), ErrNotRecord},
		"repeated key":      {one(`"id":`, `"id": "x",`+"\n  "+`"id":`), ErrNotCanonical},
		"repeated deep":     {one(`"fsync":`, `"fsync": false,`+"\n    "+`"fsync":`), ErrNotCanonical},
		"key in other case": {one(`"id":`, `"ID":`), ErrNotCanonical},
		"missing field":     {one(`"epochs": 2,`+"\n", ""), ErrNotCanonical},
		"trailing object":   {good + "{}", ErrNotCanonical},
		"trailing newline":  {good + "\n", ErrNotCanonical},
		"no newline":        {strings.TrimSuffix(good, "\n"), ErrNotCanonical},
		"byte order mark":   {"\ufeff" + good, ErrNotRecord},
		"CRLF":              {strings.ReplaceAll(good, "\n", "\r\n"), ErrNotCanonical},
		"tabs":              {strings.ReplaceAll(good, "  ", "\t"), ErrNotCanonical},
		"integer unquoted":  {one(`"files": "28"`, `"files": 28`), ErrNotRecord},
		"leading zero":      {one(`"files": "28"`, `"files": "028"`), ErrNotRecord},
		"plus sign":         {one(`"files": "28"`, `"files": "+28"`), ErrNotRecord},
		"integer escaped":   {one(`"files": "28"`, `"files": "\u00328"`), ErrNotCanonical},
		"int as float":      {one(`"epochs": 2,`, `"epochs": 2.0,`), ErrNotRecord},
		"float in full":     {one(`"compute_seconds": 0.323`, `"compute_seconds": 0.3230`), ErrNotCanonical},
		"float as exponent": {one(`"compute_seconds": 0.323`, `"compute_seconds": 323e-3`), ErrNotCanonical},
		"escaped letter":    {one(`"complete"`, `"\u0063omplete"`), ErrNotCanonical},
		"escaped slash":     {one(`linux/amd64`, `linux\/amd64`), ErrNotCanonical},
		"null list":         {one(`"overrides": []`, `"overrides": null`), ErrNotCanonical},
		"null text":         {one(`"commit": "0123`, `"commit": null, "x": "0123`), ErrNotRecord},
		"other order":       {one("\"id\": \"20261130T141500Z-3f9c2a\",\n  \"status\": \"complete\"", "\"status\": \"complete\",\n  \"id\": \"20261130T141500Z-3f9c2a\""), ErrNotCanonical},
		"invalid UTF-8":     {one("unet3d_h100", "unet3d\xff"), ErrNotRecord},
		"lone surrogate":    {one("unet3d_h100", `\ud800`), ErrNotCanonical},
		"empty":             {"", ErrNotRecord},
		"null":              {"null", ErrNotRecord},
		"a list":            {"[]", ErrNotRecord},
		"cut":               {good[:len(good)/2], ErrNotRecord},
		"other version":     {one("benchpin.record/v1", "benchpin.record/v2"), ErrNotRecord},
		"too deep":          {strings.Repeat("[", 20000), ErrNotRecord},
		"too long":          {strings.Repeat(" ", MaxBytes+1), ErrNotRecord},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Parse([]byte(c.doc))
			if !errors.Is(err, c.want) {
				t.Fatalf("expected %v, found %v (record %v)", c.want, err, r != nil)
			}
		})
	}
	if _, err := Parse([]byte(good)); err != nil {
		t.Fatalf("the sample itself is refused: %v", err)
	}
}

// TestParseNamesTheLine holds that a person can find what is wrong.
func TestParseNamesTheLine(t *testing.T) {
	lines := strings.Split(string(mustCanonical(t, sample())), "\n")
	lines[6] = strings.Replace(lines[6], `":`, `" :`, 1)
	_, err := Parse([]byte(strings.Join(lines, "\n")))
	if err == nil || !strings.Contains(err.Error(), "line 7:") {
		t.Fatalf("expected an error that names line 7, found %v", err)
	}
}

// TestRoundTrip: whatever Canonical writes, Parse reads, and writing that again gives the same bytes.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.Custom(drawRecord).Draw(t, "record")
		b, err := r.Canonical()
		if err != nil {
			t.Fatalf("Canonical: %v", err)
		}
		back, err := Parse(b)
		if err != nil {
			t.Fatalf("Parse: %v", err)
		}
		again, err := back.Canonical()
		if err != nil || !bytes.Equal(b, again) {
			t.Fatalf("written again, it differs (%v)", err)
		}
		if !bytes.Equal(back.Workload.Canonical, r.Workload.Canonical) {
			t.Fatalf("workload bytes changed: %q to %q", r.Workload.Canonical, back.Workload.Canonical)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(mustCanonical(f, sample()))
	f.Add([]byte(`{"schema":"benchpin.record/v1"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err != nil {
			if r != nil {
				t.Fatal("a record beside an error")
			}
			return
		}
		r.Check() // must not panic on any record that parses
		again, err := r.Canonical()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("parsed, but written in other bytes (%v)", err)
		}
	})
}
