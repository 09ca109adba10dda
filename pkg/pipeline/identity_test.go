package pipeline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/environment"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
)

// TestVerifyAfterSeesWhatWasPutBack: a file that is altered when the run has begun and restored before it is hashed is found by its
// identity, whether the run reads it or not.
func TestVerifyAfterSeesWhatWasPutBack(t *testing.T) {
	w := small(t, "benchpin.verify=after", "workflow.checkpoint=false")
	l, _ := generated(t, w.Workload)
	tool, err := environment.Tool("test", "")
	if err != nil {
		t.Fatal(err)
	}
	run := func(alter string) (*record.Record, error) {
		began := func(format string, _ ...any) {
			if !strings.HasPrefix(format, "run ") || alter == "" {
				return
			}
			time.Sleep(20 * time.Millisecond) // more than the granularity of a file system's times
			path := filepath.Join(l.Data(), alter)
			was, err := os.Stat(path)
			if err != nil {
				t.Error(err)
				return
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
				return
			}
			b[len(b)/2] ^= 1
			err = os.WriteFile(path, b, 0o666)
			b[len(b)/2] ^= 1
			if err = errors.Join(err, os.WriteFile(path, b, 0o666), os.Chtimes(path, was.ModTime(), was.ModTime())); err != nil {
				t.Error(err)
			}
		}
		return Run(t.Context(), RunOptions{Workload: w, Data: l.Data(), Manifest: l.Manifest(), Checkpoints: l.Checkpoints(),
			Out: filepath.Join(t.TempDir(), "run"), Tool: tool, Notify: Notify{Stage: began}})
	}
	r, err := run("")
	if err != nil {
		t.Fatal(err)
	}
	if r.Dataset.Verification.IdentityRechecked != 32 {
		t.Errorf("identity was compared %d times, expected once for each of 32 samples", r.Dataset.Verification.IdentityRechecked)
	}
	// Sample 16 and 17 of 18 are dropped, so that the last file is never opened.
	for _, file := range []string{"train/0/img_0_of_9.npz", "train/2/img_8_of_9.npz"} {
		r, err := run(file)
		var replaced *bench.IdentityError
		if !errors.As(err, &replaced) || replaced.Path != file || !errors.Is(err, ErrVerification) {
			t.Errorf("%s was altered and restored: %v", file, err)
		}
		if r == nil || r.Status != record.StatusIncomplete {
			t.Errorf("%s: expected an incomplete record, found %v", file, r)
		}
	}
	if err := os.Remove(filepath.Join(l.Data(), "train/0/img_0_of_9.npz")); err != nil {
		t.Fatal(err)
	}
	var mismatch *manifest.MismatchError
	if _, err := run(""); !errors.As(err, &mismatch) || mismatch.Kind != manifest.Missing {
		t.Errorf("a file is missing: %v", err)
	}
}

// TestNoRunNoFolder: a run that did not begin leaves no empty run folder, and leaves one that was there.
func TestNoRunNoFolder(t *testing.T) {
	w := small(t)
	l, _ := generated(t, w.Workload)
	there := filepath.Join(t.TempDir(), "there")
	if err := os.Mkdir(there, 0o777); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	verifying := func(format string, _ ...any) {
		if strings.HasPrefix(format, "verify ") {
			cancel()
		}
	}
	for out, stays := range map[string]bool{there: true, filepath.Join(t.TempDir(), "new"): false} {
		r, err := Run(ctx, RunOptions{Workload: w, Data: l.Data(), Manifest: l.Manifest(), Checkpoints: l.Checkpoints(), Out: out,
			Notify: Notify{Stage: verifying}})
		if r != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v", r, err)
		}
		if _, err := os.Stat(out); stays != (err == nil) {
			t.Errorf("%s: expected it to be there %v, found %v", out, stays, err)
		}
	}
}
