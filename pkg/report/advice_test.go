package report

import (
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/record"
)

// missed is a run of two accelerators with four read threads each that computed for 60 s of 100 s. Its readers worked 380 s of 800, mostly
// reading.
func missed(change func(r *record.Record)) *record.Record {
	r := sample()
	m, p := &r.Metrics, &r.Plan
	m.Met, m.AU = ptr(false), fig(60, "%")
	p.Accelerators, p.ReadThreads, p.PrefetchFactor, p.Epochs, p.SamplesPerEpoch, p.ComputeSeconds = 2, 4, 2, 2, 1000, 0.5
	p.RequiredBytesPerSecond, p.RequiredFilesPerSecond = ptr(2e9), ptr(30.)
	m.BytesPerSecond = fig(1.2e9, "B/s")
	for i := range m.Epochs {
		m.Epochs[i].Seconds = fig(50, "s")
	}
	for name, v := range map[string]float64{"compute": 120, "load": 70, "barrier": 10, "open": 5, "read": 365, "decode": 10} {
		m.Other[name+"_total"] = fig(v, "s")
	}
	m.Other["preprocess_total"] = fig(0, "s")
	if change != nil {
		change(r)
	}
	return r
}

func (a *Advice) text() string {
	return strings.Join(a.Went, "; ") + "\n" + strings.Join(a.Found, "\n") + "\n" + strings.Join(a.Try, "\n")
}

// busy makes readers work all of the time, on decoding.
func busy(r *record.Record) {
	r.Metrics.Other["decode_total"], r.Metrics.Other["read_total"] = fig(700, "s"), fig(80, "s")
}

// TestAdvise: the cause, and what is said. TestAdvice of pkg/bench follows advice on runs in virtual time.
func TestAdvise(t *testing.T) {
	plain := func(rates ...float64) *PlainReads {
		p := &PlainReads{Cold: true}
		for i, v := range rates {
			p.Rates = append(p.Rates, PlainRate{Readers: 8 << (2 * i), Files: 10, BytesPerSecond: v})
		}
		return p
	}
	for _, c := range []struct {
		name   string
		change func(r *record.Record)
		plain  *PlainReads
		cause  Cause
		says   []string
	}{
		{"readers idle", nil, plain(4e9, 8e9), CausePrefetch, []string{"computing 60.0 %; waiting for data 35.0 %; waiting for each other 5.0 %",
			"readers (2 accelerators, 4 each) worked 48 % of the time: reading 96 %, opening files 1 %, decoding 3 % of it",
			"the run read at 1.20 GB/s, and this AU needs 2.00 GB/s",
			"plain reads of the same files, after they were dropped from the page cache, came to 4.00 GB/s, 8 at once; 8.00 GB/s, 32 at once",
			"--set reader.prefetch_size=16 (8 batches are in flight now): readers were idle 52 % of the time"}},
		{"the store at its limit", nil, plain(1.2e9, 1.3e9), CauseStore, []string{"a faster store, or fewer accelerators on this one: the run read at 92 % of what plain reads come to, and this AU needs 154 %"}},
		{"a store that is too slow, and not yet at its limit", nil, plain(1.6e9), CauseStore, []string{"the run read at 75 % of what plain reads come to, and this AU needs 125 %",
			"prefetch_size=16", "which gives a part of it"}},
		{"decoding on a host with processors left", busy, plain(8e9), CauseReaders, []string{"--set reader.read_threads=6 (found 4): the readers had no time left; a sample takes 392 ms " +
			"of a reader, and an accelerator needs 15.0 a second", "with it --set reader.prefetch_size=12, two batches for each read thread (8 were in flight)"}},
		{"decoding on a host without", func(r *record.Record) { busy(r); r.Environment.CPU.Usable = ptr(8) }, plain(8e9), CauseDecoding,
			[]string{"fewer accelerators on this host, or more processors: decoding takes 350 ms of a reader for each sample, and the 8 processors are taken", "dataset.compression"}},
		{"no threads", func(r *record.Record) { r.Plan.ReadThreads = 0 }, nil, CauseTurns, []string{"the accelerators themselves, which have no read threads",
			"--set reader.read_threads=3 (found 0): without read threads the accelerator reads and computes in turns"}},
		{"hashing", func(r *record.Record) {
			r.Dataset.Verification.Inline = &record.InlineVerification{WaitedSeconds: 90, Cores: 1.75}
		}, nil, CauseHashing, []string{"waiting for hashing 31.0 %", "--verify before, after or sample: hashing in the run (inline) needs 1.8 cores here, and accelerators waited 90.0 s for it"}},
		{"one slow accelerator", func(r *record.Record) {
			r.Metrics.Other["barrier_total"] = fig(90, "s")
			for i := range r.Metrics.Epochs {
				r.Metrics.Epochs[i].Waits = &record.Waits{Ranks: []record.RankWaits{{Load: 1}, {Load: 34}}}
			}
		}, nil, CauseOthers, []string{"accelerator 1 waited 68.0 s for data, the others 2.00 s on average: it holds them up", "batches that are ready ahead hide one that is slow"}},
		{"each slow in turn", func(r *record.Record) {
			r.Metrics.Other["barrier_total"] = fig(90, "s")
			for i := range r.Metrics.Epochs {
				r.Metrics.Epochs[i].Waits = &record.Waits{Ranks: []record.RankWaits{{Load: 17}, {Load: 18}}}
			}
		}, nil, CauseOthers, []string{"no accelerator is slower than the others over the run"}},
		{"samples that take too long for any number of readers", func(r *record.Record) { busy(r); r.Plan.RequiredFilesPerSecond = ptr(1e4) }, nil, CauseReaders,
			[]string{"a data set whose samples take less than 392 ms of a reader: 1963 read threads would be needed"}},
	} {
		a := Advise(missed(c.change), c.plain)
		if a == nil || a.Cause != c.cause {
			t.Errorf("%s: expected %s, found %+v", c.name, c.cause, a)
			continue
		}
		for _, want := range c.says {
			if !strings.Contains(a.text(), want) {
				t.Errorf("%s: expected %q in\n%s", c.name, want, a.text())
			}
		}
		if page := string(summary(t, missed(c.change))); !strings.Contains(page, "\nWhy AU was not met (H)\n") {
			t.Errorf("%s: no advice on the page:\n%s", c.name, page)
		}
	}
}

// TestNoAdvice: where nothing was missed, or nothing can be said.
func TestNoAdvice(t *testing.T) {
	for name, change := range map[string]func(r *record.Record){
		"met":           func(r *record.Record) { r.Metrics.Met = ptr(true) },
		"not judged":    func(r *record.Record) { r.Metrics.Met = nil },
		"incomplete":    func(r *record.Record) { r.Status = record.StatusIncomplete },
		"no AU":         func(r *record.Record) { r.Metrics.AU.Value = nil },
		"no compute":    func(r *record.Record) { r.Plan.ComputeSeconds = 0 },
		"no sums":       func(r *record.Record) { delete(r.Metrics.Other, "read_total") },
		"no epochs":     func(r *record.Record) { r.Metrics.Epochs = nil },
		"absent second": func(r *record.Record) { r.Metrics.Epochs[0].Seconds = record.Figure{Unit: "s", Absent: "gone"} },
	} {
		if a := Advise(missed(change), nil); a != nil {
			t.Errorf("%s: found %+v", name, a)
		}
		if page := string(summary(t, missed(change))); strings.Contains(page, "Why AU") {
			t.Errorf("%s: advice on the page", name)
		}
	}
}
