package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/bench/checkpoint"
	"github.com/benchpin/benchpin/pkg/bench/loader"
	"github.com/benchpin/benchpin/pkg/bench/sampler"
	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// Options is everything that a run needs beside its plan.
type Options struct {
	Plan    *Plan
	Dataset Dataset
	// Data opens the files of the data set. Where the workload asks for reader.odirect it is to bypass the page cache.
	Data loader.Opener
	// Checkpoints is the store whose root is the checkpoint folder; it decides whether Commit waits for the device, and
	// CheckpointsDurable says for the record whether it does. Nil is allowed when the plan writes none.
	Checkpoints        checkpoint.Creator
	CheckpointsDurable bool
	// Saved is the same store, to read checkpoints back from and to drop them from the page cache. Nil is allowed when the plan
	// reads none.
	Saved Saved
	// Steps receives the raw step times (steps.parquet). The file is whole however the run ends.
	Steps StepsFile
	// EvalSteps receives the step times of the evaluation passes (eval.parquet), in the same form: its epochs are the passes, counted
	// from 1. Nil is allowed when the plan has no evaluation.
	EvalSteps StepsFile
	// Identity returns what was known of a file, companions included, when its bytes were verified; false where nothing is known. May be
	// nil.
	Identity func(f FileID) (store.Info, bool)
	// Evict drops the data set's pages from the page cache. It is called outside of the clock, as benchpin.cold_cache asks: before
	// the first epoch, before every one, or never. May be nil when it asks for never.
	Evict func(ctx context.Context) error
	// Uncacheable is true where no page cache of this machine can hold the data set: then benchpin.cold_cache asks for nothing, and Evict
	// may be nil.
	Uncacheable bool
	// Progress is told how far the run is, a few times a second, while an accelerator sleeps. May be nil. It must be quick.
	Progress func(Progress)
	// Live shows the run while it goes on, and when it has ended. May be nil.
	Live *Live
	// Confirm opens files once the clock has stopped, to compare what was read of them with the manifest (benchpin.verify: inline). Nil: Data.
	Confirm loader.Opener
	// DeviceBytes returns how many bytes this process has read from block devices so far. Nil: /proc/self/io.
	DeviceBytes func() (int64, error)
	// Now is the clock that steps are timed with, which must be monotonic. Nil: time.Now.
	Now func() time.Time
	// Storage looks at file systems and page cache before and after each epoch and pass. Nil: the result says nothing of them. Of several
	// processes on one host, one looks, and one evicts: in the others Storage is nil and Evict does nothing.
	Storage StorageMeter
	// World are the processes that carry the plan out together, this one among them; each has its part of the accelerators (Plan.Part).
	// All give the same plan and data set. Nil: this process carries all.
	World *cluster.World
	// Host names this process's host in what was counted there; "" is World's name of it.
	Host string
	// AllSteps and AllEvalSteps are, in process 0 of several, what Steps and EvalSteps are where there is one: they receive the rows of all
	// processes. Steps and EvalSteps then hold those of a process until they are brought there.
	AllSteps, AllEvalSteps StepsFile
}

// Progress says how far a run is. Counts are of all accelerators; on several processes, of those of this one, times how many there are of its kind.
type Progress struct {
	Epoch, Epochs int
	Step, Steps   int64 // steps done of this epoch, of its steps
	Samples       int64 // read since the start of the run, of SamplesTotal
	SamplesTotal  int64
	Bytes         int64 // asked of the store since the start of the run, of BytesTotal
	BytesTotal    int64
	Elapsed       time.Duration
}

// Result is what a run came to.
type Result struct {
	// Transcript has the expected root beside the one of this run.
	Transcript  record.Transcript
	Checkpoints record.Checkpoints
	Metrics     record.Metrics
	// Inline says what was hashed in the run, Reads what was read of each sample: nil where the plan asks for none (Plan.Inline,
	// Plan.HasReads).
	Inline *Inline
	Reads  *Reads
	// IdentityRechecked counts the opened files whose identity was compared with what was verified.
	IdentityRechecked int64
	// Complete is true when every planned step was run and the transcript is the expected one; otherwise Reason says why not.
	Complete bool
	Reason   string
	// Started and Finished are the host's wall clock, around everything that Run did.
	Started, Finished time.Time
	// Clock is the host's wall clock at the moment that the offsets of the step times count from; zero when no step was tried.
	Clock time.Time
}

// ErrTranscript is wrapped by the error of a run that read other samples than its plan names: it is no result.
var ErrTranscript = errors.New("transcript differs from the expected one")

// grace is how long a run that ended early waits for reads and writes that hang in a store.
const grace = 500 * time.Millisecond

// run is the state of one run.
type run struct {
	o   Options
	now func() time.Time
	p   *Plan
	src *loader.Source
	// world is never nil. first and count are the accelerators of this process.
	world        *cluster.World
	first, count int
	group        *cluster.Local
	steps        *countingFile
	rec          *stats.Recorder
	looks        epochLooks // of a run on several processes
	ckpt         *checkpoint.Writer

	base    time.Time // offsets of all step times count from here
	chains  []*Chain
	loaders []loader.Loader
	saves   []save
	// evaluating is nil without evaluation.
	evaluating *evaluating
	// inline is nil where nothing is hashed in the run.
	inline *inline

	// Written by the first accelerator of the process between two barriers, and order read by all after the second.
	order       *sampler.EpochOrder
	deviceStart int64
	deviceErr   error
	looking     looking

	// lanes are what Options.Live shows, nil where nobody looks.
	lanes         []lane
	epochBegan    atomic.Pointer[epochBegan]
	evaluatingNow atomic.Bool
	ended         atomic.Int64 // when all accelerators had ended, as an offset; 0 before

	samples, bytes atomic.Int64
	rechecked      int64        // by other processes; in process 0
	at             atomic.Int64 // epoch << 40 | step, of the first accelerator of the process
	lastProgress   time.Duration
}

// Run carries a plan out. When it cannot be finished, because an accelerator failed or ctx was cancelled, it stops all
// accelerators and returns within a second both the error and what is there so far, marked incomplete. A result whose transcript is
// not the expected one is marked incomplete too, with an error that wraps ErrTranscript.
//
// Of several processes (Options.World) all return an error if one does. Process 0 has the result of all; the others know when they ran,
// and whether the run is complete. Where a process failed, the result of process 0 is what its own accelerators ran.
func Run(ctx context.Context, o Options) (*Result, error) {
	if o.Plan != nil && CheckpointOnly(o.Plan.workload) {
		return runCheckpointOnly(ctx, o)
	}
	started := time.Now()
	r, err := newRun(ctx, o)
	if err != nil {
		end(o.World, err)
		return nil, err
	}
	first := r.world.Rank() == 0
	res := &Result{Started: started, Checkpoints: record.Checkpoints{Class: record.HostOnly, Fsync: o.CheckpointsDurable}}
	var expected record.Transcript
	if first && !r.p.HasReads() {
		expected, err = ExpectedTranscript(ctx, r.p, o.Dataset)
	}
	if err == nil {
		err = r.all(ctx)
	}
	r.inline.close()
	if cerr := r.closeSteps(); err == nil {
		err = cerr
	}
	if err == nil && r.p.HasReads() {
		if err = r.shareReads(ctx); err == nil {
			err = r.inline.confirm(ctx, r)
		}
	}
	if err == nil {
		err = r.gather(ctx)
	}
	if err != nil {
		end(r.world, err)
	}
	if !first {
		return r.followed(ctx, res, err)
	}
	if err == nil && r.p.HasReads() {
		expected, err = ExpectedTranscriptOf(ctx, r.p, o.Dataset, r.inline.reads)
	} else if err != nil {
		err = errors.Join(err, r.keepOwn())
	}
	res.Inline, res.Reads = r.inline.result(), r.inline.digests()
	res.Clock = r.base
	res.Transcript = r.transcript(expected)
	res.Checkpoints.Saves = r.checkpoints(started)
	res.IdentityRechecked = r.rechecked + r.src.Rechecked()
	if v := r.evaluating; v != nil {
		res.IdentityRechecked += v.src.Rechecked()
	}
	metrics, merr := r.metrics(ctx, err == nil)
	res.Metrics = metrics
	if res.Inline != nil {
		res.Inline.Cores = metrics.HashCores(res.Inline.HashCPUSeconds)
	}
	if merr == nil {
		AddCheckpointFigures(&res.Metrics, r.p, res.Checkpoints)
	} else {
		// The steps may be unreadable because the run failed, as on a full disk: its record says so, and its own error comes first.
		res.Metrics = record.NoMetrics(r.p.AUThreshold, merr.Error())
	}
	switch {
	case err != nil && interrupted(ctx):
		at := r.at.Load()
		err = fmt.Errorf("interrupted in epoch %d of %d, after step %d of %d: %w", max(at>>40, 1), r.p.Epochs, at&(1<<40-1), r.p.StepsPerEpoch,
			context.Cause(ctx))
	case err == nil && res.Transcript.Root != expected.Root:
		err = fmt.Errorf("%w: expected root %s over %d samples, found %s over %d", ErrTranscript, expected.Root, expected.Entries,
			res.Transcript.Root, res.Transcript.Entries)
	case err == nil && !r.evaluationAsExpected(&res.Transcript):
		v := res.Transcript.Evaluation
		err = fmt.Errorf("%w: evaluation: expected root %s, found %s over %d samples", ErrTranscript, v.Expected, v.Root, v.Entries)
	case err == nil:
		err = merr
	}
	res.Finished = time.Now()
	took, wall := res.Finished.Sub(started), res.Finished.Round(0).Sub(started.Round(0))
	if back := clockWentBack(took, wall); back != nil {
		res.Finished = started.Round(0).Add(took) // else the end would be before the beginning
		if err == nil {
			err = back
		}
	}
	if err != nil {
		res.Reason = err.Error()
	}
	res.Complete = err == nil
	r.agree(ctx, err)
	return res, err
}

// closeSteps writes what is left of the step times.
func (r *run) closeSteps() error {
	err := r.rec.Close()
	if v := r.evaluating; v != nil {
		if cerr := v.rec.Close(); err == nil {
			err = cerr
		}
	}
	return err
}

// ErrClock is wrapped by the error of a run in which the host's clock was set back: its times contradict each other, and it is no result.
var ErrClock = errors.New("the host's clock went back during the run")

// clockSlack is how far a host's clock may be set back without contradicting a record (record.Check).
const clockSlack = time.Second

// clockWentBack holds the wall clock of a run to its monotonic one.
func clockWentBack(took, wall time.Duration) error {
	if wall >= took-clockSlack {
		return nil
	}
	return fmt.Errorf("%w by %v: the run took %v, and the clock says %v; run again when it is set, and let a time service slew it rather than "+
		"step it", ErrClock, took-wall, took, wall)
}

// sizes is a Dataset as the transcript wants it: of each sample, what the framework gets to see.
type sizes struct {
	ds     Dataset
	format format.Format
	shared bool // a sample is a share of its file, whatever is read of it
}

func (r *reading) sizes(ds Dataset) sizes { return sizes{ds, r.format, r.shared} }

func (s sizes) SampleBytes(file int) int64 {
	if s.shared {
		return s.ds.SampleBytes(file)
	}
	return format.Selected(s.format, s.ds.SampleBytes(file))
}

func newRun(ctx context.Context, o Options) (*run, error) {
	p := o.Plan
	if p == nil || o.Dataset == nil || o.Data == nil || o.Steps == nil {
		return nil, errors.New("run: expected a plan, a data set, a store to read it from and a place for the step times")
	}
	if p.Checkpoints > 0 && o.Checkpoints == nil {
		return nil, fmt.Errorf("run: the plan writes %d checkpoints; expected a store for them", p.Checkpoints)
	}
	world, first, count, err := p.placeIn(o.World)
	if err != nil {
		return nil, err
	}
	if world.Size() > 1 && world.Rank() == 0 && (o.AllSteps == nil || p.eval != nil && o.AllEvalSteps == nil) {
		return nil, errors.New("run: expected a place for the step times of all processes")
	}
	if o.Evict == nil && !o.Uncacheable && p.workload.Benchpin.ColdCache != workload.ColdNone {
		return nil, fmt.Errorf("run: benchpin.cold_cache is %s; expected a way to evict the data set from the page cache",
			p.workload.Benchpin.ColdCache)
	}
	if o.DeviceBytes == nil {
		o.DeviceBytes = processDeviceBytes
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := enoughDescriptors(p, count); err != nil {
		return nil, err
	}
	buffers, err := loader.NewBuffers(p.BufferBytes, int(p.partOf(int64(p.Reads), count)))
	if err != nil {
		return nil, err
	}
	steps := &countingFile{StepsFile: o.Steps}
	rec, err := stats.NewRecorderOf(steps, first, count)
	if err != nil {
		return nil, err
	}
	r := &run{o: o, now: o.Now, p: p, world: world, first: first, count: count, steps: steps, rec: rec,
		chains:  make([]*Chain, p.Accelerators),
		loaders: make([]loader.Loader, 2*p.Accelerators),
	}
	if r.inline, err = r.newInline(); err != nil {
		return nil, err
	}
	r.src = r.source(o.Dataset, false, buffers)
	for i := range r.chains {
		r.chains[i] = NewChain(p.Schedule(), i)
	}
	if r.evaluating, err = r.newEvaluating(buffers); err != nil {
		return nil, err
	}
	if p.Checkpoints > 0 {
		r.ckpt = checkpoint.NewWriter(p.model, o.Checkpoints)
		r.saves = make([]save, p.Checkpoints)
		for i := range r.saves {
			r.saves[i].ranks = make([]checkpoint.RankSave, p.Accelerators)
		}
	}
	if r.group, err = groupOf(ctx, world, count); err != nil {
		r.rec.Close()
		return nil, err
	}
	return r, nil
}

// spareDescriptors are left for everything that is not a file of the data set.
const spareDescriptors = 64

// enoughDescriptors refuses a run that would fail in the middle for want of file descriptors: each read under way holds one, and so does
// each file that a worker keeps open.
func enoughDescriptors(p *Plan, accelerators int) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return nil // unknown; the store says so if there are too few
	}
	open := p.partOf(max(p.open, int64(p.Reads)), accelerators)
	if need := uint64(open + spareDescriptors); l.Cur < need {
		return fmt.Errorf("run: %s with %s each hold up to %s open: expected a limit of at least %d open files, found %d; raise it (ulimit -n) "+
			"or lower reader.read_threads", counted(accelerators, "accelerator"), counted(p.ReadThreads, "read thread"), counted(open, "file"), need, l.Cur)
	}
	return nil
}

// all runs all accelerators to their end. It gives up waiting when the run was stopped and something hangs in a store; what
// hangs can then touch nothing that the result is made from.
func (r *run) all(ctx context.Context) error {
	// Offsets of times count from one moment: that at which all processes have met.
	if err := r.meet(ctx); err != nil {
		return err
	}
	r.base = r.now()
	r.newLanes()
	r.o.Live.show(r.counts)
	r.src.Base = r.base
	if r.evaluating != nil {
		r.evaluating.src.Base = r.base
	}
	err := r.group.Run(ctx, r.accelerator)
	r.ended.Store(int64(r.now().Sub(r.base)))
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		for _, l := range r.loaders {
			if l != nil {
				l.Close()
				l.Wait()
			}
		}
	}()
	if err == nil {
		<-idle
		return nil
	}
	hung := time.NewTimer(grace)
	defer hung.Stop()
	select {
	case <-idle:
	case <-hung.C:
	}
	return err
}
