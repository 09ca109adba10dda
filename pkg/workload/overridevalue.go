package workload

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// valueParser reads the value of an override in Hydra's grammar: quoted texts, lists, sections, and plain words.
type valueParser struct {
	text    string
	at      int // byte offset of what is read next
	depth   int
	values  int
	dialect *dialect
}

func (p *valueParser) pos() Position {
	return Position{Override: p.text, Column: 1 + utf8.RuneCountInString(p.text[:p.at])}
}

func (p *valueParser) fail(msg, hint string) error {
	return &Error{Position: p.pos(), Msg: msg, Hint: hint}
}

// peek is the next byte, 0 at the end.
func (p *valueParser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *valueParser) space() {
	for p.peek() == ' ' || p.peek() == '\t' {
		p.at++
	}
}

// parse reads the whole value.
func (p *valueParser) parse() (*node, error) {
	v, err := p.value("")
	if err != nil {
		return nil, err
	}
	p.space()
	switch {
	case p.at == len(p.text):
		return v, nil
	case p.peek() == ',':
		return nil, p.fail("a comma outside of brackets asks for a sweep, which is not done here",
			"write a list as [a,b], or put the text in quotes")
	}
	return nil, p.fail(fmt.Sprintf("unexpected %q", clip(p.text[p.at:])), "put the whole value in quotes")
}

// value reads one value, which ends before one of the bytes in stop, at the top also before a comma.
func (p *valueParser) value(stop string) (*node, error) {
	p.space()
	if p.values++; p.values > maxNodes {
		return nil, p.fail("too many values", "put them into a file")
	}
	if p.depth > maxDepth {
		return nil, p.fail(fmt.Sprintf("more than %d levels of brackets", maxDepth), "")
	}
	switch p.peek() {
	case '\'', '"':
		return p.quoted()
	case '[':
		return p.list()
	case '{':
		return p.section()
	}
	return p.plain(stop)
}

// quoted reads a text in quotes. A backslash before a quote keeps the quote; two before it are one backslash; others
// stay.
func (p *valueParser) quoted() (*node, error) {
	start, quote := p.pos(), p.peek()
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		c := p.text[p.at]
		if c == quote {
			p.at++
			return &node{kind: textKind, raw: b.String(), pos: start}, nil
		}
		if c != '\\' {
			b.WriteByte(c)
			continue
		}
		n := 0
		for p.at+n < len(p.text) && p.text[p.at+n] == '\\' {
			n++
		}
		if p.at+n < len(p.text) && p.text[p.at+n] == quote {
			b.WriteString(strings.Repeat(`\`, n/2))
			if n%2 == 1 {
				b.WriteByte(quote)
				p.at++
			}
		} else {
			b.WriteString(strings.Repeat(`\`, n))
		}
		p.at += n - 1
	}
	return nil, &Error{Position: start, Msg: fmt.Sprintf("the quote %c is not closed", quote),
		Hint: "the shell may have taken a quote: quote the whole override"}
}

func (p *valueParser) list() (*node, error) {
	out := &node{kind: listKind, pos: p.pos()}
	p.depth++
	defer func() { p.depth-- }()
	p.at++
	if p.space(); p.peek() == ']' {
		p.at++
		return out, nil
	}
	for {
		v, err := p.value(",]")
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, v)
		p.space()
		switch p.peek() {
		case ',':
			p.at++
		case ']':
			p.at++
			return out, nil
		default:
			return nil, p.fail("expected , or ] in a list", "")
		}
	}
}

func (p *valueParser) section() (*node, error) {
	out := &node{kind: mapKind, pos: p.pos()}
	p.depth++
	defer func() { p.depth-- }()
	p.at++
	if p.space(); p.peek() == '}' {
		p.at++
		return out, nil
	}
	for {
		p.space()
		at := p.pos()
		name, err := p.value(":,}")
		if err != nil {
			return nil, err
		}
		p.space()
		if p.peek() != ':' || name.kind == listKind || name.kind == mapKind || name.raw == "" {
			return nil, p.fail("expected {key: value}", "")
		}
		if out.get(name.raw) != nil {
			return nil, &Error{Position: at, Path: clip(name.raw), Msg: "given twice", Hint: "remove one of the two"}
		}
		p.at++
		v, err := p.value(",}")
		if err != nil {
			return nil, err
		}
		out.fields = append(out.fields, field{name: name.raw, pos: at, value: v})
		p.space()
		switch p.peek() {
		case ',':
			p.at++
		case '}':
			p.at++
			return out, nil
		default:
			return nil, p.fail("expected , or } in a section", "")
		}
	}
}

// plain reads an unquoted value. A backslash keeps the byte behind it from having a meaning; `${...}` is taken whole.
func (p *valueParser) plain(stop string) (*node, error) {
	start := p.pos()
	var b strings.Builder
	escaped, kept := false, 0 // kept: bytes that the trimming of white space may not touch
	for p.at < len(p.text) {
		c := p.text[p.at]
		switch {
		case c == ',' || strings.IndexByte(stop, c) >= 0:
			return p.word(b.String(), kept, escaped, start)
		case c == '\\' && p.at+1 < len(p.text) && strings.IndexByte(`\()[]{}:=, `+"\t", p.text[p.at+1]) >= 0:
			b.WriteByte(p.text[p.at+1])
			escaped, kept = true, b.Len()
			p.at += 2
			continue
		case c == '$' && strings.HasPrefix(p.text[p.at:], "${"):
			end := closing(p.text[p.at:])
			if end < 0 {
				return nil, p.fail("`${` is not closed", "add }")
			}
			b.WriteString(p.text[p.at : p.at+end])
			kept = b.Len()
			p.at += end
			continue
		case c == '(' || c == ')':
			return nil, p.fail("parentheses call a function, which is not done here", "put the value in quotes")
		case strings.IndexByte(`[]{}'"`, c) >= 0:
			return nil, p.fail(fmt.Sprintf("%q inside a value without quotes", c), "put the value in quotes")
		}
		b.WriteByte(c)
		p.at++
	}
	return p.word(b.String(), kept, escaped, start)
}

// word types an unquoted value. White space at its end does not belong to it.
func (p *valueParser) word(s string, kept int, escaped bool, start Position) (*node, error) {
	s = s[:kept] + strings.TrimRight(s[kept:], " \t")
	if s == "" || escaped {
		return &node{kind: textKind, raw: s, pos: start}, nil
	}
	return p.dialect.hydra(s, start), nil
}

// closing is the length of the `${...}` at the start of s, -1 where it is not closed.
func closing(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "${"):
			depth++
			i++
		case s[i] == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
