package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/benchpin/benchpin/pkg/store"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"benchpin": main, "dlio_benchmark": main, "dlio_benchmark_query": main})
}

// TestScripts runs the command line as people do: testdata/script/*.txtar, one file a subject.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition: func(name string) (bool, error) {
			if name != "direct" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return directReads(t)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"bucket":      bucket,
			"exits":       exits,
			"flip":        flip,
			"interrupted": interrupted,
			"put":         put,
			"registry":    startRegistry,
			"bundles":     extractBundles,
			"config":      registryConfig,
			"rank":        rank,
			"reread":      reread,
			"signalled":   signalled,
			"version":     madeBy,
		},
	})
}

// exits CODE PROGRAM ARG... runs a program and compares its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		ts.Fatalf("exits: %v", err)
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("exits: %v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%v: expected exit code %d, found %d", args[1:], want, got)
	}
}

// flip FILE OFFSET flips the lowest bit of one byte of a file; a negative offset counts from its end.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: flip FILE OFFSET")
	}
	offset, err := strconv.Atoi(args[1])
	ts.Check(err)
	path := ts.MkAbs(args[0])
	ts.Check(flipBit(path, offset))
}

// directReads says whether the folder for temporary files has reads past the page cache. In CI it must.
func directReads(t *testing.T) (bool, error) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "probe"), make([]byte, 8192), 0o666); err != nil {
		return false, err
	}
	f, err := store.NewFolder(dir, store.FolderOptions{Direct: true})
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = f.CheckDirect("probe")
	if err != nil && os.Getenv("CI") == "true" {
		return false, err
	}
	return err == nil, nil
}
