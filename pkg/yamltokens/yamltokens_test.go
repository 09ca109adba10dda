package yamltokens_test

import (
	"strings"
	"testing"

	"github.com/goccy/go-yaml/lexer"

	"github.com/benchpin/benchpin/pkg/yamltokens"
)

// Each way of nesting is counted: at the limit it passes, one level more is refused, at its line.
func TestTooDeep(t *testing.T) {
	indented := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.Repeat(" ", i) + "a:\n")
		}
		return b.String()
	}
	const most = 8
	for name, make := range map[string]func(n int) string{
		"flow sequences":  func(n int) string { return strings.Repeat("[", n-1) + strings.Repeat("]", n-1) },
		"flow mappings":   func(n int) string { return "a: " + strings.Repeat("{a: ", n-2) + "{" + strings.Repeat("}", n-1) },
		"never closed":    func(n int) string { return strings.Repeat("[", n-1) },
		"indentation":     indented,
		"entries in line": func(n int) string { return strings.Repeat("- ", n-1) + "a" },
		"keys in line":    func(n int) string { return strings.Repeat("? ", n-1) + "a" },
		"tags":            func(n int) string { return strings.Repeat("!!map ", n-1) + "a: 1" },
		"anchors":         func(n int) string { return strings.Repeat("&a ", n-1) + "a" },
	} {
		if at := yamltokens.TooDeep(lexer.Tokenize(make(most)), most); at != nil {
			t.Errorf("%s: %d levels refused at %d:%d", name, most, at.Position.Line, at.Position.Column)
		}
		if yamltokens.TooDeep(lexer.Tokenize(make(most+1)), most) == nil {
			t.Errorf("%s: %d levels passed", name, most+1)
		}
	}
	at := yamltokens.TooDeep(lexer.Tokenize(indented(most+3)), most)
	if at == nil || at.Position.Line != most+1 || at.Position.Column != most+1 {
		t.Errorf("expected the place at which it gets too deep, found %+v", at)
	}
}

// What follows each other is no nesting: a long flat document passes, whatever it holds.
func TestFlatPasses(t *testing.T) {
	for name, text := range map[string]string{
		"keys":       strings.Repeat("a: 1\n", 1000),
		"entries":    strings.Repeat("- [a, {b: c}]\n", 1000),
		"sections":   strings.Repeat("a:\n  b:\n    c: [1]\n", 300),
		"too many ]": "a: " + strings.Repeat("]", 100) + "\n",
		"nothing":    "",
	} {
		if at := yamltokens.TooDeep(lexer.Tokenize(text), 6); at != nil {
			t.Errorf("%s: refused at %d:%d", name, at.Position.Line, at.Position.Column)
		}
	}
}
