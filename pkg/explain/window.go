package explain

import (
	"context"
	"fmt"
	"math"
	"sort"

	"github.com/benchpin/benchpin/pkg/bench/stats"
)

// interval is a stretch of time, in nanoseconds.
type interval struct {
	from, to int64
	any      bool
}

func (i *interval) include(from, to int64) {
	if !i.any {
		*i = interval{from, to, true}
		return
	}
	i.from, i.to = min(i.from, from), max(i.to, to)
}

func (i *interval) length() int64 { return i.to - i.from }

// place is a block, of one rank or (rank -1) of all.
type place struct {
	epoch, block, rank int32
}

// sums are what the window of one epoch, or of one rank, comes to.
type sums struct {
	compute, prescribed, window, wall, samples, bytes int64
}

// windowSums adds up the window of an epoch, or of all where it is 0: by epoch and by rank.
func (p *part) windowSums(ctx context.Context, epoch int) (byEpoch, byRank map[int32]*sums, all sums, err error) {
	byEpoch, byRank = map[int32]*sums{}, map[int32]*sums{}
	spans := map[place]*interval{}
	span := func(k place) *interval {
		if spans[k] == nil {
			spans[k] = &interval{}
		}
		return spans[k]
	}
	at := func(m map[int32]*sums, k int32) *sums {
		if m[k] == nil {
			m[k] = &sums{}
		}
		return m[k]
	}
	err = p.each(ctx, epoch, func(s *stats.Step) {
		if !p.inWindow(s) {
			return
		}
		end := s.Start + s.Proc + s.Barrier
		span(place{s.Epoch, s.Block, s.Rank}).include(s.Start, end)
		span(place{s.Epoch, s.Block, -1}).include(s.Start, end)
		for _, t := range []*sums{at(byEpoch, s.Epoch), at(byRank, s.Rank), &all} {
			t.compute += s.Compute
			t.prescribed += s.Prescribed
			t.samples += s.Samples
			t.bytes += s.Bytes
		}
	})
	for k, i := range spans {
		if k.rank < 0 {
			at(byEpoch, k.epoch).wall += i.length()
			all.wall += i.length()
			continue
		}
		at(byEpoch, k.epoch).window += i.length()
		at(byRank, k.rank).window += i.length()
		all.window += i.length()
	}
	return byEpoch, byRank, all, err
}

func keysOf[V any](m map[int32]V) []int32 {
	var k []int32
	for v := range m {
		k = append(k, v)
	}
	sort.Slice(k, func(i, j int) bool { return k[i] < k[j] })
	return k
}

// window explains AU and rates: of an epoch, or of all where it is 0.
func (s *Source) window(ctx context.Context, x *Explanation, p *part, epoch int, name string) error {
	if p.file == nil {
		x.Meaning, x.Source, x.Formula = "a figure of the steps of a run", "there are no step times", "none: the figure is absent"
		return nil
	}
	byEpoch, byRank, all, err := p.windowSums(ctx, epoch)
	if err != nil {
		return err
	}
	x.Source = fmt.Sprintf("%s, %s", p.file.Name, p.window())
	of := "the run"
	groups, title := byEpoch, p.what
	if epoch > 0 {
		of, groups, title = "the "+p.what, byRank, "accelerator"
	}
	// Rates are those of all accelerators together, which a row of one of them cannot show.
	rate := func(n, wall int64) any {
		if n == 0 || wall == 0 {
			return nil
		}
		return float64(n) / (float64(wall) / 1e9)
	}
	percent := func(part, whole int64) any {
		if whole == 0 || all.prescribed == 0 {
			return nil
		}
		v := 100 * float64(part) / float64(whole)
		if v > 100 {
			return nil
		}
		return v
	}
	switch name {
	case "au", "au_prescribed":
		column, part := "compute_ns", func(t *sums) int64 { return t.compute }
		x.Meaning = "accelerator utilisation of " + of + ": the share of its time that an accelerator computed, as the compute sleeps were measured"
		if name == "au_prescribed" {
			column, part = "prescribed_compute_ns", func(t *sums) int64 { return t.prescribed }
			x.Meaning = "accelerator utilisation of " + of + " with the compute time that the workload prescribes, so that oversleep counts as no work"
		}
		x.Formula = "100 x compute / window"
		x.input("compute", part(&all), "ns", "sum of "+column+" of the steps in the window, over all accelerators")
		x.input("window", all.window, "ns", "for each accelerator and block, from start_ns of its first step in the window to the end of its last one "+
			"(start_ns + proc_ns + barrier_ns), summed")
		x.Table = &Table{Columns: []string{title, "compute ns", "window ns", "100 x compute / window"}}
		for _, k := range keysOf(groups) {
			t := groups[k]
			x.Table.add(int64(k), part(t), t.window, percent(part(t), t.window))
		}
		x.Computed = percent(part(&all), all.window)
	case "samples_per_second", "bytes_per_second":
		column, unit, part := "samples", "samples", func(t *sums) int64 { return t.samples }
		x.Meaning = "samples that all accelerators of " + of + " read in a second"
		if name == "bytes_per_second" {
			column, unit, part = "bytes", "B", func(t *sums) int64 { return t.bytes }
			x.Meaning = "bytes that all accelerators of " + of + " asked for in a second"
		}
		x.Formula = column + " / (wall / 10^9)"
		x.input(column, part(&all), unit, "sum over the steps in the window of all accelerators")
		x.input("wall", all.wall, "ns", "for each block, from the first start_ns to the last end of a step in the window, over all accelerators; summed")
		x.Table = &Table{Columns: []string{p.what, column, "wall ns", "a second"}}
		for _, k := range keysOf(byEpoch) {
			t := byEpoch[k]
			x.Table.add(int64(k), part(t), t.wall, rate(part(t), t.wall))
		}
		x.Computed = rate(part(&all), all.wall)
	default:
		return fmt.Errorf("%w: there is no arithmetic for it", ErrNoFigure)
	}
	return nil
}

// epoch explains a figure of one epoch or pass.
func (s *Source) epoch(ctx context.Context, x *Explanation, p *part, name string, path []string) error {
	epoch, err := s.epochOf(p, name)
	if err != nil {
		return err
	}
	x.Source = fmt.Sprintf("%s, the rows of %s %d", fileName(p), p.what, epoch)
	switch path[0] {
	case "steps":
		var last int64
		err := p.each(ctx, epoch, func(s *stats.Step) { last = max(last, s.Step) })
		x.Meaning, x.Formula = "steps that at least one accelerator ended", "max(step)"
		x.input("max(step)", last, "", "")
		x.Computed = fmt.Sprint(last)
		return err
	case "seconds":
		first, last := int64(math.MaxInt64), int64(0)
		err := p.each(ctx, epoch, func(s *stats.Step) { first, last = min(first, s.BlockStart), max(last, s.BlockEnd) })
		x.Meaning = "how long it took, from the first start of a block to the last end of one, checkpoints between steps included"
		x.Formula = "(max(block_end_ns) - min(block_start_ns)) / 10^9"
		x.input("min(block_start_ns)", first, "ns", "over all accelerators")
		x.input("max(block_end_ns)", last, "ns", "over all accelerators")
		x.Computed = float64(last-first) / 1e9
		return err
	case "bytes_asked":
		return s.bytesAsked(ctx, x, p, epoch)
	case "bytes_device":
		d, err := p.counted(epoch)
		x.Meaning, x.Formula = "bytes that the kernel fetched from devices for this process", "the counter after the epoch less the counter before it"
		x.Source = "benchpin.device_bytes in " + fileName(p) + ": read_bytes of /proc/self/io"
		if d != nil && d.Bytes != nil {
			x.input("difference", int64(*d.Bytes), "B", "as the run noted it")
			x.Computed = float64(*d.Bytes)
		}
		return err
	case "storage":
		return s.storage(ctx, x, p, epoch, path[1:])
	case "waits":
		return s.waits(ctx, x, p, epoch, path[1:])
	}
	return s.window(ctx, x, p, epoch, path[0])
}

func fileName(p *part) string {
	if p.file == nil {
		return "the file of step times, which is not there"
	}
	return p.file.Name
}

// bytesAsked adds up the bytes of an epoch, or of all where it is 0.
func (s *Source) bytesAsked(ctx context.Context, x *Explanation, p *part, epoch int) error {
	by := map[int32]int64{}
	var sum int64
	err := p.each(ctx, epoch, func(s *stats.Step) {
		key := s.Epoch
		if epoch > 0 {
			key = s.Rank
		}
		by[key] += s.Bytes
		sum += s.Bytes
	})
	x.Meaning, x.Formula = "bytes that the readers asked of the store", "sum of bytes"
	title := "accelerator"
	if epoch == 0 {
		x.Source, title = fileName(p)+", all rows", p.what
	}
	x.Table = &Table{Columns: []string{title, "bytes"}}
	for _, k := range keysOf(by) {
		x.Table.add(int64(k), by[k])
	}
	x.Computed = float64(sum)
	return err
}
