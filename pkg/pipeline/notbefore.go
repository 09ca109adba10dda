package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/record"
)

// ErrNoTimestamp: the run is complete, its record is written, and nobody saw the root of its transcript in time.
var ErrNoTimestamp = errors.New("the transcript was not timestamped")

// valueOf is the public value that an order is drawn with, "" for none.
func valueOf(n *record.NotBefore) string {
	if n == nil {
		return ""
	}
	return n.Value
}

// NewNotBefore is what a record says of a public value: what it is, who published it, and from when it was known. now is the host's clock, by
// which it must be known already. Errors wrap bench.ErrImpossible.
func NewNotBefore(value, source string, known, now time.Time) (*record.NotBefore, error) {
	if err := bench.CheckNotBefore(value); err != nil {
		return nil, err
	}
	if err := bench.CheckNotBefore(source); err != nil {
		return nil, fmt.Errorf("source of the value: %w", err)
	}
	if known.After(now) {
		return nil, fmt.Errorf("%w: a value that is known from %s cannot be had at %s, by this host's clock", bench.ErrImpossible, stamp(known), stamp(now))
	}
	return &record.NotBefore{Class: record.HostOnly, Value: value, Source: source, Time: stamp(known)}, nil
}

// stampTranscript has a third party see the roots of the transcript, and keeps its answer in the run folder.
func (r *run) stampTranscript(ctx context.Context, t *record.Transcript) error {
	if r.Stamp == nil {
		return nil
	}
	answer, err := r.Stamp(ctx, t.Timestamped())
	if err != nil {
		return fmt.Errorf("%w, and its result is complete and kept without: %w", ErrNoTimestamp, err)
	}
	if err := writeFile(filepath.Join(r.Out, record.TimestampName), answer); err != nil {
		return err
	}
	r.stamped = true
	r.stage("stamped  the transcript's root, by a third party")
	return nil
}

// timestampFile is the file that stampTranscript made.
func (r *run) timestampFile() ([]record.File, error) {
	if !r.stamped {
		return nil, nil
	}
	f, err := fileOf(r.Out, record.TimestampName)
	if err != nil {
		return nil, err
	}
	return []record.File{f}, nil
}
