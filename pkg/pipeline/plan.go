package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/workload"
)

// Plan computes what a run of the workload would do, and touches nothing. With the path of a manifest the plan is for that data
// set; without one ("") it is for the data set that the workload would generate. Its errors are those of bench.NewPlan, of reading
// the manifest, and of a workload whose data cannot be generated.
//
// A workload that only writes and reads checkpoints reads no data, and the manifest makes no difference to it.
//
// Data that nobody generated are read as the workload says, in every number: ForData resolves one that leaves something open.
func Plan(ctx context.Context, w *workload.Workload, manifestPath string) (*bench.Plan, error) {
	held, free, err := heldManifest(ctx, w, manifestPath)
	if err != nil {
		return nil, err
	}
	p, err := unlessDone(ctx, func() (*bench.Plan, error) { return plan(ctx, w, held) })
	return p, errors.Join(err, free())
}

// PlanOn is Plan of a workload that is resolved for the data set of the manifest first (ForData). It returns what it was resolved to.
func PlanOn(ctx context.Context, r *workload.Resolved, manifestPath string) (*bench.Plan, *workload.Resolved, error) {
	manifestPath, free, err := heldManifest(ctx, r.Workload, manifestPath)
	if err != nil {
		return nil, nil, err
	}
	defer free()
	if manifestPath != "" && !bench.CheckpointOnly(r.Workload) {
		m, err := manifest.Open(manifestPath)
		if err != nil {
			return nil, nil, err
		}
		resolved, err := ForData(ctx, r, m)
		if err = errors.Join(err, m.Close()); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", manifestPath, err)
		}
		r = resolved
	}
	p, err := Plan(ctx, r.Workload, manifestPath)
	return p, r, err
}

func plan(ctx context.Context, w *workload.Workload, manifestPath string) (*bench.Plan, error) {
	if bench.CheckpointOnly(w) {
		return bench.NewPlan(w, nil)
	}
	if manifestPath == "" {
		files, err := filesOf(w)
		if err != nil {
			return nil, err
		}
		plan, err := bench.NewPlan(w, files)
		if err == nil {
			plan.FileBytes = keptOf(w, files.recipe.Entries(), 0)
		}
		if err == nil && !files.exact() && files.recipe.Available() == nil {
			plan.Notes = append(plan.Notes, "bytes are estimated: how large a file becomes follows from its content, and is known when it is there")
		}
		if missing := files.recipe.Available(); err == nil && missing != nil {
			plan.Notes = append(plan.Notes, "bytes are the most that there can be, and nothing can be generated or read: "+missing.Error())
		}
		return plan, err
	}
	m, err := manifest.Open(manifestPath)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	files, err := openFiles(ctx, m, w)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", manifestPath, err)
	}
	if err := files.suits(w); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestPath, err)
	}
	plan, err := bench.NewPlan(w, files.dataset())
	if err == nil {
		plan.FileBytes = keptOf(w, len(files.byEntry), files.named())
	}
	return plan, err
}

// newPlan is bench.NewPlanAfter that ends with ctx.
func newPlan(ctx context.Context, w *workload.Workload, ds bench.Dataset, value string) (*bench.Plan, error) {
	return unlessDone(ctx, func() (*bench.Plan, error) { return bench.NewPlanAfter(w, ds, value) })
}

// unlessDone returns what f does, or ctx's error as soon as ctx is done. Planning a hundred million files takes minutes of arithmetic, in
// many small loops that know no context: whoever interrupts it must not wait for them. What f still computes then is dropped; f must not
// write anything.
func unlessDone[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("plan: %w", context.Cause(ctx))
	}
}
