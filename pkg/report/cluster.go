package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
)

// ClusterText says on how many processes a run was carried out, and on which hosts; "" for one process.
func ClusterText(r *record.Record) string {
	k := r.Cluster
	if k == nil {
		return ""
	}
	const few = 8
	var hosts []string
	names := slices.Sorted(maps.Keys(k.Hosts))
	for i, name := range names {
		if i == few {
			hosts = append(hosts, fmt.Sprintf("and %d more", len(names)-few))
			break
		}
		hosts = append(hosts, fmt.Sprintf("%s (%d)", clean(name), k.Hosts[name].Processes))
	}
	text := fmt.Sprintf("%s on %s: %s", fmt.Sprintf("%d processes", len(k.Processes)), plural(record.Int(len(names)), "host"), strings.Join(hosts, ", "))
	if len(names) < 2 {
		return text
	}
	apart := 0.0
	for _, h := range k.Hosts {
		apart = max(apart, math.Abs(h.ClockStart.Seconds)+h.ClockStart.Uncertainty)
		if h.ClockEnd != nil {
			apart = max(apart, math.Abs(h.ClockEnd.Seconds)+h.ClockEnd.Uncertainty)
		}
	}
	return text + "; their clocks were within " + secondsText(apart) + " of the first one's"
}

// onHost names the host of a file system, in a run on several.
func onHost(host string) string {
	if host == "" {
		return ""
	}
	return " on " + clean(host)
}
