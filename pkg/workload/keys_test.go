package workload

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

// TestEveryFieldHasItsKey: each field of a Workload is set by exactly one key, and each key has a doc, a type and a default that is
// within its limits.
func TestEveryFieldHasItsKey(t *testing.T) {
	w := new(Workload)
	bound := map[unsafe.Pointer]string{}
	for _, k := range keys(w) {
		p := reflect.ValueOf(k.field).UnsafePointer()
		if other := bound[p]; other != "" {
			t.Errorf("%s and %s set the same field", k.path, other)
		}
		bound[p] = k.path
		if k.doc == "" || k.kind() == "" || k.path != strings.ToLower(k.path) || strings.Contains(k.doc, "|") {
			t.Errorf("%s: doc %q, type %q", k.path, k.doc, k.kind())
		}
		k.reset()
	}
	total := 0
	var visit func(v reflect.Value, at string)
	visit = func(v reflect.Value, at string) {
		if v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[Time]() {
			for i := range v.NumField() {
				visit(v.Field(i), at+"."+v.Type().Field(i).Name)
			}
			return
		}
		total++
		if bound[v.Addr().UnsafePointer()] == "" {
			t.Errorf("no key sets the field%s", at)
		}
	}
	visit(reflect.ValueOf(w).Elem(), " Workload")
	if total != len(bound) {
		t.Errorf("%d fields and %d keys", total, len(bound))
	}
	finish(w)
	if _, err := ParseCanonical(canonical(w)); err != nil {
		t.Errorf("the defaults are not allowed: %v", err)
	}
}

// TestKeyTable: the table of keys in the documentation is what the key table says.
func TestKeyTable(t *testing.T) {
	const file, begin, end = "../../docs/workload.md", "<!-- keys: written by go test ./pkg/workload -run TestKeyTable -update -->\n", "<!-- end of keys -->\n"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(data), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the table of keys", file)
	}
	golden(t, file, []byte(head+begin+keyTable()+end+tail))
}

// TestDocumentedExample: the example in the documentation loads without a warning.
func TestDocumentedExample(t *testing.T) {
	data, err := os.ReadFile("../../docs/workload.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "```yaml\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the documentation has no example")
	}
	if w := load(t, example, Options{Strict: true}).Workload; w.Dataset.NumFilesTrain != 160 || w.Benchpin.Accelerators != 2 {
		t.Errorf("the example has %d files and %d accelerators", w.Dataset.NumFilesTrain, w.Benchpin.Accelerators)
	}
}

// keyTable is the table in Markdown, one for each top section.
func keyTable() string {
	var b strings.Builder
	section := ""
	for _, k := range Keys() {
		if top, _, _ := strings.Cut(k.Path, "."); top != section {
			section = top
			b.WriteString("\n### " + top + "\n\n| key | type | default | allowed | meaning |\n|---|---|---|---|---|\n")
		}
		def := k.Default
		if def != "" && !strings.Contains(def, " ") {
			def = "`" + def + "`"
		}
		b.WriteString("| `" + k.Path + "` | " + k.Type + " | " + def + " | " + k.Allowed + " | " + k.Doc + " |\n")
	}
	return strings.TrimPrefix(b.String(), "\n") + "\n"
}

// TestTimeMean holds the mean of each distribution.
func TestTimeMean(t *testing.T) {
	for _, c := range []struct {
		time Time
		want float64
	}{
		{Time{}, 0}, {Time{Type: TimeConstant, Center: 0.3}, 0.3}, {Time{Type: TimeNormal, Center: 0.3, Stdev: 2}, 0.3},
		{Time{Type: TimeUniform, Min: 1, Max: 2}, 1.5}, {Time{Type: TimeGamma, Shape: 2, Scale: 0.25}, 0.5},
		{Time{Type: TimeExponential, Scale: 0.2}, 0.2}, {Time{Type: TimePoisson, Lam: 3}, 3},
	} {
		if got := c.time.Mean(); got != c.want {
			t.Errorf("%+v: %v, expected %v", c.time, got, c.want)
		}
	}
}

// TestTimeForms: every way to write a time.
func TestTimeForms(t *testing.T) {
	for text, want := range map[string]Time{
		"computation_time: 0.323":                                           {Type: TimeConstant, Center: 0.323},
		"computation_time: 2":                                               {Type: TimeConstant, Center: 2},
		"computation_time: {}":                                              {Type: TimeConstant},
		"computation_time: ":                                                {Type: TimeConstant},
		"computation_time: {mean: 0.5}":                                     {Type: TimeConstant, Center: 0.5},
		"computation_time: {mean: 0.5, stdev: 0.1}":                         {Type: TimeNormal, Center: 0.5, Stdev: 0.1},
		"computation_time: 0.5, computation_time_stdev: 0.1":                {Type: TimeNormal, Center: 0.5, Stdev: 0.1},
		"computation_time: {mean: 0.5}, computation_time_stdev: 0.1":        {Type: TimeNormal, Center: 0.5, Stdev: 0.1},
		"computation_time: {type: normal, mean: 0.5, stdev: 0.1}":           {Type: TimeNormal, Center: 0.5, Stdev: 0.1},
		"computation_time: {type: normal, mean: 0.5, stdev: 0}":             {Type: TimeConstant, Center: 0.5},
		"computation_time: {type: uniform, min: 1, max: 2}":                 {Type: TimeUniform, Min: 1, Max: 2},
		"computation_time: {type: gamma, shape: 2, scale: 3}":               {Type: TimeGamma, Shape: 2, Scale: 3},
		"computation_time: {type: exponential, scale: 3}":                   {Type: TimeExponential, Scale: 3},
		"computation_time: {type: poisson, lam: 3}":                         {Type: TimePoisson, Lam: 3},
		"computation_time: {type: constant, mean: 3}":                       {Type: TimeConstant, Center: 3},
		"computation_time: {type: normal, mean: '${train.x}', stdev: 1e-1}": {Type: TimeNormal, Center: 4, Stdev: 0.1},
	} {
		r := load(t, "train: {x: 4, "+text+"}", Options{})
		if got := r.Workload.Train.ComputationTime; got != want {
			t.Errorf("%s: %+v, expected %+v", text, got, want)
		}
		if len(r.Warnings) != 1 {
			t.Errorf("%s: warnings %v", text, r.Warnings)
		}
		roundTrip(t, r)
	}
	for _, text := range []string{"computation_time_stdev: 1", "computation_time: {type: poisson, lam: 1}, computation_time_stdev: 1",
		"computation_time: {mean: 1, stdev: 2}, computation_time_stdev: 1", "computation_time: {mean: 1, lam: 1}"} {
		if r := load(t, "train: {"+text+"}", Options{}); len(r.Warnings) != 1 || r.Warnings[0].Line != 1 {
			t.Errorf("%s: expected one warning, found %v", text, r.Warnings)
		}
	}
}
