package record

// Waits say what the steps of one epoch consisted of beside computing, in seconds (class H), computed from the step times.
//
// The wait for a batch (Load) is divided by what was done for the batch: Queue while nobody had begun it; the rest in proportion to what
// the loader's workers spent on it, as Open, Read and Decode; and Other, such as preprocessing and handing it over. These five add up to
// Load. Barrier is the wait for the other accelerators after computing, Oversleep what the compute sleep took longer than prescribed.
type Waits struct {
	Class Class `json:"class"`
	// Steps are spread over all steps of all accelerators, and Total is their sum.
	Steps WaitParts `json:"steps"`
	// Accelerators are spread over the accelerators, of each of which the sum over the epoch counts.
	Accelerators WaitParts `json:"accelerators"`
	// Ranks are those sums, in rank order, where there are at most MostWaitRanks accelerators; absent where there are more.
	Ranks []RankWaits `json:"ranks,omitempty"`
}

// MostWaitRanks is the number of accelerators up to which a record tells the waits of each.
const MostWaitRanks = 16

// WaitParts has a spread for each part.
type WaitParts struct {
	Load      Spread `json:"load"`
	Queue     Spread `json:"queue"`
	Open      Spread `json:"open"`
	Read      Spread `json:"read"`
	Decode    Spread `json:"decode"`
	Other     Spread `json:"other"`
	Barrier   Spread `json:"barrier"`
	Oversleep Spread `json:"oversleep"`
}

// Spread is how values are spread. A percentile is never below the exact one, and above it by less than 0.1 %.
type Spread struct {
	Total float64 `json:"total"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// RankWaits are the sums of one accelerator over an epoch.
type RankWaits struct {
	Load      float64 `json:"load"`
	Queue     float64 `json:"queue"`
	Open      float64 `json:"open"`
	Read      float64 `json:"read"`
	Decode    float64 `json:"decode"`
	Other     float64 `json:"other"`
	Barrier   float64 `json:"barrier"`
	Oversleep float64 `json:"oversleep"`
}
