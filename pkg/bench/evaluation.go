package bench

import (
	"context"
	"fmt"

	"github.com/benchpin/benchpin/pkg/bench/loader"
	"github.com/benchpin/benchpin/pkg/bench/sampler"
	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/live"
	"github.com/benchpin/benchpin/pkg/record"
)

// evaluation is what the passes over the files for evaluation are: after a training epoch, all accelerators read them once, without
// meeting after each step.
type evaluation struct {
	order *sampler.Order
	batch int
	steps int64
	// after is the first epoch that a pass follows, between the number of epochs from one to the next.
	after, between int
	epochs         []int // that passes follow
	compute        *times
}

// passes are the epochs, of so many, after which there is an evaluation.
func passes(epochs, after, between int) []int {
	var p []int
	for e := after; e <= epochs; e += between {
		p = append(p, e)
	}
	return p
}

// pass is the number of the pass that follows an epoch, from 1; 0 if none does.
func (v *evaluation) pass(epoch int) int {
	if v == nil || epoch < v.after || (epoch-v.after)%v.between != 0 {
		return 0
	}
	return (epoch-v.after)/v.between + 1
}

// planEvaluation resolves the passes against the part of the data set that they read.
func (p *Plan) planEvaluation(ds Dataset) error {
	w := p.workload
	if !w.Workflow.Evaluation {
		return nil
	}
	b, r, f, n := w.Reader.BatchSizeEval, p.Accelerators, w.Dataset.NumFilesEval, w.Dataset.NumSamplesPerFile
	v := &evaluation{batch: b, after: w.Evaluation.EvalAfterEpoch, between: w.Evaluation.EpochsBetweenEvals,
		compute: newTimes(evaluationDomain, w.Evaluation.EvalTime, w.Train)}
	if v.after < 1 || v.between < 1 || b < 1 {
		return fmt.Errorf("%w: evaluation.eval_after_epoch is %d, evaluation.epochs_between_evals %d, reader.batch_size_eval %d: expected at least 1 of "+
			"each", ErrImpossible, v.after, v.between, b)
	}
	v.epochs = passes(p.Epochs, v.after, v.between)
	if len(v.epochs) == 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("no evaluation: the first one would follow epoch %d of %d", v.after, p.Epochs))
		return nil
	}
	if f < 1 {
		return fmt.Errorf("%w: workflow.evaluation is true and dataset.num_files_eval is %d; give files for evaluation, or set workflow.evaluation=false",
			ErrImpossible, f)
	}
	have := 0
	eval := evaluationOf(ds)
	if eval != nil {
		have = eval.Files()
	}
	if have < f {
		return fmt.Errorf("%w: dataset.num_files_eval is %d, but the data set has %s for evaluation; generate more or lower it", ErrImpossible, f,
			counted(have, "file"))
	}
	if total, step := int64(f)*int64(n), int64(b)*int64(r); total < step {
		return fmt.Errorf("%w: 0 steps of evaluation: %s x %s < batch %d x %s = %s a step: use more files (dataset.num_files_eval), fewer "+
			"accelerators, or a smaller batch (reader.batch_size_eval)", ErrImpossible, counted(f, "file"), counted(n, "sample"), b,
			counted(r, "accelerator"), counted(step, "sample"))
	}
	c := p.order.Config()
	c.Files, c.BatchSize = int64(f), b
	if c.FileShuffle && c.Mode == sampler.Numpy {
		c.After = p.order.Files() // the generator shuffles the training files first
	}
	order, err := sampler.New(c)
	if err != nil {
		return fmt.Errorf("%w: evaluation: %w", ErrImpossible, err)
	}
	v.order, v.steps = order, order.Steps()
	bytes, err := p.reading.bytes(share{ds: eval, order: order, batch: b, steps: v.steps, epochs: v.epochs})
	if err != nil {
		return err
	}
	perPass := v.steps * int64(b) * int64(r)
	p.Evaluation = &record.PlanEvaluation{
		AfterEpoch: v.after, EpochsBetween: v.between, Passes: len(v.epochs), Files: record.Int(f), Samples: record.Int(int64(f) * int64(n)),
		BatchSize: b, Steps: record.Int(v.steps), SamplesPerPass: record.Int(perPass), SamplesDropped: record.Int(int64(f)*int64(n) - perPass),
		BytesTotal: record.Int(bytes), ComputeSeconds: w.Evaluation.EvalTime.Mean(),
	}
	p.eval = v
	if d := p.Evaluation.SamplesDropped; d > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%d of %s for evaluation left out of a pass, because they fill no step of batch %d x %s",
			d, counted(p.Evaluation.Samples, "sample"), b, counted(r, "accelerator")))
	}
	p.ExpectedSeconds += float64(float64(len(v.epochs))*float64(v.steps)) * p.Evaluation.ComputeSeconds
	return nil
}

// EvaluationSchedule is what the transcript of the evaluation is a transcript of; false if the plan has none.
func (p *Plan) EvaluationSchedule() (Schedule, bool) {
	if p.eval == nil {
		return Schedule{}, false
	}
	return Schedule{Config: p.eval.order.Config(), Epochs: p.Epochs, StepsPerEpoch: p.eval.steps, Idle: p.reading.idle(), NotBefore: p.notBefore, Evaluation: true,
		AfterEpoch: p.eval.after, EpochsBetween: p.eval.between, Reads: p.Inline()}, true
}

// evaluating is the state of a run's evaluation.
type evaluating struct {
	src    *loader.Source
	steps  *countingFile
	rec    *stats.Recorder
	looks  epochLooks // of a run on several processes
	chains []*Chain
	first  int // the rank of rows[0]
	// rows are the steps of the pass of each rank of the process, start and end when it began and ended them. They are recorded when all are done,
	// because ranks that do not meet may be any number of steps apart.
	rows       [][]stats.Step
	start, end []int64
	order      *sampler.EpochOrder
}

// newEvaluating prepares the evaluation of a run.
func (r *run) newEvaluating(buffers *loader.Buffers) (*evaluating, error) {
	p := r.p
	if p.eval == nil {
		return nil, nil
	}
	ds := evaluationOf(r.o.Dataset)
	if ds == nil || r.o.EvalSteps == nil {
		return nil, fmt.Errorf("run: the plan has %d evaluations; expected files for them and a place for their step times", p.Evaluation.Passes)
	}
	v := &evaluating{src: r.source(ds, true, buffers), steps: &countingFile{StepsFile: r.o.EvalSteps},
		chains: make([]*Chain, p.Accelerators), first: r.first, rows: make([][]stats.Step, r.count), start: make([]int64, r.count),
		end: make([]int64, r.count)}
	rec, err := stats.NewRecorderOf(v.steps, r.first, r.count)
	if err != nil {
		return nil, err
	}
	v.rec = rec
	schedule, _ := p.EvaluationSchedule()
	for i := range v.chains {
		v.chains[i] = NewChain(schedule, i)
	}
	for i := range v.rows {
		v.rows[i] = make([]stats.Step, 0, p.eval.steps)
	}
	return v, nil
}

// evaluate runs the pass that follows an epoch, if one does. Accelerators meet before it and after it, and not in between, as in DLIO.
func (a *accelerator) evaluate(ctx context.Context, epoch int) error {
	pass := a.p.eval.pass(epoch)
	if pass == 0 {
		return nil
	}
	v, at := a.evaluating, a.rank-a.first
	if a.leads() {
		order, err := a.p.eval.order.Epoch(epoch)
		if err != nil {
			return err
		}
		v.order = order
		if err := a.lookBefore(ctx, nil); err != nil {
			return err
		}
		a.openDevice()
		a.evaluatingNow.Store(true)
		defer a.evaluatingNow.Store(false)
	}
	if err := a.m.Barrier(ctx); err != nil {
		return err
	}
	start := a.now()
	a.lane.enter(live.Load, a.since(start))
	v.start[at] = a.since(start)
	rows := v.rows[at][:0]
	a.evalLoad.Start(epoch, v.order)
	for s := int64(1); s <= a.p.eval.steps; s++ {
		batch, err := a.evalLoad.Next(ctx)
		if err != nil {
			return fmt.Errorf("evaluation: %w", err)
		}
		loaded := a.now()
		a.lane.enter(live.Compute, a.since(loaded))
		prescribed := a.p.eval.compute.at(epoch, a.rank, s-1)
		row := stats.Step{Step: s, Start: a.since(start), Load: int64(loaded.Sub(start)), Prescribed: int64(prescribed),
			Open: int64(batch.Open), Read: int64(batch.Read), Decode: int64(batch.Decode),
			Samples: int64(len(batch.Samples)), Preprocess: int64(batch.Preprocess)}
		a.waited(&row, batch)
		if row.Bytes, err = a.enter(v.chains[a.rank], true, epoch, s, batch); err != nil {
			return err
		}
		if err := a.sleep(ctx, loaded.Add(prescribed)); err != nil {
			return err
		}
		computed := a.now()
		if a.ledger != nil {
			a.lane.enter(live.Hash, a.since(computed))
		}
		end, err := a.hashed(ctx, computed)
		if err != nil {
			return err
		}
		a.lane.enter(live.Load, a.since(end))
		row.Compute, row.Hash, row.Proc = int64(computed.Sub(loaded)), int64(end.Sub(computed)), int64(end.Sub(start))
		a.lane.step(&row, false)
		rows = append(rows, row)
		start = end
	}
	v.rows[at], v.end[at] = rows, a.since(start)
	a.lane.enter(live.Barrier, a.since(start))
	defer a.phase(live.Idle)
	if err := a.m.Barrier(ctx); err != nil || !a.leads() {
		return err
	}
	if err := a.deviceSince(ctx, v.rec, &v.looks, pass); err != nil {
		return err
	}
	return v.record(pass)
}

// record writes the rows of a pass, step by step, when all ranks of the process have ended it.
func (v *evaluating) record(pass int) error {
	for r := range v.rows {
		if err := v.rec.Rank(v.first+r).StartBlock(pass, v.start[r]); err != nil {
			return err
		}
	}
	for s := range v.rows[0] {
		for r := range v.rows {
			if err := v.rec.Rank(v.first + r).Add(v.rows[r][s]); err != nil {
				return err
			}
		}
	}
	for r := range v.rows {
		if err := v.rec.Rank(v.first + r).EndBlock(v.end[r]); err != nil {
			return err
		}
	}
	return nil
}
