package loader

import "github.com/benchpin/benchpin/pkg/format"

// keeping is what a worker has to keep what it reads.
type keeping struct {
	hold *Hold    // of the batch that is being made; nil where nothing is kept
	now  *Capture // what is being read; nil between samples
	was  Read     // what the last sample was read as
	// Where the reader remembers: what it read of the file that it came to last, and of the groups that it keeps.
	came   *Capture
	groups []Read
}

// keep begins a hold.
func (w *worker) keep() *Hold {
	w.hold = w.src.Capture.hold()
	return w.hold
}

// sealed ends it: nothing is added any more.
func (k *keeping) sealed() {
	if k.hold != nil {
		k.hold.left.Store(int64(len(k.hold.Captures)))
		k.hold = nil
	}
}

// begin captures what is read for a sample.
func (w *worker) begin(s *Sample) {
	w.now = &Capture{File: s.File, Position: s.Position, form: w.src.Capture.Form, name: w.cur.name, size: w.cur.size, hold: w.hold,
		start: w.hold.bytes}
}

// finish ends it. Captures of a sample that could not be read are of no use.
func (w *worker) finish(ok bool) {
	c := w.now
	w.now, w.was = nil, Read{}
	if !ok {
		return
	}
	if c.form != FormGroups {
		w.hold.Captures = append(w.hold.Captures, c)
		w.was = Read{a: c}
		return
	}
	slot, kept, footer := w.mem.(format.Recalling).Recalled()
	for len(w.groups) <= slot {
		w.groups = append(w.groups, Read{})
	}
	if !kept {
		w.groups[slot] = w.group(c, footer)
	}
	w.was = w.groups[slot]
}

// group divides what was read for the first sample of a group: what is read of a file that is come to stands in front.
func (w *worker) group(c *Capture, footer int64) Read {
	i, bytes := 0, int64(0)
	for i < len(c.spans) && c.spans[i].off >= footer {
		bytes += c.spans[i].bytes
		i++
	}
	if i > 0 {
		came := *c
		came.spans = c.spans[:i:i]
		w.came = &came
		w.hold.Captures = append(w.hold.Captures, w.came)
		c.spans, c.start = c.spans[i:], c.start+bytes
	}
	w.hold.Captures = append(w.hold.Captures, c)
	return Read{a: w.came, b: c}
}
