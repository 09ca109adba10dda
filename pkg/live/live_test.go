package live

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// made are counts of two accelerators after so many seconds: half of the time they compute, a quarter they wait for data.
func made(seconds float64) Counts {
	ns := time.Duration(seconds * 1e9)
	device := int64(7000 + 300*seconds)
	c := Counts{Elapsed: ns, Accelerators: 2, Epoch: 1, Epochs: 2, Step: int64(seconds), Steps: 10, Samples: int64(4 * seconds), SamplesTotal: 80, Bytes: int64(400 * seconds),
		BytesTotal: 8000, Compute: ns, Prescribed: ns, Window: 2 * ns, Threshold: 90, Device: &device}
	c.Spent = [Phases]time.Duration{Idle: 0, Load: ns / 2, Compute: ns, Barrier: ns / 2}
	c.Worked = [Works]time.Duration{Open: ns / 10, Read: ns / 2, Decode: ns / 5}
	return c
}

// followed hands out counts, one each second, and returns the samples made of them.
func followed(t *testing.T, counts ...Counts) []Sample {
	t.Helper()
	var list []Sample
	f := follower{Options: Options{Run: "r", Each: func(s Sample) { list = append(list, s) }}}
	for i, c := range counts {
		f.Counts = func() (Counts, bool) { return c, true }
		f.look(i == len(counts)-1)
	}
	return list
}

func is(t *testing.T, name string, found *float64, want float64) {
	t.Helper()
	if found == nil || math.Abs(*found-want) > 1e-9*max(1, want) {
		t.Errorf("%s: expected %v, found %s", name, want, shown(found))
	}
}

func shown(v *float64) string {
	if v == nil {
		return "none"
	}
	return fmt.Sprint(*v)
}

// TestSample compares the figures of samples with what made-up counts give by hand.
func TestSample(t *testing.T) {
	second := made(4)
	second.Epoch, second.EpochBegan, second.EpochSamples, second.EpochBytes = 2, 3*time.Second, 12, 1200
	second.Samples, second.Bytes = 20, 2000 // twice as fast as before
	list := followed(t, made(2), second)
	a, b := list[0], list[1]
	is(t, "samples/s now", a.Now.Samples, 4)
	is(t, "bytes/s overall", a.Overall.Bytes, 400)
	if a.Now.Device != nil || a.Overall.Device != nil {
		t.Error("a device rate after one look: nothing to take a difference from")
	}
	is(t, "samples/s now", b.Now.Samples, 6)
	is(t, "samples/s of the epoch", b.OfEpoch.Samples, 8)
	is(t, "samples/s overall", b.Overall.Samples, 5)
	is(t, "bytes/s now", b.Now.Bytes, 600)
	is(t, "bytes/s of the epoch", b.OfEpoch.Bytes, 800)
	is(t, "bytes/s overall", b.Overall.Bytes, 500)
	is(t, "device now", b.Now.Device, 300)
	is(t, "device overall", b.Overall.Device, 300)
	is(t, "AU", b.AU, 50)
	is(t, "threshold", b.Threshold, 90)
	is(t, "left", b.Left, 4*60./20)
	for name, want := range map[string]float64{"compute": 0.5, "load": 0.25, "barrier": 0.25, "idle": 0, "hash": 0, "checkpoint": 0} {
		if v := b.Shares[name]; math.Abs(v-want) > 1e-9 {
			t.Errorf("share of %s: expected %v, found %v", name, want, v)
		}
	}
	if a.Slowest != "compute" || a.Last || !b.Last {
		t.Errorf("found slowest %q, last %v and %v", a.Slowest, a.Last, b.Last)
	}
}

// TestSlowest: the phase that took the most time, and where data are waited for, the part of the readers' work that did.
func TestSlowest(t *testing.T) {
	for want, change := range map[string]func(c *Counts){
		"compute":    func(*Counts) {},
		"read":       func(c *Counts) { c.Spent[Load] += 9 * time.Second },
		"decode":     func(c *Counts) { c.Spent[Load] += 9 * time.Second; c.Worked[Decode] += 9 * time.Second },
		"open":       func(c *Counts) { c.Spent[Load] += 9 * time.Second; c.Worked[Open] += 9 * time.Second },
		"preprocess": func(c *Counts) { c.Spent[Load] += 9 * time.Second; c.Worked[Preprocess] += 9 * time.Second },
		"load":       func(c *Counts) { c.Spent[Load] += 9 * time.Second; c.Worked = [Works]time.Duration{} },
		"barrier":    func(c *Counts) { c.Spent[Barrier] += 9 * time.Second },
		"checkpoint": func(c *Counts) { c.Spent[Checkpoint] += 9 * time.Second },
		"hash":       func(c *Counts) { c.Spent[Hash] += 9 * time.Second },
		"idle":       func(c *Counts) { c.Spent[Idle] += 9 * time.Second },
	} {
		c := made(4)
		change(&c)
		if s := followed(t, c)[0]; s.Slowest != want {
			t.Errorf("expected %s, found %s: %v %v", want, s.Slowest, s.Shares, s.Work)
		}
	}
	// No step ended since: what was slowest before is said to be.
	c := made(4)
	c.Spent[Load] += 9 * time.Second
	stuck := c
	stuck.Elapsed += time.Second
	stuck.Spent[Load] += 2 * time.Second
	if s := followed(t, c, stuck)[1]; s.Slowest != "read" || s.Work != nil || s.Shares["load"] != 1 {
		t.Errorf("expected a wait for reading, found %s: %v %v", s.Slowest, s.Shares, s.Work)
	}
}

// TestAbsent: what is not known is not 0.
func TestAbsent(t *testing.T) {
	s := followed(t, Counts{Steps: 4, BytesTotal: 100})[0]
	for name, v := range map[string]*float64{"samples/s": s.Now.Samples, "bytes/s": s.Now.Bytes, "device": s.Now.Device, "AU": s.AU, "threshold": s.Threshold, "left": s.Left} {
		if v != nil {
			t.Errorf("%s: expected none, found %v", name, *v)
		}
	}
	if s.Shares != nil || s.Work != nil || s.Slowest != "" {
		t.Errorf("found %v, %v, %q of no time", s.Shares, s.Work, s.Slowest)
	}
}

// TestAnotherRun: turns of one run begin again, and no rate is negative.
func TestAnotherRun(t *testing.T) {
	again := made(1)
	s := followed(t, made(3), again)[1]
	is(t, "samples/s now", s.Now.Samples, 4)
	if s.Now.Device != nil {
		t.Errorf("a device rate over the end of a run: %v", *s.Now.Device)
	}
}

// TestFollow takes a sample each second and one at the end, and waits for one that is slow to be shown.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		var last []bool
		end := Follow(Options{Counts: func() (Counts, bool) {
			return made(time.Since(began).Seconds()), time.Since(began) > 1500*time.Millisecond
		},
			Each: func(s Sample) {
				at, last = append(at, time.Since(began)), append(last, s.Last)
				if len(at) == 2 {
					time.Sleep(1700 * time.Millisecond)
				}
			}})
		time.Sleep(5500 * time.Millisecond)
		end()
		if got := fmt.Sprint(at, last); got != "[2s 3s 4.7s 5s 5.5s] [false false false false true]" {
			t.Errorf("found %s", got)
		}
	})
}

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.Compile("../../schemas/live-v1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFile appends lines, each a document of the schema, behind what a file has.
func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "live.jsonl")
	before := `{"schema":"benchpin.live/v1","run":"before"}`
	if err := os.WriteFile(name, []byte(before+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(name)
	if err != nil {
		t.Fatal(err)
	}
	list := followed(t, Counts{Epochs: 1, Steps: 1}, made(1), made(2))
	for _, s := range list {
		if err := f.Write(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if len(lines) != 4 || lines[0] != before {
		t.Fatalf("found %q", lines)
	}
	form := schema(t)
	for _, l := range lines[1:] {
		var v any
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Fatal(err)
		}
		if err := form.Validate(v); err != nil {
			t.Errorf("%s: %v", l, err)
		}
	}
}

// TestFileOfSomethingElse: what is not a file of samples stays as it is, to the byte.
func TestFileOfSomethingElse(t *testing.T) {
	dir := t.TempDir()
	for i, content := range []string{"before\n", "{\"media_type\":\"x\"}\n", "\n", "{}", `{"schema":"benchpin.live/v1","run":"half a line`,
		"{\"schema\":\"benchpin.live/v2\"}\n", "null\n", strings.Repeat("x", 2*longestLine) + "\n", "\x00\x01"} {
		name := filepath.Join(dir, strconv.Itoa(i))
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenFile(name); !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "something else") {
			t.Errorf("%.40q: expected a refusal, found %v", content, err)
		}
		if found, err := os.ReadFile(name); err != nil || string(found) != content {
			t.Errorf("%.40q became %.40q: %v", content, found, err)
		}
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{empty, filepath.Join(dir, "new")} {
		f, err := OpenFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{dir, filepath.Join(dir, "no", "new"), filepath.Join(empty, "new")} {
		if _, err := OpenFile(name); !errors.Is(err, ErrUnfit) {
			t.Errorf("%s: expected ErrUnfit, found %v", name, err)
		}
	}
}

// TestPipes: one that nobody reads is refused at once, one whose reader leaves or sleeps is given up, and said so once.
func TestPipes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(name); err == nil || !strings.Contains(err.Error(), "nobody reads") {
		t.Fatalf("expected a refusal, found %v", err)
	}
	reader, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(name)
	if err != nil {
		t.Fatal(err)
	}
	s := followed(t, made(1))[0]
	if err := f.Write(s); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(reader).ReadString('\n'); err != nil || !strings.Contains(line, `"run":"r"`) {
		t.Errorf("read %q: %v", line, err)
	}
	began := time.Now()
	for err == nil {
		err = f.Write(s) // until the pipe is full, and nobody has read for a while
	}
	if !strings.Contains(err.Error(), "no more are written") || time.Since(began) > 20*patience {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	if err := f.Write(s); err != nil {
		t.Errorf("expected the error once, found another: %v", err)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	if _, err := OpenFile(t.TempDir()); err == nil {
		t.Error("a folder was opened")
	}
}

// TestLine is the line of a log, for each kind of run.
func TestLine(t *testing.T) {
	eval := made(8)
	eval.Evaluation = true
	only := Counts{Elapsed: 4e9, Steps: 3, Step: 1, Epoch: 1, Epochs: 1, Bytes: 5e9, BytesTotal: 12e9, Spent: [Phases]time.Duration{Checkpoint: 4e9}}
	waits := made(4)
	waits.Spent[Load] += 8 * time.Second
	drops := made(4)
	drops.Dropped, drops.ToDrop = 512, 8192
	for _, c := range []struct {
		counts Counts
		want   string
	}{
		{drops, "epoch 1 of 2, step 4 of 10, 20 % done; 4.00 samples/s, 400 B/s now; 4.00 samples/s, 400 B/s overall; AU 50.00 % so far; " +
			"dropping the data set from the page cache: 512 of 8,192 files; about 16s left"},
		{made(4), "epoch 1 of 2, step 4 of 10, 20 % done; 4.00 samples/s, 400 B/s now; 4.00 samples/s, 400 B/s overall; AU 50.00 % so far; " +
			"slowest now: computing (50 %); about 16s left"},
		{waits, "epoch 1 of 2, step 4 of 10, 20 % done; 4.00 samples/s, 400 B/s now; 4.00 samples/s, 400 B/s overall; AU 50.00 % so far; " +
			"slowest now: reading (62 % waiting for data); about 16s left"},
		{eval, "evaluation after epoch 1 of 2, 40 % done; 4.00 samples/s, 400 B/s now; 4.00 samples/s, 400 B/s overall; AU 50.00 % so far; " +
			"slowest now: computing (50 %); about 12s left"},
		{only, "checkpoint 2 of 3, 42 % done; 1.25 GB/s now; 1.25 GB/s overall; slowest now: checkpoints (100 %); about 6s left"},
		{Counts{Epochs: 1, Steps: 10, SamplesTotal: 10}, "epoch 1 of 1, step 0 of 10, 0 % done"},
	} {
		if got := followed(t, c.counts)[0]; got.Line() != c.want {
			t.Errorf("expected %s\n   found %s", c.want, got.Line())
		}
	}
}

// TestScreenOfDropping: who waits before an epoch sees for what, and nothing of it when it is over.
func TestScreenOfDropping(t *testing.T) {
	c := made(4)
	for _, toDrop := range []int64{0, 8192} {
		c.ToDrop = toDrop
		s := followed(t, c)[0]
		text := strings.Join(s.lines(), "\n")
		if strings.Contains(text, "dropping the data set from the page cache: 0 of 8,192 files") != (toDrop > 0) || strings.Contains(text, "dropping") != (toDrop > 0) {
			t.Errorf("%d files to drop:\n%s", toDrop, text)
		}
	}
}

// terminal is a screen of so many columns that knows the escape sequences that Screen uses, and no others.
type terminal struct {
	t       *testing.T
	columns int
	lines   [][]rune
	row     int
	column  int
}

func (v *terminal) Write(p []byte) (int, error) {
	s := string(p)
	for s != "" {
		if rest, ok := strings.CutPrefix(s, "\x1b["); ok {
			i := strings.IndexAny(rest, "AJ")
			if i < 0 {
				v.t.Fatalf("unknown sequence in %q", s)
			}
			if rest[i] == 'A' {
				n, err := strconv.Atoi(rest[:i])
				if err != nil || n > v.row {
					v.t.Fatalf("moved up %q lines from line %d", rest[:i], v.row)
				}
				v.row -= n
			} else {
				v.lines = v.lines[:min(v.row, len(v.lines))]
			}
			s = rest[i+1:]
			continue
		}
		r := []rune(s)[0]
		s = s[len(string(r)):]
		switch r {
		case '\r':
			v.column = 0
		case '\n':
			v.row, v.column = v.row+1, 0
		default:
			if v.column == v.columns {
				v.t.Fatalf("a line is longer than the %d columns", v.columns)
			}
			for len(v.lines) <= v.row {
				v.lines = append(v.lines, nil)
			}
			v.lines[v.row] = append(v.lines[v.row][:min(v.column, len(v.lines[v.row]))], r)
			v.column++
		}
	}
	return len(p), nil
}

func (v *terminal) text() string {
	var b strings.Builder
	for _, l := range v.lines {
		b.WriteString(string(l) + "\n")
	}
	return b.String()
}

// TestScreen draws samples over each other, on wide, narrow and unknown terminals, and leaves nothing behind.
func TestScreen(t *testing.T) {
	for _, columns := range []int{200, 80, 40, 20, 0} {
		width := columns
		if width == 0 {
			width = 80
		}
		v := &terminal{t: t, columns: width}
		fmt.Fprint(v, "before\n")
		screen := NewScreen(v, func() int { return columns })
		samples := followed(t, Counts{Epochs: 2, Steps: 10, SamplesTotal: 80}, made(1), made(4))
		for _, s := range samples {
			screen.Show(s)
		}
		if columns == 200 {
			want := `before
epoch 1 of 2, step 4 of 10  [#####-------------------] 20 %  4s, about 16s left
  now      4.00 samples/s, 400 B/s, 300 B/s from devices
  epoch    4.00 samples/s, 400 B/s
  overall  4.00 samples/s, 400 B/s, 300 B/s from devices
  AU       50.00 % so far, threshold 90 %
  slowest  computing: 25 % waiting for data, 50 % computing, 25 % waiting for each other
`
			if v.text() != want {
				t.Errorf("expected\n%sfound\n%s", want, v.text())
			}
		}
		screen.Show(samples[0]) // fewer lines than before
		if n := strings.Count(v.text(), "\n"); n != 2 {
			t.Errorf("%d columns: expected 2 lines, found\n%s", columns, v.text())
		}
		screen.Clear()
		screen.Clear()
		fmt.Fprint(v, "after\n")
		if v.text() != "before\nafter\n" {
			t.Errorf("%d columns: found\n%s", columns, v.text())
		}
	}
}

// TestExporter scrapes as Prometheus does, and asks its own linter about what comes.
func TestExporter(t *testing.T) {
	e, err := NewExporter()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(e)
	defer server.Close()
	scrape := func() string {
		t.Helper()
		res, err := http.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("status %d: %v", res.StatusCode, err)
		}
		return string(b)
	}
	if found := scrape(); found != "" {
		t.Errorf("before a run: found %s", found)
	}
	for _, s := range followed(t, made(1), made(4)) {
		e.Show(s)
	}
	found := scrape()
	for _, want := range []string{
		`benchpin_run_info{run="r"} 1`, "benchpin_run_ended 1", "benchpin_elapsed_seconds 4", "benchpin_left_seconds 16", "benchpin_accelerators 2", "benchpin_epoch 1",
		"benchpin_epochs 2", "benchpin_step 4", "benchpin_steps 10", "benchpin_samples_total 16", "benchpin_samples_planned 80", "benchpin_asked_bytes_total 1600",
		"benchpin_planned_bytes 8000", "benchpin_device_bytes_total 900", "benchpin_au_ratio 0.5", "benchpin_au_threshold_ratio 0.9",
		`benchpin_accelerator_seconds_total{phase="compute"} 4`, `benchpin_accelerator_seconds_total{phase="load"} 2`, `benchpin_reader_seconds_total{work="read"} 2`,
		"# TYPE benchpin_samples_total counter", "# TYPE benchpin_au_ratio gauge",
	} {
		if !strings.Contains(found, want+"\n") {
			t.Errorf("expected %q in\n%s", want, found)
		}
	}
	problems, err := promlint.New(bytes.NewReader([]byte(found))).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promtool would say: %v %v", problems, err)
	}
	for _, f := range figures() {
		if !strings.Contains(found, "# HELP "+f.name+" ") {
			t.Errorf("%s was not scraped", f.name)
		}
	}
}
