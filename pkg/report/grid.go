package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"strings"
)

// Clean makes a text of unknown origin harmless on a terminal and on a page: see clean.
func Clean(s string) string { return clean(s) }

// Grid is a table for people, as plain text or in Markdown. Its cells are texts of any origin.
type Grid struct {
	// Title stands above it; "" for none.
	Title string
	Head  []string
	Rows  [][]string
	// Left is the number of columns, from the first, that are texts: the others are numbers, to the right.
	Left int
	// Notes stand below it, a line each.
	Notes []string
}

// WriteText writes grids as plain text, an empty line between them.
func WriteText(w io.Writer, grids []Grid, options ...Option) error {
	p := newPage(options)
	for i := range grids {
		g := &grids[i]
		if g.Title != "" {
			p.title(clean(g.Title))
		} else if i > 0 {
			p.line("")
		}
		if len(g.Head) > 0 {
			p.grid(g)
		}
		for _, n := range g.Notes {
			for i, line := range wrap(clean(n), width-4) {
				p.line("    %s%s", strings.Repeat("  ", min(i, 1)), line)
			}
		}
	}
	return p.flush(w)
}

// grid is table with any number of columns to the left, and with cells that are cleaned.
func (p *page) grid(g *Grid) {
	rows := make([][]string, 0, len(g.Rows)+1)
	for _, row := range append([][]string{g.Head}, g.Rows...) {
		cells := make([]string, len(g.Head))
		for i := range cells {
			if i < len(row) {
				cells[i] = clean(row[i])
			}
		}
		rows = append(rows, cells)
	}
	// Columns of texts are padded on the right here, so that table, which has the numbers, leaves them alone.
	for c := range g.Left {
		widest := 0
		for _, row := range rows {
			widest = max(widest, len([]rune(row[c])))
		}
		for _, row := range rows {
			row[c] += strings.Repeat(" ", widest-len([]rune(row[c])))
		}
	}
	p.table(true, rows[0], rows[1:])
}

// WriteMarkdown writes grids as tables of GitHub's Markdown. Nothing in a cell is markup.
func WriteMarkdown(w io.Writer, grids []Grid) error {
	var b bytes.Buffer
	for i := range grids {
		g := &grids[i]
		if i > 0 {
			b.WriteString("\n")
		}
		if g.Title != "" {
			fmt.Fprintf(&b, "**%s**\n\n", markdown(g.Title))
		}
		if len(g.Head) > 0 {
			markdownRow(&b, g.Head, len(g.Head))
			b.WriteString("|")
			for c := range g.Head {
				if c < g.Left {
					b.WriteString("---|")
				} else {
					b.WriteString("---:|")
				}
			}
			b.WriteString("\n")
			for _, row := range g.Rows {
				markdownRow(&b, row, len(g.Head))
			}
		}
		if len(g.Notes) > 0 && len(g.Head) > 0 {
			b.WriteString("\n")
		}
		for _, n := range g.Notes {
			fmt.Fprintf(&b, "- %s\n", markdown(n))
		}
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

func markdownRow(b *bytes.Buffer, row []string, columns int) {
	b.WriteString("|")
	for i := range columns {
		cell := ""
		if i < len(row) {
			cell = markdown(row[i])
		}
		b.WriteString(" " + cell + " |")
	}
	b.WriteString("\n")
}

// markdown writes a text so that Markdown shows it as it is: with a backslash before each character that could be markup, and with entities
// in place of those that could be HTML.
func markdown(s string) string {
	var b strings.Builder
	text := []rune(clean(s))
	for i, r := range text {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case r == '@', r == ':' && i+1 < len(text) && text[i+1] == '/', r == '.' && i >= 3 && strings.EqualFold(string(text[i-3:i]), "www"):
			// An address, or a name, must not become a link.
			fmt.Fprintf(&b, "&#%d;", r)
		case strings.ContainsRune("\\`*_{}[]()#+!|~$^=\"'", r):
			b.WriteRune('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// WriteCSV writes rows as RFC 4180 has them, with \n at the end of lines. A text that a spreadsheet would take for a formula gets an
// apostrophe in front; numbers are left alone.
func WriteCSV(w io.Writer, head []string, rows [][]string) error {
	c := csv.NewWriter(w)
	if err := c.Write(head); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = harmless(cell)
		}
		if err := c.Write(cells); err != nil {
			return fmt.Errorf("writing the table: %w", err)
		}
	}
	if c.Flush(); c.Error() != nil {
		return fmt.Errorf("writing the table: %w", c.Error())
	}
	return nil
}

// harmless is a cell of a CSV file: without control characters, and nothing that a spreadsheet carries out.
func harmless(s string) string {
	s = clean(s)
	if s == "" || !strings.ContainsRune("=+-@", rune(s[0])) || isNumber(s) {
		return s
	}
	return "'" + s
}

// isNumber says whether s is a decimal number: no formula has this form.
func isNumber(s string) bool {
	return strings.Trim(s, "+-.0123456789eE") == "" && strings.ContainsAny(s, "0123456789")
}
