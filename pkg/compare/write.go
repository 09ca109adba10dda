package compare

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
)

// most bounds the differences that a page lists for each run.
const most = 12

// WriteText writes a result as a page for people.
func (r *Result) WriteText(w io.Writer, options ...report.Option) error {
	return report.WriteText(w, r.grids(), options...)
}

// WriteMarkdown writes a result as tables in Markdown.
func (r *Result) WriteMarkdown(w io.Writer) error { return report.WriteMarkdown(w, r.grids()) }

// grids are the tables of a page. That unlike things were compared stands on top.
func (r *Result) grids() []report.Grid {
	var out []report.Grid
	if len(r.Unlike) > 0 {
		g := differenceGrid(r.Unlike, r.Runs)
		g.Title = "REFUSED: these are not like things"
		if r.Anyway {
			g.Title = "COMPARED ANYWAY: these are not like things, and what follows does not say which is better"
		}
		out = append(out, g)
	}
	runs := report.Grid{Title: "Runs", Head: []string{"", "run", "id", "workload", "status", "steps"}, Left: 5}
	for i, d := range r.Runs {
		runs.Rows = append(runs.Rows, []string{letter(i), d.Name, d.ID, d.Workload, d.Status, strconv.FormatInt(d.Steps, 10)})
	}
	for _, s := range r.Same {
		runs.Notes = append(runs.Notes, fmt.Sprintf("%s is %s: both are run %s, one measurement, which no summary counts twice", letter(s.Run), letter(s.As), s.ID))
	}
	out = append(out, runs)
	for _, a := range r.Comparisons {
		out = append(out, r.comparison(&a))
	}
	for _, c := range r.Configurations {
		out = append(out, summaryGrid(&c))
	}
	if len(r.Context) > 0 {
		g := differenceGrid(r.Context, r.Runs)
		g.Title = "What else differs"
		out = append(out, g)
	}
	if !r.Refused {
		out = append(out, report.Grid{Notes: []string{fmt.Sprintf("Intervals hold the ratio in %s of 100 cases as far as the noise between the steps of a run tells. "+
			"What changes from run to run is not in them: repeat runs to see it.", strconv.FormatFloat(100*r.Method.Confidence, 'g', 4, 64))}})
	}
	return out
}

func differenceGrid(list []Difference, runs []Described) report.Grid {
	g := report.Grid{Head: []string{"what", "where", letter(0), "run", "has"}, Left: 5}
	shown := map[int]int{}
	for _, d := range list {
		if shown[d.Run]++; shown[d.Run] > most {
			continue
		}
		g.Rows = append(g.Rows, []string{d.Item, d.Field, d.First, letter(d.Run), d.Other})
	}
	for i := range runs {
		if n := shown[i]; n > most {
			g.Notes = append(g.Notes, fmt.Sprintf("%s: %d more, see --json", letter(i), n-most))
		}
	}
	return g
}

// letter names a run on a page: A, B, and so on, then 27, 28.
func letter(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return strconv.Itoa(i + 1)
}

func (r *Result) comparison(a *Against) report.Grid {
	g := report.Grid{
		Title: fmt.Sprintf("%s against %s", letter(a.Run), letter(0)),
		Head:  []string{"figure", letter(0), letter(a.Run), letter(a.Run) + " / " + letter(0), "interval", "difference"}, Left: 1,
	}
	reasons := map[string][]string{}
	var order []string
	for _, c := range a.Figures {
		interval := "-"
		if c.Low != nil {
			interval = ratioText(c.Low) + " to " + ratioText(c.High)
		}
		g.Rows = append(g.Rows, []string{c.Figure, valueOf(c.First, c.Unit), valueOf(c.Other, c.Unit), ratioText(c.Ratio), interval, c.verdictText()})
		if c.Reason != "" {
			if reasons[c.Reason] == nil {
				order = append(order, c.Reason)
			}
			reasons[c.Reason] = append(reasons[c.Reason], c.Figure)
		}
	}
	for _, reason := range order {
		names := reasons[reason]
		if len(names) > 3 {
			names = append(names[:2:2], fmt.Sprintf("%d others", len(names)-2))
		}
		g.Notes = append(g.Notes, "not judged: "+strings.Join(names, ", ")+": "+reason)
	}
	return g
}

func (c *Comparison) verdictText() string {
	switch c.Verdict {
	case Noise:
		return "noise"
	case NotJudged:
		return "-"
	}
	if c.Better == "" {
		return c.Verdict
	}
	if c.Verdict == c.Better {
		return c.Verdict + ", better"
	}
	return c.Verdict + ", worse"
}

func valueOf(v *float64, unit string) string {
	if v == nil {
		return "-"
	}
	switch unit {
	case "B", "B/s":
		// One unit is enough where values stand beside each other.
		text, _, _ := strings.Cut(report.FigureText(record.Figure{Value: v, Unit: unit}), " (")
		return text
	}
	return report.FigureText(record.Figure{Value: v, Unit: unit})
}

func ratioText(v *float64) string {
	if v == nil {
		return "-"
	}
	if *v >= 1000 || *v < 0.001 && *v != 0 {
		return strconv.FormatFloat(*v, 'g', 4, 64)
	}
	return strconv.FormatFloat(*v, 'f', 4, 64)
}

func summaryGrid(c *Configuration) report.Grid {
	var names []string
	for _, i := range c.Runs {
		names = append(names, letter(i))
	}
	g := report.Grid{
		Title: fmt.Sprintf("%d runs of one configuration: %s", len(c.Runs), strings.Join(names, ", ")),
		Head:  []string{"figure", "mean", "standard deviation", "coefficient of variation", "least", "most"}, Left: 1,
	}
	for _, s := range c.Figures {
		cv := "-"
		if s.CV != nil {
			cv = strconv.FormatFloat(100**s.CV, 'f', 2, 64) + " %"
		}
		g.Rows = append(g.Rows, []string{s.Figure, valueOf(&s.Mean, s.Unit), valueOf(&s.Stdev, s.Unit), cv, valueOf(&s.Min, s.Unit), valueOf(&s.Max, s.Unit)})
	}
	return g
}

// WriteCSV writes a result as one table: a row for each figure of each run but the first ("comparison"), and one for each figure of each
// configuration ("summary"). The column unlike names in what the run is no like thing, empty where it is one.
func (r *Result) WriteCSV(w io.Writer) error {
	unlike := map[int][]string{}
	for _, d := range r.Unlike {
		unlike[d.Run] = append(unlike[d.Run], d.Item+" "+d.Field)
	}
	var rows [][]string
	if r.Refused {
		for i := 1; i < len(r.Runs); i++ {
			if unlike[i] != nil {
				rows = append(rows, []string{"refused", "", "", r.Runs[0].Name, r.Runs[i].Name, "", "", "", "", "", "", "", "", "", "", "", "", strings.Join(unlike[i], "; ")})
			}
		}
	}
	for _, a := range r.Comparisons {
		for _, c := range a.Figures {
			rows = append(rows, []string{"comparison", c.Figure, c.Unit, r.Runs[0].Name, r.Runs[a.Run].Name, number(c.First), number(c.Other), number(c.Ratio),
				number(c.Low), number(c.High), c.Verdict, c.Reason, "", "", "", "", "", strings.Join(unlike[a.Run], "; ")})
		}
	}
	for _, c := range r.Configurations {
		var names []string
		for _, i := range c.Runs {
			names = append(names, r.Runs[i].Name)
		}
		for _, s := range c.Figures {
			rows = append(rows, []string{"summary", s.Figure, s.Unit, strings.Join(names, " "), "", "", "", "", "", "", "", "", number(&s.Mean), number(&s.Stdev),
				number(s.CV), number(&s.Min), number(&s.Max), ""})
		}
	}
	return report.WriteCSV(w, []string{"kind", "figure", "unit", "first", "other", "first_value", "other_value", "ratio", "low", "high", "verdict", "reason",
		"mean", "stdev", "cv", "min", "max", "unlike"}, rows)
}

func number(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}

// Reasons says in one line why the runs are no like things: for an error.
func (r *Result) Reasons() string {
	var items []string
	seen := map[string]bool{}
	for _, d := range r.Unlike {
		if seen[d.Item] {
			continue
		}
		seen[d.Item] = true
		items = append(items, fmt.Sprintf("%s (%s: %s, and %s in %s)", d.Item, d.Field, report.Clean(d.First), report.Clean(d.Other),
			report.Clean(cmp.Or(r.Runs[d.Run].Name, letter(d.Run)))))
	}
	return strings.Join(items, ", ")
}
