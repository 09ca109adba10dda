package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
)

// refusing fails every write.
type refusing struct{ err error }

func (r refusing) Write([]byte) (int, error) { return 0, r.err }

// A result that could not be written is a failure, unless nobody wanted more of it.
func TestOutputThatFails(t *testing.T) {
	for _, args := range [][]string{{"plan", "quickstart"}, {"plan", "quickstart", "--json"}, {"workload", "list"}, {"version"}, {"run", "--help"},
		{"workload", "show", "quickstart"}} {
		for err, want := range map[error]int{syscall.ENOSPC: exitFailure, &os.PathError{Op: "write", Err: syscall.EPIPE}: exitDone} {
			var stderr bytes.Buffer
			a := newApp()
			a.stdout, a.stderr, a.terminal, a.color = refusing{err}, &stderr, false, false
			if code := a.run(context.Background(), args); code != want {
				t.Errorf("%v, %v: expected exit code %d, found %d", args, err, want, code)
			}
			if told := strings.Contains(stderr.String(), err.Error()); told != (want == exitFailure) {
				t.Errorf("%v, %v: standard error says %q", args, err, stderr.String())
			}
		}
	}
}
