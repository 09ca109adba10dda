package workload

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The operations of an override.
const (
	opChange = ""   // the key must be there
	opAdd    = "+"  // the key must not be there
	opForce  = "++" // either
	opRemove = "~"
)

// override is one parsed override.
type override struct {
	text string
	op   string
	// path is the key without the leading "workload".
	path []string
	// value is nil where a removal names none.
	value *node
	// foreign overrides belong to Hydra itself and have no effect here.
	foreign bool
}

// parseOverride reads one override in Hydra's grammar.
func parseOverride(text string, d *dialect) (override, error) {
	o := override{text: text}
	if !utf8.ValidString(text) {
		return o, &Error{Position: Position{Override: strings.ToValidUTF8(text, "?")}, Msg: "not UTF-8"}
	}
	if len(text) > maxSource {
		return o, &Error{Msg: fmt.Sprintf("an override of %d bytes", len(text)), Hint: "put it into a file"}
	}
	fail := func(column int, msg, hint string) (override, error) {
		return o, &Error{Position: Position{Override: text, Column: column}, Msg: msg, Hint: hint}
	}
	rest := text
	for _, op := range []string{opForce, opAdd, opRemove} {
		if after, ok := strings.CutPrefix(rest, op); ok {
			o.op, rest = op, after
			break
		}
	}
	name, value, hasValue := strings.Cut(rest, "=")
	column := 1 + len(o.op)
	switch {
	case name == "":
		return fail(column, "no key", "write it as "+clip(o.op)+"workload.section.key=value")
	case strings.HasPrefix(name, "-"):
		return fail(column, "looks like a flag", "flags start with -- and stand apart from overrides")
	case name == "workload" && hasValue:
		return fail(column, "a workload is not chosen by an override", "give its name or path as the argument")
	case strings.HasPrefix(name, "hydra."):
		o.foreign = true
		return o, nil
	}
	o.path = strings.Split(name, ".")
	for _, part := range o.path {
		if part == "" || strings.ContainsAny(part, " \t'\"[]{}(),:@$\\") {
			return fail(column, fmt.Sprintf("%q is not a key", clip(name)), "write it as workload.section.key")
		}
	}
	if o.path[0] != "workload" || len(o.path) < 2 {
		return fail(column, fmt.Sprintf("the key %q does not start with `workload.`", clip(name)),
			"write ++workload."+clip(name)+"=... or --set "+clip(name)+"=...")
	}
	o.path = o.path[1:]
	if !hasValue {
		if o.op != opRemove {
			return fail(column, "no value", "write "+clip(o.op+name)+"=VALUE")
		}
		return o, nil
	}
	p := &valueParser{text: text, at: len(text) - len(value), dialect: d}
	v, err := p.parse()
	if err != nil {
		return o, err
	}
	if o.op != opRemove || value != "" {
		o.value = v
	}
	return o, nil
}

// shown is the override without credentials.
func (o override) shown() string {
	full := strings.Join(o.path, ".")
	for _, k := range keys(new(Workload)) {
		inside, ok := strings.CutPrefix(k.path, full+".")
		if k.secret && o.value != nil && (k.path == full || ok && o.value.find(inside) != nil) {
			name, _, _ := strings.Cut(o.text, "=")
			return name + "=***"
		}
	}
	return discreet(o.text)
}

// apply applies o to the file's sections.
func (d *decoder) apply(root *node, o override) {
	pos := Position{Override: o.text}
	if o.foreign {
		d.warn(pos, "", "a setting of Hydra, ignored", "--out names the folder of results")
		return
	}
	names := append([]string(nil), o.path...)
	if names[0] == "data_reader" {
		names[0] = "reader" // one section with two names
	}
	full := strings.Join(names, ".")
	fail := func(msg, hint string) {
		d.errs = append(d.errs, &Error{Position: pos, Path: clip(full), Msg: msg, Hint: hint})
	}
	at, last := root, names[len(names)-1]
	for i, name := range names[:len(names)-1] {
		next := at.get(name)
		if next == nil || next.kind == nullKind {
			if o.op == opChange || o.op == opRemove {
				fail("the file has no such key", missingHint(o, full))
				return
			}
			next = &node{kind: mapKind, pos: pos}
			at.put(name, pos, next)
		}
		if next.kind != mapKind {
			fail(strings.Join(names[:i+1], ".")+" is "+next.describe()+", not a section", "")
			return
		}
		at = next
	}
	old := at.get(last)
	switch {
	case old == nil && (o.op == opChange || o.op == opRemove):
		fail("the file has no such key", missingHint(o, full))
	case old != nil && o.op == opAdd:
		fail("the file has this key already", "write ++workload."+full+"=... to change it")
	case o.op == opRemove && o.value != nil && !old.equal(o.value):
		fail("its value is "+old.describe()+", not "+o.value.describe(), "write ~workload."+full+" to remove it whatever it is")
	case o.op == opRemove:
		at.remove(last)
	case old != nil && old.kind == mapKind && o.value.kind == mapKind:
		merge(old, o.value)
	default:
		at.put(last, pos, o.value)
	}
}

// missingHint says how to set a key that the file does not have.
func missingHint(o override, full string) string {
	table := keys(new(Workload))
	known := make(map[string]bool, len(table))
	for _, k := range table {
		known[k.path] = true
	}
	if o.op == opChange && known[full] {
		return "write ++workload." + full + "=... to add it"
	}
	if near := nearestPath(clip(full), known, nil); near != "" && near != full {
		return "did you mean " + near + "?"
	}
	return ""
}

// merge puts the fields of from into the section to, section by section.
func merge(to, from *node) {
	for _, f := range from.fields {
		if old := to.get(f.name); old != nil && old.kind == mapKind && f.value.kind == mapKind {
			merge(old, f.value)
			continue
		}
		to.put(f.name, f.pos, f.value)
	}
}
