package explain

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/benchpin/benchpin/pkg/record"
)

// classWords says what a class means.
var classWords = map[record.Class]string{
	record.Recomputable: "anyone can compute it again from the archive", record.Witnessed: "a third party witnessed it",
	record.HostOnly: "only the host says so, whoever computes it again",
}

// WriteText prints an explanation for people.
func (x *Explanation) WriteText(w io.Writer) error {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
	}
	if x.Recorded == nil {
		line("%s is absent: %s", clean(x.Figure), clean(x.Absent))
	} else {
		line("%s = %s %s", clean(x.Figure), number(x.Recorded), x.Unit)
	}
	line("  %s", x.Meaning)
	line("  class      %s: %s", x.Class, classWords[x.Class])
	line("  from       %s", clean(x.Source))
	line("  formula    %s", x.Formula)
	for _, in := range x.Inputs {
		from := ""
		if in.From != "" {
			from = "  (" + clean(in.From) + ")"
		}
		line("  %s = %s %s%s", clean(in.Name), number(in.Value), in.Unit, from)
	}
	if x.Table != nil && len(x.Table.Rows) > 0 {
		b.WriteString("\n" + x.Table.text())
		if x.Table.Left > 0 {
			line("  and %d more", x.Table.Left)
		}
	}
	line("")
	switch {
	case x.Computed == nil && x.Recorded == nil:
		line("  nothing can be computed, as the record says")
	case x.Equal:
		line("  computed   %s: the record says the same", number(x.Computed))
	default:
		line("  computed   %s: THE RECORD SAYS %s", number(x.Computed), number(x.Recorded))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// text aligns the columns of a table to the right.
func (t *Table) text() string {
	rows := [][]string{t.Columns}
	for _, r := range t.Rows {
		cells := make([]string, len(r))
		for i, v := range r {
			cells[i] = number(v)
		}
		rows = append(rows, cells)
	}
	width := make([]int, len(t.Columns))
	for _, r := range rows {
		for i, c := range r {
			width[i] = max(width[i], len(c))
		}
	}
	var b strings.Builder
	for _, r := range rows {
		b.WriteString("  ")
		for i, c := range r {
			fmt.Fprintf(&b, "  %*s", width[i], c)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// number prints a value with all its digits.
func number(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []float64:
		s := make([]string, len(v))
		for i := range v {
			s[i] = number(v[i])
		}
		return strings.Join(s, ", ")
	case []any:
		s := make([]string, len(v))
		for i := range v {
			s[i] = number(v[i])
		}
		return strings.Join(s, ", ")
	}
	return clean(fmt.Sprint(v))
}

// clean shows control characters of texts that come from a record.
func clean(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	return strings.Trim(strconv.Quote(s), `"`)
}
