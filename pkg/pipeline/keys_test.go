package pipeline

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/datagen"
	"github.com/benchpin/benchpin/pkg/workload"
)

const everything = `
framework: pytorch
workflow: {train: true, evaluation: true, checkpoint: true}
dataset: {format: npz, num_files_train: 16, num_files_eval: 4, record_length_bytes: 2500}
reader: {data_loader: pytorch, batch_size: 2}
train: {epochs: 2, computation_time: 0.01}
checkpoint: {num_checkpoints_write: 2, num_checkpoints_read: 1}
`

// other is a value of a key that is not its default.
func other(t *testing.T, k workload.Key) string {
	t.Helper()
	switch k.Type {
	case "boolean":
		if k.Default != "true" {
			return "true" // the others are false, or say in words what they follow from
		}
		return "false"
	case "word":
		for word := range strings.SplitSeq(k.Allowed, ", ") {
			if word != k.Default {
				return word
			}
		}
	case "text":
		return "x"
	case "integer", "number":
		return "7"
	case "list of integers":
		return "[3]"
	case "list of texts":
		return "[x]"
	}
	t.Fatalf("%s: no other value of the type %s", k.Path, k.Type)
	return ""
}

// TestInertKeysChangeNothing: a key that is said to have no effect changes neither the data set nor the plan, whatever its value.
func TestInertKeysChangeNothing(t *testing.T) {
	resolve := func(set ...string) (datagen.Recipe, *bench.Plan) {
		w, err := workload.Load(workload.Source{Name: "x.yaml", Data: []byte(everything)}, workload.Options{Set: set})
		if err != nil {
			t.Fatal(err)
		}
		r, err := datagen.FromWorkload(w.Workload)
		if err != nil {
			t.Fatalf("%v: %v", set, err)
		}
		p, err := Plan(t.Context(), w.Workload, "")
		if err != nil {
			t.Fatalf("%v: %v", set, err)
		}
		return r, p
	}
	recipe, plan := resolve()
	n := 0
	for _, k := range workload.Keys() {
		if !k.Inert {
			continue
		}
		n++
		set := []string{k.Path + "=" + other(t, k)}
		if strings.HasPrefix(k.Path, "checkpoint.ksm.") {
			set = append(set, "checkpoint.randomize_tensor=false") // it goes with nothing else
		}
		r, p := resolve(set...)
		if !bytes.Equal(r.JSON(), recipe.JSON()) {
			t.Errorf("%s changes the data set: %s", k.Path, r.JSON())
		}
		if !reflect.DeepEqual(p.Plan, plan.Plan) {
			t.Errorf("%s changes the plan: %+v", k.Path, p.Plan)
		}
	}
	if n < 25 {
		t.Errorf("only %d keys are without effect", n)
	}
}

// TestRefusedKeysAreRefused: what docs/dlio.md says to be refused is, with an error that names the key.
func TestRefusedKeysAreRefused(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "dlio.md"))
	if err != nil {
		t.Fatal(err)
	}
	// What else a key needs to be given.
	with := map[string][]string{
		"dataset.parquet.partition_by": {"dataset.format=parquet"},
	}
	value := map[string]string{}
	rows := regexp.MustCompile("(?m)^\\| `([a-z0-9_.]+)` \\| refused \\|").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 4 {
		t.Fatalf("%d rows of refused keys", len(rows))
	}
	for _, row := range rows {
		key, set := row[1], with[row[1]]
		if value[key] == "" {
			value[key] = "x"
		}
		w, err := workload.Load(workload.Source{Name: "x.yaml", Data: []byte(everything)}, workload.Options{Set: append(set, key+"="+value[key])})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Plan(t.Context(), w.Workload, ""); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s=%s: expected an error that names it, found %v", key, value[key], err)
		}
	}
}
