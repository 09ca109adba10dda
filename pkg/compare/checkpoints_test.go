package compare

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/record"
)

// saved is a record of checkpoints that took so many seconds each, by the slower of two accelerators.
func saved(seconds ...float64) *record.Record {
	r := &record.Record{Status: record.StatusComplete}
	r.Plan.CheckpointBytes = 1000
	var rates []float64
	for _, s := range seconds {
		r.Checkpoints.Saves = append(r.Checkpoints.Saves, record.Checkpoint{Seconds: []float64{s / 2, s}})
		rates = append(rates, 1000/s)
	}
	r.Metrics = record.NoMetrics(0, "checkpoints alone")
	for name, v := range map[string][]float64{"save_checkpoint_seconds_mean": seconds, "save_checkpoint_bytes_per_second_mean": rates} {
		m := mean(v)
		r.Metrics.Other[name] = record.Figure{Value: &m, Unit: map[bool]string{true: "B/s", false: "s"}[strings.Contains(name, "bytes")], Class: record.HostOnly}
	}
	return r
}

func comparisonsOf(t *testing.T, a, b *record.Record) map[string]Comparison {
	t.Helper()
	res, err := Compare([]Run{{Name: "a", Record: a}, {Name: "b", Record: b}}, true, Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Comparison{}
	for _, c := range res.Comparisons[0].Figures {
		out[c.Figure] = c
	}
	return out
}

// TestCheckpointsAreJudged on made-up times with known differences.
func TestCheckpointsAreJudged(t *testing.T) {
	const seconds, rate = "other.save_checkpoint_seconds_mean", "other.save_checkpoint_bytes_per_second_mean"
	for _, c := range []struct {
		name          string
		a, b          []float64
		seconds, rate string
		because       string
	}{
		{"10 % slower", []float64{1, 1.01, 0.99, 1}, []float64{1.1, 1.11, 1.09, 1.105}, Higher, Lower, ""},
		{"the same but for noise", []float64{1, 1.1, 0.9, 1.05}, []float64{1.05, 0.95, 1.1, 0.97}, Noise, Noise, ""},
		{"the very same", []float64{1, 2, 3}, []float64{1, 2, 3}, Noise, Noise, ""},
		{"twice as long, each after its kind", []float64{1, 5, 9}, []float64{2, 10, 18}, Higher, Lower, ""},
		{"other numbers of them", []float64{1, 1.01, 0.99, 1}, []float64{1.5, 1.52, 1.49}, Higher, Lower, ""},
		{"two each", []float64{1, 1.01}, []float64{2, 2.01}, NotJudged, NotJudged, "too few checkpoints to tell a difference from noise: 2 and 2; expected at least 3 in each run"},
		{"one that took no time", []float64{1, 1, 1}, []float64{1, 0, 1}, NotJudged, NotJudged, ""},
	} {
		got := comparisonsOf(t, saved(c.a...), saved(c.b...))
		if got[seconds].Verdict != c.seconds || got[rate].Verdict != c.rate && c.b[1] != 0 {
			t.Errorf("%s: expected %s and %s, found %+v and %+v", c.name, c.seconds, c.rate, got[seconds], got[rate])
		}
		if c.because != "" && got[seconds].Reason != c.because {
			t.Errorf("%s: expected the reason %q, found %q", c.name, c.because, got[seconds].Reason)
		}
		if low, high := got[seconds].Low, got[seconds].High; c.seconds != NotJudged && (*low > *got[seconds].Ratio || *high < *got[seconds].Ratio) {
			t.Errorf("%s: the ratio %v is not in its interval %v to %v", c.name, *got[seconds].Ratio, *low, *high)
		}
	}
	if got := comparisonsOf(t, saved(1, 1, 1), saved(2, 2, 2)); got[seconds].Better != Lower || got[rate].Better != Higher {
		t.Errorf("found %+v", got)
	}
}

// TestCheckpointIntervalsHold1: of pairs of runs that differ in nothing, 95 % of the intervals hold 1, whatever the times are like.
func TestCheckpointIntervalsHold1(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for name, draw := range map[string]func(i int) float64{
		"normal": func(int) float64 { return 1 + 0.05*random.NormFloat64() },
		"skewed": func(int) float64 { return math.Exp(0.4 * random.NormFloat64()) },
		"cold first": func(i int) float64 {
			return map[bool]float64{true: 4, false: 1}[i == 0] * (1 + 0.05*random.NormFloat64())
		},
		"a stall": func(int) float64 {
			return 1 + 0.02*random.NormFloat64() + map[bool]float64{true: 1}[random.IntN(8) == 0]
		},
	} {
		for _, n := range []int{3, 6, 20} {
			const pairs = 2000
			held := 0
			for range pairs {
				a, b := make([]float64, n), make([]float64, n)
				for i := range a {
					a[i], b[i] = draw(i), draw(i)
				}
				if meanRatio(a, b, 0.95).Noise() {
					held++
				}
			}
			if share := float64(held) / pairs; share < 0.93 || share > 0.995 {
				t.Errorf("%s, %d checkpoints: %.1f %% of the intervals hold 1", name, n, 100*share)
			}
		}
	}
}

// TestCheckpointDifferenceIsFound: a difference of 10 % in times with a spread of 2 %, from five checkpoints.
func TestCheckpointDifferenceIsFound(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	found := 0
	for range 200 {
		a, b := make([]float64, 5), make([]float64, 5)
		for i := range a {
			a[i], b[i] = 1+0.02*random.NormFloat64(), 1.1*(1+0.02*random.NormFloat64())
		}
		if e := meanRatio(a, b, 0.95); e.Low > 1 {
			found++
		}
	}
	if found < 190 {
		t.Errorf("found in %d of 200", found)
	}
}

// TestCheckpointsOfOtherTimes: a record whose figure is not that of its checkpoints is refused.
func TestCheckpointsOfOtherTimes(t *testing.T) {
	r := saved(1, 1, 1)
	r.Checkpoints.Saves[0].Seconds[1] = 3
	if _, err := Compare([]Run{{Name: "a", Record: r}, {Name: "b", Record: saved(1, 1, 1)}}, true, Options{}); err == nil || !strings.Contains(err.Error(), "save_checkpoint") {
		t.Errorf("found %v", err)
	}
}

// TestCheckpointRates are those of both runs, and of what both did.
func TestCheckpointRates(t *testing.T) {
	a, b := saved(1, 1, 1.01), saved(2, 2, 2.01)
	a.Checkpoints.Loads = []record.CheckpointLoad{{Seconds: []float64{1}}}
	got := CheckpointRates(a, b, Options{})
	if len(got) != 1 || got[0].Load || got[0].Err != nil || math.Abs(got[0].Estimate.Value-0.5) > 0.01 {
		t.Errorf("expected half of the rate of writes alone, found %+v", got)
	}
	b.Checkpoints.Loads = a.Checkpoints.Loads
	if got := CheckpointRates(a, b, Options{}); len(got) != 2 || !got[1].Load || !errors.Is(got[1].Err, ErrFewCheckpoints) {
		t.Errorf("expected too few reads, found %+v", got)
	}
}
