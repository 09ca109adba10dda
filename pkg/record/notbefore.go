package record

import (
	"fmt"
	"time"
)

// NotBefore is a public value that the order of samples was drawn with, so that the run began after it was known (docs/attestation.md, time
// bracket). That the order was drawn with it follows from the record; when and by whom it was published, its source tells.
type NotBefore struct {
	Class Class `json:"class"`
	// Value is the public value, one line of text.
	Value string `json:"value"`
	// Source says who published it and where it is looked up.
	Source string `json:"source"`
	// Time is from when it was known, by its source, RFC 3339 in UTC.
	Time string `json:"time"`
}

// TimestampName is how the timestamp of the transcript's root is called among the files of a record, where there is one.
const TimestampName = "transcript.tsr"

func (c *checker) notBefore(r *Record) {
	n := r.NotBefore
	if n == nil {
		return
	}
	const field = "not_before"
	c.that(n.Class == HostOnly, field+".class", "expected %s, found %q", HostOnly, n.Class)
	c.that(n.Value != "" && len(n.Value) <= 1024, field+".value", "expected 1 to 1024 bytes, found %d", len(n.Value))
	c.that(n.Source != "" && len(n.Source) <= 1024, field+".source", "expected 1 to 1024 bytes, found %d", len(n.Source))
	at, err := time.Parse(time.RFC3339Nano, n.Time)
	started, serr := time.Parse(time.RFC3339Nano, r.Started)
	c.that(err == nil && at.UTC().Format(time.RFC3339Nano) == n.Time, field+".time", "expected a time in UTC as RFC 3339 writes it, found %q", n.Time)
	if err == nil && serr == nil {
		// By the host's clock, which refused to begin with a value that it held to be unknown yet.
		c.that(!at.After(started), field+".time", "expected a time before the run began, %s, found %s: nobody could know the value yet", r.Started, n.Time)
	}
}

// Timestamped is what a timestamp of the transcript is of: a text with the roots of training and, where there is one, of evaluation.
func (t *Transcript) Timestamped() []byte {
	text := fmt.Sprintf("benchpin transcript timestamp v1\nroot %s\n", t.Root)
	if t.Evaluation != nil {
		text += fmt.Sprintf("evaluation %s\n", t.Evaluation.Root)
	}
	return []byte(text)
}
