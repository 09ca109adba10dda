package html

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
)

// traffic is where the bytes of each epoch came from. The axis ends at so many bytes.
func traffic(id string, r *Run, most float64) *chart {
	epochs := r.Record.Metrics.Epochs
	known := slices.ContainsFunc(epochs, func(e record.EpochMetrics) bool { return e.BytesDevice.Value != nil || e.Storage != nil })
	if len(epochs) == 0 || !known || most <= 0 {
		return nil
	}
	const top, base = 18.0, 178.0
	c := &chart{ID: id, Title: "Bytes from the device and from the page cache, by epoch", Height: 204,
		Legend: []key{{"device", "from the device"}, {"memory", "from the page cache"}, {"asked", "asked for"}}}
	c.frame(top, base, most, tickBytes)
	group := (len(epochs) + mostBars - 1) / mostBars
	n := (len(epochs) + group - 1) / group
	wide := 1 / float64(n)
	for i := range n {
		some := epochs[i*group : min((i+1)*group, len(epochs))]
		device, memory, asked := mean(some, func(e *record.EpochMetrics) *float64 { return e.BytesDevice.Value }),
			mean(some, func(e *record.EpochMetrics) *float64 {
				if e.Storage == nil {
					return nil
				}
				return e.Storage.Memory.Value
			}), mean(some, func(e *record.EpochMetrics) *float64 { return e.BytesAsked.Value })
		name := "epoch " + strconv.Itoa(some[0].Epoch)
		if len(some) > 1 {
			name = fmt.Sprintf("epochs %d to %d, mean", some[0].Epoch, some[len(some)-1].Epoch)
		}
		x := float64(i) * wide
		thick := min(wide*0.32, 0.06)
		middle := x + wide/2
		for j, b := range []struct {
			v           *float64
			class, what string
		}{{device, "device", "from the device"}, {memory, "memory", "from the page cache"}} {
			if b.v == nil {
				continue
			}
			h := (base - top) * clamp(*b.v/most)
			c.Rects = append(c.Rects, rect{pc(middle + (float64(j)-1)*thick), px(base - h), pc(thick * 0.94), px(h), b.class, name + ": " + report.DecimalBytes(*b.v) + " " + b.what})
		}
		if asked != nil {
			y := base - (base-top)*clamp(*asked/most)
			c.Lines = append(c.Lines, line{pc(middle - 1.25*thick), px(y), pc(middle + 1.25*thick), px(y), "asked"})
		}
		if n <= 16 || i%((n+7)/8) == 0 {
			c.Texts = append(c.Texts, text{pc(middle), px(base + 18), "middle", "tick", strconv.Itoa(some[0].Epoch)})
		}
	}
	c.Desc = fmt.Sprintf("Bars for %d epochs: bytes that the kernel counted as read from block devices for this process, and bytes that the page cache had.", len(epochs))
	c.Data = trafficTable(epochs)
	return c
}

func mean(epochs []record.EpochMetrics, of func(*record.EpochMetrics) *float64) *float64 {
	var sum float64
	n := 0
	for i := range epochs {
		if v := of(&epochs[i]); v != nil {
			sum += *v
			n++
		}
	}
	if n == 0 {
		return nil
	}
	sum /= float64(n)
	return &sum
}

// cell is a figure in a table, with its unit.
func cell(f record.Figure) string {
	if f.Value == nil {
		return "-"
	}
	if f.Unit == "B" {
		return report.DecimalBytes(*f.Value)
	}
	return report.FigureText(f)
}

func trafficTable(epochs []record.EpochMetrics) table {
	t := table{Caption: "Where the bytes came from", Head: []string{"epoch", "asked for", "from the device", "from the page cache", "disk, by anybody", "server, by anybody",
		"cached before", "cached after"}}
	absent := map[string]bool{}
	note := func(what string, f record.Figure) {
		if s := what + ": " + report.Clean(f.Absent) + "."; f.Value == nil && f.Absent != "" && !absent[s] {
			absent[s] = true
			t.Notes = append(t.Notes, s)
		}
	}
	for i := range epochs {
		e := &epochs[i]
		if skipped(i, len(epochs), &t) {
			continue
		}
		name := strconv.Itoa(e.Epoch)
		note("No bytes from the device", e.BytesDevice)
		if e.Storage == nil {
			t.Rows = append(t.Rows, []string{name, cell(e.BytesAsked), cell(e.BytesDevice), "-", "-", "-", "-", "-"})
			continue
		}
		note("No bytes from the page cache", e.Storage.Memory)
		if e.Storage.Dropped != nil {
			name += ", begun cold"
		}
		for j, f := range e.Storage.FileSystems {
			row := []string{name, cell(f.Asked), cell(e.BytesDevice), cell(e.Storage.Memory), cell(f.Disk), cell(f.Network), cell(f.CachedBefore), cell(f.CachedAfter)}
			if len(e.Storage.FileSystems) > 1 {
				row[0] += ", " + report.Clean(f.Type) + " at " + report.Clean(f.MountPoint) + onHost(f.Host)
				if j > 0 {
					row[2], row[3] = "", ""
				}
			}
			t.Rows = append(t.Rows, row)
		}
		if e.Storage.Direct && !absent["direct"] {
			absent["direct"] = true
			t.Notes = append(t.Notes, "Files were read past the page cache (O_DIRECT).")
		}
		if e.Storage.LookedAt > 0 && e.Storage.LookedAt < e.Storage.Files && !absent["looked"] {
			absent["looked"] = true
			t.Notes = append(t.Notes, fmt.Sprintf("What is cached is an estimate, from %s of %s files.", report.Count(e.Storage.LookedAt), report.Count(e.Storage.Files)))
		}
	}
	t.Notes = append(t.Notes, "The device can deliver more than was asked for: the kernel reads ahead, in whole pages, and files are opened.")
	return t
}

// onHost names the host of a file system, in a run on several.
func onHost(host string) string {
	if host == "" {
		return ""
	}
	return " on " + report.Clean(host)
}
