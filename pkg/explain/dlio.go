package explain

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/bench/stats"
)

// dlioBlock is what DLIO takes from one block of one rank.
type dlioBlock struct {
	n                 int64 // steps
	compute, excluded int64 // of the steps in DLIO's window, and load and compute of the others
	start, end        int64
}

// dlioEpoch is one epoch as DLIO sees it.
type dlioEpoch struct {
	au, rate float64
	rows     [][]any
}

// dlioEpochs computes DLIO's AU and rate of every epoch: for each rank the mean over its blocks, weighted by their steps, of
// 100 x compute / time and of (steps - 2) / time x batch; then the mean of the ranks' AU and the sum of their rates.
func (s *Source) dlioEpochs(ctx context.Context, p *part) ([]dlioEpoch, error) {
	blocks := map[place]*dlioBlock{}
	err := p.each(ctx, 0, func(st *stats.Step) {
		k := place{st.Epoch, st.Block, st.Rank}
		b := blocks[k]
		if b == nil {
			b = &dlioBlock{start: st.BlockStart}
			blocks[k] = b
		}
		if i := b.n; i >= p.excludeStart && i <= p.steps-1-p.excludeEnd {
			b.compute += st.Compute
		} else {
			b.excluded += st.Proc
		}
		b.n++
		b.end = max(b.end, st.BlockEnd)
	})
	if err != nil {
		return nil, err
	}
	type rank struct{ au, rate, steps float64 }
	byEpoch := map[int32]map[int32]*rank{}
	keys := make([]place, 0, len(blocks))
	for k := range blocks {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b place) int {
		for _, d := range []int32{a.epoch - b.epoch, a.rank - b.rank, a.block - b.block} {
			if d != 0 {
				return int(d)
			}
		}
		return 0
	})
	for _, k := range keys {
		b := blocks[k]
		t := b.end - b.start - b.excluded
		au := 0.0
		if b.compute > 0 {
			au = 100 * float64(b.compute) / float64(t)
		}
		rate := float64(b.n-2) / (float64(t) / 1e9) * float64(p.batch)
		if p.evaluation {
			rate = float64(b.n) / (float64(b.end-b.start) / 1e9) * float64(p.batch)
		}
		if byEpoch[k.epoch] == nil {
			byEpoch[k.epoch] = map[int32]*rank{}
		}
		r := byEpoch[k.epoch][k.rank]
		if r == nil {
			r = &rank{}
			byEpoch[k.epoch][k.rank] = r
		}
		r.au += au * float64(b.n)
		r.rate += rate * float64(b.n)
		r.steps += float64(b.n)
	}
	var out []dlioEpoch
	for _, e := range keysOf(byEpoch) {
		var d dlioEpoch
		for _, k := range keysOf(byEpoch[e]) {
			r := byEpoch[e][k]
			d.au += r.au / r.steps
			d.rate += r.rate / r.steps
			d.rows = append(d.rows, []any{int64(e), int64(k), r.au / r.steps, r.rate / r.steps})
		}
		d.au /= float64(s.Record.Plan.Accelerators)
		out = append(out, d)
	}
	return out, nil
}

// spread are mean and population standard deviation.
func spread(v []float64) (mean, stdev float64) {
	for _, x := range v {
		mean += x
	}
	mean /= float64(len(v))
	for _, x := range v {
		stdev += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(stdev / float64(len(v)))
}

// dlio explains a figure under DLIO's name, computed as DLIO does.
func (s *Source) dlio(ctx context.Context, x *Explanation, name string) error {
	x.Class = "H"
	if strings.Contains(name, "checkpoint") {
		return s.dlioCheckpoint(x, name)
	}
	p, rest := s.training(), strings.TrimPrefix(name, "train_")
	if r, ok := strings.CutPrefix(name, "eval_"); ok {
		p, rest = s.evaluation(), r
	}
	epochs, err := s.dlioEpochs(ctx, p)
	if err != nil {
		return err
	}
	var au, rate []float64
	x.Table = &Table{Columns: []string{p.what, "rank", "AU %", "samples/s"}}
	for _, e := range epochs {
		au, rate = append(au, e.au), append(rate, e.rate)
		for _, row := range e.rows {
			x.Table.add(row...)
		}
	}
	x.Source = fmt.Sprintf("%s, all rows; step i of a block, from 0, counts where %d <= i <= %d", fileName(p), p.excludeStart, p.steps-1-p.excludeEnd)
	rateText := "(steps - 2) / time x batch"
	if p.evaluation {
		rateText = "steps / (block_end_ns - block_start_ns) x batch"
	}
	x.Formula = "for each block of a rank: time = block_end_ns - block_start_ns - sum of proc_ns of steps that do not count; AU = 100 x sum of compute_ns " +
		"of those that count / time; samples/s = " + rateText + "; weighted by steps for each rank; AU averaged over ranks, samples/s added"
	x.Meaning = "as DLIO computes it: "
	auMean, auStdev := spread(au)
	rateMean, rateStdev := spread(rate)
	mib := s.Workload.Dataset.RecordLengthBytes / (1 << 20)
	list := func(name string, v []float64) {
		for i := range v {
			x.input(fmt.Sprintf("%s, %s %d", name, p.what, i+1), v[i], "", "")
		}
	}
	switch rest {
	case "au_percentage":
		x.Meaning += "AU of each " + p.what + " in percent"
		x.Computed = au
	case "au_mean_percentage", "au_stdev_percentage":
		list("AU", au)
		x.Meaning += "mean of the AU of all epochs"
		if x.Computed = auMean; rest == "au_stdev_percentage" {
			x.Meaning, x.Computed = "as DLIO computes it: population standard deviation of the AU of all epochs", auStdev
		}
	case "au_meet_expectation":
		list("AU", au)
		x.Meaning += "whether the mean AU reaches the threshold"
		x.input("mean AU", auMean, "%", "")
		x.input("threshold", s.Record.Plan.AUThreshold, "%", "plan.au_threshold")
		if x.Computed = "fail"; auMean >= s.Record.Plan.AUThreshold {
			x.Computed = "success"
		}
	case "throughput_samples_per_second":
		x.Meaning += "samples/s of each " + p.what
		x.Computed = rate
	case "throughput_mean_samples_per_second", "throughput_stdev_samples_per_second", "io_mean_MB_per_second", "io_stdev_MB_per_second":
		list("samples/s", rate)
		v, what := rateMean, "mean"
		if strings.Contains(rest, "_stdev_") {
			v, what = rateStdev, "population standard deviation"
		}
		x.Meaning += what + " of the samples/s of all epochs"
		if strings.HasPrefix(rest, "io_") {
			x.Meaning += ", times dataset.record_length_bytes / 2^20"
			x.input("record_length_bytes / 2^20", mib, "", "the workload")
			v *= mib
		}
		x.Computed = v
	default:
		return ErrNoFigure
	}
	return nil
}
