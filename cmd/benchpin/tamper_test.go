package main

import (
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/benchpin/benchpin/pkg/record"
)

// rank FILE RANK puts another digest into a record's transcript for one rank, as a host that read other samples would.
func rank(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: rank FILE RANK")
	}
	path := ts.MkAbs(args[0])
	b, err := os.ReadFile(path)
	ts.Check(err)
	r, err := record.Parse(b)
	ts.Check(err)
	r.Transcript.Ranks[int(args[1][0]-'0')] = record.Digest([]byte("other"))
	b, err = r.Canonical()
	ts.Check(err)
	ts.Check(os.WriteFile(path, b, 0o644))
}
