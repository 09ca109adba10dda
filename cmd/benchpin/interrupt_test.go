package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// interrupted WITHIN RUN PROGRAM ARG... starts a program, sends it SIGINT when its run folder RUN has step times, and wants it to end
// with code 130 within the given time.
func interrupted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupted WITHIN RUN PROGRAM ARG...")
	}
	within, err := time.ParseDuration(args[0])
	ts.Check(err)
	program, err := exec.LookPath(args[2])
	if err != nil {
		program = filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], args[2])
	}
	cmd := exec.Command(program, args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"))
	cmd.Stderr = ts.Stderr()
	ts.Check(cmd.Start())
	steps := filepath.Join(ts.MkAbs(args[1]), "steps.parquet")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(steps); err == nil {
			break
		}
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			ts.Fatalf("the run did not begin within a minute")
		}
	}
	time.Sleep(500 * time.Millisecond) // some steps
	sent := time.Now()
	ts.Check(cmd.Process.Signal(syscall.SIGINT))
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		ts.Fatalf("expected exit code %d, found %v", exitInterrupted, err)
	}
	if took := time.Since(sent); took > within {
		ts.Fatalf("ended %v after the signal, expected at most %v", took, within)
	}
}
