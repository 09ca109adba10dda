package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/environment"
	"github.com/benchpin/benchpin/pkg/pipeline"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

const trainYAML = `
model: {model_size_bytes: 100000}
framework: pytorch
workflow: {train: true, checkpoint: true, evaluation: true}
dataset: {format: npz, num_files_train: 48, num_files_eval: 12, record_length_bytes: 20000, record_length_bytes_stdev: 5000}
reader: {data_loader: pytorch, batch_size: 2, batch_size_eval: 2, read_threads: 2, file_shuffle: seed, sample_shuffle: seed}
train: {epochs: 3, computation_time: {mean: 0.004, stdev: 0.001}}
evaluation: {eval_time: 0.001, epochs_between_evals: 2}
metric: {au: 0.1}
output: {metric: {exclude_start_steps: 1, exclude_end_steps: 1}}
checkpoint: {steps_between_checkpoints: 6, fsync: false}
benchpin: {accelerators: 2, cold_cache: start}
`

const checkpointYAML = `
model: {model_size_bytes: 1000000}
framework: pytorch
workflow: {train: false, checkpoint: true}
checkpoint: {num_checkpoints_write: 3, num_checkpoints_read: 2, fsync: false}
benchpin: {accelerators: 2}
`

// whole takes a workload the whole way and returns the folder of everything.
func whole(t *testing.T, yaml string, set ...string) string {
	t.Helper()
	w, err := workload.Load(workload.Source{Name: "w.yaml", Data: []byte(yaml)}, workload.Options{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	tool, err := environment.Tool("test", "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out, err := pipeline.Pipeline(context.Background(), pipeline.Options{Workload: w, Dir: dir, Tool: tool})
	if err != nil && !errors.Is(err, pipeline.ErrThreshold) {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	runs, err := filepath.Glob(filepath.Join(dir, "runs", "*", "record.json"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("%v, %v", runs, err)
	}
	if err := os.Rename(filepath.Dir(runs[0]), filepath.Join(dir, "run")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestEveryFigureIsExplained: of runs of every kind, no number of the record's metrics and checkpoints lacks an explanation, and each is
// computed here, by code that has nothing in common with the engine's, to the same value.
func TestEveryFigureIsExplained(t *testing.T) {
	for name, c := range map[string]struct {
		yaml string
		set  []string
	}{
		"training":             {trainYAML, nil},
		"many accelerators":    {trainYAML, []string{"benchpin.accelerators=20", "dataset.num_files_train=400", "dataset.num_files_eval=40"}},
		"preprocessing":        {trainYAML, []string{"reader.preprocess_time=0.002", "reader.data_loader=dali"}},
		"streams":              {trainYAML, []string{"dataset.format=tfrecord", "framework=tensorflow", "reader.data_loader=tensorflow", "dataset.record_length_bytes_stdev=0"}},
		"no compute":           {trainYAML, []string{"train.computation_time=0", "workflow.evaluation=false"}},
		"a window of nothing":  {trainYAML, []string{"output.metric.exclude_start_steps=50"}},
		"nothing read":         {trainYAML, []string{"reader.data_loader=synthetic"}},
		"past the page cache":  {trainYAML, []string{"reader.odirect=true", "workflow.checkpoint=false"}},
		"hashed while reading": {trainYAML, []string{"benchpin.verify=inline"}},
		"checkpoints alone":    {checkpointYAML, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := whole(t, c.yaml, c.set...)
			from := []string{"run"}
			if name == "training" {
				from = append(from, "archive")
			}
			for _, from := range from {
				o, err := Open(t.Context(), filepath.Join(dir, from))
				if err != nil {
					t.Fatal(err)
				}
				defer o.Close()
				names, err := List(o.Record)
				if err != nil {
					t.Fatal(err)
				}
				if missing := unnamed(t, o.Record, names); missing != nil {
					t.Errorf("figures that are not in the list: %v", missing)
				}
				var explained []string
				err = o.Each(t.Context(), func(x *Explanation) error {
					n := x.Figure
					explained = append(explained, n)
					if !x.Equal {
						t.Errorf("%s: the record has %v (%s), computed %v", n, x.Recorded, x.Absent, x.Computed)
					}
					if x.Meaning == "" || x.Source == "" || x.Formula == "" || x.Class == "" {
						t.Errorf("%s: the explanation leaves something out: %+v", n, x)
					}
					return nil
				})
				if err != nil || !slices.Equal(explained, names) {
					t.Errorf("%d of %d figures are explained: %v", len(explained), len(names), err)
				}
				t.Logf("%d figures", len(names))
			}
		})
	}
}

// unnamed finds, by another way than List, every number in metrics and checkpoints that no name of the list covers.
func unnamed(t *testing.T, r *record.Record, names []string) (missing []string) {
	t.Helper()
	b, err := json.Marshal(map[string]any{"m": r.Metrics, "c": map[string]any{"checkpoints": r.Checkpoints}})
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	var visit func(path []string, v any)
	visit = func(path []string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				visit(append(path, k), v[k])
			}
		case []any:
			for i, e := range v {
				n := fmt.Sprint(i + 1)
				if last := path[len(path)-1]; last == "ranks" {
					n = fmt.Sprint(i)
				} else if m, ok := e.(map[string]any); ok && m["epoch"] != nil && (last == "epochs" || last == "passes") {
					n = fmt.Sprint(m["epoch"])
				}
				visit(append(path, n), e)
			}
		case float64:
			name := strings.TrimSuffix(strings.Join(path[1:], "."), ".value")
			list := name[:max(0, strings.LastIndexByte(name, '.'))] // an element of a list of numbers is part of its figure
			if last := path[len(path)-1]; last != "epoch" && !slices.Contains(names, name) && !slices.Contains(names, list) {
				missing = append(missing, name)
			}
		}
	}
	visit([]string{"m"}, doc["m"])
	for k, v := range doc["c"].(map[string]any) {
		visit([]string{"c", k}, v)
	}
	return missing
}

// TestOtherFigures: a record whose figure is another is told, and a file of step times that is not the record's is refused.
func TestOtherFigures(t *testing.T) {
	dir := filepath.Join(whole(t, trainYAML), "run")
	o, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	*o.Record.Metrics.AU.Value *= 1 + 1e-11
	*o.Record.Metrics.Epochs[1].BytesAsked.Value++
	for name, want := range map[string]bool{"au": false, "metrics.epochs.2.bytes_asked": false, "epochs.1.bytes_asked": true} {
		x, err := o.Figure(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := x.WriteText(&b); err != nil || x.Equal != want || strings.Contains(b.String(), "THE RECORD SAYS") == want {
			t.Errorf("%s: equal is %v: %v\n%s", name, x.Equal, err, b.String())
		}
	}
	for _, name := range []string{"", "au.", "epochs", "epochs.9.au", "load_p99"} {
		if _, err := o.Figure(t.Context(), name); !errors.Is(err, ErrNoFigure) {
			t.Errorf("%q: %v", name, err)
		} else if name == "load_p99" && !strings.Contains(err.Error(), "other.load_p99") {
			t.Errorf("no hint at other.load_p99: %v", err)
		}
	}
	steps := filepath.Join(dir, "steps.parquet")
	b, err := os.ReadFile(steps)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(steps, b, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir); !errors.Is(err, ErrOther) {
		t.Errorf("other step times: %v", err)
	}
	if _, err := Open(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "neither") {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b any
		want bool
	}{{1.0, 1.0, true}, {1.0, 1 + 1e-13, true}, {1.0, 1 + 1e-11, false}, {nil, nil, true}, {nil, 0.0, false}, {"a", "a", true}, {true, false, false},
		{[]any{1.0, 2.0}, []float64{1, 2}, true}, {[]any{1.0}, []float64{1, 2}, false}, {[]any{1.0}, 1.0, false}, {0.0, 0.0, true}} {
		if got := equal(c.a, c.b); got != c.want {
			t.Errorf("%v and %v: %v", c.a, c.b, got)
		}
	}
	if !reflect.DeepEqual(plain([]any{1.0}), []float64{1}) {
		t.Error("a list of numbers stays as it was")
	}
}
