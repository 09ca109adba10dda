package bench

import (
	"fmt"

	"github.com/benchpin/benchpin/pkg/bench/loader"
	"github.com/benchpin/benchpin/pkg/bench/sampler"
	"github.com/benchpin/benchpin/pkg/format"
)

// share is a part of the data set as the run goes through it, again and again.
type share struct {
	ds     Dataset
	order  *sampler.Order
	batch  int
	steps  int64 // of each pass
	epochs []int // the epochs whose orders are read
}

// epochs1 are the epochs 1 to n.
func epochs1(n int) []int {
	e := make([]int, n)
	for i := range e {
		e[i] = i + 1
	}
	return e
}

// bytes adds up what going through the share asks of the store. It is exact where a container reads whole files, and where each sample
// costs the same; streams that end in the middle of a file ask for up to one piece more.
func (r *reading) bytes(s share) (int64, error) {
	switch {
	case r.fileless():
		return 0, nil
	case r.streamed != nil:
		return r.streamBytes(s)
	case r.grouped() != nil:
		return r.rememberedBytes(s, r.grouped())
	case r.whole() && r.keep != loader.KeepSample:
		return r.keptBytes(s)
	case s.steps < s.order.Steps():
		return r.bytesBySample(s)
	}
	return r.bytesByFile(s)
}

// cost is what reading one sample of file i asks for.
func (r *reading) cost(ds Dataset) func(i int) int64 {
	return func(i int) int64 { return format.SampleCost(r.format, ds.SampleBytes(i), int(r.samples), ds.Size(i)) }
}

// bytesByFile counts without looking at samples. Every sample number below T' is read once an epoch, in whatever order: each file of
// the list n times, but the last one only for what T' leaves of it. A file shuffle changes which one is the last.
func (r *reading) bytesByFile(s share) (int64, error) {
	cost := r.cost(s.ds)
	c := s.order.Config()
	n, files := c.SamplesPerFile, s.order.Files()
	missing := n*files - s.order.Samples()
	var once int64
	for i := range files {
		once += cost(int(i))
	}
	if missing == 0 || !c.FileShuffle || c.Mode == sampler.DLIO {
		return int64(len(s.epochs)) * (n*once - missing*cost(int(files-1))), nil
	}
	// Without a sample shuffle the last position of the last rank is in the last file.
	c.SampleShuffle, c.Sampling, c.Lanes = false, sampler.Index, 0
	last, err := sampler.New(c)
	if err != nil {
		return 0, err
	}
	var total int64
	for _, e := range s.epochs {
		o, err := last.Epoch(e)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", ErrImpossible, err)
		}
		_, file, _ := o.Sample(c.Accelerators-1, o.PerRank()-1)
		total += n*once - missing*cost(int(file))
	}
	return total, nil
}

// bytesBySample adds sample by sample, where train.total_training_steps reads only the beginning of every rank's share.
func (r *reading) bytesBySample(s share) (int64, error) {
	cost := r.cost(s.ds)
	var total int64
	err := s.each(func(_ int, _, _, file int64) { total += cost(int(file)) })
	return total, err
}

// each visits every sample that is consumed, epoch by epoch, rank by rank, in order.
func (s share) each(visit func(epoch int, rank, pos, file int64)) error {
	for _, e := range s.epochs {
		o, err := s.order.Epoch(e)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrImpossible, err)
		}
		for rank := range s.order.Config().Accelerators {
			for pos := range s.steps * int64(s.batch) {
				_, file, _ := o.Sample(rank, pos)
				visit(e, int64(rank), pos, file)
			}
		}
	}
	return nil
}

// keptBytes counts where workers keep whole files: a file is asked for when a worker comes to it, and not again while it is kept.
func (r *reading) keptBytes(s share) (int64, error) {
	type place struct{ rank, lane, file int64 }
	cost := r.cost(s.ds)
	var total int64
	seen := map[place]bool{}
	last := map[place]int64{} // file + 1 that a lane had last, by rank and lane
	epoch := 0
	err := s.each(func(e int, rank, pos, file int64) {
		if epoch != e {
			epoch = e
			clear(last)
		}
		at := place{rank: rank, lane: r.lane(pos, s.batch)}
		if r.keep == loader.KeepAll {
			at.file = file
			if seen[at] {
				return
			}
			seen[at] = true
		} else {
			if last[at] == file+1 {
				return
			}
			last[at] = file + 1
		}
		total += cost(int(file))
	})
	return total, err
}

// grouped is the container where its readers remember groups of samples, else nil.
func (r *reading) grouped() format.Grouped {
	g, _ := r.format.(format.Grouped)
	if r.keep == loader.KeepSample {
		return nil
	}
	return g
}

// mostRemembered bounds the samples that are followed one by one; of more, the first so many stand for all.
const mostRemembered = 1 << 26

// memory is what one worker remembers: the file whose footer it has, and the groups that it used last, the latest first.
type memory struct {
	file   int64 // + 1
	groups [][2]int64
}

// rememberedBytes counts where workers remember groups of samples: a group is asked for when a worker does not have it.
func (r *reading) rememberedBytes(s share, g format.Grouped) (int64, error) {
	costs := map[int64]format.GroupCost{} // by size of the file
	of := func(file int64) format.GroupCost {
		size := s.ds.Size(int(file))
		c, ok := costs[size]
		if !ok {
			c = g.GroupCost(s.ds.SampleBytes(int(file)), int(r.samples), size)
			costs[size] = c
		}
		return c
	}
	all := int64(len(s.epochs)) * int64(s.order.Config().Accelerators) * s.steps * int64(s.batch)
	var total, seen int64
	ranks := make([][]memory, s.order.Config().Accelerators)
	for _, e := range s.epochs {
		o, err := s.order.Epoch(e)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", ErrImpossible, err)
		}
		for rank := range ranks {
			if ranks[rank] == nil || r.keep != loader.KeepAll { // readers of an epoch remember nothing of the one before
				ranks[rank] = make([]memory, r.workers())
			}
			workers := ranks[rank]
			for pos := range s.steps * int64(s.batch) {
				if seen == mostRemembered {
					return int64(float64(total) / float64(seen) * float64(all)), nil
				}
				seen++
				_, file, k := o.Sample(rank, pos)
				total += workers[r.lane(pos, s.batch)].ask(file, k, of(file))
			}
		}
	}
	return total, nil
}

// ask is what a worker asks of a file for its sample k.
func (m *memory) ask(file, k int64, c format.GroupCost) int64 {
	at := [2]int64{file, k / c.Rows}
	for i, g := range m.groups {
		if g == at {
			copy(m.groups[1:i+1], m.groups[:i])
			m.groups[0] = at
			return 0
		}
	}
	if len(m.groups) < c.Kept {
		m.groups = append(m.groups, at)
	}
	copy(m.groups[1:], m.groups)
	m.groups[0] = at
	n := c.Full
	if at[1] == c.Groups-1 {
		n = c.Last
	}
	if m.file != file+1 {
		m.file = file + 1
		n += c.Footer
	}
	return n
}

// streamBytes counts records: a file of n samples consists of n of one size.
func (r *reading) streamBytes(s share) (int64, error) {
	record := func(i int64) int64 { return s.ds.Size(int(i)) / r.samples }
	equal := true
	for i := range s.order.Files() {
		equal = equal && s.ds.Size(int(i)) == s.ds.Size(0)
	}
	ranks := s.order.Config().Accelerators
	var total, reads int64
	for rank := range ranks {
		reads += s.order.ReadAhead(rank, s.steps*int64(s.batch))
	}
	if equal {
		return int64(len(s.epochs)) * reads * record(0), nil
	}
	for _, e := range s.epochs {
		o, err := s.order.Epoch(e)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", ErrImpossible, err)
		}
		for rank := range ranks {
			for i := range s.order.ReadAhead(rank, s.steps*int64(s.batch)) {
				_, file, _, _ := o.Read(rank, i)
				total += record(file)
			}
		}
	}
	return total, nil
}
