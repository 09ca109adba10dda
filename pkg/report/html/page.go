package html

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
)

// page is what the template shows. All texts of records in it were cleaned; the template escapes them.
type page struct {
	Title, Policy, Writer string
	Style                 template.CSS
	Runs                  []*runView
	Many                  bool
	// Compare is the comparison of several runs, Unlike names what they differ in that makes them unlike.
	Compare *compareTable
	Unlike  []string
	Topics  []topic
}

// topic is a section with a picture or table of each run.
type topic struct {
	ID, Title, Lead string
	Views           []topicView
}

type topicView struct {
	Run    *runView
	Charts []*chart
	Tables []*table
	// Absent says why there is nothing.
	Absent string
}

// runView is a run on the page.
type runView struct {
	N                       int
	Name, ID, Workload      string
	When, Overrides, Status string
	Tone                    string // good, bad or plain
	Verdict, Detail         string
	Proof, ProofTone        string
	Cautions                []string
	Advice                  *report.Advice
	Figures                 []figure
	Facts                   []fact
	Machine                 []fact
	Environment             table
	Digests, Files          []digestRow
	Checks                  []report.Check
	Verified                bool // by whoever made the page, with whatever outcome
	Signers, Times, Notes   []string
	Assurance               string
	Commands                []string
}

// figure is one of the figures at the top.
type figure struct{ Class, Name, Value, Unit, Note string }

type fact struct{ Class, Name, Value string }

type digestRow struct{ Class, Name, Value, Note string }

// compareTable has a column for each run; Class is that of the figures of a row, Differs marks rows whose values are not all equal.
type compareTable struct {
	Runs []string
	Rows []compareRow
}

type compareRow struct {
	Class, Name string
	Values      []string
	Differs     bool
	Digest      bool
}

func newPage(runs []Run, o Options) *page {
	p := &page{Writer: report.Clean(o.Writer), Many: len(runs) > 1}
	p.Style, p.Policy = sheet()
	for i := range runs {
		p.Runs = append(p.Runs, view(i+1, &runs[i], len(runs)))
	}
	p.Title = "benchpin: " + p.Runs[0].Workload + ", " + p.Runs[0].ID
	if p.Many {
		p.Title = fmt.Sprintf("benchpin: %d runs side by side", len(runs))
		p.Compare, p.Unlike = compare(runs)
	}
	p.topics(runs)
	return p
}

// topics are the sections with pictures; one that no run has anything for is left out.
func (p *page) topics(runs []Run) {
	var ends, evalEnds, bytes, save, load float64
	var train, eval limits
	for i := range runs {
		r := &runs[i]
		for j := range r.Record.Metrics.Epochs {
			e := &r.Record.Metrics.Epochs[j]
			bytes = max(bytes, deref(e.BytesDevice.Value), deref(e.BytesAsked.Value))
			if e.Storage != nil {
				bytes = max(bytes, deref(e.Storage.Memory.Value))
			}
		}
		for _, s := range saves(r.Record) {
			save = max(save, slices.Max(append(s.seconds, 0)))
		}
		for _, s := range loads(r.Record) {
			load = max(load, slices.Max(append(s.seconds, 0)))
		}
		ends, evalEnds = max(ends, train.hold(r.Steps)), max(evalEnds, eval.hold(r.Eval))
	}
	all := func(t topic, of func(i int, r *Run) ([]*chart, []*table)) {
		found := false
		for i := range runs {
			charts, tables := of(i, &runs[i])
			charts = slices.DeleteFunc(charts, func(c *chart) bool { return c == nil })
			tables = slices.DeleteFunc(tables, func(t *table) bool { return t == nil })
			v := topicView{Run: p.Runs[i], Charts: charts, Tables: tables}
			if len(charts)+len(tables) == 0 {
				v.Absent = "This run has nothing to show here."
			} else {
				found = true
			}
			t.Views = append(t.Views, v)
		}
		if found {
			p.Topics = append(p.Topics, t)
		}
	}
	id := func(what string, i int) string { return what + "-" + strconv.Itoa(i+1) }
	all(topic{ID: "utilisation", Title: "Utilisation over time", Lead: "How much of the time all accelerators computed, from the start of the timed run on. " +
		"Every step counts here; AU leaves out the steps that the workload excludes."}, func(i int, r *Run) ([]*chart, []*table) {
		return []*chart{utilisation(id("utilisation", i), r, ends)}, nil
	})
	all(topic{ID: "split", Title: "Where the time went", Lead: "All steps of all accelerators together. The wait for data is divided by what was being done for the batch meanwhile."},
		func(i int, r *Run) ([]*chart, []*table) {
			return []*chart{split(id("split", i), r)}, []*table{waitTable(r.Record.Metrics.Epochs, p.Many)}
		})
	all(topic{ID: "spread", Title: "How step times are spread", Lead: "A step is the wait for a batch, the computing and the wait for the other accelerators. " +
		"The height is the number of steps; mind the scale of time, which is by powers of ten where times lie far apart."}, func(i int, r *Run) ([]*chart, []*table) {
		if r.Steps == nil {
			return nil, nil
		}
		return train.spreads(func(key string) string { return id(key, i) }, r.Steps, func(*histogram) func(string) (float64, bool) { return recorded(r.Record) }), nil
	})
	all(topic{ID: "bytes", Title: "Where the bytes came from", Lead: "What comes from the page cache says nothing about storage."}, func(i int, r *Run) ([]*chart, []*table) {
		return []*chart{traffic(id("bytes", i), r, bytes)}, nil
	})
	all(topic{ID: "epochs", Title: "Epochs"}, func(_ int, r *Run) ([]*chart, []*table) {
		tables := []*table{epochTable("Training, by epoch", r.Record.Metrics.Epochs)}
		if e := r.Record.Metrics.Evaluation; e != nil {
			tables = append(tables, epochTable("Evaluation, after the epoch named", e.Passes))
		}
		return nil, tables
	})
	all(topic{ID: "evaluation", Title: "Evaluation", Lead: "The passes over the files for evaluation, from the start of the timed run on. Accelerators do not meet between " +
		"the steps of a pass, and AU knows nothing of it."}, func(i int, r *Run) ([]*chart, []*table) {
		if r.Eval == nil {
			return nil, nil
		}
		charts := []*chart{activity(id("evaluation", i), "What the accelerators did in the passes", r.Eval, evalEnds, "pass", "neither: training, and between steps")}
		return append(charts, eval.spreads(func(key string) string { return id("evaluation-"+key, i) }, r.Eval, drawn)...), nil
	})
	all(topic{ID: "checkpoints", Title: "Checkpoints", Lead: "How long each accelerator took. A checkpoint is done when the slowest one is."}, func(i int, r *Run) ([]*chart, []*table) {
		durable := "Written, not synced: the time may end before the bytes are safe"
		if r.Record.Checkpoints.Fsync {
			durable = "Written and synced to storage"
		}
		return []*chart{ranks(id("saves", i), durable, saves(r.Record), save, "save", []string{"of it writing"}),
			ranks(id("loads", i), "Read back", loads(r.Record), load, "restore", []string{"from the device", "compared"})}, nil
	})
}

// limits are the least and longest times of the kinds that are drawn, in seconds, over all runs of a page.
type limits struct{ least, most [3]float64 }

// hold widens the limits by a series, and returns when that ends, in seconds.
func (l *limits) hold(s *Series) (ends float64) {
	if s == nil {
		return 0
	}
	for k, h := range s.histograms() {
		if h.n > 0 {
			if least := float64(h.min) / 1e9; l.least[k] == 0 || least < l.least[k] {
				l.least[k] = max(1e-9, least)
			}
			l.most[k] = max(l.most[k], float64(h.max)/1e9)
		}
	}
	return float64(s.end) / 1e9
}

// spreads are the histograms of a series.
func (l *limits) spreads(id func(key string) string, s *Series, percentiles func(*histogram) func(string) (float64, bool)) []*chart {
	var list []*chart
	names := []struct{ key, title string }{{"step", "Whole steps"}, {"load", "Waiting for data"}, {"compute", "Computing"}}
	for k, h := range s.histograms() {
		list = append(list, spreadOf(id(names[k].key), names[k].key, names[k].title, h, percentiles(h), l.least[k], l.most[k]))
	}
	return list
}

func (s *Series) histograms() []*histogram { return []*histogram{&s.step, &s.load, &s.compute} }

// view is what the page says of one run beside the pictures.
func view(n int, r *Run, of int) *runView {
	rec := r.Record
	v := &runView{N: n, Name: report.Clean(r.Name), ID: report.Clean(rec.ID), Workload: report.Clean(rec.Workload.Name), When: when(rec),
		Overrides: report.Clean(strings.Join(rec.Workload.Overrides, " ")), Status: report.Clean(rec.Status), Cautions: report.Cautions(rec), Advice: report.Advise(rec, nil)}
	for i, c := range v.Cautions {
		v.Cautions[i] = strings.TrimPrefix(c, "CAUTION: ")
	}
	v.verdict(r)
	v.figures(r)
	v.Facts = facts(rec)
	v.Machine, v.Environment = machine(&rec.Environment), environment(&rec.Environment, n, of)
	v.Digests, v.Files = digests(r)
	v.proof(r)
	return v
}

// verdict is the headline. A result that did not verify is none, whatever it says.
func (v *runView) verdict(r *Run) {
	m := &r.Record.Metrics
	threshold := report.FigureText(m.Threshold)
	if m.Threshold.Value != nil {
		threshold = report.ThresholdText(*m.Threshold.Value, m.Threshold.Unit)
	}
	switch {
	case r.Verification != nil && !r.Verification.Holds:
		v.Tone, v.Verdict, v.Detail = "bad", "No result: it does not verify", "What follows is what the record says, which does not hold."
	case r.Record.Status != record.StatusComplete:
		v.Tone, v.Verdict, v.Detail = "bad", "No result: the run is incomplete", report.Clean(cmp.Or(r.Record.Reason, "no reason is given"))
	case checkpointOnly(r.Record):
		v.Tone, v.Verdict = "plain", fmt.Sprintf("%s written, %s read back", checkpoints(r.Record.Plan.Checkpoints), checkpoints(r.Record.Plan.CheckpointReads))
		v.Detail = "A run that only writes and reads checkpoints has no accelerator utilisation."
	case m.Met == nil:
		v.Tone, v.Verdict, v.Detail = "plain", "AU is not judged", report.FigureText(m.AU)
	case *m.Met:
		v.Tone, v.Verdict, v.Detail = "good", "AU "+report.FigureText(m.AU)+" meets its threshold", "The threshold is "+threshold+"."
	default:
		v.Tone, v.Verdict, v.Detail = "bad", "AU "+report.FigureText(m.AU)+" misses its threshold", "The threshold is "+threshold+"."
	}
}

func checkpoints(n int) string {
	if n == 1 {
		return "1 checkpoint"
	}
	return strconv.Itoa(n) + " checkpoints"
}

func checkpointOnly(r *record.Record) bool {
	return r.Plan.Epochs == 0 && r.Plan.Checkpoints+r.Plan.CheckpointReads > 0
}

// figures are the large numbers.
func (v *runView) figures(r *Run) {
	m := &r.Record.Metrics
	add := func(name string, f record.Figure, note string) {
		value, unit, beside := parts(f)
		if beside != "" {
			note = strings.Trim(beside+"; "+note, "; ")
		}
		v.Figures = append(v.Figures, figure{report.Clean(string(f.Class)), name, value, unit, note})
	}
	if checkpointOnly(r.Record) {
		for _, p := range []struct{ key, name string }{{"save", "written"}, {"load", "read back"}} {
			if f, ok := m.Other[p.key+"_checkpoint_bytes_per_second_mean"]; ok {
				add("Rate, "+p.name, f, "mean of all, by the slowest accelerator")
			}
			if f, ok := m.Other[p.key+"_checkpoint_seconds_mean"]; ok {
				add("Duration, "+p.name, f, "mean of all, of the slowest accelerator")
			}
		}
		return
	}
	note := "accelerator utilisation"
	if f := m.Other["au_prescribed"]; f.Value != nil {
		note = report.FigureText(f) + " with the compute time as prescribed"
	}
	add("AU", m.AU, note)
	add("Samples", m.SamplesPerSecond, "over all "+strconv.Itoa(r.Record.Plan.Accelerators)+" accelerators")
	note = ""
	if whole, ok := report.WholeEpochs(m); ok {
		note = report.DecimalBytes(whole) + "/s over whole epochs"
	}
	add("Throughput", m.BytesPerSecond, note)
	if q := r.Record.Plan.RequiredBytesPerSecond; q != nil {
		add("Needed for AU", record.Figure{Value: q, Unit: "B/s", Class: r.Record.Plan.Class}, "of storage, for "+strconv.FormatFloat(r.Record.Plan.AUThreshold, 'g', 6, 64)+" % AU")
	}
}

// parts are the number of a figure, its unit, and what stands in brackets behind.
func parts(f record.Figure) (value, unit, beside string) {
	if f.Value == nil {
		return "absent", "", report.Clean(f.Absent)
	}
	switch f.Unit {
	case "s", "B", "B/s", "%":
		s, beside, _ := strings.Cut(report.FigureText(f), " (")
		value, unit, _ = strings.Cut(s, " ")
		return value, unit, strings.TrimSuffix(beside, ")")
	}
	return report.Number(*f.Value), report.Clean(f.Unit), ""
}
