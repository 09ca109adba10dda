package compare

// Figure is a figure that follows from step times.
type Figure string

// The figures, by their names in records; those that end in _mean are no figures of records: means over all steps of all ranks in the window.
const (
	AU               Figure = "au"
	AUPrescribed     Figure = "other.au_prescribed"
	SamplesPerSecond Figure = "samples_per_second"
	BytesPerSecond   Figure = "bytes_per_second"
	StepMean         Figure = "step_mean"
	LoadMean         Figure = "load_mean"
	ComputeMean      Figure = "compute_mean"
	BarrierMean      Figure = "barrier_mean"
)

// formula is a figure as scale x numerator / denominator.
type formula struct {
	figure   Figure
	unit     string
	num, den int
	scale    float64
	// higher says whether more of it is better.
	higher bool
}

// formulas are all figures, in the order in which they are shown.
func formulas() []formula {
	return []formula{
		{AU, "%", sumCompute, sumLap, 100, true},
		{AUPrescribed, "%", sumPrescribed, sumLap, 100, true},
		{SamplesPerSecond, "samples/s", sumSamples, sumWall, 1e9, true},
		{BytesPerSecond, "B/s", sumBytes, sumWall, 1e9, true},
		{StepMean, "s", sumStep, sumRows, 1e-9, false},
		{LoadMean, "s", sumLoad, sumRows, 1e-9, false},
		{ComputeMean, "s", sumCompute, sumRows, 1e-9, false},
		{BarrierMean, "s", sumBarrier, sumRows, 1e-9, false},
	}
}

func formulaOf(f Figure) (formula, bool) {
	for _, known := range formulas() {
		if known.figure == f {
			return known, true
		}
	}
	return formula{}, false
}

// of is the figure of some sums. It is false where nothing can be divided.
func (f *formula) of(c *chunk) (float64, bool) {
	if c[f.den] <= 0 {
		return 0, false
	}
	return f.scale * float64(c[f.num]) / float64(c[f.den]), true
}

// Value is a figure over all steps of the series. It is false for an unknown figure, and where no step, or no time, is in the window.
func (s *Series) Value(f Figure) (float64, bool) {
	known, ok := formulaOf(f)
	if !ok {
		return 0, false
	}
	return known.of(&s.total)
}
