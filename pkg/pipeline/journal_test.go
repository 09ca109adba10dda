package pipeline

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/journal"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// journalled is a journal of three attempts, of which the last one has begun, and the record that it says so of.
func journalled(t *testing.T) (*journal.Journal, *record.Record) {
	t.Helper()
	path := filepath.Join(t.TempDir(), journal.FileName)
	w, d := record.Digest([]byte("workload")), record.Digest([]byte("data"))
	start := func(run, data string) journal.Entry {
		return journal.Entry{Time: "2026-11-30T14:15:00Z", Event: journal.Start, Run: run, Name: "small", Workload: w, Data: data}
	}
	ended := start("20261130T141500Z-aaaaaa", d)
	ended.Event, ended.Status, ended.Record = journal.End, journal.Missed, record.Digest([]byte("record"))
	au := 41.5
	ended.AU = &au
	var j *journal.Journal
	for _, e := range []journal.Entry{start("20261130T141500Z-aaaaaa", d), ended, start("20261130T141500Z-bbbbbb", record.Digest([]byte("other"))),
		start("20261130T141500Z-cccccc", d), start("20261130T141500Z-dddddd", d)} {
		var err error
		if j, err = journal.Append(path, e); err != nil {
			t.Fatal(err)
		}
	}
	return j, &record.Record{ID: "20261130T141500Z-dddddd", Started: "2026-11-30T14:15:01Z", Workload: record.Workload{Digest: w}, Dataset: record.Dataset{Root: d},
		Journal: &record.Journal{Class: record.HostOnly, Head: j.Head(), Entries: 5, Attempt: 3}}
}

// What a record says of its journal is held to the copy that travels with it.
func TestJournalDifference(t *testing.T) {
	j, r := journalled(t)
	if d := journalDifference(j, r); d != "" {
		t.Fatal(d)
	}
	if text := attemptText(j, r); !strings.HasPrefix(text, "attempt 3 with this workload on this data; before it: 1 missed, 1 no end (highest AU 41.50 %); 4 attempts in all; chain checked") {
		t.Errorf("found %q", text)
	}
	for what, change := range map[string]func(*record.Record){
		"head":                     func(r *record.Record) { r.Journal.Head = journal.Zero },
		"entries":                  func(r *record.Record) { r.Journal.Entries = 4 },
		"by the journal it is 3":   func(r *record.Record) { r.Journal.Attempt = 1 },
		"expected the beginning":   func(r *record.Record) { r.ID = "20261130T141500Z-cccccc" },
		"another workload":         func(r *record.Record) { r.Workload.Digest = record.Digest(nil) },
		"or other data":            func(r *record.Record) { r.Dataset.Root = record.Digest(nil) },
		"when its clock started":   func(r *record.Record) { r.Started = "2026-11-30T14:14:58Z" },
		"20261130T141500Z-eeeeee ": func(r *record.Record) { r.ID = "20261130T141500Z-eeeeee" },
	} {
		_, r := journalled(t)
		change(r)
		if d := journalDifference(j, r); !strings.Contains(d, strings.TrimSpace(what)) {
			t.Errorf("expected %q, found %q", what, d)
		}
	}
}

// The last line of a journal is held by no digest: what it says of a run is compared with the record.
func TestEndDifference(t *testing.T) {
	au := 97.5
	rec := &record.Record{ID: "20261130T141500Z-dddddd", Status: record.StatusComplete, Metrics: record.Metrics{AU: record.Figure{Value: &au, Unit: "%"}}}
	w, err := workload.Load(workload.Source{Name: "w.yaml", Data: []byte("model: {name: small}\ndataset: {num_files_train: 4, format: npz}\n" +
		"train: {computation_time: 1, epochs: 1}\nmetric: {au: 0.9}\n")}, workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec.Workload.Canonical, rec.Plan.AUThreshold = w.Canonical, 90
	other, low := 12.5, 50.0
	for what, c := range map[string]struct {
		status journal.Status
		au     *float64
		change func()
	}{
		"":                        {journal.Complete, &au, nil},
		"end as missed":           {journal.Missed, &au, nil},
		"end as incomplete":       {journal.Incomplete, &au, nil},
		"end as failed":           {journal.Failed, nil, nil},
		"an AU of 12.5 %":         {journal.Complete, &other, nil},
		"an AU of nothing":        {journal.Complete, nil, nil},
		"its record says missed":  {journal.Complete, &low, func() { rec.Metrics.AU.Value = &low }},
		"its record says nothing": {journal.Missed, &au, func() { rec.Metrics.AU.Value = nil }},
	} {
		rec.Metrics.AU.Value = &au
		if c.change != nil {
			c.change()
		}
		if d := endDifference(&journal.Entry{Status: c.status, AU: c.au}, rec); (what == "") != (d == "") || !strings.Contains(d, what) {
			t.Errorf("expected %q, found %q", what, d)
		}
	}
}
