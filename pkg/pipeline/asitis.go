package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/store"
)

// asItIs goes the whole way with a data set that nobody generates: pin, plan, verify, run, attest, archive, and verify the archive again.
// Nothing is ever written into its folder, or removed from it.
func (o *Options) asItIs(ctx context.Context, l Layout, out *Outcome) (*Outcome, error) {
	if bench.CheckpointOnly(o.Workload.Workload) {
		return out, unfit(errors.New("the workload reads no data, and a data folder was given (--data); leave one of the two out"))
	}
	_, checkpoints := o.places(l)
	if err := placed(o.Workload.Workload, o.Data, false); err != nil {
		return out, err
	}
	if err := l.apartFrom(o.Data); err != nil {
		return out, err
	}
	unlock := func() {}
	defer func() { unlock() }()
	err := o.first(ctx, func() error {
		locked, err := o.prepare(l, out)
		if err != nil {
			return err
		}
		unlock = locked
		return o.pin(ctx, l)
	})
	if err != nil {
		return out, err
	}
	if err := o.sees(ctx, l.Manifest()); err != nil {
		return out, err
	}
	plan, resolved, err := PlanOn(ctx, o.Workload, l.Manifest())
	if err := agreed(ctx, o.World, err); err != nil {
		return out, err
	}
	o.Workload = resolved
	err = o.first(ctx, func() error {
		if o.OverwriteCheckpoints {
			return nil
		}
		return ownCheckpoints(ctx, plan, checkpoints, false)
	})
	if err != nil {
		return out, err
	}
	o.stage("plan     %s, %s x %s, %s in %s; expected %.1f s", counted(plan.Accelerators, "accelerator"), counted(plan.Epochs, "epoch"),
		counted(plan.StepsPerEpoch, "step"), gigabytes(int64(plan.BytesPerEpoch)), counted(plan.Files, "file"), plan.ExpectedSeconds)
	missed, err := o.runAndArchive(ctx, l, o.Data, out)
	if err != nil {
		return out, errors.Join(missed, err)
	}
	return out, missed
}

// pin pins the data set that is taken as it is.
func (o *Options) pin(ctx context.Context, l Layout) error {
	h, err := Pin(ctx, PinOptions{Workload: o.Workload.Workload, Data: o.Data, Manifest: l.Manifest(), Workers: o.Workers, Exclude: o.Exclude, Layout: o.Layout,
		Notify: o.Notify})
	if errors.Is(err, ErrPinned) {
		return fmt.Errorf("%w, or give --dir another folder", err)
	} else if err != nil {
		return err
	}
	if h.Recipe != nil {
		return fmt.Errorf("%s is the manifest of a generated data set; give --dir another folder, or leave --data out", l.Manifest())
	}
	o.stage("pinned   %s, %s, root %s", counted(h.Count, "file"), gigabytes(h.Bytes), h.Root)
	return nil
}

// prepare makes the pipeline's folder, locks it, and makes a key pair in it where no key was given.
func (o *Options) prepare(l Layout, out *Outcome) (unlock func(), err error) {
	if err := os.MkdirAll(o.Dir, 0o777); err != nil {
		return nil, fmt.Errorf("make the pipeline's folder: %w", err)
	}
	if unlock, err = store.Lock(o.Dir); err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	if o.Key != nil {
		return unlock, nil
	}
	key, made, err := ownKey(l)
	if err != nil {
		unlock()
		return nil, err
	}
	o.Key = key
	out.PublicKey = l.PublicKey()
	origin := "made here"
	if !made {
		origin = "found here, made by an earlier run"
	}
	o.stage("key      %s, %s: it proves only that nothing changed since, not who ran this", out.PublicKey, origin)
	return unlock, nil
}

// runAndArchive runs on a data set that is there, and makes the archive of the result. missed is the error about thresholds, which does not
// keep a result from its archive.
func (o *Options) runAndArchive(ctx context.Context, l Layout, data string, out *Outcome) (missed, err error) {
	err = o.first(ctx, func() error {
		if !o.Certify || bench.CheckpointOnly(o.Workload.Workload) {
			return nil
		}
		c, err := Certify(ctx, CertifyOptions{Workload: o.Workload.Workload, Data: data, Manifest: l.Manifest(), Workers: o.Workers, Out: l.Certificate(), Notify: o.Notify})
		if err != nil {
			return asVerification(err)
		}
		o.stage("found    %s", c.Sentence())
		o.certificate = l.Certificate()
		return nil
	})
	if err != nil {
		return nil, err
	}
	_, checkpoints := o.places(l)
	id := NewID(time.Now())
	out.Run = l.Run(id)
	rec, missed := Run(ctx, RunOptions{Workload: o.Workload, Data: data, Manifest: l.Manifest(), Checkpoints: checkpoints,
		OverwriteCheckpoints: o.OverwriteCheckpoints, Out: out.Run, ID: id, Journal: o.Journal, Preregistered: o.Preregistered, NotBefore: o.NotBefore, Stamp: o.Stamp, Workers: o.Workers, SampleSeed: o.SampleSeed, Redact: o.Redact, Tool: o.Tool,
		World: o.World, Notify: o.Notify})
	out.Record = rec
	if missed != nil && !errors.Is(missed, ErrThreshold) {
		return nil, missed
	}
	return missed, o.first(ctx, func() error { return o.archive(ctx, l, out) })
}
