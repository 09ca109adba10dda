package compare

import "math"

// normalQuantile is the quantile of the standard normal distribution, for p from 0.5 to below 1.
func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// studentQuantile is the quantile of Student's t with n degrees of freedom, for p from 0.5 to below 1, found by bisection of its
// distribution.
func studentQuantile(p float64, n int) float64 {
	low, high := 0.0, 1.0
	for studentCDF(high, n) < p && high < 1e12 {
		high *= 2
	}
	for range 100 {
		if middle := (low + high) / 2; studentCDF(middle, n) < p {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// studentCDF is the distribution of Student's t with n degrees of freedom at t >= 0, by its finite sums (M. Abramowitz, I. Stegun: Handbook
// of Mathematical Functions, 26.7.3 and 26.7.4). Beyond 1,000 degrees of freedom it is the normal one, from which it differs by less
// than 0.0002 there.
func studentCDF(t float64, n int) float64 {
	if n > 1000 {
		return 1 - math.Erfc(t/math.Sqrt2)/2
	}
	theta := math.Atan(t / math.Sqrt(float64(n)))
	sin, cos := math.Sin(theta), math.Cos(theta)
	var a float64 // the probability of -t to t
	if n%2 == 1 {
		term, sum := cos, 0.0
		for j := 3; j <= n; j += 2 {
			sum += term
			term *= float64(cos*cos) * float64(j-1) / float64(j)
		}
		a = 2 / math.Pi * (theta + float64(sin*sum))
	} else {
		term, sum := 1.0, 0.0
		for j := 2; j <= n; j += 2 {
			sum += term
			term *= float64(cos*cos) * float64(j-1) / float64(j)
		}
		a = sin * sum
	}
	return (1 + a) / 2
}
