package workload

import (
	"fmt"
	"strconv"
	"strings"
)

// resolver follows `${a.b}`: the value of another key, whole where it stands alone, as text inside a longer text.
// Paths start at the top of the file, with or without the leading `workload.`; a leading dot starts at the section
// where the text stands, each further dot one section higher.
type resolver struct {
	root *node
	// open holds the values that are being resolved: to meet one of them again is a cycle.
	open   map[*node]bool
	done   map[*node]bool
	budget int // values that may still be copied
	text   int // bytes of text that may still be made
}

// resolve replaces every interpolation in the file.
func resolve(root *node) error {
	r := &resolver{root: root, open: map[*node]bool{}, done: map[*node]bool{}, budget: maxNodes, text: maxText}
	return r.node(root, nil)
}

// node resolves n and everything below it; above are the sections and lists around it, the outermost first.
func (r *resolver) node(n *node, above []*node) error {
	if r.done[n] {
		return nil
	}
	if r.open[n] {
		return r.fail(n, "`${...}` leads back to where it stands", "write the value itself in one of the places")
	}
	if len(above) > maxDepth {
		return r.fail(n, fmt.Sprintf("more than %d levels of nesting", maxDepth), "")
	}
	r.open[n] = true
	defer delete(r.open, n)
	inside := append(above[:len(above):len(above)], n)
	for _, f := range n.fields {
		if err := r.node(f.value, inside); err != nil {
			return err
		}
	}
	for _, item := range n.items {
		if err := r.node(item, inside); err != nil {
			return err
		}
	}
	if n.kind == textKind && strings.Contains(n.raw, "${") {
		if err := r.expand(n, above); err != nil {
			return err
		}
	}
	if n.kind == textKind && n.raw == "???" {
		return r.fail(n, "the value ??? says that it must be given", "give it with an override")
	}
	r.done[n] = true
	return nil
}

// expand replaces the text of n.
func (r *resolver) expand(n *node, above []*node) error {
	if strings.HasPrefix(n.raw, "${") && closing(n.raw) == len(n.raw) {
		target, err := r.target(n, n.raw[2:len(n.raw)-1], above, 0)
		if err != nil {
			return err
		}
		c, ok := target.copyOf(&r.budget)
		if !ok {
			return r.fail(n, fmt.Sprintf("`${...}` makes more than %d values", maxNodes), "")
		}
		c.pos = n.pos
		*n = *c
		return nil
	}
	s, err := r.expandText(n, n.raw, above, 0)
	if err != nil {
		return err
	}
	n.raw = s
	return nil
}

// expandText replaces every `${...}` in s by the text of its value; `\${` stands for `${`.
func (r *resolver) expandText(n *node, s string, above []*node, depth int) (string, error) {
	var b strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			b.WriteString(s)
			break
		}
		before := strings.TrimRight(s[:i], `\`)
		slashes := i - len(before)
		b.WriteString(before + strings.Repeat(`\`, slashes/2))
		if slashes%2 == 1 {
			b.WriteString("${")
			s = s[i+2:]
			continue
		}
		end := closing(s[i:])
		if end < 0 {
			return "", r.fail(n, "`${` is not closed", "add }, or write \\${ for the text itself")
		}
		target, err := r.target(n, s[i+2:i+end-1], above, depth)
		if err != nil {
			return "", err
		}
		if target.kind == listKind || target.kind == mapKind {
			return "", r.fail(n, "`${"+clip(s[i+2:i+end-1])+"}` is "+target.describe()+", which does not fit into a text", "")
		}
		v := target.spelled()
		if r.text -= len(v); r.text < 0 {
			return "", r.fail(n, fmt.Sprintf("`${...}` makes more than %d bytes of text", maxText), "")
		}
		b.WriteString(v)
		s = s[i+end:]
	}
	return b.String(), nil
}

// target finds the value that the inside of `${...}` names, and resolves it.
func (r *resolver) target(n *node, inner string, above []*node, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, r.fail(n, "too many `${` inside each other", "")
	}
	if strings.Contains(inner, "${") {
		s, err := r.expandText(n, inner, above, depth+1)
		if err != nil {
			return nil, err
		}
		inner = s
	}
	inner = strings.TrimSpace(inner)
	if name, _, ok := strings.Cut(inner, ":"); ok {
		return nil, r.fail(n, "the resolver "+clip(name)+" in `${"+clip(inner)+"}` is not followed: a workload depends on its bytes alone",
			"write the value, or give it with --set")
	}
	path := strings.TrimLeft(inner, ".")
	dots := len(inner) - len(path)
	parts := splitPath(path)
	if len(parts) == 0 {
		return nil, r.fail(n, "`${"+clip(inner)+"}` names no key", "")
	}
	at, around := r.root, []*node(nil)
	if dots > 0 {
		if dots > len(above) {
			return nil, r.fail(n, "`${"+clip(inner)+"}` goes above the top of the file", "")
		}
		at, around = above[len(above)-dots], above[:len(above)-dots]
	} else {
		if parts[0] == "workload" && r.root.get("workload") == nil {
			parts = parts[1:]
		}
		if len(parts) > 0 && parts[0] == "data_reader" {
			parts[0] = "reader"
		}
	}
	for _, part := range parts {
		around = append(around[:len(around):len(around)], at)
		next := child(at, part)
		if next == nil {
			return nil, r.fail(n, "`${"+clip(inner)+"}`: the file has no such key", "a default cannot be named: write the key first")
		}
		if next.kind == textKind && strings.Contains(next.raw, "${") {
			if err := r.node(next, around); err != nil {
				return nil, err
			}
		}
		at = next
	}
	return at, r.node(at, around)
}

// child is one step of a path: a key of a section, or an index of a list.
func child(n *node, part string) *node {
	if n.kind == mapKind {
		return n.get(part)
	}
	i, err := strconv.Atoi(part)
	if n.kind != listKind || err != nil || i < -len(n.items) || i >= len(n.items) {
		return nil
	}
	if i < 0 {
		i += len(n.items)
	}
	return n.items[i]
}

// splitPath splits a.b[0].c into its steps.
func splitPath(path string) []string {
	path = strings.ReplaceAll(strings.ReplaceAll(path, "]", ""), "[", ".")
	var parts []string
	for _, part := range strings.Split(path, ".") {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

func (r *resolver) fail(n *node, msg, hint string) error {
	return &Error{Position: n.pos, Msg: msg, Hint: hint}
}
