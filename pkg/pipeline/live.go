package pipeline

import (
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/live"
)

// follow has the timed part shown while it goes on, where somebody asked for that, until the function it returns is called. Of several
// processes the first one shows the run.
func (r *run) follow(o *bench.Options) (end func()) {
	if r.Live == nil || !leads(r.World) {
		return func() {}
	}
	o.Progress, o.Live = nil, new(bench.Live)
	r.dropping = o.Live.Dropping
	return live.Follow(live.Options{Run: r.ID, Counts: o.Live.Counts, Each: r.Live})
}

// ApartFromData refuses a place, named as what it is for, that lies in a data folder, where whatever is written would be a foreign file among
// those of the data set.
func ApartFromData(data, path, what string) error { return apart(data, place{path, what}) }
