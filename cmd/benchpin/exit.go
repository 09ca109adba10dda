package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/oci/registry"
	"github.com/benchpin/benchpin/pkg/audit"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/cluster/mpi"
	"github.com/benchpin/benchpin/pkg/compare"
	"github.com/benchpin/benchpin/pkg/explain"
	"github.com/benchpin/benchpin/pkg/export"
	"github.com/benchpin/benchpin/pkg/journal"
	"github.com/benchpin/benchpin/pkg/live"
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

// isAny reports whether an error is one of several.
func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

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
	case errors.As(err, &usage), errors.As(err, &wrong), isAny(err,
		attest.ErrNoKey,
		audit.ErrNeedBytes,
		bench.ErrImpossible,
		bench.ErrUnsupported,
		cluster.ErrDisagree,
		export.ErrCard,
		export.ErrExists,
		export.ErrModelSigning,
		export.ErrNeedManifest,
		export.ErrNoRecord,
		live.ErrUnfit,
		mpi.ErrLauncher,
		mpi.ErrNoMPI,
		pipeline.ErrInsideData,
		pipeline.ErrInsideResult,
		pipeline.ErrNeedData,
		pipeline.ErrNeedManifest,
		pipeline.ErrNeedReads,
		pipeline.ErrNotInline,
		pipeline.ErrNothingToDo,
		pipeline.ErrPreregistered,
		registry.ErrPlainHTTP,
		registry.ErrReference,
	):
		return exitUsage
	case errors.As(err, &mismatch), errors.As(err, &class), errors.As(err, &found), isAny(err,
		audit.ErrAudit,
		audit.ErrDocument,
		bench.ErrCheckpoint,
		bench.ErrTranscript,
		compare.ErrOther,
		explain.ErrOther,
		journal.ErrBroken,
		manifest.ErrLineage,
		manifest.ErrProof,
		manifest.ErrUnstable,
		pipeline.ErrVerification,
		record.ErrNotCanonical,
		record.ErrNotRecord,
		registry.ErrDamaged,
		store.ErrIrregular,
	):
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
	if err == nil || errors.Is(err, errQuiet) || !a.own(err) {
		return code
	}
	w, who := a.reportFrom()
	fmt.Fprintf(w, "%s%s\n", who, masked(err.Error()))
	return code
}

// printf writes data to standard output. What fails is remembered there (output). Texts of strangers are masked, as everywhere that people
// read: programs read JSON.
func (a *app) printf(format string, args ...any) {
	_, _ = io.WriteString(a.stdout, masked(fmt.Sprintf(format, args...)))
}

// notef writes a line for people to standard error.
func (a *app) notef(format string, args ...any) {
	_, _ = io.WriteString(a.stderr, masked(fmt.Sprintf(format, args...))+"\n") // nobody to tell
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
