// Package report turns records, plans and verdicts into pages for people. It computes nothing that is not in what it is given but
// sums and units, never judges a run, and knows nothing of the engine: an auditor's tool can print with it alone.
package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Option changes how a page is printed.
type Option int

// Color marks titles and verdicts with ANSI colours; without it a page is plain text.
const Color Option = 1

// width is where long texts are wrapped.
const width = 110

// page collects lines; nothing is written before the page is whole.
type page struct {
	buf   bytes.Buffer
	color bool
}

func newPage(options []Option) *page { return &page{color: slices.Contains(options, Color)} }

func (p *page) flush(w io.Writer) error {
	if _, err := w.Write(p.buf.Bytes()); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// The ANSI codes in use.
const (
	bold  = "1"
	red   = "31;1"
	green = "32;1"
)

func (p *page) paint(code, s string) string {
	if !p.color {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *page) line(format string, args ...any) {
	p.buf.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

func (p *page) title(s string) {
	if p.buf.Len() > 0 {
		p.line("")
	}
	p.line("%s", p.paint(bold, s))
}

// row is one line "class, label, value"; class is empty where a value is no figure. Values that are too long go on below.
func (p *page) row(class, label, value string) {
	const labelWidth = 18
	class = clean(class)
	for i, line := range wrap(value, width-labelWidth-5) {
		if i > 0 {
			class, label = "", ""
		}
		p.line(" %-1s  %-*s %s", class, labelWidth, label, line)
	}
}

// table prints columns: numbers to the right, the first column to the left when left is set.
func (p *page) table(left bool, head []string, rows [][]string) {
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range append([][]string{head}, rows...) {
		var b strings.Builder
		b.WriteString("    ")
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				b.WriteString("  ")
			}
			if left && i == 0 {
				b.WriteString(cell + pad)
			} else {
				b.WriteString(pad + cell)
			}
		}
		p.line("%s", b.String())
	}
}

// wrap breaks a text at spaces, and one without spaces nowhere: a digest must stay in one piece to be copied.
func wrap(s string, at int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(s, "\n") {
		var line string
		for word := range strings.SplitSeq(paragraph, " ") {
			switch {
			case line == "":
				line = word
			case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > at:
				lines = append(lines, line)
				line = word
			default:
				line += " " + word
			}
		}
		lines = append(lines, line)
	}
	return lines
}
