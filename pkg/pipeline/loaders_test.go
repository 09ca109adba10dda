package pipeline

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/workload"
)

const readYAML = `
model: {name: reading}
workflow: {train: true, evaluation: true}
dataset: {num_files_train: 6, num_files_eval: 4, record_length_bytes: 2500, num_samples_per_file: 3}
reader: {batch_size: 2, batch_size_eval: 1, read_threads: 2, file_shuffle: seed, sample_shuffle: seed, shuffle_size: 4}
train: {epochs: 2, computation_time: 0.001}
evaluation: {eval_time: 0.001}
metric: {au: 0.0001}
benchpin: {accelerators: 2}
`

// TestEveryLoaderGoesTheWholeWay: each container is generated, read by each loader that reads it, in training and in evaluation, with the ways
// of reading that there are, and verified; each opened file, companions included, was one that had been verified.
func TestEveryLoaderGoesTheWholeWay(t *testing.T) {
	ways := []string{"reader.read_type=on_demand", "reader.read_type=memory", "reader.odirect=true"}
	n := 0
	for _, container := range format.Names() {
		for _, loader := range []string{"pytorch", "tensorflow", "dali", "native_dali", "synthetic", "none"} {
			framework := "pytorch"
			if loader == "tensorflow" {
				framework = loader
			}
			record, native := container == "tfrecord", container == "npy" || container == "jpeg" || container == "png"
			if record && (loader == "pytorch" || loader == "dali") || loader == "native_dali" && !native && !record {
				continue
			}
			set := []string{"dataset.format=" + container, "reader.data_loader=" + loader, "framework=" + framework, ways[n%len(ways)]}
			if container == "jpeg" || container == "png" || container == "raw" {
				set = append(set, "dataset.num_samples_per_file=1")
			}
			n++
			t.Run(container+"/"+loader, func(t *testing.T) {
				t.Parallel()
				w, err := workload.Load(workload.Source{Name: "read.yaml", Data: []byte(readYAML)}, workload.Options{Set: set})
				if err != nil {
					t.Fatal(err)
				}
				out := wholeWay(t, w)
				r := out.Record
				if v := r.Metrics.Evaluation; v == nil || len(v.Passes) != 2 || r.Transcript.Evaluation == nil || r.Plan.Evaluation.Passes != 2 {
					t.Errorf("evaluation: found %+v", v)
				}
				idle := loader == "synthetic" || loader == "none" || container == "synthetic"
				if got := r.Dataset.Verification.IdentityRechecked; (got == 0) != idle {
					t.Errorf("%d identities were compared", got)
				}
				if _, err := os.Stat(filepath.Join(out.Run, EvalStepsName)); err != nil {
					t.Error(err)
				}
				asked := *r.Metrics.Epochs[0].BytesAsked.Value
				if (asked == 0) != idle {
					t.Errorf("%.0f bytes were asked for", asked)
				}
			})
		}
	}
}
