package pipeline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/workload"
)

// TestInterruptedArchive: an archive that could not be finished leaves the one of the earlier run in its place, and says how the run, which
// is complete, can be attested.
func TestInterruptedArchive(t *testing.T) {
	l, first := gone(t)
	index := func() string {
		b, err := os.ReadFile(filepath.Join(l.Archive(), "index.json"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	before := index()
	key, _, err := ownKey(l)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Workload: small(t), Dir: l.Dir, Key: key}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := &Outcome{Run: first.Run, PublicKey: l.PublicKey()}
	err = o.archive(ctx, l, out)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "benchpin attest "+first.Run+" --manifest "+l.Manifest()) {
		t.Errorf("interrupted: %v", err)
	}
	if out.Archive != "" || index() != before {
		t.Error("the archive of the earlier run is not in its place")
	}
	// A run that is refused leaves it there too.
	if err := os.Truncate(filepath.Join(first.Run, StepsName), 10); err != nil {
		t.Fatal(err)
	}
	if err := o.archive(t.Context(), l, out); err == nil || index() != before {
		t.Errorf("a damaged run: %v", err)
	}
	for _, pattern := range []string{"archive?*", ".benchpin-archive-*"} {
		if left, _ := filepath.Glob(filepath.Join(l.Dir, pattern)); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// TestUnverifiedNeedsThePolicy: what a pipeline without verification signs is accepted only by who asks for it.
func TestUnverifiedNeedsThePolicy(t *testing.T) {
	l, out := gone(t, "benchpin.verify="+workload.VerifyNone)
	if !out.Verification.OK() {
		t.Fatal(out.Verification.Err())
	}
	public, err := attest.LoadPublic(l.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	for allow, want := range map[bool]bool{true: true, false: false} {
		v, err := Verify(t.Context(), l.Archive(), []attest.PublicKey{public}, attest.Policy{AllowUnverified: allow})
		if err != nil {
			t.Fatal(err)
		}
		if v.OK() != want {
			t.Errorf("allowed %v: %v", allow, v.Err())
		}
		v.Close()
	}
}
