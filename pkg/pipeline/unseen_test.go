package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/cluster/clustertest"
	"github.com/benchpin/benchpin/pkg/manifest"
)

// TestProcessesThatDoNotSeeTheData: an intact data set is not called damaged where a process looks into another folder.
func TestProcessesThatDoNotSeeTheData(t *testing.T) {
	l, tool := generatedFor(t, processesWorkload(t)), testTool(t)
	elsewhere := t.TempDir()
	verify := func(blind int) []error {
		errs := make([]error, 3)
		_ = clustertest.New(3, 1).Run(t.Context(), func(ctx context.Context, world *cluster.World) error {
			o := VerifyDataOptions{Data: l.Data(), Manifest: l.Manifest(), World: world, Tool: tool}
			if world.Rank() == blind {
				o.Data = elsewhere
			}
			_, _, errs[world.Rank()] = VerifyData(ctx, o)
			return nil
		})
		return errs
	}
	for blind := range 3 {
		for process, err := range verify(blind) {
			mismatch := (*manifest.MismatchError)(nil)
			if err == nil || errors.As(err, &mismatch) || errors.Is(err, ErrVerification) ||
				!strings.Contains(err.Error(), fmt.Sprintf("process %d on node%d: the data set", blind, blind)) || !strings.Contains(err.Error(), "cannot be seen") {
				t.Errorf("process %d sees nothing: process %d says %v", blind, process, err)
			}
		}
	}
	// What nobody sees is missing, and no matter of processes.
	if err := os.RemoveAll(filepath.Join(l.Data(), "train")); err != nil {
		t.Fatal(err)
	}
	for process, err := range verify(-1) {
		if err == nil || strings.Contains(err.Error(), "cannot be seen") {
			t.Errorf("nothing is there: process %d says %v", process, err)
		}
	}
}
