package compare

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// judged are the intervals of all percentiles, around the exact ratio.
func judged(a, b *Series, o Options) []result {
	figures := quantileFigures()
	recorded := make([]float64, len(figures))
	for i := range figures {
		f := &figures[i]
		all := func(s *Series) float64 {
			rows := s.all.of(f)
			return float64(rows[(int64(len(rows))*f.permille+999)/1000-1].ns)
		}
		recorded[i] = all(b) / all(a)
	}
	return quantileRatios(&a.all, &b.all, figures, recorded, o)
}

func TestPercentilesOfEqualRuns(t *testing.T) {
	heavy := func(rng *rand.Rand, _ int, _ int64) int64 { return int64(1e6 * math.Exp(rng.NormFloat64())) }
	for name, m := range map[string]madeUp{
		"even":       {epochs: 2, ranks: 1, steps: 200, load: spread(2_000_000, 500_000)},
		"few":        {epochs: 2, ranks: 1, steps: 20, load: spread(2_000_000, 500_000)},
		"heavy tail": {epochs: 3, ranks: 2, steps: 200, load: heavy},
		"alike":      {epochs: 2, ranks: 1, steps: 600, load: alike(0.5)},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(17, 1))
			pairs := 100 // takes a while
			if os.Getenv("BENCHPIN_LONG") == "1" {
				pairs = 500
			}
			held, counted := make([]int, 4), make([]int, 4)
			for range pairs {
				a, b := m.series(rng, Window{1, m.steps}), m.series(rng, Window{1, m.steps})
				for i, r := range judged(a, b, Options{Resamples: 300}) {
					if r.err != nil {
						if !errors.Is(r.err, ErrFew) {
							t.Fatal(r.err)
						}
						continue
					}
					counted[i]++
					if r.estimate.Noise() {
						held[i]++
					}
				}
			}
			for i, f := range quantileFigures() {
				if counted[i] == 0 {
					continue
				}
				t.Logf("%s: %.1f %% of %d", f.name, 100*float64(held[i])/float64(counted[i]), counted[i])
				if held[i] < counted[i]*90/100 {
					t.Errorf("%s: %d of %d intervals hold 1", f.name, held[i], counted[i])
				}
			}
		})
	}
}

// Each row counts as often as its chunk was drawn: as if its steps stood in the file so often.
func TestQuantileOfDrawnChunks(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	m := madeUp{epochs: 2, ranks: 2, steps: 37, load: spread(2_000_000, 1_000_000), save: 11}
	s := m.series(rng, Window{1, 37})
	if got := s.all.epochs; !slices.Equal(got, []int{len(s.epochs[0]), len(s.epochs[1])}) {
		t.Fatalf("%v chunks, expected %d and %d", got, len(s.epochs[0]), len(s.epochs[1]))
	}
	// Without steps left out, the chunks are the same as those of the sums.
	sums := make([]int64, s.Chunks())
	for _, r := range s.all.load {
		sums[r.chunk] += r.ns
	}
	for i, c := range slices.Concat(s.epochs...) {
		if sums[i] != c[sumLoad] {
			t.Errorf("chunk %d has %d ns of load, expected %d", i, sums[i], c[sumLoad])
		}
	}
	counts := make([]int64, s.Chunks())
	for range 20 {
		times(rand.NewPCG(rng.Uint64(), 0), s.all.strata(), counts)
		var rows []int64
		for _, r := range s.all.step {
			for range counts[r.chunk] {
				rows = append(rows, r.ns)
			}
		}
		slices.Sort(rows)
		for _, permille := range []int64{1, 500, 990, 1000} {
			if got, want := quantile(s.all.step, s.all.sizes, permille, counts), rows[(int64(len(rows))*permille+999)/1000-1]; got != want {
				t.Errorf("%d: %d, expected %d", permille, got, want)
			}
		}
	}
}

func TestPercentilesAreFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	fast := madeUp{epochs: 2, ranks: 1, steps: 600, load: spread(2_000_000, 100_000)}
	slow := madeUp{epochs: 2, ranks: 1, steps: 600, load: spread(2_250_000, 100_000)}
	for i, r := range judged(fast.series(rng, Window{1, 600}), slow.series(rng, Window{1, 600}), Options{}) {
		if r.err != nil || r.estimate.Low <= 1 || r.estimate.Value < r.estimate.Low || r.estimate.Value > r.estimate.High {
			t.Errorf("%s: %+v", quantileFigures()[i].name, r)
		}
	}
	few := madeUp{epochs: 2, ranks: 1, steps: 100, load: spread(2_000_000, 100_000)}
	a := few.series(rng, Window{1, 100})
	if r := judged(a, a, Options{}); r[0].err != nil || r[0].estimate != (Estimate{1, 1, 1}) || !errors.Is(r[1].err, ErrFew) {
		t.Errorf("%+v", r)
	}
	a.all.tooMany = true
	if r := quantileRatios(&a.all, &a.all, quantileFigures(), make([]float64, 4), Options{}); !errors.Is(r[0].err, ErrNothing) {
		t.Errorf("%+v", r)
	}
}

// BenchmarkRatios is what one comparison of the largest runs whose percentiles are judged takes.
func BenchmarkRatios(b *testing.B) {
	m := madeUp{epochs: 4, ranks: 8, steps: 4000, load: spread(2_000_000, 500_000)}
	rng := rand.New(rand.NewPCG(1, 1))
	x, y := m.series(rng, Window{1, 4000}), m.series(rng, Window{1, 4000})
	b.Run("sums", func(b *testing.B) {
		for b.Loop() {
			ratios(x, y, formulas(), Options{})
		}
	})
	b.Run("percentiles", func(b *testing.B) {
		for b.Loop() {
			judged(x, y, Options{})
		}
	})
}
