package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestMasked(t *testing.T) {
	for in, want := range map[string]string{
		"":                             "",
		"a: b, \tc\nd é 日本":            "a: b, \tc\nd é 日本",
		"\x1b[2J\x1b[Hall is well":     `\x1b[2J\x1b[Hall is well`,
		"by \u202egpj.exe\u2066\u200f": `by \u202egpj.exe\u2066\u200f`,
		"one\rtwo\x07\x00\u009b":       `one\rtwo\a\x00\u009b`,
		"\xff\xfe half \xe2\x80":       `\xff\xfe half \xe2\x80`,
		"\u2028\ufeff":                 `\u2028\ufeff`,
	} {
		if found := masked(in); found != want {
			t.Errorf("%q: expected %q, found %q", in, want, found)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		out := masked(in)
		if !utf8.ValidString(out) || masked(out) != out || strings.ContainsAny(out, "\x1b\r\u202e\u2067\u009b") {
			t.Fatalf("%q became %q", in, out)
		}
	})
}

// Whatever errors, notes and lines quote, none of it reaches the terminal raw.
func TestNothingRawOnTheTerminal(t *testing.T) {
	var stdout, stderr bytes.Buffer
	a := newApp()
	a.stdout, a.stderr = &stdout, &stderr
	const bad = "\x1b[2J\u202e\xff"
	a.notef("note %s", bad)
	a.printf("line %s\n", bad)
	if code := a.report(errors.New(bad)); code != exitFailure {
		t.Errorf("exit code %d", code)
	}
	const shown = `\x1b[2J\u202e\xff` + "\n"
	if want := "note " + shown + "benchpin: " + shown; stderr.String() != want {
		t.Errorf("standard error: expected %q, found %q", want, stderr.String())
	}
	if want := "line " + shown; stdout.String() != want {
		t.Errorf("standard output: expected %q, found %q", want, stdout.String())
	}
}
