package report

import (
	"slices"
	"strconv"

	"github.com/benchpin/benchpin/pkg/record"
)

// Named is a figure and its name, as "benchpin explain" has it.
type Named struct {
	Name   string
	Figure record.Figure
}

// Figures are all figures of a record but DLIO's: au, epochs.2.au, evaluation.au, other.load_p99 and so on.
func Figures(r *record.Record) []Named {
	m := &r.Metrics
	out := []Named{{"au", m.AU}, {"au_threshold", m.Threshold}, {"samples_per_second", m.SamplesPerSecond}, {"bytes_per_second", m.BytesPerSecond}}
	epochs := func(under string, list []record.EpochMetrics) {
		for i := range list {
			e := &list[i]
			at := under + "." + strconv.Itoa(e.Epoch) + "."
			out = append(out, Named{at + "seconds", e.Seconds}, Named{at + "au", e.AU}, Named{at + "samples_per_second", e.SamplesPerSecond},
				Named{at + "bytes_per_second", e.BytesPerSecond}, Named{at + "bytes_asked", e.BytesAsked}, Named{at + "bytes_device", e.BytesDevice})
		}
	}
	epochs("epochs", m.Epochs)
	if e := m.Evaluation; e != nil {
		out = append(out, Named{"evaluation.au", e.AU}, Named{"evaluation.samples_per_second", e.SamplesPerSecond},
			Named{"evaluation.bytes_per_second", e.BytesPerSecond})
		epochs("evaluation.passes", e.Passes)
	}
	names := make([]string, 0, len(m.Other))
	for name := range m.Other {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		out = append(out, Named{"other." + name, m.Other[name]})
	}
	return out
}

// Totals are figures over all epochs that records have for each epoch alone: the seconds that epochs took, and the bytes that came from
// devices.
func Totals(r *record.Record) []Named {
	return []Named{
		{"epochs.seconds", total(r.Metrics.Epochs, "s", func(e *record.EpochMetrics) record.Figure { return e.Seconds })},
		{"epochs.bytes_device", total(r.Metrics.Epochs, "B", func(e *record.EpochMetrics) record.Figure { return e.BytesDevice })},
	}
}

func total(epochs []record.EpochMetrics, unit string, of func(*record.EpochMetrics) record.Figure) record.Figure {
	sum := record.Figure{Unit: unit, Class: record.HostOnly}
	v := 0.0
	for i := range epochs {
		f := of(&epochs[i])
		if f.Value == nil {
			sum.Absent = f.Absent
			return sum
		}
		v += *f.Value
	}
	if len(epochs) == 0 {
		sum.Absent = "no epoch was run"
		return sum
	}
	sum.Value = &v
	return sum
}

// headline are the names of the figures that are shown where several runs stand beside each other, in order.
func headline() []string {
	return []string{
		"au", "other.au_prescribed", "samples_per_second", "bytes_per_second", "epochs.seconds", "epochs.bytes_device",
		"other.step_p50", "other.step_p99", "other.load_p50", "other.load_p99", "other.load_max", "other.oversleep_p99",
		"evaluation.au", "evaluation.samples_per_second",
		"other.save_checkpoint_seconds_mean", "other.save_checkpoint_bytes_per_second_mean",
		"other.load_checkpoint_seconds_mean", "other.load_checkpoint_bytes_per_second_mean",
	}
}

// Headline are the figures of a record that are shown where several runs stand beside each other. Those that it does not know at all are
// left out.
func Headline(r *record.Record) []Named {
	all := map[string]record.Figure{}
	for _, n := range slices.Concat(Figures(r), Totals(r)) {
		all[n.Name] = n.Figure
	}
	var out []Named
	for _, name := range headline() {
		if f, ok := all[name]; ok {
			out = append(out, Named{name, f})
		}
	}
	return out
}
