package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/environment"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// wholeWay takes a workload the whole way and wants the archive to verify. How fast the machine was does not matter.
func wholeWay(t *testing.T, w *workload.Resolved) *Outcome {
	t.Helper()
	tool, err := environment.Tool("test", "")
	if err != nil {
		t.Fatal(err)
	}
	out, err := Pipeline(context.Background(), Options{Workload: w, Dir: t.TempDir(), Tool: tool})
	if err != nil && !errors.Is(err, ErrThreshold) {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	if !out.Verification.OK() {
		t.Errorf("the archive does not verify: %v", out.Verification.Err())
	}
	if out.Record.Status != record.StatusComplete {
		t.Errorf("the record is %s: %s", out.Record.Status, out.Record.Reason)
	}
	return out
}

func ready(t *testing.T, name string, set ...string) *workload.Resolved {
	t.Helper()
	src, err := workload.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	w, err := workload.Load(src, workload.Options{Set: set, Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// smallNames are the small versions of the workloads that come with benchpin.
func smallNames(t *testing.T) (names []string) {
	t.Helper()
	all, err := workload.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if strings.HasSuffix(name, "-mini") {
			names = append(names, name)
		}
	}
	if len(names) < 40 {
		t.Fatalf("only %d small workloads: %v", len(names), names)
	}
	return names
}

// TestSmallWorkloadsGoTheWholeWay: the small version of every workload that comes with benchpin is generated, run, attested and verified.
func TestSmallWorkloadsGoTheWholeWay(t *testing.T) {
	for _, name := range smallNames(t) {
		w := ready(t, name)
		if !w.Workload.Workflow.Train && !w.Workload.Workflow.Checkpoint {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := wholeWay(t, w)
			if saves := len(out.Record.Checkpoints.Saves); (saves > 0) != w.Workload.Workflow.Checkpoint && !strings.HasPrefix(name, "unet3d") {
				t.Errorf("%d checkpoints were written", saves)
			}
		})
	}
}

// TestDatagenMakesWhatRunsRead: the data set that a workload of the name datagen makes is the one that the other small workloads of its
// model run on, by DLIO's two commands.
func TestDatagenMakesWhatRunsRead(t *testing.T) {
	tool, err := environment.Tool("test", "")
	if err != nil {
		t.Fatal(err)
	}
	for generate, run := range map[string]string{"unet3d": "h100", "resnet50": "tf", "cosmoflow": "a100", "retinanet": "mi355", "dlrm": "b200", "flux": "b200"} {
		t.Run(generate, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			set := []string{"dataset.data_folder=" + filepath.Join(dir, "data"), "checkpoint.checkpoint_folder=" + filepath.Join(dir, "checkpoints")}
			rec, err := DLIO(t.Context(), DLIOOptions{Workload: ready(t, generate+"_datagen-mini", set...), Out: filepath.Join(dir, "gen"), Tool: tool})
			if err != nil || rec != nil {
				t.Fatalf("generate: %v, record %v", err, rec)
			}
			rec, err = DLIO(t.Context(), DLIOOptions{Workload: ready(t, generate+"_"+run+"-mini", set...), Out: filepath.Join(dir, "run"), Tool: tool})
			if err != nil || rec.Status != record.StatusComplete {
				t.Fatalf("run: %v", err)
			}
		})
	}
}

// scaled are overrides that make a workload of the peers small: by its numbers only.
func scaled(w *workload.Workload) []string {
	var set []string
	put := func(key string, value any) { set = append(set, fmt.Sprintf("%s=%v", key, value)) }
	put("train.computation_time", 0.005)
	put("metric.au", 0.01)
	if w.Storage.StorageType == "s3" {
		put("storage.storage_type", "local_fs")
		put("dataset.data_folder", "data")
	}
	n := min(w.Dataset.NumSamplesPerFile, 64)
	put("dataset.num_samples_per_file", n)
	put("dataset.record_length_bytes", 3000)
	if w.Dataset.RecordLengthBytesStdev > 0 {
		put("dataset.record_length_bytes_stdev", 700)
	}
	batch := min(w.Reader.BatchSize, 8)
	put("reader.batch_size", batch)
	if w.Train.TotalTrainingSteps > 0 {
		put("train.total_training_steps", 4)
	}
	if w.Checkpoint.StepsBetweenCheckpoints > 0 {
		put("checkpoint.steps_between_checkpoints", 2)
	}
	ranks := 2
	if p := w.Model.Parallelism; p.Tensor*p.Pipeline > 1 {
		ranks = 4
		put("model.parallelism.tensor", 2)
		put("model.parallelism.pipeline", min(p.Pipeline, 2))
	}
	put("benchpin.accelerators", ranks)
	put("dataset.num_files_train", (6*batch*ranks+n-1)/n)
	if w.Model.Type == "transformer" {
		for _, v := range []string{"num_layers=4", "transformer.vocab_size=512", "transformer.hidden_size=64", "transformer.ffn_hidden_size=160",
			"transformer.num_attention_heads=8", "transformer.num_kv_heads=2"} {
			set = append(set, "model."+v)
		}
		put("workflow.train", false)
		put("checkpoint.time_between_checkpoints", 0)
		put("checkpoint.num_checkpoints_write", 2)
		put("checkpoint.num_checkpoints_read", 2)
	} else {
		if !w.Workflow.Train { // a workload that only generates
			put("workflow.train", true)
			put("reader.data_loader", w.Framework)
		}
		put("model.model_size_bytes", min(w.Model.ModelSizeBytes, 100000))
		put("model.optimization_groups", "[1000,800,10]")
		put("model.layer_parameters", "[5000,300]")
	}
	if w.Workflow.Evaluation {
		put("evaluation.eval_time", 0.002)
	}
	return set
}

// TestPeersGoTheWholeWay: every workload file of DLIO and MLPerf Storage, unchanged but for overrides of its numbers, is generated, run,
// attested and verified, where the files are at hand.
func TestPeersGoTheWholeWay(t *testing.T) {
	folder := os.Getenv("BENCHPIN_PEER_WORKLOADS")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "peer-workloads")
	}
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("the peers' workload files are not at hand (set BENCHPIN_PEER_WORKLOADS to their folder): %v", err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			src, err := workload.Find(file)
			if err != nil {
				t.Fatal(err)
			}
			full, err := workload.Load(src, workload.Options{})
			if err != nil {
				t.Fatal(err)
			}
			w, err := workload.Load(src, workload.Options{Set: scaled(full.Workload)})
			if err != nil {
				t.Fatal(err)
			}
			wholeWay(t, w)
		})
	}
}
