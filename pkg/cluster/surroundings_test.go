package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/cluster/clustertest"
)

// What must be alike in all processes, or in those of a host, is refused, and what may differ is told: to all, in the same words.
func TestSurrounded(t *testing.T) {
	for _, c := range []struct {
		name       string
		change     func(rank int, s *cluster.Surroundings)
		told, want string
	}{
		{"alike", func(int, *cluster.Surroundings) {}, "", ""},
		{"hosts differ", func(rank int, s *cluster.Surroundings) {
			if rank > 3 {
				s.Host["processors"], s.Told["kernel"] = "8", "6.8"
			}
		}, "kernel: process 0 on node0 has 6.1, process 4 on node2, process 5 on node2 6.8", ""},
		{"within a host", func(rank int, s *cluster.Surroundings) {
			if rank == 3 {
				s.Host["processors"], s.Told["kernel"] = "8", "6.8"
			}
		}, "", "the processes do not agree: processors: process 2 on node1 has 64, process 3 on node1 8"},
		{"in the job", func(rank int, s *cluster.Surroundings) {
			switch rank {
			case 1:
				s.Job["GOGC"] = "off"
			case 4, 5:
				delete(s.Job, "GOGC")
			}
		}, "", "the processes do not agree: GOGC: process 0 on node0 has 100, process 1 on node0 off\n" +
			"  GOGC: process 0 on node0 has 100, process 4 on node2, process 5 on node2 none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := clustertest.New(6, 2).Run(t.Context(), func(ctx context.Context, w *cluster.World) error {
				s := cluster.Surroundings{Job: map[string]string{"GOGC": "100"}, Host: map[string]string{"processors": "64"}, Told: map[string]string{"kernel": "6.1"}}
				c.change(w.Rank(), &s)
				told, err := w.Surrounded(ctx, s)
				if told != c.told || (err != nil) != (c.want != "") || err != nil && (!errors.Is(err, cluster.ErrDisagree) || err.Error() != c.want) {
					return fmt.Errorf("process %d is told %q, and %w", w.Rank(), told, err)
				}
				return w.Barrier(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	if told, err := cluster.Alone().Surrounded(t.Context(), cluster.Surroundings{Job: map[string]string{"a": "b"}}); told != "" || err != nil {
		t.Errorf("alone: %q, %v", told, err)
	}
}
