package record

import "math"

// NewEffect compares AU with hashing and without it over pairs of the same epoch, run one after the other in turns.
//
// With d_i the differences (with less without) of n pairs, their mean m and s^2 = sum (d_i - m)^2 / (n - 1), the 95 % confidence interval
// of the difference is that of Student's t for paired observations:
//
//	m - t s / sqrt(n)  to  m + t s / sqrt(n)
//
// where t is the 0.975 quantile with n - 1 degrees of freedom (G. Box, J. Hunter, W. Hunter: Statistics for Experimenters, 2nd edition,
// chapter 3). Between the degrees of the table the next lower one is taken, which makes the interval wider and never narrower. Pairing
// takes out what both have in common, the order of samples and the state of the storage; turns are taken in the order without, with,
// with, without, so that a drift that goes on evenly falls out.
func NewEffect(pairs []EffectEpoch) ObserverEffect {
	e := ObserverEffect{Epochs: pairs}
	if pairs == nil {
		e.Epochs = []EffectEpoch{}
	}
	n := len(pairs)
	if n < 2 {
		e.Absent = "fewer than two epochs have an AU with hashing and without it"
		return e
	}
	// Each operation is rounded: fused ones would give other last digits on other processors.
	sum := 0.0
	for _, p := range pairs {
		sum = float64(sum + float64(p.With-p.Without))
	}
	mean := sum / float64(n)
	squares := 0.0
	for _, p := range pairs {
		d := float64(float64(p.With-p.Without) - mean)
		squares = float64(squares + float64(d*d))
	}
	half := float64(student(n-1) * math.Sqrt(float64(squares/float64(n-1))/float64(n)))
	low, high := float64(mean-half), float64(mean+half)
	e.Difference, e.Low, e.High = &mean, &low, &high
	return e
}

// student is the 0.975 quantile of Student's distribution (tables of the NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2),
// rounded up to three digits, with at most the given degrees of freedom, which are at least 1.
func student(degrees int) float64 {
	for _, row := range []struct {
		degrees int
		t       float64
	}{
		{120, 1.980}, {100, 1.984}, {80, 1.991}, {60, 2.001}, {50, 2.009}, {40, 2.022}, {30, 2.043}, {29, 2.046}, {28, 2.049}, {27, 2.052}, {26, 2.056},
		{25, 2.060}, {24, 2.064}, {23, 2.069}, {22, 2.074}, {21, 2.080}, {20, 2.086}, {19, 2.094}, {18, 2.101}, {17, 2.110}, {16, 2.120}, {15, 2.132},
		{14, 2.145}, {13, 2.161}, {12, 2.179}, {11, 2.201}, {10, 2.229}, {9, 2.263}, {8, 2.307}, {7, 2.365}, {6, 2.447}, {5, 2.571}, {4, 2.777}, {3, 3.183},
		{2, 4.303},
	} {
		if degrees >= row.degrees {
			return row.t
		}
	}
	return 12.707
}
