package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/benchpin/benchpin/pkg/bench/checkpoint"
	"github.com/benchpin/benchpin/pkg/record"
)

// processLoads is what a process says of the checkpoints that were read back. The reads of its ranks follow it, one sentSave for each rank
// of each checkpoint.
type processLoads struct {
	Eviction *record.Eviction
	// Devices are what came from block devices for the process, for each checkpoint.
	Devices []Count
}

// gather brings what all processes wrote and read to process 0.
func (r *only) gather(ctx context.Context) error {
	if r.world.Size() == 1 {
		return nil
	}
	if err := r.gatherShares(ctx); err != nil {
		return err
	}
	src, in := io.Pipe()
	defer src.Close()
	go func() { in.CloseWithError(r.sendLoads(in)) }()
	return r.world.Gather(ctx, src, func(streams []io.Reader) error {
		for process, s := range streams[1:] {
			if err := r.takeLoads(json.NewDecoder(s), process+1); err != nil {
				return fmt.Errorf("what process %d read back: %w", process+1, err)
			}
		}
		return nil
	})
}

func (r *only) sendLoads(to io.Writer) error {
	e := json.NewEncoder(to)
	p := processLoads{Eviction: r.evicted}
	for i := range r.loads {
		p.Devices = append(p.Devices, r.loads[i].device)
	}
	if err := e.Encode(p); err != nil {
		return err
	}
	for i := range r.loads {
		for rank := r.first; rank < r.first+r.count; rank++ {
			if err := e.Encode(r.sentLoad(rank, &r.loads[i].ranks[rank])); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *only) takeLoads(d *json.Decoder, process int) error {
	var p processLoads
	if err := d.Decode(&p); err != nil {
		return err
	}
	first, count, err := r.p.Part(process, r.world.Size())
	if err != nil {
		return err
	}
	if len(p.Devices) != len(r.loads) {
		return fmt.Errorf("expected %d checkpoints, found %d", len(r.loads), len(p.Devices))
	}
	r.evicted = mergeEviction(r.evicted, p.Eviction)
	for i := range r.loads {
		l := &r.loads[i]
		if l.device.Bytes += p.Devices[i].Bytes; l.device.Absent == "" {
			l.device.Absent = p.Devices[i].Absent
		}
		for rank := first; rank < first+count; rank++ {
			var s sentSave
			if err := d.Decode(&s); err != nil {
				return err
			}
			if s.Rank != rank {
				return fmt.Errorf("checkpoint %d: expected rank %d, found %d", i+1, rank, s.Rank)
			}
			l.ranks[rank] = r.takenLoad(s)
			l.done.Add(1)
		}
	}
	return nil
}

// sentLoad is what a rank read of a checkpoint, to be sent.
func (r *only) sentLoad(rank int, l *checkpoint.RankLoad) sentSave {
	to := sentSave{Rank: rank, Begun: !l.Started.IsZero(), Duration: int64(l.Duration)}
	if to.Begun {
		to.Start = int64(l.Started.Sub(r.base))
	}
	for _, f := range l.Files {
		to.Files = append(to.Files, sentFile{Path: f.Path, Size: f.Size, Starved: int64(f.Waited)})
	}
	return to
}

// takenLoad is what a rank of another process read of a checkpoint.
func (r *only) takenLoad(s sentSave) checkpoint.RankLoad {
	to := checkpoint.RankLoad{Rank: s.Rank, Duration: time.Duration(s.Duration)}
	if s.Begun {
		to.Started = r.base.Add(time.Duration(s.Start))
	}
	for _, f := range s.Files {
		to.Files = append(to.Files, checkpoint.FileLoad{Path: f.Path, Size: f.Size, Waited: time.Duration(f.Starved)})
	}
	return to
}

// mergeEviction is how checkpoints were dropped on all hosts: each drops all of them, and of what was in page caches the most that one had
// is said.
func mergeEviction(all, more *record.Eviction) *record.Eviction {
	if all == nil || more == nil {
		if all == nil {
			return more
		}
		return all
	}
	most := func(a, b *record.Int) *record.Int {
		if a == nil || b == nil {
			return nil // a host does not tell
		}
		m := max(*a, *b)
		return &m
	}
	e := *all
	e.ResidentBefore, e.ResidentAfter = most(e.ResidentBefore, more.ResidentBefore), most(e.ResidentAfter, more.ResidentAfter)
	return &e
}
