package loader

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/bench/sampler"
)

// TestWalkIsTheOrder: however an order is walked through, and whether it knows runs or not, each position has what Sample says.
func TestWalkIsTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := sampler.Config{
			Files: rapid.Int64Range(1, 20).Draw(t, "files"), SamplesPerFile: rapid.Int64Range(1, 30).Draw(t, "samples a file"), BatchSize: 1,
			Accelerators: 1, FileShuffle: rapid.Bool().Draw(t, "file shuffle"), SampleShuffle: rapid.Bool().Draw(t, "sample shuffle"),
			Seed: 5, Mode: sampler.Numpy,
		}
		most := int(c.Files * c.SamplesPerFile)
		c.Accelerators = rapid.IntRange(1, min(4, most)).Draw(t, "accelerators")
		c.BatchSize = rapid.IntRange(1, most/c.Accelerators).Draw(t, "batch")
		if rapid.Bool().Draw(t, "iterative") {
			c.Sampling, c.Lanes = sampler.Iterative, rapid.IntRange(1, 3).Draw(t, "lanes")
		}
		order, err := sampler.New(c)
		if err != nil {
			t.Fatal(err)
		}
		o, err := order.Epoch(1)
		if err != nil {
			t.Fatal(err)
		}
		rank, step := rapid.IntRange(0, c.Accelerators-1).Draw(t, "rank"), rapid.Int64Range(1, 5).Draw(t, "step")
		known, plain := newWalk(o, rank), newWalk(onlySample{o}, rank)
		if known.runs == nil || plain.runs != nil {
			t.Fatal("the order's runs are not found, or where there are none")
		}
		for pos := rapid.Int64Range(0, 3).Draw(t, "first"); pos < o.PerRank(); pos += step {
			var a, b Sample
			g, file, k := o.Sample(rank, pos)
			if !known.at(pos, &a) || !plain.at(pos, &b) || a != b || a.Index != g || a.File != file || a.Position != k {
				t.Fatalf("position %d: expected sample %d, file %d, %d; found %+v and %+v", pos, g, file, k, a, b)
			}
		}
		for _, pos := range []int64{-1, o.PerRank(), o.PerRank() + 7} {
			if known.at(pos, new(Sample)) || plain.at(pos, new(Sample)) {
				t.Errorf("there is no position %d of %d", pos, o.PerRank())
			}
		}
	})
}

// onlySample hides that an order knows runs.
type onlySample struct{ o Order }

func (s onlySample) Sample(rank int, pos int64) (int64, int64, int64) { return s.o.Sample(rank, pos) }
