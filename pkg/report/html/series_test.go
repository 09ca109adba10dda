package html

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestSharesAddUp: time is neither lost nor found when bins become wider.
func TestSharesAddUp(t *testing.T) {
	s := NewSeries(2)
	g := rand.New(rand.NewPCG(3, 4))
	var compute, load, at int64
	for i := range 3000 {
		l, c := g.Int64N(30_000_000), g.Int64N(90_000_000)
		for rank := range 2 {
			if err := s.Add(&Step{Epoch: 1, Rank: rank, Start: at, Load: l, Compute: c, Proc: l + c, Barrier: int64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		compute, load, at = compute+2*c, load+2*l, at+l+c+int64(i)
	}
	for _, most := range []int{1, 7, 24, 240, 1000} {
		var gotCompute, gotLoad float64
		list := s.shares(most)
		for i, one := range list {
			gotCompute += one.compute * (one.to - one.from) * 2e9
			gotLoad += one.load * (one.to - one.from) * 2e9
			if one.compute+one.load+one.barrier > 1+1e-9 || i > 0 && one.from != list[i-1].to {
				t.Errorf("%d stretches: %+v after %+v", most, one, list[max(0, i-1)])
			}
		}
		if len(list) > most || len(list) == 0 {
			t.Errorf("%d stretches, expected at most %d", len(list), most)
		}
		if d := gotCompute - float64(compute); d > 1e3 || d < -1e3 {
			t.Errorf("%d stretches: computed %.0f ns, expected %d", most, gotCompute, compute)
		}
		if d := gotLoad - float64(load); d > 1e3 || d < -1e3 {
			t.Errorf("%d stretches: waited %.0f ns, expected %d", most, gotLoad, load)
		}
	}
}

func TestBuckets(t *testing.T) {
	last := -1
	for _, v := range []int64{0, 1, 2, 2047, 2048, 2049, 4095, 4096, 1e6, 123456789, 1 << 40, mostTime - 1, mostTime} {
		i := bucket(v)
		from, to := edges(i)
		if float64(v) < from || float64(v) >= to || to-from > max(1, float64(v)/1024) {
			t.Errorf("%d is in a bucket from %g to %g", v, from, to)
		}
		if i < last {
			t.Errorf("bucket %d follows %d", i, last)
		}
		last = i
	}
	if n := len((&histogram{}).counts); last >= n {
		t.Errorf("the greatest time is in bucket %d of %d", last, n)
	}
}

// TestImpossibleStepsAreRefused, with what is wrong.
func TestImpossibleStepsAreRefused(t *testing.T) {
	for _, c := range []struct {
		want string
		step Step
	}{
		{"of 0 to 1", Step{Epoch: 2, Rank: 2}}, {"of 0 to 1", Step{Epoch: 2, Rank: -1}}, {"follows one of epoch 2", Step{Epoch: 1}},
		{"expected 0 to", Step{Epoch: 2, Load: -1}}, {"expected 0 to", Step{Epoch: 2, Start: mostTime + 1}},
	} {
		s := NewSeries(2)
		if err := s.Add(&Step{Epoch: 2}); err != nil {
			t.Fatal(err)
		}
		if err := s.Add(&c.step); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: expected an error with %q, found %v", c.step, c.want, err)
		}
	}
}
