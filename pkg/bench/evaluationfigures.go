package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/record"
)

// ErrEvaluation is wrapped by the errors of Figures that are about the step times of the evaluation.
var ErrEvaluation = errors.New("evaluation")

// StepsReader is a file of step times and its size in bytes.
type StepsReader struct {
	io.ReaderAt
	Bytes int64
}

// EvaluationParams are Params for the step times of the evaluation passes, each of which counts as an epoch. They mean nothing for a plan
// without evaluation.
func (p *Plan) EvaluationParams(partial bool) stats.Params {
	if p.eval == nil {
		return stats.Params{}
	}
	s := p.Params(partial)
	s.Epochs, s.StepsPerEpoch, s.BatchSize, s.Evaluation = len(p.eval.epochs), p.eval.steps, p.eval.batch, true
	s.LeastBytes = p.leastBytes(int64(p.Evaluation.BytesTotal))
	return s
}

// Figures computes the figures of a run's training and evaluation from its step times; eval is not looked at where the plan has no
// evaluation. It is the one way to them: the run and its verifiers call it alike. partial accepts a run that ended early. What
// checkpoints add is AddCheckpointFigures'.
func Figures(ctx context.Context, p *Plan, steps, eval StepsReader, partial bool) (record.Metrics, error) {
	m, err := stats.SummariseFile(ctx, steps, steps.Bytes, p.Params(partial))
	if err != nil || p.eval == nil {
		return m, err
	}
	if eval.ReaderAt == nil {
		return record.Metrics{}, fmt.Errorf("%w: %w: expected the step times of %d passes, found none", ErrEvaluation, stats.ErrPlan, p.Evaluation.Passes)
	}
	v, err := stats.SummariseFile(ctx, eval, eval.Bytes, p.EvaluationParams(partial))
	if err != nil {
		return record.Metrics{}, fmt.Errorf("%w: %w", ErrEvaluation, err)
	}
	for i := range v.Epochs {
		v.Epochs[i].Epoch = p.eval.epochs[v.Epochs[i].Epoch-1]
	}
	m.Evaluation = &record.EvaluationMetrics{AU: v.AU, SamplesPerSecond: v.SamplesPerSecond, BytesPerSecond: v.BytesPerSecond, Passes: v.Epochs}
	maps.Copy(m.DLIO, v.DLIO)
	for name, f := range v.Other {
		m.Other["eval_"+name] = f
	}
	return m, nil
}

// ExpectedTranscript computes the transcript that a run of the plan must have, evaluation included, without any data: see Expected.
func ExpectedTranscript(ctx context.Context, p *Plan, ds Dataset) (record.Transcript, error) {
	return ExpectedTranscriptOf(ctx, p, ds, nil)
}

func expectedTranscript(ctx context.Context, p *Plan, ds Dataset, sized func(ds Dataset, evaluation bool) SampleSizes) (record.Transcript, error) {
	if p.order == nil { // nothing is read
		return Expected(ctx, p.Schedule(), nil)
	}
	t, err := Expected(ctx, p.Schedule(), sized(ds, false))
	if err != nil || p.eval == nil {
		return t, err
	}
	eval := evaluationOf(ds)
	if eval == nil {
		return record.Transcript{}, fmt.Errorf("transcript: the plan has %d evaluations, and the data set no files for them", p.Evaluation.Passes)
	}
	schedule, _ := p.EvaluationSchedule()
	v, err := Expected(ctx, schedule, sized(eval, true))
	if err != nil {
		return record.Transcript{}, fmt.Errorf("evaluation: %w", err)
	}
	t.Evaluation = &record.EvaluationTranscript{Root: v.Root, Ranks: v.Ranks, Entries: v.Entries, Expected: v.Expected}
	return t, nil
}

// transcript is that of the run so far, beside the expected one.
func (r *run) transcript(expected record.Transcript) record.Transcript {
	t := Seal(r.chains)
	t.Expected = expected.Root
	if r.evaluating == nil {
		return t
	}
	v := Seal(r.evaluating.chains)
	t.Evaluation = &record.EvaluationTranscript{Root: v.Root, Ranks: v.Ranks, Entries: v.Entries}
	if expected.Evaluation != nil {
		t.Evaluation.Expected = expected.Evaluation.Root
	}
	return t
}

// evaluationAsExpected is false where evaluations read something else than planned.
func (r *run) evaluationAsExpected(t *record.Transcript) bool {
	return t.Evaluation == nil || t.Evaluation.Root == t.Evaluation.Expected
}

// samplesTotal and bytesTotal are those of training and evaluation together.
func (p *Plan) samplesTotal() int64 {
	n := int64(p.SamplesPerEpoch) * int64(p.Epochs)
	if v := p.Evaluation; v != nil {
		n += int64(v.SamplesPerPass) * int64(v.Passes)
	}
	return n
}

func (p *Plan) bytesTotal() int64 {
	n := int64(p.BytesTotal)
	if v := p.Evaluation; v != nil {
		n += int64(v.BytesTotal)
	}
	return n
}
