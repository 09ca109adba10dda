package compare

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/benchpin/benchpin/pkg/bench/stats"
)

// noisy makes steps of a mean duration, with noise that carries over from one step to the next.
func noisy(seed uint64, stretches, steps int, mean float64) Series {
	draw := rand.New(rand.NewPCG(seed, 7))
	var s Series
	for range stretches {
		var stretch []Step
		carried := 0.0
		for range steps {
			carried = 0.6*carried + 0.05*draw.NormFloat64()
			stretch = append(stretch, Step{Work: 4, Seconds: mean * math.Exp(carried)})
		}
		s = append(s, stretch)
	}
	return s
}

// The interval must hold the true ratio about as often as it says.
func TestRatioCovers(t *testing.T) {
	const truth, trials = 1.2, 200
	held := 0
	for i := range uint64(trials) {
		e, err := Ratio(noisy(2*i, 4, 100, 0.12), noisy(2*i+1, 4, 100, 0.1), Options{Resamples: 300})
		if err != nil {
			t.Fatal(err)
		}
		if e.Low > e.Value || e.Value > e.High {
			t.Fatalf("trial %d: %v is not in its interval", i, e)
		}
		if e.Low <= truth && truth <= e.High {
			held++
		}
	}
	if share := float64(held) / trials; share < 0.85 || share > 0.995 {
		t.Errorf("the interval of 95 %% held the true ratio in %.1f %% of %d trials", 100*share, trials)
	}
}

// Blocks must be kept: steps that hang together vary more in their mean than if they did not, and the interval must show it.
func TestBlocksWiden(t *testing.T) {
	s := noisy(3, 1, 2000, 0.1)
	kept, err := Rate(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var apart Series
	for _, step := range s[0] {
		apart = append(apart, []Step{step}) // stretches of one step: nothing hangs together
	}
	loose, err := Rate(apart, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := kept.High-kept.Low, loose.High-loose.Low; a < 1.3*b {
		t.Errorf("expected a wider interval with blocks than without, found %v and %v", a, b)
	}
}

func TestAgainst(t *testing.T) {
	a := noisy(1, 4, 200, 0.1)
	for _, c := range []struct {
		mean, tolerance float64
		want            Verdict
	}{
		{0.1, 0.1, Within}, {0.2, 0.05, Outside}, {0.05, 0.05, Outside}, {0.105, 0.05, Undecided}, {0.2, 2, Within},
	} {
		e, err := Ratio(a, noisy(9, 4, 200, c.mean), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Against(c.tolerance); got != c.want {
			t.Errorf("steps of %v s against 0.1 s, tolerance %v: expected %s, found %s of %+v", c.mean, c.tolerance, c.want, got, e)
		}
	}
	same, err := Ratio(a, a, Options{})
	if err != nil || same.Value != 1 || !same.Noise() {
		t.Errorf("a run against itself: %+v, %v", same, err)
	}
}

func TestDeterministic(t *testing.T) {
	a, b := noisy(1, 3, 50, 0.1), noisy(2, 3, 50, 0.1)
	x, err := Ratio(a, b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if y, _ := Ratio(a, b, Options{}); x != y {
		t.Errorf("twice the same steps gave %+v and %+v", x, y)
	}
	if z, _ := Ratio(a, b, Options{Seed: 1}); x == z {
		t.Errorf("two seeds gave the same interval %+v", z)
	}
}

func TestRefused(t *testing.T) {
	good := noisy(1, 1, 20, 0.1)
	for name, s := range map[string]Series{
		"nothing": nil, "few": noisy(1, 1, Fewest-1, 0.1), "no time": {make([]Step, 20)},
	} {
		if _, err := Rate(s, Options{}); !errors.Is(err, ErrFew) {
			t.Errorf("%s: expected ErrFew, found %v", name, err)
		}
		if _, err := Ratio(good, s, Options{}); !errors.Is(err, ErrFew) {
			t.Errorf("%s, second: expected ErrFew, found %v", name, err)
		}
	}
	for _, bad := range []float64{math.NaN(), -1, math.Inf(1)} {
		s := noisy(1, 1, 20, 0.1)
		s[0][3].Seconds = bad
		if _, err := Rate(s, Options{}); err == nil {
			t.Errorf("%v seconds were taken", bad)
		}
	}
}

func TestSteps(t *testing.T) {
	var file bytes.Buffer
	w := stats.NewWriter(&file)
	var rows []stats.Step
	at := int64(0)
	for epoch := int32(1); epoch <= 2; epoch++ {
		for step := int64(1); step <= 4; step++ {
			block := int32(1)
			if step > 2 {
				block = 2
			}
			for rank := range int32(2) {
				rows = append(rows, stats.Step{Epoch: epoch, Step: step, Rank: rank, Block: block, BlockStart: at, Start: at,
					Proc: 1e9 * (1 + int64(rank)), Barrier: 1e9 * (1 - int64(rank)), BlockEnd: at + 2e9, Samples: 3})
			}
			at += 2e9
		}
	}
	if err := errors.Join(w.Write(rows), w.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := stats.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s, err := Steps(context.Background(), r, 2, 4)
	if err != nil {
		t.Fatal(err)
	}
	if len(s) != 4 || len(s[0]) != 1 || len(s[1]) != 2 || len(s[2]) != 1 || len(s[3]) != 2 {
		t.Fatalf("expected stretches of 1, 2, 1 and 2 steps, found %v", s)
	}
	for _, stretch := range s {
		for _, step := range stretch {
			if step != (Step{Work: 6, Seconds: 2}) {
				t.Errorf("expected 6 samples in 2 s, found %+v", step)
			}
		}
	}
	if s.Rate() != 3 {
		t.Errorf("expected 3 samples/s, found %v", s.Rate())
	}
}
