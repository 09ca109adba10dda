package workload

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// YAML is the resolved workload as a workload file: every key with its value, and in a comment where the value comes
// from. Reading it again gives the same canonical form. Credentials are left out.
func (r *Resolved) YAML() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s, resolved: %s\n", clip(oneLine(r.Name)), r.Digest)
	quote := quoter{dialect: newDialect()}
	var open []string // the sections that are open
	for _, k := range keys(r.Workload) {
		names := strings.Split(k.path, ".")
		sections, name := names[:len(names)-1], names[len(names)-1]
		same := 0
		for same < len(open) && same < len(sections) && open[same] == sections[same] {
			same++
		}
		for i, section := range sections[same:] {
			if same+i == 0 {
				b.WriteByte('\n')
			}
			b.WriteString(strings.Repeat("  ", same+i) + section + ":\n")
		}
		if len(sections) == 0 {
			b.WriteByte('\n')
		}
		open = sections
		indent := strings.Repeat("  ", len(sections))
		value, below := quote.value(k)
		line := indent + name + ":" + value
		fmt.Fprintf(&b, "%-54s  # %s\n", line, r.origin(k))
		for _, one := range below {
			b.WriteString(indent + "  - " + one + "\n")
		}
	}
	return []byte(b.String())
}

// origin says where the value of a key comes from.
func (r *Resolved) origin(k key) string {
	pos, given := r.given[k.path]
	if spread, ok := r.given[k.path+stdevSuffix]; ok && spread.Override != "" {
		pos = spread
	}
	switch {
	case !given:
		return "default"
	case k.secret:
		return "given, not shown"
	case pos.Override != "":
		return clip(oneLine(pos.Override))
	case pos.Line > 0:
		return fmt.Sprintf("given in line %d", pos.Line)
	}
	return "given"
}

func oneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, s)
}

// quoter writes values as YAML 1.1.
type quoter struct{ dialect *dialect }

// value is the value of a key with the space before it, and the lines of a list that stands below the key.
func (q quoter) value(k key) (inline string, below []string) {
	switch v := k.field.(type) {
	case *string:
		if k.secret {
			return ` ""`, nil
		}
		return " " + q.text(*v), nil
	case *uint64:
		return " " + strconv.FormatUint(*v, 10), nil
	case *[]string:
		all := make([]string, len(*v))
		for i, s := range *v {
			all[i] = q.text(s)
		}
		return " [" + strings.Join(all, ", ") + "]", nil
	case *[]Column:
		if len(*v) == 0 {
			return " []", nil
		}
		for _, c := range *v {
			below = append(below, fmt.Sprintf("{name: %s, dtype: %s, size: %d, read: %t}", q.text(c.Name), q.text(c.DType), c.Size, c.Read))
		}
		return "", below
	case *Time:
		return " " + q.time(v), nil
	}
	return " " + strings.ReplaceAll(string(appendJSON(nil, plain(k.field))), ",", ", "), nil
}

func (q quoter) time(t *Time) string {
	if t.Type == TimeConstant {
		return q.number(t.Center)
	}
	parts := []string{"type: " + t.Type}
	for _, p := range timeKeys("", t)[t.Type] {
		parts = append(parts, strings.TrimPrefix(p.path, ".")+": "+q.number(*p.field.(*float64)))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (q quoter) number(f float64) string { return string(appendJSON(nil, f)) }

// text quotes s where YAML 1.1, or the interpolation, would read something else.
func (q quoter) text(s string) string {
	if q.simple(s) && q.dialect.yaml(s, Position{}).kind == textKind {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	slashes := 0
	for i, c := range s {
		if c == '$' && strings.HasPrefix(s[i:], "${") {
			b.WriteString(strings.Repeat(`\\`, slashes+1))
		}
		if c == '\\' {
			slashes++
		} else {
			slashes = 0
		}
		switch {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case unicode.IsPrint(c):
			b.WriteRune(c)
		case c > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, c)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// simple texts mean the same everywhere without quotes.
func (q quoter) simple(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '/'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789.-", rune(c))) {
			return false
		}
	}
	return s != ""
}
