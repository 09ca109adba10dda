package pipeline

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/environment"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// The files of a run folder.
const (
	RecordName = "record.json"
	StepsName  = "steps.parquet"
	// EvalStepsName holds the step times of the passes over the files for evaluation; it is there when there are some.
	EvalStepsName = "eval.parquet"
)

// RunOptions says what to run, on what, and where the result goes.
type RunOptions struct {
	Workload *workload.Resolved
	// Data is the folder of the data set, or the address of its bucket, s3://BUCKET[/PREFIX]; Manifest is the path of its manifest's header.
	Data, Manifest string
	// Checkpoints is the folder, or the address of the bucket, that checkpoints are written to; "" is the workload's.
	Checkpoints string
	// OverwriteCheckpoints lets checkpoints replace files that are not those of this very workload.
	OverwriteCheckpoints bool
	// Out is the run folder. It is made, and must not hold a record yet.
	Out string
	// ID names the run; "" makes a new one.
	ID string
	// Journal is the file of the journal that the attempt is entered into; "" keeps none.
	Journal string
	// Workers is how many files are hashed at once; below 1: twice the number of cores.
	Workers int
	// SampleSeed is what benchpin.verify: sample draws files by, a 64-bit number in decimal digits; "" draws one.
	SampleSeed string
	// ObserverEffect runs the timed part again, in turns without hashing and with it, and records what hashing makes of AU. It needs
	// benchpin.verify: inline.
	ObserverEffect bool
	// Preregistered is the file of the pre-registration that the run must keep to (Preregister); "" for none.
	Preregistered string
	// NotBefore is a public value that the order of samples is drawn with; nil for none.
	NotBefore *record.NotBefore
	// Stamp, if not nil, has a third party see the transcript's roots when the run is over: it returns its answer, which becomes a file of the
	// run (record.TimestampName).
	Stamp func(ctx context.Context, message []byte) ([]byte, error)
	// Redact leaves host names and serial numbers out of the record.
	Redact bool
	// Tool identifies this program.
	Tool record.Tool
	// DLIO is how the run was asked for, for the configuration that stands beside the result.
	DLIO DLIOConfig
	// World are the processes that carry the run out together, this one among them (docs/mpi.md); nil: it alone does. All are given the
	// same options; process 0 settles ID, Out and SampleSeed, writes the run folder, and alone is told what goes on.
	World *cluster.World
	// ReplayOf is the result that the run repeats; nil for none. The workload then is that of a record, and says all about the data.
	ReplayOf *record.ReplayOf
	Notify
}

// NewID names a run: the time in UTC, so that names sort by time, and random digits, so that no two are equal.
func NewID(now time.Time) string {
	var random [3]byte
	rand.Read(random[:]) // never fails (crypto/rand)
	return now.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(random[:])
}

// Run verifies the data set as the workload asks (benchpin.verify), runs the workload on it, and writes the run folder: the record
// and the raw step times. The record is returned, and written, whenever the run began: with the error of a run that failed or was
// interrupted it is marked incomplete. The error wraps *manifest.MismatchError where the data set is not what its manifest says,
// *bench.IdentityError and ErrVerification where a file was changed or replaced meanwhile, and ErrThreshold where the run is complete and its figures are below the workload's thresholds.
//
// A manifest of an address s3://BUCKET/[PREFIX/]NAME.json is copied here first.
//
// Of several processes (RunOptions.World) process 0 alone returns the record. All return an error if one does, with the text of those
// where it arose, and the class of it there.
func Run(ctx context.Context, o RunOptions) (rec *record.Record, err error) {
	if several(o.World) {
		var free context.CancelFunc
		ctx, free = o.World.Context(ctx)
		defer free()
		defer func() { failAlone(o.World, err) }()
	}
	if err := o.together(ctx); err != nil {
		return nil, err
	}
	if !bench.CheckpointOnly(o.Workload.Workload) {
		held, free, err := heldManifest(ctx, o.Workload.Workload, o.Manifest)
		if err != nil {
			return nil, err
		}
		defer free()
		o.Manifest = held
	}
	unmake := unmade(o.Out)
	defer func() {
		if rec == nil && leads(o.World) {
			unmake() // the run did not begin
		}
	}()
	r, err := newRun(ctx, &o)
	if r != nil {
		defer r.close()
	}
	if err := agreed(ctx, o.World, err); err != nil {
		return nil, err
	}
	if err := r.sameData(ctx); err != nil {
		return nil, err
	}
	if err := r.sameFolders(ctx); err != nil {
		return nil, err
	}
	if err := agreed(ctx, o.World, r.prepare(ctx)); err != nil {
		return nil, err
	}
	defer func() {
		if jerr := r.end(rec, err); jerr != nil {
			err = errors.Join(err, jerr)
		}
	}()
	if !bench.CheckpointOnly(r.w) {
		switch r.w.Benchpin.Verify {
		case workload.VerifyBefore:
			err = r.verify(ctx)
		case workload.VerifyAfter, workload.VerifyInline:
			err = r.look(ctx)
		case workload.VerifySample:
			// Files outside of the sample are those that were looked at when it was drawn.
			if err = r.look(ctx); err == nil {
				err = r.verify(ctx)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return r.run(ctx)
}

// prepare does what is done once before a run: it keeps to what was registered, replaces no strange checkpoints, and enters the run into
// the journal.
func (r *run) prepare(ctx context.Context) error {
	if !leads(r.World) {
		return nil
	}
	if !bench.CheckpointOnly(r.w) && !r.OverwriteCheckpoints {
		if err := r.ownCheckpoints(ctx, r.plan); err != nil {
			return err
		}
	}
	if err := r.checkRegistered(); err != nil {
		return err
	}
	return r.begin()
}

// run is the state of one run.
type run struct {
	*RunOptions
	w        *workload.Workload
	manifest *manifest.Manifest
	files    *pinnedFiles
	plan     *bench.Plan
	data     placeStore
	// known are the identities of all files before the run, by the recipe's numbers: when they were verified, or when they were looked
	// at because they will be verified after it. Nil when neither was done.
	known    []store.Info
	verified record.Verification
	// registered is what the run was registered with; nil where it was not.
	registered *registered
	// stamped is true when a third party saw the transcript's roots.
	stamped bool
	// attempt is what the journal has of the run; nil without a journal.
	attempt *attempt
	// dropping is told how far dropping the data set from the page cache has come; nil where nobody looks at the run.
	dropping func(done, all int64)
	// used are the buckets of the timed part.
	used []usedBucket
	// cpuInfo and memInfo are what DLIO's files tell of the host.
	cpuInfo, memInfo map[string]string
}

func newRun(ctx context.Context, o *RunOptions) (*run, error) {
	r := &run{RunOptions: o, w: o.Workload.Workload}
	if bench.CheckpointOnly(r.w) && o.Stamp != nil {
		return nil, fmt.Errorf("%w: a run that reads no data has no transcript that could be timestamped", bench.ErrUnsupported)
	}
	if o.ID == "" {
		o.ID = NewID(time.Now())
	}
	if o.Checkpoints == "" {
		o.Checkpoints = checkpointFolder(r.w)
	}
	if err := r.placed(); err != nil {
		return nil, err
	}
	if !bench.CheckpointOnly(r.w) {
		if err := apartForRun(r.w, o.Data, o.Out, o.Checkpoints, o.Manifest); err != nil {
			return nil, err
		}
		if err := apart(o.Data, place{o.Journal, "journal"}); err != nil {
			return nil, err
		}
	}
	if bench.CheckpointOnly(r.w) && !o.OverwriteCheckpoints && leads(o.World) {
		plan, err := newPlan(ctx, r.w, nil, valueOf(o.NotBefore))
		if err != nil {
			return nil, err
		}
		if err := r.ownCheckpoints(ctx, plan); err != nil {
			return nil, err
		}
	}
	if leads(o.World) {
		if err := freshFolder(o.Out); err != nil {
			return nil, err
		}
	}
	r.verified = record.Verification{Class: record.HostOnly, Mode: r.w.Benchpin.Verify}
	if bench.CheckpointOnly(r.w) {
		return r, r.withoutData()
	}
	m, err := manifest.Open(o.Manifest)
	if err != nil {
		return nil, fmt.Errorf("%w; \"benchpin data generate\" makes a data set and its manifest", err)
	}
	r.manifest = m
	if o.ReplayOf == nil {
		if o.Workload, err = ForData(ctx, o.Workload, m); err != nil {
			r.close()
			return nil, fmt.Errorf("%s: %w", o.Manifest, err)
		}
	}
	r.w = o.Workload.Workload
	if r.files, err = openFiles(ctx, m, r.w); err != nil {
		r.close()
		return nil, fmt.Errorf("%s: %w", o.Manifest, err)
	}
	if err := errors.Join(r.files.suits(r.w), r.files.available()); err != nil {
		r.close()
		return nil, fmt.Errorf("%s: %w", o.Manifest, err)
	}
	if r.plan, err = newPlan(ctx, r.w, r.files.dataset(), valueOf(o.NotBefore)); err != nil {
		r.close()
		return nil, err
	}
	if err := r.checkEffect(); err != nil {
		r.close()
		return nil, err
	}
	if err := r.dealt(); err != nil {
		r.close()
		return nil, err
	}
	if r.data, err = r.at(ctx, o.Data, store.FolderOptions{}); err != nil {
		r.close()
		return nil, err
	}
	if err := r.able(); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *run) close() {
	if r.manifest != nil {
		r.manifest.Close()
	}
	if r.data != nil {
		r.data.Close()
	}
}

// timesNames are the files of step times of the run: those of training, then those of evaluation.
func (r *run) timesNames() []string {
	switch {
	case bench.CheckpointOnly(r.w):
		return nil
	case r.plan.Evaluation != nil:
		return []string{StepsName, EvalStepsName}
	}
	return []string{StepsName}
}

// run carries out the plan and writes the record.
func (r *run) run(ctx context.Context) (*record.Record, error) {
	saves, err := r.at(ctx, r.Checkpoints, store.FolderOptions{Sync: r.w.Checkpoint.Fsync})
	if err != nil {
		return nil, err
	}
	defer saves.Close()
	r.uses(record.RoleCheckpoints, saves)
	only := bench.CheckpointOnly(r.w)
	asked := environment.Request{Results: r.Out, Redact: r.Redact}
	if !only && !IsBucket(r.Data) {
		asked.Data = r.Data
	}
	if (r.plan.Checkpoints > 0 || only) && !IsBucket(r.Checkpoints) {
		asked.Checkpoints = r.Checkpoints
	}
	env := environment.Collect(ctx, asked)
	processes, err := r.clusterOf(ctx, env)
	if err != nil {
		return nil, err
	}
	r.cpuInfo, r.memInfo = procTable("cpuinfo"), procTable("meminfo")
	options := bench.Options{Plan: r.plan, Checkpoints: saves, CheckpointsDurable: r.w.Checkpoint.Fsync, Saved: saves, World: r.World}
	if several(r.World) {
		options.Host = hostName(r.World, r.World.Node(), r.Redact)
	}
	times := &timesFiles{run: r}
	defer times.close()
	if only {
		if leads(r.World) {
			err = r.roomForCheckpoints(saves)
		}
		if err := agreed(ctx, r.World, err); err != nil {
			return nil, err
		}
		r.stage("run      %s, %s of %s to write and %d to read", counted(r.plan.Accelerators, "accelerator"), counted(r.plan.Checkpoints, "checkpoint"),
			gigabytes(int64(r.plan.CheckpointBytes)), r.plan.CheckpointReads)
		options.Progress = func(p bench.Progress) { r.progress("checkpoints", p.Step, p.Steps, p.Bytes, p.BytesTotal) }
	} else {
		err := times.open(&options)
		if err != nil {
			return nil, err
		}
		data, err := r.reading(ctx)
		if err != nil {
			return nil, err
		}
		defer data.Close()
		r.uses(record.RoleData, data)
		if r.firstOnHost() || IsBucket(r.Data) {
			if options.Storage, err = r.storageMeter(ctx, data); err != nil {
				return nil, err
			}
		}
		r.stage("run      %s x %s x %s, batch %d, %s to read", counted(r.plan.Epochs, "epoch"), counted(r.plan.StepsPerEpoch, "step"),
			counted(r.plan.Accelerators, "accelerator"), r.plan.BatchSize, gigabytes(int64(r.plan.BytesTotal)))
		options.Dataset, options.Data, options.Identity, options.Evict = r.files.dataset(), data, r.identity, r.evict
		if !r.firstOnHost() {
			options.Evict = func(context.Context) error { return nil }
		}
		options.Progress = func(p bench.Progress) {
			done := int64(p.Epoch-1)*p.Steps + p.Step
			r.progress(fmt.Sprintf("epoch %d/%d", p.Epoch, p.Epochs), done, int64(p.Epochs)*p.Steps, p.Bytes, p.BytesTotal)
		}
	}
	if !only {
		if err := r.roomForInline(env); err != nil {
			return nil, err
		}
		confirm, err := r.at(ctx, r.Data, store.FolderOptions{Uncached: true})
		if err != nil {
			return nil, err
		}
		defer confirm.Close()
		options.Confirm = confirm
	}
	r.uncached(&options)
	unfollow := r.follow(&options)
	result, effect, err := r.timed(ctx, options)
	unfollow()
	env.Buckets = r.buckets()
	if err == nil {
		err = r.clocksAgain(ctx, processes)
	}
	if err != nil && !only && !several(r.World) {
		err = r.whoseFault(ctx, err)
	}
	if r.files.recipe == nil {
		err = otherFormat(err, r.w)
	}
	if result == nil {
		return nil, err
	}
	var unstamped error
	if err == nil && leads(r.World) {
		unstamped = r.stampTranscript(ctx, &result.Transcript)
	}
	if err == nil && !only {
		if r.w.Benchpin.Verify == workload.VerifyAfter {
			err = r.verify(ctx)
		} else {
			err = agreed(ctx, r.World, r.unchanged(ctx))
		}
	}
	if err != nil && result.Complete {
		result.Complete, result.Reason = false, err.Error()
	}
	if !leads(r.World) {
		return nil, r.followed(ctx, err)
	}
	if ierr := r.inlineResult(result); ierr != nil {
		return nil, errors.Join(err, ierr)
	}
	if r.verified.Inline != nil {
		r.verified.Inline.Effect = effect
	}
	rec := r.record(result, env)
	rec.Cluster = processes
	if serr := times.sync(); serr != nil {
		return nil, errors.Join(err, serr)
	}
	if werr := r.write(rec, result); werr != nil {
		return nil, errors.Join(err, werr)
	}
	if err != nil {
		return rec, asVerification(fmt.Errorf("%w (what there is stands in %s, marked incomplete)", err, r.Out))
	}
	if !several(r.World) { // one process alone says nothing of all
		r.plainReads(ctx, rec)
	}
	return rec, told(ctx, r.World, errors.Join(unstamped, CheckThresholds(r.w, rec)))
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
