package pipeline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/benchpin/benchpin/pkg/bench"
)

// timesFiles are the files of step times of a run. Of several processes each keeps its own in the run folder, under a name that begins with
// a dot, until process 0 has put them together.
type timesFiles struct {
	run  *run
	kept []*os.File // in the run folder when the run has ended
	own  []*os.File // removed then
}

// open makes them, for the options of a run.
func (t *timesFiles) open(o *bench.Options) error {
	steps, all := []*bench.StepsFile{&o.Steps, &o.EvalSteps}, []*bench.StepsFile{&o.AllSteps, &o.AllEvalSteps}
	for i, name := range t.run.timesNames() {
		if !several(t.run.World) {
			if err := t.add(&t.kept, name, steps[i]); err != nil {
				return err
			}
			continue
		}
		if err := t.add(&t.own, "."+name+"-"+strconv.Itoa(t.run.World.Rank()), steps[i]); err != nil {
			return err
		}
		if leads(t.run.World) {
			if err := t.add(&t.kept, name, all[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *timesFiles) add(to *[]*os.File, name string, use *bench.StepsFile) error {
	f, err := os.OpenFile(filepath.Join(t.run.Out, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fmt.Errorf("step times: %w", err)
	}
	*to, *use = append(*to, f), f
	return nil
}

// sync brings what is kept to the device.
func (t *timesFiles) sync() error {
	for _, f := range t.kept {
		if err := f.Sync(); err != nil {
			return fmt.Errorf("step times: %w", err)
		}
	}
	return nil
}

func (t *timesFiles) close() {
	for _, f := range t.kept {
		f.Close()
	}
	for _, f := range t.own {
		// Of a job that was killed one may be left; it is none of the result's files.
		_ = errors.Join(f.Close(), os.Remove(f.Name()))
	}
}
