package workload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEmbeddedWorkloads: each loads without a warning, and quickstart keeps the promises of the tour.
func TestEmbeddedWorkloads(t *testing.T) {
	names, err := List()
	if err != nil || len(names) == 0 {
		t.Fatalf("List: %v %v", names, err)
	}
	for _, name := range names {
		src, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Load(src, Options{Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		if r.Name != name {
			t.Errorf("the workload %s is called %s", name, r.Name)
		}
		roundTrip(t, r)
	}
	src, err := Find("quickstart")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Load(src, Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	w := r.Workload
	bytes := float64(w.Dataset.NumFilesTrain*w.Dataset.NumSamplesPerFile) * w.Dataset.RecordLengthBytes
	steps := w.Dataset.NumFilesTrain * w.Dataset.NumSamplesPerFile / (w.Reader.BatchSize * w.Benchpin.Accelerators)
	seconds := float64(steps*w.Train.Epochs) * w.Train.ComputationTime.Mean()
	if bytes > 100e6 || steps < 20 || seconds < 5 || seconds > 8 || w.Train.Epochs != 3 || w.Benchpin.Accelerators != 2 || !w.Workflow.Checkpoint {
		t.Errorf("quickstart has %.0f bytes, %d steps in each of %d epochs, %.1f s", bytes, steps, w.Train.Epochs, seconds)
	}
}

// TestFind: names, paths, and what to do where there is neither.
func TestFind(t *testing.T) {
	file := filepath.Join(t.TempDir(), "quickstart.yaml")
	if err := os.WriteFile(file, []byte("framework: pytorch\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if src, err := Find(file); err != nil || string(src.Data) != "framework: pytorch\n" || src.Name != file {
		t.Errorf("Find(%s): %q %v", file, src.Data, err)
	}
	for name, want := range map[string]string{
		"quikstart":           `did you mean "quickstart"?`,
		"nothing-like-it":     "benchpin workload list",
		"./quickstart.yaml":   "no such file",
		filepath.Dir(file):    "expected a regular file",
		file + "/x.yaml":      "not a directory",
		"../quickstart":       "no such file",
		"quickstart/../../go": "no such file",
	} {
		if _, err := Find(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Find(%s): %v, expected ...%s...", name, err, want)
		}
	}
}
