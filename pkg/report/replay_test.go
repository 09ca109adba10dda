package report

import (
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/record"
)

func TestReplayText(t *testing.T) {
	if text := ReplayText(&record.Record{}); text != "" {
		t.Errorf("a run that repeats nothing: %q", text)
	}
	r := &record.Record{ReplayOf: &record.ReplayOf{Run: "r\x1b1", Archive: "sha256:ab"}}
	if text := ReplayText(r); strings.Contains(text, "\x1b") || !strings.Contains(text, "sha256:ab") || strings.Contains(text, "VERIFY") {
		t.Errorf("%q", text)
	}
	r.ReplayOf.Unverified = true
	if text := ReplayText(r); !strings.Contains(text, "DID NOT VERIFY") {
		t.Errorf("%q", text)
	}
}
