package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/record"
)

var update = flag.Bool("update", false, "write the pages as golden files")

// golden compares a page with its file; a changed page is to be read before it is accepted with -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; found:\n%s", path, got)
	}
}

func ptr[T any](v T) *T { return &v }

func fig(v float64, unit string) record.Figure {
	return record.Figure{Value: &v, Unit: unit, Class: record.HostOnly}
}

func hexDigest(c string) string { return "blake3:" + strings.Repeat(c, 64) }

func sample() *record.Record {
	r := &record.Record{
		Schema: record.SchemaName, ID: "20261130T141500Z-3f9c2a", Status: record.StatusComplete,
		Started: "2026-11-30T14:15:00.25Z", Finished: "2026-11-30T14:15:07.75Z",
		Tool: record.Tool{
			Name: "benchpin", Version: "v0.1.0", Commit: "0123456789abcdef0123456789abcdef01234567", Go: "go1.26.8",
			Platform: "linux/amd64", Binary: hexDigest("1"),
		},
		Workload: record.Workload{
			Name: "unet3d_h100", Digest: hexDigest("2"), Overrides: []string{"++workload.train.epochs=2"}, Canonical: json.RawMessage("{}"),
		},
		Dataset: record.Dataset{
			Class: record.Recomputable, Root: hexDigest("3"), Files: 28, Bytes: 4105026880, Generated: true, Seed: "1",
			Verification: record.Verification{
				Class: record.HostOnly, Mode: "before", Files: 28, Bytes: 4105026880, Seconds: 1.5, ResidentBefore: ptr(record.Int(0)),
				ResidentAfter: ptr(record.Int(4096)), IdentityRechecked: 56,
			},
		},
		Plan: record.Plan{
			Class: record.Recomputable, Accelerators: 2, Epochs: 2, Files: 30, SamplesPerFile: 1, Samples: 30, BatchSize: 7, StepsPerEpoch: 2,
			SamplesPerEpoch: 28, SamplesDropped: 2, BytesPerEpoch: 4105026880, BytesTotal: 8210053760, ComputeSeconds: 0.323,
			ExpectedSeconds: 1.292, AUThreshold: 90, RequiredBytesPerSecond: ptr(5.7e9), RequiredFilesPerSecond: ptr(39.01),
			ReadThreads: 4, PrefetchFactor: 2, Order: "numpy", OrderSeed: 123, Checkpoints: 1, CheckpointBytes: 20480, MemoryBytes: 8 << 20,
		},
		Transcript: record.Transcript{Class: record.Recomputable, Root: hexDigest("5"), Entries: 56, Expected: hexDigest("5")},
		Checkpoints: record.Checkpoints{
			Class: record.HostOnly, Fsync: true,
			Saves: []record.Checkpoint{{Name: "global_epoch2_step2", Epoch: 2, Step: 2, Bytes: 21974, Seconds: []float64{0.012, 0.0125}}},
		},
		Environment: record.Environment{
			Class: record.HostOnly,
			Host:  record.Host{Name: "node17", OS: "linux", Kernel: "6.1.0-28-amd64"},
			CPU:   record.CPU{Model: "AMD EPYC 9454P 48-Core Processor", Usable: ptr(96)}, Memory: record.Memory{Total: ptr(record.Int(64 << 30))},
			Folders: []record.Folder{
				{Role: "data", MountPoint: "/data", FileSystem: "xfs", Free: ptr(record.Int(3e12)), Device: record.Device{Name: "nvme0n1", Rotational: ptr(false)}},
				{Role: "results", MountPoint: "/", FileSystem: "nfs4", Device: record.Device{Name: record.UnknownText}},
			},
			ResultsApart: ptr(false),
			Container:    record.Container{Kind: "docker"},
		},
		Metrics: record.Metrics{
			AU: fig(97.528, "%"), Threshold: record.Figure{Value: ptr(90.0), Unit: "%", Class: record.Recomputable}, Met: ptr(true),
			SamplesPerSecond: fig(42.25, "samples/s"), BytesPerSecond: fig(6.194e9, "B/s"),
			Other: map[string]record.Figure{},
		},
	}
	for epoch := 1; epoch <= 2; epoch++ {
		r.Metrics.Epochs = append(r.Metrics.Epochs, record.EpochMetrics{
			Epoch: epoch, Steps: 4, Seconds: fig(0.7, "s"), AU: fig(97.5, "%"), SamplesPerSecond: fig(40, "samples/s"),
			BytesPerSecond: fig(6e9, "B/s"), BytesAsked: fig(4105026880, "B"), BytesDevice: fig(float64(2-epoch)*4105026880, "B"),
		})
	}
	for _, name := range []string{"load", "compute", "barrier", "oversleep", "step"} {
		for i, q := range []string{"_p50", "_p90", "_p99", "_p99_9", "_max"} {
			r.Metrics.Other[name+q] = fig(float64(len(name))*0.00123*float64(i+1), "s")
		}
	}
	for i, name := range []string{"load", "open", "read", "decode", "compute", "oversleep", "barrier"} {
		r.Metrics.Other[name+"_total"] = fig(0.0375*float64(i+1), "s")
	}
	r.Metrics.Other["oversleep_total"] = fig(0.002, "s")
	return r
}

func summary(t testing.TB, r *record.Record, o ...Option) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Summary(&b, r, o...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSummary(t *testing.T) {
	got := summary(t, sample())
	golden(t, "summary.txt", got)
	if n := bytes.Count(got, []byte("\n")); n > 60 {
		t.Errorf("%d lines are more than a page", n)
	}
	coloured := summary(t, sample(), Color)
	if plain := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAll(coloured, nil); bytes.Equal(coloured, got) || !bytes.Equal(plain, got) {
		t.Error("the coloured page is not the plain page with colours")
	}
}

func TestSummaryIncomplete(t *testing.T) {
	r := sample()
	r.Status, r.Reason = record.StatusIncomplete, "interrupted in epoch 2: signal: interrupt"
	r.Metrics.Met = nil
	r.Metrics.AU = record.Figure{Unit: "%", Class: record.HostOnly, Absent: "nothing was run in the window"}
	r.Metrics.Epochs[1].BytesDevice = record.Figure{Unit: "B", Absent: "the kernel counts no bytes for processes"}
	r.Transcript.Root = hexDigest("e")
	r.Plan.RequiredBytesPerSecond = nil
	r.Tool.Commit, r.Dataset.Verification = "", record.Verification{Mode: "none", Class: record.HostOnly}
	r.Dataset.Generated = false
	r.Checkpoints.Fsync = false
	golden(t, "incomplete.txt", summary(t, r))
}

func TestSummaryOfLongRun(t *testing.T) {
	r := sample()
	for len(r.Metrics.Epochs) < 1000 {
		e := r.Metrics.Epochs[0]
		e.Epoch = len(r.Metrics.Epochs) + 1
		r.Metrics.Epochs = append(r.Metrics.Epochs, e)
		r.Checkpoints.Saves = append(r.Checkpoints.Saves, r.Checkpoints.Saves[0])
	}
	got := string(summary(t, r))
	if n := strings.Count(got, "\n"); n > 85 {
		t.Errorf("%d lines", n)
	}
	for _, want := range []string{"\n        1  ", "\n     1000  ", "1000 epochs", "999 checkpoints", "..."} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q", want)
		}
	}
}

func TestSummaryOfSmallRun(t *testing.T) {
	r := sample()
	for i := range r.Metrics.Epochs {
		e := &r.Metrics.Epochs[i]
		e.BytesAsked, e.BytesDevice, e.BytesPerSecond = fig(1234567, "B"), fig(0, "B"), fig(4e6, "B/s")
	}
	if got := string(summary(t, r)); !strings.Contains(got, "MB asked") || !strings.Contains(got, " 1.235 ") {
		t.Errorf("small sizes are lost:\n%s", got)
	}
}

// TestSummaryOfFailedVerification: nothing was verified when verifying after the run failed, and the page does not sound as if it had been.
func TestSummaryOfFailedVerification(t *testing.T) {
	r := sample()
	r.Status, r.Reason = record.StatusIncomplete, "verify the data set: train/img_0.npz: changed"
	r.Dataset.Verification = record.Verification{Mode: "after", Class: record.HostOnly}
	if got := string(summary(t, r)); !strings.Contains(got, "after: FAILED, or not finished") || strings.Contains(got, ": 0 files") {
		t.Errorf("found:\n%s", got)
	}
}

// TestSummaryOfNothing holds that a record that failed before it measured anything prints.
func TestSummaryOfNothing(t *testing.T) {
	r := &record.Record{Status: record.StatusIncomplete, Reason: "no data", Metrics: record.NoMetrics(90, "no step was run")}
	if got := string(summary(t, r)); !strings.Contains(got, "INCOMPLETE, no result: no data") || strings.Contains(got, "Epochs") ||
		!strings.Contains(got, "absent: no step was run") {
		t.Errorf("found:\n%s", got)
	}
	summary(t, new(record.Record))
}

// safe holds that a page cannot move the cursor, hide text or begin a line that it did not mean to.
func safe(t testing.TB, got []byte) {
	t.Helper()
	for _, r := range string(got) {
		if r != '\n' && (!unicode.IsPrint(r) || r == unicode.ReplacementChar) {
			t.Fatalf("page holds %U", r)
		}
	}
}

const attack = "x\x1b[2J\x1b]0;t\a\r\nVERDICT: VERIFIED\u202egnp.\u2028\u0085\x7f\xff\u200b"

// poison puts the attack into every text below v.
func poison(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(attack)
	case reflect.Pointer:
		if !v.IsNil() {
			poison(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			poison(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range v.Len() {
				poison(v.Index(i))
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			element := reflect.New(v.Type().Elem()).Elem()
			element.Set(v.MapIndex(key))
			poison(element)
			v.SetMapIndex(key, element)
		}
	}
}

func TestPagesAreSafe(t *testing.T) {
	r := sample()
	absent := sample()
	absent.Metrics.AU.Value, absent.Metrics.Epochs[0].BytesDevice.Value = nil, nil
	absent.Transcript.Expected = "other"
	for _, r := range []*record.Record{r, absent} {
		poison(reflect.ValueOf(r).Elem())
		safe(t, summary(t, r))
	}
	h := VerdictHeader{Keys: []string{"", ""}, Notes: []string{""}}
	checks := []Check{{OK: true}, {}}
	poison(reflect.ValueOf(&h).Elem())
	poison(reflect.ValueOf(&checks).Elem())
	var b bytes.Buffer
	if err := Verdict(&b, h, checks); err != nil {
		t.Fatal(err)
	}
	safe(t, b.Bytes())
	if n := strings.Count(b.String(), "\nVERDICT: "); n != 1 {
		t.Errorf("%d verdict lines", n)
	}
	b.Reset()
	x := PlanExtras{Warnings: []string{""}, DataFiles: 1}
	poison(reflect.ValueOf(&x).Elem())
	if err := Plan(&b, r.Plan, x); err != nil {
		t.Fatal(err)
	}
	safe(t, b.Bytes())
}

func TestCleanIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		for _, r := range clean(s) {
			if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
				t.Fatalf("%q became %q", s, clean(s))
			}
		}
	})
	if got := clean("Zürich 10 µs 日本"); got != "Zürich 10 µs 日本" {
		t.Errorf("changed to %q", got)
	}
	if n := len([]rune(clean(strings.Repeat("x", 10000)))); n != maxText+1 {
		t.Errorf("%d characters", n)
	}
}

func checks() []Check {
	return []Check{
		{Name: "layout", Class: "C", OK: true, Evidence: "oci-layout and index.json are in canonical form; 9 blobs, no other file"},
		{
			Name: "signatures", Class: "C", OK: true, Evidence: "2 bundles verified with the key given",
			Limits: "who holds the key, and when it was used: a signature binds the archive to a key, not to a person or a time of day",
		},
		{
			Name: "transcript", Class: "C", OK: true, Evidence: "root recomputed from workload, recipe and plan",
			Limits: "that the host really read the bytes: it could have computed the transcript without reading",
		},
	}
}

func with(checks []Check, c Check) []Check { return append(slices.Clone(checks), c) }

func TestVerdict(t *testing.T) {
	h := VerdictHeader{
		Archive: "demo/archive", Run: "20261130T141500Z-3f9c2a", Workload: "quickstart", Status: "complete",
		Result: "AU 97.52 % (threshold 90 %: met), 42.3 samples/s", DataRoot: hexDigest("3"), TranscriptRoot: hexDigest("5"),
		Verification: "before", Keys: []string{"ECDSA P-256, hint YWJj (benchpin.pub)"},
		Notes: []string{"the key was made for this run: it proves only that nothing has changed since."},
	}
	var b bytes.Buffer
	if err := Verdict(&b, h, checks()); err != nil {
		t.Fatal(err)
	}
	golden(t, "verified.txt", b.Bytes())

	bad := checks()
	bad[2].OK, bad[2].Problem = false, "transcript.root: expected "+hexDigest("5")+", found "+hexDigest("6")+"\nranks: expected 2, found 1"
	b.Reset()
	if err := Verdict(&b, h, bad); err != nil {
		t.Fatal(err)
	}
	golden(t, "failed.txt", b.Bytes())

	for _, c := range []struct {
		checks []Check
		want   string
	}{
		{nil, "VERDICT: FAILED: nothing was checked\n"},
		{checks(), "VERDICT: VERIFIED: all 3 checks passed\n"},
		{bad, "VERDICT: FAILED: 1 of 3 checks: transcript\n"},
		{with(bad, Check{Name: "recipe", Unchecked: true}), "VERDICT: FAILED: 1 of 4 checks: transcript; 1 could not be made: recipe\n"},
		{with(checks(), Check{Name: "recipe", Unchecked: true}), "VERDICT: FAILED: 1 of 4 checks could not be made: recipe\n"},
		{with(checks(), Check{Name: "recipe", Unchecked: true, Waived: true}),
			"VERDICT: VERIFIED: 3 of 4 checks passed; not made, and accepted so: recipe\n"},
		{with(bad, Check{Name: "recipe", Unchecked: true, Waived: true}), "VERDICT: FAILED: 1 of 4 checks: transcript\n"},
	} {
		b.Reset()
		if err := Verdict(&b, VerdictHeader{}, c.checks); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(b.String(), "\n"+c.want) {
			t.Errorf("expected the last line %q, found:\n%s", c.want, b.String())
		}
	}
}

func TestPlan(t *testing.T) {
	var b bytes.Buffer
	x := PlanExtras{
		Workload: "unet3d_h100", Digest: hexDigest("2"), DataFiles: 35, DataBytes: 5131283600, Data: "/data/unet3d", Checkpoints: "/ckpt",
		FreeBytes: ptr(int64(3e12)), Verification: "before", Cold: "epoch",
		Warnings: []string{"unet3d.yaml:12: workload.train.foo is no key; the nearest is workload.train.epochs"},
	}
	if err := Plan(&b, sample().Plan, x); err != nil {
		t.Fatal(err)
	}
	golden(t, "plan.txt", b.Bytes())
	b.Reset()
	plan := sample().Plan
	plan.RequiredBytesPerSecond, plan.Checkpoints, plan.SamplesDropped = nil, 0, 0
	if err := Plan(&b, plan, PlanExtras{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"checkpoints        none", "without compute time"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "left out") || strings.Contains(b.String(), "Warnings") {
		t.Errorf("shows what is not there:\n%s", b.String())
	}
}

// checkpointSample is a run that only writes and reads checkpoints.
func checkpointSample() *record.Record {
	r := sample()
	r.Workload.Name, r.Workload.Overrides = "llama3_8b", nil
	r.Plan = record.Plan{Class: record.Recomputable, Accelerators: 8, AUThreshold: 90, Order: "numpy", Checkpoints: 2, CheckpointReads: 2,
		CheckpointBytes: 112425623552, ExpectedSeconds: 20, MemoryBytes: 50400000}
	r.Dataset = record.Dataset{Class: record.Recomputable, Root: hexDigest("6"), Verification: record.Verification{Class: record.HostOnly, Mode: "before"}}
	r.Transcript.Entries = 0
	r.Metrics = record.NoMetrics(90, "the run writes and reads checkpoints only")
	for name, v := range map[string]float64{"save_checkpoint_seconds_mean": 31.5, "save_checkpoint_seconds_max": 33, "load_checkpoint_seconds_mean": 20.25,
		"load_checkpoint_seconds_max": 20.5} {
		r.Metrics.Other[name] = fig(v, "s")
	}
	for name, v := range map[string]float64{"save_checkpoint_bytes_per_second_mean": 3.57e9, "save_checkpoint_bytes_per_second_min": 3.41e9,
		"load_checkpoint_bytes_per_second_mean": 5.55e9, "load_checkpoint_bytes_per_second_min": 5.48e9} {
		r.Metrics.Other[name] = fig(v, "B/s")
	}
	ranks := func(last float64) []float64 { return []float64{1, 2, 3, 4, 5, 6, 7, last} }
	r.Checkpoints = record.Checkpoints{Class: record.HostOnly, Fsync: true,
		Eviction: &record.Eviction{Files: 32, Bytes: 224851300000, ResidentBefore: ptr(record.Int(61e9)), ResidentAfter: ptr(record.Int(0))}}
	for i, name := range []string{"global_epoch1_step1", "global_epoch1_step2"} {
		r.Checkpoints.Saves = append(r.Checkpoints.Saves, record.Checkpoint{Name: name, Epoch: 1, Step: record.Int(i + 1), Bytes: 112425650000,
			Start: ptr(5.0), Seconds: ranks(30 + 3*float64(i)), WriteSeconds: ranks(25), StarvedSeconds: ranks(0)})
		r.Checkpoints.Loads = append(r.Checkpoints.Loads, record.CheckpointLoad{Name: name, Epoch: 1, Step: record.Int(i + 1), Bytes: 112425650000,
			Verified: i == 0, Seconds: ranks(20 + float64(i)/2), WaitedSeconds: ranks(0), DeviceBytes: ptr(record.Int(112425700000))})
	}
	return r
}

func TestCheckpointSummary(t *testing.T) {
	var b bytes.Buffer
	r := checkpointSample()
	if err := Summary(&b, r); err != nil {
		t.Fatal(err)
	}
	golden(t, "checkpoints.txt", b.Bytes())
	b.Reset()
	if err := Plan(&b, r.Plan, PlanExtras{Workload: "llama3_8b", Digest: hexDigest("2"), Checkpoints: "/ckpt", Verification: "before", Cold: "epoch",
		Warnings: []string{"checkpoint.fsync is false"}}); err != nil {
		t.Fatal(err)
	}
	golden(t, "checkpointplan.txt", b.Bytes())
	b.Reset()
	r.Plan.CheckpointReads, r.Checkpoints.Loads, r.Checkpoints.Eviction, r.Metrics.Other = 0, nil, nil, nil
	if err := Summary(&b, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"written            nothing", "Checkpoints (H)"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "read back") || strings.Contains(b.String(), "AU  ") {
		t.Errorf("shows what is not there:\n%s", b.String())
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWriteErrors(t *testing.T) {
	for name, err := range map[string]error{
		"summary": Summary(failing{}, sample()), "verdict": Verdict(failing{}, VerdictHeader{}, nil),
		"plan": Plan(failing{}, sample().Plan, PlanExtras{}),
	} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSummaryEvaluation: the passes for evaluation have their own table, and leave the figures of training alone.
func TestSummaryEvaluation(t *testing.T) {
	r := sample()
	r.Metrics.Evaluation = &record.EvaluationMetrics{
		AU: fig(81.5, "%"), SamplesPerSecond: fig(12, "samples/s"), BytesPerSecond: fig(3e8, "B/s"),
		Passes: []record.EpochMetrics{{Epoch: 2, Steps: 5, Seconds: fig(1.25, "s"), AU: fig(81.5, "%"), SamplesPerSecond: fig(12, "samples/s"),
			BytesPerSecond: fig(3e8, "B/s"), BytesAsked: fig(4e8, "B"), BytesDevice: fig(4e8, "B")}},
	}
	var with, without bytes.Buffer
	if err := Summary(&with, r); err != nil {
		t.Fatal(err)
	}
	r.Metrics.Evaluation = nil
	if err := Summary(&without, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Evaluation, after the epoch named (H)", "81.50 %, 12.0 samples/s over all passes"} {
		if !strings.Contains(with.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, with.String())
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(without.String()), "\n") {
		if !strings.Contains(with.String(), line) {
			t.Errorf("with evaluation the page lost %q", line)
		}
	}
}

// A run that says it took millennia is shown as that, not as the longest time.Duration.
func TestClockOfMillennia(t *testing.T) {
	r := sample()
	r.Started, r.Finished = "2026-11-30T14:15:00Z", "9999-11-30T14:15:00.5Z"
	if s := clock(r); strings.Contains(s, "106,7") || !strings.Contains(s, "2,912,0") {
		t.Error(s)
	}
}

// The public value that an order was drawn with stands before the transcript that has it, with whoever published it.
func TestOrderDrawnWith(t *testing.T) {
	r := sample()
	r.NotBefore = &record.NotBefore{Class: record.HostOnly, Value: "beacon \x1b[2J4711", Source: "beacon.example", Time: "2026-01-01T00:00:00Z"}
	var b bytes.Buffer
	if err := Summary(&b, r); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	at, root := strings.Index(text, "order drawn with the public value"), strings.Index(text, "transcript root")
	if at < 0 || root < at || !strings.Contains(text, "known from 2026-01-01T00:00:00Z: beacon.example") || strings.Contains(text, "\x1b") {
		t.Errorf("found\n%s", b.String())
	}
}
