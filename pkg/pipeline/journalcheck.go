package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/benchpin/benchpin/pkg/journal"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// JournalFile is the journal that a path names: a file, or a folder that holds one.
func JournalFile(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(path, journal.FileName)
	}
	return path
}

// JournalResult is what a journal says of the record of a run folder or of an archive.
type JournalResult struct {
	// Path is where the result lies, and Run its run.
	Path string `json:"path"`
	Run  string `json:"run"`
	// Attempt is the number of the run among the Attempts with the same workload on the same data that the journal has by now.
	Attempt  int `json:"attempt"`
	Attempts int `json:"attempts"`
	// Problem says why the journal is not the one that the record names, or tells of another record; "" when it does not.
	Problem string `json:"problem,omitempty"`
}

// JournalCheck checks a journal: the chain, and whether it is the one whose head each of the results has, grown or not, with the same
// record at the end of their runs. The error is about what could not be read, or wraps journal.ErrBroken; problems of results are in
// their place, and wrap nothing.
func JournalCheck(ctx context.Context, path string, results []string) (*journal.Journal, []JournalResult, error) {
	j, err := journal.Open(path)
	if err != nil {
		return nil, nil, err
	}
	found := make([]JournalResult, 0, len(results))
	for _, at := range results {
		r, err := OpenResult(ctx, at)
		if err != nil {
			return nil, nil, err
		}
		found = append(found, journalHas(j, at, r))
		if err := r.Close(); err != nil {
			return nil, nil, err
		}
	}
	return j, found, nil
}

// journalHas compares one result with the journal.
func journalHas(j *journal.Journal, path string, r *Result) JournalResult {
	rec := r.Record
	out := JournalResult{Path: path, Run: rec.ID, Attempts: len(j.Alike(rec.Workload.Digest, rec.Dataset.Root))}
	a, known := j.Attempt(rec.ID)
	said := rec.Journal
	switch {
	case said == nil:
		out.Problem = "its record names no journal: none was kept"
	case !j.Holds(int64(said.Entries), said.Head):
		out.Problem = fmt.Sprintf("its record names %d entries with the head %s, and this journal has another line there, or fewer lines: it is another journal, or "+
			"was written anew", said.Entries, said.Head)
	case !known || a.Start.Workload != rec.Workload.Digest || a.Start.Data != rec.Dataset.Root:
		out.Problem = fmt.Sprintf("this journal has no run %s of its workload on its data", rec.ID)
	case record.Int(a.Number) != said.Attempt:
		out.Problem = fmt.Sprintf("its record says attempt %d, and by this journal it is %d", said.Attempt, a.Number)
	case a.End != nil && a.End.Record != record.Digest(r.RecordBytes):
		out.Problem = fmt.Sprintf("this journal has run %s end with the record %s, and it is %s", rec.ID, orNothing(a.End.Record), record.Digest(r.RecordBytes))
	case a.End != nil:
		out.Problem = endDifference(a.End, rec)
	}
	if known {
		out.Attempt = a.Number
	}
	return out
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// endDifference says what the end of a run says otherwise than the record that it names, "" when nothing: its last line in a journal is held by no
// digest yet, so that anyone could have written it.
func endDifference(e *journal.Entry, rec *record.Record) string {
	if missed := errors.Is(metThresholds(rec), ErrThreshold); e.Status != endStatus(rec, missed) {
		return fmt.Sprintf("this journal has run %s end as %s, and its record says %s", rec.ID, e.Status, endStatus(rec, missed))
	}
	want := journalAU(rec)
	if (want == nil) != (e.AU == nil) || want != nil && *want != *e.AU {
		return fmt.Sprintf("this journal has run %s end with an AU of %s, and its record says %s", rec.ID, percentOf(e.AU), percentOf(want))
	}
	return ""
}

func percentOf(au *float64) string {
	if au == nil {
		return "nothing"
	}
	return fmt.Sprintf("%v %%", *au)
}

// metThresholds is the error of a complete record below the thresholds of its workload.
func metThresholds(rec *record.Record) error {
	w, err := workload.ParseCanonical(rec.Workload.Canonical)
	if err != nil {
		return nil // whoever verifies the record is told so
	}
	return CheckThresholds(w, rec)
}
