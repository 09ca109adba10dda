package pipeline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/environment"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

const smallYAML = `
model: {name: small}
framework: pytorch
workflow: {train: true, checkpoint: true}
dataset: {format: npz, num_files_train: 9, record_length_bytes: 2500, num_subfolders_train: 3, num_samples_per_file: 2}
reader: {data_loader: pytorch, batch_size: 2, read_threads: 1, file_shuffle: seed, sample_shuffle: seed}
train: {epochs: 2, computation_time: 0.005}
metric: {au: 0.01}
benchpin: {accelerators: 2, seed: 7}
`

func small(t *testing.T, set ...string) *workload.Resolved {
	t.Helper()
	w, err := workload.Load(workload.Source{Name: "small.yaml", Data: []byte(smallYAML)}, workload.Options{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// gone goes the whole way in a new folder.
func gone(t *testing.T, set ...string) (Layout, *Outcome) {
	t.Helper()
	tool, err := environment.Tool("test", "")
	if err != nil {
		t.Fatal(err)
	}
	l := Layout{t.TempDir()}
	out, err := Pipeline(context.Background(), Options{Workload: small(t, set...), Dir: l.Dir, Tool: tool})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return l, out
}

func TestPipelineGoesTheWholeWay(t *testing.T) {
	l, out := gone(t)
	if !out.Verification.OK() {
		t.Fatalf("the archive does not verify: %v", out.Verification.Err())
	}
	r := out.Record
	if r.Status != record.StatusComplete || r.Transcript.Root != r.Transcript.Expected {
		t.Errorf("expected a complete record with the expected transcript, found %s, %s and %s", r.Status, r.Transcript.Root, r.Transcript.Expected)
	}
	if r.Dataset.Seed != "7" || r.Dataset.Verification.Mode != workload.VerifyBefore || r.Dataset.Verification.Files != 9 {
		t.Errorf("data set of the record: %+v", r.Dataset)
	}
	// 9 files x 2 samples over batch 2 x 2 accelerators: 4 steps, 16 samples, 2 dropped.
	if r.Plan.StepsPerEpoch != 4 || r.Plan.SamplesDropped != 2 || r.Transcript.Entries != 32 {
		t.Errorf("plan: %d steps, %d dropped, %d read", r.Plan.StepsPerEpoch, r.Plan.SamplesDropped, r.Transcript.Entries)
	}
	if r.Dataset.Verification.IdentityRechecked != 32 {
		t.Errorf("identity was compared %d times, expected once for each of 32 samples", r.Dataset.Verification.IdentityRechecked)
	}
	if len(r.Checkpoints.Saves) != 2 {
		t.Errorf("expected 2 checkpoints, found %d", len(r.Checkpoints.Saves))
	}
	for _, path := range []string{l.Manifest(), filepath.Join(out.Run, RecordName), filepath.Join(out.Run, StepsName), l.PrivateKey()} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// TestSameScheduleEverywhere: what identifies data and schedule does not depend on when or how often it was run.
func TestSameScheduleEverywhere(t *testing.T) {
	_, a := gone(t)
	_, b := gone(t, "benchpin.verify=after")
	if a.Record.Dataset.Root != b.Record.Dataset.Root || a.Record.Transcript.Root != b.Record.Transcript.Root {
		t.Errorf("roots differ: data %s and %s, transcript %s and %s", a.Record.Dataset.Root, b.Record.Dataset.Root, a.Record.Transcript.Root,
			b.Record.Transcript.Root)
	}
	_, c := gone(t, "benchpin.seed=8")
	if a.Record.Dataset.Root == c.Record.Dataset.Root {
		t.Error("another seed has the same data root")
	}
	_, d := gone(t, "train.seed=124")
	if a.Record.Transcript.Root == d.Record.Transcript.Root {
		t.Error("another train.seed has the same transcript")
	}
}

// TestSignerCannotLie: what follows from the archive is computed again, so that a record that was altered and then signed with the
// right key is refused by the check that is about it.
func TestSignerCannotLie(t *testing.T) {
	l, out := gone(t)
	honest, err := os.ReadFile(filepath.Join(out.Run, RecordName))
	if err != nil {
		t.Fatal(err)
	}
	other := "blake3:" + strings.Repeat("ab", 32)
	lies := map[string]struct {
		check string
		tell  func(*record.Record)
	}{
		"steps":             {checkPlan, func(r *record.Record) { r.Plan.StepsPerEpoch = 3 }},
		"bytes":             {checkPlan, func(r *record.Record) { r.Plan.BytesTotal++ }},
		"required rate":     {checkPlan, func(r *record.Record) { *r.Plan.RequiredBytesPerSecond /= 2 }},
		"verification mode": {checkPlan, func(r *record.Record) { r.Dataset.Verification.Mode = workload.VerifyAfter }},
		"transcript": {checkTranscript, func(r *record.Record) {
			r.Transcript.Root, r.Transcript.Expected = other, other
		}},
		"rank":       {checkTranscript, func(r *record.Record) { r.Transcript.Ranks[1] = other }},
		"checkpoint": {checkCheckpoints, func(r *record.Record) { r.Checkpoints.Saves[0].Digest = other }},
		"utilisation": {checkFigures, func(r *record.Record) {
			*r.Metrics.AU.Value = 99.5
		}},
		"samples a second": {checkFigures, func(r *record.Record) { *r.Metrics.SamplesPerSecond.Value *= 2 }},
		"epoch":            {checkFigures, func(r *record.Record) { *r.Metrics.Epochs[0].SamplesPerSecond.Value *= 2 }},
		"seed":             {checkRecipe, func(r *record.Record) { r.Dataset.Seed = "8" }},
	}
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			r, err := record.Parse(honest)
			if err != nil {
				t.Fatal(err)
			}
			lie.tell(r)
			b, err := r.Canonical()
			if err != nil {
				t.Fatal(err)
			}
			key, _, err := ownKey(l)
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "archive")
			_, err = attest.WriteArchive(context.Background(), dir, attest.ArchiveInput{Record: b, Manifest: l.Manifest(), Folder: out.Run}, key)
			if err != nil {
				// What contradicts itself without any computing is not even signed.
				t.Logf("refused before it was signed: %v", err)
				return
			}
			v, err := Verify(context.Background(), dir, []attest.PublicKey{key.Public()}, attest.Policy{})
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			if v.OK() {
				t.Fatal("the archive verifies")
			}
			for _, c := range v.Checks {
				if c.Name == lie.check && !c.OK {
					return
				}
			}
			t.Errorf("check %q passed; failed: %v", lie.check, v.Err())
		})
	}
}

// TestAttestRefusesLies: a record that was altered in its run folder, and is in itself sound, is not signed: what follows from the rest
// of the archive is computed again before the archive gets its name.
func TestAttestRefusesLies(t *testing.T) {
	l, out := gone(t)
	path := filepath.Join(out.Run, RecordName)
	honest, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	key, err := attest.LoadPrivate(l.PrivateKey(), func() ([]byte, error) { return []byte{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	for name, tell := range map[string]func(*record.Record){
		"nothing":    func(*record.Record) {},
		"epoch":      func(r *record.Record) { *r.Metrics.Epochs[0].SamplesPerSecond.Value *= 2 },
		"transcript": func(r *record.Record) { r.Transcript.Ranks[1] = "blake3:" + strings.Repeat("ab", 32) },
		"checkpoint": func(r *record.Record) { r.Checkpoints.Saves[0].Digest = "blake3:" + strings.Repeat("ab", 32) },
	} {
		t.Run(name, func(t *testing.T) {
			r, err := record.Parse(honest)
			if err != nil {
				t.Fatal(err)
			}
			tell(r)
			b, err := r.Canonical()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			parent := t.TempDir()
			_, err = Attest(t.Context(), AttestOptions{Run: out.Run, Manifest: l.Manifest(), Archive: filepath.Join(parent, "archive"), Key: key})
			if name == "nothing" {
				if err != nil {
					t.Errorf("the honest record is refused: %v", err)
				}
				return
			}
			if !errors.Is(err, ErrVerification) {
				t.Errorf("expected %v, found %v", ErrVerification, err)
			}
			if left, _ := os.ReadDir(parent); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestRunRefusesOtherData(t *testing.T) {
	l, _ := gone(t)
	for set, word := range map[string]string{
		"benchpin.seed=8": "--seed 7", "dataset.record_length_bytes=2601": "record_length", "dataset.num_samples_per_file=1": "samples_per_file",
		"dataset.num_files_train=10": "10",
	} {
		_, err := Run(context.Background(), RunOptions{Workload: small(t, set), Data: l.Data(), Manifest: l.Manifest(),
			Out: filepath.Join(t.TempDir(), "run")})
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: expected an error that names %q, found %v", set, word, err)
		}
	}
}

// TestRunOnPartOfTheData: fewer files than there are may be read, and the plan says how many.
func TestRunOnPartOfTheData(t *testing.T) {
	l, _ := gone(t)
	tool, err := environment.Tool("test", "")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), RunOptions{Workload: small(t, "dataset.num_files_train=6"), Data: l.Data(), Manifest: l.Manifest(),
		Checkpoints: l.Checkpoints(), Out: filepath.Join(t.TempDir(), "run"), Tool: tool})
	if err != nil {
		t.Fatal(err)
	}
	if r.Plan.Files != 6 || r.Plan.StepsPerEpoch != 3 || r.Dataset.Files != 9 {
		t.Errorf("plan: %d files, %d steps; data set: %d files", r.Plan.Files, r.Plan.StepsPerEpoch, r.Dataset.Files)
	}
}

func TestThresholds(t *testing.T) {
	_, out := gone(t)
	for set, met := range map[string]bool{
		"metric.au=0.01": true, "metric.au=1": false,
		"benchpin.thresholds.samples_per_second=0.1":  true,
		"benchpin.thresholds.samples_per_second=1e12": false,
		"benchpin.thresholds.bytes_per_second=1e15":   false,
	} {
		w := small(t, set)
		r := *out.Record
		r.Plan.AUThreshold = 100 * w.Workload.Metric.AU
		if err := CheckThresholds(w.Workload, &r); met != (err == nil) || err != nil && !errors.Is(err, ErrThreshold) {
			t.Errorf("%s: expected met %v, found %v", set, met, err)
		}
	}
}
