package bench

import (
	"context"
	"iter"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchpin/benchpin/pkg/bench/checkpoint"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
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
// workload alone. What was measured is left out. It takes the time to produce and hash all their bytes, on all cores.
func ExpectedCheckpoints(ctx context.Context, p *Plan) ([]record.Checkpoint, error) {
	return ExpectedCheckpointsWithin(ctx, p, math.MaxInt64)
}

// ExpectedCheckpointsWithin is ExpectedCheckpoints with a limit on the bytes that are produced: the digests of the first checkpoints are
// computed, as many as keep within it, and those of the others are left empty.
func ExpectedCheckpointsWithin(ctx context.Context, p *Plan, limit int64) ([]record.Checkpoint, error) {
	list := []record.Checkpoint{}
	if p.Checkpoints == 0 {
		return list, nil
	}
	size := p.model.BytesPerCheckpoint()
	for pt := range p.points() {
		c := record.Checkpoint{Name: pt.Name(), Epoch: pt.Epoch, Step: record.Int(pt.Step), Bytes: record.Int(size)}
		if limit >= size {
			limit -= size
			files, err := expectedFiles(ctx, p, pt)
			if err != nil {
				return nil, err
			}
			c.Digest = CheckpointDigest(files)
		}
		list = append(list, c)
	}
	return list, nil
}

// expectedFiles are the files of one checkpoint, over all ranks.
func expectedFiles(ctx context.Context, p *Plan, pt checkpoint.Point) ([]checkpoint.FileSum, error) {
	ranks := make([][]checkpoint.FileSum, p.Accelerators)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for rank := range p.Accelerators {
		if !p.model.Writes(rank) {
			continue
		}
		g.Go(func() (err error) {
			ranks[rank], err = p.model.Expect(ctx, pt, rank)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(ranks...), nil
}

// ExpectedLoads are the checkpoints that a run reads back; they follow from the workload alone. What was measured is left out.
func ExpectedLoads(p *Plan) []record.CheckpointLoad {
	var list []record.CheckpointLoad
	for pt := range onlyPoints(p.CheckpointReads) {
		list = append(list, record.CheckpointLoad{Name: pt.Name(), Epoch: pt.Epoch, Step: record.Int(pt.Step),
			Bytes: record.Int(p.model.BytesPerCheckpoint()), Verified: p.workload.Benchpin.Verify != workload.VerifyNone})
	}
	return list
}
