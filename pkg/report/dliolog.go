package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// dlioLog collects lines as DLIO's log has them: of the level OUTPUT, which DLIO always shows.
type dlioLog struct{ buf bytes.Buffer }

func (l *dlioLog) line(stamp, format string, args ...any) {
	fmt.Fprintf(&l.buf, "[OUTPUT] %s %s\n", stamp, fmt.Sprintf(format, args...))
}

// log writes the log of the first rank: what DLIO would have written while it ran, as far as it was run.
func (r *dlioRun) log(w io.Writer, k *dlioRank, saves []dlioSave) error {
	var l dlioLog
	rec, d, b := r.Record, &r.w.Dataset, &r.w.Reader
	started := r.clock(rec.Started)
	l.line(started, "Running DLIO [%s] with %d process(es)", strings.Join(DLIOPhases(r.w), " & "), rec.Plan.Accelerators)
	if r.w.Workflow.Train {
		l.line(started, "Max steps per epoch: %d = %d * %d / %d / %d (samples per file * num files / batch size / comm size)", rec.Plan.StepsPerEpoch,
			d.NumSamplesPerFile, d.NumFilesTrain, b.BatchSize, rec.Plan.Accelerators)
		if r.w.Workflow.Evaluation {
			l.line(started, "Steps per eval: %d = %d * %d / %d / %d (samples per file * num files / batch size eval / comm size)", r.evalSteps,
				d.NumSamplesPerFile, d.NumFilesEval, b.BatchSizeEval, rec.Plan.Accelerators)
		}
	}
	for i := range k.epochs {
		r.logEpoch(&l, &k.epochs[i], saves, i+1)
		if l.buf.Len() > 1<<16 {
			if _, err := l.buf.WriteTo(w); err != nil {
				return err
			}
		}
	}
	if len(k.epochs) == 0 {
		r.logSaves(&l, saves, 0, 0)
	}
	finished := r.clock(rec.Finished)
	if rec.Status != record.StatusComplete {
		fmt.Fprintf(&l.buf, "[ERROR] %s %s\n", finished, clean(rec.Reason))
	}
	l.line(finished, "Saved outputs")
	fmt.Fprintf(&l.buf, "[OUTPUT] %s", DLIOMetrics(rec, r.w))
	_, err := l.buf.WriteTo(w)
	return err
}

// DLIOPhases names what a workload does, as DLIO names it.
func DLIOPhases(w *workload.Workload) []string {
	var all []string
	for _, p := range []struct {
		does bool
		name string
	}{{w.Workflow.GenerateData, "Generating data"}, {w.Workflow.Train, "Training"}, {w.Workflow.Evaluation, "Evaluation"},
		{w.Workflow.Checkpoint, "Checkpointing"}} {
		if p.does {
			all = append(all, p.name)
		}
	}
	return all
}

func (r *dlioRun) logEpoch(l *dlioLog, e *dlioEpoch, saves []dlioSave, epoch int) {
	l.line(r.at(e.start()), "Starting epoch %d: %d steps expected", epoch, r.steps)
	steps := 0
	for i := range e.blocks {
		b := &e.blocks[i]
		steps += len(b.load)
		end := r.at(b.end)
		l.line(r.at(b.start), "Starting block %d", i+1)
		l.line(end, "Ending block %d - %d steps completed in %s s", i+1, len(b.load), duration(b.end-b.start))
		// DLIO takes two steps off: of a block of one step it would tell a negative rate.
		if au, rate, ok := r.train(b); ok && rate >= 0 {
			l.line(end, "Epoch %d - Block %d [Training] Accelerator Utilization [AU] (%%): %.4f", epoch, i+1, au)
			l.line(end, "Epoch %d - Block %d [Training] Throughput (samples/second): %.4f", epoch, i+1, rate*float64(r.Record.Plan.Accelerators))
		}
		if mean, deviation, ok := r.computeTimes(b); ok {
			l.line(end, "Epoch %d - Block %d [Training] Computation time per step (second): %.4f+/-%.4f (set value: %g)", epoch, i+1, mean, deviation,
				r.w.Train.ComputationTime.Mean())
		}
		r.logSaves(l, saves, epoch, i+1)
	}
	end := trainEnd(e, saves, epoch)
	l.line(r.at(end), "Ending epoch %d - %d steps completed in %s s", epoch, steps, duration(end-e.start()))
	if b := e.eval; b != nil {
		l.line(r.at(b.start), "Starting eval - %d steps expected", r.evalSteps)
		l.line(r.at(b.end), "Ending eval - %d steps completed in %s s", len(b.load), duration(b.end-b.start))
		if au, rate, ok := r.evaluation(b); ok {
			l.line(r.at(b.end), "Epoch %d [Eval] Accelerator Utilization [AU] (%%): %.4f", epoch, au)
			l.line(r.at(b.end), "Epoch %d [Eval] Throughput (samples/second): %.4f", epoch, rate*float64(r.Record.Plan.Accelerators))
		}
	}
}

// computeTimes are mean and deviation of the compute times in the window, in seconds.
func (r *dlioRun) computeTimes(b *dlioBlock) (mean, deviation float64, ok bool) {
	m := &r.w.Output.Metric
	first, last := int64(m.ExcludeStartSteps), r.steps-int64(m.ExcludeEndSteps)
	var in []float64
	for i := max(first, 0); i < min(last, int64(len(b.compute))); i++ {
		in = append(in, float64(b.compute[i])/1e9)
	}
	if len(in) == 0 {
		return 0, 0, false
	}
	mean, deviation = meanDeviation(in)
	return mean, deviation, true
}

// logSaves tells of the checkpoints after one block; with epoch 0 of all.
func (r *dlioRun) logSaves(l *dlioLog, saves []dlioSave, epoch, block int) {
	for i := range saves {
		s := &saves[i]
		if epoch > 0 && (s.epoch != epoch || s.block != block) {
			continue
		}
		doing := "saving"
		if s.load {
			doing = "loading"
		}
		l.line(r.at(s.start), "Starting %s checkpoint %d after total step %d for epoch %d", doing, s.block, s.step, s.epoch)
		rate := ""
		if s.seconds > 0 {
			rate = fmt.Sprintf("; Throughput: %.4f GB/s", r.checkpointSize()/s.seconds)
		}
		l.line(r.at(s.end), "Finished %s checkpoint %d for epoch %d in %.4f s%s", doing, s.block, s.epoch, s.seconds, rate)
	}
}

// DLIOMetrics is the page of figures at the end of DLIO's log. Figures that the record does not have are left out.
func DLIOMetrics(rec *record.Record, w *workload.Workload) string {
	var b strings.Builder
	rule := "[METRIC] ==========================================================\n"
	b.WriteString("Averaged metric over all steps/epochs\n" + rule)
	fmt.Fprintf(&b, "[METRIC] Number of Simulated Accelerators: %d \n", rec.Plan.Accelerators)
	r := &dlioRun{DLIORun: DLIORun{Record: rec}, w: w}
	all := map[string]any{}
	for _, f := range r.metric() {
		all[f.name] = f.value
	}
	pair := func(label, mean, deviation string) {
		m, ok1 := all[mean].(float64)
		s, ok2 := all[deviation].(float64)
		if ok1 && ok2 && !math.IsNaN(m) && !math.IsNaN(s) {
			fmt.Fprintf(&b, "[METRIC] %s: %.4f (%.4f)\n", label, m, s)
		}
	}
	verdict := func(name string) {
		if v, ok := all[name].(string); ok {
			fmt.Fprintf(&b, "[METRIC] %s: %s\n", name, v)
		}
	}
	pair("Training Accelerator Utilization [AU] (%)", "train_au_mean_percentage", "train_au_stdev_percentage")
	pair("Training Throughput (samples/second)", "train_throughput_mean_samples_per_second", "train_throughput_stdev_samples_per_second")
	pair("Training I/O Throughput (MB/second)", "train_io_mean_MB_per_second", "train_io_stdev_MB_per_second")
	verdict("train_au_meet_expectation")
	pair("Checkpoint save duration (seconds)", "save_checkpoint_duration_mean_seconds", "save_checkpoint_duration_stdev_seconds")
	pair("Checkpoint save I/O Throughput (GB/second)", "save_checkpoint_io_mean_GB_per_second", "save_checkpoint_io_stdev_GB_per_second")
	pair("Checkpoint load duration (seconds)", "load_checkpoint_duration_mean_seconds", "load_checkpoint_duration_stdev_seconds")
	pair("Checkpoint load I/O Throughput (GB/second)", "load_checkpoint_io_mean_GB_per_second", "load_checkpoint_io_stdev_GB_per_second")
	pair("Eval Accelerator Utilization [AU] (%)", "eval_au_mean_percentage", "eval_au_stdev_percentage")
	pair("Eval Throughput (samples/second)", "eval_throughput_mean_samples_per_second", "eval_throughput_stdev_samples_per_second")
	pair("Eval Throughput (MB/second)", "eval_io_mean_MB_per_second", "eval_io_stdev_MB_per_second")
	verdict("eval_au_meet_expectation")
	b.WriteString(rule)
	return b.String()
}
