package bench

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/benchpin/benchpin/pkg/bench/checkpoint"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// CheckpointOnly reports whether a workload trains nothing and only writes and reads checkpoints: workflow.checkpoint without
// workflow.train. Such a run reads no data set.
func CheckpointOnly(w *workload.Workload) bool { return w.Workflow.Checkpoint && !w.Workflow.Train }

// BundleForm is record.Plan.CheckpointForm where checkpoints are TensorFlow's bundles.
const BundleForm = "tensorflow"

// formOf is the form of a workload's checkpoints, as record.Plan has it.
func formOf(w *workload.Workload) string {
	if w.Framework == "tensorflow" {
		return BundleForm
	}
	return ""
}

// WithCheckpointForm returns the plan with checkpoints in the given form (record.Plan.CheckpointForm) where it has another: before there were
// bundles, workloads of either framework wrote PyTorch's files, and what was recorded then stays true. Other words change nothing.
func (p *Plan) WithCheckpointForm(form string) (*Plan, error) {
	if p.model == nil || form == p.CheckpointForm || form != "" {
		return p, nil
	}
	model, err := stateOf(p.workload, form)
	if err != nil {
		return nil, err
	}
	other := *p
	other.MemoryBytes += record.Int(p.checkpointMemory(model) - p.checkpointMemory(p.model))
	other.model, other.CheckpointForm = model, form
	return &other, nil
}

// checkpointMemory is the buffer memory of saves and loads.
func (p *Plan) checkpointMemory(model *checkpoint.Plan) (total int64) {
	for rank := range p.Accelerators {
		switch {
		case !model.Writes(rank):
		case p.CheckpointReads > 0:
			total += model.LoadMemoryBytes() + uploadMemory(p.workload, 1, model.RankBytes(rank))
		case p.Checkpoints > 0:
			total += model.MemoryBytes() + uploadMemory(p.workload, 1, model.RankBytes(rank))
		}
	}
	return total
}

// stateOf is what a checkpoint of the workload holds.
func stateOf(w *workload.Workload, form string) (*checkpoint.Plan, error) {
	t, p := w.Model.Transformer, w.Model.Parallelism
	model, err := checkpoint.NewPlan(checkpoint.Config{
		Seed: w.Benchpin.Seed, Ranks: w.Benchpin.Accelerators, Framework: w.Framework, Bundles: form == BundleForm, ModelType: w.Model.Type,
		ModelSizeBytes: w.Model.ModelSizeBytes, NumLayers: w.Model.NumLayers, LayerParameters: w.Model.LayerParameters,
		OptimizationGroups: w.Model.OptimizationGroups,
		Transformer: checkpoint.Transformer{Vocabulary: t.VocabSize, Hidden: t.HiddenSize, FFN: t.FFNHiddenSize, Heads: t.NumAttentionHeads,
			KVHeads: t.NumKVHeads},
		ModelDatatype: w.Model.ModelDatatype, OptimizerDatatype: w.Model.OptimizerDatatype,
		Tensor: p.Tensor, Pipeline: p.Pipeline, Data: p.Data, ZeroStage: p.ZeroStage, Subset: w.Checkpoint.Mode == "subset",
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrImpossible, err)
	}
	return model, nil
}

// unsupportedCheckpoints are the keys of checkpoints that cannot be run.
func unsupportedCheckpoints(w *workload.Workload) (keys []Unsupported) {
	if !w.Workflow.Checkpoint {
		return nil
	}
	if c := w.Checkpoint.CheckpointMechanismClassname; c != "" {
		keys = append(keys, Unsupported{"checkpoint.checkpoint_mechanism_classname", fmt.Sprintf("%q", c), "absent: Python classes cannot be run"})
	}
	return keys
}

// onlyPoints are the checkpoints of a run that does nothing else: DLIO counts them as the steps of one epoch.
func onlyPoints(n int) iter.Seq[checkpoint.Point] {
	return func(yield func(checkpoint.Point) bool) {
		for i := 1; i <= n; i++ {
			if !yield(checkpoint.Point{Number: i, Epoch: 1, Step: int64(i)}) {
				return
			}
		}
	}
}

// CheckpointFiles yields name and size of every file of every checkpoint that the plan writes.
func (p *Plan) CheckpointFiles() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		if p.model == nil {
			return
		}
		for pt := range p.points() {
			for rank := range p.Accelerators {
				for _, f := range p.model.Files(rank) {
					if !yield(pt.Name()+"/"+f.Name, f.Size) {
						return
					}
				}
			}
		}
	}
}

// OwnCheckpoints looks into the folder that checkpoints go to for files that stand where one goes. The error matches
// checkpoint.ErrForeign for the first that is not what the plan writes there.
func (p *Plan) OwnCheckpoints(ctx context.Context, st checkpoint.Opener) error {
	if p.model == nil || p.Checkpoints == 0 {
		return nil
	}
	for pt := range p.points() {
		for rank := range p.Accelerators {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if err := p.model.Own(st, pt, rank); err != nil {
				return err
			}
		}
	}
	return nil
}

// planCheckpointOnly plans a run that only writes and reads checkpoints. Everything about samples is 0 in it.
func planCheckpointOnly(w *workload.Workload) (*Plan, error) {
	if err := supportedCheckpointOnly(w); err != nil {
		return nil, err
	}
	r, c := w.Benchpin.Accelerators, &w.Checkpoint
	if r < 1 || r > maxAccelerators {
		return nil, fmt.Errorf("%w: benchpin.accelerators is %d: expected 1 to %d", ErrImpossible, r, maxAccelerators)
	}
	writes, reads := max(c.NumCheckpointsWrite, 0), max(c.NumCheckpointsRead, 0)
	switch {
	case writes+reads == 0:
		return nil, fmt.Errorf("%w: nothing to run: workflow.train is false, and checkpoint.num_checkpoints_write and checkpoint.num_checkpoints_read "+
			"are %d and %d; give one of them", ErrImpossible, c.NumCheckpointsWrite, c.NumCheckpointsRead)
	case writes > 0 && reads > writes:
		return nil, fmt.Errorf("%w: checkpoint.num_checkpoints_read is %d of %d that are written (checkpoint.num_checkpoints_write); lower it, or write "+
			"none to read those of an earlier run", ErrImpossible, reads, writes)
	case writes > checkpoint.MaxNumber || reads > checkpoint.MaxNumber:
		return nil, fmt.Errorf("%w: %d checkpoints to write and %d to read: at most %d are possible", ErrImpossible, writes, reads,
			checkpoint.MaxNumber)
	}
	model, err := stateOf(w, formOf(w))
	if err != nil {
		return nil, err
	}
	p := &Plan{
		Plan: record.Plan{
			Class: record.Recomputable, Accelerators: r, AUThreshold: 100 * w.Metric.AU,
			// No store is as fast as none: what is left are the pauses.
			ExpectedSeconds: pause(w).Seconds() * float64(writes+reads),
			Order:           w.Benchpin.Order, OrderSeed: record.Int(w.Train.Seed),
			Checkpoints: writes, CheckpointReads: reads, CheckpointBytes: record.Int(model.PayloadPerCheckpoint()),
			CheckpointForm: formOf(w),
		},
		workload: w, model: model,
	}
	p.MemoryBytes = record.Int(int64(r)*goroutineBytes + p.checkpointMemory(model))
	p.noteCheckpointOnly()
	return p, nil
}

// supportedCheckpointOnly is supported, for the keys that matter where no data is read.
func supportedCheckpointOnly(w *workload.Workload) error {
	e := UnsupportedError{Keys: unsupportedCheckpoints(w)}
	for _, k := range []struct {
		key, found string
		allowed    []string
	}{
		{"framework", w.Framework, []string{"pytorch", "tensorflow"}},
		{"storage.storage_type", w.Storage.StorageType, []string{"local_fs", parallelFS, objectStore}},
		{"benchpin.order", w.Benchpin.Order, []string{workload.OrderNumpy, workload.OrderDLIO}},
	} {
		if !slices.Contains(k.allowed, k.found) {
			e.Keys = append(e.Keys, Unsupported{k.key, fmt.Sprintf("%q", k.found), fmt.Sprint(k.allowed)})
		}
	}
	if len(e.Keys) > 0 {
		return &e
	}
	return nil
}

// noteCheckpointOnly adds remarks about keys that are accepted and make no difference.
func (p *Plan) noteCheckpointOnly() {
	w := p.workload
	add := func(when bool, text string, args ...any) {
		if when {
			p.Notes = append(p.Notes, fmt.Sprintf(text, args...))
		}
	}
	add(w.Workflow.GenerateData, "workflow.generate_data: no data set is generated, because a run without workflow.train reads none")
	add(w.Workflow.Evaluation, "workflow.evaluation changes nothing without workflow.train")
	add(w.Workflow.Profiling, "workflow.profiling is accepted and starts no profiler")
	p.noteCheckpoints()
	add(!w.Checkpoint.Fsync && p.Checkpoints > 0, "checkpoint.fsync is false: a write may end before the bytes are on the device")
	add(w.Checkpoint.RecoveryRankShift && p.CheckpointReads > 0 && p.Accelerators == 1,
		"checkpoint.recovery_rank_shift changes nothing for one accelerator: there is no other to read from")
	add(p.CheckpointReads > 0 && w.Benchpin.Verify == workload.VerifyNone, "benchpin.verify is none: what is read back is not compared")
	add(p.CheckpointReads > 0 && w.Benchpin.ColdCache == workload.ColdNone,
		"benchpin.cold_cache is none: checkpoints may be read back from the page cache")
}

// noteCheckpoints adds remarks about checkpoints of any run.
func (p *Plan) noteCheckpoints() {
	if !p.workload.Checkpoint.RandomizeTensor {
		p.Notes = append(p.Notes, "checkpoint.randomize_tensor is false: checkpoints hold seeded content all the same, so that no two are equal")
	}
}

// shift is how many ranks further the files are that a rank reads back. With checkpoint.recovery_rank_shift, a rank reads what a rank of
// the next node wrote; where all ranks are on one node, what its neighbour wrote.
func (p *Plan) shift() int {
	if !p.workload.Checkpoint.RecoveryRankShift {
		return 0
	}
	if n := p.workload.Benchpin.AcceleratorsPerProcess; n%p.Accelerators != 0 {
		return n
	}
	return 1 % p.Accelerators
}

// DLIOCheckpointBytes is the size of a checkpoint of a workload as DLIO counts it. form is record.Plan.CheckpointForm.
func DLIOCheckpointBytes(w *workload.Workload, form string) (int64, error) {
	model, err := stateOf(w, form)
	if err != nil {
		return 0, err
	}
	return model.DLIOBytes(), nil
}
