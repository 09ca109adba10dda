package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// NoDataManifest is the manifest, in the run folder, of a run whose data set was removed after it (dataset.keep_files), or that reads none.
// Then it lists no file, so that a record always names a
// manifest and an archive always holds one.
const NoDataManifest = "manifest.json"

// withoutData prepares a run that only writes and reads checkpoints. Whatever manifest was given, none is looked at.
func (r *run) withoutData() (err error) {
	folder := r.Out
	if !leads(r.World) { // the run folder's is the first process's
		if folder, err = os.MkdirTemp("", "benchpin-"); err != nil {
			return fmt.Errorf("manifest of no files: %w", err)
		}
		defer os.RemoveAll(folder)
	}
	r.Manifest = filepath.Join(folder, NoDataManifest)
	f, err := manifest.Create(r.Manifest, manifest.Meta{})
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Commit(); err != nil {
		return err
	}
	if r.manifest, err = manifest.Open(r.Manifest); err != nil {
		return err
	}
	r.files = &pinnedFiles{}
	if r.plan, err = bench.NewPlan(r.w, nil); err != nil {
		return errors.Join(err, r.manifest.Close())
	}
	if err := r.dealt(); err != nil {
		return errors.Join(err, r.manifest.Close())
	}
	return nil
}

// planWithoutData makes the plan of such a run again. Its manifest must be the empty one.
func planWithoutData(ctx context.Context, w *workload.Workload, v *attest.Verification) (*bench.Plan, *pinnedFiles, *fault.Fault) {
	if h := v.Manifest.Header(); h.Count != 0 || h.Recipe != nil {
		return nil, nil, fault.New(fault.Manifest, "count", fmt.Sprintf("the workload reads no data set; expected a manifest of 0 files without recipe, "+
			"found %d", h.Count)).In(attest.TitleManifest)
	}
	return samePlan(ctx, w, &pinnedFiles{}, v)
}

// roomForCheckpoints refuses to begin what cannot be written to the end. Files of an earlier run are written over.
func (r *run) roomForCheckpoints(saves placeStore) error {
	st, ok := saves.(*store.Folder)
	if !ok {
		return nil // nobody tells how much room a bucket has
	}
	free, err := st.FreeSpace()
	if err != nil {
		return err
	}
	need := int64(0)
	model := r.plan.Model()
	for number := 1; number <= r.plan.Checkpoints; number++ {
		if need += model.BytesPerCheckpoint(); need > free {
			break
		}
	}
	if need <= free {
		return nil
	}
	for name := range r.plan.CheckpointFiles() {
		info, err := st.Stat(name)
		if err == nil {
			free += info.Size
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if need = int64(r.plan.Checkpoints) * model.BytesPerCheckpoint(); need <= free {
		return nil
	}
	return fmt.Errorf("%d checkpoints of %s need %s in %s, and %s are free; lower checkpoint.num_checkpoints_write, or give another folder", r.plan.Checkpoints,
		gigabytes(model.BytesPerCheckpoint()), gigabytes(need), st.Root(), gigabytes(free))
}
