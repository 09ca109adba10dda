package record

import (
	"fmt"
	"maps"
	"slices"
)

// Cluster says on which processes and hosts a run was carried out that several processes carried together. Which accelerators a process
// has follows from the workload; all else is class H.
type Cluster struct {
	Class Class `json:"class"`
	// Processes are all, in the order of their numbers; the first one wrote the record.
	Processes []Process `json:"processes"`
	// Hosts are those that the processes ran on, by name; in a redacted record the names are numbers.
	Hosts map[string]ClusterHost `json:"hosts"`
}

// Process is one process of several: so many accelerators from First on.
type Process struct {
	Host         string `json:"host"`
	First        int    `json:"first_accelerator"`
	Accelerators int    `json:"accelerators"`
}

// ClusterHost is what a run saw of one host.
type ClusterHost struct {
	// Processes are those on it.
	Processes int `json:"processes"`
	// Environment is absent for the host of the first process: the record's environment is it.
	Environment *Environment `json:"environment,omitempty"`
	// ClockStart and ClockEnd compare its clock with that of the first process's host, before the run and after it. ClockEnd is absent where
	// a run failed, so that nobody was there to ask.
	ClockStart ClockOffset  `json:"clock_start"`
	ClockEnd   *ClockOffset `json:"clock_end,omitempty"`
}

// ClockOffset is how far a host's wall clock is ahead of another one.
type ClockOffset struct {
	// Seconds are within Uncertainty of the true offset.
	Seconds     float64 `json:"seconds"`
	Uncertainty float64 `json:"uncertainty_seconds"`
}

// cluster holds what is said of processes and hosts.
func (c *checker) cluster(r *Record) {
	k := r.Cluster
	for i, e := range r.Metrics.Epochs {
		c.hosts(fmt.Sprintf("metrics.epochs[%d].", i), e, k)
	}
	if v := r.Metrics.Evaluation; v != nil {
		for i, e := range v.Passes {
			c.hosts(fmt.Sprintf("metrics.evaluation.passes[%d].", i), e, k)
		}
	}
	if k == nil {
		return
	}
	c.that(k.Class == HostOnly, "cluster.class", "only the hosts say so: expected H, found %q", k.Class)
	c.that(len(k.Processes) > 1, "cluster.processes", "stands where there are several, found %d", len(k.Processes))
	first, on := 0, map[string]int{}
	for i, p := range k.Processes {
		at := fmt.Sprintf("cluster.processes[%d].", i)
		_, known := k.Hosts[p.Host]
		c.that(known, at+"host", "is not among cluster.hosts: %q", p.Host)
		c.that(p.First == first && p.Accelerators > 0, at+"first_accelerator", "expected accelerators from %d on, found %d from %d on", first, p.Accelerators, p.First)
		first += p.Accelerators
		on[p.Host]++
	}
	c.that(first == r.Plan.Accelerators, "cluster.processes", "the plan has %d accelerators, the processes %d", r.Plan.Accelerators, first)
	for _, name := range slices.Sorted(maps.Keys(k.Hosts)) {
		h, at := k.Hosts[name], "cluster.hosts."+name+"."
		c.that(h.Processes == on[name] && h.Processes > 0, at+"processes", "expected %d, found %d", on[name], h.Processes)
		own := len(k.Processes) > 0 && k.Processes[0].Host == name
		c.that(own == (h.Environment == nil), at+"environment", "is absent for the host of the first process, and for no other")
		notNegative(c, at+"clock_start.uncertainty_seconds", h.ClockStart.Uncertainty)
		if end := h.ClockEnd; end != nil {
			notNegative(c, at+"clock_end.uncertainty_seconds", end.Uncertainty)
		}
		c.that(h.ClockEnd != nil || r.Status != StatusComplete, at+"clock_end", "is absent in the record of a complete run")
		c.that(!own || h.ClockStart.Seconds == 0 && (h.ClockEnd == nil || h.ClockEnd.Seconds == 0), at+"clock_start", "the clock of the first process's host is the one that others are compared with")
		if e := h.Environment; e != nil {
			sub := &checker{}
			sub.environment(e)
			for _, p := range sub.problems {
				c.that(false, at+p.Field, "%s", p.Message)
			}
			c.that(e.Redacted == r.Environment.Redacted, at+"environment.redacted", "expected %v as in the record's environment, found %v", r.Environment.Redacted, e.Redacted)
		}
	}
}

// hosts holds that file systems of an epoch are those of the hosts of the run.
func (c *checker) hosts(at string, e EpochMetrics, k *Cluster) {
	if e.Storage == nil {
		return
	}
	for i, f := range e.Storage.FileSystems {
		at := fmt.Sprintf("%sstorage.file_systems[%d].host", at, i)
		if k == nil || len(k.Hosts) < 2 {
			c.that(f.Host == "", at, "stands in runs on several hosts only, found %q", f.Host)
			continue
		}
		_, known := k.Hosts[f.Host]
		c.that(known, at, "is not among cluster.hosts: %q", f.Host)
	}
}
