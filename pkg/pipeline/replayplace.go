package pipeline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/benchpin/benchpin/pkg/store"
)

// ErrInsideResult is wrapped by the error about a place for a replay that is an archive or a run folder, or lies in the archive that is
// replayed: what is written there would be foreign files among those of evidence.
var ErrInsideResult = errors.New("it belongs to a result")

// apart refuses places of the replay where a result stands, before anything is done.
func (r *replay) apart() error {
	if r.Scope == ReplaySchedule {
		return nil // writes nothing
	}
	for _, p := range []place{{r.Dir, "--dir"}, {r.Data, "--data"}, {r.Journal, "--journal"}} {
		if p.path == "" || IsBucket(p.path) {
			continue
		}
		inside, err := store.Inside(r.Archive, p.path)
		if err != nil {
			return fmt.Errorf("%s %s: %w", p.flag, p.path, err)
		}
		if inside {
			return fmt.Errorf("%s %s: %w: it lies in the archive that is replayed, which would not verify any more; choose a path outside of it", p.flag, p.path, ErrInsideResult)
		}
	}
	for _, name := range []string{RecordName, "oci-layout"} {
		if _, err := os.Lstat(filepath.Join(r.Dir, name)); err == nil {
			return fmt.Errorf("--dir %s: %w: it holds %s, as a run folder or an archive does; choose a folder of the replay's own", r.Dir, ErrInsideResult, name)
		}
	}
	return nil
}
