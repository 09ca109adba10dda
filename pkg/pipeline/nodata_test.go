package pipeline

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/environment"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

const checkpointYAML = `
model:
  name: tiny_llama
  type: transformer
  num_layers: 3
  model_datatype: fp16
  optimizer_datatype: fp32
  parallelism: {pipeline: 1, tensor: 1, zero_stage: 3}
  transformer: {vocab_size: 1600, hidden_size: 64, ffn_hidden_size: 224, num_attention_heads: 8, num_kv_heads: 2}
framework: pytorch
workflow: {generate_data: False, train: False, checkpoint: True}
checkpoint: {time_between_checkpoints: 0, num_checkpoints_write: 2, num_checkpoints_read: 2, fsync: True}
benchpin: {accelerators: 4, seed: 11}
`

func checkpoints(t *testing.T, set ...string) *workload.Resolved {
	t.Helper()
	w, err := workload.Load(workload.Source{Name: "tiny.yaml", Data: []byte(checkpointYAML)}, workload.Options{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func goneWithCheckpoints(t *testing.T, l Layout, set ...string) *Outcome {
	t.Helper()
	tool, err := environment.Tool("test", "")
	if err != nil {
		t.Fatal(err)
	}
	out, err := Pipeline(context.Background(), Options{Workload: checkpoints(t, set...), Dir: l.Dir, Tool: tool})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return out
}

func TestCheckpointsGoTheWholeWay(t *testing.T) {
	l := Layout{t.TempDir()}
	out := goneWithCheckpoints(t, l)
	if !out.Verification.OK() {
		t.Fatalf("the archive does not verify: %v", out.Verification.Err())
	}
	r := out.Record
	if r.Status != record.StatusComplete || len(r.Checkpoints.Saves) != 2 || len(r.Checkpoints.Loads) != 2 || !r.Checkpoints.Fsync {
		t.Errorf("found %s, %+v", r.Status, r.Checkpoints)
	}
	for _, load := range r.Checkpoints.Loads {
		if !load.Verified || load.Bytes != r.Checkpoints.Saves[0].Bytes {
			t.Errorf("read back %+v", load)
		}
	}
	if e := r.Checkpoints.Eviction; e == nil || e.Files != 16 || e.Bytes != 2*r.Checkpoints.Saves[0].Bytes {
		t.Errorf("evicted %+v", e)
	}
	if d := r.Dataset; d.Files != 0 || d.Bytes != 0 || d.Generated || d.Seed != "" || r.Plan.Files != 0 || r.Transcript.Entries != 0 {
		t.Errorf("data set %+v, %d files planned, %d samples read", d, r.Plan.Files, r.Transcript.Entries)
	}
	for _, f := range r.Files {
		if f.Name == StepsName {
			t.Error("step times of a run without steps")
		}
	}
	for path, want := range map[string]error{
		filepath.Join(out.Run, NoDataManifest): nil, filepath.Join(out.Run, "summary.json"): nil, l.Data(): fs.ErrNotExist,
		filepath.Join(l.Checkpoints(), "global_epoch1_step2", "zero_pp_rank_3_mp_rank_0_optim_states.pt"): nil,
	} {
		if _, err := os.Stat(path); !errors.Is(err, want) {
			t.Errorf("%s: found %v, expected %v", path, err, want)
		}
	}
	summary, err := os.ReadFile(filepath.Join(out.Run, "summary.json"))
	if err != nil || !bytes.Contains(summary, []byte(`"load_checkpoint_duration_mean_seconds"`)) {
		t.Errorf("DLIO's summary has no figures of reads: %v\n%s", err, summary)
	}

	// Once more, over the checkpoints that are there; then only reading them; and then one that somebody changed.
	if again := goneWithCheckpoints(t, l); again.Record.Checkpoints.Saves[1].Digest != r.Checkpoints.Saves[1].Digest {
		t.Error("the same workload wrote other checkpoints")
	}
	if read := goneWithCheckpoints(t, l, "checkpoint.num_checkpoints_write=0").Record; len(read.Checkpoints.Saves) != 0 || len(read.Checkpoints.Loads) != 2 {
		t.Errorf("found %+v", read.Checkpoints)
	}
	path := filepath.Join(l.Checkpoints(), "global_epoch1_step2", "zero_pp_rank_3_mp_rank_0_optim_states.pt")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flip(t, path, b, 8*1000)
	rec, err := Run(context.Background(), RunOptions{Workload: checkpoints(t, "checkpoint.num_checkpoints_write=0"), Checkpoints: l.Checkpoints(),
		Out: filepath.Join(t.TempDir(), "run"), Tool: r.Tool})
	if !errors.Is(err, bench.ErrCheckpoint) || !strings.Contains(err.Error(), filepath.Base(path)) {
		t.Errorf("a changed checkpoint: found %v", err)
	}
	if rec == nil || rec.Status != record.StatusIncomplete || rec.Reason == "" || len(rec.Checkpoints.Loads) != 1 {
		t.Errorf("a changed checkpoint: found %+v", rec)
	}
}

// TestSignerCannotLieAboutCheckpoints: what follows from workload and seed, or from other parts of the record, is computed again.
func TestSignerCannotLieAboutCheckpoints(t *testing.T) {
	l := Layout{t.TempDir()}
	out := goneWithCheckpoints(t, l)
	honest, err := os.ReadFile(filepath.Join(out.Run, RecordName))
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := ownKey(l)
	if err != nil {
		t.Fatal(err)
	}
	for name, lie := range map[string]struct {
		check string
		tell  func(*record.Record)
	}{
		"content":         {checkCheckpoints, func(r *record.Record) { r.Checkpoints.Saves[1].Digest = "blake3:" + strings.Repeat("ab", 32) }},
		"name":            {checkCheckpoints, func(r *record.Record) { r.Checkpoints.Saves[1].Name = "global_epoch1_step9" }},
		"size":            {checkCheckpoints, func(r *record.Record) { r.Checkpoints.Saves[0].Bytes *= 2 }},
		"bytes read":      {checkCheckpoints, func(r *record.Record) { r.Checkpoints.Loads[0].Bytes *= 2 }},
		"not compared":    {checkCheckpoints, func(r *record.Record) { r.Checkpoints.Loads[0].Verified = false }},
		"throughput":      {checkFigures, func(r *record.Record) { *r.Metrics.Other["save_checkpoint_bytes_per_second_mean"].Value *= 2 }},
		"DLIO's":          {checkFigures, func(r *record.Record) { r.Metrics.DLIO["load_checkpoint_duration_mean_seconds"] = 0.001 }},
		"time of a rank":  {checkFigures, func(r *record.Record) { r.Checkpoints.Saves[0].Seconds[0] *= 2 }},
		"fewer to read":   {checkPlan, func(r *record.Record) { r.Plan.CheckpointReads, r.Checkpoints.Loads = 1, r.Checkpoints.Loads[:1] }},
		"smaller":         {checkPlan, func(r *record.Record) { r.Plan.CheckpointBytes /= 2 }},
		"accelerators":    {checkPlan, func(r *record.Record) { r.Plan.MemoryBytes++ }},
		"transcript root": {checkTranscript, func(r *record.Record) { r.Transcript.Ranks[0] = r.Transcript.Ranks[1] }},
	} {
		r, err := record.Parse(honest)
		if err != nil {
			t.Fatal(err)
		}
		lie.tell(r)
		signedLie(t, name, lie.check, r, filepath.Join(out.Run, NoDataManifest), out.Run, key)
	}

	// A data set that the workload does not read is none of its business.
	other := filepath.Join(t.TempDir(), "other.json")
	m, err := manifest.Create(other, manifest.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Add(manifest.Entry{Path: "a", Size: 1}); err != nil {
		t.Fatal(err)
	}
	h, err := m.Commit()
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Parse(honest)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := manifest.Open(other)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	r.Dataset.Root, r.Dataset.Manifest, r.Dataset.Files, r.Dataset.Bytes = h.Root.String(), opened.Digest().String(), 1, 1
	signedLie(t, "another data set", checkPlan, r, other, out.Run, key)
}

// signedLie signs a record and wants a check to fail.
func signedLie(t *testing.T, name, check string, r *record.Record, pinned, run string, key *attest.PrivateKey) {
	t.Helper()
	b, err := r.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "archive")
	if _, err = attest.WriteArchive(context.Background(), dir, attest.ArchiveInput{Record: b, Manifest: pinned, Folder: run}, key); err != nil {
		t.Logf("%s: refused before it was signed: %v", name, err)
		return
	}
	v, err := Verify(context.Background(), dir, []attest.PublicKey{key.Public()}, attest.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, c := range v.Checks {
		if c.Name == check && !c.OK {
			return
		}
	}
	t.Errorf("%s: check %q passed; failed: %v", name, check, v.Err())
}

// TestNoRoomForCheckpoints: what cannot be written to the end is not begun.
func TestNoRoomForCheckpoints(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "checkpoints")
	_, err := Run(context.Background(), RunOptions{Workload: checkpoints(t, "model.transformer.hidden_size=16384", "model.num_layers=1000",
		"checkpoint.num_checkpoints_write=1000"), Checkpoints: folder, Out: filepath.Join(t.TempDir(), "run")})
	if err == nil || !strings.Contains(err.Error(), "num_checkpoints_write") || !strings.Contains(err.Error(), "are free") {
		t.Errorf("found %v", err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}
