package pipeline

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/record"
)

// TestPyTorchForm verifies an archive of before there were TensorFlow's bundles: its checkpoints were PyTorch's files, and are.
func TestPyTorchForm(t *testing.T) {
	archive, key := frozen(t, "pytorch-form")
	v, err := Verify(t.Context(), archive, []attest.PublicKey{key}, attest.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if !v.OK() || v.Record.Plan.CheckpointForm != "" || len(v.Record.Checkpoints.Saves) != 4 {
		t.Errorf("%q, %d checkpoints, %v", v.Record.Plan.CheckpointForm, len(v.Record.Checkpoints.Saves), v.Err())
	}
}

// TestBundleForm takes a workload of TensorFlow's the whole way. What its record says of the form is checked.
func TestBundleForm(t *testing.T) {
	l, out := gone(t, "framework=tensorflow", "reader.data_loader=dali")
	if !out.Verification.OK() || out.Record.Plan.CheckpointForm != bench.BundleForm || len(out.Record.Checkpoints.Saves) == 0 {
		t.Fatalf("%q, %v", out.Record.Plan.CheckpointForm, out.Verification.Err())
	}
	folder := filepath.Join(l.Checkpoints(), out.Record.Checkpoints.Saves[0].Name)
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Contains(names, "model_states-0.pb-1.index") || !slices.Contains(names, "model_states-0.pb-1.data-00000-of-00001") ||
		strings.Contains(strings.Join(names, " "), ".pt") {
		t.Errorf("%v", names)
	}
	key, _, err := ownKey(l)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(out.Run, RecordName))
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	r.Plan.CheckpointForm = ""
	signedLie(t, "another form", checkCheckpoints, r, l.Manifest(), out.Run, key)
}
