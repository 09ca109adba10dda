package stats

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/record"
	"pgregory.net/rapid"
)

// steady is a run whose figures can be told in the head: per step 10 ms of load, 90 ms of compute, no wait, first step slow.
func steady(epochs int, steps int64, ranks int) run {
	r := run{p: Params{Accelerators: ranks, Epochs: epochs, StepsPerEpoch: steps, BatchSize: 4, ExcludeStart: 1, AUThreshold: 90,
		RecordBytes: 1 << 20}}
	const ms = 1_000_000
	clock := int64(0)
	for e := 1; e <= epochs; e++ {
		start := clock
		for s := int64(1); s <= steps; s++ {
			load := int64(10 * ms)
			if s == 1 {
				load = 400 * ms
			}
			for k := range ranks {
				st := Step{Epoch: int32(e), Step: s, Rank: int32(k), Block: 1, BlockStart: start, Start: clock, Load: load,
					Compute: 90 * ms, Prescribed: 90 * ms, Proc: load + 90*ms, Samples: 4, Bytes: 4000}
				st.BlockEnd = st.End()
				r.rows = append(r.rows, st)
			}
			clock += load + 90*ms
		}
	}
	return r
}

func TestKnownAnswer(t *testing.T) {
	m := metricsOf(t, steady(2, 11, 3))
	for name, tc := range map[string]struct {
		f    record.Figure
		want float64
	}{
		"AU":              {m.AU, 90},
		"samples/s":       {m.SamplesPerSecond, 3 * 4 / 0.1},
		"bytes/s":         {m.BytesPerSecond, 3 * 4000 / 0.1},
		"epoch AU":        {m.Epochs[1].AU, 90},
		"epoch seconds":   {m.Epochs[1].Seconds, 1.49},
		"epoch bytes":     {m.Epochs[0].BytesAsked, 11 * 3 * 4000},
		"load p50":        {m.Other["load_p50"], 0.01},
		"load max":        {m.Other["load_max"], 0.4},
		"load total":      {m.Other["load_total"], 3 * 2 * (0.4 + 0.1)},
		"oversleep max":   {m.Other["oversleep_max"], 0},
		"au prescribed":   {m.Other["au_prescribed"], 90},
		"threshold":       {m.Threshold, 90},
		"bytes asked":     {m.Other["bytes_asked"], 2 * 11 * 3 * 4000},
		"excluded waits":  {m.Other["excluded_barrier_total"], 0},
		"step p99":        {m.Other["step_p99"], 0.49},
		"compute p99.9":   {m.Other["compute_p99_9"], 0.09},
		"barrier maximum": {m.Other["barrier_max"], 0},
	} {
		if tc.f.Value == nil || math.Abs(*tc.f.Value-tc.want) > 1e-3*tc.want {
			t.Errorf("%s is %v, want %v", name, show(tc.f), tc.want)
		}
	}
	if m.Met == nil || !*m.Met {
		t.Error("AU 90% does not meet a threshold of 90%")
	}
	// DLIO: the window's ten computes over the block less the first step; two steps fewer than the block has, per rank and summed.
	wantDLIO := map[string]any{
		"train_au_percentage": []float64{90, 90}, "train_au_mean_percentage": 90.0, "train_au_stdev_percentage": 0.0,
		"train_au_meet_expectation":                "success",
		"train_throughput_samples_per_second":      []float64{108, 108},
		"train_throughput_mean_samples_per_second": 108.0, "train_throughput_stdev_samples_per_second": 0.0,
		"train_io_mean_MB_per_second": 108.0, "train_io_stdev_MB_per_second": 0.0,
	}
	if !reflect.DeepEqual(m.DLIO, wantDLIO) {
		t.Errorf("DLIO's figures are\n%v\nwant\n%v", m.DLIO, wantDLIO)
	}
	if m.Epochs[0].BytesDevice.Value != nil || m.Epochs[0].BytesDevice.Absent == "" {
		t.Errorf("device bytes that nobody counted are %v", show(m.Epochs[0].BytesDevice))
	}
}

func show(f record.Figure) any {
	if f.Value == nil {
		return "absent: " + f.Absent
	}
	return *f.Value
}

func TestThresholdMissed(t *testing.T) {
	r := steady(1, 11, 2)
	r.p.AUThreshold = 90.01
	if m := metricsOf(t, r); m.Met == nil || *m.Met || m.DLIO["train_au_meet_expectation"] != "fail" {
		t.Errorf("threshold 90.01 with AU %v: met %v, DLIO %v", show(m.AU), m.Met, m.DLIO["train_au_meet_expectation"])
	}
	r.p.Partial = true
	if m := metricsOf(t, r); m.Met != nil || len(m.DLIO) != 0 {
		t.Error("a partial run was judged")
	}
}

func TestAbsentFigures(t *testing.T) {
	empty := steady(1, 2, 1)
	empty.p.ExcludeStart, empty.p.ExcludeEnd = 1, 1
	idle := steady(1, 5, 1)
	for i := range idle.rows {
		idle.rows[i].Prescribed = 0
	}
	still := steady(1, 3, 1)
	for i := range still.rows {
		still.rows[i] = Step{Epoch: 1, Step: int64(i + 1), Block: 1, Samples: 4, Prescribed: 1}
	}
	for name, tc := range map[string]struct {
		r    run
		want string
		rate bool
		dlio int
	}{
		"empty window": {empty, "nothing was run in the window: 2 steps an epoch, without the first 1 and the last 1", false, 0},
		"no compute":   {idle, "prescribes no compute time", true, 9},
		"no time":      {still, "no time passed", false, 0},
	} {
		m := metricsOf(t, tc.r)
		if m.AU.Value != nil || !strings.Contains(m.AU.Absent, tc.want) || m.Met != nil {
			t.Errorf("%s: AU %v, met %v; want it absent with %q", name, show(m.AU), m.Met, tc.want)
		}
		if (m.SamplesPerSecond.Value != nil) != tc.rate {
			t.Errorf("%s: samples/s %v", name, show(m.SamplesPerSecond))
		}
		if len(m.DLIO) != tc.dlio {
			t.Errorf("%s: DLIO's figures %v", name, m.DLIO)
		}
	}
}

// DLIO's own results: its run-level figures follow from its figures of the epochs by our arithmetic.
func TestRunLevelEqualsDLIO(t *testing.T) {
	files, err := filepath.Glob("testdata/dlio/*.json")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d files in testdata/dlio: %v", len(files), err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			RecordBytes float64 `json:"record_length_bytes"`
			AU          float64
			Metric      map[string]any
		}
		if err := json.Unmarshal(b, &d); err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		au, rate := floats(d.Metric["train_au_percentage"]), floats(d.Metric["train_throughput_samples_per_second"])
		dlioSummary(got, au, rate, Params{AUThreshold: 100 * d.AU, RecordBytes: d.RecordBytes})
		if len(got) != len(d.Metric) {
			t.Errorf("%s: %d figures, DLIO has %d", name, len(got), len(d.Metric))
		}
		for k, want := range d.Metric {
			switch want := want.(type) {
			case float64:
				if g, ok := got[k].(float64); !ok || !near(g, want) {
					t.Errorf("%s: %s is %v, DLIO has %v", name, k, got[k], want)
				}
			case string:
				if got[k] != want {
					t.Errorf("%s: %s is %v, DLIO has %v", name, k, got[k], want)
				}
			}
		}
	}
}

func floats(v any) []float64 {
	var f []float64
	for _, x := range v.([]any) {
		f = append(f, x.(float64))
	}
	return f
}

// near allows for another order of float additions.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(1, math.Abs(b)) }

// The formulas as DLIO's documentation of its code states them, on Python lists; and the corrected ones from their definition, by
// other means than ours: sets of steps, and all sums at the end.
const oracleScript = `
import sys, json
runs = json.load(sys.stdin)
out = []
for run in runs:
    p, rows = run["p"], run["rows"]
    R, E, N, B = p["Accelerators"], p["Epochs"], p["StepsPerEpoch"], p["BatchSize"]
    s, e_end = p["ExcludeStart"], N - 1 - p["ExcludeEnd"]
    epochs_au, epochs_thr = [], []
    C_all = T_all = P_all = samples_all = wall_all = 0
    for epoch in range(1, E + 1):
        aus, thrs = [], []
        for rank in range(R):
            mine = [r for r in rows if r["Epoch"] == epoch and r["Rank"] == rank]
            au = thr = total = 0.0
            for block in sorted({r["Block"] for r in mine}):
                b = [r for r in mine if r["Block"] == block]
                compute = [r["Compute"] / 1e9 for r in b]
                proc = [r["Proc"] / 1e9 for r in b]
                W = max(r["BlockEnd"] for r in b) / 1e9 - b[0]["BlockStart"] / 1e9
                C = sum(compute[s:e_end + 1])
                T = W - sum(proc[0:s]) - sum(proc[e_end + 1:])
                au_b = 0 if C == 0 else 100 * C / T
                thr_b = (len(compute) - 2) / T * B
                au += au_b * len(proc); thr += thr_b * len(proc); total += len(proc)
                inside = [r for r in b if s < r["Step"] <= N - p["ExcludeEnd"]]
                if inside:
                    T_all += inside[-1]["Start"] + inside[-1]["Proc"] + inside[-1]["Barrier"] - inside[0]["Start"]
            aus.append(au / total); thrs.append(thr / total)
        epochs_au.append(sum(aus) / R); epochs_thr.append(sum(thrs))
        window = [r for r in rows if r["Epoch"] == epoch and s < r["Step"] <= N - p["ExcludeEnd"]]
        C_all += sum(r["Compute"] for r in window)
        P_all += sum(r["Prescribed"] for r in window)
        samples_all += sum(r["Samples"] for r in window)
        for block in {r["Block"] for r in window}:
            b = [r for r in window if r["Block"] == block]
            wall_all += max(r["Start"] + r["Proc"] + r["Barrier"] for r in b) - min(r["Start"] for r in b)
    q = {}
    for name, f in (("load", lambda r: r["Load"]), ("barrier", lambda r: r["Barrier"]), ("step", lambda r: r["Proc"] + r["Barrier"]),
                    ("oversleep", lambda r: max(0, r["Compute"] - r["Prescribed"]))):
        v = sorted(f(r) for r in rows)
        q[name] = [v[-(-len(v) * m // 1000) - 1] for m in (500, 900, 990, 999, 1000)]
    out.append({"au": epochs_au, "thr": epochs_thr, "run_au": 100 * C_all / T_all, "prescribed": 100 * P_all / T_all,
                "rate": samples_all / (wall_all / 1e9), "q": q})
json.dump(out, sys.stdout)
`

func TestFiguresEqualOracle(t *testing.T) {
	python := peer(t, "no python3", []string{"python3", "--version"})
	const seed = 20261130
	rng := rand.New(rand.NewPCG(seed, 2))
	type input struct {
		P    Params `json:"p"`
		Rows []Step `json:"rows"`
	}
	var in []input
	var got []record.Metrics
	for range 60 {
		p := Params{Accelerators: 1 + rng.IntN(4), Epochs: 1 + rng.IntN(3), StepsPerEpoch: 6 + rng.Int64N(20), BatchSize: 1 + rng.IntN(8),
			ExcludeStart: rng.Int64N(4), ExcludeEnd: rng.Int64N(3), AUThreshold: 50, RecordBytes: 1000}
		r := makeRun(rng, p)
		in = append(in, input{p, r.rows})
		got = append(got, metricsOf(t, r))
	}
	var want []struct {
		AU, Thr          []float64
		RunAU            float64 `json:"run_au"`
		Prescribed, Rate float64
		Q                map[string][]int64
	}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", oracleScript)
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(b)), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	if len(want) != len(got) {
		t.Fatalf("%d answers for %d runs", len(want), len(got))
	}
	for i, w := range want {
		m := got[i]
		compare := func(name string, g, w float64) {
			t.Helper()
			if math.Abs(g-w) > 1e-6*max(1, math.Abs(w)) {
				t.Errorf("run %d: %s is %v, the oracle has %v", i, name, g, w)
			}
		}
		au, thr := m.DLIO["train_au_percentage"].([]float64), m.DLIO["train_throughput_samples_per_second"].([]float64)
		if len(au) != len(w.AU) || len(thr) != len(w.Thr) {
			t.Fatalf("run %d: %d epochs, the oracle has %d", i, len(au), len(w.AU))
		}
		for e := range au {
			compare("DLIO's AU", au[e], w.AU[e])
			compare("DLIO's samples/s", thr[e], w.Thr[e])
		}
		compare("AU", *m.AU.Value, w.RunAU)
		compare("au_prescribed", *m.Other["au_prescribed"].Value, w.Prescribed)
		compare("samples/s", *m.SamplesPerSecond.Value, w.Rate)
		for name, exact := range w.Q {
			for k, suffix := range []string{"_p50", "_p90", "_p99", "_p99_9", "_max"} {
				g, x := *m.Other[name+suffix].Value*1e9, float64(exact[k])
				if g < x-0.5 || g > x*(1+1.0/1024)+0.5 {
					t.Errorf("run %d: %s%s is %v ns, exactly %v", i, name, suffix, g, x)
				}
			}
		}
	}
}

// Any run that is possible has an AU between 0 and 100, and the same file always gives the same bits, through JSON too.
func TestFiguresAreSoundAndReproducible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		p := Params{Accelerators: 1 + rng.IntN(5), Epochs: 1 + rng.IntN(3), StepsPerEpoch: 1 + rng.Int64N(12), BatchSize: 1 + rng.IntN(8),
			ExcludeStart: rng.Int64N(3), ExcludeEnd: rng.Int64N(3), AUThreshold: 100 * rng.Float64(), RecordBytes: 1e6 * rng.Float64()}
		r := makeRun(rng, p)
		s := newSummary(p, true)
		for i := range r.rows {
			if err := r.rows[i].check(); err != nil {
				t.Fatal(err)
			}
			if err := s.add(&r.rows[i]); err != nil {
				t.Fatal(err)
			}
		}
		m, err := s.metrics(nil)
		if err != nil {
			t.Fatal(err)
		}
		empty := p.ExcludeStart+p.ExcludeEnd >= p.StepsPerEpoch
		if (m.AU.Value == nil) != empty {
			t.Fatalf("AU %v with an empty window: %v", show(m.AU), empty)
		}
		if m.AU.Value != nil && (*m.AU.Value < 0 || *m.AU.Value > 100) {
			t.Fatalf("AU %v", *m.AU.Value)
		}
		if len(m.Epochs) != p.Epochs || int64(m.Epochs[0].Steps) != p.StepsPerEpoch {
			t.Fatalf("%d epochs of %d steps", len(m.Epochs), m.Epochs[0].Steps)
		}
		again := newSummary(p, true)
		for i := range r.rows {
			if err := again.add(&r.rows[i]); err != nil {
				t.Fatal(err)
			}
		}
		n, err := again.metrics(nil)
		if err != nil || !reflect.DeepEqual(m, n) {
			t.Fatalf("a second summary differs: %v", err)
		}
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatalf("a figure is no number: %v", err)
		}
		var back record.Metrics
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if c, _ := json.Marshal(back); string(c) != string(b) {
			t.Fatal("figures change on their way through JSON")
		}
	})
}

// Whatever one changes in the rows so that they tell of no possible run, the summary refuses.
func TestImpossibleRunsAreRefused(t *testing.T) {
	base := steady(2, 4, 2)
	for name, tc := range map[string]struct {
		change func(r *run)
		want   error
	}{
		"AU above 100":             {func(r *run) { r.rows[2].Compute *= 2 }, ErrImpossible},
		"load longer than step":    {func(r *run) { r.rows[2].Load = r.rows[2].Proc + 1 }, ErrImpossible},
		"negative time":            {func(r *run) { r.rows[5].Barrier = -1 }, ErrImpossible},
		"queued beyond its wait":   {func(r *run) { r.rows[5].Queue = r.rows[5].Load + 1 }, ErrImpossible},
		"queued and ready":         {func(r *run) { r.rows[5].Queue, r.rows[5].Ready = 1, 1 }, ErrImpossible},
		"overlapping steps":        {func(r *run) { r.rows[4].Start -= 1e6 }, ErrImpossible},
		"step before its block":    {func(r *run) { r.rows[0].BlockStart = r.rows[0].Start + 1 }, ErrImpossible},
		"block ends in its step":   {func(r *run) { r.rows[14].BlockEnd-- }, ErrImpossible},
		"block ends and goes on":   {func(r *run) { r.rows[0].BlockEnd++ }, ErrImpossible},
		"block begins twice":       {func(r *run) { r.rows[2].BlockStart++ }, ErrImpossible},
		"epochs overlap":           {func(r *run) { r.rows[6].BlockEnd += 1e6 }, ErrImpossible},
		"block number falls":       {func(r *run) { r.rows[0].Block, r.rows[1].Block = 2, 2 }, ErrImpossible},
		"blocks differ":            {func(r *run) { r.rows[7].Block = 2 }, ErrImpossible},
		"row missing":              {func(r *run) { r.rows = slices.Delete(r.rows, 3, 4) }, ErrPlan},
		"row twice":                {func(r *run) { r.rows = slices.Insert(r.rows, 3, r.rows[3]) }, ErrPlan},
		"rows swapped":             {func(r *run) { r.rows[2], r.rows[3] = r.rows[3], r.rows[2] }, ErrPlan},
		"last step missing":        {func(r *run) { r.rows = r.rows[:len(r.rows)-2] }, ErrPlan},
		"no rows":                  {func(r *run) { r.rows = nil }, ErrPlan},
		"other batch":              {func(r *run) { r.rows[9].Samples = 3 }, ErrPlan},
		"more epochs than planned": {func(r *run) { r.p.Epochs = 1 }, ErrPlan},
		"more ranks than planned":  {func(r *run) { r.p.Accelerators, r.p.StepsPerEpoch = 1, 8 }, ErrPlan},
		"hours beyond counting":    {func(r *run) { r.rows[15].Barrier = maxNanoseconds + 1 }, ErrImpossible},
		"sums beyond counting": {func(r *run) {
			for i := range r.rows {
				r.rows[i].Read = maxNanoseconds
			}
			for range 1100 { // more epochs of one step than 64 bits can hold
				st := r.rows[len(r.rows)-1]
				st.Epoch, st.Step, st.Rank = st.Epoch+1, 1, 0
				st.Start, st.BlockStart = st.BlockEnd, st.BlockEnd
				st.BlockEnd = st.End()
				r.rows = append(r.rows, st)
			}
			r.p.Partial, r.p.Epochs = true, 2000
		}, ErrImpossible},
	} {
		r := run{p: base.p, rows: slices.Clone(base.rows)}
		tc.change(&r)
		if _, err := summarise(file(t, r.rows), r.p); !errors.Is(err, tc.want) {
			t.Errorf("%s: error %v, want %v", name, err, tc.want)
		}
	}
	for name, p := range map[string]Params{
		"no accelerators": {Epochs: 1, StepsPerEpoch: 1, BatchSize: 1},
		"exclusion":       {Accelerators: 2, Epochs: 2, StepsPerEpoch: 4, BatchSize: 4, ExcludeStart: -1},
		"threshold":       {Accelerators: 2, Epochs: 2, StepsPerEpoch: 4, BatchSize: 4, AUThreshold: math.NaN()},
	} {
		if _, err := summarise(file(t, base.rows), p); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// An interrupted run has figures for what it ran.
func TestPartialRun(t *testing.T) {
	r := steady(2, 11, 2)
	r.rows = r.rows[:len(r.rows)-7]
	if _, err := summarise(file(t, r.rows), r.p); !errors.Is(err, ErrPlan) {
		t.Errorf("a short run passed for a complete one: %v", err)
	}
	r.p.Partial = true
	m := metricsOf(t, r)
	if m.AU.Value == nil || !near(*m.AU.Value, 90) || len(m.Epochs) != 2 || m.Epochs[1].Steps != 8 {
		t.Errorf("AU %v, epochs %+v", show(m.AU), m.Epochs)
	}
	r.rows = nil
	if m := metricsOf(t, r); m.AU.Value != nil || m.Other["load_p50"].Absent == "" {
		t.Errorf("a run without steps has AU %v, load %v", show(m.AU), show(m.Other["load_p50"]))
	}
}

func TestDeviceBytes(t *testing.T) {
	r := steady(2, 4, 1)
	n := record.Int(12345)
	b := file(t, r.rows, Device{Epoch: 1, Bytes: &n}, Device{Epoch: 2, Absent: "no /proc/self/io"})
	m, err := summarise(b, r.p)
	if err != nil {
		t.Fatal(err)
	}
	if v := m.Epochs[0].BytesDevice.Value; v == nil || *v != 12345 {
		t.Errorf("epoch 1: %v", show(m.Epochs[0].BytesDevice))
	}
	if m.Epochs[1].BytesDevice.Absent != "no /proc/self/io" {
		t.Errorf("epoch 2: %v", show(m.Epochs[1].BytesDevice))
	}
	r.p.Epochs = 1
	r.rows = r.rows[:4]
	if _, err := summarise(file(t, r.rows, Device{Epoch: 2, Bytes: &n}), r.p); !errors.Is(err, ErrPlan) {
		t.Errorf("device bytes of an epoch beyond the plan: %v", err)
	}
}

// The figures of one made-up run, to the last bit: they must come out alike on every architecture, because a verifier's machine may be
// another than the run's.
func TestFiguresAreFrozen(t *testing.T) {
	rng := rand.New(rand.NewPCG(20261130, 12))
	r := makeRun(rng, Params{Accelerators: 7, Epochs: 3, StepsPerEpoch: 50, BatchSize: 7, ExcludeStart: 1, ExcludeEnd: 2, AUThreshold: 45,
		RecordBytes: 146600628})
	// With the columns that split the wait, and as of a file of earlier versions without them.
	for golden, waits := range map[string]bool{"testdata/figures.json": false, "testdata/figureswaits.json": true} {
		s := newSummary(r.p, waits)
		for i := range r.rows {
			if err := s.add(&r.rows[i]); err != nil {
				t.Fatal(err)
			}
		}
		m, err := s.metrics(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.MarshalIndent(m, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if string(got)+"\n" != string(want) {
			t.Errorf("figures are not those of %s:\n%s", golden, got)
		}
	}
}

func TestEmptyWindowOfOneStep(t *testing.T) {
	s := newSummary(Params{Accelerators: 1, StepsPerEpoch: 1, ExcludeStart: 1}, true)
	if got := s.emptyWindow(); !strings.Contains(got, ": 1 step an epoch,") {
		t.Errorf("found %q", got)
	}
}
