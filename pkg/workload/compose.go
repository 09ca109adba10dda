package workload

import (
	"math"
	"strconv"
	"strings"
)

// compose writes a file with its overrides applied as Hydra saves it beside a run: inside the key `workload`, unknown keys included,
// defaults not. Interpolation is followed, and credentials are blanked. Reading it again gives the same workload.
func compose(root *node) []byte {
	c := composer{quote: quoter{dialect: newDialect()}, secret: map[string]bool{}, text: map[string]bool{}}
	for _, k := range keys(new(Workload)) {
		_, isText := k.field.(*string)
		c.secret[k.path], c.text[k.path] = k.secret, isText && k.words == nil
	}
	c.b.WriteString("workload:")
	c.value(root, "", 1)
	return []byte(c.b.String())
}

type composer struct {
	b     strings.Builder
	quote quoter
	// secret and text are the keys of credentials and of texts, which mean what was typed: 010, not 8.
	secret, text map[string]bool
}

// value writes n behind its key, and ends the line.
func (c *composer) value(n *node, path string, depth int) {
	indent := strings.Repeat("  ", depth)
	switch {
	case path != "" && path != optionsPath && confides(c.secret, path, n.raw):
		c.b.WriteString(" '" + masked + "'\n")
	case n.kind == mapKind && len(n.fields) > 0:
		c.b.WriteByte('\n')
		for _, f := range n.fields {
			c.b.WriteString(indent + c.quote.text(f.name) + ":")
			c.value(f.value, strings.TrimPrefix(path+"."+f.name, "."), depth+1)
		}
	case n.kind == listKind && len(n.items) > 0:
		c.b.WriteByte('\n')
		for _, item := range n.items {
			c.b.WriteString(indent + "- " + c.flow(item) + "\n")
		}
	case c.secret[path]:
		c.b.WriteString(" '***'\n")
	case c.text[path] && n.kind != nullKind && n.kind != listKind && n.kind != mapKind:
		c.b.WriteString(" " + c.quote.text(n.raw) + "\n")
	default:
		c.b.WriteString(" " + c.flow(n) + "\n")
	}
}

// flow writes n on one line.
func (c *composer) flow(n *node) string {
	switch n.kind {
	case nullKind:
		return "null"
	case boolKind:
		return strconv.FormatBool(n.truth)
	case intKind:
		if c.quote.dialect.yaml(n.raw, Position{}).equal(n) {
			return n.raw
		}
		return n.whole.String()
	case floatKind:
		return c.float(n.float)
	case listKind:
		items := make([]string, len(n.items))
		for i, item := range n.items {
			items[i] = c.flow(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case mapKind:
		fields := make([]string, len(n.fields))
		for i, f := range n.fields {
			fields[i] = c.quote.text(f.name) + ": " + c.flow(f.value)
		}
		return "{" + strings.Join(fields, ", ") + "}"
	}
	return c.quote.text(n.raw)
}

// float writes a number that YAML 1.1 reads as a number again, not as an integer.
func (c *composer) float(f float64) string {
	switch {
	case math.IsNaN(f):
		return ".nan"
	case math.IsInf(f, 1):
		return ".inf"
	case math.IsInf(f, -1):
		return "-.inf"
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	mantissa, exponent, ok := strings.Cut(s, "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if !ok {
		return mantissa
	}
	return mantissa + "e" + exponent
}
