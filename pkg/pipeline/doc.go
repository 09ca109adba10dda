// Package pipeline is the whole way: generate a data set, pin it, verify it, run on it, attest the result, archive it, and verify the
// archive again; and every part of the way for itself. It joins the rooms below: what each of them does is theirs.
//
// It never prints; what people should see while it works goes through Notify.
package pipeline

import (
	"errors"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/datagen"
	"github.com/benchpin/benchpin/pkg/live"
	"github.com/benchpin/benchpin/pkg/report"
)

// ErrThreshold is wrapped by the error of a complete run whose figures do not reach the thresholds of its workload.
var ErrThreshold = errors.New("threshold not met")

// ErrVerification is wrapped by the error of an archive, or of a data set, that is not what it must be.
var ErrVerification = attest.ErrVerification

// refused gives an error of a room below the class ErrVerification, and leaves its text as it is.
type refused struct{ error }

func (e refused) Unwrap() []error { return []error{e.error, ErrVerification} }

// asVerification gives errors about data that are not what they must be their class.
func asVerification(err error) error {
	var replaced *bench.IdentityError
	var content *datagen.ContentError
	if errors.As(err, &replaced) || errors.As(err, &content) && content.Altered || errors.Is(err, bench.ErrRead) || errors.Is(err, bench.ErrOther) {
		return refused{err}
	}
	return err
}

// Notify tells whoever waits what is going on. Its functions may be nil, and must be quick.
type Notify struct {
	// Stage is called when a part of the way begins or ends, with a line for people.
	Stage func(format string, args ...any)
	// Progress is called with files and bytes done of all files and bytes, of the part that is going on. Where the unit is not files,
	// done and all count what the part counts: steps of a run.
	Progress func(part string, doneFiles, allFiles, doneBytes, allBytes int64)
	// Live, if not nil, is called each second of the timed part of a run, in place of Progress, from one goroutine of its own, and once when
	// that has ended. It may be slow: the run does not wait for it, only its end does.
	Live func(live.Sample)
	// PlainReads, if not nil, is called when a complete run missed its AU, with what plain reads of the same files come to; they take two
	// seconds and more. Advice that rests on them is report.Advise's.
	PlainReads func(*report.PlainReads)
}

func (n Notify) stage(format string, args ...any) {
	if n.Stage != nil {
		n.Stage(format, args...)
	}
}

func (n Notify) progress(part string, doneFiles, allFiles, doneBytes, allBytes int64) {
	if n.Progress != nil {
		n.Progress(part, doneFiles, allFiles, doneBytes, allBytes)
	}
}
