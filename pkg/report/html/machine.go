package html

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
)

// facts are what was run on what.
func facts(r *record.Record) []fact {
	p, d := &r.Plan, &r.Dataset
	var list []fact
	if p.Epochs > 0 {
		list = append(list, fact{string(p.Class), "Plan", fmt.Sprintf("%s of %s, batches of %d, %s, %s each", report.Plural(record.Int(p.Epochs), "epoch"), report.Plural(p.StepsPerEpoch, "step"),
			p.BatchSize, report.Plural(record.Int(p.Accelerators), "accelerator"), report.Plural(record.Int(p.ReadThreads), "read thread"))})
		kind := "taken as it is"
		if d.Generated {
			kind = "generated from seed " + d.Seed
		}
		list = append(list, fact{string(d.Class), "Data set", report.Plural(d.Files, "file") + ", " + report.Bytes(float64(d.Bytes)) + ", " + kind},
			fact{string(d.Verification.Class), "Compared with its manifest", report.Verified(&d.Verification)})
	}
	if j := r.Journal; j != nil {
		list = append(list, fact{string(j.Class), "Attempt", fmt.Sprintf("%d with this workload on this data, by a journal of %s", j.Attempt, report.Plural(j.Entries, "line"))})
	}
	if o := r.ReplayOf; o != nil {
		list = append(list, fact{string(o.Class), "Replay of", "run " + o.Run + ", archive " + o.Archive})
	}
	commit := "commit not recorded by the build"
	if r.Tool.Commit != "" {
		commit = "commit " + r.Tool.Commit
	}
	if r.Tool.Modified {
		commit += " with changes"
	}
	list = append(list, fact{"H", "Tool", fmt.Sprintf("%s %s, %s, %s, %s", r.Tool.Name, r.Tool.Version, commit, r.Tool.Go, r.Tool.Platform)})
	for i := range list {
		list[i].Value, list[i].Class = report.Clean(list[i].Value), report.Clean(list[i].Class)
	}
	return list
}

// machine are the few lines about the host that a reader looks for.
func machine(e *record.Environment) []fact {
	var list []fact
	add := func(name string, parts ...string) {
		parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" || s == record.UnknownText })
		if len(parts) == 0 {
			parts = []string{record.UnknownText}
		}
		list = append(list, fact{report.Clean(string(e.Class)), name, report.Clean(strings.Join(parts, ", "))})
	}
	number := func(n *int, what string) string {
		if n == nil {
			return ""
		}
		if *n == 1 {
			what = strings.TrimSuffix(what, "s")
		}
		return strconv.Itoa(*n) + " " + what
	}
	size := func(n *record.Int, what string) string {
		if n == nil {
			return ""
		}
		return report.Bytes(float64(*n)) + what
	}
	add("Host", e.Host.Name, strings.TrimSpace(known(e.Host.Vendor)+" "+known(e.Host.Product)))
	add("System", e.Host.Distribution, e.Host.OS+" "+e.Host.Kernel, e.Host.Architecture)
	add("Processors", e.CPU.Model, number(e.CPU.Sockets, "sockets"), number(e.CPU.Cores, "cores"), number(e.CPU.Usable, "usable"))
	add("Memory", size(e.Memory.Total, ""), size(e.Memory.Available, " available"))
	for i := range e.Folders {
		f := &e.Folders[i]
		name := strings.ToUpper(f.Role[:min(1, len(f.Role))]) + f.Role[min(1, len(f.Role)):]
		device := ""
		if f.Device.Name != "" && f.Device.Name != record.UnknownText {
			device = strings.TrimSpace("device " + f.Device.Name + " " + known(f.Device.Model))
		}
		add(report.Clean(name)+" on", f.FileSystem+" at "+f.MountPoint, device, size(f.Free, " free"))
	}
	for i := range e.Buckets {
		b := &e.Buckets[i]
		name := strings.ToUpper(b.Role[:min(1, len(b.Role))]) + b.Role[min(1, len(b.Role)):]
		add(report.Clean(name)+" on", "bucket "+b.Address, strings.Join(b.Endpoints, ", "))
	}
	if e.ResultsApart != nil && !*e.ResultsApart {
		add("Results", "written to the file system that data is read from")
	}
	add("Container", e.Container.Kind)
	return list
}

func known(s string) string {
	if s == record.UnknownText {
		return ""
	}
	return s
}

// mostFields is the number of fields of the environment that a page lists.
const mostFields = 400

// environment lists all that the run saw of its machine, by the names of the record.
func environment(e *record.Environment, n, of int) table {
	t := table{Caption: "All that the run saw of its machine", Head: []string{"field", "value"}}
	if of > 1 {
		t.Caption += fmt.Sprintf(", run %d", n)
	}
	b, err := json.Marshal(e)
	if err != nil {
		return t
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return t
	}
	flatten(&t, "", v)
	if more := len(t.Rows) - mostFields; more > 0 {
		t.Rows = append(t.Rows[:mostFields], []string{fmt.Sprintf("%d more", more), ""})
	}
	return t
}

func flatten(t *table, name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			flatten(t, strings.TrimPrefix(name+"."+k, "."), v[k])
		}
	case []any:
		if len(v) == 0 {
			t.Rows = append(t.Rows, []string{report.Clean(name), "none"})
		}
		for i, one := range v {
			flatten(t, name+"."+strconv.Itoa(i), one)
		}
	case nil:
		t.Rows = append(t.Rows, []string{report.Clean(name), "none"})
	default:
		t.Rows = append(t.Rows, []string{report.Clean(name), report.Clean(fmt.Sprint(v))})
	}
}
