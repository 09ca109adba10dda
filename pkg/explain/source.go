package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// Source is a record, and what its figures come from.
type Source struct {
	Record   *record.Record
	Workload *workload.Workload
	// Steps and Eval are the files of step times, of training and of evaluation; nil where the run has none.
	Steps, Eval *File
	// DLIOCheckpointBytes is the size of a checkpoint as DLIO counts it, 0 without checkpoints.
	DLIOCheckpointBytes int64
}

// File is a file of step times.
type File struct {
	Name string
	io.ReaderAt
	Bytes int64

	// rows are those of a small file once it was read.
	rows    []stats.Step
	devices []stats.Device
}

// mostKept is the number of rows up to which they are kept in memory: some 10 MB.
const mostKept = 1 << 16

// part is training or evaluation: its rows, and the numbers of the plan that belong to them.
type part struct {
	name                     string
	file                     *File
	steps                    int64 // of an epoch, or of a pass
	batch                    int64
	excludeStart, excludeEnd int64
	evaluation               bool
	what                     string // what an epoch of it is called
}

func (s *Source) training() *part {
	x := &s.Workload.Output.Metric
	return &part{name: "training", file: s.Steps, steps: int64(s.Record.Plan.StepsPerEpoch), batch: int64(s.Record.Plan.BatchSize),
		excludeStart: int64(x.ExcludeStartSteps), excludeEnd: int64(x.ExcludeEndSteps), what: "epoch"}
}

func (s *Source) evaluation() *part {
	p := s.training()
	p.name, p.file, p.evaluation, p.what = "evaluation", s.Eval, true, "pass"
	if v := s.Record.Plan.Evaluation; v != nil {
		p.steps, p.batch = int64(v.Steps), int64(v.BatchSize)
	}
	return p
}

// errNoSteps is the error about figures of a run without the file that they come from.
var errNoSteps = errors.New("the file of step times is not there")

// each calls yield for the rows of an epoch, or of all where it is 0, in the order of the file.
func (p *part) each(ctx context.Context, epoch int, yield func(*stats.Step)) error {
	if p.file != nil && p.file.rows != nil {
		for i := range p.file.rows {
			if s := p.file.rows[i]; epoch == 0 || int(s.Epoch) == epoch {
				yield(&s)
			}
		}
		return nil
	}
	return p.open(func(r *stats.Reader) error {
		if r.Rows() <= mostKept {
			rows := make([]stats.Step, 0, r.Rows())
			if err := r.Each(func(s *stats.Step) error { rows = append(rows, *s); return nil }); err != nil {
				return err
			}
			p.file.rows, p.file.devices = rows, r.Devices()
			for i := range rows {
				if s := rows[i]; epoch == 0 || int(s.Epoch) == epoch {
					yield(&s)
				}
			}
			return nil
		}
		n := 0
		return r.Each(func(s *stats.Step) error {
			if n++; n%4096 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if epoch == 0 || int(s.Epoch) == epoch {
				yield(s)
			}
			return nil
		})
	})
}

func (p *part) open(do func(r *stats.Reader) error) error {
	if p.file == nil || p.file.ReaderAt == nil {
		return fmt.Errorf("%s: %w", p.name, errNoSteps)
	}
	r, err := stats.Open(p.file, p.file.Bytes)
	if err != nil {
		return fmt.Errorf("%s: %w", p.file.Name, err)
	}
	defer r.Close()
	return do(r)
}

// counted is what the kernel counted in an epoch; nil where the file has nothing of it.
func (p *part) counted(epoch int) (d *stats.Device, err error) {
	if p.file != nil && p.file.rows != nil {
		for _, e := range p.file.devices {
			if e.Epoch == epoch {
				d = &e
			}
		}
		return d, nil
	}
	err = p.open(func(r *stats.Reader) error {
		for _, e := range r.Devices() {
			if e.Epoch == epoch {
				d = &e
			}
		}
		return nil
	})
	return d, err
}

// inWindow says whether a step counts for AU and rates.
func (p *part) inWindow(s *stats.Step) bool {
	return s.Step > p.excludeStart && s.Step <= p.steps-p.excludeEnd
}

// window says which steps that are.
func (p *part) window() string {
	return fmt.Sprintf("steps %d to %d of %d of each %s", p.excludeStart+1, p.steps-p.excludeEnd, p.steps, p.what)
}

// epochOf turns the name of an epoch, which for a pass is the epoch that it followed, into the number that its rows have.
func (s *Source) epochOf(p *part, name string) (int, error) {
	n, err := strconv.Atoi(name)
	if err != nil {
		return 0, fmt.Errorf("%q is no epoch", name)
	}
	if !p.evaluation {
		return n, nil
	}
	v := s.Record.Plan.Evaluation
	return (n-v.AfterEpoch)/v.EpochsBetween + 1, nil
}
