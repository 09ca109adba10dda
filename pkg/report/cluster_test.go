package report

import (
	"testing"

	"github.com/benchpin/benchpin/pkg/record"
)

func TestClusterText(t *testing.T) {
	if text := ClusterText(&record.Record{}); text != "" {
		t.Errorf("one process: %q", text)
	}
	r := &record.Record{Cluster: &record.Cluster{Processes: make([]record.Process, 5), Hosts: map[string]record.ClusterHost{"alpha": {Processes: 5}}}}
	if text, want := ClusterText(r), "5 processes on 1 host: alpha (5)"; text != want {
		t.Errorf("%q, expected %q", text, want)
	}
	r.Cluster.Hosts = map[string]record.ClusterHost{"beta\x1b[2J": {Processes: 2, ClockStart: record.ClockOffset{Seconds: -0.25, Uncertainty: 0.01},
		ClockEnd: &record.ClockOffset{Seconds: -0.49, Uncertainty: 0.01}}, "alpha": {Processes: 3}}
	if text, want := ClusterText(r), "5 processes on 2 hosts: alpha (3), beta\\x1b[2J (2); their clocks were within 500 ms of the first one's"; text != want {
		t.Errorf("%q, expected %q", text, want)
	}
}
