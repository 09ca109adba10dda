package main

import (
	"os"
	"path/filepath"
	"strconv"

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

// reread RUN OFFSET alters one byte of the digests that a run wrote down, and the record's digest of them, as a host that read other bytes would.
func reread(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: reread RUN OFFSET")
	}
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	folder := ts.MkAbs(args[0])
	reads, err := os.ReadFile(filepath.Join(folder, "reads.bin"))
	ts.Check(err)
	reads[at] ^= 1
	ts.Check(os.WriteFile(filepath.Join(folder, "reads.bin"), reads, 0o644))
	b, err := os.ReadFile(filepath.Join(folder, "record.json"))
	ts.Check(err)
	r, err := record.Parse(b)
	ts.Check(err)
	for i := range r.Files {
		if r.Files[i].Name == "reads.bin" {
			r.Files[i].Blake3 = record.Digest(reads)
		}
	}
	b, err = r.Canonical()
	ts.Check(err)
	ts.Check(os.WriteFile(filepath.Join(folder, "record.json"), b, 0o644))
}
