package compare

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/benchpin/benchpin/pkg/bench/stats"
)

// The chunks of a run add up to the figures that package stats computes, to the bit but for the order of a multiplication.
func TestValuesAreThoseOfTheRecord(t *testing.T) {
	for _, save := range []int64{0, 1, 7} {
		m := madeUp{epochs: 3, ranks: 3, steps: 40, load: spread(2_000_000, 1_900_000), save: save}
		rows := m.rows(rand.New(rand.NewPCG(1, uint64(save))))
		want, err := stats.Summarise(background, file(t, rows), stats.Params{Accelerators: 3, Epochs: 3, StepsPerEpoch: 40, BatchSize: 4,
			ExcludeStart: 2, ExcludeEnd: 1, AUThreshold: 90})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Read(background, file(t, rows), WindowOf(40, 2, 1))
		if err != nil {
			t.Fatal(err)
		}
		if s.Steps() != 3*37 {
			t.Errorf("%d steps", s.Steps())
		}
		for f, v := range map[Figure]*float64{AU: want.AU.Value, AUPrescribed: want.Other["au_prescribed"].Value, SamplesPerSecond: want.SamplesPerSecond.Value, BytesPerSecond: want.BytesPerSecond.Value} {
			got, ok := s.Value(f)
			if !ok || v == nil || math.Abs(got-*v) > 1e-12*got {
				t.Errorf("checkpoint after %d steps: %s is %v, %v; the record has %v", save, f, got, ok, *v)
			}
		}
		var load, n float64
		for _, r := range rows {
			if r.Step > 2 && r.Step < 40 {
				load, n = load+float64(r.Load), n+1
			}
		}
		if got, _ := s.Value(LoadMean); math.Abs(got-load/n/1e9) > 1e-12*got {
			t.Errorf("mean load %v, expected %v", got, load/n/1e9)
		}
	}
}

// Of 500 pairs of runs that differ in nothing, about 95 in 100 intervals hold 1, whatever the steps are like.
func TestIntervalsOfEqualRunsHoldOne(t *testing.T) {
	bursts := func(rng *rand.Rand, _ int, step int64) int64 { // batches come four at a time
		if step%4 == 1 {
			return 4_000_000 + rng.Int64N(4_000_000)
		}
		return rng.Int64N(100_000)
	}
	heavy := func(rng *rand.Rand, _ int, _ int64) int64 { return int64(1e6 * math.Exp(rng.NormFloat64())) }
	cold := func(rng *rand.Rand, epoch int, _ int64) int64 {
		return int64(8e6)/int64(epoch*epoch) + rng.Int64N(1_000_000)
	}
	for name, m := range map[string]madeUp{
		"even":                 {epochs: 2, ranks: 2, steps: 60, load: spread(2_000_000, 500_000)},
		"few steps":            {epochs: 2, ranks: 1, steps: 10, load: spread(2_000_000, 500_000)},
		"bursts":               {epochs: 2, ranks: 1, steps: 100, load: bursts},
		"heavy tail":           {epochs: 3, ranks: 2, steps: 50, load: heavy},
		"cold first epoch":     {epochs: 3, ranks: 1, steps: 30, load: cold},
		"a checkpoint each 9":  {epochs: 2, ranks: 2, steps: 45, load: spread(2_000_000, 900_000), save: 9},
		"a checkpoint a step":  {epochs: 2, ranks: 1, steps: 30, load: spread(2_000_000, 900_000), save: 1},
		"neighbours alike 0.5": {epochs: 1, ranks: 1, steps: 400, load: alike(0.5)},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, 1))
			const pairs = 500
			figures := formulas()[:6]
			held := make([]int, len(figures))
			for range pairs {
				a, b := m.series(rng, WindowOf(m.steps, 0, 0)), m.series(rng, WindowOf(m.steps, 0, 0))
				for i, r := range ratios(a, b, figures, Options{Resamples: 400}) {
					if r.err != nil {
						t.Fatal(r.err)
					}
					if r.estimate.Noise() {
						held[i]++
					}
				}
			}
			for i, n := range held {
				t.Logf("%s: %.1f %%", figures[i].figure, 100*float64(n)/pairs)
				// 95 % of 500 is 475, give or take 5 (standard deviation); less is an interval too narrow, and always is one too wide.
				if n < 455 || n > 497 {
					t.Errorf("%s: %d of %d intervals hold 1", figures[i].figure, n, pairs)
				}
			}
		})
	}
}

// alike makes loads that resemble those of the step before (an autoregressive series of first order).
func alike(share float64) func(*rand.Rand, int, int64) int64 {
	last := 0.0
	return func(rng *rand.Rand, _ int, _ int64) int64 {
		last = share*last + math.Sqrt(1-share*share)*rng.NormFloat64()
		return int64(4e6 + 5e5*max(-5, min(5, last)))
	}
}

// A difference of 5 % in step time is found where the spread is small, with its direction and size.
func TestDifferencesAreFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	// A step takes about 5 ms; 0.25 ms more is 5 %.
	fast := madeUp{epochs: 2, ranks: 2, steps: 100, load: spread(2_000_000, 100_000)}
	slow := madeUp{epochs: 2, ranks: 2, steps: 100, load: spread(2_250_000, 100_000)}
	found := 0
	for range 100 {
		a, b := fast.series(rng, WindowOf(100, 1, 0)), slow.series(rng, WindowOf(100, 1, 0))
		e, err := Ratio(a, b, SamplesPerSecond, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if e.Value < 0.94 || e.Value > 0.96 || e.Low > e.Value || e.High < e.Value {
			t.Fatalf("%+v", e)
		}
		if !e.Noise() && e.High < 1 && e.Against(0.02) == Outside && e.Against(0.10) == Within {
			found++
		}
		if e, err = Ratio(a, b, StepMean, Options{}); err != nil || e.Noise() || e.Low < 1 {
			t.Fatalf("step time: %+v, %v", e, err)
		}
	}
	if found != 100 {
		t.Errorf("found in %d of 100", found)
	}
}

// Runs that share what varies, such as compute times drawn from the same seed, are compared step by step.
func TestPairsCancelWhatBothShare(t *testing.T) {
	shared := func(extra int64) madeUp {
		return madeUp{epochs: 2, ranks: 1, steps: 60, load: func(rng *rand.Rand, epoch int, step int64) int64 {
			same := rand.New(rand.NewPCG(uint64(epoch), uint64(step)))
			return same.Int64N(6_000_000) + extra + rng.Int64N(20_000)
		}}
	}
	rng := rand.New(rand.NewPCG(5, 6))
	a, b := shared(0).series(rng, Window{1, 60}), shared(100_000).series(rng, Window{1, 60})
	paired, err := Ratio(a, b, StepMean, Options{})
	if err != nil || paired.Noise() {
		t.Errorf("2 %% more in each step is noise: %+v, %v", paired, err)
	}
	// The same steps but one cannot be paired, and what varies hides the difference.
	apart, err := Ratio(a, shared(100_000).series(rng, Window{1, 59}), StepMean, Options{})
	if err != nil || !apart.Noise() || apart.High-apart.Low < 5*(paired.High-paired.Low) {
		t.Errorf("%+v and %+v, %v", paired, apart, err)
	}
}

func TestTheSameStepsGiveTheSameInterval(t *testing.T) {
	m := madeUp{epochs: 2, ranks: 1, steps: 30, load: spread(2_000_000, 500_000)}
	rng := rand.New(rand.NewPCG(8, 8))
	a, b := m.series(rng, Window{1, 30}), m.series(rng, Window{1, 30})
	first, err := Ratio(a, b, AU, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := Ratio(a, b, AU, Options{}); again != first {
		t.Errorf("%+v, then %+v", first, again)
	}
	if other, _ := Ratio(a, b, AU, Options{Seed: 1}); other == first || math.Abs(other.Low-first.Low) > 0.2*(first.High-first.Low) {
		t.Errorf("seed 0: %+v, seed 1: %+v", first, other)
	}
	if wide, _ := Ratio(a, b, AU, Options{Confidence: 0.999}); wide.Low >= first.Low || wide.High <= first.High {
		t.Errorf("99.9 %% gives %+v, 95 %% %+v", wide, first)
	}
	if self, err := Ratio(a, a, AU, Options{}); err != nil || self != (Estimate{1, 1, 1}) || !self.Noise() {
		t.Errorf("a run and itself: %+v, %v", self, err)
	}
}

func TestWhatHasNoInterval(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	m := madeUp{epochs: 1, ranks: 1, steps: 8, load: spread(2_000_000, 500_000)}
	if _, err := Ratio(m.series(rng, Window{1, 8}), m.series(rng, Window{1, 8}), AU, Options{}); !errors.Is(err, ErrFew) {
		t.Errorf("8 steps: %v", err)
	}
	m.steps = 200
	a := m.series(rng, Window{1, 200})
	none := madeUp{epochs: 1, ranks: 1, steps: 200, load: func(*rand.Rand, int, int64) int64 { return 0 }}
	if _, err := Ratio(a, none.series(rng, Window{1, 200}), LoadMean, Options{}); !errors.Is(err, ErrNothing) {
		t.Errorf("a load of 0: %v", err)
	}
	once := none
	once.load = func(_ *rand.Rand, _ int, step int64) int64 {
		if step == 17 {
			return 1
		}
		return 0
	}
	if _, err := Ratio(a, once.series(rng, Window{1, 200}), LoadMean, Options{}); !errors.Is(err, ErrNothing) {
		t.Errorf("a load above 0 in one step: %v", err)
	}
	if _, err := Ratio(a, a, "speed", Options{}); !errors.Is(err, ErrNothing) {
		t.Errorf("no such figure: %v", err)
	}
	if _, ok := (&Series{}).Value(AU); ok {
		t.Error("no steps have a figure")
	}
	if _, ok := a.Value("speed"); ok {
		t.Error("an unknown figure has a value")
	}
	ctx, cancel := context.WithCancel(background)
	cancel()
	big := madeUp{epochs: 1, ranks: 1, steps: 2000, load: spread(2_000_000, 500_000)}
	if _, err := Read(ctx, file(t, big.rows(rng)), Window{1, 2000}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestChunksStayInTheirBlocks(t *testing.T) {
	m := madeUp{epochs: 2, ranks: 1, steps: 64, load: spread(2_000_000, 500_000), save: 11}
	s := m.series(rand.New(rand.NewPCG(1, 1)), Window{1, 64})
	// 64 steps give chunks of 4: two for each of the five blocks of 11 steps, and two for the last one of 9.
	for _, e := range s.epochs {
		if len(e) != 12 {
			t.Fatalf("%d chunks", len(e))
		}
		for _, c := range e {
			if c[sumRows] < 4 || c[sumRows] > 6 {
				t.Errorf("a chunk of %d steps", c[sumRows])
			}
		}
	}
	for steps, want := range map[int]int{1: 1, 2: 2, 8: 2, 9: 3, 27: 3, 28: 4, 1000: 10, 1001: 11} {
		if got := chunkLength(steps); got != want {
			t.Errorf("%d steps: chunks of %d, expected %d", steps, got, want)
		}
	}
}

// Tables of Student's t, such as Abramowitz and Stegun's 26.10.
func TestQuantiles(t *testing.T) {
	for _, c := range []struct {
		p    float64
		n    int
		want float64
	}{{0.975, 1, 12.706}, {0.975, 2, 4.303}, {0.975, 3, 3.182}, {0.975, 4, 2.776}, {0.975, 5, 2.571}, {0.975, 10, 2.228}, {0.975, 30, 2.042},
		{0.995, 7, 3.499}, {0.95, 120, 1.658}, {0.975, 100000, 1.960}} {
		if got := studentQuantile(c.p, c.n); math.Abs(got-c.want) > 0.0006 {
			t.Errorf("%v with %d degrees of freedom: %v, expected %v", c.p, c.n, got, c.want)
		}
	}
	if got := normalQuantile(0.975); math.Abs(got-1.959964) > 1e-6 {
		t.Errorf("normal: %v", got)
	}
}
