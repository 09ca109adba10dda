package workload

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files and the generated parts of the documentation anew")

// load resolves text and fails the test where it does not resolve.
func load(t *testing.T, text string, o Options) *Resolved {
	t.Helper()
	r, err := Load(Source{Name: "w.yaml", Data: []byte(text)}, o)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return r
}

// golden compares got with a file, which -update writes.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; go test -update writes it anew\ngot:  %s\nwant: %s", file, got, want)
	}
}

// TestCases resolves every workload in testdata: its canonical form and its warnings are frozen.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("expected at least 6 cases, found %d (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Load(Source{Name: filepath.Base(file), Data: data}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".json", r.Canonical)
			var warnings strings.Builder
			for _, w := range r.Warnings {
				warnings.WriteString(w.String() + "\n")
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".warnings", []byte(warnings.String()))
			roundTrip(t, r)
		})
	}
}

// roundTrip reads both written forms of r again and expects the same workload.
func roundTrip(t testing.TB, r *Resolved) {
	t.Helper()
	w, err := ParseCanonical(r.Canonical)
	if err != nil {
		t.Fatalf("ParseCanonical: %v", err)
	}
	if !bytes.Equal(canonical(w), r.Canonical) {
		t.Fatal("the canonical form changes when it is read and written")
	}
	again, err := Load(Source{Name: "shown.yaml", Data: r.YAML()}, Options{Strict: true})
	if err != nil {
		t.Fatalf("the shown workload does not load: %v\n%s", err, r.YAML())
	}
	if again.Digest != r.Digest {
		t.Fatalf("the shown workload is another one:\n%s\n%s\n%s", r.YAML(), r.Canonical, again.Canonical)
	}
	if again, err = Load(Source{Name: "composed.yaml", Data: r.Composed}, Options{}); err != nil {
		t.Fatalf("the composed workload does not load: %v\n%s", err, r.Composed)
	}
	if again.Digest != r.Digest {
		t.Fatalf("the composed workload is another one:\n%s\n%s\n%s", r.Composed, r.Canonical, again.Canonical)
	}
}

// peerFolder is where the workload files of the peers are; a test skips without them.
func peerFolder(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("BENCHPIN_PEER_WORKLOADS")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "peer-workloads")
	}
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("the peers' workload files are not at hand (set BENCHPIN_PEER_WORKLOADS to their folder): %v", err)
	}
	return folder
}

// TestPeerFiles resolves the workload files of the peers, unchanged, where they are at hand.
func TestPeerFiles(t *testing.T) {
	folder := peerFolder(t)
	n := 0
	for _, dir := range []string{folder, filepath.Join(folder, "..", "dlio-runs")} {
		err := filepath.WalkDir(dir, func(file string, e os.DirEntry, err error) error {
			if err != nil || filepath.Ext(file) != ".yaml" {
				return err
			}
			n++
			t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
				src, err := Find(file)
				if err != nil {
					t.Fatal(err)
				}
				r, err := Load(src, Options{})
				if err != nil {
					t.Fatal(err)
				}
				roundTrip(t, r)
			})
			return nil
		})
		if err != nil && dir == folder {
			t.Fatal(err)
		}
	}
	if n == 0 {
		t.Errorf("no workload files below %s", folder)
	}
}

// TestUnet3D holds every field of a real workload against the published numbers.
func TestUnet3D(t *testing.T) {
	w := load(t, `
model: {name: unet3d, type: cnn, model_size: 499153191}
framework: pytorch
workflow: {generate_data: False, train: True, checkpoint: True}
dataset:
  data_folder: data/unet3d/
  format: npz
  num_files_train: 168
  num_samples_per_file: 1
  record_length_bytes: 146600628
  record_length_bytes_stdev: 68341808
  record_length_bytes_resize: 2097152
reader: {data_loader: pytorch, batch_size: 7, read_threads: 4, file_shuffle: seed, sample_shuffle: seed}
train: {epochs: 5, computation_time: 0.323}
checkpoint: {checkpoint_folder: checkpoints/unet3d, checkpoint_after_epoch: 5, epochs_between_checkpoints: 2}
metric: {au: 0.90}
`, Options{}).Workload
	want := *w
	want.Dataset.RecordLengthBytes, want.Dataset.RecordLengthBytesStdev, want.Dataset.RecordLengthBytesResize = 146600628, 68341808, 2097152
	want.Dataset.NumFilesTrain, want.Dataset.NumSamplesPerFile = 168, 1
	want.Dataset.DataFolder, want.Dataset.Format = "data/unet3d", "npz"
	want.Model.Name, want.Model.Type, want.Model.ModelSizeBytes = "unet3d", "cnn", 10240
	want.Framework = "pytorch"
	want.Workflow = Workflow{Train: true, Checkpoint: true}
	want.Reader.DataLoader, want.Reader.DataLoaderSampler, want.Reader.BatchSize, want.Reader.ReadThreads = "pytorch", "index", 7, 4
	want.Reader.FileShuffle, want.Reader.SampleShuffle, want.Reader.PrefetchSize = ShuffleSeed, ShuffleSeed, 2
	want.Train = Train{Epochs: 5, TotalTrainingSteps: -1, ComputationTime: Time{Type: TimeConstant, Center: 0.323}, Seed: 123, SeedChangeEpoch: true}
	want.Checkpoint.CheckpointFolder = "checkpoints/unet3d"
	want.Checkpoint.CheckpointAfterEpoch, want.Checkpoint.EpochsBetweenCheckpoints, want.Checkpoint.StepsBetweenCheckpoints = 5, 2, -1
	want.Metric.AU = 0.90
	want.Benchpin = Benchpin{Seed: 1, Verify: VerifyBefore, VerifySample: DefaultSample, Accelerators: 1, ColdCache: ColdEpoch, Order: OrderNumpy}
	if got, expect := canonical(w), canonical(&want); !bytes.Equal(got, expect) {
		t.Errorf("got  %s\nwant %s", got, expect)
	}
}

// TestDefaults holds the defaults that differ from the zero value.
func TestDefaults(t *testing.T) {
	w := load(t, "model: just a name\n", Options{}).Workload
	checks := map[string]bool{
		"model.name":                w.Model.Name == "just a name",
		"framework":                 w.Framework == "tensorflow",
		"reader.data_loader":        w.Reader.DataLoader == "tensorflow" && w.Reader.DataLoaderSampler == "iterative",
		"dataset":                   w.Dataset.RecordLengthBytes == 65536 && w.Dataset.NumFilesTrain == 8 && w.Dataset.Format == "tfrecord",
		"workflow":                  w.Workflow == Workflow{Train: true},
		"output.metric":             w.Output.Metric == OutputMetric{ExcludeStartSteps: 1},
		"train":                     w.Train.Epochs == 1 && w.Train.Seed == 123 && w.Train.SeedChangeEpoch,
		"train.computation_time":    w.Train.ComputationTime == Time{Type: TimeConstant},
		"checkpoint":                w.Checkpoint.CheckpointFolder == "./checkpoints" && w.Checkpoint.StepsBetweenCheckpoints == -1,
		"model.parallelism.data":    w.Model.Parallelism.Data == -1,
		"storage.storage_options":   w.Storage.StorageOptions.Region == "us-east-1",
		"checkpoint.ksm is not set": !w.Checkpoint.KSM.Enabled,
	}
	for what, ok := range checks {
		if !ok {
			t.Errorf("%s has another default: %s", what, canonical(w))
		}
	}
}

// TestReaderSections: data_reader wins over reader, with a warning; each alone is the section.
func TestReaderSections(t *testing.T) {
	both := "reader: {batch_size: 2}\ndata_reader: {batch_size: 3}\n"
	r := load(t, both, Options{})
	if r.Workload.Reader.BatchSize != 3 || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0].String(), "data_reader") {
		t.Errorf("batch size %d, warnings %v", r.Workload.Reader.BatchSize, r.Warnings)
	}
	if _, err := Load(Source{Data: []byte(both)}, Options{Strict: true}); err == nil {
		t.Error("strict accepts both sections")
	}
	r = load(t, "data_reader: {batch_size: 3}\n", Options{Overrides: []string{"workload.reader.batch_size=4"}})
	if r.Workload.Reader.BatchSize != 4 || len(r.Warnings) != 0 {
		t.Errorf("batch size %d, warnings %v", r.Workload.Reader.BatchSize, r.Warnings)
	}
}

// TestWrapper: the configuration that Hydra saves beside a run is a workload too.
func TestWrapper(t *testing.T) {
	r := load(t, "workload:\n  framework: pytorch\n  train: {epochs: 7}\n", Options{Strict: true})
	if r.Workload.Train.Epochs != 7 {
		t.Errorf("epochs %d, expected 7", r.Workload.Train.Epochs)
	}
}

// TestCredentials appear in no output.
func TestCredentials(t *testing.T) {
	r := load(t, "storage: {storage_options: {access_key_id: AKID}}\n", Options{
		Overrides: []string{"++workload.storage.storage_options={secret_access_key: swordfish}", "++workload.train.epochs=2"},
		Set:       []string{"storage.storage_options.secret_access_key=swordfish"},
	})
	if o := r.Workload.Storage.StorageOptions; o.AccessKeyID != "AKID" || o.SecretAccessKey != "swordfish" {
		t.Errorf("credentials %+v", o)
	}
	all := string(r.Canonical) + string(r.YAML()) + strings.Join(r.Overrides, "\n")
	if strings.Contains(all, "swordfish") || strings.Contains(all, "AKID") {
		t.Errorf("a credential is shown:\n%s", all)
	}
	want := "++workload.storage.storage_options=*** ++workload.train.epochs=2 ++workload.storage.storage_options.secret_access_key=***"
	if got := strings.Join(r.Overrides, " "); got != want {
		t.Errorf("overrides %s, expected %s", got, want)
	}
	roundTrip(t, r)
}
