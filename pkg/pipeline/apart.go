package pipeline

import (
	"errors"
	"fmt"

	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// ErrInsideData is wrapped by the error about a path that lies in the data folder, where whatever is written would be a foreign file
// among those of the data set.
var ErrInsideData = errors.New("it lies in the data folder")

// place is a path that something will be written to, and the flag that gives it.
type place struct{ path, flag string }

// apart refuses places in the data folder, also those that symbolic links lead there. An empty path is no place.
func apart(data string, places ...place) error {
	if data == "" || IsBucket(data) {
		return nil // whoever opens it says so; nothing is written beside the objects of a bucket
	}
	for _, p := range places {
		if p.path == "" {
			continue
		}
		inside, err := store.Inside(data, p.path)
		if err != nil {
			return fmt.Errorf("%s %s: %w", p.flag, p.path, err)
		}
		if inside {
			return fmt.Errorf("%s %s: %w %s; choose a path outside of it", p.flag, p.path, ErrInsideData, data)
		}
	}
	return nil
}

// apartForRun is apart for the places of a run: the folder of checkpoints is none where the workload writes none.
func apartForRun(w *workload.Workload, data, out, checkpoints, manifest string) error {
	if !w.Workflow.Checkpoint {
		checkpoints = ""
	}
	return apart(data, place{out, "run folder"}, place{checkpoints, "checkpoint folder"}, place{manifest, "manifest"})
}

// apartFrom refuses a pipeline's folder of which the data folder holds the other parts, as it does when it is a symbolic link to one of
// the folders above.
func (l Layout) apartFrom(data string) error {
	return apart(data, place{l.Run("new"), "run folder"}, place{l.Checkpoints(), "checkpoints"}, place{l.Archive(), "archive"},
		place{l.PrivateKey(), "key"}, place{l.Manifest(), "manifest"})
}
