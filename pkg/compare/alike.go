package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
)

// Difference is one thing in which a run is not like the first.
type Difference struct {
	// Run is the index of the run that differs.
	Run int `json:"run"`
	// Item is what differs: "status", "data root", "schedule", "rules" or "workload" of runs that are no like things; "tool", "machine" or
	// "storage" of those that may be.
	Item string `json:"item"`
	// Field is where: the name of a field of the record, or of a key of the workload.
	Field string `json:"field"`
	// First and Other are the values in the first run and in this one; "(none)" where there is none.
	First string `json:"first"`
	Other string `json:"other"`
}

// none stands for a value that is not there.
const none = "(none)"

// isRule tells the keys of a workload by which figures are computed and judged, and data is held to be the same: two runs of the same
// work by other rules.
func isRule(key string) bool {
	for _, p := range []string{"metric.", "output.metric.", "benchpin.thresholds.", "benchpin.verify", "benchpin.cold_cache"} {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return false
}

// drawnWith is the public value that the order of samples was drawn with.
func drawnWith(r *record.Record) string {
	if r.NotBefore == nil {
		return none
	}
	return r.NotBefore.Value
}

// Unlike lists what makes two records no like things: an incomplete run, another data root, another schedule (what was read, in which order,
// by the transcript), other rules, another workload. Records without a difference may be compared. Run of each is 1.
func Unlike(a, b *record.Record) []Difference {
	d := &differences{}
	d.add("status", "status", a.Status, b.Status)
	if len(d.list) == 0 && a.Status != record.StatusComplete {
		// Two that ended early are alike in that, and no results.
		d.list = append(d.list, Difference{Run: 1, Item: "status", Field: "status", First: a.Status, Other: b.Status})
	}
	d.add("data root", "dataset.root", a.Dataset.Root, b.Dataset.Root)
	d.add("schedule", "not_before.value", drawnWith(a), drawnWith(b))
	d.add("schedule", "transcript.root", a.Transcript.Root, b.Transcript.Root)
	d.add("schedule", "transcript.evaluation.root", evaluationRoot(a), evaluationRoot(b))
	if a.Workload.Digest == b.Workload.Digest {
		return d.list
	}
	x, y := leaves(a.Workload.Canonical), leaves(b.Workload.Canonical)
	var keys []string
	for k := range x {
		keys = append(keys, k)
	}
	for k := range y {
		if _, ok := x[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	at := func(m map[string]string, k string) string {
		if v, ok := m[k]; ok {
			return v
		}
		return none
	}
	for _, rules := range []bool{true, false} {
		item := "workload"
		if rules {
			item = "rules"
		} else {
			d.add(item, "workload.digest", a.Workload.Digest, b.Workload.Digest)
		}
		for _, k := range keys {
			if isRule(k) == rules {
				d.add(item, k, at(x, k), at(y, k))
			}
		}
	}
	return d.list
}

// Context lists in what the tool, the machine and the storage of two runs differ, which may be the reason for other figures, or what is
// being compared. Run of each is 1.
func Context(a, b *record.Record) []Difference {
	d := &differences{}
	for _, f := range []struct {
		item, field string
		of          func(r *record.Record) string
	}{
		{"tool", "tool.version", func(r *record.Record) string { return r.Tool.Version }},
		{"tool", "tool.commit", func(r *record.Record) string { return r.Tool.Commit }},
		{"tool", "tool.platform", func(r *record.Record) string { return r.Tool.Platform }},
		{"tool", "tool.binary", func(r *record.Record) string { return r.Tool.Binary }},
		{"machine", "environment.host.name", func(r *record.Record) string { return r.Environment.Host.Name }},
		{"machine", "environment.host.kernel", func(r *record.Record) string { return r.Environment.Host.Kernel }},
		{"machine", "environment.cpu.model", func(r *record.Record) string { return r.Environment.CPU.Model }},
		{"machine", "environment.cpu.usable", func(r *record.Record) string { return whole(r.Environment.CPU.Usable) }},
		{"machine", "environment.memory.total_bytes", func(r *record.Record) string { return whole(r.Environment.Memory.Total) }},
		{"machine", "environment.limits.cgroup_cpu", func(r *record.Record) string { return r.Environment.Limits.CgroupCPU }},
		{"machine", "environment.container.kind", func(r *record.Record) string { return r.Environment.Container.Kind }},
		{"machine", "cluster.processes", func(r *record.Record) string { return processes(r) }},
		{"storage", "environment.folders.data.file_system", func(r *record.Record) string { return dataFolder(r).FileSystem }},
		{"storage", "environment.folders.data.source", func(r *record.Record) string { return dataFolder(r).Source }},
		{"storage", "environment.folders.data.mount_point", func(r *record.Record) string { return dataFolder(r).MountPoint }},
		{"storage", "environment.folders.data.options", func(r *record.Record) string { return dataFolder(r).Options }},
		{"storage", "environment.folders.data.device.name", func(r *record.Record) string { return dataFolder(r).Device.Name }},
		{"storage", "environment.folders.data.device.model", func(r *record.Record) string { return dataFolder(r).Device.Model }},
		{"storage", "environment.buckets.data.address", func(r *record.Record) string { return dataBucket(r).Address }},
		{"storage", "environment.buckets.data.endpoints", func(r *record.Record) string { return strings.Join(dataBucket(r).Endpoints, ", ") }},
	} {
		d.add(f.item, f.field, f.of(a), f.of(b))
	}
	return d.list
}

type differences struct{ list []Difference }

func (d *differences) add(item, field, first, other string) {
	if first != other {
		text := func(s string) string {
			if s == "" {
				return none
			}
			return s
		}
		d.list = append(d.list, Difference{Run: 1, Item: item, Field: field, First: text(first), Other: text(other)})
	}
}

func evaluationRoot(r *record.Record) string {
	if r.Transcript.Evaluation == nil {
		return ""
	}
	return r.Transcript.Evaluation.Root
}

func whole[T ~int | ~int64](v *T) string {
	if v == nil {
		return ""
	}
	return strconv.FormatInt(int64(*v), 10)
}

// dataBucket is the bucket that the data was read from; empty for a record without.
func dataBucket(r *record.Record) record.Bucket {
	for _, b := range r.Environment.Buckets {
		if b.Role == record.RoleData {
			return b
		}
	}
	return record.Bucket{}
}

// dataFolder is where the data was read from; empty for a record without.
func dataFolder(r *record.Record) record.Folder {
	for _, f := range r.Environment.Folders {
		if f.Role == record.RoleData {
			return f
		}
	}
	return record.Folder{}
}

// leaves are the values of a canonical workload by their keys: train.epochs and so on. Bytes that are no JSON have one.
func leaves(canonical []byte) map[string]string {
	dec := json.NewDecoder(bytes.NewReader(canonical))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return map[string]string{"workload": string(canonical)}
	}
	out := map[string]string{}
	walk("", v, out)
	return out
}

func walk(at string, v any, out map[string]string) {
	object, ok := v.(map[string]any)
	if !ok {
		out[at] = valueText(v)
		return
	}
	for k, inner := range object {
		if at != "" {
			k = at + "." + k
		}
		walk(k, inner, out)
	}
}

func valueText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// processes says how many processes carried a run out, on how many hosts; none where one did.
func processes(r *record.Record) string {
	if r.Cluster == nil {
		return none
	}
	return fmt.Sprintf("%d on %d hosts", len(r.Cluster.Processes), len(r.Cluster.Hosts))
}
