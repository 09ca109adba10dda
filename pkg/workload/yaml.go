package workload

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/benchpin/benchpin/pkg/yamltokens"
)

// yamlReader turns the text of one file into nodes. The grammar is the library's; the types of scalars are ours.
type yamlReader struct {
	file    string
	dialect *dialect
	budget  int
	// anchors are the values that aliases may repeat.
	anchors map[string]*node
}

// parseYAML reads one document, whose value must be a section. It refuses what is made to hurt (deep nesting, aliases
// that multiply, large files) before it can.
func parseYAML(src Source, d *dialect) (root *node, err error) {
	r := &yamlReader{file: src.Name, dialect: d, budget: maxNodes, anchors: map[string]*node{}}
	defer func() {
		if p := recover(); p != nil {
			root, err = nil, r.fail(nil, fmt.Sprintf("the YAML reader gave up: %v", p), "simplify the file")
		}
	}()
	data := bytes.TrimPrefix(src.Data, []byte("\xef\xbb\xbf"))
	if err := r.checkText(data); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(string(data))
	// The parser calls itself for each level.
	if t := yamltokens.TooDeep(tokens, maxDepth); t != nil {
		return nil, r.fail(t, fmt.Sprintf("more than %d levels of nesting", maxDepth), "a workload needs four")
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, r.syntax(err)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if _, ok := doc.Body.(*ast.DirectiveNode); ok {
			continue
		}
		if body != nil {
			return nil, r.fail(doc.Body.GetToken(), "a second YAML document; a workload file holds one", "remove it")
		}
		body = doc.Body
	}
	if body == nil {
		return nil, r.fail(nil, "the file holds no workload", "write at least the sections dataset, reader and train")
	}
	if root, err = r.value(body); err != nil {
		return nil, err
	}
	if root.kind != mapKind {
		return nil, r.failAt(root.pos, "expected sections such as `dataset:`, found "+root.describe(), "")
	}
	return root, nil
}

// checkText refuses what no YAML file may hold, and sizes that no workload has.
func (r *yamlReader) checkText(data []byte) error {
	if len(data) > maxSource {
		return r.fail(nil, fmt.Sprintf("the file has %d bytes, a workload has at most %d", len(data), maxSource), "is it the right file?")
	}
	line, column := 1, 1
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		here := Position{File: r.file, Line: line, Column: column}
		switch {
		case c == utf8.RuneError && size == 1:
			return r.failAt(here, fmt.Sprintf("byte 0x%02x is not UTF-8", data[i]), "save the file as UTF-8")
		case c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f:
			return r.failAt(here, fmt.Sprintf("control character 0x%02x", c), "remove it")
		case c == '\n', c == '\r' && !bytes.HasPrefix(data[i+1:], []byte("\n")):
			if line, column = line+1, 0; line > maxLines {
				return r.fail(nil, fmt.Sprintf("the file has more than %d lines", maxLines), "is it the right file?")
			}
		}
		i, column = i+size, column+1
	}
	return nil
}

// value converts one value of the file.
func (r *yamlReader) value(n ast.Node) (*node, error) {
	if r.budget--; r.budget < 0 {
		return nil, r.fail(n.GetToken(), fmt.Sprintf("more than %d values", maxNodes), "is it a workload?")
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return r.section(n.GetToken(), n.Values)
	case *ast.MappingValueNode:
		return r.section(n.GetToken(), []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		out := &node{kind: listKind, pos: r.at(n.GetToken())}
		for _, item := range n.Values {
			v, err := r.value(item)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, v)
		}
		return out, nil
	case *ast.LiteralNode:
		return &node{kind: textKind, raw: n.Value.Value, pos: r.at(n.GetToken())}, nil
	case *ast.AnchorNode:
		return r.anchor(n)
	case *ast.AliasNode:
		return r.alias(n)
	case *ast.TagNode:
		return r.tagged(n)
	case *ast.NullNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.StringNode, *ast.InfinityNode, *ast.NanNode:
		return r.scalar(n.GetToken()), nil
	}
	return nil, r.fail(n.GetToken(), "found "+n.Type().String()+" where a value was expected", "")
}

func (r *yamlReader) scalar(t *token.Token) *node {
	switch t.Type {
	case token.SingleQuoteType, token.DoubleQuoteType:
		return &node{kind: textKind, raw: t.Value, pos: r.at(t)}
	case token.ImplicitNullType:
		return &node{kind: nullKind, pos: r.at(t)}
	}
	return r.dialect.yaml(t.Value, r.at(t))
}

// section converts a mapping. A key that is given twice is an error; a merge key (`<<`) fills in what is not given.
func (r *yamlReader) section(at *token.Token, values []*ast.MappingValueNode) (*node, error) {
	out := &node{kind: mapKind, pos: r.at(at)}
	if len(values) > 0 {
		out.pos = r.at(values[0].Key.GetToken())
	}
	var merged []*node
	lines := make(map[string]int, len(values)) // where each key was given
	for _, v := range values {
		value, err := r.value(v.Value)
		if err != nil {
			return nil, err
		}
		if v.Key.IsMergeKey() {
			if value.kind == listKind {
				merged = append(merged, value.items...)
			} else {
				merged = append(merged, value)
			}
			continue
		}
		name, pos, err := r.key(v.Key)
		if err != nil {
			return nil, err
		}
		if first := lines[name]; first > 0 {
			return nil, &Error{Position: pos, Path: name, Msg: fmt.Sprintf("given twice, first in line %d", first),
				Hint: "remove one of the two"}
		}
		lines[name] = pos.Line
		out.fields = append(out.fields, field{name: name, pos: pos, value: value})
	}
	for _, m := range merged {
		if m.kind != mapKind {
			return nil, r.failAt(m.pos, "`<<` needs a section, found "+m.describe(), "")
		}
		for _, f := range m.fields {
			if lines[f.name] == 0 {
				lines[f.name] = f.pos.Line
				out.fields = append(out.fields, f)
			}
		}
	}
	return out, nil
}

// key is the name of a field: any scalar, by its text.
func (r *yamlReader) key(k ast.MapKeyNode) (string, Position, error) {
	var n ast.Node = k
	if explicit, ok := n.(*ast.MappingKeyNode); ok {
		n = explicit.Value
	}
	if n == nil {
		return "", Position{}, r.fail(k.GetToken(), "a key without a name", "")
	}
	switch n := n.(type) {
	case *ast.NullNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.StringNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, r.at(n.GetToken()), nil
	}
	return "", Position{}, r.fail(n.GetToken(), "a key must be a plain name", "")
}

func (r *yamlReader) anchor(n *ast.AnchorNode) (*node, error) {
	name := n.Name.GetToken().Value
	delete(r.anchors, name) // an alias to it inside it has no value to repeat
	v, err := r.value(n.Value)
	if err == nil {
		r.anchors[name] = v
	}
	return v, err
}

func (r *yamlReader) alias(n *ast.AliasNode) (*node, error) {
	name := n.Value.GetToken().Value
	target := r.anchors[name]
	if target == nil {
		return nil, r.fail(n.GetToken(), "the alias *"+name+" has no anchor &"+name+" before it", "")
	}
	v, ok := target.copyOf(&r.budget)
	if !ok {
		return nil, r.fail(n.GetToken(), fmt.Sprintf("aliases make more than %d values", maxNodes), "write the values out")
	}
	return v, nil
}

// tagged converts a value with an explicit type.
func (r *yamlReader) tagged(n *ast.TagNode) (*node, error) {
	v, err := r.value(n.Value)
	if err != nil {
		return nil, err
	}
	want, known := map[string]kind{"!!str": textKind, "!": textKind, "!!int": intKind, "!!float": floatKind, "!!bool": boolKind,
		"!!null": nullKind, "!!seq": listKind, "!!map": mapKind}[strings.TrimSpace(n.Start.Value)]
	if !known {
		return nil, r.fail(n.Start, "the tag "+clip(n.Start.Value)+" has no meaning in a workload", "remove it")
	}
	if v.kind == want {
		return v, nil
	}
	scalar := v.kind != listKind && v.kind != mapKind
	if want == textKind && scalar {
		return &node{kind: textKind, raw: v.raw, pos: v.pos}, nil
	}
	if v.kind == textKind {
		v = r.dialect.yaml(v.raw, v.pos)
	}
	if want == floatKind && v.kind == intKind {
		f, _ := v.whole.Float64()
		return &node{kind: floatKind, raw: v.raw, float: f, pos: v.pos}, nil
	}
	if v.kind != want {
		return nil, r.failAt(v.pos, "the tag "+n.Start.Value+" does not fit "+v.describe(), "")
	}
	return v, nil
}

func (r *yamlReader) at(t *token.Token) Position {
	if t == nil || t.Position == nil {
		return Position{File: r.file}
	}
	return Position{File: r.file, Line: t.Position.Line, Column: max(t.Position.Column, 1)}
}

func (r *yamlReader) fail(t *token.Token, msg, hint string) error {
	return r.failAt(r.at(t), msg, hint)
}

func (r *yamlReader) failAt(pos Position, msg, hint string) error {
	return &Error{Position: pos, Msg: msg, Hint: hint}
}

// syntax gives the library's error our form.
func (r *yamlReader) syntax(err error) error {
	var e yaml.Error
	if errors.As(err, &e) {
		return &Error{Position: r.at(e.GetToken()), Msg: "not YAML: " + e.GetMessage(), Err: err}
	}
	return &Error{Position: Position{File: r.file}, Msg: "not YAML: " + clip(err.Error()), Err: err}
}
