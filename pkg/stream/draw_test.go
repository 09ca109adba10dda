package stream

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

const draws = 200_000

func sample(f func(i uint64) float64) []float64 {
	x := make([]float64, draws)
	for i := range x {
		x[i] = f(uint64(i))
	}
	return x
}

// checkMoments compares mean and variance with what the distribution has; both must lie within 5 standard errors.
func checkMoments(t *testing.T, name string, x []float64, mean, variance, kurtosis float64) {
	t.Helper()
	n := float64(len(x))
	var sum, sq float64
	for _, v := range x {
		sum += v
	}
	m := sum / n
	for _, v := range x {
		sq += (v - m) * (v - m)
	}
	v := sq / n
	if e := 5 * math.Sqrt(variance/n); math.Abs(m-mean) > e {
		t.Errorf("%s: mean %g, want %g ± %g", name, m, mean, e)
	}
	if e := 5 * variance * math.Sqrt((kurtosis-1)/n); math.Abs(v-variance) > e {
		t.Errorf("%s: variance %g, want %g ± %g", name, v, variance, e)
	}
}

// checkCDF is a Kolmogorov-Smirnov test at a level of about 1e-6 (the seed is fixed: it passes always or never).
func checkCDF(t *testing.T, name string, x []float64, cdf func(float64) float64) {
	t.Helper()
	x = slices.Clone(x)
	slices.Sort(x)
	n, d := float64(len(x)), 0.0
	for i, v := range x {
		p := cdf(v)
		d = max(d, math.Abs(p-float64(i)/n), math.Abs(p-float64(i+1)/n))
	}
	if limit := 2.7 / math.Sqrt(n); d > limit {
		t.Errorf("%s: distance from the distribution %g, limit %g", name, d, limit)
	}
}

func TestDistributions(t *testing.T) {
	s := New("benchpin/test", 1, 7)
	checkCDF(t, "uniform", sample(func(i uint64) float64 { return s.Float64(1, i) }), func(x float64) float64 { return x })
	normal := sample(func(i uint64) float64 { return s.Normal(2, i) })
	checkMoments(t, "normal", normal, 0, 1, 3)
	checkCDF(t, "normal", normal, func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 })
	exponential := sample(func(i uint64) float64 { return s.Exponential(3, i) })
	checkMoments(t, "exponential", exponential, 1, 1, 9)
	checkCDF(t, "exponential", exponential, func(x float64) float64 { return -math.Expm1(-x) })
	for k, a := range []float64{0.2, 0.5, 1, 2.5, 1000} {
		x := sample(func(i uint64) float64 { return s.Gamma(10+uint64(k), i, a) })
		checkMoments(t, "gamma", x, a, a, 3+6/a)
		switch a {
		case 0.5: // half a chi-square of one degree
			checkCDF(t, "gamma(0.5)", x, func(x float64) float64 { return math.Erf(math.Sqrt(x)) })
		case 1:
			checkCDF(t, "gamma(1)", x, func(x float64) float64 { return -math.Expm1(-x) })
		}
	}
	for k, l := range []float64{0.3, 4, 15.5, 16, 40, 12345.5, 1e9} {
		x := sample(func(i uint64) float64 { return s.Poisson(20+uint64(k), i, l) })
		checkMoments(t, "poisson", x, l, l, 3+1/l)
		if l <= 40 {
			checkPoisson(t, x, l)
		}
	}
}

// checkPoisson compares counts with the probabilities of a Poisson variable by chi-square, 8 standard deviations wide.
func checkPoisson(t *testing.T, x []float64, lambda float64) {
	t.Helper()
	count := make(map[float64]float64)
	for _, v := range x {
		if v < 0 || v != math.Trunc(v) {
			t.Fatalf("poisson(%g) gave %g, which is no count", lambda, v)
		}
		count[v]++
	}
	p, chi, cells := math.Exp(-lambda), 0.0, 0.0
	for k := range 200 {
		if k > 0 {
			p *= lambda / float64(k)
		}
		if e := p * draws; e >= 10 {
			chi += (count[float64(k)] - e) * (count[float64(k)] - e) / e
			cells++
		}
	}
	if limit := cells + 8*math.Sqrt(2*cells); chi > limit {
		t.Errorf("poisson(%g): chi-square %g over %g cells, limit %g", lambda, chi, cells, limit)
	}
}

func TestUniformIsUniform(t *testing.T) {
	s := New("benchpin/test", 1, 7)
	// A range just above 2^63 needs the rejection: without it the lower half would come twice as often.
	n, low := uint64(1<<63+1<<62), 0
	for i := range uint64(draws) {
		x := s.Uniform(1, i, n)
		if x >= n {
			t.Fatalf("draw %d is %d, outside [0,%d)", i, x, n)
		}
		if x < n/2 {
			low++
		}
	}
	if math.Abs(float64(low)-draws/2) > 5*math.Sqrt(draws)/2 {
		t.Errorf("%d of %d draws in the lower half", low, draws)
	}
	var cells [7]float64
	for i := range uint64(draws) {
		cells[s.Uniform(2, i, 7)]++
	}
	for k, c := range cells {
		if e := draws / 7.0; math.Abs(c-e) > 5*math.Sqrt(e) {
			t.Errorf("%d came %g times, expected about %g", k, c, e)
		}
	}
}

func TestBytesAreUniform(t *testing.T) {
	s, p := New("benchpin/test", 1, 7), make([]byte, 1<<22)
	s.Fill(p, 9, 0)
	var cells [256]float64
	ones := 0
	for _, b := range p {
		cells[b]++
		ones += int(b & 1)
	}
	chi, e := 0.0, float64(len(p))/256
	for _, c := range cells {
		chi += (c - e) * (c - e) / e
	}
	if math.Abs(chi-255) > 6*math.Sqrt(510) {
		t.Errorf("chi-square of byte values %g, want 255 ± 135", chi)
	}
}

func TestUniformRange(t *testing.T) {
	s := New("benchpin/test", 1, 8)
	rapid.Check(t, func(t *rapid.T) {
		index, i := rapid.Uint64().Draw(t, "index"), rapid.Uint64().Draw(t, "i")
		n := rapid.Uint64Min(1).Draw(t, "n")
		if x := s.Uniform(index, i, n); x >= n {
			t.Fatalf("Uniform(%d, %d, %d) = %d", index, i, n, x)
		}
		if x := s.Float64(index, i); x < 0 || x >= 1 || x*0x1p53 != math.Trunc(x*0x1p53) {
			t.Fatalf("Float64 = %v", x)
		}
	})
}

// ln and exp are compared with the platform's, which are good to an ulp.
func TestElementary(t *testing.T) {
	near := func(got, want, ulps float64) bool {
		return math.Abs(got-want) <= ulps*math.Abs(math.Nextafter(want, math.Inf(1))-want)
	}
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.OneOf(rapid.Float64Range(0x1p-1022, 1), rapid.Float64Range(0.5, 2), rapid.Float64Range(1, math.MaxFloat64)).Draw(t, "x")
		if got, want := ln(x), math.Log(x); !near(got, want, 2) {
			t.Fatalf("ln(%v) = %v, want %v", x, got, want)
		}
		y := rapid.OneOf(rapid.Float64Range(-1, 0), rapid.Float64Range(-708, 0)).Draw(t, "y")
		if got, want := exp(y), math.Exp(y); !near(got, want, 3) {
			t.Fatalf("exp(%v) = %v, want %v", y, got, want)
		}
	})
	if ln(1) != 0 || exp(0) != 1 || exp(-800) != 0 || exp(math.Inf(-1)) != 0 {
		t.Errorf("ln(1) = %v, exp(0) = %v, exp(-800) = %v, exp(-Inf) = %v", ln(1), exp(0), exp(-800), exp(math.Inf(-1)))
	}
}
