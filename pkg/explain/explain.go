// Package explain prints the arithmetic of figures: from the raw step times of a run, or the times of its checkpoints, to every figure of
// its record, with the numbers. It computes each figure again in the plainest way there is and shares no code with the engine's summary
// (bench/stats), of which it takes the reader of the file alone: that both come to the same is a test of both.
//
// It never changes a record, never judges one, and proves nothing: the record and its files are believed.
package explain

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
)

// Explanation is how one figure comes about.
type Explanation struct {
	// Figure is its name: see List.
	Figure string `json:"figure"`
	// Meaning is what it says, in a sentence.
	Meaning string `json:"meaning"`
	// Recorded is the figure as the record has it: a number, a text, a truth value or a list; nil where it is absent, and Absent the reason.
	Recorded any          `json:"recorded"`
	Absent   string       `json:"absent,omitempty"`
	Unit     string       `json:"unit,omitempty"`
	Class    record.Class `json:"class"`
	// Source is where the inputs come from, Formula what is done with them.
	Source  string  `json:"source"`
	Formula string  `json:"formula"`
	Inputs  []Input `json:"inputs"`
	// Table has intermediate sums, a row for each epoch or accelerator; nil where there are none.
	Table *Table `json:"table,omitempty"`
	// Computed is the figure as it came out here; Equal says that the record has the same, to 12 digits.
	Computed any  `json:"computed"`
	Equal    bool `json:"equal"`
}

// Input is a number that a figure is computed from.
type Input struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
	Unit  string `json:"unit,omitempty"`
	// From says how it comes about.
	From string `json:"from,omitempty"`
}

// Table are intermediate sums.
type Table struct {
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
	// Left is the number of rows that are not shown.
	Left int `json:"left_out,omitempty"`
}

// mostRows bounds the rows of a table.
const mostRows = 64

func (t *Table) add(row ...any) {
	if len(t.Rows) == mostRows {
		t.Left++
		return
	}
	t.Rows = append(t.Rows, row)
}

// ErrNoFigure is wrapped by the error about a figure that the record does not have.
var ErrNoFigure = errors.New("the record has no such figure")

// List names all figures of a record, in its order: au, epochs.2.au (of the epoch with this number), other.load_p99, dlio.train_au_percentage,
// evaluation.passes.1.au, checkpoints.saves.1.seconds and so on.
func List(r *record.Record) ([]string, error) {
	leaves, err := leavesOf(r)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(leaves))
	for i, l := range leaves {
		names[i] = l.name
	}
	return names, nil
}

// Figure explains one figure. A name may begin with "metrics.", as in the record; "au" is "metrics.au".
func (s *Source) Figure(ctx context.Context, name string) (*Explanation, error) {
	leaves, err := leavesOf(s.Record)
	if err != nil {
		return nil, err
	}
	name = strings.TrimPrefix(name, "metrics.")
	for i := range leaves {
		if leaves[i].name == name {
			return s.explain(ctx, &leaves[i])
		}
	}
	var near []string
	for _, l := range leaves {
		if strings.HasSuffix(l.name, "."+name) && len(near) < 5 {
			near = append(near, l.name)
		}
	}
	hint := "without a name they are listed"
	if near != nil {
		hint = "is it " + strings.Join(near, ", ") + "?"
	}
	return nil, fmt.Errorf("%w: %q; %s", ErrNoFigure, name, hint)
}

// Each explains all figures, in the order of List.
func (s *Source) Each(ctx context.Context, yield func(*Explanation) error) error {
	leaves, err := leavesOf(s.Record)
	if err != nil {
		return err
	}
	for i := range leaves {
		x, err := s.explain(ctx, &leaves[i])
		if err == nil {
			err = yield(x)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) explain(ctx context.Context, l *leaf) (*Explanation, error) {
	x := &Explanation{Figure: l.name, Recorded: l.value, Absent: l.absent, Unit: l.unit, Class: l.class, Inputs: []Input{}}
	if err := s.compute(ctx, x, strings.Split(l.name, ".")); err != nil {
		return nil, fmt.Errorf("explain %s: %w", l.name, err)
	}
	x.Equal = equal(x.Recorded, x.Computed)
	return x, nil
}

// compute fills in everything but what the record says.
func (s *Source) compute(ctx context.Context, x *Explanation, path []string) error {
	switch path[0] {
	case "epochs":
		return s.epoch(ctx, x, s.training(), path[1], path[2:])
	case "evaluation":
		if path[1] == "passes" {
			return s.epoch(ctx, x, s.evaluation(), path[2], path[3:])
		}
		return s.window(ctx, x, s.evaluation(), 0, path[1])
	case "other":
		return s.other(ctx, x, path[1])
	case "dlio":
		return s.dlio(ctx, x, path[1])
	case "checkpoints":
		return s.checkpoint(x, path[1:])
	case "au_threshold":
		x.Meaning, x.Source, x.Formula = "AU that the workload asks for", "plan.au_threshold, which is metric.au of the workload", "100 x metric.au"
		x.input("metric.au", s.Workload.Metric.AU, "", "the workload")
		x.Computed = s.Workload.Metric.AU * 100
		return nil
	case "au_met":
		return s.met(ctx, x)
	}
	return s.window(ctx, x, s.training(), 0, path[0])
}

func (x *Explanation) input(name string, value any, unit, from string) {
	x.Inputs = append(x.Inputs, Input{name, value, unit, from})
}

// met explains the verdict.
func (s *Source) met(ctx context.Context, x *Explanation) error {
	of := &Explanation{}
	if err := s.window(ctx, of, s.training(), 0, "au"); err != nil {
		return err
	}
	x.Meaning, x.Source, x.Formula = "whether AU reaches its threshold", of.Source, "au >= au_threshold"
	x.Class = record.HostOnly
	x.input("au", of.Computed, "%", "benchpin explain RUN au")
	x.input("au_threshold", s.Record.Plan.AUThreshold, "%", "plan.au_threshold")
	if au, ok := of.Computed.(float64); ok {
		x.Computed = au >= s.Record.Plan.AUThreshold
	}
	return nil
}

// tolerance is what the order of additions may change: far less than a nanosecond of a year.
const tolerance = 1e-12

// equal compares a figure of the record with one computed here. Numbers are equal to 12 digits.
func equal(a, b any) bool {
	if x, ok := a.([]any); ok {
		y, ok := b.([]float64)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equal(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	x, ok1 := a.(float64)
	y, ok2 := b.(float64)
	if ok1 && ok2 {
		return x == y || math.Abs(x-y) <= tolerance*max(math.Abs(x), math.Abs(y))
	}
	return reflect.DeepEqual(a, b)
}
