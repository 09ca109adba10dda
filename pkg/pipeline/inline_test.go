package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// TestEveryLoaderInline: each container, read by each loader that reads it, in training and in evaluation, is hashed in the run, and the archive
// verifies: with the transcript that follows from the manifest, or from the digests beside the record, some of which are made again from
// the recipe.
func TestEveryLoaderInline(t *testing.T) {
	ways := []string{"reader.read_type=on_demand", "reader.read_type=memory", "reader.odirect=true"}
	n := 0
	for _, container := range format.Names() {
		for _, loader := range []string{"pytorch", "tensorflow", "dali", "native_dali", "none"} {
			framework := "pytorch"
			if loader == "tensorflow" {
				framework = loader
			}
			native := container == "npy" || container == "jpeg" || container == "png" || container == "tfrecord"
			if container == "tfrecord" && (loader == "pytorch" || loader == "dali") || loader == "native_dali" && !native {
				continue
			}
			if n++; n%2 == 0 && os.Getenv("BENCHPIN_LONG") == "" && container != "tfrecord" && container != "parquet" {
				continue
			}
			set := []string{"dataset.format=" + container, "reader.data_loader=" + loader, "framework=" + framework, ways[n/2%len(ways)],
				"benchpin.verify=inline"}
			if container == "jpeg" || container == "png" || container == format.RawName {
				set = append(set, "dataset.num_samples_per_file=1")
			}
			t.Run(container+"/"+loader, func(t *testing.T) {
				t.Parallel()
				w, err := workload.Load(workload.Source{Name: "read.yaml", Data: []byte(readYAML)}, workload.Options{Set: set})
				if err != nil {
					t.Fatal(err)
				}
				out := wholeWay(t, w)
				v := out.Record.Dataset.Verification
				if v.Inline == nil || v.Inline.Samples == 0 || (v.Files == 0) != (v.Inline.Reads == "none") {
					t.Errorf("found %+v, %+v", v, v.Inline)
				}
				_, err = os.Stat(filepath.Join(out.Run, ReadsName))
				if partial := v.Inline.Reads != "file" && v.Inline.Reads != "none"; (err == nil) != partial {
					t.Errorf("%s with reads %s: %v", ReadsName, v.Inline.Reads, err)
				}
			})
		}
	}
}

// TestInlineNeedsMemory: a run that would hold more than there is is refused before anything is read.
func TestInlineNeedsMemory(t *testing.T) {
	r := &run{RunOptions: &RunOptions{}}
	w, err := workload.Load(workload.Source{Name: "read.yaml", Data: []byte(readYAML)}, workload.Options{Set: []string{"benchpin.verify=inline", "dataset.format=npz"}})
	if err != nil {
		t.Fatal(err)
	}
	if r.plan, err = Plan(t.Context(), w.Workload, ""); err != nil {
		t.Fatal(err)
	}
	env := fullEnvironment()
	need := r.plan.MemoryBytes
	for have, refused := range map[int64]bool{int64(need) - 1: true, int64(need): false} {
		env.Memory.Available = intOf(have)
		err := r.roomForInline(env)
		if errors.Is(err, ErrMemory) != refused {
			t.Errorf("%d bytes for %d: %v", have, need, err)
		}
		if refused && !strings.Contains(err.Error(), "prefetch_size") {
			t.Error(err)
		}
	}
	env.Memory.Available, env.Limits.CgroupMemory = intOf(1<<50), "1000"
	if err := r.roomForInline(env); !errors.Is(err, ErrMemory) || !strings.Contains(err.Error(), "control group") {
		t.Error(err)
	}
}

func fullEnvironment() (e record.Environment) {
	e.Limits.CgroupMemory = "unlimited"
	return e
}

func intOf(n int64) *record.Int {
	i := record.Int(n)
	return &i
}
