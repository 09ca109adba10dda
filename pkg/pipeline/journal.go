package pipeline

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/journal"
	"github.com/benchpin/benchpin/pkg/record"
)

// maxCarried is the size of the largest journal of which a run folder gets a copy, for the archive: some thousand attempts. Of a larger
// one only the head is in the record.
const maxCarried = 4 << 20

// JournalBeside is where the journal of a run stands by default: beside its run folder.
func JournalBeside(out string) string {
	return filepath.Join(filepath.Dir(filepath.Clean(out)), journal.FileName)
}

// Journal is the journal of all runs of a pipeline's folder.
func (l Layout) Journal() string { return filepath.Join(l.Dir, journal.FileName) }

// attempt is what the journal has of this run.
type attempt struct {
	begun *journal.Begun
	start journal.Entry
	// raw is the journal up to and with the start; nil where it is too large to be carried.
	raw  []byte
	said *record.Journal
}

// begin enters the run into the journal, before anything is verified or timed. Without a journal it does nothing.
func (r *run) begin() error {
	if r.Journal == "" {
		return nil
	}
	name := strings.ToValidUTF8(r.Workload.Name[:min(len(r.Workload.Name), journal.MaxName)], "")
	start := journal.Entry{Time: stamp(time.Now()), Event: journal.Start, Run: r.ID, Name: name, Workload: r.Workload.Digest.String(),
		Data: r.manifest.Header().Root.String()}
	j, begun, err := journal.Begin(r.Journal, start)
	if err != nil {
		return journalError(err)
	}
	r.attempt = &attempt{begun: begun, start: start}
	a, _ := j.Attempt(r.ID)
	r.attempt.said = &record.Journal{Class: record.HostOnly, Head: j.Head(), Entries: record.Int(len(j.Entries)), Attempt: record.Int(a.Number)}
	if len(j.Raw) <= maxCarried {
		r.attempt.raw = j.Raw
	}
	if a.Number > 1 {
		r.stage("journal  attempt %d with this workload on this data set, of %d in %s", a.Number, len(j.Attempts()), r.Journal)
	} else {
		r.stage("journal  first attempt with this workload on this data set, of %d in %s", len(j.Attempts()), r.Journal)
	}
	return nil
}

// journalError gives an error of the journal its class, and says how to run without one.
func journalError(err error) error {
	if errors.Is(err, journal.ErrBroken) {
		return refused{err}
	}
	return fmt.Errorf("%w (--journal FILE names another place, --journal none keeps none)", err)
}

// end enters how the run ended, whatever that was, into the file in which it began. A journal that was moved away meanwhile has the end
// nevertheless, and people are told; of one that was removed the error says so. The record is what it is either way.
func (r *run) end(rec *record.Record, failed error) (err error) {
	if r.attempt == nil {
		return nil
	}
	defer func() { err = errors.Join(err, r.attempt.begun.Close()) }()
	e := r.attempt.start
	e.Time, e.Event, e.Status = stamp(time.Now()), journal.End, journal.Failed
	if rec != nil {
		b, err := rec.Canonical()
		if err != nil {
			return fmt.Errorf("record: %w", err)
		}
		e.Record, e.Status, e.AU = record.Digest(b), endStatus(rec, errors.Is(failed, ErrThreshold)), journalAU(rec)
	}
	moved, err := r.attempt.begun.End(e)
	switch {
	case errors.Is(err, journal.ErrRemoved) && rec != nil:
		return fmt.Errorf("%w; the record in %s stands as it is", err, r.Out)
	case err != nil:
		return journalError(err)
	case moved:
		r.stage("journal  WARNING: %s is no longer the file in which this run began: that was moved away, and the end of the run stands in it, wherever it is "+
			"now; nothing was written to %[1]s", r.Journal)
	}
	return nil
}

// endStatus is how a run with the given record ended.
func endStatus(rec *record.Record, missed bool) journal.Status {
	switch {
	case rec.Status != record.StatusComplete:
		return journal.Incomplete
	case missed:
		return journal.Missed
	}
	return journal.Complete
}

// journalAU is the AU of a record as its end in the journal has it; nil where it has none.
func journalAU(rec *record.Record) *float64 {
	if au := rec.Metrics.AU.Value; au != nil && *au >= 0 && *au <= 100 {
		return au
	}
	return nil
}

// carry writes the journal, as it was when the run began, into the run folder, and says so in the record.
func (r *run) carry(rec *record.Record) ([]record.File, error) {
	if r.attempt == nil {
		return nil, nil
	}
	rec.Journal = r.attempt.said
	if r.attempt.raw == nil {
		return nil, nil
	}
	if err := writeFile(filepath.Join(r.Out, journal.CopyName), r.attempt.raw); err != nil {
		return nil, err
	}
	f, err := fileOf(r.Out, journal.CopyName)
	if err != nil {
		return nil, err
	}
	return []record.File{f}, nil
}

const (
	checkJournal = "journal"
	limitJournal = "attempts that were kept out of the journal, or whose journal was thrown away; that the times in it are true"
)

// journalAgain checks what the record says of the journal against the copy in the archive.
func journalAgain(v *attest.Verification) attest.Check {
	check := func(evidence string, found ...*fault.Fault) attest.Check {
		return attest.NewCheck(checkJournal, record.HostOnly, evidence, limitJournal, found...)
	}
	wrong := func(detail string) attest.Check {
		return check("the journal of attempts against the record", fault.New(fault.RecordFile, "", detail).In(journal.CopyName))
	}
	said, blob := v.Record.Journal, v.File(journal.CopyName)
	switch {
	case said == nil && blob == nil:
		return check("no journal was kept with this run: how many attempts there were is not known")
	case said == nil:
		return wrong("there is a journal, and the record does not name its head")
	case blob == nil:
		for _, f := range v.Record.Files {
			if f.Name == journal.CopyName {
				return check("the journal of attempts against the record", fault.New(fault.Unchecked, "", "its content is missing or damaged").In(f.Name))
			}
		}
		if said.Entries <= maxCarried/journal.MaxLine {
			return wrong(fmt.Sprintf("the record names a journal of %d entries, few enough for the archive, and it is not there", said.Entries))
		}
		return check(fmt.Sprintf("attempt %d with this workload on this data, by the record alone: the journal has %d entries, too many for the archive; head %s",
			said.Attempt, said.Entries, said.Head))
	}
	b, err := blob.Bytes(maxCarried)
	if err != nil {
		return wrong(err.Error())
	}
	j, err := journal.Read(b)
	if err != nil {
		return wrong(err.Error())
	}
	if detail := journalDifference(j, v.Record); detail != "" {
		return wrong(detail)
	}
	return check(attemptText(j, v.Record))
}

// journalDifference says why a journal is not the one that the record names, "" when it is.
func journalDifference(j *journal.Journal, r *record.Record) string {
	said := r.Journal
	a, known := j.Attempt(r.ID)
	switch n := len(j.Entries); {
	case j.Torn > 0:
		return fmt.Sprintf("%d bytes after the last line", j.Torn)
	case record.Int(n) != said.Entries || j.Head() != said.Head:
		return fmt.Sprintf("the record names %d entries with the head %s, found %d with %s", said.Entries, said.Head, n, j.Head())
	case !known || a.End != nil || j.Entries[n-1].Run != r.ID:
		return fmt.Sprintf("expected the beginning of run %s as its last entry", r.ID)
	case a.Start.Workload != r.Workload.Digest || a.Start.Data != r.Dataset.Root:
		return fmt.Sprintf("run %s began with another workload or other data than the record has", r.ID)
	case record.Int(a.Number) != said.Attempt:
		return fmt.Sprintf("the record says attempt %d, and by the journal it is %d", said.Attempt, a.Number)
	case startsAfter(a.Start.Time, r.Started):
		return fmt.Sprintf("run %s began at %s by the journal, after %s, when its clock started", r.ID, a.Start.Time, r.Started)
	}
	return ""
}

// startsAfter allows for a clock that was set back meanwhile, as the record's own check does.
func startsAfter(entry, started string) bool {
	e, err := time.Parse(time.RFC3339Nano, entry)
	s, serr := time.Parse(time.RFC3339Nano, started)
	return err != nil || serr != nil || e.After(s.Add(time.Second))
}

// attemptText says which attempt this was, and how those before it ended.
func attemptText(j *journal.Journal, r *record.Record) string {
	alike := j.Alike(r.Workload.Digest, r.Dataset.Root)
	text := fmt.Sprintf("attempt %d with this workload on this data", len(alike))
	chain := fmt.Sprintf("; %s in all; chain checked from the first line to the head, %d lines, %s", counted(len(j.Attempts()), "attempt"), len(j.Entries),
		j.Head())
	before := alike[:len(alike)-1]
	if len(before) == 0 {
		return text + ", the first" + chain
	}
	states := map[string]int{}
	best := -1.0
	for _, a := range before {
		states[a.State()]++
		if a.End != nil && a.End.AU != nil && a.End.Status != journal.Incomplete {
			best = max(best, *a.End.AU)
		}
	}
	var parts []string
	for _, s := range []string{string(journal.Complete), string(journal.Missed), string(journal.Incomplete), string(journal.Failed), "no end"} {
		if n := states[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	text += "; before it: " + strings.Join(parts, ", ")
	if best >= 0 {
		text += fmt.Sprintf(" (highest AU %.2f %%)", best)
	}
	return text + chain
}
