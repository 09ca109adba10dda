package journal

import (
	"bytes"
	"fmt"
)

// Journal is a journal that was read and checked.
type Journal struct {
	// Entries are in order, and Digests those of their lines.
	Entries []Entry
	Digests []string
	// Raw are the bytes of all whole lines.
	Raw []byte
	// Torn is the number of bytes after the last whole line: what a process wrote that ended while it was writing. They were never
	// part of the chain, and the next entry says how many there were.
	Torn int64

	attempts []Attempt
	byRun    map[string]int    // index in attempts
	numbers  map[[2]string]int // attempts on each workload and data
}

// Attempt is one run as the journal tells of it.
type Attempt struct {
	Start Entry
	// End is nil where there is none: the process was killed, the host stopped, or it is still at work.
	End *Entry
	// Number counts the attempts with the same workload on the same data, from 1.
	Number int
}

// State is how the attempt ended, for people: its status, or "no end".
func (a *Attempt) State() string {
	if a.End == nil {
		return "no end"
	}
	return string(a.End.Status)
}

// Read checks the bytes of a journal: the form of every line, the chain, and that every end has one start before it with the same
// workload and data. Errors wrap ErrBroken and name the line. An unfinished last line is no error; an unfinished line can only be
// recognised by its missing line end.
func Read(b []byte) (*Journal, error) {
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("%w: more than %d bytes, the most that is read", ErrBroken, MaxBytes)
	}
	whole := bytes.LastIndexByte(b, '\n') + 1
	j := &Journal{Raw: b[:whole:whole], Torn: int64(len(b) - whole), byRun: map[string]int{}, numbers: map[[2]string]int{}}
	for rest := j.Raw; len(rest) > 0; {
		n := bytes.IndexByte(rest, '\n') + 1
		line := rest[:n]
		rest = rest[n:]
		if err := j.add(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(j.Entries)+1, err)
		}
	}
	return j, nil
}

// add checks a line as the next one.
func (j *Journal) add(line []byte) error {
	e, err := Parse(line)
	if err != nil {
		return err
	}
	if want := int64(len(j.Entries)) + 1; e.Seq != want {
		return fmt.Errorf("%w: expected entry %d, found entry %d", ErrBroken, want, e.Seq)
	}
	if want := j.Head(); e.Prev != want {
		return fmt.Errorf("%w: entry %d follows a line with the digest %s, and the line before it has %s", ErrBroken, e.Seq, e.Prev, want)
	}
	at, known := j.byRun[e.Run]
	switch e.Event {
	case Start:
		if known {
			return fmt.Errorf("%w: run %s begins twice", ErrBroken, e.Run)
		}
		pair := [2]string{e.Workload, e.Data}
		j.numbers[pair]++
		j.byRun[e.Run] = len(j.attempts)
		j.attempts = append(j.attempts, Attempt{Start: e, Number: j.numbers[pair]})
	case End:
		if !known {
			return fmt.Errorf("%w: run %s ends and never began", ErrBroken, e.Run)
		}
		a := &j.attempts[at]
		if a.End != nil {
			return fmt.Errorf("%w: run %s ends twice", ErrBroken, e.Run)
		}
		if s := a.Start; s.Name != e.Name || s.Workload != e.Workload || s.Data != e.Data {
			return fmt.Errorf("%w: run %s ends with another workload or other data than it began with", ErrBroken, e.Run)
		}
		a.End = &e
	}
	j.Entries = append(j.Entries, e)
	j.Digests = append(j.Digests, Digest(line))
	return nil
}

// Head is the digest of the last line, which stands for the whole; Zero where there is none.
func (j *Journal) Head() string {
	if len(j.Digests) == 0 {
		return Zero
	}
	return j.Digests[len(j.Digests)-1]
}

// Attempts are all attempts in the order in which they began.
func (j *Journal) Attempts() []Attempt { return j.attempts }

// Attempt is the attempt of a run; false where the journal has none of it.
func (j *Journal) Attempt(run string) (Attempt, bool) {
	at, ok := j.byRun[run]
	if !ok {
		return Attempt{}, false
	}
	return j.attempts[at], true
}

// Alike are the attempts with the given workload on the given data, in the order in which they began.
func (j *Journal) Alike(workload, data string) []Attempt {
	var alike []Attempt
	for _, a := range j.attempts {
		if a.Start.Workload == workload && a.Start.Data == data {
			alike = append(alike, a)
		}
	}
	return alike
}

// Holds reports whether the entry with the given number has the given digest: whether this is the journal, grown or not, whose head
// was that when it had so many entries.
func (j *Journal) Holds(entries int64, head string) bool {
	if entries < 1 || entries > int64(len(j.Digests)) {
		return entries == 0 && head == Zero
	}
	return j.Digests[entries-1] == head
}
