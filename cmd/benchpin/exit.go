package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/audit"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/explain"
	"github.com/benchpin/benchpin/pkg/journal"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/pipeline"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// The exit codes of every command (docs/cli.md).
const (
	exitDone        = 0
	exitFailure     = 1
	exitUsage       = 2
	exitThreshold   = 3
	exitVerify      = 4
	exitDiffers     = 5
	exitInterrupted = 130
)

// usageError is a command line that cannot be carried out as written.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// codedError gives an outcome that was already printed its exit code.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// errQuiet is the error of a process whose sibling tells what is wrong.
var errQuiet = usagef("see the first process")

// exitCode derives the exit code from what an error is, not from where it came.
func exitCode(err error) int {
	var (
		coded    *codedError
		usage    *usageError
		wrong    *workload.Error
		mismatch *manifest.MismatchError
		class    manifest.Class
		found    *fault.Fault
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &coded):
		return coded.code
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &usage), errors.As(err, &wrong), errors.Is(err, attest.ErrNoKey), errors.Is(err, bench.ErrImpossible),
		errors.Is(err, bench.ErrUnsupported), errors.Is(err, pipeline.ErrInsideData), errors.Is(err, pipeline.ErrNeedManifest), errors.Is(err, audit.ErrNeedBytes), errors.Is(err, pipeline.ErrNeedReads), errors.Is(err, pipeline.ErrNotInline), errors.Is(err, pipeline.ErrNothingToDo):
		return exitUsage
	case errors.As(err, &mismatch), errors.As(err, &class), errors.As(err, &found), errors.Is(err, pipeline.ErrVerification),
		errors.Is(err, manifest.ErrUnstable), errors.Is(err, manifest.ErrProof), errors.Is(err, manifest.ErrLineage), errors.Is(err, store.ErrIrregular),
		errors.Is(err, record.ErrNotRecord), errors.Is(err, record.ErrNotCanonical), errors.Is(err, journal.ErrBroken), errors.Is(err, audit.ErrAudit), errors.Is(err, audit.ErrDocument), errors.Is(err, bench.ErrTranscript),
		errors.Is(err, bench.ErrCheckpoint), errors.Is(err, explain.ErrOther):
		return exitVerify
	case errors.Is(err, pipeline.ErrThreshold):
		return exitThreshold
	default:
		return exitFailure
	}
}

// report prints an error for people on standard error and returns its exit code.
func (a *app) report(err error) int {
	code := exitCode(err)
	if err == nil || errors.Is(err, errQuiet) {
		return code
	}
	fmt.Fprintf(a.stderr, "benchpin: %v\n", err)
	return code
}

// printf writes data to standard output. What fails is remembered there (output).
func (a *app) printf(format string, args ...any) {
	fmt.Fprintf(a.stdout, format, args...)
}

// notef writes a line for people to standard error.
func (a *app) notef(format string, args ...any) {
	fmt.Fprintf(a.stderr, format+"\n", args...)
}

// printJSON writes one document to standard output.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write JSON to standard output: %w", err)
	}
	return nil
}
