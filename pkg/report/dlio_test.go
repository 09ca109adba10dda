package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// buffers collects files in memory.
type buffers map[string]*bytes.Buffer

type buffer struct{ *bytes.Buffer }

func (buffer) Close() error { return nil }

func (b buffers) create(name string) (io.WriteCloser, error) {
	if b[name] != nil {
		return nil, fmt.Errorf("%s is written twice", name)
	}
	b[name] = new(bytes.Buffer)
	return buffer{b[name]}, nil
}

const ms = int64(time.Millisecond)

// dlioCase is a run of one of DLIO's own workloads as our engine would have recorded it: every step waits 10 ms for its batch and
// computes 90 ms, every checkpoint takes 50 ms, every evaluation has 2 steps of 5 + 15 ms.
func dlioCase(t *testing.T, yaml []byte, ranks int, set ...string) DLIORun {
	t.Helper()
	w, err := workload.Load(workload.Source{Name: "case.yaml", Data: yaml}, workload.Options{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	rec := sample()
	rec.Workload.Canonical = w.Canonical
	rec.Started, rec.Finished = "2026-11-30T14:15:00.25Z", "2026-11-30T14:15:09.75Z"
	rec.Environment.CPU.Online = ptr(2)
	rec.Plan = record.Plan{Accelerators: ranks, CheckpointBytes: 1 << 29}
	rec.Checkpoints = record.Checkpoints{}
	rec.Metrics = record.Metrics{DLIO: map[string]any{}}
	clock := time.Date(2026, 11, 30, 14, 15, 1, 0, time.UTC)
	c, f := &w.Workload.Checkpoint, &w.Workload.Workflow
	seconds := make([]float64, ranks)
	for i := range seconds {
		seconds[i] = 0.05
	}
	if f.Train {
		d := &w.Workload.Dataset
		rec.Plan.Epochs = w.Workload.Train.Epochs
		if f.Evaluation {
			rec.Plan.Evaluation = &record.PlanEvaluation{Steps: 2}
		}
		rec.Plan.StepsPerEpoch = record.Int(d.NumFilesTrain * d.NumSamplesPerFile / w.Workload.Reader.BatchSize / ranks)
		for e := range rec.Plan.Epochs {
			rec.Metrics.Epochs = append(rec.Metrics.Epochs, record.EpochMetrics{Epoch: e + 1})
		}
		rec.Metrics.DLIO = map[string]any{
			"train_au_percentage": []float64{90, 91}, "train_au_mean_percentage": 90.5, "train_au_stdev_percentage": 0.5,
			"train_au_meet_expectation": "success", "train_throughput_samples_per_second": []any{2.0, 3.0},
			"train_throughput_mean_samples_per_second": 2.5, "train_throughput_stdev_samples_per_second": 0.5,
			"train_io_mean_MB_per_second": 1.0, "train_io_stdev_MB_per_second": 0.25,
		}
	}
	var steps []DLIOStep
	at := int64(0)
	save := func(epoch int, step int64) {
		rec.Checkpoints.Saves = append(rec.Checkpoints.Saves, record.Checkpoint{Epoch: epoch, Step: record.Int(step), Seconds: seconds,
			Start: ptr(clock.Sub(time.Date(2026, 11, 30, 14, 15, 0, 250e6, time.UTC)).Seconds() + float64(at)/1e9)})
		at += 50 * ms
	}
	for e := 1; e <= rec.Plan.Epochs; e++ {
		block, begun := 1, at
		for s := int64(1); s <= int64(rec.Plan.StepsPerEpoch); s++ {
			at += 100 * ms
			due := f.Checkpoint && c.StepsBetweenCheckpoints > 0 && s%c.StepsBetweenCheckpoints == 0
			for r := range ranks {
				steps = append(steps, DLIOStep{Epoch: e, Block: block, Rank: r, BlockStart: begun, BlockEnd: at, Load: 10 * ms, Compute: 90 * ms, Proc: 100 * ms})
			}
			if due {
				save(e, s)
				block, begun = block+1, at
			}
		}
		if f.Checkpoint && c.StepsBetweenCheckpoints < 0 {
			save(e, int64(rec.Plan.StepsPerEpoch)+1)
		}
		if f.Evaluation {
			begun = at
			for range 2 {
				at += 20 * ms
				for r := range ranks {
					steps = append(steps, DLIOStep{Epoch: e, Block: 1, Rank: r, Eval: true, BlockStart: begun, BlockEnd: at, Load: 5 * ms, Compute: 15 * ms, Proc: 20 * ms})
				}
			}
		}
	}
	if f.Checkpoint && !f.Train {
		for i := range c.NumCheckpointsWrite {
			save(1, int64(i+1))
		}
		for i := range c.NumCheckpointsRead {
			rec.Checkpoints.Loads = append(rec.Checkpoints.Loads, record.CheckpointLoad{Epoch: 1, Step: record.Int(i + 1), Seconds: seconds, Start: 3 + float64(i)})
		}
	}
	if f.Checkpoint {
		for _, phase := range []string{"save", "load"} {
			if phase == "load" && len(rec.Checkpoints.Loads) == 0 {
				continue
			}
			for _, name := range []string{"io_mean_GB_per_second", "io_stdev_GB_per_second", "duration_mean_seconds", "duration_stdev_seconds"} {
				rec.Metrics.DLIO[phase+"_checkpoint_"+name] = 0.5
			}
		}
		rec.Metrics.DLIO["checkpoint_size_GB"] = 0.5
	}
	return DLIORun{Record: rec, Clock: clock, CPUInfo: map[string]string{"cpu MHz": "2000"}, MemInfo: map[string]string{"MemTotal": "8 kB"},
		Steps: func(yield func(*DLIOStep) error) error {
			for i := range steps {
				if err := yield(&steps[i]); err != nil {
					return err
				}
			}
			return nil
		}}
}

func write(t *testing.T, run DLIORun) buffers {
	t.Helper()
	files := buffers{}
	if err := DLIO(run, files.create); err != nil {
		t.Fatal(err)
	}
	return files
}

// shape is a JSON value without its values: names, nesting and the types that Python reads.
func shape(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for k := range v {
			m[k] = shape(v[k])
		}
		return m
	case []any:
		kinds := map[string]any{}
		for _, e := range v {
			kinds[fmt.Sprint(shape(e))] = shape(e)
		}
		return slices.Collect(maps.Values(kinds))
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "float"
		}
		return "int"
	}
	return fmt.Sprintf("%T", v)
}

func parse(t *testing.T, b []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, b)
	}
	return v
}

// TestFormEqualsDLIO compares names, nesting and types with what DLIO itself wrote for the same workloads.
func TestFormEqualsDLIO(t *testing.T) {
	for name, ranks := range map[string]int{"m_au_known": 1, "m_train_ckpt_steps_np2": 2, "ck_llama_bf16_z0_np2": 2} {
		t.Run(name, func(t *testing.T) {
			read := func(part string) []byte {
				b, err := os.ReadFile(filepath.Join("testdata", "dlio", name+"."+part))
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			files := write(t, dlioCase(t, read("config.yaml"), ranks))
			ours, theirs := parse(t, files[DLIOSummaryName].Bytes()), parse(t, read("summary.json"))
			// What names the host was taken out of theirs.
			for _, key := range []string{"start", "end", "hostname", "host_cpuinfo", "host_meminfo"} {
				if ours[key] == nil {
					t.Errorf("summary.json has no %s", key)
				}
				delete(ours, key)
			}
			if got, want := shape(ours), shape(theirs); !reflect.DeepEqual(got, want) {
				t.Errorf("summary.json has\n%v\nDLIO's has\n%v", got, want)
			}
			ours, theirs = parse(t, files[DLIOStatsName(0)].Bytes()), parse(t, read("0_per_epoch_stats.json"))
			for _, epoch := range theirs {
				// DLIO begins a block after the last checkpoint even when no step is left for it.
				delete(epoch.(map[string]any), "block3")
			}
			if got, want := shape(ours), shape(theirs); !reflect.DeepEqual(got, want) {
				t.Errorf("per_epoch_stats.json has\n%v\nDLIO's has\n%v", got, want)
			}
		})
	}
}

const evaluated = `
model: {name: default}
framework: pytorch
workflow: {train: true, evaluation: true, checkpoint: true}
dataset: {format: npz, num_files_train: 12, num_files_eval: 4, record_length_bytes: 1048576}
reader: {data_loader: pytorch, batch_size: 2, batch_size_eval: 1}
train: {epochs: 2, computation_time: 0.09}
`

// TestDLIOFigures computes a run's figures by hand.
func TestDLIOFigures(t *testing.T) {
	run := dlioCase(t, []byte(evaluated), 2, "benchpin.accelerators=2")
	files := write(t, run)
	for _, name := range []string{"summary.json", "0_output.json", "1_output.json", "0_per_epoch_stats.json", "1_per_epoch_stats.json", "dlio.log"} {
		if files[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	if len(files) != 6 {
		t.Errorf("%d files: %v", len(files), slices.Sorted(maps.Keys(files)))
	}
	var out map[string]json.RawMessage
	if err := json.Unmarshal(files["1_output.json"].Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	var epoch struct {
		Load, Proc, Compute map[string][]float64
		AU, Throughput      map[string]float64
		End                 string
	}
	if err := json.Unmarshal(out["2"], &epoch); err != nil {
		t.Fatal(err)
	}
	if got := epoch.Load["block1"]; !slices.Equal(got, []float64{0.01, 0.01, 0.01}) {
		t.Errorf("load times %v", got)
	}
	if !slices.Equal(epoch.Proc["eval"], []float64{0.02, 0.02}) || !slices.Equal(epoch.Compute["eval"], []float64{0.015, 0.015}) {
		t.Errorf("evaluation: proc %v, compute %v", epoch.Proc["eval"], epoch.Compute["eval"])
	}
	// 3 steps, the first is outside of the window: 180 ms of compute in 200 ms; DLIO's rate leaves out two steps of the block: 1 batch of 2.
	near(t, "AU", epoch.AU["block1"], 90)
	near(t, "throughput", epoch.Throughput["block1"], 1/0.2*2)
	// Of 2 steps of an evaluation the second is in the window: 15 ms in 20; the rate is over both.
	near(t, "AU of the evaluation", epoch.AU["eval"], 75)
	near(t, "throughput of the evaluation", epoch.Throughput["eval"], 2/0.04*1)
	// An epoch is 300 ms of steps, 50 ms of checkpoint, 40 ms of evaluation; the second one ends after 780 ms.
	if epoch.End != "2026-11-30T14:15:01.780000" {
		t.Errorf("the second epoch ends at %s", epoch.End)
	}

	stats := parse(t, files["0_per_epoch_stats.json"].Bytes())["2"].(map[string]any)
	if stats["duration"] != "0.35" || stats["start"] != "2026-11-30T14:15:01.390000" {
		t.Errorf("epoch 2: %v", stats)
	}
	ckpt := stats["save_ckpt1"].(map[string]any)
	if ckpt["duration"] != json.Number("0.05") || ckpt["throughput"] != json.Number("10.0") || ckpt["start"] != "2026-11-30T14:15:01.690000" {
		t.Errorf("checkpoint: %v", ckpt)
	}

	summary := parse(t, files["summary.json"].Bytes())
	for key, want := range map[string]string{
		"num_accelerators": "2", "num_files_train": "12", "num_files_eval": "4", "num_samples_per_file": "1", "epochs": "2",
		"data_size_per_host_GB": "0.01171875", "start": "2026-11-30T14:15:00.250000", "end": "2026-11-30T14:15:09.750000", "hostname": "node17",
		"host_cpu_count": "[2]", "host_memory_GB": "[64.0]", "potential_caching": "[1]",
	} {
		if got := fmt.Sprint(summary[key]); got != want {
			t.Errorf("summary.json: %s is %s, expected %s", key, got, want)
		}
	}

	log := files["dlio.log"].String()
	for _, line := range []string{
		"[OUTPUT] 2026-11-30T14:15:00.250000 Running DLIO [Training & Evaluation & Checkpointing] with 2 process(es)\n",
		"Max steps per epoch: 3 = 1 * 12 / 2 / 2 (samples per file * num files / batch size / comm size)\n",
		"Steps per eval: 2 = 1 * 4 / 1 / 2 (samples per file * num files / batch size eval / comm size)\n",
		"[OUTPUT] 2026-11-30T14:15:01.390000 Starting epoch 2: 3 steps expected\n",
		"Ending block 1 - 3 steps completed in 0.30 s\n",
		"Epoch 2 - Block 1 [Training] Accelerator Utilization [AU] (%): 90.0000\n",
		"Epoch 2 - Block 1 [Training] Throughput (samples/second): 20.0000\n",
		"Epoch 2 - Block 1 [Training] Computation time per step (second): 0.0900+/-0.0000 (set value: 0.09)\n",
		"Finished saving checkpoint 1 for epoch 2 in 0.0500 s; Throughput: 10.0000 GB/s\n",
		"Epoch 2 [Eval] Accelerator Utilization [AU] (%): 75.0000\n",
		"Ending epoch 2 - 3 steps completed in 0.35 s\n",
		"[METRIC] Training Accelerator Utilization [AU] (%): 90.5000 (0.5000)\n",
		"[METRIC] train_au_meet_expectation: success\n",
	} {
		if !strings.Contains(log, line) {
			t.Errorf("the log lacks %q; it is\n%s", line, log)
		}
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Abs(want) {
		t.Errorf("%s is %v, expected %v", what, got, want)
	}
}

// TestRanksInGroups: a run whose step times do not fit into memory is read once for every group of ranks, with the same files.
func TestRanksInGroups(t *testing.T) {
	run := dlioCase(t, []byte(evaluated), 3, "benchpin.accelerators=3")
	whole := write(t, run)
	passes := 0
	steps := run.Steps
	run.Steps = func(yield func(*DLIOStep) error) error { passes++; return steps(yield) }
	if write(t, run); passes != 1 {
		t.Errorf("the steps were read %d times, expected once", passes)
	}
	passes = 0
	planned := run.Record.Plan.StepsPerEpoch
	run.Record.Plan.StepsPerEpoch = stepsInMemory
	grouped := buffers{}
	if err := DLIO(run, grouped.create); err != nil {
		t.Fatal(err)
	}
	run.Record.Plan.StepsPerEpoch = planned
	if passes != 3 {
		t.Errorf("the steps were read %d times, expected once for each rank", passes)
	}
	for rank := range 3 {
		if a, b := whole[DLIOStatsName(rank)], grouped[DLIOStatsName(rank)]; !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("rank %d:\n%s\nalone:\n%s", rank, a, b)
		}
	}
}

// TestIncompleteRunHasOnlyALog: no tool shall take it for a result.
func TestIncompleteRunHasOnlyALog(t *testing.T) {
	run := dlioCase(t, []byte(evaluated), 2)
	run.Record.Status, run.Record.Reason = record.StatusIncomplete, "interrupted"
	files := write(t, run)
	if len(files) != 1 || !strings.Contains(files[DLIOLogName].String(), "[ERROR] 2026-11-30T14:15:09.750000 interrupted\n") {
		t.Errorf("files %v, log\n%s", slices.Sorted(maps.Keys(files)), files[DLIOLogName])
	}
}

// TestWrongSteps: steps that the plan does not have, and stores that fail, are errors that say what.
func TestWrongSteps(t *testing.T) {
	run := dlioCase(t, []byte(evaluated), 1)
	full := errors.New("disk full")
	for _, c := range []struct {
		want   string
		change func(*DLIORun)
		create func(string) (io.WriteCloser, error)
	}{
		{"epoch 3, block 1", func(r *DLIORun) {
			r.Steps = func(yield func(*DLIOStep) error) error { return yield(&DLIOStep{Epoch: 3, Block: 1}) }
		}, buffers{}.create},
		{"step times: torn", func(r *DLIORun) {
			r.Steps = func(func(*DLIOStep) error) error { return errors.New("torn") }
		}, buffers{}.create},
		{"workload of the record", func(r *DLIORun) { r.Record = sample() }, buffers{}.create},
		{"summary.json: disk full", func(*DLIORun) {}, func(string) (io.WriteCloser, error) { return nil, full }},
		{"no values of type", func(r *DLIORun) { r.Record.Metrics.DLIO["train_au_percentage"] = struct{}{} }, buffers{}.create},
	} {
		broken := run
		c.change(&broken)
		if err := DLIO(broken, c.create); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("expected an error with %q, found %v", c.want, err)
		}
	}
}

// TestNumbersAsPython: floats look like floats, and what is no JSON is null.
func TestNumbersAsPython(t *testing.T) {
	var b bytes.Buffer
	o := dlioObject{{"a", 1.0}, {"b", []float64{0.25, math.NaN(), math.Inf(1), 1e-7, 1e300}}, {"c", []int{1}}, {"d", "<\"é\n"}, {"e", dlioObject{}},
		{"f", []any{}}, {"g", true}, {"h", map[string]string{"y": "2", "x": "1"}}, {"i", dlioNanos{1500000000}}}
	if err := writeDLIO(&b, o); err != nil {
		t.Fatal(err)
	}
	const want = `{
    "a": 1.0,
    "b": [
        0.25,
        null,
        null,
        1e-07,
        1e+300
    ],
    "c": [
        1
    ],
    "d": "\u003c\"é\n",
    "e": {},
    "f": [],
    "g": true,
    "h": {
        "x": "1",
        "y": "2"
    },
    "i": [
        1.5
    ]
}`
	if b.String() != want {
		t.Errorf("found\n%s", b.String())
	}
}
