// Package journal is the hash-chained account of every attempt to run a benchmark: one line when it begins, one when it ends. Each line
// holds the digest of the line before it, so that no line can be changed, taken out or put in without changing every line after it.
// docs/journal.md specifies it, and says what it does not show.
//
// It appends and checks; it never decides what counts as an attempt, never changes a line that was written, and signs nothing. It imports
// nothing of benchpin.
package journal

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zeebo/blake3"
)

// Version is the version of the form of entries, their field "v".
const Version = 1

// FileName is how a journal is called beside run folders.
const FileName = "journal.jsonl"

// CopyName is how the copy of the journal in a run folder is called: the journal as it was when the run began. Nothing is added to it, so
// it must not be taken for the journal of runs below that folder.
const CopyName = "attempts.jsonl"

// MediaType is the media type of a journal as a layer of an archive.
const MediaType = "application/vnd.benchpin.journal.v1+jsonl"

// Limits of a journal. Nothing that people do by hand comes near them.
const (
	// MaxLine is the length of the longest line in bytes, line end included.
	MaxLine = 4096
	// MaxBytes is the size of the largest journal: more than 100,000 attempts.
	MaxBytes = 64 << 20
	// MaxName is the length of the longest name of a workload in bytes.
	MaxName = 256
)

// Event says what an entry tells of an attempt.
type Event string

// The events.
const (
	// Start is written before anything is verified or run.
	Start Event = "start"
	// End is written when the attempt is over, however it ended, unless the process or the host did.
	End Event = "end"
)

// Status is how an attempt ended.
type Status string

// How attempts end.
const (
	// Complete: every step was run, and the figures reach the thresholds.
	Complete Status = "complete"
	// Missed: every step was run, and the figures do not reach the thresholds.
	Missed Status = "missed"
	// Incomplete: it was interrupted or failed while it ran; its record says how far it came.
	Incomplete Status = "incomplete"
	// Failed: it ended without a record, as when the data set is not what its manifest says.
	Failed Status = "failed"
)

// Entry is one line of a journal.
type Entry struct {
	V int `json:"v"`
	// Seq counts the entries from 1.
	Seq int64 `json:"seq"`
	// Prev is the digest of the line before, Zero in the first.
	Prev string `json:"prev"`
	// Time is the host's wall clock, RFC 3339 in UTC.
	Time  string `json:"time"`
	Event Event  `json:"event"`
	// Run is the ID of the run, Name and Workload name and digest of its workload, Data the root of its data set.
	Run      string `json:"run"`
	Name     string `json:"name"`
	Workload string `json:"workload"`
	Data     string `json:"data"`
	// Status and what follows stand at the end of an attempt. AU is its utilisation in percent and Record the digest of its record; they
	// are absent where there is none.
	Status Status   `json:"status,omitempty"`
	AU     *float64 `json:"au,omitempty"`
	Record string   `json:"record,omitempty"`
	// Torn is the number of bytes of an unfinished line that a writer before left at the end, and that this one removed.
	Torn int64 `json:"torn,omitempty"`
}

// Zero is what the first entry has for the digest of the line before it.
const Zero = "blake3:0000000000000000000000000000000000000000000000000000000000000000"

// ErrBroken is wrapped by every error about a journal that is not what a journal must be.
var ErrBroken = errors.New("the journal is broken")

// Encode writes the entry's one form: a line of JSON, keys in the order of the type, no spaces, and a line end. It checks what Parse checks.
func (e *Entry) Encode() ([]byte, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, fmt.Errorf("journal entry: %w", err)
	}
	if b.Len() > MaxLine {
		return nil, fmt.Errorf("journal entry: %d bytes: expected at most %d", b.Len(), MaxLine)
	}
	return b.Bytes(), nil
}

// Parse reads one line, line end included, and accepts nothing but the form that Encode writes.
func Parse(line []byte) (Entry, error) {
	var e Entry
	if len(line) > MaxLine {
		return e, fmt.Errorf("%w: a line of more than %d bytes", ErrBroken, MaxLine)
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return e, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	again, err := e.Encode()
	if err != nil {
		return e, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if !bytes.Equal(again, line) {
		return e, fmt.Errorf("%w: expected the line %.200q, found %.200q", ErrBroken, again, line)
	}
	return e, nil
}

// Digest is the digest of a line, line end included, as the next entry and attestations hold it.
func Digest(line []byte) string {
	sum := blake3.Sum256(line)
	return "blake3:" + hex.EncodeToString(sum[:])
}

// check says what is wrong with an entry for itself.
func (e *Entry) check() error {
	wrong := func(field, expected string, found any) error {
		return fmt.Errorf("entry %d: %s: expected %s, found %.100q", e.Seq, field, expected, fmt.Sprint(found))
	}
	switch {
	case e.V != Version:
		return wrong("v", fmt.Sprintf("version %d", Version), e.V)
	case e.Seq < 1:
		return wrong("seq", "1 or more", e.Seq)
	case !isDigest(e.Prev):
		return wrong("prev", "a digest", e.Prev)
	case !isTime(e.Time):
		return wrong("time", "a time in UTC such as 2026-11-30T14:15:00Z", e.Time)
	case e.Run == "" || len(e.Run) > MaxName || strings.Trim(e.Run, "0123456789abcdefghijklmnopqrstuvwxyzTZ-") != "":
		return wrong("run", "the ID of a run", e.Run)
	case len(e.Name) > MaxName || !utf8.ValidString(e.Name):
		return wrong("name", fmt.Sprintf("at most %d bytes of UTF-8", MaxName), e.Name)
	case !isDigest(e.Workload):
		return wrong("workload", "a digest", e.Workload)
	case !isDigest(e.Data):
		return wrong("data", "a digest", e.Data)
	case e.Torn < 0:
		return wrong("torn", "a number of bytes", e.Torn)
	}
	switch e.Event {
	case Start:
		if e.Status != "" || e.AU != nil || e.Record != "" {
			return wrong("event", "no status, au and record at the start", e.Status)
		}
		return nil
	case End:
	default:
		return wrong("event", "start or end", e.Event)
	}
	switch e.Status {
	case Complete, Missed, Incomplete:
		if !isDigest(e.Record) {
			return wrong("record", "a digest", e.Record)
		}
	case Failed:
		if e.Record != "" || e.AU != nil {
			return wrong("record", "none where the attempt failed without one", e.Record)
		}
	default:
		return wrong("status", "complete, missed, incomplete or failed", e.Status)
	}
	if au := e.AU; au != nil && (math.IsNaN(*au) || *au < 0 || *au > 100 || *au == 0 && math.Signbit(*au)) {
		return wrong("au", "0 to 100", *au)
	}
	return nil
}

func isDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, "blake3:")
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

func isTime(s string) bool {
	t, err := time.Parse(time.RFC3339Nano, s)
	return err == nil && t.Format(time.RFC3339Nano) == s && strings.HasSuffix(s, "Z")
}
