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

// signalled SIGNAL WITHIN PROGRAM ARG... starts a program, sends it a signal after a while, and wants it to end with code 130 within
// the given time.
func signalled(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: signalled SIGNAL WITHIN PROGRAM ARG...")
	}
	signal, known := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}[args[0]]
	if !known {
		ts.Fatalf("signal %q is not known", args[0])
	}
	within, err := time.ParseDuration(args[1])
	ts.Check(err)
	cmd := exec.Command(filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], args[2]), args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"))
	cmd.Stderr = ts.Stderr()
	ts.Check(cmd.Start())
	time.Sleep(time.Second) // it is at work then
	sent := time.Now()
	ts.Check(cmd.Process.Signal(signal))
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		ts.Fatalf("expected exit code %d, found %v", exitInterrupted, err)
	}
	if took := time.Since(sent); took > within {
		ts.Fatalf("ended %v after the signal, expected at most %v", took, within)
	}
}
