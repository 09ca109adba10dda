package record

// InlineVerification is what a run hashed of what it read, while its accelerators slept (docs/record.md). Verification.Files and Bytes
// are the files that it read, each once, companions included.
type InlineVerification struct {
	// Reads says of which bytes the transcript holds digests: "file" (whole files), "ranges" (parts of files), "groups" (row groups),
	// "stream" (a stream's pieces) or "none" (nothing was read).
	Reads string `json:"reads"`
	// Samples are the entries of the transcript that hold a digest, Bytes what was hashed for them in the timed run.
	Samples Int `json:"samples"`
	Bytes   Int `json:"bytes"`
	// Hashers is the number of goroutines that hashed, HashCPUSeconds the processor time that hashing took, and Cores that time by the
	// wall time of all epochs and passes: how many cores it used on average.
	Hashers        int     `json:"hashers"`
	HashCPUSeconds float64 `json:"hash_cpu_seconds"`
	Cores          float64 `json:"cores"`
	// WaitedSeconds is how long accelerators waited for what was not hashed in their sleep, over all of them.
	WaitedSeconds float64 `json:"waited_seconds"`
	// HeldBytes is the most memory that held bytes which were read and not yet hashed.
	HeldBytes Int `json:"held_bytes"`
	// Confirmed is what was done when the clock had stopped; absent where whole files were compared at once.
	Confirmed *InlineConfirmation `json:"confirmed,omitempty"`
	// Effect is what hashing made of AU; absent where that was not measured.
	Effect *ObserverEffect `json:"observer_effect,omitempty"`
}

// InlineConfirmation is the comparison of parts of files with the manifest after the run: each file that was read was hashed as a whole, and
// read again as the run read it.
type InlineConfirmation struct {
	// Samples are those of the data set that were read again, each once, and had the digests of the run.
	Samples Int     `json:"samples"`
	Seconds float64 `json:"seconds"`
}

// ObserverEffect compares the AU of epochs that were run with hashing and without it, in turns.
type ObserverEffect struct {
	// Epochs are the pairs, in the order in which they were run.
	Epochs []EffectEpoch `json:"epochs"`
	// Difference is the mean of AU with hashing less AU without it, in percentage points, and Low and High the ends of its 95 % confidence
	// interval. They are absent where there are fewer than two pairs; Absent then says why.
	Difference *float64 `json:"difference,omitempty"`
	Low        *float64 `json:"low,omitempty"`
	High       *float64 `json:"high,omitempty"`
	Absent     string   `json:"absent,omitempty"`
}

// EffectEpoch is the same epoch of the plan, run with hashing and without it. AU is in percent.
type EffectEpoch struct {
	// Turn counts the timed parts of each kind from 1: the first one with hashing is the run of this record.
	Turn    int     `json:"turn"`
	Epoch   int     `json:"epoch"`
	With    float64 `json:"with"`
	Without float64 `json:"without"`
}

// SampleVerification is the part of a data set that was hashed before the clock started. Verification.Files and Bytes are what was hashed.
type SampleVerification struct {
	// Share is benchpin.verify_sample, Seed what the files were drawn by: a 64-bit number in decimal digits, drawn when the run began
	// unless it was given.
	Share string `json:"share"`
	Seed  string `json:"seed"`
	// Of is the number of files that the sample was drawn from: all of the manifest.
	Of Int `json:"of"`
	// Found95 and Found99 are the least number of damaged files of which the sample would have hit one with a probability of 95 and 99 %
	// at least; Share95 and Share99 are that as percentages of all files.
	Found95 Int     `json:"found_95"`
	Found99 Int     `json:"found_99"`
	Share95 float64 `json:"share_95"`
	Share99 float64 `json:"share_99"`
}

// NewSample says what a sample of n of so many files finds.
func NewSample(share, seed string, of, n Int) SampleVerification {
	s := SampleVerification{Share: share, Seed: seed, Of: of}
	s.Found95, s.Found99 = SampleFinds(of, n, 0.05), SampleFinds(of, n, 0.01)
	if of > 0 {
		s.Share95 = 100 * float64(s.Found95) / float64(of)
		s.Share99 = 100 * float64(s.Found99) / float64(of)
	}
	return s
}

// SampleFinds is the least number D of damaged files among N of which a sample of n, drawn without replacement, misses all with a probability of at
// most miss. The number of damaged files in the sample has the hypergeometric distribution, by which the sample holds none with
// the probability
//
//	C(N-D, n) / C(N, n) = C(N-n, D) / C(N, D) = product over j = 0 .. D-1 of (N-n-j) / (N-j)
//
// (N. Johnson, A. Kemp, S. Kotz: Univariate Discrete Distributions, 3rd edition, chapter 6). It is N+1, more than there are, if even N damaged
// files are missed, because the sample is empty.
func SampleFinds(of, n Int, miss float64) Int {
	p := 1.0
	for d := Int(0); d < of; d++ {
		p = float64(p * float64(float64(max(0, of-n-d))/float64(of-d)))
		if p <= miss {
			return d + 1
		}
	}
	return of + 1
}

// HashCores is how many cores hashing used on average in the time of all epochs and passes, 0 where that time is not known.
func (m *Metrics) HashCores(cpuSeconds float64) float64 {
	var seconds float64
	for _, e := range m.Epochs {
		if e.Seconds.Value != nil {
			seconds += *e.Seconds.Value
		}
	}
	if m.Evaluation != nil {
		for _, e := range m.Evaluation.Passes {
			if e.Seconds.Value != nil {
				seconds += *e.Seconds.Value
			}
		}
	}
	if seconds <= 0 {
		return 0
	}
	return cpuSeconds / seconds
}
