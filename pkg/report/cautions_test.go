package report

import (
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// TestCautions: each of the ways in which AU can be met beside slow storage is named, on the page too, and none where all is well.
func TestCautions(t *testing.T) {
	w, err := workload.Load(workload.Source{Name: "w.yaml", Data: []byte("framework: pytorch\noutput: {metric: {exclude_end_steps: 1}}\n")},
		workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	good := func() *record.Record {
		r := sample()
		r.Workload.Canonical = w.Canonical
		r.Plan.StepsPerEpoch = record.FewSteps + 2
		return r
	}
	for _, c := range []struct {
		want   string
		change func(r *record.Record)
	}{
		{"", func(*record.Record) {}},
		{"only 4 steps of an epoch are in the window", func(r *record.Record) { r.Plan.StepsPerEpoch-- }},
		{"only 1 step of an epoch is in the window", func(r *record.Record) { r.Plan.StepsPerEpoch = 3 }},
		{"", func(r *record.Record) { r.Plan.StepsPerEpoch = 2 }}, // the figures are absent
		{"read at 5.86 GB/s (5.46 GiB/s), below the 5.90 GB/s", func(r *record.Record) { r.Plan.RequiredBytesPerSecond = ptr(5.9e9) }},
		{"", func(r *record.Record) { r.Plan.RequiredBytesPerSecond, r.Metrics.Met = ptr(5.9e9), ptr(false) }},
		{"", func(r *record.Record) { r.Plan.RequiredBytesPerSecond = nil }},
		{"took 11.2 ms longer than prescribed, 6.0 %", func(r *record.Record) { r.Metrics.Other["oversleep_total"] = fig(0.06*0.1875, "s") }},
		{"", func(r *record.Record) { r.Metrics.Other["oversleep_total"] = fig(0.04*0.1875, "s") }},
		{"", func(r *record.Record) { delete(r.Metrics.Other, "oversleep_total") }},
		{"", func(r *record.Record) { r.Plan.StepsPerEpoch, r.Plan.Epochs = 3, 0 }}, // checkpoints alone
		{"disk loop0 of the data set is the file /dev/shm/x on tmpfs: memory", backed(record.Backing{Device: "loop0", File: "/dev/shm/x", FileSystem: "tmpfs", Memory: true})},
		{"disk zram0 of the data set is memory", backed(record.Backing{Device: "zram0", Memory: true})},
		{"disk loop0 of the data set is the file /x on ext4: that file's pages may be", backed(record.Backing{Device: "loop0", File: "/x", FileSystem: "ext4"})},
		{"lies on tmpfs, which is memory", func(r *record.Record) { r.Environment.Folders[0].FileSystem = "tmpfs" }},
		{"", func(r *record.Record) {
			r.Environment.Folders[0].FileSystem, r.Dataset.Verification.Mode = "tmpfs", workload.VerifyInline
		}},
		{"", func(r *record.Record) { r.Environment.Folders[1].FileSystem = "tmpfs" }}, // results
		{"lies on ramfs, which is memory", func(r *record.Record) { r.Metrics.Epochs[0].Storage = traffic("ramfs", false, ptr(0.)) }},
		{"before epoch 1, and nothing shows whether it was: it is hidden", func(r *record.Record) {
			r.Metrics.Epochs[0].Storage = traffic("ext4", true, nil)
		}},
		{"", func(r *record.Record) { r.Metrics.Epochs[0].Storage = traffic("ext4", true, ptr(0.)) }},
		{"when epoch 1 began, the page cache held 4.09 GB of the data set, and it asked for 4.11 GB: much of it may have come from memory", func(r *record.Record) {
			r.Metrics.Epochs[0].Storage = traffic("ext4", false, ptr(4.09e9))
		}},
		{"", func(r *record.Record) { r.Metrics.Epochs[0].Storage = traffic("ext4", false, ptr(2e9)) }},
		{"", func(r *record.Record) {
			r.Metrics.Epochs[0].Storage = traffic("ext4", false, ptr(4.09e9))
			r.Metrics.Epochs[0].Storage.Direct = true
		}},
		{"", func(r *record.Record) { r.Metrics.Epochs[0].Storage = traffic("ext4", false, nil) }}, // nothing was to be dropped
	} {
		r := good()
		c.change(r)
		list := Cautions(r)
		page := strings.Join(strings.Fields(string(summary(t, r))), " ")
		if c.want == "" {
			if list != nil || strings.Contains(page, "CAUTION") {
				t.Errorf("expected no caution, found %q", list)
			}
			continue
		}
		if len(list) != 1 || !strings.Contains(list[0], c.want) || !strings.HasPrefix(list[0], "CAUTION: ") || !strings.Contains(page, list[0]) {
			t.Errorf("expected a caution with %q, on the page too, found %q", c.want, list)
		}
	}
}

// traffic is what was counted of an epoch on one file system of that type. Of the page cache nothing is seen where cached is nil.
func traffic(kind string, dropped bool, cached *float64) *record.Storage {
	s := &record.Storage{FileSystems: []record.FileSystemTraffic{{MountPoint: "/data", Type: kind, Asked: fig(4105026880, "B"),
		CachedBefore: record.Figure{Value: cached, Unit: "B"}}}, Memory: fig(0, "B")}
	if cached == nil {
		s.FileSystems[0].CachedBefore.Absent = "it is hidden"
	}
	if dropped {
		s.Dropped = &record.Dropped{}
	}
	return s
}

// backed gives the data set's disk a backing.
func backed(b record.Backing) func(*record.Record) {
	return func(r *record.Record) { r.Environment.Folders[0].Device.Backings = []record.Backing{b} }
}
