package workload

import (
	"math/big"
	"strconv"
	"strings"
)

// Bounds on what a file may make us hold. A workload file has some 60 values; the bounds stop those that are made to
// hurt.
const (
	maxSource = 1 << 16 // bytes of a file, and of an override
	maxLines  = 1 << 12 // lines of a file; the YAML reader's time grows with the square
	maxDepth  = 64      // lists and sections inside each other
	maxNodes  = 1 << 14 // values, after aliases and interpolation were followed
	maxText   = 1 << 16 // bytes of text that interpolation makes
)

// kind is the type of a value after the rules of its dialect were applied to it.
type kind uint8

const (
	nullKind kind = iota
	boolKind
	intKind
	floatKind
	textKind
	listKind
	mapKind
)

// node is one value of a workload file or of an override.
type node struct {
	kind kind
	pos  Position
	// raw is the text of a scalar as it was written, without quotes: what a key of text means by `region: 010`.
	raw   string
	truth bool
	whole *big.Int
	float float64
	items []*node
	// fields are those of a section, in the order of the file.
	fields []field
}

// field is one key of a section.
type field struct {
	name  string
	pos   Position
	value *node
}

// get returns the field of that name, or nil.
func (n *node) get(name string) *node {
	for i := range n.fields {
		if n.fields[i].name == name {
			return n.fields[i].value
		}
	}
	return nil
}

// put sets the field of that name, adding it at the end where it is not there.
func (n *node) put(name string, pos Position, value *node) {
	for i := range n.fields {
		if n.fields[i].name == name {
			n.fields[i].pos, n.fields[i].value = pos, value
			return
		}
	}
	n.fields = append(n.fields, field{name: name, pos: pos, value: value})
}

// remove takes the field of that name away.
func (n *node) remove(name string) {
	for i := range n.fields {
		if n.fields[i].name == name {
			n.fields = append(n.fields[:i:i], n.fields[i+1:]...)
			return
		}
	}
}

// find follows a dotted path of sections, or returns nil.
func (n *node) find(path string) *node {
	for n != nil && path != "" {
		name, rest, _ := strings.Cut(path, ".")
		if n.kind != mapKind {
			return nil
		}
		n, path = n.get(name), rest
	}
	return n
}

// copyOf copies n and everything below it, counting in budget; false where it is used up.
func (n *node) copyOf(budget *int) (*node, bool) {
	if *budget--; *budget < 0 {
		return nil, false
	}
	c := *n
	c.items = make([]*node, len(n.items))
	c.fields = append([]field(nil), n.fields...)
	for i, item := range n.items {
		var ok bool
		if c.items[i], ok = item.copyOf(budget); !ok {
			return nil, false
		}
	}
	for i := range c.fields {
		var ok bool
		if c.fields[i].value, ok = c.fields[i].value.copyOf(budget); !ok {
			return nil, false
		}
	}
	return &c, true
}

// equal compares values, not positions or spelling.
func (n *node) equal(m *node) bool {
	if n.kind != m.kind || len(n.items) != len(m.items) || len(n.fields) != len(m.fields) {
		return false
	}
	switch n.kind {
	case boolKind:
		return n.truth == m.truth
	case intKind:
		return n.whole.Cmp(m.whole) == 0
	case floatKind:
		return n.float == m.float
	case textKind:
		return n.raw == m.raw
	}
	for i := range n.items {
		if !n.items[i].equal(m.items[i]) {
			return false
		}
	}
	for _, f := range n.fields {
		if other := m.get(f.name); other == nil || !f.value.equal(other) {
			return false
		}
	}
	return true
}

// describe names the value for a message.
func (n *node) describe() string {
	switch n.kind {
	case nullKind:
		return "null"
	case boolKind:
		return "the boolean " + clip(n.raw)
	case intKind:
		return "the integer " + clip(n.raw)
	case floatKind:
		return "the number " + clip(n.raw)
	case textKind:
		return "the text " + strconv.Quote(clip(n.raw))
	case listKind:
		return "a list"
	}
	return "a section"
}

// clip keeps messages readable.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// spelled is the value inside a longer text, as OmegaConf writes it there: Python's str.
func (n *node) spelled() string {
	switch n.kind {
	case nullKind:
		return "None"
	case boolKind:
		if n.truth {
			return "True"
		}
		return "False"
	case intKind:
		return n.whole.String()
	case floatKind:
		return pythonFloat(n.float)
	}
	return n.raw
}
