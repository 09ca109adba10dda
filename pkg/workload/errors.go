package workload

import (
	"fmt"
	"strconv"
	"strings"
)

// Position is where something was written: a place in a file, or an override.
type Position struct {
	// File is the name of the source.
	File string
	// Line and Column count from 1; 0 where there is no such place. In an override, Column counts its characters.
	Line, Column int
	// Override is the override as it was given, "" for a place in the file.
	Override string
}

// String is "file:line:column", or the override with its column.
func (p Position) String() string {
	switch {
	case p.Override != "" && p.Column > 0:
		return fmt.Sprintf("override %q, column %d", discreet(p.Override), p.Column)
	case p.Override != "":
		return fmt.Sprintf("override %q", discreet(p.Override))
	case p.Line > 0:
		return fmt.Sprintf("%s:%d:%d", printable(p.File), p.Line, p.Column)
	}
	return printable(p.File)
}

// printable is the name of a file in a message: in quotes where it would break the line or the terminal.
func printable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// Error is one thing that is wrong with a workload.
type Error struct {
	Position
	// Path is the key, "dataset.format", or "" where the error is about the whole.
	Path string
	// Msg says what was found and what was expected.
	Msg string
	// Allowed are the allowed values, where they can be listed.
	Allowed []string
	// Hint says what to do.
	Hint string
	// Err is the cause, where there is one.
	Err error
}

// Error is the position, the key, the message, the allowed values and the hint, in one line.
func (e *Error) Error() string {
	var b strings.Builder
	if at := e.Position.String(); at != "" {
		b.WriteString(at + ": ")
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Msg)
	if len(e.Allowed) > 0 {
		b.WriteString("; allowed: " + strings.Join(e.Allowed, ", "))
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Warning is something in a workload that has no effect, or another one than it seems.
type Warning struct {
	Position
	// Path is the key, "" where the warning is about the whole.
	Path string
	// Msg says what was found and what becomes of it.
	Msg string
	// Hint says what was probably meant, "" where nothing is near.
	Hint string
}

// String is the position, the key, the message and the hint, in one line.
func (w Warning) String() string {
	e := Error{Position: w.Position, Path: w.Path, Msg: w.Msg, Hint: w.Hint}
	return e.Error()
}
