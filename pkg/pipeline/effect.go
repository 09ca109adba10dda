package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// timed carries the plan out. With ObserverEffect it does so four times, without hashing, with it, with it and without it; the second is the
// run of the record, and of the others only AU is kept.
func (r *run) timed(ctx context.Context, o bench.Options) (*bench.Result, *record.ObserverEffect, error) {
	if !r.ObserverEffect {
		result, err := bench.Run(ctx, o)
		return result, nil, err
	}
	w := *r.w
	w.Benchpin.Verify = workload.VerifyNone
	plan, err := newPlan(ctx, &w, r.files.dataset(), valueOf(r.NotBefore))
	if err != nil {
		return nil, nil, err
	}
	// Turns of the four timed parts: which of its kind it is, and whether it hashes.
	var pairs []record.EffectEpoch
	var result *bench.Result
	var first *bench.Result // of a pair
	for i, hashes := range []bool{false, true, true, false} {
		part := o
		if !hashes {
			part.Plan = plan
		}
		var spare []spareFile
		if i != 1 {
			var err error
			if spare, err = spareSteps(&part); err != nil {
				return result, nil, err
			}
			defer func() {
				for _, s := range spare {
					s.remove()
				}
			}()
		}
		r.stage("turn     %d of 4, %s", i+1, map[bool]string{true: "with hashing", false: "without hashing"}[hashes])
		got, err := bench.Run(ctx, part)
		if i == 1 {
			result = got
		}
		if err != nil {
			if got != nil && result == nil {
				result = got // what there is, with its step times
				for _, s := range spare {
					err = errors.Join(err, s.keep())
				}
			}
			if i != 1 && result != nil {
				result.Complete, result.Reason = false, err.Error()
			}
			return result, nil, fmt.Errorf("turn %d of 4 for the observer effect: %w", i+1, err)
		}
		if i%2 == 0 {
			first = got
			continue
		}
		with, without := got, first
		if !hashes {
			with, without = first, got
		}
		pairs = append(pairs, pairsOf(i/2+1, with, without)...)
	}
	effect := record.NewEffect(pairs)
	return result, &effect, nil
}

// pairsOf are the epochs of which both runs have an AU.
func pairsOf(turn int, with, without *bench.Result) []record.EffectEpoch {
	var pairs []record.EffectEpoch
	for i := range min(len(with.Metrics.Epochs), len(without.Metrics.Epochs)) {
		a, b := with.Metrics.Epochs[i].AU.Value, without.Metrics.Epochs[i].AU.Value
		if a != nil && b != nil {
			pairs = append(pairs, record.EffectEpoch{Turn: turn, Epoch: i + 1, With: *a, Without: *b})
		}
	}
	return pairs
}

// spareFile holds the step times of a turn that is not the run of the record, in place of the file of the run folder.
type spareFile struct {
	*os.File
	instead bench.StepsFile
}

// keep copies what there is to the run folder.
func (s spareFile) keep() error {
	if _, err := s.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("step times of the observer effect: %w", err)
	}
	if _, err := io.Copy(s.instead, s.File); err != nil {
		return fmt.Errorf("step times of the observer effect: %w", err)
	}
	return nil
}

func (s spareFile) remove() {
	s.Close()
	os.Remove(s.Name())
}

// spareSteps gives a run files of its own for its step times.
func spareSteps(o *bench.Options) ([]spareFile, error) {
	var files []spareFile
	for _, to := range []*bench.StepsFile{&o.Steps, &o.EvalSteps, &o.AllSteps, &o.AllEvalSteps} {
		if *to == nil {
			continue
		}
		f, err := os.CreateTemp("", "benchpin-steps-*.parquet")
		if err != nil {
			for _, s := range files {
				s.remove()
			}
			return nil, fmt.Errorf("step times of the observer effect (set TMPDIR to a folder with room): %w", err)
		}
		files = append(files, spareFile{f, *to})
		*to = f
	}
	return files, nil
}

// checkEffect refuses the observer effect of nothing.
func (r *run) checkEffect() error {
	if r.ObserverEffect && r.plan.Inline() == "" {
		return &workload.Error{Path: "benchpin.verify", Msg: fmt.Sprintf("is %s: the observer effect is that of hashing in the run", r.w.Benchpin.Verify),
			Hint: "give --verify inline, or leave --observer-effect out"}
	}
	return nil
}

// whoseFault looks, after a run ended because a file could not be read as what it should be, whether it is the file that the manifest has:
// modes that did not hash before the run would else blame the format for what is a changed data set.
func (r *run) whoseFault(ctx context.Context, err error) error {
	var bad *format.DataError
	if !errors.As(err, &bad) || hashesBefore(r.w.Benchpin.Verify) || r.w.Benchpin.Verify == workload.VerifyNone {
		return err
	}
	said, known := r.verified, r.known
	verr := r.verify(ctx)
	r.verified, r.known = said, known
	var mismatch *manifest.MismatchError
	if errors.As(verr, &mismatch) {
		return fmt.Errorf("%w; that is why a sample could not be read: %w", verr, err)
	}
	return err
}
