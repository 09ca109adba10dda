package bench

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/benchpin/benchpin/pkg/bench/checkpoint"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
)

// save is one checkpoint of the run: what each rank wrote, and how many have.
type save struct {
	ranks []checkpoint.RankSave
	done  atomic.Int64
}

func (r *run) saveAfterStep(epoch int, step int64) (checkpoint.Point, bool) {
	if r.ckpt == nil {
		return checkpoint.Point{}, false
	}
	return r.p.saves.DueAfterStep(epoch, step, int64(r.p.StepsPerEpoch))
}

func (r *run) saveAfterEpoch(epoch int) (checkpoint.Point, bool) {
	if r.ckpt == nil {
		return checkpoint.Point{}, false
	}
	return r.p.saves.DueAfterEpoch(epoch, int64(r.p.StepsPerEpoch))
}

// save writes the state of one rank. It returns when the state is written or the run has ended, even if the store hangs.
func (r *run) save(ctx context.Context, pt checkpoint.Point, rank int) error {
	s := &r.saves[pt.Number-1]
	if !r.p.model.Writes(rank) {
		s.done.Add(1)
		return nil
	}
	type outcome struct {
		save checkpoint.RankSave
		err  error
	}
	saved := make(chan outcome, 1)
	go func() {
		rs, err := r.ckpt.Save(ctx, pt, rank)
		saved <- outcome{rs, err}
	}()
	select {
	case got := <-saved:
		if got.err != nil {
			return got.err
		}
		s.ranks[rank] = got.save
		s.done.Add(1)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// points are the checkpoints that the plan writes, in order.
func (p *Plan) points() iter.Seq[checkpoint.Point] {
	if p.order == nil {
		return onlyPoints(p.Checkpoints)
	}
	return p.saves.Points(p.Epochs, int64(p.StepsPerEpoch))
}

// checkpoints returns the record of the checkpoints that all ranks finished. started is the moment that their times count from.
func (r *run) checkpoints(started time.Time) []record.Checkpoint {
	list := []record.Checkpoint{}
	i := 0
	if r.ckpt == nil {
		return list
	}
	for pt := range r.p.points() {
		s := &r.saves[i]
		i++
		if s.done.Load() != int64(r.p.Accelerators) {
			continue
		}
		ranks := r.p.Accelerators
		c := record.Checkpoint{Name: pt.Name(), Epoch: pt.Epoch, Step: record.Int(pt.Step), Seconds: make([]float64, ranks),
			WriteSeconds: make([]float64, ranks), StarvedSeconds: make([]float64, ranks)}
		var files []checkpoint.FileSum
		for rank := range s.ranks {
			saved := &s.ranks[rank]
			c.Seconds[rank] = saved.Duration.Seconds()
			if at := saved.Started.Sub(started).Seconds(); !saved.Started.IsZero() && (c.Start == nil || at < *c.Start) {
				c.Start = &at
			}
			var write, starved time.Duration
			for _, f := range saved.Files {
				write, starved = write+f.Write, starved+f.Starved
				files = append(files, f.FileSum)
				c.Bytes += record.Int(f.Size)
			}
			c.WriteSeconds[rank], c.StarvedSeconds[rank] = write.Seconds(), starved.Seconds()
		}
		c.Digest = CheckpointDigest(files)
		list = append(list, c)
	}
	return list
}

// CheckpointDigest is the root over the files of one checkpoint, as a manifest of them would have it: sorted by path, one entry
// line a leaf.
func CheckpointDigest(files []checkpoint.FileSum) string {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b checkpoint.FileSum) int { return strings.Compare(a.Path, b.Path) })
	var tree manifest.Tree
	var line []byte
	for _, f := range files {
		line = manifest.Entry{Path: f.Path, Size: f.Size, Digest: f.Digest}.AppendLine(line[:0])
		tree.Add(line)
	}
	return digestText(tree.Root())
}

// ExpectedCheckpoints computes what the checkpoints of a run must be, without any storage: like the transcript, they follow from the
// workload alone. What was measured is left out. It takes the time to produce and hash all their bytes.
func ExpectedCheckpoints(ctx context.Context, p *Plan) ([]record.Checkpoint, error) {
	list := []record.Checkpoint{}
	if p.Checkpoints == 0 {
		return list, nil
	}
	for pt := range p.points() {
		c := record.Checkpoint{Name: pt.Name(), Epoch: pt.Epoch, Step: record.Int(pt.Step)}
		var files []checkpoint.FileSum
		for rank := range p.Accelerators {
			if !p.model.Writes(rank) {
				continue
			}
			sums, err := p.model.Expect(ctx, pt, rank)
			if err != nil {
				return nil, err
			}
			files = append(files, sums...)
		}
		for _, f := range files {
			c.Bytes += record.Int(f.Size)
		}
		c.Digest = CheckpointDigest(files)
		list = append(list, c)
	}
	return list, nil
}
