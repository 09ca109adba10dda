package explain

import (
	"context"
	"fmt"
	"strconv"

	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/record"
)

// storage explains what was counted in an epoch. Counts are notes of the run in its file of step times; what follows from them is computed.
func (s *Source) storage(ctx context.Context, x *Explanation, p *part, epoch int, path []string) error {
	d, err := p.counted(epoch)
	if err != nil {
		return err
	}
	if d == nil || d.Storage == nil {
		return fmt.Errorf("%w: the file of step times has no counts of the storage", ErrNoFigure)
	}
	n := d.Storage
	x.Source = "benchpin.device_bytes in " + fileName(p) + ", as the run noted it"
	x.Formula = "the kernel's counter after the epoch less that before it"
	figure := func(f record.Figure, meaning string) error {
		x.Meaning = meaning
		if f.Value != nil {
			x.input("noted", *f.Value, f.Unit, "")
			x.Computed = *f.Value
		}
		return nil
	}
	switch path[0] {
	case "file_systems":
		i, err := strconv.Atoi(path[1])
		if err != nil || i < 1 || i > len(n.FileSystems) {
			return ErrNoFigure
		}
		return s.fileSystem(x, &n.FileSystems[i-1], path[2], figure)
	case "bytes_from_memory", "sentence":
		var asked int64
		if err := p.each(ctx, epoch, func(s *stats.Step) { asked += s.Bytes }); err != nil {
			return err
		}
		x.Meaning = "bytes asked for that no device delivered: the page cache had them"
		x.Formula = "max(0, asked - device)"
		x.input("asked", asked, "B", "sum of bytes of the epoch's rows")
		if d.Bytes == nil || n.Memory.Value == nil {
			return nil
		}
		x.input("device", int64(*d.Bytes), "B", "read_bytes of /proc/self/io")
		memory := max(0, asked-int64(*d.Bytes))
		x.Computed = float64(memory)
		if path[0] == "sentence" {
			x.Meaning, x.Formula = "says in words that most of an epoch came from memory", "stands where more than half of what was asked for came from memory"
			x.input("from memory", memory, "B", "max(0, asked - device)")
			x.Computed = fmt.Sprintf("most of what this epoch asked for came from memory and not from storage: %d of %d bytes", memory, asked)
		}
		return nil
	case "files", "files_looked_at":
		x.Meaning, x.Formula = "files that the run reads, and of how many of them the page cache was asked for what it holds", "as it was noted"
		x.Computed = fmt.Sprint(int64(n.Files))
		if path[0] == "files_looked_at" {
			x.Computed = fmt.Sprint(int64(n.LookedAt))
		}
		x.input("noted", x.Computed, "files", "")
		return nil
	case "look_seconds":
		x.Formula = "as it was measured"
		return figure(n.LookSeconds, "what looking at counters and page cache took, before and after the epoch")
	case "dropped":
		x.Formula = "as it was measured"
		if path[1] == "seconds" {
			return figure(n.Dropped.Seconds, "what dropping the data set from the page cache took")
		}
		return figure(n.Dropped.Cached, "bytes of the data set in the page cache before it was dropped")
	}
	return ErrNoFigure
}

func (s *Source) fileSystem(x *Explanation, f *record.FileSystemTraffic, name string, figure func(record.Figure, string) error) error {
	on := " (" + f.Type + " at " + f.MountPoint + ")"
	switch name {
	case "bytes_asked":
		x.Formula = "the readers' counter after the epoch less that before it"
		return figure(f.Asked, "bytes that the readers asked of files on this file system"+on)
	case "bytes_disk":
		return figure(f.Disk, "bytes that anybody on the machine read from the disks of this file system: sectors read x 512"+on)
	case "bytes_network":
		if f.Type == "s3" {
			x.Formula = "the client's counter of the bodies of answers, after the epoch less that before it"
			return figure(f.Network, "bytes that this process received from the server of the bucket"+on)
		}
		return figure(f.Network, "bytes that anybody on the machine read from the server of this mount"+on)
	case "bytes_cached_before":
		x.Formula = "cachestat, or mincore, summed over the files"
		return figure(f.CachedBefore, "bytes of the data set in the page cache when the epoch began"+on)
	case "bytes_cached_after":
		x.Formula = "cachestat, or mincore, summed over the files"
		return figure(f.CachedAfter, "bytes of the data set in the page cache when the epoch had ended"+on)
	}
	return ErrNoFigure
}
