package audit

import (
	"math"
	"math/big"
	"testing"
)

// The bounds are exact: one damaged chunk less would be missed too often, by whole numbers.
func TestLeastIsExact(t *testing.T) {
	for _, all := range []int64{2, 7, 50, 300, 1000} {
		for _, n := range []int64{1, 2, 13, 299, 999} {
			if n >= all {
				continue
			}
			for _, c := range []int64{95, 99} {
				missed := func(d int64) *big.Rat { // C(all-d, n) / C(all, n)
					if all-d < n {
						return new(big.Rat)
					}
					return new(big.Rat).SetFrac(new(big.Int).Binomial(all-d, n), new(big.Int).Binomial(all, n))
				}
				d := least(all, n, 1-float64(c)/100)
				bound := big.NewRat(100-c, 100)
				// The product is rounded: at the bound itself either side is right.
				if missed(d).Cmp(new(big.Rat).Add(bound, big.NewRat(1, 1e9))) > 0 {
					t.Errorf("%d of %d: %d damaged are missed with %s", n, all, d, missed(d).FloatString(6))
				}
				if d > 1 && missed(d-1).Cmp(new(big.Rat).Sub(bound, big.NewRat(1, 1e9))) <= 0 {
					t.Errorf("%d of %d: %d damaged are found already", n, all, d-1)
				}
			}
		}
	}
}

// The figures that people know: 300 draws find 1 % with 95 %, 460 with 99 %.
func TestAssuranceOfKnownFigures(t *testing.T) {
	for _, x := range []struct {
		count      int
		confidence float64
		share      float64
	}{{300, 0.95, 0.00993}, {460, 0.99, 0.00996}, {1, 0.95, 0.95}} {
		c := &Challenge{Groups: 1 << 40, Count: x.count, Chunks: make([]Chunk, x.count), Equal: true}
		a := c.Assure(x.confidence)
		if math.Abs(a.Share-x.share) > 1e-5 || a.Method != Binomial {
			t.Errorf("%d draws, %v: %+v, expected %v", x.count, x.confidence, a, x.share)
		}
		if miss := math.Pow(1-a.Share, float64(x.count)); math.Abs(miss-(1-x.confidence)) > 1e-12 {
			t.Errorf("%d draws: missed with %v", x.count, miss)
		}
		// Without putting back it is never more.
		c.Groups = 1 << 20
		if h := c.Assure(x.confidence); h.Method != Hypergeometric || h.Share > a.Share+1.0/(1<<20) {
			t.Errorf("%d of %d: %+v", x.count, c.Groups, h)
		}
		c.Groups = int64(x.count)
		if h := c.Assure(x.confidence); h.Method != All || h.Share != 0 {
			t.Errorf("all: %+v", h)
		}
	}
}
