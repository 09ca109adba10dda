package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
)

// ErrOther is wrapped by the error about step times, or times of checkpoints, that give other figures than their record has.
var ErrOther = errors.New("the figures of the record are not those of its step times")

// Run is one run to be compared.
type Run struct {
	// Name is how the user calls it: a folder.
	Name   string
	Record *record.Record
	// Steps is nil for a run that has no step times.
	Steps *Series
}

// The verdicts on a figure.
const (
	// Noise: the ratio may be 1; the difference is no more than the noise of the steps.
	Noise = "noise"
	// Higher and Lower: the figure differs from that of the first run by more than the noise of the steps.
	Higher, Lower = "higher", "lower"
	// NotJudged: there is no interval; Reason says why.
	NotJudged = "not judged"
)

// Comparison is a figure in the first run and in another.
type Comparison struct {
	Figure string `json:"figure"`
	Unit   string `json:"unit"`
	// Better is the verdict that is the better one, "higher" or "lower"; "" where neither is.
	Better string `json:"better,omitempty"`
	// First and Other are the values; nil where a run has none.
	First *float64 `json:"first"`
	Other *float64 `json:"other"`
	// Ratio is Other by First, with its interval Low to High; nil where there is none.
	Ratio   *float64 `json:"ratio"`
	Low     *float64 `json:"low"`
	High    *float64 `json:"high"`
	Verdict string   `json:"verdict"`
	// Reason says why nothing was judged.
	Reason string `json:"reason,omitempty"`
}

// Against are the figures of a run beside those of the first.
type Against struct {
	Run     int          `json:"run"`
	Figures []Comparison `json:"figures"`
}

// Summary is a figure over several runs of one configuration.
type Summary struct {
	Figure string `json:"figure"`
	Unit   string `json:"unit"`
	// Mean is the arithmetic mean over the runs, Stdev the standard deviation of a sample (n-1), CV the two's ratio, nil where the
	// mean is 0.
	Mean  float64  `json:"mean"`
	Stdev float64  `json:"stdev"`
	CV    *float64 `json:"cv"`
	Min   float64  `json:"min"`
	Max   float64  `json:"max"`
}

// Configuration are runs that have all in common that Unlike and Context look at.
type Configuration struct {
	Runs    []int     `json:"runs"`
	Figures []Summary `json:"figures"`
}

// Described is a run as a result names it.
type Described struct {
	Name     string `json:"name"`
	ID       string `json:"id"`
	Status   string `json:"status"`
	Workload string `json:"workload"`
	// Steps are those of the window, each of all ranks, and Chunks what they were cut into; 0 without step times.
	Steps  int64 `json:"steps"`
	Chunks int   `json:"chunks"`
}

// Same says that a run is one that was named before, by its run id: one measurement and no repetition.
type Same struct {
	Run int    `json:"run"`
	As  int    `json:"as"`
	ID  string `json:"id"`
}

// same finds the runs that were named before, as a run folder and its archive are.
func same(runs []Run) []Same {
	var out []Same
	first := map[string]int{}
	for i := range runs {
		id := runs[i].Record.ID
		if at, named := first[id]; named && id != "" {
			out = append(out, Same{i, at, id})
		} else {
			first[id] = i
		}
	}
	return out
}

// Method is how the intervals came about.
type Method struct {
	Name       string  `json:"name"`
	Confidence float64 `json:"confidence"`
	Resamples  int     `json:"resamples"`
	Seed       uint64  `json:"seed"`
}

// Result is what comparing came to.
type Result struct {
	// Refused is true for runs that are no like things, and then there are no figures. Anyway is true where they were compared all the same.
	Refused bool        `json:"refused"`
	Anyway  bool        `json:"anyway"`
	Runs    []Described `json:"runs"`
	// Unlike and Context are how the runs differ from the first.
	Unlike      []Difference `json:"unlike"`
	Context     []Difference `json:"context"`
	Method      Method       `json:"method"`
	Comparisons []Against    `json:"comparisons"`
	// Same are the runs that are one before them: summaries count them once.
	Same           []Same          `json:"same,omitempty"`
	Configurations []Configuration `json:"configurations"`
}

// Compare compares each run with the first. Runs that are no like things are refused, unless anyway is set: that is no error but a result.
// It fails with ErrOther.
func Compare(runs []Run, anyway bool, o Options) (*Result, error) {
	if len(runs) < 2 {
		return nil, fmt.Errorf("compare: %d runs, expected at least 2", len(runs))
	}
	o = o.Complete()
	res := &Result{Runs: []Described{}, Unlike: []Difference{}, Context: []Difference{}, Comparisons: []Against{}, Configurations: []Configuration{},
		Method: Method{Name: "block bootstrap, percentiles of log(ratio), widened for the number of chunks", Confidence: o.Confidence, Resamples: o.Resamples,
			Seed: o.Seed}}
	for i := range runs {
		r := &runs[i]
		d := Described{Name: r.Name, ID: r.Record.ID, Status: r.Record.Status, Workload: r.Record.Workload.Name}
		if r.Steps != nil {
			d.Steps, d.Chunks = r.Steps.Steps(), r.Steps.Chunks()
		}
		res.Runs = append(res.Runs, d)
		if err := r.check(); err != nil {
			return nil, err
		}
		if i == 0 {
			continue
		}
		res.Unlike = append(res.Unlike, of(i, Unlike(runs[0].Record, r.Record))...)
		res.Context = append(res.Context, of(i, Context(runs[0].Record, r.Record))...)
	}
	if len(res.Unlike) > 0 {
		if res.Refused, res.Anyway = !anyway, anyway; res.Refused {
			return res, nil
		}
	}
	for i := range runs[1:] {
		res.Comparisons = append(res.Comparisons, Against{i + 1, against(&runs[0], &runs[i+1], o)})
	}
	res.Same = same(runs)
	res.Configurations = configurations(runs, res.Same)
	return res, nil
}

func of(run int, list []Difference) []Difference {
	for i := range list {
		list[i].Run = run
	}
	return list
}

// check holds the step times of a run to its record: an interval around another figure than the one shown would say nothing.
func (r *Run) check() error {
	for _, f := range checkpointFigures() {
		recorded := r.Record.Metrics.Other[strings.TrimPrefix(f.name, "other.")].Value
		v, ok := f.values(r.Record)
		if recorded == nil || !ok || len(v) == 0 {
			continue
		}
		if m := mean(v); math.Abs(m-*recorded) > 1e-9*math.Abs(*recorded) {
			return fmt.Errorf("%s: %w: %s is %v in the record, and %v by its checkpoints", r.Name, ErrOther, f.name, *recorded, m)
		}
	}
	if r.Steps == nil {
		return nil
	}
	m := &r.Record.Metrics
	for f, recorded := range map[Figure]record.Figure{AU: m.AU, AUPrescribed: m.Other["au_prescribed"], SamplesPerSecond: m.SamplesPerSecond, BytesPerSecond: m.BytesPerSecond} {
		v, ok := r.Steps.Value(f)
		if recorded.Value == nil {
			continue // for reasons that step times do not have, such as no prescribed compute time
		}
		if !ok || math.Abs(v-*recorded.Value) > 1e-9*math.Abs(*recorded.Value) {
			return fmt.Errorf("%s: %w: %s is %v in the record, and %v by its steps", r.Name, ErrOther, f, *recorded.Value, v)
		}
	}
	return nil
}

// figures are all figures of a run that are compared: those of its steps, and the other headline figures of its record.
func (r *Run) figures() []report.Named {
	var out []report.Named
	recorded := report.Headline(r.Record)
	for _, f := range formulas() {
		n := report.Named{Name: string(f.figure), Figure: record.Figure{Unit: f.unit, Class: record.HostOnly, Absent: "the run has no step times"}}
		fromRecord := false
		for _, h := range recorded {
			if h.Name == n.Name {
				n.Figure, fromRecord = h.Figure, true
			}
		}
		if !fromRecord && r.Steps != nil {
			if v, ok := r.Steps.Value(f.figure); ok {
				n.Figure.Value, n.Figure.Absent = &v, ""
			} else {
				n.Figure.Absent = "no step is in the window"
			}
		}
		out = append(out, n)
	}
	for _, h := range recorded {
		if _, ok := formulaOf(Figure(h.Name)); !ok {
			out = append(out, h)
		}
	}
	return out
}

// against compares the figures that both runs know.
func against(a, b *Run, o Options) []Comparison {
	first, other := a.figures(), map[string]record.Figure{}
	for _, n := range b.figures() {
		other[n.Name] = n.Figure
	}
	drawn, saved := intervals(a, b, first, other, o), checkpointRatios(a.Record, b.Record, o)
	var out []Comparison
	for _, n := range first {
		f, ok := other[n.Name]
		if !ok || n.Figure.Value == nil && f.Value == nil && a.Steps == nil && b.Steps == nil {
			continue // such as the rates of runs that write checkpoints alone
		}
		c := Comparison{Figure: n.Name, Unit: n.Figure.Unit, Better: better(n.Name), First: n.Figure.Value, Other: f.Value, Verdict: NotJudged}
		if c.First != nil && c.Other != nil && *c.First != 0 {
			ratio := *c.Other / *c.First
			c.Ratio = &ratio
		}
		checkpoint, ofCheckpoints := saved[n.Name]
		switch {
		case c.First == nil:
			c.Reason = "absent in the first run: " + n.Figure.Absent
		case c.Other == nil:
			c.Reason = "absent in this run: " + f.Absent
		case ofCheckpoints:
			c.judge(checkpoint)
		case a.Steps == nil || b.Steps == nil:
			c.Reason = "no step times"
		default:
			c.judge(drawn[n.Name])
		}
		out = append(out, c)
	}
	return out
}

// intervals are what step times say of each figure that follows from them, by its name.
func intervals(a, b *Run, first []report.Named, other map[string]record.Figure, o Options) map[string]result {
	out := map[string]result{}
	if a.Steps == nil || b.Steps == nil {
		return out
	}
	for i, r := range ratios(a.Steps, b.Steps, formulas(), o) {
		out[string(formulas()[i].figure)] = r
	}
	var figures []quantileFigure
	var recorded []float64
	for _, f := range quantileFigures() {
		for _, n := range first {
			x, y := n.Figure.Value, other[n.Name].Value
			if n.Name == f.name && x != nil && y != nil && *x > 0 && *y > 0 {
				figures, recorded = append(figures, f), append(recorded, *y / *x)
			}
		}
	}
	for i, r := range quantileRatios(&a.Steps.all, &b.Steps.all, figures, recorded, o) {
		out[figures[i].name] = r
	}
	return out
}

// judge gives a figure its verdict. The zero result is that of a figure that follows neither from step times nor from checkpoints, or is 0.
func (c *Comparison) judge(r result) {
	e := r.estimate
	switch {
	case r.err != nil:
		c.Reason = r.err.Error()
		return
	case e == Estimate{}:
		c.Reason = "no interval follows from step times for it"
		return
	}
	c.Low, c.High = &e.Low, &e.High
	switch {
	case e.Noise():
		c.Verdict = Noise
	case e.Low > 1:
		c.Verdict = Higher
	default:
		c.Verdict = Lower
	}
}

// better is which direction of a figure is the good one.
func better(name string) string {
	if f, ok := formulaOf(Figure(name)); ok {
		switch {
		case f.figure == ComputeMean || f.figure == BarrierMean:
			return "" // sleeping is prescribed, and who waits at the barrier waits for another's data
		case f.higher:
			return Higher
		}
		return Lower
	}
	switch {
	case strings.HasSuffix(name, "au") || strings.HasSuffix(name, "au_prescribed") || strings.Contains(name, "per_second"):
		return Higher
	case strings.HasSuffix(name, "bytes_device"):
		return ""
	}
	return Lower
}

// configurations summarises the runs that have all in common, each once.
func configurations(runs []Run, again []Same) []Configuration {
	var groups [][]int
next:
	for i := range runs {
		if slices.ContainsFunc(again, func(s Same) bool { return s.Run == i }) {
			continue
		}
		for g, members := range groups {
			first := runs[members[0]].Record
			if len(Unlike(first, runs[i].Record)) == 0 && len(Context(first, runs[i].Record)) == 0 {
				groups[g] = append(members, i)
				continue next
			}
		}
		groups = append(groups, []int{i})
	}
	out := []Configuration{}
	for _, members := range groups {
		if len(members) > 1 {
			out = append(out, Configuration{members, summarise(runs, members)})
		}
	}
	return out
}

// summarise leaves out the figures that one of the runs does not have.
func summarise(runs []Run, members []int) []Summary {
	out := []Summary{}
	values := map[string][]float64{}
	for _, i := range members {
		for _, n := range runs[i].figures() {
			if n.Figure.Value != nil {
				values[n.Name] = append(values[n.Name], *n.Figure.Value)
			}
		}
	}
	for _, n := range runs[members[0]].figures() {
		v := values[n.Name]
		if len(v) != len(members) {
			continue
		}
		s := Summary{Figure: n.Name, Unit: n.Figure.Unit, Min: v[0], Max: v[0]}
		for _, x := range v {
			s.Mean += x / float64(len(v))
			s.Min, s.Max = min(s.Min, x), max(s.Max, x)
		}
		for _, x := range v {
			s.Stdev += float64((x - s.Mean) * (x - s.Mean))
		}
		s.Stdev = math.Sqrt(s.Stdev / float64(len(v)-1))
		if s.Mean != 0 {
			cv := s.Stdev / math.Abs(s.Mean)
			s.CV = &cv
		}
		out = append(out, s)
	}
	return out
}
