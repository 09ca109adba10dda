package report

import (
	"fmt"
	"io"
	"strconv"

	"github.com/benchpin/benchpin/pkg/record"
)

// Run is a record that stands beside others, and how the user calls it.
type Run struct {
	Name   string
	Record *record.Record
}

// SideBySide are the tables of runs beside each other: what they are, and their headline figures with the class of each. No figure is judged:
// whether runs may be compared at all, and whether a difference is noise, is for package compare.
func SideBySide(runs []Run) []Grid {
	about := Grid{Title: "Runs", Head: []string{""}, Left: len(runs) + 1}
	figures := Grid{Title: "Figures", Head: []string{"figure", "class"}, Left: 2}
	for _, r := range runs {
		about.Head = append(about.Head, r.Name)
		figures.Head = append(figures.Head, r.Name)
	}
	for _, row := range []struct {
		label string
		of    func(r *record.Record) string
	}{
		{"run", func(r *record.Record) string { return r.ID }},
		{"status", func(r *record.Record) string { return r.Status }},
		{"started", func(r *record.Record) string { return r.Started }},
		{"workload", func(r *record.Record) string { return r.Workload.Name }},
		{"accelerators", func(r *record.Record) string { return strconv.Itoa(r.Plan.Accelerators) }},
		{"AU threshold", func(r *record.Record) string { return ThresholdText(r.Plan.AUThreshold, "%") }},
		{"AU threshold met", func(r *record.Record) string { return Met(r) }},
		{"data", func(r *record.Record) string {
			return plural(r.Dataset.Files, "file") + ", " + decimalBytes(float64(r.Dataset.Bytes))
		}},
		{"verified", func(r *record.Record) string { return r.Dataset.Verification.Mode }},
		{"workload digest", func(r *record.Record) string { return short(r.Workload.Digest) }},
		{"data root", func(r *record.Record) string { return short(r.Dataset.Root) }},
		{"transcript root", func(r *record.Record) string { return short(r.Transcript.Root) }},
	} {
		cells := []string{row.label}
		for i := range runs {
			cells = append(cells, row.of(runs[i].Record))
		}
		about.Rows = append(about.Rows, cells)
	}
	shown := false
	for _, name := range headline() {
		cells, class, known := []string{name, ""}, "", false
		for i := range runs {
			text := "-"
			for _, n := range Headline(runs[i].Record) {
				if n.Name != name {
					continue
				}
				class, known = string(n.Figure.Class), true
				if n.Figure.Value != nil {
					text = FigureText(n.Figure)
				}
			}
			cells = append(cells, text)
		}
		if cells[1] = class; known {
			figures.Rows = append(figures.Rows, cells)
			shown = true
		}
	}
	out := []Grid{about}
	if shown {
		figures.Notes = []string{"Classes: C anyone can compute it again, W a third party witnessed it, H only the host says so. A figure that is absent is \"-\"."}
		out = append(out, figures)
	}
	return out
}

// Met says whether AU reaches its threshold: "yes", "no" or "not judged".
func Met(r *record.Record) string {
	switch m := r.Metrics.Met; {
	case r.Status != record.StatusComplete || m == nil:
		return "not judged"
	case *m:
		return "yes"
	}
	return "no"
}

// short is the beginning of a digest: enough to see whether two are the same, where the whole does not fit.
func short(digest string) string {
	const most = len("blake3:") + 16
	if len(digest) <= most {
		return digest
	}
	return digest[:most] + "..."
}

// WriteFiguresCSV writes all figures of runs as one table with a row for each figure of each run.
func WriteFiguresCSV(w io.Writer, runs []Run) error {
	var rows [][]string
	for i := range runs {
		r := runs[i].Record
		for _, n := range allFigures(r) {
			value := ""
			if v := n.Figure.Value; v != nil {
				value = strconv.FormatFloat(*v, 'g', -1, 64)
			}
			rows = append(rows, []string{runs[i].Name, r.ID, r.Status, r.Workload.Name, n.Name, value, n.Figure.Unit, string(n.Figure.Class), n.Figure.Absent})
		}
	}
	if err := WriteCSV(w, []string{"run", "id", "status", "workload", "figure", "value", "unit", "class", "absent"}, rows); err != nil {
		return fmt.Errorf("figures: %w", err)
	}
	return nil
}

func allFigures(r *record.Record) []Named { return append(Figures(r), Totals(r)...) }

// FigureDocument is a figure in a Document.
type FigureDocument struct {
	Figure string       `json:"figure"`
	Value  *float64     `json:"value"`
	Unit   string       `json:"unit"`
	Class  record.Class `json:"class"`
	Absent string       `json:"absent,omitempty"`
}

// RunDocument is a run in a Document.
type RunDocument struct {
	Name           string           `json:"name"`
	ID             string           `json:"id"`
	Status         string           `json:"status"`
	Started        string           `json:"started"`
	Workload       string           `json:"workload"`
	WorkloadDigest string           `json:"workload_digest"`
	DatasetRoot    string           `json:"dataset_root"`
	TranscriptRoot string           `json:"transcript_root"`
	Accelerators   int              `json:"accelerators"`
	Met            *bool            `json:"au_met"`
	Figures        []FigureDocument `json:"figures"`
}

// Document is what "report --format json" prints: the figures of runs beside each other.
type Document struct {
	Runs []RunDocument `json:"runs"`
}

// NewDocument makes the document of some runs.
func NewDocument(runs []Run) Document {
	d := Document{Runs: []RunDocument{}}
	for i := range runs {
		r := runs[i].Record
		one := RunDocument{Name: runs[i].Name, ID: r.ID, Status: r.Status, Started: r.Started, Workload: r.Workload.Name, WorkloadDigest: r.Workload.Digest,
			DatasetRoot: r.Dataset.Root, TranscriptRoot: r.Transcript.Root, Accelerators: r.Plan.Accelerators, Met: r.Metrics.Met, Figures: []FigureDocument{}}
		for _, n := range allFigures(r) {
			one.Figures = append(one.Figures, FigureDocument{n.Name, n.Figure.Value, n.Figure.Unit, n.Figure.Class, n.Figure.Absent})
		}
		d.Runs = append(d.Runs, one)
	}
	return d
}
