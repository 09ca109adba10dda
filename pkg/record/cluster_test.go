package record

import (
	"slices"
	"testing"
)

// clustered is the sample as two processes on two hosts carry it out.
func clustered() *Record {
	r := sample()
	env := sampleEnvironment()
	env.Host.Name = "beta"
	r.Cluster = &Cluster{Class: HostOnly,
		Processes: []Process{{Host: "alpha", First: 0, Accelerators: 1}, {Host: "beta", First: 1, Accelerators: 1}},
		Hosts: map[string]ClusterHost{
			"alpha": {Processes: 1, ClockEnd: &ClockOffset{}},
			"beta":  {Processes: 1, Environment: &env, ClockStart: ClockOffset{Seconds: -0.25, Uncertainty: 0.001}, ClockEnd: &ClockOffset{Seconds: -0.26, Uncertainty: 0.001}},
		}}
	s := &Storage{FileSystems: []FileSystemTraffic{}, Memory: Figure{Unit: "B", Class: HostOnly, Absent: "not counted"}, LookSeconds: figure(0.1, "s", HostOnly)}
	asked := *r.Metrics.Epochs[0].BytesAsked.Value
	for _, host := range []string{"alpha", "beta"} {
		none := Figure{Unit: "B", Class: HostOnly, Absent: "no network"}
		s.FileSystems = append(s.FileSystems, FileSystemTraffic{Host: host, MountPoint: "/", Type: "ext4", Disks: []string{}, Asked: figure(asked/2, "B", HostOnly),
			Disk: none, Network: none, CachedBefore: none, CachedAfter: none})
	}
	r.Metrics.Epochs[0].Storage = s
	return r
}

func TestClusterRoundTrip(t *testing.T) {
	roundTrips(t, clustered())
}

// TestCheckFindsInCluster changes one thing at a time, and exactly the field named must be found.
func TestCheckFindsInCluster(t *testing.T) {
	host := func(r *Record, name string, change func(*ClusterHost)) {
		h := r.Cluster.Hosts[name]
		change(&h)
		r.Cluster.Hosts[name] = h
	}
	for name, c := range map[string]struct {
		change func(*Record)
		field  string
	}{
		"class":               {func(r *Record) { r.Cluster.Class = Recomputable }, "cluster.class"},
		"unknown host":        {func(r *Record) { r.Cluster.Processes[1].Host = "gamma" }, "cluster.processes[1].host"},
		"gap":                 {func(r *Record) { r.Cluster.Processes[1].First = 2 }, "cluster.processes[1].first_accelerator"},
		"none for a process":  {func(r *Record) { r.Cluster.Processes[1].Accelerators = 0 }, "cluster.processes[1].first_accelerator"},
		"more than the plan":  {func(r *Record) { r.Cluster.Processes[1].Accelerators = 2 }, "cluster.processes"},
		"one process":         {func(r *Record) { r.Cluster.Processes = r.Cluster.Processes[:1] }, "cluster.processes"},
		"processes of a host": {func(r *Record) { host(r, "beta", func(h *ClusterHost) { h.Processes = 2 }) }, "cluster.hosts.beta.processes"},
		"host without processes": {func(r *Record) {
			env := sampleEnvironment()
			r.Cluster.Hosts["gamma"] = ClusterHost{Environment: &env}
		}, "cluster.hosts.gamma.processes"},
		"environment missing": {func(r *Record) { host(r, "beta", func(h *ClusterHost) { h.Environment = nil }) }, "cluster.hosts.beta.environment"},
		"environment twice": {func(r *Record) {
			env := sampleEnvironment()
			host(r, "alpha", func(h *ClusterHost) { h.Environment = &env })
		}, "cluster.hosts.alpha.environment"},
		"environment's class": {func(r *Record) { r.Cluster.Hosts["beta"].Environment.Class = Recomputable }, "cluster.hosts.beta.environment.class"},
		"redacted here only":  {func(r *Record) { redactSample(&r.Environment) }, "cluster.hosts.beta.environment.redacted"},
		"own clock":           {func(r *Record) { host(r, "alpha", func(h *ClusterHost) { h.ClockEnd.Seconds = 1 }) }, "cluster.hosts.alpha.clock_start"},
		"negative uncertainty": {func(r *Record) { host(r, "beta", func(h *ClusterHost) { h.ClockEnd.Uncertainty = -1 }) },
			"cluster.hosts.beta.clock_end.uncertainty_seconds"},
		"clock not asked again": {func(r *Record) { host(r, "beta", func(h *ClusterHost) { h.ClockEnd = nil }) }, "cluster.hosts.beta.clock_end"},
		"traffic of no host":    {func(r *Record) { r.Metrics.Epochs[0].Storage.FileSystems[1].Host = "gamma" }, "metrics.epochs[0].storage.file_systems[1].host"},
		"traffic of a host, and no cluster": {func(r *Record) {
			r.Cluster = nil
			r.Metrics.Epochs[0].Storage.FileSystems[0].Host = ""
		}, "metrics.epochs[0].storage.file_systems[1].host"},
	} {
		r := clustered()
		c.change(r)
		problems := r.Check()
		if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Field == c.field }) {
			t.Errorf("%s: expected a problem with %s, found %v", name, c.field, problems)
		}
	}
	if p := clustered().Check(); p != nil {
		t.Errorf("as built: %v", p)
	}
}

// redactSample leaves out what a redacted environment leaves out.
func redactSample(e *Environment) {
	e.Redacted, e.Host.Name, e.Host.Serial = true, RedactedText, RedactedText
	for i := range e.Folders {
		e.Folders[i].Device.Serial = RedactedText
	}
}
