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
