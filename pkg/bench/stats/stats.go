// Package stats keeps the step times of a run and computes every summary figure from them.
//
// A run records its steps in steps.parquet (Recorder); Summarise reads that file and makes the figures of the record. There is no
// other way to a figure: a verifier calls the same function with the same file and the numbers of the plan, and must get the same
// bits. So times are summed as whole nanoseconds and divided once, float operations come in one fixed order and are never fused,
// and percentiles are taken from counts. Memory is bounded by the number of ranks, not of steps.
//
// # Figures and their choices
//
// Step numbers and the window are those of the epoch: of N steps, the first output.metric.exclude_start_steps and the last
// output.metric.exclude_end_steps are outside. (DLIO applies epoch-wide indices to the arrays of each block between checkpoints, so
// every block loses its own first step and the exclusion at the end rarely happens.)
//
// Window time of a rank: for each block, from the start of its first step in the window to the end of its last one, barrier
// included; checkpoints lie between blocks and do not count. (DLIO takes the block's wall time less the excluded steps' load and
// compute, which keeps the excluded steps' barrier waits, and the time before the loader exists, in the denominator.)
//
// AU is 100 x (measured compute in the window) / (window time), both summed over all ranks, and over all epochs for the run's
// figure. (DLIO averages ratios.) The compute is as measured, as in DLIO; "au_prescribed" beside it divides what the workload
// asked for instead, so that a sleep that overshoots does not count as work. AU is absent when no step is left in the window, when
// no time passed, and when the workload prescribes no compute time at all: there is then nothing to be utilised.
//
// Samples/s and bytes/s are the samples, and the bytes asked of the store, of the window's steps of all ranks, divided by the
// window's wall time: for each block, from the first start to the last end over all ranks. (DLIO counts two samples batches less than
// the block has, and adds up ranks' rates.) Bytes belong to the step that consumed them; the loader asks for them earlier.
//
// An epoch's seconds run from the first start of a block to the last end over all ranks, step checkpoints in between included.
//
// Percentiles are over all steps of all ranks, the excluded ones too, and come from a histogram: never below the exact value, and
// above it by less than 0.1%. Oversleep is measured compute less prescribed compute, 0 when negative.
//
// Measured times are known to the host only (class H), and so is what is computed from them, though anyone can compute it
// again from steps.parquet. Only what follows from the plan is class C: the threshold.
//
// A figure that could not be computed is absent with its reason. DLIO's own figures, computed exactly as DLIO does, stand under DLIO's
// names; one that DLIO could not compute, or would have as NaN, is left out.
//
// The package never measures time, never sleeps, and never changes a step.
package stats

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/benchpin/benchpin/pkg/record"
)

// Params are the numbers of the plan that the figures depend on.
type Params struct {
	// Accelerators, Epochs, StepsPerEpoch and BatchSize are those of the plan; StepsPerEpoch is the number run in each epoch.
	Accelerators  int
	Epochs        int
	StepsPerEpoch int64
	BatchSize     int
	// ExcludeStart and ExcludeEnd are output.metric.exclude_start_steps and exclude_end_steps.
	ExcludeStart, ExcludeEnd int64
	// AUThreshold is the threshold in percent.
	AUThreshold float64
	// RecordBytes is DLIO's record_length_bytes as configured, which DLIO multiplies rates with to get its MB/s.
	RecordBytes float64
	// Evaluation: the steps are those of evaluation passes, each of which counts as an epoch. DLIO computes its rate otherwise for them
	// and names the figures so.
	Evaluation bool
	// Readers is how many goroutines read for one accelerator: together they cannot work longer than that many times the epoch. 0 where
	// nothing holds them to a number.
	Readers int
	// LeastBytes is what a complete run asks for at least, 0 where that is not known.
	LeastBytes int64
	// Partial accepts a run that ended early: rows may be missing from its end, and no threshold is judged.
	Partial bool
}

func (p Params) check() error {
	switch {
	case p.Accelerators < 1, p.Epochs < 1, p.StepsPerEpoch < 1, p.BatchSize < 1:
		return fmt.Errorf("steps: %d accelerators, %d epochs, %d steps, batch %d: expected at least 1 of each", p.Accelerators,
			p.Epochs, p.StepsPerEpoch, p.BatchSize)
	case p.ExcludeStart < 0 || p.ExcludeEnd < 0:
		return fmt.Errorf("steps: exclude_start_steps %d, exclude_end_steps %d: expected none below 0", p.ExcludeStart, p.ExcludeEnd)
	case math.IsNaN(p.AUThreshold) || math.IsInf(p.AUThreshold, 0) || math.IsNaN(p.RecordBytes) || math.IsInf(p.RecordBytes, 0):
		return fmt.Errorf("steps: threshold %v, record length %v: expected numbers", p.AUThreshold, p.RecordBytes)
	}
	return nil
}

// inWindow says whether step number s, counted from 1, is in the epoch's window.
func (p Params) inWindow(s int64) bool {
	return s > p.ExcludeStart && s <= p.StepsPerEpoch-p.ExcludeEnd
}

// Summarise computes the figures of a run from its steps. It is the one way to them: the run and its verifiers call it alike. It fails
// with ErrFormat for a damaged file, ErrImpossible for rows that no run can have made and ErrPlan for rows that do not fit the
// plan's numbers, and with ctx's error when cancelled.
func Summarise(ctx context.Context, r *Reader, p Params) (record.Metrics, error) {
	if err := p.check(); err != nil {
		return record.Metrics{}, err
	}
	s := newSummary(p, r.Waits())
	for _, d := range r.Devices() {
		if d.Epoch > p.Epochs {
			return record.Metrics{}, fmt.Errorf("%w: device bytes of epoch %d of %d", ErrPlan, d.Epoch, p.Epochs)
		}
	}
	if !p.Partial {
		if want := float64(p.Epochs) * float64(p.StepsPerEpoch) * float64(p.Accelerators); float64(r.Rows()) != want {
			return record.Metrics{}, fmt.Errorf("%w: %d rows, expected %d epochs x %d steps x %d accelerators = %.0f", ErrPlan, r.Rows(),
				p.Epochs, p.StepsPerEpoch, p.Accelerators, want)
		}
	}
	n := 0
	err := r.Each(func(st *Step) error {
		if n++; n%chunkRows == 0 && ctx.Err() != nil {
			return fmt.Errorf("steps: stopped at row %d: %w", n, context.Cause(ctx))
		}
		return s.add(st)
	})
	if err != nil {
		return record.Metrics{}, err
	}
	return s.metrics(r.Devices())
}

// SummariseFile opens a file of steps of the given size in bytes and summarises it.
func SummariseFile(ctx context.Context, f io.ReaderAt, size int64, p Params) (record.Metrics, error) {
	r, err := Open(f, size)
	if err != nil {
		return record.Metrics{}, err
	}
	defer r.Close()
	return Summarise(ctx, r, p)
}
