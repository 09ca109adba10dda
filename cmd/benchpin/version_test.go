package main

import (
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/benchpin/benchpin/pkg/record"
)

// madeBy FILE VERSION makes a record one that another version of the program made.
func madeBy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: version FILE VERSION")
	}
	path := ts.MkAbs(args[0])
	b, err := os.ReadFile(path)
	ts.Check(err)
	r, err := record.Parse(b)
	ts.Check(err)
	r.Tool.Version = args[1]
	b, err = r.Canonical()
	ts.Check(err)
	ts.Check(os.WriteFile(path, b, 0o644))
}
