package compare

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/record"
)

// runOf is a run of made-up steps, with the record that they give.
func runOf(t *testing.T, name string, m madeUp, seed uint64) Run {
	t.Helper()
	rows := m.rows(rand.New(rand.NewPCG(seed, 0)))
	metrics, err := stats.Summarise(background, file(t, rows), stats.Params{Accelerators: m.ranks, Epochs: m.epochs, StepsPerEpoch: m.steps, BatchSize: 4,
		ExcludeStart: 1, AUThreshold: 90})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Read(background, file(t, rows), WindowOf(m.steps, 1, 0))
	if err != nil {
		t.Fatal(err)
	}
	canonical := []byte(`{"metric":{"au":0.9},"reader":{"read_threads":4},"train":{"epochs":2}}`)
	return Run{Name: name, Steps: s, Record: &record.Record{
		ID: fmt.Sprintf("20261130T141500Z-%06x", seed), Status: record.StatusComplete,
		Workload:   record.Workload{Name: "w", Digest: record.Digest(canonical), Canonical: canonical},
		Dataset:    record.Dataset{Root: "blake3:1"},
		Transcript: record.Transcript{Root: "blake3:2", Expected: "blake3:2"},
		Metrics:    metrics,
	}}
}

func fast() madeUp { return madeUp{epochs: 2, ranks: 2, steps: 80, load: spread(2_000_000, 100_000)} }
func slow() madeUp { return madeUp{epochs: 2, ranks: 2, steps: 80, load: spread(2_250_000, 100_000)} }

func figureOf(t *testing.T, a Against, name string) Comparison {
	t.Helper()
	for _, c := range a.Figures {
		if c.Figure == name {
			return c
		}
	}
	t.Fatalf("no figure %s", name)
	return Comparison{}
}

func TestCompare(t *testing.T) {
	runs := []Run{runOf(t, "a", fast(), 1), runOf(t, "b", slow(), 2), runOf(t, "c", fast(), 3)}
	res, err := Compare(runs, false, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if res.Refused || res.Anyway || len(res.Unlike) > 0 || len(res.Comparisons) != 2 {
		t.Fatalf("%+v", res)
	}
	worse, same := res.Comparisons[0], res.Comparisons[1]
	for name, want := range map[string]string{"au": Lower, "samples_per_second": Lower, "bytes_per_second": Lower, "step_mean": Higher, "load_mean": Higher,
		"compute_mean": Noise, "other.step_p50": Higher, "other.load_p50": Higher, "other.step_p99": NotJudged, "epochs.seconds": NotJudged} {
		c := figureOf(t, worse, name)
		if c.Verdict != want || (c.Reason == "") == (want == NotJudged) || c.Ratio == nil || (c.Low == nil) != (want == NotJudged) {
			t.Errorf("%+v, expected %s", c, want)
		}
		if c := figureOf(t, same, name); c.Verdict != Noise && c.Verdict != NotJudged {
			t.Errorf("equal runs: %+v", c)
		}
	}
	if c := figureOf(t, worse, "au"); *c.First != *runs[0].Record.Metrics.AU.Value || *c.Other != *runs[1].Record.Metrics.AU.Value {
		t.Errorf("%+v has not the figures of the records", c)
	}
	// All three are of one configuration.
	if len(res.Configurations) != 1 || !slices.Equal(res.Configurations[0].Runs, []int{0, 1, 2}) {
		t.Fatalf("%+v", res.Configurations)
	}
	s := res.Configurations[0].Figures[0]
	x, y, z := *runs[0].Record.Metrics.AU.Value, *runs[1].Record.Metrics.AU.Value, *runs[2].Record.Metrics.AU.Value
	mean := (x + y + z) / 3
	stdev := math.Sqrt(((x-mean)*(x-mean) + (y-mean)*(y-mean) + (z-mean)*(z-mean)) / 2)
	if s.Figure != "au" || math.Abs(s.Mean-mean) > 1e-9 || math.Abs(s.Stdev-stdev) > 1e-9 || math.Abs(*s.CV-stdev/mean) > 1e-9 || s.Min != min(x, y, z) || s.Max != max(x, y, z) {
		t.Errorf("%+v", s)
	}

	// Another machine is no reason to refuse, and another configuration.
	runs[1].Record.Environment.Host.Name = "other"
	if res, err = Compare(runs, false, Options{}); err != nil || res.Refused || len(res.Context) != 1 || !slices.Equal(res.Configurations[0].Runs, []int{0, 2}) {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestRunNamedTwice: one measurement is no repetition, whatever it is called.
func TestRunNamedTwice(t *testing.T) {
	a, b := runOf(t, "a", fast(), 1), runOf(t, "b", slow(), 2)
	again := a
	again.Name = "archive of a"
	res, err := Compare([]Run{a, again}, false, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Configurations) != 0 || len(res.Comparisons) != 1 || !slices.Equal(res.Same, []Same{{1, 0, a.Record.ID}}) {
		t.Errorf("%+v", res)
	}
	if res, err = Compare([]Run{a, again, b, again}, false, Options{}); err != nil {
		t.Fatal(err)
	}
	if len(res.Configurations) != 1 || !slices.Equal(res.Configurations[0].Runs, []int{0, 2}) || !slices.Equal(res.Same, []Same{{1, 0, a.Record.ID}, {3, 0, a.Record.ID}}) {
		t.Errorf("%+v", res)
	}
	if res, err = Compare([]Run{a, b}, false, Options{}); err != nil || res.Same != nil {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestUnlikeThingsAreRefused(t *testing.T) {
	for want, change := range map[string]func(r *record.Record){
		"status status":                       func(r *record.Record) { r.Status = record.StatusIncomplete },
		"data root dataset.root":              func(r *record.Record) { r.Dataset.Root = "blake3:3" },
		"schedule transcript.root":            func(r *record.Record) { r.Transcript.Root = "blake3:3" },
		"schedule transcript.evaluation.root": func(r *record.Record) { r.Transcript.Evaluation = &record.EvaluationTranscript{Root: "blake3:4"} },
		"rules metric.au, workload workload.digest": func(r *record.Record) {
			r.Workload.Canonical = []byte(`{"metric":{"au":0.5},"reader":{"read_threads":4},"train":{"epochs":2}}`)
		},
		"rules benchpin.verify, workload workload.digest, workload reader.read_threads, workload train.seed": func(r *record.Record) {
			r.Workload.Canonical = []byte(`{"benchpin":{"verify":"none"},"metric":{"au":0.9},"reader":{"read_threads":8},"train":{"epochs":2,"seed":1}}`)
		},
	} {
		runs := []Run{runOf(t, "a", fast(), 1), runOf(t, "b", fast(), 2)}
		change(runs[1].Record)
		runs[1].Record.Workload.Digest = record.Digest(runs[1].Record.Workload.Canonical)
		res, err := Compare(runs, false, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, d := range res.Unlike {
			if d.Run != 1 || d.First == d.Other {
				t.Errorf("%+v", d)
			}
			found = append(found, d.Item+" "+d.Field)
		}
		if strings.Join(found, ", ") != want || !res.Refused || len(res.Comparisons)+len(res.Configurations) != 0 {
			t.Errorf("%s: found %v, %+v", want, found, res)
		}
		if res, err = Compare(runs, true, Options{}); err != nil || res.Refused || !res.Anyway || len(res.Comparisons) != 1 || len(res.Configurations) != 0 {
			t.Errorf("anyway: %+v, %v", res, err)
		}
		var page bytes.Buffer
		if err := res.WriteText(&page); err != nil || !strings.HasPrefix(page.String(), "COMPARED ANYWAY: these are not like things") {
			t.Errorf("not on top: %q, %v", page.String(), err)
		}
	}
	// Two that ended early are alike, and no results.
	runs := []Run{runOf(t, "a", fast(), 1), runOf(t, "b", fast(), 2)}
	runs[0].Record.Status, runs[1].Record.Status = record.StatusIncomplete, record.StatusIncomplete
	if res, err := Compare(runs, false, Options{}); err != nil || !res.Refused {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestStepsOfAnotherRunAreRefused(t *testing.T) {
	runs := []Run{runOf(t, "a", fast(), 1), runOf(t, "b", slow(), 2)}
	runs[1].Steps = runs[0].Steps
	if _, err := Compare(runs, false, Options{}); !errors.Is(err, ErrOther) {
		t.Errorf("%v", err)
	}
	if _, err := Compare(runs[:1], false, Options{}); err == nil {
		t.Error("one run was compared")
	}
}

// Runs without step times, and figures that one of the runs does not have, are shown and not judged.
func TestWhatIsNotJudged(t *testing.T) {
	runs := []Run{runOf(t, "a", fast(), 1), runOf(t, "b", fast(), 2)}
	runs[1].Steps = nil
	runs[1].Record.Metrics.AU = record.Figure{Unit: "%", Class: record.HostOnly, Absent: "no reason"}
	res, err := Compare(runs, false, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range res.Comparisons[0].Figures {
		if c.Verdict != NotJudged || c.Reason == "" || c.Low != nil {
			t.Errorf("%+v", c)
		}
	}
	if c := figureOf(t, res.Comparisons[0], "au"); c.Ratio != nil || c.Other != nil || !strings.Contains(c.Reason, "no reason") {
		t.Errorf("%+v", c)
	}
}

// Of runs that write checkpoints alone, what none of them can have is not shown.
func TestRunsWithoutSteps(t *testing.T) {
	runs := []Run{runOf(t, "a", fast(), 1), runOf(t, "b", fast(), 2)}
	for i := range runs {
		v := float64(i + 2)
		runs[i].Steps, runs[i].Record.Metrics = nil, record.NoMetrics(90, "checkpoints only")
		runs[i].Record.Metrics.Other["save_checkpoint_seconds_mean"] = record.Figure{Value: &v, Unit: "s", Class: record.HostOnly}
	}
	res, err := Compare(runs, false, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := res.Comparisons[0].Figures
	if len(c) != 1 || *c[0].Ratio != 1.5 || c[0].Verdict != NotJudged || c[0].Better != Lower {
		t.Errorf("%+v", c)
	}
	if s := res.Configurations[0].Figures; len(s) != 1 || s[0].Mean != 2.5 {
		t.Errorf("%+v", s)
	}
}

// Pages and tables show hostile names as text, CSV can be read again with the numbers to the last bit, and JSON holds no numbers that it cannot.
func TestWriting(t *testing.T) {
	const hostile = "=cmd()|<script>\n\x1b[2J| [x](http://e) @all"
	runs := []Run{runOf(t, hostile, fast(), 1), runOf(t, "b", slow(), 2)}
	runs[1].Record.Workload.Name = hostile
	runs[1].Record.Dataset.Root = hostile
	res, err := Compare(runs, true, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var text, md, table bytes.Buffer
	if err := errors.Join(res.WriteText(&text), res.WriteMarkdown(&md), res.WriteCSV(&table)); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]string{"text": text.String(), "markdown": md.String(), "csv": table.String()} {
		if strings.Contains(s, "\x1b") || strings.Contains(s, hostile) {
			t.Errorf("%s: %s", name, s)
		}
	}
	if s := md.String(); strings.Contains(s, "<") || strings.Contains(s, "http:/") || strings.Contains(s, "](") || strings.Contains(s, "@") {
		t.Errorf("markdown: %s", s)
	}
	for _, line := range strings.Split(md.String(), "\n") {
		if strings.HasPrefix(line, "| samples") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 7 {
			t.Errorf("columns of %q", line)
		}
	}
	rows, err := csv.NewReader(&table).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(rows[0], "first_value")
	if rows[1][1] != "au" || rows[1][at] != number(runs[0].Record.Metrics.AU.Value) || !strings.HasPrefix(rows[1][slices.Index(rows[0], "first")], "'=") {
		t.Errorf("%q", rows[1])
	}
	if !strings.Contains(rows[1][len(rows[1])-1], "data root") {
		t.Errorf("%q does not say that these are no like things", rows[1])
	}
	if _, err := json.Marshal(res); err != nil {
		t.Error(err)
	}
}
