package workload

// The types of a Time.
const (
	TimeConstant    = "constant"
	TimeNormal      = "normal"
	TimeUniform     = "uniform"
	TimeGamma       = "gamma"
	TimeExponential = "exponential"
	TimePoisson     = "poisson"
)

// Time is a duration that is slept: a constant, or drawn from a distribution each time. All figures are in seconds but
// for Shape, which has no unit. A drawn value is used as its absolute value, as DLIO does. The zero value has no type
// and sleeps nothing; Load never returns it.
type Time struct {
	// Type is one of the constants above; it says which of the other fields count.
	Type string
	// Center is the value of a constant and the mean of a normal distribution.
	Center float64
	// Stdev is that of a normal distribution, > 0.
	Stdev float64
	// Min and Max bound a uniform distribution.
	Min, Max float64
	// Shape is that of a gamma distribution, > 0.
	Shape float64
	// Scale is that of a gamma or an exponential distribution.
	Scale float64
	// Lam is the mean of a Poisson distribution; the count drawn is taken as seconds.
	Lam float64
}

// Mean is the mean of the distribution in seconds, before the absolute value of a draw is taken. It is one rounded
// operation at most, so it is the same on every architecture.
func (t Time) Mean() float64 {
	switch t.Type {
	case TimeConstant, TimeNormal:
		return t.Center
	case TimeUniform:
		return float64(t.Min+t.Max) / 2
	case TimeGamma:
		return float64(t.Shape * t.Scale)
	case TimeExponential:
		return t.Scale
	case TimePoisson:
		return t.Lam
	}
	return 0
}
