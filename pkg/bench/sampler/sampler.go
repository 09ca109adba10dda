// Package sampler says which sample each accelerator reads at each position of each epoch.
//
// It is for the plan, the engine and the expected transcript alike: all three ask the same Order, so what is planned, what is
// read and what an auditor recomputes cannot differ. The order is a pure function of Config and the epoch.
//
// Let F be the files, n the samples of a file, B the batch size and R the accelerators. An epoch has steps = floor(F*n / (B*R))
// steps; its T' = steps*B*R samples are kept and the rest of the data set is left out. The F' = ceil(T'/n) leading files hold
// them. Rank r owns the positions [r*steps*B, (r+1)*steps*B) of the epoch's order. (DLIO computes the trimmed file count as if
// files were samples, which leaves most data sets of more than one sample a file without any step; the rule here is the one
// DLIO documents.)
//
// Order "numpy" shuffles as DLIO's configuration says it does, with the bits of numpy's legacy generator: in epoch e, counted
// from 1, a RandomState seeded with seed+e (the plain seed if it does not change with the epoch) shuffles the list of the F'
// files as the epoch before left it, and a fresh RandomState of the same seed shuffles arange(T'). Sample number g of the
// epoch is then position g mod n of the file at place g div n of the list. Where T' is not a multiple of n, the last file of the
// list is read in part, and a file shuffle changes from epoch to epoch which file that is.
// Order "dlio" never shuffles: it is what DLIO's PyTorch reader really reads, whatever the shuffle keys say. The one exception is the
// buffer of Stream, which is TensorFlow's own and shuffles in DLIO too.
//
// How an accelerator walks through its share depends on the data loader (Sampling): position by position, thread by thread, or
// file by file through a shuffle buffer. Whatever it is, every sample that is kept is read once by one rank.
//
// The package never reads data, never keeps an array where nothing is shuffled, and otherwise keeps 4 bytes a sample and 4
// bytes a file for each epoch in use.
package sampler

import (
	"fmt"
	"math"
	"sync"
)

// The orders that exist (workload key benchpin.order).
const (
	// Numpy shuffles with numpy's legacy generator, as DLIO means to.
	Numpy = "numpy"
	// DLIO is the order that DLIO's PyTorch reader uses whatever was asked: no shuffling at all.
	DLIO = "dlio"
)

// MaxSamples is the largest number of samples or files that an order can be made for. It is a limit of the transcript's entries
// and of the shuffle, whose bounded draws are 32-bit.
const MaxSamples = 1 << 32

// Config is everything that an order depends on.
type Config struct {
	// Files is the number of training files, 1 to MaxSamples; SamplesPerFile is the same for all, at least 1.
	Files, SamplesPerFile int64
	// BatchSize is samples a step and accelerator, Accelerators the number of ranks; both at least 1.
	BatchSize, Accelerators int
	// FileShuffle and SampleShuffle ask for shuffling; order DLIO ignores both.
	FileShuffle, SampleShuffle bool
	// Seed is train.seed, 0 to 2^32-1; with SeedChangeEpoch, Seed plus the epoch must stay in that range, as in numpy.
	Seed            int64
	SeedChangeEpoch bool
	// Mode is Numpy or DLIO.
	Mode string
	// Sampling is how an accelerator walks through its samples: Index (the zero value), Iterative or Stream.
	Sampling Sampling
	// Lanes is the number of threads that read for one accelerator, at least 1, for Iterative and Stream; 0 for Index, whose order
	// does not depend on it.
	Lanes int
	// Buffer is the size of the shuffle buffer of Stream in samples. 0 and 1 shuffle nothing; other samplings have none.
	Buffer int64
	// After is the length of a list that the generator shuffles in each epoch before the files: the training files, where this is the
	// order of the files for evaluation. 0 for none.
	After int64
}

// Sampling is how an accelerator walks through its samples.
type Sampling string

// The samplings that exist.
const (
	// Index is one share of the epoch's order after the other, a position at a time (PyTorch, DALI).
	Index Sampling = ""
	// Iterative gives each thread a run of whole batches, and deals batches thread by thread (TensorFlow's generators).
	Iterative Sampling = "iterative"
	// Stream reads whole files front to back, several at a time, through a shuffle buffer (TFRecordDataset).
	Stream Sampling = "stream"
)

// Order is the order of all epochs of one configuration. It is safe for concurrent use.
type Order struct {
	c                     Config
	steps, samples, files int64

	mu sync.Mutex
	// list is the shuffled file list of epoch number at; kept because the shuffles accumulate. Guarded by mu, never written to
	// once an EpochOrder shares it.
	list []uint32
	at   int
}

// New checks a configuration and returns its order. It fails for numbers out of range, an unknown mode, and for a configuration
// that leaves no step: that error gives the numbers.
func New(c Config) (*Order, error) {
	switch {
	case c.Files < 1 || c.Files > MaxSamples:
		return nil, fmt.Errorf("sampler: %d files: expected 1 to %d", c.Files, int64(MaxSamples))
	case c.SamplesPerFile < 1 || c.SamplesPerFile > MaxSamples/c.Files:
		return nil, fmt.Errorf("sampler: %d files x %d samples a file: expected 1 to %d samples in all; use fewer files or "+
			"fewer samples a file", c.Files, c.SamplesPerFile, int64(MaxSamples))
	case c.BatchSize < 1:
		return nil, fmt.Errorf("sampler: batch size %d: expected at least 1", c.BatchSize)
	case c.Accelerators < 1:
		return nil, fmt.Errorf("sampler: %d accelerators: expected at least 1", c.Accelerators)
	case c.Mode != Numpy && c.Mode != DLIO:
		return nil, fmt.Errorf("sampler: order %q: expected %q or %q", c.Mode, Numpy, DLIO)
	case c.Seed < 0 || c.Seed > math.MaxUint32:
		return nil, fmt.Errorf("sampler: seed %d: expected 0 to %d, the range of numpy's legacy generator", c.Seed,
			uint32(math.MaxUint32))
	}
	if err := c.checkSampling(); err != nil {
		return nil, err
	}
	o := &Order{c: c}
	total := c.Files * c.SamplesPerFile
	// Both factors may be large: compare by division so that the product cannot overflow.
	if int64(c.BatchSize) <= total/int64(c.Accelerators) {
		o.steps = total / (int64(c.BatchSize) * int64(c.Accelerators))
	}
	if o.steps == 0 {
		return nil, fmt.Errorf("sampler: 0 steps: %d files x %d samples < batch %d x %d accelerators; use more files, a smaller "+
			"batch or fewer accelerators", c.Files, c.SamplesPerFile, c.BatchSize, c.Accelerators)
	}
	o.samples = o.steps * int64(c.BatchSize) * int64(c.Accelerators)
	o.files = (o.samples + c.SamplesPerFile - 1) / c.SamplesPerFile
	return o, nil
}

// Config returns the configuration that the order was made from.
func (o *Order) Config() Config { return o.c }

// Steps is the number of steps of one epoch.
func (o *Order) Steps() int64 { return o.steps }

// Samples is T', the number of samples that all accelerators read in one epoch.
func (o *Order) Samples() int64 { return o.samples }

// Dropped is the number of samples of the data set that the step rule leaves out of every epoch.
func (o *Order) Dropped() int64 { return o.c.Files*o.c.SamplesPerFile - o.samples }

// Files is F', the number of leading files of the data set that the order uses.
func (o *Order) Files() int64 { return o.files }

// MemoryBytes is the memory that one epoch's order takes, 0 where nothing is shuffled. The order itself keeps one file list more.
func (o *Order) MemoryBytes() int64 {
	var b int64
	if o.fileShuffle() {
		b += 4 * max(o.files, o.c.After)
	}
	if o.sampleShuffle() {
		b += 4 * o.samples
	}
	if o.buffered() {
		b += 4 * o.Reads()
	}
	return b
}

func (o *Order) fileShuffle() bool { return o.c.FileShuffle && o.c.Mode == Numpy }

func (o *Order) sampleShuffle() bool {
	return o.c.SampleShuffle && o.c.Mode == Numpy && o.c.Sampling != Stream
}

// Epoch returns the order of epoch e, counted from 1. It fails when e is below 1 or the epoch's seed leaves the range of numpy's
// generator. Epochs asked for in rising order cost one shuffle each; going back starts the file list again from epoch 1.
func (o *Order) Epoch(e int) (*EpochOrder, error) {
	if e < 1 {
		return nil, fmt.Errorf("sampler: epoch %d: expected at least 1", e)
	}
	if s := o.seed(e); s > math.MaxUint32 {
		return nil, fmt.Errorf("sampler: seed %d + epoch %d is above %d, the range of numpy's legacy generator; use a smaller "+
			"train.seed", o.c.Seed, e, uint32(math.MaxUint32))
	}
	eo := &EpochOrder{n: o.c.SamplesPerFile, share: o.samples / int64(o.c.Accelerators), ranks: o.c.Accelerators,
		sampling: o.c.Sampling, batch: int64(o.c.BatchSize), lanes: int64(o.c.Lanes), steps: o.steps}
	if o.fileShuffle() {
		eo.files = o.fileList(e)
	}
	if o.sampleShuffle() {
		eo.samples = arange(o.samples)
		var g mt
		g.seed(uint32(o.seed(e)))
		g.shuffle(eo.samples)
	}
	if o.c.Sampling == Stream {
		o.stream(eo, e)
	}
	return eo, nil
}

// seed is the generator's seed in epoch e.
func (o *Order) seed(e int) int64 {
	if o.c.SeedChangeEpoch {
		return o.c.Seed + int64(e)
	}
	return o.c.Seed
}

// fileList returns the file list of epoch e: the list of all files, shuffled once for each epoch up to e.
func (o *Order) fileList(e int) []uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.list == nil || o.at > e {
		o.list, o.at = arange(o.files), 0
	}
	if o.at == e {
		return o.list
	}
	// The list at hand may be in use by the order of another epoch: shuffle a copy.
	list := append([]uint32(nil), o.list...)
	var g mt
	before := arange(o.c.After)
	for o.at < e {
		o.at++
		g.seed(uint32(o.seed(o.at)))
		g.shuffle(before)
		g.shuffle(list)
	}
	o.list = list
	return list
}

func arange(n int64) []uint32 {
	a := make([]uint32, n)
	for i := range a {
		a[i] = uint32(i)
	}
	return a
}

// EpochOrder is the order of one epoch. It is immutable and safe for concurrent use.
type EpochOrder struct {
	n, share int64
	ranks    int
	// files and samples are nil where they are not shuffled.
	files, samples []uint32

	sampling            Sampling
	batch, lanes, steps int64
	st                  streams
}

// PerRank is the number of samples of each rank: positions run from 0 to PerRank-1, and position p belongs to step p div batch.
func (e *EpochOrder) PerRank() int64 { return e.share }

// Sample returns what a rank reads at position pos of its share: the sample's number in the epoch's order of the data set (0 to
// T'-1), the index of its file in the data set, and its position k in that file. rank must be in [0, Accelerators) and pos in
// [0, PerRank); anything else is a fault of the caller and gives -1 for all three, which no reader can mistake for a sample.
func (e *EpochOrder) Sample(rank int, pos int64) (sample, file, k int64) {
	if rank < 0 || rank >= e.ranks || pos < 0 || pos >= e.share {
		return -1, -1, -1
	}
	switch e.sampling {
	case Iterative:
		pos = e.iterative(pos)
	case Stream:
		sample, file, k, _ = e.Read(rank, e.delivered(rank, pos))
		return sample, file, k
	}
	g := int64(rank)*e.share + pos
	if e.samples != nil {
		g = int64(e.samples[g])
	}
	file, k = g/e.n, g%e.n
	if e.files != nil {
		file = int64(e.files[file])
	}
	return g, file, k
}

// Run is Sample with the number of positions from pos on that follow each other: the i-th of them holds sample+i, the same file, and k+i. It
// is at least 1, and more only where nothing is shuffled by sample; 0 for what is no position.
func (e *EpochOrder) Run(rank int, pos int64) (sample, file, k, n int64) {
	if sample, file, k = e.Sample(rank, pos); sample < 0 {
		return sample, file, k, 0
	}
	if e.sampling != Index || e.samples != nil {
		return sample, file, k, 1
	}
	return sample, file, k, min(e.n-k, e.share-pos)
}
