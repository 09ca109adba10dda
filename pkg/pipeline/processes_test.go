package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/cluster/clustertest"
	"github.com/benchpin/benchpin/pkg/environment"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

func testTool(t testing.TB) record.Tool {
	t.Helper()
	tool, err := environment.Tool("test", "")
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// processesYAML has evaluation, checkpoints, files with several samples and more accelerators than the other small workload.
const processesYAML = `
model: {name: small}
framework: pytorch
workflow: {train: true, checkpoint: true, evaluation: true}
dataset: {format: npz, num_files_train: 44, num_files_eval: 21, record_length_bytes: 2500, num_subfolders_train: 3, num_samples_per_file: 2}
reader: {data_loader: pytorch, batch_size: 1, batch_size_eval: 1, read_threads: 1, file_shuffle: seed, sample_shuffle: seed}
train: {epochs: 2, computation_time: 0.002}
evaluation: {eval_time: 0.001}
checkpoint: {steps_between_checkpoints: 2, type: all_ranks}
metric: {au: 0.001}
benchpin: {seed: 7}
`

func processesWorkload(t testing.TB, set ...string) *workload.Resolved {
	t.Helper()
	w, err := workload.Load(workload.Source{Name: "small.yaml", Data: []byte(processesYAML)}, workload.Options{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// generatedFor is a data set in a folder of its own.
func generatedFor(t testing.TB, w *workload.Resolved) Layout {
	t.Helper()
	l := Layout{t.TempDir()}
	if _, err := Generate(context.Background(), GenerateOptions{Workload: w.Workload, Data: l.Data(), Manifest: l.Manifest()}); err != nil {
		t.Fatal(err)
	}
	return l
}

// runOn runs on so many processes and returns what process 0 returned.
func runOn(t testing.TB, l Layout, processes, perNode int, change func(rank int, o *RunOptions), w *workload.Resolved) (RunOptions, *record.Record, error) {
	t.Helper()
	tool, out := testTool(t), filepath.Join(t.TempDir(), "run")
	of := func(world *cluster.World) RunOptions {
		o := RunOptions{Workload: w, Data: l.Data(), Manifest: l.Manifest(), Checkpoints: l.Checkpoints(), Out: out, Journal: filepath.Join(l.Dir, "journal.jsonl"),
			OverwriteCheckpoints: true, Tool: tool, World: world}
		if world.Rank() > 0 {
			o.Out = "" // process 0 says where
		}
		if change != nil {
			change(world.Rank(), &o)
		}
		return o
	}
	var rec *record.Record
	err := clustertest.New(processes, perNode).Run(t.Context(), func(ctx context.Context, world *cluster.World) error {
		r, err := Run(ctx, of(world))
		if world.Rank() == 0 {
			rec = r
		} else if r != nil {
			return fmt.Errorf("process %d returned a record", world.Rank())
		}
		return err
	})
	return RunOptions{Out: out}, rec, err
}

// verifiedArchive packs a result, and verifies the archive.
func verifiedArchive(t testing.TB, l Layout, out string) *attest.Verification {
	t.Helper()
	key, err := attest.GenerateKey(attest.ECDSAP256)
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "archive")
	if _, err := Attest(t.Context(), AttestOptions{Run: out, Manifest: l.Manifest(), Archive: archive, Key: key}); err != nil {
		t.Fatal(err)
	}
	v, err := Verify(t.Context(), archive, []attest.PublicKey{key.Public()}, attest.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

// TestRunOnProcesses: one record for all processes, with the transcript, plan and checkpoints of one process with as many accelerators,
// and its archive verifies.
func TestRunOnProcesses(t *testing.T) {
	l := generatedFor(t, processesWorkload(t))
	for _, c := range []struct{ processes, accelerators, perNode int }{{1, 2, 0}, {2, 2, 0}, {2, 4, 1}, {3, 3, 2}, {3, 15, 1}, {4, 20, 2}} {
		t.Run(fmt.Sprintf("%d x %d", c.processes, c.accelerators/c.processes), func(t *testing.T) {
			for _, mode := range []string{workload.VerifyBefore, workload.VerifyInline} {
				w := processesWorkload(t, fmt.Sprintf("benchpin.accelerators=%d", c.accelerators), "benchpin.verify="+mode)
				_, one, err := runOn(t, l, 1, 0, nil, w)
				if err != nil {
					t.Fatal(err)
				}
				o, rec, err := runOn(t, l, c.processes, c.perNode, nil, w)
				if err != nil {
					t.Fatal(err)
				}
				if rec.Transcript.Root != one.Transcript.Root || !reflect.DeepEqual(rec.Transcript, one.Transcript) || !reflect.DeepEqual(rec.Plan, one.Plan) ||
					rec.Dataset.Root != one.Dataset.Root || rec.Workload.Digest != one.Workload.Digest {
					t.Errorf("%s: transcript %s, plan %+v; of one process %s, %+v", mode, rec.Transcript.Root, rec.Plan, one.Transcript.Root, one.Plan)
				}
				for i, s := range rec.Checkpoints.Saves {
					if s.Digest != one.Checkpoints.Saves[i].Digest || len(s.Seconds) != c.accelerators {
						t.Errorf("checkpoint %s: %+v", s.Name, s)
					}
				}
				if v, want := rec.Dataset.Verification, one.Dataset.Verification; v.Files != want.Files || v.Bytes != want.Bytes || v.IdentityRechecked != want.IdentityRechecked {
					t.Errorf("%s: verified %+v, by one process %+v", mode, v, want)
				}
				if a := verifiedArchive(t, l, o.Out); !a.OK() {
					t.Errorf("%s: the archive does not verify: %v", mode, a.Err())
				}
				left, err := filepath.Glob(filepath.Join(o.Out, ".*"))
				if err != nil || len(left) > 0 {
					t.Errorf("left in the run folder: %v %v", left, err)
				}
				if (rec.Cluster == nil) != (c.processes == 1) {
					t.Fatalf("cluster: %+v", rec.Cluster)
				}
				if k := rec.Cluster; k != nil {
					hosts := 1
					if c.perNode > 0 {
						hosts = (c.processes + c.perNode - 1) / c.perNode
					}
					if len(k.Processes) != c.processes || len(k.Hosts) != hosts || k.Processes[0].Host != "node0" {
						t.Errorf("cluster: %+v", k)
					}
				}
			}
		})
	}
}

// TestProcessesThatDoNotFit: what processes cannot agree on is found before anything else, and named with the process.
func TestProcessesThatDoNotFit(t *testing.T) {
	w := processesWorkload(t, "benchpin.accelerators=3")
	l := generatedFor(t, w)
	elsewhere := generatedFor(t, processesWorkload(t, "benchpin.seed=8"))
	for name, c := range map[string]struct {
		change func(t *testing.T, rank int, o *RunOptions)
		parts  []string
		class  error
	}{
		"workload": {func(t *testing.T, rank int, o *RunOptions) {
			if rank == 2 {
				o.Workload = processesWorkload(t, "benchpin.accelerators=3", "train.epochs=3")
			}
		}, []string{"workload", "process 2"}, cluster.ErrDisagree},
		"version": {func(t *testing.T, rank int, o *RunOptions) {
			if rank == 1 {
				o.Tool.Version = "v0.0.9"
			}
		}, []string{"version of benchpin", "process 1", "v0.0.9"}, cluster.ErrDisagree},
		"data root": {func(t *testing.T, rank int, o *RunOptions) {
			if rank == 1 {
				o.Data, o.Manifest = elsewhere.Data(), elsewhere.Manifest()
			}
		}, []string{"process 1", `seed "8"`}, nil},
		"no manifest": {func(t *testing.T, rank int, o *RunOptions) {
			if rank == 2 {
				o.Manifest += ".gone"
			}
		}, []string{"process 2", "manifest.json.gone"}, nil},
		"no data folder": {func(t *testing.T, rank int, o *RunOptions) {
			if rank == 1 {
				o.Data += "-gone"
			}
		}, []string{"process 1", "data-gone"}, nil},
		"too few accelerators": {func(t *testing.T, rank int, o *RunOptions) {
			o.Workload = processesWorkload(t, "benchpin.accelerators=2")
		}, []string{"2 accelerators on 3 processes"}, bench.ErrImpossible},
		"other processes than asked for": {func(t *testing.T, rank int, o *RunOptions) {
			o.Workload = processesWorkload(t, "benchpin.accelerators=4", "benchpin.accelerators_per_process=2")
		}, []string{"need 2 processes, found 3"}, bench.ErrImpossible},
	} {
		t.Run(name, func(t *testing.T) {
			o, rec, err := runOn(t, l, 3, 1, func(rank int, o *RunOptions) { c.change(t, rank, o) }, w)
			if err == nil || rec != nil {
				t.Fatalf("it ran: %+v", rec)
			}
			for _, p := range c.parts {
				if !strings.Contains(err.Error(), p) {
					t.Errorf("expected %q in the error, found: %v", p, err)
				}
			}
			if c.class != nil && !errors.Is(err, c.class) {
				t.Errorf("expected the class %v, found: %v", c.class, err)
			}
			if _, err := os.Lstat(filepath.Join(o.Out, RecordName)); err == nil {
				t.Error("there is a record")
			}
		})
	}
}

// TestProcessesFindChangedData: a file that one process finds changed is everybody's error, with its class, and nothing runs.
func TestProcessesFindChangedData(t *testing.T) {
	w := processesWorkload(t, "benchpin.accelerators=3")
	l := generatedFor(t, w)
	files, err := filepath.Glob(filepath.Join(l.Data(), "train", "*", "*.npz"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, at := range []int{0, 1, 2, len(files) - 1} {
		b, err := os.ReadFile(files[at])
		if err != nil {
			t.Fatal(err)
		}
		changed := append([]byte{}, b...)
		changed[len(b)/2] ^= 1
		if err := os.WriteFile(files[at], changed, 0o666); err != nil {
			t.Fatal(err)
		}
		errs := make([]error, 3)
		tool, out := testTool(t), filepath.Join(t.TempDir(), "run")
		_ = clustertest.Run(t.Context(), 3, func(ctx context.Context, world *cluster.World) error {
			_, errs[world.Rank()] = Run(ctx, RunOptions{Workload: w, Data: l.Data(), Manifest: l.Manifest(), Checkpoints: l.Checkpoints(), Out: out, Tool: tool, World: world})
			return nil // an error would end the world, and others that are not yet told would hear of that only
		})
		for rank, err := range errs {
			if !errors.Is(err, ErrVerification) || !strings.Contains(err.Error(), filepath.Base(files[at])) {
				t.Errorf("process %d: %v", rank, err)
			}
		}
		if err := os.WriteFile(files[at], b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDealtAgain: a record that deals accelerators out otherwise than its workload is refused.
func TestDealtAgain(t *testing.T) {
	w := processesWorkload(t, "benchpin.accelerators=5")
	plan, err := Plan(t.Context(), w.Workload, "")
	if err != nil {
		t.Fatal(err)
	}
	good := record.Cluster{Processes: []record.Process{{First: 0, Accelerators: 3}, {First: 3, Accelerators: 2}}}
	if f := dealtAgain(&good, plan); f != nil {
		t.Error(f)
	}
	for _, bad := range [][]record.Process{
		{{First: 0, Accelerators: 2}, {First: 2, Accelerators: 3}},
		{{First: 0, Accelerators: 1}, {First: 1, Accelerators: 1}, {First: 2, Accelerators: 3}},
		make([]record.Process, 6),
	} {
		if f := dealtAgain(&record.Cluster{Processes: bad}, plan); f == nil {
			t.Errorf("%+v: accepted", bad)
		}
	}
}

// TestProcessesGenerateAndVerifyData: several processes make a data set together, and find what one finds in it.
func TestProcessesGenerateAndVerifyData(t *testing.T) {
	w := processesWorkload(t)
	one := generatedFor(t, w)
	l, tool := Layout{t.TempDir()}, testTool(t)
	err := clustertest.New(3, 1).Run(t.Context(), func(ctx context.Context, world *cluster.World) error {
		_, err := Generate(ctx, GenerateOptions{Workload: w.Workload, Data: l.Data(), Manifest: l.Manifest(), World: world, Tool: tool})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{l.Manifest(), manifest.EntriesPath(l.Manifest())} {
		a, aerr := os.ReadFile(path)
		b, berr := os.ReadFile(filepath.Join(one.Dir, filepath.Base(path)))
		if aerr != nil || berr != nil || string(a) != string(b) {
			t.Errorf("%s is another than that of one process: %v %v", filepath.Base(path), aerr, berr)
		}
	}
	verify := func(processes int, metadataOnly bool) (report manifest.Report, errs []error) {
		errs = make([]error, processes)
		_ = clustertest.New(processes, 1).Run(t.Context(), func(ctx context.Context, world *cluster.World) error {
			_, r, err := VerifyData(ctx, VerifyDataOptions{Data: l.Data(), Manifest: l.Manifest(), MetadataOnly: metadataOnly, World: world, Tool: tool})
			if errs[world.Rank()] = err; world.Rank() == 0 {
				report = r
			}
			return nil
		})
		return report, errs
	}
	same := func(what string) {
		t.Helper()
		for _, metadataOnly := range []bool{false, true} {
			want, wrong := verify(1, metadataOnly)
			for _, processes := range []int{2, 3, 4} {
				found, errs := verify(processes, metadataOnly)
				if !reflect.DeepEqual(found, want) {
					t.Errorf("%s: %d processes report %+v, one %+v", what, processes, found, want)
				}
				for process, err := range errs {
					if (err == nil) != (wrong[0] == nil) || err != nil && process > 0 && !errors.Is(err, ErrVerification) {
						t.Errorf("%s: process %d of %d: %v, one process: %v", what, process, processes, err, wrong[0])
					}
				}
				if mismatch := (*manifest.MismatchError)(nil); wrong[0] != nil && (!errors.As(errs[0], &mismatch) || errs[0].Error() != wrong[0].Error()) {
					t.Errorf("%s: %d processes: %v, one: %v", what, processes, errs[0], wrong[0])
				}
			}
		}
	}
	same("as it was made")
	files, err := filepath.Glob(filepath.Join(l.Data(), "train", "*", "*.npz"))
	if err != nil || len(files) != 44 {
		t.Fatal(files, err)
	}
	change := func(path string) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	change(files[3])
	same("a file is changed")
	for _, f := range files[10:14] {
		change(f)
	}
	if err := errors.Join(os.Remove(files[20]), os.Remove(files[21]), os.WriteFile(filepath.Join(l.Data(), "extra"), []byte("x"), 0o666)); err != nil {
		t.Fatal(err)
	}
	same("some are changed, missing and there in addition")
	if err := os.Rename(files[30], files[30]+".old"); err != nil {
		t.Fatal(err)
	}
	same("and one is renamed")
}

// TestProcessesGoTheWholeWay: several processes go the way together; the archive is that of all, and later ones find what is there.
func TestProcessesGoTheWholeWay(t *testing.T) {
	tool := testTool(t)
	way := func(processes int, change func(*Options)) (*Outcome, []error) {
		outs, errs := make([]*Outcome, processes), make([]error, processes)
		_ = clustertest.New(processes, 2).Run(t.Context(), func(ctx context.Context, world *cluster.World) error {
			o := Options{Tool: tool, World: world}
			change(&o)
			outs[world.Rank()], errs[world.Rank()] = Pipeline(ctx, o)
			return nil
		})
		for process, out := range outs[1:] {
			if out.Record != nil || out.Verification != nil {
				t.Errorf("process %d has an outcome", process+1)
			}
		}
		t.Cleanup(func() { outs[0].Close() })
		return outs[0], errs
	}
	good := func(out *Outcome, errs []error) *Outcome {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if out.Verification == nil || !out.Verification.OK() || out.Record.Status != record.StatusComplete {
			t.Fatalf("outcome: %+v", out)
		}
		return out
	}
	w := processesWorkload(t, "benchpin.accelerators=6")
	for _, keep := range []bool{true, false} {
		dir := t.TempDir()
		w := w
		if !keep {
			w = processesWorkload(t, "benchpin.accelerators=6", "dataset.keep_files=false")
		}
		three := good(way(3, func(o *Options) { o.Workload, o.Dir = w, dir }))
		one := good(way(1, func(o *Options) { o.Workload, o.Dir, o.OverwriteCheckpoints = w, dir, true }))
		if three.Record.Transcript.Root != one.Record.Transcript.Root || three.Record.Dataset.Root != one.Record.Dataset.Root {
			t.Errorf("three processes read %s of %s, one %s of %s", three.Record.Transcript.Root, three.Record.Dataset.Root, one.Record.Transcript.Root,
				one.Record.Dataset.Root)
		}
		if n := len(three.Record.Cluster.Hosts); n != 2 {
			t.Errorf("%d hosts", n)
		}
		_, err := os.Stat(Layout{dir}.Data())
		if (err == nil) != keep {
			t.Errorf("keep_files %v: %v", keep, err)
		}
		if keep {
			pinnedDir := t.TempDir()
			pinned := good(way(2, func(o *Options) {
				o.Workload, o.Dir, o.Data = processesWorkload(t, "benchpin.accelerators=6", "workflow.evaluation=false"), pinnedDir, Layout{dir}.Data()
			}))
			if pinned.Record.Dataset.Generated {
				t.Error("a folder taken as it is was taken for a generated one")
			}
		}
	}
	elsewhere := t.TempDir()
	// A threshold that is missed is everybody's, and the result is archived all the same.
	missed, errs := way(2, func(o *Options) {
		o.Workload, o.Dir = processesWorkload(t, "benchpin.accelerators=6", "benchpin.thresholds.samples_per_second=1e12"), elsewhere
	})
	for process, err := range errs {
		if !errors.Is(err, ErrThreshold) {
			t.Errorf("process %d: %v", process, err)
		}
	}
	if missed.Archive == "" {
		t.Error("no archive of a run that missed its threshold")
	}
}

// TestProcessesOnlyCheckpoint: checkpoints alone are written and read by several processes as by one.
func TestProcessesOnlyCheckpoint(t *testing.T) {
	w, err := workload.Load(workload.Source{Name: "only.yaml", Data: []byte(`
model: {name: only, type: transformer, num_layers: 3, model_datatype: fp16, optimizer_datatype: fp32, parallelism: {zero_stage: 3},
  transformer: {vocab_size: 160, hidden_size: 64, ffn_hidden_size: 224, num_attention_heads: 8, num_kv_heads: 2}}
framework: pytorch
workflow: {train: false, checkpoint: true}
checkpoint: {num_checkpoints_write: 2, num_checkpoints_read: 2}
benchpin: {accelerators: 5, seed: 9}
`)}, workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := Layout{t.TempDir()}
	_, one, err := runOn(t, l, 1, 0, nil, w)
	if err != nil {
		t.Fatal(err)
	}
	for _, processes := range []int{2, 3, 5} {
		o, rec, err := runOn(t, l, processes, 2, nil, w)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range rec.Checkpoints.Saves {
			if s.Digest != one.Checkpoints.Saves[i].Digest || s.Bytes != one.Checkpoints.Saves[i].Bytes {
				t.Errorf("%d processes: %s: %s of %d bytes, of one process %+v", processes, s.Name, s.Digest, s.Bytes, one.Checkpoints.Saves[i])
			}
		}
		for i, r := range rec.Checkpoints.Loads {
			if !r.Verified || r.Bytes != one.Checkpoints.Loads[i].Bytes || len(r.Seconds) != 5 {
				t.Errorf("%d processes: %+v, of one process %+v", processes, r, one.Checkpoints.Loads[i])
			}
		}
		if a := verifiedArchive(t, Layout{o.Out}, o.Out); !a.OK() {
			t.Errorf("%d processes: the archive does not verify: %v", processes, a.Err())
		}
	}
}

// TestReplayByOneProcess: what several processes carried, each with its number of accelerators, can be repeated by one; started by hand so
// it is refused.
func TestReplayByOneProcess(t *testing.T) {
	w := processesWorkload(t, "benchpin.accelerators=4", "benchpin.accelerators_per_process=2")
	l := generatedFor(t, w)
	_, two, err := runOn(t, l, 2, 0, nil, w)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := runOn(t, l, 1, 0, nil, w); !errors.Is(err, bench.ErrImpossible) || !strings.Contains(err.Error(), "mpirun -np 2") {
		t.Errorf("one process in place of two: %v", err)
	}
	of := record.ReplayOf{Class: record.HostOnly, Archive: "sha256:" + strings.Repeat("0", 64), Record: record.Digest(nil), Run: two.ID}
	_, again, err := runOn(t, l, 1, 0, func(_ int, o *RunOptions) { o.ReplayOf = &of }, w)
	if err != nil {
		t.Fatal(err)
	}
	if again.Transcript.Root != two.Transcript.Root {
		t.Errorf("one process read %s, two %s", again.Transcript.Root, two.Transcript.Root)
	}
}

// TestRedactedHosts: a redacted record numbers hosts and names none, in what was counted on them either.
func TestRedactedHosts(t *testing.T) {
	w := processesWorkload(t, "benchpin.accelerators=3")
	l := generatedFor(t, w)
	o, rec, err := runOn(t, l, 3, 1, func(_ int, o *RunOptions) { o.Redact = true }, w)
	if err != nil {
		t.Fatal(err)
	}
	b, err := rec.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "node1") || len(rec.Cluster.Hosts) != 3 || rec.Cluster.Processes[2].Host != "host 3" {
		t.Errorf("hosts: %+v", rec.Cluster)
	}
	if a := verifiedArchive(t, l, o.Out); !a.OK() {
		t.Errorf("the archive does not verify: %v", a.Err())
	}
}
