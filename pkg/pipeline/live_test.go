package pipeline

import (
	"context"
	"testing"
)

// dropsOf is a data set that remembers which files were dropped from the page cache.
type dropsOf struct {
	placeStore
	names []string
}

func (d *dropsOf) Evict(name string) error {
	d.names = append(d.names, name)
	return d.placeStore.Evict(name)
}

// TestDroppingIsTold: who looks at a run is told of each file before it is dropped, of how many there are, and when it is over, also where it
// was interrupted.
func TestDroppingIsTold(t *testing.T) {
	w := processesWorkload(t) // 44 files for training, 21 for evaluation
	l := generatedFor(t, w)
	r, err := newRun(t.Context(), &RunOptions{Workload: w, Data: l.Data(), Manifest: l.Manifest(), Checkpoints: l.Checkpoints(), Out: t.TempDir() + "/run"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	data := &dropsOf{placeStore: r.data}
	r.data = data
	if err := r.evict(t.Context()); err != nil || len(data.names) != 65 {
		t.Fatalf("nobody looks: %d files were dropped, expected 65: %v", len(data.names), err)
	}
	data.names = nil
	var last [2]int64
	told := 0
	ctx, cancel := context.WithCancel(t.Context())
	stopAt := int64(-1)
	r.dropping = func(done, all int64) {
		if last = [2]int64{done, all}; all == 0 {
			return
		}
		if told++; done != int64(len(data.names)) || all != 65 {
			t.Errorf("told %d of %d when %d of 65 were dropped", done, all, len(data.names))
		}
		if done == stopAt {
			cancel()
		}
	}
	if err := r.evict(ctx); err != nil || told != 65 || last != [2]int64{} {
		t.Errorf("told %d times, last %v: %v", told, last, err)
	}
	data.names, told, stopAt = nil, 0, 7
	if err := r.evict(ctx); err == nil || told != 8 || last != [2]int64{} {
		t.Errorf("interrupted: told %d times, last %v: %v", told, last, err)
	}
}
