package pipeline

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/journal"
	"github.com/benchpin/benchpin/pkg/record"
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
