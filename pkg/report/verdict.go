package report

import (
	"fmt"
	"io"
	"strings"
)

// Check is one check of a verdict.
type Check struct {
	Name string
	// Class is "C", "W" or "H".
	Class string
	OK    bool
	// Unchecked is true for a check that is not OK because it could not be made: what it needs had been refused.
	Unchecked bool
	// Waived is true for one that could not be made, where that is accepted.
	Waived bool
	// Digest is that of what the check is about, "" where that could not be read.
	Digest string
	// Evidence says what was compared with what, Limits what the check does not show, Problem what is wrong.
	Evidence, Limits, Problem string
}

// VerdictHeader says what was judged. Empty fields are left out.
type VerdictHeader struct {
	Archive, Run, Workload, Status string
	// Result is the result in a line, such as AU and throughput.
	Result                   string
	DataRoot, TranscriptRoot string
	Verification             string
	// Assurance says how far the result rests on the word of one party.
	Assurance string
	// Keys describe the keys that signatures were checked with.
	Keys []string
	// Notes are printed before the verdict: what a reader must know to weigh it.
	Notes []string
}

// Verdict prints a verdict: what was judged, each check with its class, its evidence and what it does not show, and a last line that
// begins with "VERDICT: ". It is "VERIFIED" when there is at least one check and all are OK, else "FAILED" with the names of those
// that are not. Checks that could not be made and are waived do not change that, and are named. An error is one of w.
func Verdict(w io.Writer, h VerdictHeader, checks []Check, options ...Option) error {
	p := newPage(options)
	p.title("benchpin verdict")
	for _, f := range []struct{ label, value string }{
		{"archive", h.Archive}, {"run", h.Run}, {"workload", h.Workload}, {"status", h.Status}, {"result", h.Result},
		{"data root", h.DataRoot}, {"transcript root", h.TranscriptRoot}, {"data verified", h.Verification}, {"assurance", h.Assurance},
	} {
		if f.value != "" {
			p.row("", f.label, clean(f.value))
		}
	}
	for i, key := range h.Keys {
		label := "key"
		if i > 0 {
			label = ""
		}
		p.row("", label, clean(key))
	}
	p.title("Checks")
	var failed, unchecked, waived []string
	for _, c := range checks {
		mark := p.paint(green, "OK         ")
		switch {
		case c.OK:
		case c.Waived:
			mark = p.paint(red, "NOT CHECKED")
			waived = append(waived, clean(c.Name))
		case c.Unchecked:
			mark = p.paint(red, "NOT CHECKED")
			unchecked = append(unchecked, clean(c.Name))
		default:
			mark = p.paint(red, "FAILED     ")
			failed = append(failed, clean(c.Name))
		}
		p.line(" %s  %-1s  %s", mark, clean(c.Class), p.paint(bold, clean(c.Name)))
		if !c.OK {
			for problem := range strings.SplitSeq(strings.TrimRight(c.Problem, "\n"), "\n") {
				p.detail("problem", problem)
			}
		}
		p.detail("evidence", c.Evidence)
		p.detail("digest", c.Digest)
		p.detail("not shown", c.Limits)
	}
	p.line("")
	p.line("Classes: C anyone can compute it again from the archive; W a third party witnessed it; H only the host says so.")
	for _, note := range h.Notes {
		for _, line := range wrap("Note: "+clean(note), width) {
			p.line("%s", line)
		}
	}
	switch {
	case len(checks) == 0:
		p.line("%s", p.paint(red, "VERDICT: FAILED: nothing was checked"))
	case len(failed)+len(unchecked) > 0:
		verdict := fmt.Sprintf("VERDICT: FAILED: %d of %d checks: %s", len(failed), len(checks), strings.Join(failed, ", "))
		switch {
		case len(failed) == 0:
			verdict = fmt.Sprintf("VERDICT: FAILED: %d of %d checks could not be made: %s", len(unchecked), len(checks), strings.Join(unchecked, ", "))
		case len(unchecked) > 0:
			verdict += fmt.Sprintf("; %d could not be made: %s", len(unchecked), strings.Join(unchecked, ", "))
		}
		for _, line := range wrap(verdict, width) {
			p.line("%s", p.paint(red, line))
		}
	case len(waived) > 0:
		verdict := fmt.Sprintf("VERDICT: VERIFIED: %d of %d checks passed; not made, and accepted so: %s", len(checks)-len(waived), len(checks),
			strings.Join(waived, ", "))
		for _, line := range wrap(verdict, width) {
			p.line("%s", p.paint(green, line))
		}
	default:
		p.line("%s", p.paint(green, fmt.Sprintf("VERDICT: VERIFIED: all %d checks passed", len(checks))))
	}
	return p.flush(w)
}

func (p *page) detail(label, text string) {
	if text == "" {
		return
	}
	const indent = 12
	for i, line := range wrap(clean(text), width-indent-11) {
		if i > 0 {
			label = ""
		}
		p.line("%*s%-10s %s", indent, "", label, line)
	}
}
