package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// masked makes a text harmless on a terminal, whoever wrote what it quotes: names in files, columns, paths. Control characters, escape
// sequences, marks that reorder text (U+202E and its like) and bytes that are not UTF-8 are shown as the escapes that Go writes them with; line
// ends and tabs stay. Text without any is returned as it is.
func masked(s string) string {
	clean := func(r rune) bool { return r == '\n' || r == '\t' || unicode.IsPrint(r) || unicode.Is(unicode.Zs, r) }
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !clean(r) }) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case clean(r):
			b.WriteString(s[:n])
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[n:]
	}
	return b.String()
}
