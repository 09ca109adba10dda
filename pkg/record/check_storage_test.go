package record

import (
	"slices"
	"strings"
	"testing"
)

// counted is the sample with what was counted of its second epoch: 4.1 GB from memory.
func counted() *Record {
	r := sample()
	b := func(v float64) Figure { return figure(v, "B", HostOnly) }
	const all = 4105026880
	r.Metrics.Epochs[1].Storage = &Storage{
		FileSystems: []FileSystemTraffic{{MountPoint: "/data", Type: "ext4", Disks: []string{"sda"}, Asked: b(all), Disk: b(0),
			Network: Figure{Unit: "B", Class: HostOnly, Absent: "no network mount"}, CachedBefore: b(all), CachedAfter: b(all)}},
		Memory: b(all), Sentence: "most of it came from memory", Files: 28, LookedAt: 28, LookSeconds: figure(0.001, "s", HostOnly),
		Dropped: &Dropped{Cached: b(all), Seconds: figure(0.01, "s", HostOnly)},
	}
	spread := func(total, p50, p90 float64) Spread {
		return Spread{Total: total, P50: p50, P90: p90, P99: p90, Max: p90}
	}
	parts := func(half bool) WaitParts {
		of := func(total float64) Spread {
			if half {
				return spread(total, total/2, total/2)
			}
			return spread(total, total/4, total/2)
		}
		return WaitParts{Load: of(0.8), Queue: of(0.1), Open: of(0.1), Read: of(0.4), Decode: of(0.1), Other: of(0.1), Barrier: of(0.2), Oversleep: of(0.05)}
	}
	rank := RankWaits{Load: 0.4, Queue: 0.05, Open: 0.05, Read: 0.2, Decode: 0.05, Other: 0.05, Barrier: 0.1, Oversleep: 0.025}
	r.Metrics.Epochs[1].Waits = &Waits{Class: HostOnly, Steps: parts(false), Accelerators: parts(true), Ranks: []RankWaits{rank, rank}}
	return r
}

// TestImpossibleRecords: what no run can have counted is refused, and the field is named.
func TestImpossibleRecords(t *testing.T) {
	if p := counted().Check(); p != nil {
		t.Fatalf("as built: %v", p)
	}
	if err := ValidateSchema(mustCanonical(t, counted())); err != nil {
		t.Fatal(err)
	}
	fs := func(r *Record) *FileSystemTraffic { return &r.Metrics.Epochs[1].Storage.FileSystems[0] }
	for field, change := range map[string]func(r *Record){
		"metrics.epochs[1].storage.file_systems[0].bytes_disk":          func(r *Record) { *fs(r).Disk.Value = -1 },
		"metrics.epochs[1].storage.file_systems[0].bytes_cached_before": func(r *Record) { fs(r).CachedBefore = Figure{Unit: "B", Class: HostOnly} },
		"metrics.epochs[1].storage.file_systems[0].bytes_asked":         func(r *Record) { fs(r).Asked = Figure{Unit: "B", Class: HostOnly, Absent: "x"} },
		"metrics.epochs[1].storage.file_systems":                        func(r *Record) { *fs(r).Asked.Value-- },
		"metrics.epochs[1].storage.bytes_from_memory":                   func(r *Record) { *r.Metrics.Epochs[1].Storage.Memory.Value -= 4096 },
		"metrics.epochs[1].storage.sentence":                            func(r *Record) { r.Metrics.Epochs[1].Storage.Sentence = "" },
		"metrics.epochs[1].storage.files_looked_at":                     func(r *Record) { r.Metrics.Epochs[1].Storage.LookedAt = 29 },
		"metrics.epochs[1].storage.look_seconds":                        func(r *Record) { *r.Metrics.Epochs[1].Storage.LookSeconds.Value = -1 },
		"metrics.epochs[1].storage.dropped.seconds":                     func(r *Record) { *r.Metrics.Epochs[1].Storage.Dropped.Seconds.Value = -1 },
		"metrics.epochs[1].waits.steps.load.total":                      func(r *Record) { r.Metrics.Epochs[1].Waits.Steps.Load.Total = 0.9 },
		"metrics.epochs[1].waits.steps.read":                            func(r *Record) { r.Metrics.Epochs[1].Waits.Steps.Read.P99 = 0 },
		"metrics.epochs[1].waits.accelerators.queue":                    func(r *Record) { r.Metrics.Epochs[1].Waits.Accelerators.Queue.P50 = -1 },
		"metrics.epochs[1].waits.ranks[1].load":                         func(r *Record) { r.Metrics.Epochs[1].Waits.Ranks[1].Load = 0.5 },
		"metrics.epochs[1].waits.ranks[0].barrier":                      func(r *Record) { r.Metrics.Epochs[1].Waits.Ranks[0].Barrier = -0.5 },
		"metrics.epochs[1].waits.ranks":                                 func(r *Record) { r.Metrics.Epochs[1].Waits.Ranks = r.Metrics.Epochs[1].Waits.Ranks[:1] },
		"metrics.epochs[1].bytes_per_second":                            func(r *Record) { *r.Metrics.Epochs[1].SamplesPerSecond.Value = 1 },
		"metrics.other.au_prescribed":                                   func(r *Record) { r.Metrics.Other["au_prescribed"] = figure(100.5, "%", HostOnly) },
		"metrics.epochs":                                                func(r *Record) { *r.Metrics.Epochs[0].Seconds.Value = 1e6 },
	} {
		r := counted()
		change(r)
		if !slices.ContainsFunc(r.Check(), func(p Problem) bool { return strings.HasPrefix(p.Field, field) }) {
			t.Errorf("%s: accepted; found %v", field, r.Check())
		}
	}
	r := counted()
	for i := range r.Metrics.Epochs {
		r.Metrics.Epochs[i].BytesAsked = figure(0, "B", HostOnly)
		r.Metrics.Epochs[i].Storage = nil
	}
	if r.Check() == nil {
		t.Error("a run that asked for nothing of what was planned is accepted")
	}
}

func TestInMemory(t *testing.T) {
	for kind, want := range map[string]bool{"tmpfs": true, "ramfs": true, "hugetlbfs": true, "ext4": false, "nfs4": false, UnknownText: false} {
		if InMemory(kind) != want {
			t.Errorf("%s: expected %t", kind, want)
		}
	}
}
