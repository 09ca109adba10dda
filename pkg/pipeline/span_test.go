package pipeline

import (
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/record"
)

// TestSpan: a record whose run was over, by its clock, before its steps or checkpoints were is refused.
func TestSpan(t *testing.T) {
	_, out := gone(t, "train.computation_time=0.2") // 2 epochs x 4 steps: 1.6 s at least
	v := out.Verification
	plan, _, f := planAgain(t.Context(), v)
	if f != nil {
		t.Fatal(f)
	}
	if f := spanAgain(v, plan); f != nil {
		t.Fatalf("an honest record: %v", f)
	}
	honest := *v.Record
	defer func() { *v.Record = honest }()
	started, err := time.Parse(time.RFC3339Nano, honest.Started)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(r *record.Record)
		want   string
	}{
		"steps": {func(r *record.Record) {
			r.Finished, r.Checkpoints.Saves = stamp(started.Add(100*time.Millisecond)), nil
		}, "the last step of " + StepsName + " ends after "},
		"checkpoints": {func(r *record.Record) {
			r.Checkpoints.Saves = []record.Checkpoint{{Start: new(float64), Seconds: []float64{1, 3600}}}
		}, "the last checkpoint ends after 1h"},
		"millennia": {func(r *record.Record) { r.Finished = "9999" + r.Finished[4:] }, "expected at most 24h"},
	} {
		*v.Record = honest
		c.change(v.Record)
		if f := spanAgain(v, plan); f == nil || !strings.Contains(f.Error(), c.want) {
			t.Errorf("%s: found %v", name, f)
		}
	}
}
