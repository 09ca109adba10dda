package stream

import "math"

// ln 2 in two parts: the upper one has 32 trailing zero bits, so that its product with a binary exponent is exact.
const (
	ln2Hi = 0x1.62e42feep-01
	ln2Lo = 0x1.a39ef35793c76p-33
)

// ln returns the natural logarithm of x, a normal positive number, within about an ulp, by a fixed sequence of exactly
// rounded operations. x = m 2^k with m in [1/√2, √2); ln m = 2 artanh(s), s = (m-1)/(m+1), by its Taylor series.
func ln(x float64) float64 {
	bits := math.Float64bits(x)
	k := int(bits>>52) - 1023
	m := math.Float64frombits(bits&(1<<52-1) | 1023<<52) // [1, 2)
	if m > math.Sqrt2 {
		m, k = m/2, k+1
	}
	f := m - 1 // exact
	s := f / (m + 1)
	z := float64(s * s) // at most 0.0295, so the next term of the series would be below 2^-58
	p := 1.0 / 23
	for _, c := range [...]float64{1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3} {
		p = c + float64(p*z)
	}
	// 2s = f - s f exactly; writing it so keeps the leading term f free of the rounding of s.
	tail := float64(s*f) - float64(float64(2*s)*float64(z*p))
	return float64(float64(k)*ln2Hi) - ((tail - float64(float64(k)*ln2Lo)) - f)
}

// exp returns e^x for x <= 0, within about an ulp, and 0 where the result would not be a normal number.
// x = k ln 2 + r with |r| <= ln(2)/2; e^r by its Taylor series.
func exp(x float64) float64 {
	k := math.Floor(float64(x*math.Log2E) + 0.5)
	if !(k > -1022) {
		return 0
	}
	r := (x - float64(k*ln2Hi)) - float64(k*ln2Lo)
	p := 1.0
	for n := 16.0; n >= 1; n-- {
		p = 1 + float64(float64(p*r)/n)
	}
	return float64(p * math.Float64frombits(uint64(1023+int64(k))<<52))
}
