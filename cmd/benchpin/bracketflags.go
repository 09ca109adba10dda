package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/sigstore"
	"github.com/benchpin/benchpin/pkg/pipeline"
	"github.com/benchpin/benchpin/pkg/record"
)

// bracketFlags bound the time of a run from outside: from below by a public value.
type bracketFlags struct {
	value, source, known string
}

func (f *bracketFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.value, "not-before-value", "", "public `value` that nobody knew before a time, such as today's of a randomness beacon: the order of samples is drawn with it, so that the run began after that time")
	cmd.Flags().StringVar(&f.source, "not-before-source", "", "`text` that says who published the value and where it is looked up (with --not-before-value)")
	cmd.Flags().StringVar(&f.known, "not-before-time", "", "`time` from which the value was known, by its source, such as 2026-11-30T12:00:00Z (with --not-before-value)")
}

// notBefore is what the record says of the value; nil where none is given.
func (f *bracketFlags) notBefore(now time.Time) (*record.NotBefore, error) {
	if *f == (bracketFlags{}) {
		return nil, nil
	}
	for name, value := range map[string]string{"not-before-value": f.value, "not-before-source": f.source, "not-before-time": f.known} {
		if value == "" {
			return nil, usagef("a public value, its source and its time belong together: expected --%s too", name)
		}
	}
	known, err := time.Parse(time.RFC3339Nano, f.known)
	if err != nil {
		return nil, usagef("--not-before-time %q: expected a time such as 2026-11-30T12:00:00Z", f.known)
	}
	return pipeline.NewNotBefore(f.value, f.source, known, now)
}

// stampFlags have the transcript's root timestamped as soon as the run is over.
type stampFlags struct {
	trust trustFlags
	url   string
}

func (f *stampFlags) add(cmd *cobra.Command) {
	f.trust.add(cmd)
	cmd.Flags().StringVar(&f.url, "timestamp-url", "", "`URL` of an RFC 3161 timestamp authority that is asked for a timestamp of the transcript's root when the run is over")
}

// stamp is who is asked; nil for nobody.
func (f *stampFlags) stamp(a *app) (func(context.Context, []byte) ([]byte, error), error) {
	if f.url == "" && f.trust != (trustFlags{}) {
		// No error: who verifies may have the variables of these flags set for good.
		a.notef("no timestamp is asked for: --timestamp-roots and --trusted-root say whom to trust, and --timestamp-url whom to ask")
	}
	if err := webAddresses(map[string][]string{"timestamp-url": {f.url}}); err != nil {
		return nil, err
	}
	t, err := f.trust.trusted()
	if err != nil {
		return nil, err
	}
	w, err := witness(t)
	switch {
	case err != nil || f.url == "":
		return nil, err
	case w == nil:
		return nil, usagef("--timestamp-url needs --timestamp-roots or --trusted-root: what an authority answers is verified before it is kept")
	}
	return stampBy(f.url, w), nil
}

func stampBy(url string, w attest.Witness) func(context.Context, []byte) ([]byte, error) {
	return func(ctx context.Context, message []byte) ([]byte, error) {
		return sigstore.Timestamp(ctx, url, message, w, nil)
	}
}
