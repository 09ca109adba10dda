package workload

import "testing"

// TestComposed: what Hydra would save, unknown keys included, defaults not, credentials blanked, interpolation followed.
func TestComposed(t *testing.T) {
	src := Source{Name: "x.yaml", Data: []byte(`
model: {name: unet3d, model_size: 499153191, parallelism: {zero_stage: 1}}
framework: pytorch
workflow: {train: yes}
dataset: {record_length_bytes: 114660.07, data_folder: "data/${model.name}", record_dims: [2, 3], file_prefix: "010"}
reader: {data_loader: pytorch, file_shuffle: "off"}
train: {computation_time: {mean: 1e-7}}
storage: {storage_options: {secret_access_key: swordfish}}
`)}
	r, err := Load(src, Options{Overrides: []string{"++workload.dataset.num_files_train=12", "++workload.checkpoint={}"}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `workload:
  model:
    name: unet3d
    model_size: 499153191
    parallelism:
      zero_stage: 1
  framework: pytorch
  workflow:
    train: true
  dataset:
    record_length_bytes: 114660.07
    data_folder: data/unet3d
    record_dims:
      - 2
      - 3
    file_prefix: "010"
    num_files_train: 12
  reader:
    data_loader: pytorch
    file_shuffle: "off"
  train:
    computation_time:
      mean: 1.0e-07
  storage:
    storage_options:
      secret_access_key: '***'
  checkpoint: {}
`
	if string(r.Composed) != want {
		t.Errorf("found:\n%s", r.Composed)
	}
}

// TestComposedIsFixed: what is saved beside a run is the one form of what it says, so that whoever verifies it can write it again.
func TestComposedIsFixed(t *testing.T) {
	odd := "model: {name: 'a #b', \"x y\": [1, 0x10, 1e3, .5, ~, yes, 'no', 010, 1_000, -0.0, .inf]}\n# a comment\ndataset:\n  num_files_train: 1_0\n  format: npz\n" +
		"  data_folder: \"d: é #\"\n  keep: {deep: {a: [], b: {}, c: [x, 'y: z', {k: v}]}}\ntrain: {computation_time: 1.0e-3, epochs: 2}\n"
	sources := []Source{{Name: "odd.yaml", Data: []byte(odd)}}
	for _, name := range []string{"quickstart", "unet3d_h100", "cosmoflow_h100", "resnet50_h100", "bert_v100", "llama_7b"} {
		if s, err := Find(name); err == nil {
			sources = append(sources, s)
		}
	}
	if len(sources) < 3 {
		t.Fatalf("only %d workloads were found", len(sources))
	}
	for _, s := range sources {
		r, err := Load(s, Options{Overrides: []string{"++workload.train.epochs=3", "++workload.dataset.note='x: #y'"}})
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		again, err := Load(Source{Name: "config.yaml", Data: r.Composed}, Options{})
		if err != nil || string(again.Composed) != string(r.Composed) {
			t.Errorf("%s: %v\nwritten:\n%s\nagain:\n%s", s.Name, err, r.Composed, again.Composed)
			continue
		}
		old, err := Archived(r.Name, r.Source, nil, r.Canonical)
		if err != nil {
			t.Errorf("%s, archived: %v", s.Name, err)
			continue
		}
		if again, err = Load(Source{Name: "config.yaml", Data: old.Composed}, Options{}); err != nil || string(again.Composed) != string(old.Composed) {
			t.Errorf("%s, archived: %v", s.Name, err)
		}
	}
}
