package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/bench/checkpoint"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// checkpointWorkload writes and reads checkpoints of a small transformer, and nothing else.
func checkpointWorkload(change func(w *workload.Workload)) *workload.Workload {
	return testWorkload(func(w *workload.Workload) {
		w.Workflow.Train, w.Workflow.Checkpoint = false, true
		w.Model.Type, w.Model.NumLayers, w.Model.ModelDatatype, w.Model.OptimizerDatatype = "transformer", 3, "fp16", "fp32"
		w.Model.Transformer = workload.Transformer{VocabSize: 160, HiddenSize: 64, FFNHiddenSize: 224, NumAttentionHeads: 8, NumKVHeads: 2}
		w.Model.Parallelism.ZeroStage = 3
		w.Checkpoint.NumCheckpointsWrite, w.Checkpoint.NumCheckpointsRead = 2, 2
		w.Benchpin.Accelerators, w.Benchpin.Seed, w.Benchpin.ColdCache, w.Benchpin.Verify = 4, 9, workload.ColdEpoch, workload.VerifyBefore
		if change != nil {
			change(w)
		}
	})
}

// memoryStore keeps checkpoints in memory, and needs some time for each file.
type memoryStore struct {
	commit, open, write time.Duration // of each file
	hang                chan struct{} // Open waits for it, where there is one

	mu      sync.Mutex
	files   map[string][]byte
	evicted map[string]int
	opened  []string
}

func newMemoryStore() *memoryStore {
	return &memoryStore{files: map[string][]byte{}, evicted: map[string]int{}}
}

type memoryWriter struct {
	s    *memoryStore
	name string
	b    bytes.Buffer
}

func (s *memoryStore) Create(name string, _ int64) (store.Writer, error) {
	nap(s.write)
	return &memoryWriter{s: s, name: name}, nil
}

func (w *memoryWriter) Write(p []byte) (int, error) { return w.b.Write(p) }
func (w *memoryWriter) Abort() error                { return nil }
func (w *memoryWriter) Commit() error {
	nap(w.s.commit)
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.files[w.name] = w.b.Bytes()
	return nil
}

type memoryFile struct {
	*bytes.Reader
	size int64
}

func (f memoryFile) Close() error              { return nil }
func (f memoryFile) Info() (store.Info, error) { return store.Info{Size: f.size}, nil }

func (s *memoryStore) Open(name string) (store.File, error) {
	if s.hang != nil {
		<-s.hang
	}
	nap(s.open)
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.files[name]
	if !ok {
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	s.opened = append(s.opened, name)
	return memoryFile{bytes.NewReader(b), int64(len(b))}, nil
}

func (s *memoryStore) Evict(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.files[name]; !ok {
		return fmt.Errorf("evict %s: %w", name, fs.ErrNotExist)
	}
	if len(s.opened) > 0 {
		return errors.New("evicted after the first read")
	}
	s.evicted[name]++
	return nil
}

func (s *memoryStore) Resident(name string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.evicted[name] > 0 {
		return 0, nil
	}
	return int64(len(s.files[name])), nil
}

// runOnly plans and runs in virtual time.
func runOnly(t *testing.T, w *workload.Workload, s *memoryStore, check func(t *testing.T, p *Plan, res *Result, err error)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		p, err := NewPlan(w, nil)
		if err != nil {
			t.Fatal(err)
		}
		device := int64(1000)
		var last Progress
		res, err := Run(t.Context(), Options{Plan: p, Checkpoints: s, CheckpointsDurable: true, Saved: s,
			DeviceBytes: func() (int64, error) { device += 77; return device, nil },
			Progress: func(now Progress) {
				if now.Step < last.Step || now.Bytes < last.Bytes || now.Bytes > now.BytesTotal || now.Step > now.Steps {
					t.Errorf("progress went from %+v to %+v", last, now)
				}
				last = now
			}})
		if err == nil && (last.Step != last.Steps || last.Bytes != last.BytesTotal || last.Steps != int64(p.Checkpoints+p.CheckpointReads)) {
			t.Errorf("the last progress was %+v", last)
		}
		check(t, p, res, err)
	})
}

// TestCheckpointOnly runs the whole of it and compares every figure with closed forms: D to commit a file, O to open one, T between
// two checkpoints.
func TestCheckpointOnly(t *testing.T) {
	const d, o, pause = 700 * time.Millisecond, 300 * time.Millisecond, 5 * time.Second
	w := checkpointWorkload(func(w *workload.Workload) { w.Checkpoint.TimeBetweenCheckpoints = pause.Seconds() })
	s := newMemoryStore()
	s.commit, s.open = d, o
	runOnly(t, w, s, func(t *testing.T, p *Plan, res *Result, err error) {
		if err != nil || !res.Complete || res.Reason != "" {
			t.Fatalf("not complete: %v %q", err, res.Reason)
		}
		if p.Checkpoints != 2 || p.CheckpointReads != 2 || p.Epochs != 0 || p.Files != 0 || p.ExpectedSeconds != 20 {
			t.Errorf("planned %+v", p.Plan)
		}
		c := res.Checkpoints
		if len(c.Saves) != 2 || len(c.Loads) != 2 || !c.Fsync {
			t.Fatalf("found %+v", c)
		}
		bytes := record.Int(p.model.BytesPerCheckpoint())
		for i := range 2 {
			name := fmt.Sprintf("global_epoch1_step%d", i+1)
			save, load := c.Saves[i], c.Loads[i]
			if save.Name != name || load.Name != name || save.Epoch != 1 || load.Epoch != 1 || save.Step != record.Int(i+1) || load.Step != record.Int(i+1) {
				t.Errorf("found %s, %s, expected %s", save.Name, load.Name, name)
			}
			if save.Bytes != bytes || load.Bytes != bytes || !load.Verified || load.DeviceBytes == nil || *load.DeviceBytes != 77 {
				t.Errorf("found %+v", load)
			}
			near(t, "start of the write", *save.Start, float64(i+1)*5+float64(i)*1.4)
			near(t, "start of the read", load.Start, 12.8+float64(i+1)*5+float64(i)*0.6)
			for rank := range 4 { // two files each
				near(t, "seconds", save.Seconds[rank], 1.4)
				near(t, "write seconds", save.WriteSeconds[rank], 0)
				near(t, "starved", save.StarvedSeconds[rank], 0)
				near(t, "read seconds", load.Seconds[rank], 0.6)
				near(t, "waited", load.WaitedSeconds[rank], 0)
			}
		}
		e := c.Eviction
		if e == nil || e.Files != 16 || e.Bytes != 2*bytes || *e.ResidentBefore != 2*bytes || *e.ResidentAfter != 0 {
			t.Errorf("evicted %+v", e)
		}
		if tr := res.Transcript; tr.Entries != 0 || tr.Root != tr.Expected || len(tr.Ranks) != 4 {
			t.Errorf("transcript %+v", tr)
		}
		if again, err := Expected(t.Context(), p.Schedule(), nil); err != nil || again.Root != res.Transcript.Root {
			t.Errorf("expected transcript %+v, %v", again, err)
		}
		expected, err := ExpectedCheckpoints(t.Context(), p)
		if err != nil || len(expected) != 2 || expected[0].Digest != c.Saves[0].Digest || expected[1].Digest != c.Saves[1].Digest ||
			expected[0].Digest == expected[1].Digest {
			t.Errorf("expected %+v, %v", expected, err)
		}
		m, payload := res.Metrics, float64(p.CheckpointBytes)
		for name, want := range map[string]float64{
			"save_checkpoint_seconds_mean": 1.4, "save_checkpoint_seconds_max": 1.4, "save_checkpoint_write_seconds_max": 0,
			"save_checkpoint_bytes_per_second_mean": payload / 1.4, "save_checkpoint_bytes_per_second_min": payload / 1.4,
			"save_checkpoint_starved_seconds_max": 0, "load_checkpoint_seconds_mean": 0.6, "load_checkpoint_seconds_max": 0.6,
			"load_checkpoint_bytes_per_second_mean": payload / 0.6, "load_checkpoint_bytes_per_second_min": payload / 0.6,
			"load_checkpoint_waited_seconds_max": 0,
		} {
			near(t, name, figure(t, name, m.Other[name]), want)
		}
		size := payload / (1 << 30)
		for name, want := range map[string]float64{
			"checkpoint_size_GB": size, "save_checkpoint_duration_mean_seconds": 1.4, "save_checkpoint_duration_stdev_seconds": 0,
			"save_checkpoint_io_mean_GB_per_second": size / 1.4, "save_checkpoint_io_stdev_GB_per_second": 0,
			"load_checkpoint_duration_mean_seconds": 0.6, "load_checkpoint_io_mean_GB_per_second": size / 0.6,
		} {
			near(t, name, m.DLIO[name].(float64), want)
		}
		if m.AU.Value != nil || m.AU.Absent == "" || m.Met != nil {
			t.Errorf("AU %+v, met %v", m.AU, m.Met)
		}
	})
}

// TestDurationIsOfTheSlowestRank: one rank of four has more to write and read. The figures are those of the slowest rank, DLIO's those of
// the first, and with rank_sync all have the slowest's.
func TestDurationIsOfTheSlowestRank(t *testing.T) {
	for _, sync := range []bool{false, true} {
		w := checkpointWorkload(func(w *workload.Workload) {
			w.Model.Parallelism = workload.Parallelism{Tensor: 1, Pipeline: 4, Data: -1, ZeroStage: 1}
			w.Model.NumLayers, w.Checkpoint.RankSync = 4, sync
		})
		s := newMemoryStore()
		s.commit, s.open = time.Second, time.Second
		runOnly(t, w, s, func(t *testing.T, p *Plan, res *Result, err error) {
			if err != nil {
				t.Fatal(err)
			}
			// Files of a rank: its layer and the optimizer; the first has the embedding, the last head and norm.
			want := []float64{3, 2, 2, 4}
			if sync {
				want = []float64{4, 4, 4, 4}
			}
			for i := range 2 {
				for rank := range 4 {
					near(t, "write of a rank", res.Checkpoints.Saves[i].Seconds[rank], want[rank])
					near(t, "read of a rank", res.Checkpoints.Loads[i].Seconds[rank], want[rank])
				}
			}
			for _, phase := range []string{"save", "load"} {
				near(t, "slowest", figure(t, phase, res.Metrics.Other[phase+"_checkpoint_seconds_mean"]), 4)
				near(t, "least throughput", figure(t, phase, res.Metrics.Other[phase+"_checkpoint_bytes_per_second_min"]), float64(p.CheckpointBytes)/4)
				near(t, "DLIO's", res.Metrics.DLIO[phase+"_checkpoint_duration_mean_seconds"].(float64), want[0])
			}
		})
	}
}

// TestReadsOfOtherRanks: with recovery_rank_shift no rank reads what it wrote, and every file is read once all the same.
func TestReadsOfOtherRanks(t *testing.T) {
	w := checkpointWorkload(func(w *workload.Workload) {
		w.Checkpoint.RecoveryRankShift, w.Checkpoint.NumCheckpointsRead = true, 1
		w.Model.Parallelism = workload.Parallelism{Tensor: 1, Pipeline: 4, Data: -1, ZeroStage: 1}
		w.Model.NumLayers = 4
	})
	s := newMemoryStore()
	s.open = time.Second
	runOnly(t, w, s, func(t *testing.T, p *Plan, res *Result, err error) {
		if err != nil {
			t.Fatal(err)
		}
		for rank, want := range []float64{2, 2, 4, 3} {
			near(t, "read of a rank", res.Checkpoints.Loads[0].Seconds[rank], want)
		}
		if n := len(s.opened); n != 11 || len(slices.Compact(slices.Sorted(slices.Values(s.opened)))) != 11 {
			t.Errorf("opened %d files: %q", n, s.opened)
		}
		if res.Checkpoints.Loads[0].Bytes != res.Checkpoints.Saves[0].Bytes {
			t.Errorf("read %d of %d bytes", res.Checkpoints.Loads[0].Bytes, res.Checkpoints.Saves[0].Bytes)
		}
	})
}

// TestReadsFindWhatChanged: a flipped bit stops the run, unless nobody asked for comparing; a missing and a short file always do.
func TestReadsFindWhatChanged(t *testing.T) {
	written := newMemoryStore()
	runOnly(t, checkpointWorkload(func(w *workload.Workload) { w.Checkpoint.NumCheckpointsRead = 0 }), written,
		func(t *testing.T, p *Plan, res *Result, err error) {
			if err != nil || len(res.Checkpoints.Loads) != 0 || res.Checkpoints.Eviction != nil {
				t.Fatalf("%v, %+v", err, res.Checkpoints)
			}
		})
	const name = "global_epoch1_step2/zero_pp_rank_3_mp_rank_0_optim_states.pt"
	for _, c := range []struct {
		what   string
		verify string
		change func(files map[string][]byte)
		want   func(err error) bool
	}{
		{"nothing", workload.VerifyBefore, func(map[string][]byte) {}, nil},
		{"nothing", workload.VerifyAfter, func(map[string][]byte) {}, nil},
		{"flipped bit", workload.VerifyBefore, flip(name), func(err error) bool { return errors.Is(err, checkpoint.ErrDiffers) }},
		{"flipped bit", workload.VerifyAfter, flip(name), func(err error) bool { return errors.Is(err, checkpoint.ErrDiffers) }},
		{"flipped bit", workload.VerifyNone, flip(name), nil},
		{"short", workload.VerifyNone, func(f map[string][]byte) { f[name] = f[name][:5000] },
			func(err error) bool { return errors.Is(err, checkpoint.ErrDiffers) }},
		{"missing without eviction", workload.VerifyNone, func(f map[string][]byte) { delete(f, name) }, func(err error) bool {
			return errors.Is(err, fs.ErrNotExist) && strings.Contains(err.Error(), "num_checkpoints_write is 0")
		}},
		{"missing", workload.VerifyNone, func(f map[string][]byte) { delete(f, name) }, func(err error) bool {
			return errors.Is(err, fs.ErrNotExist) && strings.Contains(err.Error(), "num_checkpoints_write is 0")
		}},
	} {
		w := checkpointWorkload(func(w *workload.Workload) {
			w.Checkpoint.NumCheckpointsWrite, w.Benchpin.Verify = 0, c.verify
			if strings.HasSuffix(c.what, "without eviction") {
				w.Benchpin.ColdCache = workload.ColdNone
			}
		})
		s := newMemoryStore()
		for k, v := range written.files {
			s.files[k] = v
		}
		c.change(s.files)
		runOnly(t, w, s, func(t *testing.T, p *Plan, res *Result, err error) {
			if c.want == nil {
				if err != nil || !res.Complete || len(res.Checkpoints.Loads) != 2 || len(res.Checkpoints.Saves) != 0 ||
					res.Checkpoints.Loads[1].Verified != (c.verify != workload.VerifyNone) {
					t.Errorf("%s, %s: %v, %+v", c.what, c.verify, err, res.Checkpoints)
				}
				if _, ok := res.Metrics.DLIO["save_checkpoint_duration_mean_seconds"]; ok {
					t.Errorf("%s: a figure of writes that were none", c.what)
				}
				return
			}
			if !c.want(err) || res.Complete || res.Reason == "" || !strings.Contains(err.Error(), name) {
				t.Errorf("%s, %s: found %v", c.what, c.verify, err)
			}
			for _, l := range res.Checkpoints.Loads {
				if l.Verified && c.verify == workload.VerifyAfter {
					t.Errorf("%s: %s counts as verified", c.what, l.Name)
				}
			}
		})
	}
}

func flip(name string) func(map[string][]byte) {
	return func(f map[string][]byte) {
		f[name] = bytes.Clone(f[name])
		f[name][9999] ^= 4
	}
}

// TestCheckpointOnlyInterrupted: a cancelled run returns at once with what it has, also when the store hangs.
func TestCheckpointOnlyInterrupted(t *testing.T) {
	for _, c := range []struct {
		what         string
		at           time.Duration
		hang         bool
		saves, loads int
	}{
		{"in a pause", 2 * time.Second, false, 0, 0},
		{"in the second write", 1900 * time.Millisecond * 2, false, 1, 0},
		{"in the first read", 6100 * time.Millisecond, true, 2, 0},
	} {
		w := checkpointWorkload(func(w *workload.Workload) {
			w.Checkpoint.TimeBetweenCheckpoints = 1
			w.Checkpoint.NumCheckpointsWrite = 2
		})
		bubble(t, func(t *testing.T) {
			s := newMemoryStore()
			s.commit, s.open = 700*time.Millisecond, 700*time.Millisecond
			if c.hang {
				s.hang = make(chan struct{})
				defer func() { close(s.hang); time.Sleep(time.Minute) }()
			}
			if c.what == "in a pause" {
				w.Checkpoint.TimeBetweenCheckpoints = 10
			}
			p, err := NewPlan(w, nil)
			if err != nil {
				t.Fatal(err)
			}
			stop := errors.New("stop now")
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { time.Sleep(c.at); cancel(stop) }()
			res, err := Run(ctx, Options{Plan: p, Checkpoints: s, Saved: s, DeviceBytes: func() (int64, error) { return 0, io.EOF }})
			if !errors.Is(err, stop) || res.Complete || res.Reason == "" || len(res.Checkpoints.Saves) != c.saves || len(res.Checkpoints.Loads) != c.loads {
				t.Errorf("%s: found %v, %+v", c.what, err, res.Checkpoints)
			}
			if got := res.Finished.Sub(res.Started); got > c.at+time.Millisecond {
				t.Errorf("%s: cancelled after %v, returned after %v", c.what, c.at, got)
			}
			if len(res.Metrics.DLIO) != 0 {
				t.Errorf("%s: DLIO's figures of a part: %v", c.what, res.Metrics.DLIO)
			}
			time.Sleep(time.Minute) // what was under way ends
		})
	}
}

func TestCheckpointOnlyPlans(t *testing.T) {
	for _, c := range []struct {
		parts  []string
		class  error
		change func(w *workload.Workload)
	}{
		{[]string{"num_checkpoints_write", "num_checkpoints_read"}, ErrImpossible, func(w *workload.Workload) {
			w.Checkpoint.NumCheckpointsWrite, w.Checkpoint.NumCheckpointsRead = -1, -1
		}},
		{[]string{"num_checkpoints_read is 3 of 2"}, ErrImpossible, func(w *workload.Workload) { w.Checkpoint.NumCheckpointsRead = 3 }},
		{[]string{"at most"}, ErrImpossible, func(w *workload.Workload) { w.Checkpoint.NumCheckpointsWrite = 1 << 30 }},
		{[]string{"benchpin.accelerators"}, ErrImpossible, func(w *workload.Workload) { w.Benchpin.Accelerators = 1 << 20 }},
		{[]string{"hidden_size"}, ErrImpossible, func(w *workload.Workload) { w.Model.Transformer.HiddenSize = 0 }},
		{[]string{"checkpoint.mode subset", "model.parallelism.data"}, ErrImpossible, func(w *workload.Workload) { w.Checkpoint.Mode = "subset" }},
		{[]string{"storage.storage_type", "framework", "checkpoint.checkpoint_mechanism_classname"},
			ErrUnsupported, func(w *workload.Workload) {
				w.Storage.StorageType, w.Framework = "aistore", "jax"
				w.Checkpoint.CheckpointMechanismClassname = "a.B"
			}},
	} {
		_, err := NewPlan(checkpointWorkload(c.change), nil)
		if !errors.Is(err, c.class) {
			t.Errorf("%v: found %v", c.parts, err)
		}
		contains(t, err, c.parts...)
	}
	p, err := NewPlan(checkpointWorkload(func(w *workload.Workload) {
		w.Framework, w.Workflow.GenerateData, w.Checkpoint.RecoveryRankShift, w.Benchpin.Verify = "tensorflow", true, true, workload.VerifyNone
		w.Checkpoint.Mode, w.Model.Parallelism.Data, w.Benchpin.Accelerators, w.Benchpin.ColdCache = "subset", 8, 1, workload.ColdNone
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(p.Notes, "\n")
	for _, part := range []string{"generate_data", "recovery_rank_shift", "benchpin.verify", "cold_cache", "fsync", "randomize_tensor"} {
		if !strings.Contains(notes, part) {
			t.Errorf("no note about %s:\n%s", part, notes)
		}
	}
	if p.CheckpointForm != BundleForm {
		t.Errorf("checkpoints of the form %q", p.CheckpointForm)
	}
	before, err := p.WithCheckpointForm("")
	if err != nil || before.CheckpointForm != "" || before.CheckpointBytes != p.CheckpointBytes || before.MemoryBytes > p.MemoryBytes+1<<20 ||
		before.Model().Files(0)[0].Name != strings.TrimSuffix(p.Model().Files(0)[1].Name, ".pb-1.index")+".pt" {
		t.Errorf("as PyTorch's files: %+v, %v", before, err)
	}
	if same, err := p.WithCheckpointForm(BundleForm); same != p || err != nil {
		t.Errorf("in its own form: %v", err)
	}
	if want := record.Int(p.model.RankPayload(0)); p.CheckpointBytes != want || math.Signbit(float64(want)) {
		t.Errorf("a checkpoint of %d bytes, expected %d", p.CheckpointBytes, want)
	}
}

// TestTrainingSavesTransformers: in a run that trains, every rank writes its part of the model after its steps.
func TestTrainingSavesTransformers(t *testing.T) {
	w := checkpointWorkload(func(w *workload.Workload) {
		w.Workflow.Train, w.Checkpoint.StepsBetweenCheckpoints, w.Train.ComputationTime = true, 2, constant(100*time.Millisecond)
		w.Model.Parallelism, w.Benchpin.ColdCache = workload.Parallelism{Tensor: 2, Pipeline: 1, Data: -1, ZeroStage: 1}, workload.ColdNone
	})
	c := newMemoryStore()
	c.commit = time.Second
	simulate(t, w, func(t *testing.T) *sim { return newSim(t, 16, 1, ms, 0, 0) }, func(o *Options) { o.Checkpoints = c },
		func(t *testing.T, p *Plan, res *Result, err error) {
			if err != nil || len(res.Checkpoints.Saves) != 2 {
				t.Fatalf("%v, %+v", err, res.Checkpoints)
			}
			expected, err := ExpectedCheckpoints(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range res.Checkpoints.Saves {
				if s.Digest != expected[i].Digest || s.Bytes != record.Int(p.model.BytesPerCheckpoint()) {
					t.Errorf("wrote %+v, expected %+v", s, expected[i])
				}
				for rank, want := range []float64{2, 2, 1, 1} { // the first copy has the model, too
					near(t, "seconds", s.Seconds[rank], want)
				}
			}
			near(t, "DLIO's duration", res.Metrics.DLIO["save_checkpoint_duration_mean_seconds"].(float64), 2)
			near(t, "throughput", figure(t, "throughput", res.Metrics.Other["save_checkpoint_bytes_per_second_min"]), float64(p.CheckpointBytes)/2)
			if res.Metrics.AU.Value == nil {
				t.Error("the figures of the steps are gone")
			}
		})
}
