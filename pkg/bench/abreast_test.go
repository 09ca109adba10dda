package bench

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/bench/sampler"
)

// bySize says that samples of a file have as many bytes as its number, and a few.
type bySize struct{}

func (bySize) SampleBytes(file int) int64 { return 100 + int64(file) }

// TestExpectedAbreast: chains that are computed side by side are those that are computed one entry after the other.
func TestExpectedAbreast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranks := rapid.IntRange(1, 70).Draw(t, "accelerators")
		batch := rapid.IntRange(1, 4).Draw(t, "batch")
		c := sampler.Config{Files: int64(ranks*batch*rapid.IntRange(1, 3).Draw(t, "steps") + rapid.IntRange(0, 5).Draw(t, "more files")),
			SamplesPerFile: rapid.Int64Range(1, 3).Draw(t, "samples a file"), BatchSize: batch, Accelerators: ranks, Seed: 3, Mode: sampler.Numpy,
			FileShuffle: rapid.Bool().Draw(t, "file shuffle"), SampleShuffle: rapid.Bool().Draw(t, "sample shuffle"), SeedChangeEpoch: true}
		order, err := sampler.New(c)
		if err != nil {
			t.Fatal(err)
		}
		s := Schedule{Config: c, Epochs: rapid.IntRange(1, 3).Draw(t, "epochs"), StepsPerEpoch: rapid.Int64Range(1, order.Steps()).Draw(t, "steps run")}
		found, err := Expected(t.Context(), s, bySize{})
		if err != nil {
			t.Fatal(err)
		}
		chains := make([]*Chain, ranks)
		for rank := range chains {
			chains[rank] = NewChain(s, rank)
			for e := 1; e <= s.Epochs; e++ {
				eo, err := order.Epoch(e)
				if err != nil {
					t.Fatal(err)
				}
				for pos := range s.StepsPerEpoch * int64(batch) {
					g, file, k := eo.Sample(rank, pos)
					chains[rank].Append(Entry{Epoch: uint32(e), Step: uint32(pos/int64(batch) + 1), Sample: uint64(g), File: uint32(file), Position: uint32(k),
						Logical: uint64(bySize{}.SampleBytes(int(file)))})
				}
			}
		}
		want := Seal(chains)
		for rank := range chains {
			if found.Ranks[rank] != want.Ranks[rank] {
				t.Errorf("rank %d of %d: expected %s, found %s", rank, ranks, want.Ranks[rank], found.Ranks[rank])
			}
		}
		if found.Root != want.Root || found.Entries != want.Entries {
			t.Errorf("expected %s over %d entries, found %s over %d", want.Root, want.Entries, found.Root, found.Entries)
		}
	})
}

// BenchmarkExpected computes expected transcripts, in processor time for each entry. ratio is the rate as a part of that with one accelerator, whose
// links cannot be computed side by side, in the same run.
func BenchmarkExpected(b *testing.B) {
	const entries = 1 << 21
	var one float64
	for _, ranks := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprint(ranks, "accelerators"), func(b *testing.B) {
			c := sampler.Config{Files: entries, SamplesPerFile: 1, BatchSize: 16, Accelerators: ranks, Seed: 3, Mode: sampler.Numpy, FileShuffle: true}
			s := Schedule{Config: c, Epochs: 1, StepsPerEpoch: int64(entries / 16 / ranks)}
			var cpu time.Duration
			for b.Loop() {
				start := cpuTime()
				if _, err := Expected(b.Context(), s, bySize{}); err != nil {
					b.Fatal(err)
				}
				cpu += cpuTime() - start
			}
			each := float64(cpu) / float64(b.N*entries)
			if one == 0 {
				one = each
			}
			b.ReportMetric(each, "cpu-ns/entry")
			b.ReportMetric(one/each, "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}
