package pipeline

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/datagen"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// Layout is where the parts of a pipeline stand in its folder.
type Layout struct{ Dir string }

// Data is the folder of the data set.
func (l Layout) Data() string { return filepath.Join(l.Dir, "data") }

// Manifest is the header of the manifest; its entries stand beside it.
func (l Layout) Manifest() string { return filepath.Join(l.Dir, "manifest.json") }

// Run is the folder of one run.
func (l Layout) Run(id string) string { return filepath.Join(l.Dir, "runs", id) }

// Checkpoints is the folder that checkpoints are written to.
func (l Layout) Checkpoints() string { return filepath.Join(l.Dir, "checkpoints") }

// Certificate is that of the data set, where it was measured.
func (l Layout) Certificate() string { return filepath.Join(l.Dir, "certificate.json") }

// Archive is the archive of the last run.
func (l Layout) Archive() string { return filepath.Join(l.Dir, "archive") }

// PrivateKey and PublicKey are the key pair that is made when none is given.
func (l Layout) PrivateKey() string { return filepath.Join(l.Dir, "keys", "benchpin.key") }

// PublicKey is the public half of PrivateKey.
func (l Layout) PublicKey() string { return filepath.Join(l.Dir, "keys", "benchpin.pub") }

// Options says what to take the whole way.
type Options struct {
	Workload *workload.Resolved
	// Dir is the folder of the pipeline.
	Dir string
	// Journal is the file of the journal that the attempt is entered into, such as Layout.Journal; "" keeps none.
	Journal string
	// Data is a folder that is taken as it is: it is pinned, run on and left alone, and nothing is generated. "" generates a data set in Dir.
	Data string
	// Exclude is PinOptions.Exclude, and Layout PinOptions.Layout, for Data.
	Exclude []string
	Layout  *PinLayout
	// Certify measures the data set before the run (Certify), and attests the certificate with the result.
	Certify bool
	// Key signs; nil makes a key pair in the folder, which proves only that nothing changed since.
	Key attest.Signer
	// Workers is how many files are generated or hashed at once; below 1: the packages' own choice.
	Workers int
	// SampleSeed and Preregistered are those of RunOptions.
	SampleSeed    string
	Preregistered string
	// NotBefore and Stamp are those of RunOptions; nothing is stamped of a run that reads no data.
	NotBefore *record.NotBefore
	Stamp     func(ctx context.Context, message []byte) ([]byte, error)
	// OverwriteCheckpoints is RunOptions.OverwriteCheckpoints.
	OverwriteCheckpoints bool
	Redact               bool
	Tool                 record.Tool
	// World are the processes that go the way together, this one among them; nil: it alone goes it. They generate and run together; process 0
	// alone signs and archives, returns an outcome, and is told what goes on.
	World *cluster.World
	Notify

	certificate string // the file of the certificate, "" without one
}

// Outcome is where the way led.
type Outcome struct {
	// Record is the result; nil when the run did not begin.
	Record *record.Record
	// Run and Archive are the folders of the result; PublicKey the file to verify with, "" when the key was given.
	Run, Archive, PublicKey string
	// Verification is the archive as it was verified at the end; nil when it was not reached. When a check failed, there is no Archive.
	// Close it.
	Verification *attest.Verification
}

// Close frees the verified archive.
func (o *Outcome) Close() error {
	if o.Verification == nil {
		return nil
	}
	return o.Verification.Close()
}

// places are where the data set and checkpoints of a pipeline go: below its folder, or into the bucket that the workload names.
func (o *Options) places(l Layout) (data, checkpoints string) {
	data, checkpoints = cmp.Or(o.Data, l.Data()), l.Checkpoints()
	if w := o.Workload.Workload; w.Storage.StorageType == objectStore {
		data, checkpoints = cmp.Or(o.Data, DataFolder(w)), checkpointFolder(w)
	}
	return data, checkpoints
}

// Pipeline goes the whole way: plan, generate, pin, verify, run, attest, archive, and verify the archive again. A data set that is
// there already is compared with what its recipe says and kept; without dataset.keep_files it is removed at the end. The outcome
// holds what was reached, whatever the error. A run that misses its thresholds is a result like any other: it is attested and archived,
// and the error wraps ErrThreshold.
func Pipeline(ctx context.Context, o Options) (out *Outcome, err error) {
	out = &Outcome{}
	l := Layout{o.Dir}
	if several(o.World) {
		var free context.CancelFunc
		ctx, free = o.World.Context(ctx)
		defer free()
		defer func() { failAlone(o.World, err) }()
		if !leads(o.World) {
			o.Notify = Notify{}
		}
	}
	if o.Data != "" {
		return o.asItIs(ctx, l, out)
	}
	plan, err := Plan(ctx, o.Workload.Workload, "")
	if err != nil {
		return out, err
	}
	only := bench.CheckpointOnly(o.Workload.Workload)
	if only {
		o.Stamp = nil // there is no transcript; its signatures are timestamped as others are
	}
	if !only {
		// What this build cannot make is refused before there is a folder.
		recipe, err := datagen.FromWorkload(o.Workload.Workload)
		if err == nil {
			err = available(recipe)
		}
		if err != nil {
			return out, err
		}
	}
	if only {
		o.stage("plan     %s, %s of %s to write, %d to read; no data set", counted(plan.Accelerators, "accelerator"), counted(plan.Checkpoints, "checkpoint"),
			gigabytes(int64(plan.CheckpointBytes)), plan.CheckpointReads)
	} else {
		o.stage("plan     %s, %s x %s, %s in %s; expected %.1f s", counted(plan.Accelerators, "accelerator"), counted(plan.Epochs, "epoch"),
			counted(plan.StepsPerEpoch, "step"), gigabytes(int64(plan.BytesPerEpoch)), counted(plan.Files, "file"), plan.ExpectedSeconds)
	}
	data, checkpoints := o.places(l)
	if !only {
		if err := placed(o.Workload.Workload, data, false); err != nil {
			return out, err
		}
		if err := l.apartFrom(data); err != nil {
			return out, err
		}
	}
	unlock := func() {}
	defer func() { unlock() }()
	err = o.first(ctx, func() error {
		if !o.OverwriteCheckpoints {
			if err := ownCheckpoints(ctx, plan, checkpoints, false); err != nil {
				return err
			}
		}
		locked, err := o.prepare(l, out)
		if err == nil {
			unlock = locked
		}
		return err
	})
	if err != nil {
		return out, err
	}
	if !only {
		_, err = Generate(ctx, GenerateOptions{Workload: o.Workload.Workload, Data: data, Manifest: l.Manifest(), Workers: o.Workers,
			World: o.World, Tool: o.Tool, Notify: o.Notify})
		if err == nil {
			err = settle(ctx, o.Workload.Workload)
		}
		if err != nil {
			return out, err
		}
		if err := o.sees(ctx, l.Manifest()); err != nil {
			return out, err
		}
	}
	missed, err := o.runAndArchive(ctx, l, data, out)
	if err != nil {
		return out, errors.Join(missed, err)
	}
	if only || o.Workload.Workload.Dataset.KeepFiles {
		return out, missed
	}
	err = o.first(ctx, func() error {
		if err := RemoveData(ctx, o.Workload.Workload, data, l.Manifest()); err != nil {
			return err
		}
		return keepManifest(l.Manifest(), out.Run)
	})
	if err != nil {
		return out, errors.Join(missed, err)
	}
	o.stage("removed  the data set, as dataset.keep_files asks; its recipe makes it again")
	return out, missed
}
