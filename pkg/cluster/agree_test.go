package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/cluster/clustertest"
)

// A handshake names every field in which somebody differs, who, and both values; all get the same text, and the world stays whole.
func TestHandshake(t *testing.T) {
	errs := make([]error, 6)
	err := clustertest.New(6, 2).Run(t.Context(), func(ctx context.Context, w *cluster.World) error {
		fields := map[string]string{"workload": "blake3:aa", "version": "1.0", "data": "seen"}
		if err := w.Handshake(ctx, fields); err != nil {
			return fmt.Errorf("equal fields: %w", err)
		}
		switch w.Rank() {
		case 2, 3:
			fields["version"] = "1.1"
		case 4:
			fields["data"] = "no such folder"
			fields["version"] = "0.9"
		case 5:
			delete(fields, "workload")
		}
		errs[w.Rank()] = w.Handshake(ctx, fields)
		return w.Barrier(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `the processes do not agree: data: process 0 on node0 has seen, process 4 on node2 no such folder
  version: process 0 on node0 has 1.0, process 2 on node1, process 3 on node1 1.1
  version: process 0 on node0 has 1.0, process 4 on node2 0.9
  workload: process 0 on node0 has blake3:aa, process 5 on node2 none`
	for r, err := range errs {
		if !errors.Is(err, cluster.ErrDisagree) || err.Error() != want {
			t.Errorf("process %d got:\n%v\nwant:\n%s", r, err, want)
		}
	}
	if err := cluster.Alone().Handshake(t.Context(), map[string]string{"a": "b"}); err != nil {
		t.Errorf("alone: %v", err)
	}
}

// Agree gives all processes one error, which is still each one's own.
func TestAgree(t *testing.T) {
	errs := make([]error, 8)
	full := errors.New("no space left")
	err := clustertest.Run(t.Context(), 8, func(ctx context.Context, w *cluster.World) error {
		if err := w.Agree(ctx, nil); err != nil {
			return fmt.Errorf("nobody failed: %w", err)
		}
		var own error
		if w.Rank() > 1 {
			own = full
		}
		if w.Rank() == 1 {
			own = context.Canceled
		}
		errs[w.Rank()] = w.Agree(ctx, own)
		return w.Barrier(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "process 1 on node0: context canceled\n  process 2 on node0, process 3 on node0, process 4 on node0, process 5 on node0 " +
		"and 2 more: no space left"
	for r, err := range errs {
		if err == nil || err.Error() != want {
			t.Errorf("process %d got:\n%v\nwant:\n%s", r, err, want)
		}
		if !errors.Is(err, cluster.ErrAgreed) || errors.Is(err, full) != (r > 1) || errors.Is(err, context.Canceled) != (r == 1) {
			t.Errorf("process %d's error is not its own: %v", r, err)
		}
	}
	if err := cluster.Alone().Agree(t.Context(), full); err != full {
		t.Errorf("alone: %v", err)
	}
}

// In one process all clocks are one: the offsets are as small as their uncertainty says.
func TestClockOffsets(t *testing.T) {
	err := clustertest.New(4, 2).Run(t.Context(), func(ctx context.Context, w *cluster.World) error {
		all, err := w.ClockOffsets(ctx)
		if err != nil {
			return err
		}
		for i, o := range all {
			if o.Rank != i || o.Node != fmt.Sprintf("node%d", i/2) || o.Offset.Abs() > o.Uncertainty+time.Microsecond || (i > 0) != (o.Uncertainty > 0) {
				return fmt.Errorf("process %d: %+v", w.Rank(), o)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
