package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/journal"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
	"github.com/benchpin/benchpin/pkg/store"
)

// unmade returns what removes a folder that is not there yet, and those above it that are not there either, as far as they are empty then.
func unmade(dir string) func() {
	var made []string
	for dir != "" {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		made = append(made, dir)
		dir = filepath.Dir(dir)
	}
	return func() {
		for _, dir := range made {
			if os.Remove(dir) != nil {
				return
			}
		}
	}
}

// freshFolder refuses a run folder that holds a result already.
func freshFolder(dir string) error {
	if dir == "" {
		return errors.New("run: expected a run folder for the result")
	}
	for _, name := range []string{RecordName, StepsName, EvalStepsName, ReadsName, report.DLIOSummaryName, journal.CopyName, record.PreregistrationName} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("run folder %s holds %s already; choose another folder, results are never overwritten", dir, name)
		} else if !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("run folder: %w", err)
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("make the run folder: %w", err)
	}
	return nil
}

// ownCheckpoints refuses a checkpoint folder that holds something else under the names of the plan's checkpoints. Those that an earlier
// run of the same workload left are written over, as DLIO does.
func ownCheckpoints(ctx context.Context, plan *bench.Plan, folder string, again bool) error {
	st, err := openPlace(ctx, plan.Workload(), folder, again, store.FolderOptions{})
	if err != nil {
		return err
	}
	defer st.Close()
	if err := plan.OwnCheckpoints(ctx, st); err != nil {
		return fmt.Errorf("checkpoint folder %s: %w; give another folder, or --overwrite-checkpoints", folder, err)
	}
	return nil
}
