package bench

import (
	"fmt"
	"math"
	"time"

	"github.com/benchpin/benchpin/pkg/bench/checkpoint"
	"github.com/benchpin/benchpin/pkg/bench/loader"
	"github.com/benchpin/benchpin/pkg/bench/sampler"
	"github.com/benchpin/benchpin/pkg/record"
)

// planCheckpoints lays out the checkpoints of the run.
func (p *Plan) planCheckpoints() error {
	w := p.workload
	if !w.Workflow.Checkpoint {
		return nil
	}
	model, err := stateOf(w, formOf(w))
	if err != nil {
		return err
	}
	p.model = model
	p.saves = checkpoint.Schedule{AfterEpoch: w.Checkpoint.CheckpointAfterEpoch, EpochsBetween: w.Checkpoint.EpochsBetweenCheckpoints,
		StepsBetween: w.Checkpoint.StepsBetweenCheckpoints}
	n := p.saves.Count(p.Epochs, int64(p.StepsPerEpoch))
	if n > checkpoint.MaxNumber {
		return fmt.Errorf("%w: %d checkpoints: at most %d are possible; raise checkpoint.steps_between_checkpoints", ErrImpossible, n,
			checkpoint.MaxNumber)
	}
	p.Checkpoints, p.CheckpointBytes = int(n), record.Int(model.PayloadPerCheckpoint())
	if n > 0 {
		p.CheckpointForm = formOf(w)
	}
	return nil
}

const (
	// bufferBytes is the size of a read buffer, unless every file is smaller: what numpy's own reader asks for at a time, and
	// about what stays in a core's cache.
	bufferBytes = 256 << 10
	// maxReads bounds the reads that are under way at once. Each needs a thread of the operating system while the store has not
	// answered, and Go ends a program that needs more than 10,000.
	maxReads = 8192
	// goroutineBytes is the stack of a worker or of an accelerator's loop.
	goroutineBytes = 8 << 10
)

// planMemory adds up the buffers of the run: reads under way, accounts of batches in flight, orders, stacks, checkpoints.
func (p *Plan) planMemory(ds Dataset) error {
	rd := &p.reading
	var largest int64
	for i := range p.order.Files() {
		largest = max(largest, ds.Size(int(i)))
	}
	const page = 4096
	p.BufferBytes = int(min(bufferBytes, max(page, (largest+page-1)/page*page)))
	r, workers := int64(p.Accelerators), rd.workers()
	p.Reads = int(min(r*max(1, workers), maxReads))
	p.open = int64(p.Reads)
	if rd.keep != loader.KeepSample && !rd.whole() && !rd.fileless() {
		p.open = p.keptOpen()
	}
	if rd.streamed != nil && r*workers > maxReads {
		return fmt.Errorf("%w: %s with %s each stream %d files at once: at most %d are possible; lower reader.read_threads",
			ErrImpossible, counted(r, "accelerator"), counted(workers, "read thread"), r*workers, maxReads)
	}
	total := bucketMemory(p.workload, int64(p.Reads), largest) + int64(p.Reads)*int64(p.BufferBytes) + 2*p.order.MemoryBytes() + p.loaderMemory(p.order, int64(p.BatchSize), int64(p.StepsPerEpoch))
	if v := p.eval; v != nil {
		total += 2*v.order.MemoryBytes() + p.loaderMemory(v.order, int64(v.batch), v.steps) + r*v.steps*stepBytes
		p.open *= 2
	}
	held, err := p.heldMemory(ds)
	if err != nil {
		return err
	}
	total += held
	p.held = held
	if p.Checkpoints > 0 {
		total += p.checkpointMemory(p.model)
	}
	p.MemoryBytes = record.Int(total)
	return nil
}

// slotBytes is the memory of a batch in flight beside the accounts of its samples: its figures and the channel that tells of it.
const slotBytes = 192

// queueBytes is the memory of one loader's queues, for an epoch of so many steps: a place is 8 bytes for the number of a batch or sample, or
// 16 for an outcome.
func (r *reading) queueBytes(steps int64) int64 {
	w, ahead := r.workers(), min(int64(r.prefetch), steps)
	switch {
	case r.idle():
		return 0
	case r.streamed != nil: // each lane's queue has room for the samples on the way in all lanes, which have an account and a channel each
		return 8*w*2*w + 2*w*slotBytes
	case r.loader == loaderPyTorch:
		return 8 * w * max(1, ahead)
	case r.loader == loaderTensorFlow:
		return 8*w*2 + 16*ahead
	}
	return 8*w*ahead + r.slots(steps)*w*threadBytes
}

// threadBytes is what one thread adds to a batch that it shares with others: what it spent, and its error.
const threadBytes = 40

// stepBytes is the memory of a row of step times.
const stepBytes = 136

// loaderMemory is what the loaders of all accelerators need for one part of the data set, without read buffers.
func (p *Plan) loaderMemory(o *sampler.Order, batch, steps int64) int64 {
	rd := &p.reading
	one := rd.slots(steps)*(batch*loader.AccountBytes+slotBytes) + (rd.workers()+1)*goroutineBytes + rd.queueBytes(steps)
	if rd.streamed != nil {
		// Each lane has its piece, and the shuffle buffer the accounts of its samples.
		one += rd.workers()*int64(rd.transfer) + min(max(1, o.Config().Buffer), o.Reads())*loader.AccountBytes
	}
	return int64(p.Accelerators) * one
}

// keptOpen is how many files may be open at once where workers keep them: all that a worker may come to, with their companions.
func (p *Plan) keptOpen() int64 {
	rd := &p.reading
	each := int64(1)
	if p.reading.keep == loader.KeepAll {
		each = p.order.Files()
	}
	each *= 1 + int64(len(rd.companions()))
	return int64(p.Accelerators) * max(1, rd.workers()) * each
}

// mostDraws bounds the work of finding the mean of the slowest accelerator's compute time.
const mostDraws = 1 << 20

// slowest returns the mean over steps of the longest compute time of a step, in seconds: the barrier makes all accelerators
// wait for the slowest, so that is how long a step takes when the store always keeps up. Drawn times are looked at as the run
// will draw them; of a run with more than a million draws, the first million.
func (p *Plan) slowest() float64 {
	if !p.compute.drawn {
		return p.compute.constant.Seconds()
	}
	epochs := p.Epochs
	if !p.compute.perEpoch {
		epochs = 1
	}
	// Sums that would not fit into a Duration go over into seconds.
	var sum time.Duration
	var whole float64
	var seen int64
	mean := func() float64 { return (whole + sum.Seconds()) / float64(seen) }
	for e := 1; e <= epochs; e++ {
		for s := range int64(p.StepsPerEpoch) {
			var longest time.Duration
			for r := range p.Accelerators {
				longest = max(longest, p.compute.at(e, r, s))
			}
			if sum > math.MaxInt64-longest {
				whole, sum = whole+sum.Seconds(), 0
			}
			sum += longest
			if seen++; seen*int64(p.Accelerators) >= mostDraws {
				return mean()
			}
		}
	}
	return mean()
}

// planRates derives durations and the rate that the store must deliver.
//
// Let C be the mean compute time of a step and A the threshold of AU as a fraction. In a steady run a step takes C plus the
// time that its accelerator waits, and AU = C / (C + wait). AU is at least A exactly when steps take at most
//
//	t = C / A
//
// on average. In a step all R accelerators together read R x B samples (B the batch size), so the store must deliver
//
//	R x B / t  files a second  and  (bytes of an epoch / steps of an epoch) / t  bytes a second.
//
// Prefetching does not change this: it fills gaps and does not read less. What an epoch leaves out of AU (the first step, while
// the pipeline is cold) makes the need a little smaller than this, never larger.
func (p *Plan) planRates() {
	steps := float64(p.StepsPerEpoch)
	slowest := p.slowest()
	// Products are rounded before they are added: what is recomputed elsewhere must come out the same.
	preprocess := float64(float64(p.BatchSize) * p.workload.Reader.PreprocessTime.Mean())
	step, first := slowest+preprocess, 0.0
	if p.ReadThreads > 0 {
		// The workers preprocess while the accelerator computes, but for the first batch of an epoch.
		step, first = max(slowest, preprocess/float64(p.ReadThreads)), preprocess
	}
	p.ExpectedSeconds = float64(float64(p.Epochs) * (first + float64(steps*step)))

	au := p.workload.Metric.AU
	mean := p.ComputeSeconds
	if mean <= 0 || au <= 0 || p.reading.fileless() {
		return
	}
	allowed := mean / au
	files := float64(p.BatchSize) * float64(p.Accelerators) / allowed
	bytes := float64(p.BytesTotal) / (float64(p.Epochs) * steps) / allowed
	p.RequiredFilesPerSecond, p.RequiredBytesPerSecond = &files, &bytes
	if p.ReadThreads > 0 {
		p.SampleSeconds = (float64(allowed*float64(p.ReadThreads)) - preprocess) / float64(p.BatchSize)
	} else {
		p.SampleSeconds = (allowed - mean - preprocess) / float64(p.BatchSize)
	}
	if bytes > 0 {
		// A store that just delivers the rate is taken to accept checkpoints at that rate too.
		p.ExpectedSeconds += float64(p.Checkpoints) * float64(p.CheckpointBytes) / bytes
	}
	if slowest > allowed {
		p.Notes = append(p.Notes, fmt.Sprintf("AU %.10g %% cannot be reached by any store: every step waits for the slowest of %s, "+
			"%.4f s on average, and %.4f s are allowed", p.AUThreshold, counted(p.Accelerators, "accelerator"), slowest, allowed))
	}
	if p.SampleSeconds <= 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("AU %.10g %% cannot be reached by any store: preprocessing a batch takes %.4f s, a step may take %.4f s, "+
			"with %s; raise reader.read_threads", p.AUThreshold, preprocess, allowed, counted(p.ReadThreads, "read thread")))
	}
}
