package report

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// The names of DLIO's files of a run. Each rank has two more: DLIOOutputName and DLIOStatsName.
const (
	DLIOSummaryName = "summary.json"
	DLIOLogName     = "dlio.log"
)

// DLIOOutputName is the name of the step times of one rank.
func DLIOOutputName(rank int) string { return fmt.Sprintf("%d_output.json", rank) }

// DLIOStatsName is the name of the times of epochs, blocks and checkpoints of one rank.
func DLIOStatsName(rank int) string { return fmt.Sprintf("%d_per_epoch_stats.json", rank) }

// DLIOStep is one step of one rank, as DLIO's files tell of it. All times are nanoseconds; offsets count from DLIORun.Clock.
type DLIOStep struct {
	// Epoch and Block count from 1, Rank from 0. Eval is true for a step of an evaluation pass, which is one block.
	Epoch, Block, Rank int
	Eval               bool
	// BlockStart is when the rank began the block; BlockEnd of the block's last step when it ended it.
	BlockStart, BlockEnd int64
	// Load is the wait for the batch, Compute the sleep, Proc the time from the beginning of the wait to the end of the sleep.
	Load, Compute, Proc int64
}

// DLIORun is a run as DLIO's output files tell of it.
type DLIORun struct {
	Record *record.Record
	// Clock is the wall clock at offset 0 of the steps, in the time zone of the timestamps (DLIO writes local time and names no zone).
	Clock time.Time
	// Steps yields every step of the run, those of one rank and epoch in their order. It is called once for every group of ranks that fits
	// into memory. The step that it yields is not kept. Nil: there are none.
	Steps func(yield func(*DLIOStep) error) error
	// CPUInfo and MemInfo are what DLIO reads from /proc/cpuinfo and /proc/meminfo; nil leaves them out.
	CPUInfo, MemInfo map[string]string
	// LogName is the name of the log; "" is DLIOLogName.
	LogName string
}

// stepsInMemory bounds the steps whose times are held at once, at 24 bytes each.
const stepsInMemory = 4 << 20

// dlioRun is what is known while the files are written.
type dlioRun struct {
	DLIORun
	w *workload.Workload
	// steps and evalSteps are the numbers of steps of an epoch and of an evaluation.
	steps, evalSteps int64
}

// DLIO writes DLIO's output files of a run: summary.json, the two files of every rank and the log, under DLIO's names, with DLIO's field
// names, nesting, types and units (docs/dlio.md). create makes a file; each is closed before the next is made. Figures that DLIO
// would have as NaN are null or left out. It needs the record to hold a workload that can be read; figures are those of the
// record, and step times those of Steps. Of an incomplete run only the log is written: no tool shall take it for a result.
func DLIO(run DLIORun, create func(name string) (io.WriteCloser, error)) error {
	w, err := workload.ParseCanonical(run.Record.Workload.Canonical)
	if err != nil {
		return fmt.Errorf("DLIO's files: workload of the record: %w", err)
	}
	r := &dlioRun{DLIORun: run, w: w}
	p := &run.Record.Plan
	r.steps = int64(p.StepsPerEpoch)
	if e := p.Evaluation; e != nil {
		r.evalSteps = int64(e.Steps)
	}
	if r.LogName == "" {
		r.LogName = DLIOLogName
	}
	write := func(name string, v any) error {
		return writeTo(create, name, func(w io.Writer) error { return writeDLIO(w, v) })
	}
	if run.Record.Status != record.StatusComplete {
		return r.logOnly(create)
	}
	if err := write(DLIOSummaryName, r.summary()); err != nil {
		return err
	}
	perRank := max(1, int64(p.Epochs)*(r.steps+r.evalSteps))
	group := int(max(1, min(stepsInMemory/perRank, int64(p.Accelerators))))
	for first := 0; first < p.Accelerators; first += group {
		ranks := make([]dlioRank, min(group, p.Accelerators-first))
		if err := r.collect(first, ranks); err != nil {
			return fmt.Errorf("DLIO's files: step times: %w", err)
		}
		for i := range ranks {
			rank, k := first+i, &ranks[i]
			saves := r.saves(rank, k)
			if err := write(DLIOOutputName(rank), r.output(k, saves)); err != nil {
				return err
			}
			if err := write(DLIOStatsName(rank), r.stats(k, saves)); err != nil {
				return err
			}
			if rank > 0 {
				continue
			}
			if err := r.writeLog(create, k, saves); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *dlioRun) writeLog(create func(name string) (io.WriteCloser, error), k *dlioRank, saves []dlioSave) error {
	return writeTo(create, r.LogName, func(w io.Writer) error { return r.log(w, k, saves) })
}

// logOnly writes the log of a run that did not reach its end.
func (r *dlioRun) logOnly(create func(name string) (io.WriteCloser, error)) error {
	ranks := make([]dlioRank, 1)
	if err := r.collect(0, ranks); err != nil {
		return fmt.Errorf("DLIO's files: step times: %w", err)
	}
	return r.writeLog(create, &ranks[0], r.saves(0, &ranks[0]))
}

// writeTo makes a file and closes it, whatever happens between.
func writeTo(create func(name string) (io.WriteCloser, error), name string, write func(io.Writer) error) error {
	f, err := create(name)
	if err != nil {
		return fmt.Errorf("DLIO's file %s: %w", name, err)
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("DLIO's file %s: %w", name, err)
	}
	return nil
}

// dlioBlock is a stretch of steps of one rank: between two checkpoints, or one evaluation.
type dlioBlock struct {
	start, end          int64
	load, proc, compute dlioNanos
}

func (b *dlioBlock) add(s *DLIOStep) {
	b.start, b.end = s.BlockStart, max(b.end, s.BlockEnd)
	b.load, b.proc, b.compute = append(b.load, s.Load), append(b.proc, s.Proc), append(b.compute, s.Compute)
}

// dlioEpoch is one epoch of one rank; eval is nil without an evaluation.
type dlioEpoch struct {
	blocks []dlioBlock
	eval   *dlioBlock
}

// start and end are the first and the last moment of the epoch's blocks.
func (e *dlioEpoch) start() int64 {
	if len(e.blocks) > 0 {
		return e.blocks[0].start
	}
	return 0
}

func (e *dlioEpoch) end() (at int64) {
	for i := range e.blocks {
		at = max(at, e.blocks[i].end)
	}
	return at
}

// dlioRank holds the epochs of one rank, as far as they were run.
type dlioRank struct{ epochs []dlioEpoch }

// collect reads the steps of the ranks from first on.
func (r *dlioRun) collect(first int, ranks []dlioRank) error {
	if r.Steps == nil {
		return nil
	}
	return r.Steps(func(s *DLIOStep) error {
		if s.Rank < first || s.Rank >= first+len(ranks) {
			return nil
		}
		k := &ranks[s.Rank-first]
		if s.Epoch < 1 || s.Epoch > r.Record.Plan.Epochs || s.Block < 1 {
			return fmt.Errorf("epoch %d, block %d: expected epochs 1 to %d and blocks from 1", s.Epoch, s.Block, r.Record.Plan.Epochs)
		}
		for len(k.epochs) < s.Epoch {
			k.epochs = append(k.epochs, dlioEpoch{})
		}
		e := &k.epochs[s.Epoch-1]
		if s.Eval {
			if e.eval == nil {
				e.eval = &dlioBlock{}
			}
			e.eval.add(s)
			return nil
		}
		for len(e.blocks) < s.Block {
			e.blocks = append(e.blocks, dlioBlock{})
		}
		e.blocks[s.Block-1].add(s)
		return nil
	})
}

// train are DLIO's figures of one block of one rank, in percent and samples a second: the window's indices are those of the epoch,
// applied to the arrays of the block, and two steps are taken off the rate, as DLIO does. ok is false where DLIO divides by zero.
func (r *dlioRun) train(b *dlioBlock) (au, rate float64, ok bool) {
	m := &r.w.Output.Metric
	compute, excluded := window(b, int64(m.ExcludeStartSteps), r.steps-1-int64(m.ExcludeEndSteps))
	t := float64(b.end-b.start-excluded) / 1e9
	if t <= 0 {
		return 0, 0, false
	}
	return percent(compute, t), float64((float64(len(b.compute))-2)/t) * float64(r.w.Reader.BatchSize), true
}

// evaluation are the same for an evaluation, where DLIO takes all steps for the rate.
func (r *dlioRun) evaluation(b *dlioBlock) (au, rate float64, ok bool) {
	m := &r.w.Output.Metric
	compute, excluded := window(b, int64(m.ExcludeStartSteps), r.evalSteps-1-int64(m.ExcludeEndSteps))
	whole := float64(b.end-b.start) / 1e9
	t := float64(b.end-b.start-excluded) / 1e9
	if t <= 0 {
		return 0, 0, false
	}
	return percent(compute, t), float64(float64(len(b.compute))/whole) * float64(r.w.Reader.BatchSizeEval), true
}

// window sums the compute of the steps first to last and the whole of the others, in ns.
func window(b *dlioBlock, first, last int64) (compute, excluded int64) {
	for i := range b.compute {
		if int64(i) >= first && int64(i) <= last {
			compute += b.compute[i]
		} else {
			excluded += b.proc[i]
		}
	}
	return compute, excluded
}

func percent(compute int64, seconds float64) float64 {
	return 100 * (float64(compute) / 1e9) / seconds
}
