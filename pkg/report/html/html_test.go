package html

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	xhtml "golang.org/x/net/html"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
)

func ptr[T any](v T) *T { return &v }

func fig(v float64, unit string) record.Figure {
	return record.Figure{Value: &v, Unit: unit, Class: record.HostOnly}
}

// sample is a record with something in every part that the page shows.
func sample() *record.Record {
	r := &record.Record{
		Schema: record.SchemaName, ID: "20261130T141500Z-3f9c2a", Status: record.StatusComplete, Started: "2026-11-30T14:15:00Z", Finished: "2026-11-30T14:15:09.5Z",
		Tool:     record.Tool{Name: "benchpin", Version: "v1.2.3", Commit: "abc", Go: "go1.26", Platform: "linux/amd64", Binary: "blake3:" + strings.Repeat("b", 64)},
		Workload: record.Workload{Name: "unet3d", Digest: "blake3:" + strings.Repeat("1", 64), Source: "blake3:" + strings.Repeat("2", 64), Overrides: []string{"a=b"}, Canonical: json.RawMessage(`{}`)},
		Dataset: record.Dataset{Class: "C", Root: "blake3:" + strings.Repeat("3", 64), Manifest: "blake3:" + strings.Repeat("4", 64), Files: 12, Bytes: 12 << 20, Generated: true, Seed: "1",
			Verification: record.Verification{Class: "H", Mode: "before", Files: 12, Bytes: 12 << 20, Seconds: 1}},
		Plan:       record.Plan{Class: "C", Accelerators: 2, Epochs: 2, BatchSize: 1, StepsPerEpoch: 6, AUThreshold: 90, RequiredBytesPerSecond: ptr(1e8), Checkpoints: 1, CheckpointReads: 1},
		Transcript: record.Transcript{Class: "C", Root: "blake3:5", Expected: "blake3:5", Entries: 24, Ranks: []string{"blake3:6"}},
		Checkpoints: record.Checkpoints{Class: "C", Saves: []record.Checkpoint{{Name: "global_epoch1_step6", Bytes: 1e6, Digest: "blake3:7", Seconds: []float64{0.5, 0.75}, WriteSeconds: []float64{0.4, 0.5}}},
			Loads: []record.CheckpointLoad{{Name: "global_epoch1_step6", Bytes: 1e6, Seconds: []float64{0.25, 0.5}, DeviceBytes: ptr(record.Int(7)), Verified: true}}},
		Environment: record.Environment{Class: "H", Host: record.Host{Name: "node1", OS: "linux", Kernel: "6.1", Distribution: "Debian", Vendor: "v", Product: "p"}, CPU: record.CPU{Model: "Xeon", Cores: ptr(4)},
			Folders: []record.Folder{{Role: "data", MountPoint: "/", FileSystem: "ext4", Device: record.Device{Name: "vda", Model: "m"}}}, Sysctls: map[string]string{"vm.swappiness": "60"},
			Container: record.Container{Kind: "none", Evidence: []string{"e"}}, Unknown: []record.Unknown{{Field: "cpu.governor", Reason: "no"}}},
		Journal:  &record.Journal{Class: "H", Head: "blake3:8", Entries: 3, Attempt: 2},
		ReplayOf: &record.ReplayOf{Class: "H", Archive: "sha256:9", Record: "blake3:a", Run: "other"},
		Metrics: record.Metrics{AU: fig(93.456, "%"), Threshold: record.Figure{Value: ptr(90.0), Unit: "%", Class: "C"}, Met: ptr(true), SamplesPerSecond: fig(24, "samples/s"), BytesPerSecond: fig(25e6, "B/s"),
			Other: map[string]record.Figure{"au_prescribed": fig(92, "%")}, DLIO: map[string]any{}},
		Files: []record.File{{Name: "steps.parquet", Size: 100, Blake3: "blake3:b"}},
	}
	for _, name := range []string{"step", "load", "compute", "barrier", "oversleep"} {
		for i, q := range []string{"_p50", "_p90", "_p99", "_max", "_total"} {
			r.Metrics.Other[name+q] = fig(0.01*float64(i+1), "s")
		}
	}
	for i, name := range []string{"queue", "open", "read", "decode", "other"} {
		r.Metrics.Other["wait_"+name+"_total"] = fig(0.01*float64(i), "s")
	}
	for _, name := range []string{"open_total", "read_total", "decode_total"} {
		r.Metrics.Other[name] = fig(0.5, "s")
	}
	for epoch := 1; epoch <= 2; epoch++ {
		r.Metrics.Epochs = append(r.Metrics.Epochs, record.EpochMetrics{Epoch: epoch, Steps: 6, Seconds: fig(1.5, "s"), AU: fig(93, "%"), SamplesPerSecond: fig(24, "samples/s"), BytesPerSecond: fig(25e6, "B/s"),
			BytesAsked: fig(12e6, "B"), BytesDevice: fig(13e6/float64(epoch), "B"), Waits: &record.Waits{Class: "H", Steps: record.WaitParts{Load: record.Spread{Total: 1}, Read: record.Spread{Total: 0.75}}},
			Storage: &record.Storage{Memory: fig(6e6, "B"), Files: 12, LookedAt: 6, Direct: true, Dropped: &record.Dropped{Cached: fig(1, "B"), Seconds: fig(1, "s")}, Sentence: "most",
				FileSystems: []record.FileSystemTraffic{{MountPoint: "/", Type: "ext4", Asked: fig(12e6, "B"), Disk: fig(13e6, "B"), Network: record.Figure{Unit: "B", Class: "H", Absent: "no server"}},
					{MountPoint: "/b", Type: "xfs", Asked: fig(1, "B")}}}})
	}
	r.Metrics.Evaluation = &record.EvaluationMetrics{AU: fig(99, "%"), Passes: r.Metrics.Epochs[:1]}
	return r
}

// steps are so many steps of 100 ms for each of two accelerators.
func steps(t testing.TB, n int) *Series {
	t.Helper()
	s := NewSeries(2)
	const ms = 1_000_000
	for i := range n {
		for rank := range 2 {
			st := Step{Epoch: 1 + i*2/n, Rank: rank, Start: int64(i) * 100 * ms, Load: 20 * ms, Compute: 70 * ms, Proc: 90 * ms, Barrier: 10 * ms}
			if err := s.Add(&st); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

func run(t testing.TB) Run {
	return Run{Name: "runs/a", Record: sample(), Digest: "blake3:r", Archive: "sha256:a", Steps: steps(t, 12), Eval: steps(t, 4), Verification: &Verification{Holds: true, Signers: []string{"k"}, Times: []string{"t"}, Assurance: "a", Notes: []string{"n"},
		Checks: []report.Check{{Name: "content", Class: "C", OK: true, Evidence: "e", Limits: "l"}, {Name: "form", Class: "C", Problem: "p", Evidence: "e", Limits: "l"}}}}
}

func write(t testing.TB, runs ...Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, runs, Options{Writer: "benchpin v1"}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPageIsSelfContained: nothing is loaded, run or sent, and the style sheet is the one that the policy allows.
func TestPageIsSelfContained(t *testing.T) {
	page := write(t, run(t), run(t))
	root, err := xhtml.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	ids, refs := map[string]bool{}, []string{}
	css, policies := "", ""
	for n := range root.Descendants() {
		if n.Type != xhtml.ElementNode {
			continue
		}
		switch n.Data {
		case "script", "link", "img", "iframe", "object", "embed", "form", "base", "image", "use", "foreignObject", "video", "audio":
			t.Errorf("the page has an element %s", n.Data)
		case "style":
			css = n.FirstChild.Data
		case "meta":
			if n.Attr[0].Val == "Content-Security-Policy" {
				policies += n.Attr[1].Val
			}
		}
		for _, a := range n.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src":
				t.Errorf("%s has an attribute %s", n.Data, a.Key)
			case a.Key == "href":
				if !strings.HasPrefix(a.Val, "#") {
					t.Errorf("a link leads to %s", a.Val)
				}
				refs = append(refs, a.Val[1:])
			case a.Key == "aria-labelledby" || a.Key == "aria-describedby":
				refs = append(refs, a.Val)
			case a.Key == "id":
				if ids[a.Val] {
					t.Errorf("two elements have the id %s", a.Val)
				}
				ids[a.Val] = true
			}
		}
	}
	for _, r := range refs {
		if !ids[r] {
			t.Errorf("nothing has the id %s", r)
		}
	}
	if css != style || regexp.MustCompile(`(?i)@import|url\(`).MatchString(css) {
		t.Errorf("the style sheet was changed on its way, or loads something")
	}
	if _, policy := sheet(); policies != policy {
		t.Errorf("the page carries the policy %q, expected %q", policies, policy)
	}
}

// TestReadableWithoutEyes: landmarks, one first heading and no level left out, heads of tables that say what they head, and pictures with
// a name, a description and a table.
func TestReadableWithoutEyes(t *testing.T) {
	for _, page := range []string{write(t, run(t)), write(t, run(t), run(t))} {
		root, err := xhtml.Parse(strings.NewReader(page))
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		level := 0
		for n := range root.Descendants() {
			if n.Type != xhtml.ElementNode {
				continue
			}
			count[n.Data]++
			attr := map[string]string{}
			for _, a := range n.Attr {
				attr[a.Key] = a.Val
			}
			switch n.Data {
			case "h1", "h2", "h3", "h4":
				next := int(n.Data[1] - '0')
				if next > level+1 {
					t.Errorf("a heading %s follows one of level %d", n.Data, level)
				}
				level = next
			case "th":
				if attr["scope"] != "col" && attr["scope"] != "row" {
					t.Errorf("a th without scope")
				}
			case "table":
				if n.FirstChild.Data != "caption" {
					t.Errorf("a table begins with %s, expected its caption", n.FirstChild.Data)
				}
			case "svg":
				if attr["role"] == "img" && (attr["aria-labelledby"] == "" || attr["aria-describedby"] == "") {
					t.Errorf("a picture without name or description")
				}
			case "figure":
				if tables := strings.Count(render(t, n), "<table"); tables != 1 {
					t.Errorf("a picture has %d tables behind it, expected 1", tables)
				}
			}
		}
		for _, one := range []string{"main", "header", "footer", "nav", "h1", "title"} {
			if one != "title" && count[one] != 1 {
				t.Errorf("%d elements %s, expected 1", count[one], one)
			}
		}
		if count["figure"] < 7 {
			t.Errorf("%d pictures, expected all", count["figure"])
		}
	}
}

func render(t testing.TB, n *xhtml.Node) string {
	var b bytes.Buffer
	if err := xhtml.Render(&b, n); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPageSaysWhatItKnows: headline, figures with their class, and who stands for them.
func TestPageSaysWhatItKnows(t *testing.T) {
	r := run(t)
	for _, c := range []struct {
		name   string
		change func(*Run)
		want   []string
	}{
		{"met", func(*Run) {}, []string{"AU 93.45 % meets its threshold", "Verified: 2 checks", "24.0", "25.0", "0.750 s|750 ms", "Read back"}},
		{"missed", func(r *Run) { r.Record.Metrics.Met = ptr(false) }, []string{"AU 93.45 % misses its threshold"}},
		{"incomplete", func(r *Run) { r.Record.Status, r.Record.Reason = record.StatusIncomplete, "interrupted" }, []string{"No result: the run is incomplete", "interrupted"}},
		{"fails", func(r *Run) { r.Verification.Holds = false }, []string{"No result: it does not verify", "Verification failed: 1 of 2 checks"}},
		{"unverified", func(r *Run) { r.Verification = nil }, []string{"Not verified: for this page nobody checked a signature"}},
		{"folder", func(r *Run) { r.Verification, r.Archive = nil, "" }, []string{"Not signed: this is a run folder", "benchpin attest"}},
		{"checkpoints", func(r *Run) {
			r.Record.Plan.Epochs, r.Record.Metrics.Epochs, r.Steps = 0, nil, nil
			r.Record.Metrics.Other = map[string]record.Figure{"save_checkpoint_seconds_mean": fig(0.75, "s")}
		}, []string{"1 checkpoint written, 1 checkpoint read back", "750"}},
		{"empty", func(r *Run) {
			r.Record.Metrics = record.NoMetrics(90, "it ended early")
			r.Steps = NewSeries(2)
		}, []string{"it ended early"}},
		{"absent", func(r *Run) {
			for i := range r.Record.Metrics.Epochs {
				r.Record.Metrics.Epochs[i].BytesDevice = record.Figure{Unit: "B", Class: "H", Absent: "no counters"}
			}
		}, []string{"No bytes from the device: no counters."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r = run(t)
			c.change(&r)
			_, texts := skeleton(t, write(t, r))
			for _, want := range c.want {
				if !regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(want), `\|`, "|")).MatchString(texts) {
					t.Errorf("the page lacks %q", want)
				}
			}
			for _, odd := range []string{"NaN", "+Inf", "-Inf", "%!", "<nil>"} {
				if strings.Contains(texts, odd) {
					t.Errorf("the page says %s", odd)
				}
			}
		})
	}
}

// TestUnlikeRunsAreNamed: runs of different data stand beside each other with a warning.
func TestUnlikeRunsAreNamed(t *testing.T) {
	a, b := run(t), run(t)
	if strings.Contains(write(t, a, b), "These runs are unlike") {
		t.Error("equal runs are called unlike")
	}
	b.Record.Dataset.Root = "blake3:other"
	if page := write(t, a, b); !strings.Contains(page, "They differ in the data set.") {
		t.Error("the page does not say that the data differs")
	}
}

// TestSizeIsBounded: a page of a million steps and thousands of epochs and accelerators is about as large as one of few, and the same input
// gives the same bytes.
func TestSizeIsBounded(t *testing.T) {
	r := run(t)
	r.Steps = NewSeries(2)
	g := rand.New(rand.NewPCG(1, 2))
	var at int64
	for i := range 500_000 {
		for rank := range 2 {
			load, compute := g.Int64N(1<<20+1), 5_000_000+g.Int64N(1_000_000)
			if err := r.Steps.Add(&Step{Epoch: 1 + i/100, Rank: rank, Start: at, Load: load, Compute: compute, Proc: load + compute}); err != nil {
				t.Fatal(err)
			}
		}
		at += 8_000_000
	}
	for i := range 5000 {
		e := r.Record.Metrics.Epochs[0]
		e.Epoch = i + 1
		r.Record.Metrics.Epochs = append(r.Record.Metrics.Epochs, e)
		s := r.Record.Checkpoints.Saves[0]
		s.Seconds = make([]float64, 1000)
		r.Record.Checkpoints.Saves = append(r.Record.Checkpoints.Saves, s)
		r.Record.Files = append(r.Record.Files, r.Record.Files[0])
		r.Record.Environment.Unknown = append(r.Record.Environment.Unknown, r.Record.Environment.Unknown[0])
	}
	page := write(t, r)
	if len(page) > 600_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	if again := write(t, r); again != page {
		t.Error("the same run gives another page")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestErrors(t *testing.T) {
	if err := Write(&bytes.Buffer{}, nil, Options{}); err == nil {
		t.Error("a page of no runs was made")
	}
	if err := Write(&bytes.Buffer{}, make([]Run, MostRuns+1), Options{}); err == nil {
		t.Error("a page of too many runs was made")
	}
	if err := Write(full{}, []Run{run(t)}, Options{}); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("a full disk: %v", err)
	}
}

// TestEvaluationIsDrawn: the passes have pictures of their own, with percentiles from their own steps.
func TestEvaluationIsDrawn(t *testing.T) {
	with := run(t)
	without := run(t)
	without.Eval = nil
	page := write(t, with)
	for _, want := range []string{`<section id="evaluation"`, "What the accelerators did in the passes", `id="evaluation-1-c"`, `id="evaluation-step-1-c"`, `id="evaluation-load-1-c"`, "pass 1", "pass 2"} {
		if !strings.Contains(page, want) {
			t.Errorf("expected %q on the page", want)
		}
	}
	if page := write(t, without); strings.Contains(page, `id="evaluation"`) {
		t.Error("a run without evaluation has a part about it")
	}
	if page := write(t, without, with); !strings.Contains(page, "This run has nothing to show here.") {
		t.Error("of two runs, the one without evaluation does not say so")
	}
	h := new(histogram)
	for v := range int64(1000) {
		h.add((v + 1) * 1e6)
	}
	for key, want := range map[string]float64{"load_p50": 0.5, "load_p90": 0.9, "load_p99": 0.99, "load_max": 1} {
		if v, ok := drawn(h)(key); !ok || v < want || v > want*1.001 {
			t.Errorf("%s: expected %v or less than 0.1 %% above, found %v", key, want, v)
		}
	}
	if _, ok := drawn(new(histogram))("load_p50"); ok {
		t.Error("a percentile of nothing")
	}
}

// TestAdviceOnThePage is there for a run that missed its AU, and for no other.
func TestAdviceOnThePage(t *testing.T) {
	r := run(t)
	if strings.Contains(write(t, r), "Why AU") {
		t.Error("advice for a run that met its AU")
	}
	m := &r.Record.Metrics
	m.Met, m.AU = ptr(false), fig(40, "%")
	r.Record.Plan.ComputeSeconds, r.Record.Plan.SamplesPerEpoch, r.Record.Plan.ReadThreads = 0.07, 12, 4
	for _, page := range []string{write(t, r), write(t, r, run(t))} {
		for _, want := range []string{"Why AU was not met", "<dt>Measured</dt><dd>readers (2 accelerators, 4 each) worked ", "<dt>Try</dt><dd>--set reader."} {
			if !strings.Contains(page, want) {
				t.Errorf("expected %q on the page", want)
			}
		}
	}
}

// TestIsPage: a page is known by its first lines, and a page of another program, or one that only speaks of benchpin, is none.
func TestIsPage(t *testing.T) {
	page := write(t, run(t))
	if !IsPage([]byte(page)) || !IsPage([]byte(page[:1<<14])) {
		t.Error("a page is not known again")
	}
	for what, other := range map[string]string{
		"nothing":          "",
		"of another":       strings.Replace(page, `content="benchpin v1"`, `content="other"`, 1),
		"the name behind":  strings.Replace(page, `content="benchpin v1"`, `content="other"`, 1) + "\n" + `<meta name="generator" content="benchpin v1">`,
		"cut in the head":  page[:300],
		"text before":      "x" + page,
		"another language": strings.Replace(page, `lang="en"`, `lang="de"`, 1),
	} {
		if IsPage([]byte(other)) {
			t.Errorf("%s: taken for a page", what)
		}
	}
}
