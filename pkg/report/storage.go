package report

import (
	"strconv"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
)

// storage shows where the bytes of each epoch came from, a row for each epoch and file system.
func (p *page) storage(epochs []record.EpochMetrics) {
	var largest float64
	n := 0
	for i := range epochs {
		s := epochs[i].Storage
		if s == nil {
			continue
		}
		n++
		for _, f := range s.FileSystems {
			for _, v := range []record.Figure{f.Asked, f.Disk, f.Network, f.CachedBefore, f.CachedAfter} {
				if v.Value != nil {
					largest = max(largest, *v.Value)
				}
			}
		}
	}
	if n == 0 {
		return
	}
	unit, size := column(largest)
	p.title("Where the bytes came from, in " + unit + " (H)")
	var rows [][]string
	for i := range epochs {
		s := epochs[i].Storage
		if s == nil || len(epochs) > maxRows && i >= maxRows/2 && i < len(epochs)-maxRows/2 {
			continue
		}
		for _, f := range s.FileSystems {
			dropped := "-"
			if s.Dropped != nil {
				dropped = cell(s.Dropped.Cached, size)
			}
			rows = append(rows, []string{strconv.Itoa(epochs[i].Epoch), clean(f.Type) + " at " + clean(f.MountPoint) + onHost(f.Host), cell(f.Asked, size),
				cell(epochs[i].BytesDevice, size), cell(f.Disk, size), cell(f.Network, size), cell(s.Memory, size), dropped, cell(f.CachedBefore, size),
				cell(f.CachedAfter, size)})
		}
	}
	p.table(false, []string{"epoch", "file system", "asked", "from device", "disk, by all", "server, by all", "memory", "dropped", "cached before",
		"after"}, rows)
	s := lastStorage(epochs)
	if s.Direct {
		p.row("", "", "files were read past the page cache (O_DIRECT)")
	}
	if s.LookedAt > 0 && s.LookedAt < s.Files {
		p.row("", "", "cached bytes are an estimate from "+count(s.LookedAt)+" of "+plural(s.Files, "file"))
	}
	for _, f := range []record.Figure{s.Memory} {
		if f.Value == nil {
			p.row("", "", "bytes from memory are absent: "+clean(f.Absent))
		}
	}
	if len(s.FileSystems) > 0 && len(s.FileSystems[0].Disks) > 0 {
		p.row("", "", "disks: "+clean(strings.Join(s.FileSystems[0].Disks, ", "))+"; what anybody on this machine read from them in that time")
	}
}

// lastStorage is that of the last epoch that has one.
func lastStorage(epochs []record.EpochMetrics) *record.Storage {
	for i := len(epochs) - 1; i >= 0; i-- {
		if s := epochs[i].Storage; s != nil {
			return s
		}
	}
	return &record.Storage{}
}
