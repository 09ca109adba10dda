package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// StorageMeter looks at what file systems and the page cache know of the data set.
type StorageMeter interface {
	// Look reads the counters as they stand. It is called outside of the clock, before and after each epoch.
	Look(ctx context.Context) (StorageLook, error)
}

// StorageLook is one look.
type StorageLook struct {
	FileSystems []FileSystemLook
	// Files are read in the epoch, LookedAt those of them whose pages were counted; Took is what it took.
	Files, LookedAt int64
	Took            time.Duration
}

// FileSystemLook is what is known of one file system. Counters only grow.
type FileSystemLook struct {
	// Device is the device number of its files (store.Info).
	Device           uint64
	MountPoint, Type string
	Disks            []string
	// Disk, Network and Cached are bytes: read from its disks, read from its server, and of the data set in the page cache.
	Disk, Network, Cached Count
	// Counted says whether the kernel counts for this process what the file system fetched.
	Counted bool
}

// Count is a number of bytes, or the reason why it is not known.
type Count struct {
	Bytes  int64
	Absent string
}

// CountOf is a count, or err as the reason why there is none.
func CountOf(n int64, err error) Count {
	if err != nil {
		return Count{Absent: err.Error()}
	}
	return Count{Bytes: n}
}

func (c Count) figure() record.Figure {
	f := record.Figure{Unit: "B", Class: record.HostOnly, Absent: c.Absent}
	if c.Absent == "" {
		v := float64(c.Bytes)
		f.Value = &v
	}
	return f
}

// since is what came between two looks.
func (c Count) since(before Count) Count {
	switch {
	case before.Absent != "":
		return before
	case c.Absent != "":
		return c
	}
	return Count{Bytes: c.Bytes - before.Bytes}
}

// looking is the state of one epoch's or pass's looks.
type looking struct {
	before  StorageLook
	asked   map[uint64]int64
	dropped *record.Dropped
}

// lookBefore looks at the storage at the start of an epoch. dropped is what was done before it.
func (r *run) lookBefore(ctx context.Context, dropped *record.Dropped) error {
	if r.o.Storage == nil {
		return nil
	}
	before, err := r.o.Storage.Look(ctx)
	if err != nil {
		return fmt.Errorf("look at the storage: %w", err)
	}
	r.looking = looking{before: before, asked: r.askedOf(), dropped: dropped}
	return nil
}

// drop drops the data set from the page cache and says what was there before.
func (r *run) drop(ctx context.Context) (*record.Dropped, error) {
	d := &record.Dropped{Everything: r.p.workload.Benchpin.ColdCache == workload.ColdAll}
	if r.o.Storage != nil {
		look, err := r.o.Storage.Look(ctx)
		if err != nil {
			return nil, err
		}
		var cached Count
		for _, f := range look.FileSystems {
			if cached.Bytes += f.Cached.Bytes; f.Cached.Absent != "" {
				cached = f.Cached
				break
			}
		}
		d.Cached = cached.figure()
	}
	start := time.Now()
	if err := r.o.Evict(ctx); err != nil {
		return nil, err
	}
	took := time.Since(start).Seconds()
	d.Seconds = record.Figure{Value: &took, Unit: "s", Class: record.HostOnly}
	return d, nil
}

// askedOf are the bytes asked of each device so far.
func (r *run) askedOf() map[uint64]int64 {
	m := r.src.AskedOf()
	if r.evaluating != nil {
		for device, n := range r.evaluating.src.AskedOf() {
			m[device] += n
		}
	}
	return m
}

// lookAfter looks again when an epoch has ended, and says what came between. device is what was fetched for this process meanwhile.
func (r *run) lookAfter(ctx context.Context, device Count) (*record.Storage, error) {
	if r.o.Storage == nil {
		return nil, nil
	}
	after, err := r.o.Storage.Look(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at the storage: %w", err)
	}
	l := &r.looking
	asked := r.askedOf()
	s := &record.Storage{FileSystems: []record.FileSystemTraffic{}, Files: record.Int(after.Files), LookedAt: record.Int(after.LookedAt),
		Dropped: l.dropped, Direct: r.p.Direct}
	took := (l.before.Took + after.Took).Seconds()
	s.LookSeconds = record.Figure{Value: &took, Unit: "s", Class: record.HostOnly}
	if len(after.FileSystems) != len(l.before.FileSystems) {
		return nil, fmt.Errorf("look at the storage: %d file systems before the epoch, and %d after it", len(l.before.FileSystems), len(after.FileSystems))
	}
	counted := len(after.FileSystems) > 0
	uncounted := "no file system was looked at"
	for i, now := range after.FileSystems {
		then := l.before.FileSystems[i]
		n := asked[now.Device] - l.asked[now.Device]
		delete(asked, now.Device)
		s.FileSystems = append(s.FileSystems, record.FileSystemTraffic{
			MountPoint: now.MountPoint, Type: now.Type, Disks: append([]string{}, now.Disks...), Asked: Count{Bytes: n}.figure(),
			Disk: now.Disk.since(then.Disk).figure(), Network: now.Network.since(then.Network).figure(),
			CachedBefore: then.Cached.figure(), CachedAfter: now.Cached.figure(),
		})
		if !now.Counted {
			counted = false
			uncounted = fmt.Sprintf("the kernel does not count for a process what file systems of type %s fetch for it", now.Type)
		}
	}
	for device, n := range asked {
		if n != l.asked[device] {
			return nil, fmt.Errorf("files of device %d were read, which is none of the %d file systems that the data set was found on before the run; "+
				"leave mounts below the data folder alone during a run", device, len(after.FileSystems))
		}
	}
	slices.SortStableFunc(s.FileSystems, func(a, b record.FileSystemTraffic) int { return strings.Compare(a.MountPoint, b.MountPoint) })
	switch {
	case !counted:
		s.Memory = Count{Absent: uncounted}.figure()
	case device.Absent != "":
		s.Memory = device.figure()
	default:
		var sum int64
		for i := range s.FileSystems {
			sum += int64(*s.FileSystems[i].Asked.Value)
		}
		s.Memory = Count{Bytes: stats.FromMemory(sum, device.Bytes)}.figure()
	}
	return s, nil
}
