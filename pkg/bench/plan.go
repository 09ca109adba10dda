// Package bench is the engine: it plans a training run and carries it out. The plan is computed before anything is touched;
// the run reads exactly the samples that the plan names, sleeps where accelerators would compute, meets at the barrier every
// step, writes checkpoints where they are due, and accounts for every sample in a transcript.
//
// It never generates or changes a data set, never hashes it, never decides whether a result is good, and signs nothing.
package bench

import (
	"errors"
	"fmt"

	"github.com/benchpin/benchpin/pkg/bench/checkpoint"
	"github.com/benchpin/benchpin/pkg/bench/sampler"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// ErrImpossible is the class of plans that no machine can run: the error gives the numbers and what to do.
var ErrImpossible = errors.New("impossible plan")

// Plan is what a run sets out to do. It follows from the workload and the data set alone, is the same everywhere, and is not
// changed by running it.
type Plan struct {
	record.Plan
	// SampleSeconds is how long a worker may take to open and read one sample, on average, for the threshold to be reached:
	// the read_threads of an accelerator together must have a batch ready for every step, and preprocessing takes its part. 0
	// where no rate is required. Negative: the threshold cannot be reached (Notes says so).
	SampleSeconds float64
	// BufferBytes is the size of one read buffer, Reads the largest number of reads that are under way at once.
	BufferBytes, Reads int
	// FileBytes is the memory for what the run keeps of the files of the data set, which is not among MemoryBytes. Whoever knows the data set's
	// files sets it; NewPlan leaves it 0.
	FileBytes int64
	// Notes are remarks for people: keys that make no difference here, thresholds that no store can reach.
	Notes []string

	workload   *workload.Workload
	order      *sampler.Order
	reading    reading
	compute    *times
	preprocess *times
	// model is nil without checkpoints.
	model *checkpoint.Plan
	saves checkpoint.Schedule
	// open is the largest number of files that the loaders hold open.
	open int64
	// held is the memory for what is hashed in the run.
	held int64
	// eval is nil without evaluation.
	eval *evaluation
	// notBefore is the public value that the order was drawn with, "" for none.
	notBefore string
}

// directFS is the storage.storage_type of folders whose files are read past the page cache.
const directFS = "direct_fs"

// parallelFS is the storage type of a parallel file system, which is a folder like any other. (DLIO knows the word and fails.)
const parallelFS = "parallel_fs"

// objectStore is the storage type of a bucket of an object server. Its files are read like any other; only their store knows.
const objectStore = "s3"

// direct says whether the workload asks for reads past the page cache.
func direct(w *workload.Workload) bool { return w.Reader.ODirect || w.Storage.StorageType == directFS }

// Workload is the workload that the plan was made from.
func (p *Plan) Workload() *workload.Workload { return p.workload }

// Sampler is the order in which the run reads samples. Steps that train.total_training_steps cuts off are still part of it.
func (p *Plan) Sampler() *sampler.Order { return p.order }

// Schedule is what the transcript of the run is a transcript of.
func (p *Plan) Schedule() Schedule {
	if p.order == nil { // no samples are read
		return Schedule{Config: sampler.Config{Accelerators: p.Accelerators, Mode: p.Order}}
	}
	return Schedule{Config: p.order.Config(), Epochs: p.Epochs, StepsPerEpoch: int64(p.StepsPerEpoch), Idle: p.reading.idle(), Reads: p.Inline(), NotBefore: p.notBefore}
}

// Model is what every checkpoint holds, and Saves says when they are written; Model is nil when there are none.
func (p *Plan) Model() *checkpoint.Plan { return p.model }

// Saves is the schedule of checkpoints. It means nothing where Model is nil.
func (p *Plan) Saves() checkpoint.Schedule { return p.saves }

// Limits of a plan. They keep arithmetic exact and memory sane; nothing real comes near them.
const (
	maxAccelerators = workload.MaxAccelerators
	maxEpochs       = 1 << 20
	maxWorkers      = 1 << 12
)

// NewPlan resolves a workload against a data set. Errors wrap ErrUnsupported where the workload asks for something that does
// not exist yet (all such keys are named at once) and ErrImpossible where no run could do what is asked.
//
// A workload that only writes and reads checkpoints (CheckpointOnly) needs no data set; ds may be nil then.
func NewPlan(w *workload.Workload, ds Dataset) (*Plan, error) { return NewPlanAfter(w, ds, "") }

// NewPlanAfter is NewPlan of a run that draws its order with a public value too, "" for none: whoever knows the order, or the transcript's
// root, knew the value (docs/attestation.md, time bracket). It is one line of 1 to MaxNotBefore bytes.
func NewPlanAfter(w *workload.Workload, ds Dataset, value string) (*Plan, error) {
	if err := CheckNotBefore(value); err != nil && value != "" {
		return nil, err
	}
	if CheckpointOnly(w) {
		if value != "" {
			return nil, fmt.Errorf("%w: a run that reads no data has no order that a value could go into", ErrUnsupported)
		}
		return planCheckpointOnly(w)
	}
	rd, err := supported(w, ds)
	if err != nil {
		return nil, err
	}
	if err := possible(w, ds); err != nil {
		return nil, err
	}
	r, b := w.Benchpin.Accelerators, w.Reader.BatchSize
	order, err := sampler.New(rd.sampling(sampler.Config{
		Files: int64(w.Dataset.NumFilesTrain), SamplesPerFile: int64(w.Dataset.NumSamplesPerFile), BatchSize: b, Accelerators: r,
		FileShuffle: shuffles(w.Reader.FileShuffle), SampleShuffle: shuffles(w.Reader.SampleShuffle),
		Seed: seedAfter(w.Train.Seed, value), SeedChangeEpoch: w.Train.SeedChangeEpoch, Mode: w.Benchpin.Order,
	}, w))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrImpossible, err)
	}
	steps := order.Steps()
	if t := w.Train.TotalTrainingSteps; t > steps {
		return nil, fmt.Errorf("%w: train.total_training_steps is %d, but an epoch has %s (%s x %s over batch %d x %s); "+
			"lower it, remove it (-1), or use more files", ErrImpossible, t, counted(steps, "step"), counted(w.Dataset.NumFilesTrain, "file"),
			counted(w.Dataset.NumSamplesPerFile, "sample"), b, counted(r, "accelerator"))
	} else if t > 0 {
		steps = t
	}
	perEpoch := steps * int64(b) * int64(r)
	total := int64(w.Dataset.NumFilesTrain) * int64(w.Dataset.NumSamplesPerFile)
	p := &Plan{
		Plan: record.Plan{
			Class: record.Recomputable, Accelerators: r, Epochs: w.Train.Epochs,
			Files: record.Int(w.Dataset.NumFilesTrain), SamplesPerFile: record.Int(w.Dataset.NumSamplesPerFile), Samples: record.Int(total),
			BatchSize: b, StepsPerEpoch: record.Int(steps),
			SamplesPerEpoch: record.Int(perEpoch), SamplesDropped: record.Int(total - perEpoch),
			ComputeSeconds: w.Train.ComputationTime.Mean(), AUThreshold: 100 * w.Metric.AU,
			ReadThreads: rd.threads, PrefetchFactor: rd.prefetch, Loader: rd.loader,
			Direct: direct(w) && !rd.fileless(),
			Order:  w.Benchpin.Order, OrderSeed: record.Int(w.Train.Seed),
		},
		workload: w, order: order, reading: rd, notBefore: value,
		compute:    newTimes(computeDomain, w.Train.ComputationTime, w.Train),
		preprocess: newTimes(preprocessDomain, w.Reader.PreprocessTime, w.Train),
	}
	if rd.loader == loaderPyTorch {
		p.Loader = ""
	}
	if rd.streamed != nil || rd.idle() { // as in DLIO
		p.preprocess = newTimes(preprocessDomain, workload.Time{}, w.Train)
	}
	if err := p.countBytes(ds); err != nil {
		return nil, err
	}
	if err := p.planCheckpoints(); err != nil {
		return nil, err
	}
	p.note()
	p.planRates()
	if err := p.planEvaluation(ds); err != nil {
		return nil, err
	}
	return p, p.planMemory(ds)
}

func shuffles(word string) bool {
	return word == workload.ShuffleSeed || word == workload.ShuffleRandom
}

// possible refuses what cannot be run, with the numbers.
func possible(w *workload.Workload, ds Dataset) error {
	r, b, f, n := w.Benchpin.Accelerators, w.Reader.BatchSize, w.Dataset.NumFilesTrain, w.Dataset.NumSamplesPerFile
	for _, c := range []struct {
		key         string
		value, most int
		least       int
	}{
		{"benchpin.accelerators", r, maxAccelerators, 1},
		{"train.epochs", w.Train.Epochs, maxEpochs, 1},
		{"reader.batch_size", b, 1 << 31, 1},
		{"reader.read_threads", w.Reader.ReadThreads, maxWorkers, 0},
		{"dataset.num_files_train", f, sampler.MaxSamples, 1},
		{"dataset.num_samples_per_file", n, sampler.MaxSamples, 1},
	} {
		if c.value < c.least || c.value > c.most {
			return fmt.Errorf("%w: %s is %d: expected %d to %d", ErrImpossible, c.key, c.value, c.least, c.most)
		}
	}
	if have := ds.Files(); have < f {
		return fmt.Errorf("%w: dataset.num_files_train is %d, but the data set has %s; generate more or lower it",
			ErrImpossible, f, counted(have, "training file"))
	}
	if t := w.Train.TotalTrainingSteps; t == 0 || t < -1 {
		return fmt.Errorf("%w: train.total_training_steps is %d: expected at least 1, or -1 for no limit", ErrImpossible, t)
	}
	if int64(f) > sampler.MaxSamples/int64(n) {
		return nil // the sampler refuses it
	}
	if total, step := int64(f)*int64(n), int64(b)*int64(r); total < step {
		fix := "use at least " + counted((step+int64(n)-1)/int64(n), "file")
		if most := total / int64(b); most > 0 {
			fix += ", at most " + counted(most, "accelerator")
		}
		return fmt.Errorf("%w: 0 steps: %s x %s < batch %d x %s = %s a step: %s, or a smaller batch",
			ErrImpossible, counted(f, "file"), counted(n, "sample"), b, counted(r, "accelerator"), counted(step, "sample"), fix)
	}
	return nil
}

// counted is "1 file" or "2 files".
func counted[T int | int64 | record.Int](n T, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", int64(n), word)
}

// countBytes fills in the file bytes that the run asks of the store for training.
func (p *Plan) countBytes(ds Dataset) error {
	total, err := p.reading.bytes(share{ds: ds, order: p.order, batch: p.BatchSize, steps: int64(p.StepsPerEpoch), epochs: epochs1(p.Epochs)})
	if err != nil {
		return err
	}
	p.BytesTotal = record.Int(total)
	p.BytesPerEpoch = record.Int(total / int64(p.Epochs))
	return nil
}
