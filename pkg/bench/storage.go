package bench

import (
	"cmp"
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
	// Counted says whether the kernel counts for this process what the file system fetched; Uncounted is the reason where it does not, ""
	// for that of a file system.
	Counted   bool
	Uncounted string
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
	r.looking = looking{asked: r.askedOf(), dropped: dropped}
	if r.o.Storage == nil {
		return nil
	}
	var err error
	if r.looking.before, err = r.o.Storage.Look(ctx); err != nil {
		return fmt.Errorf("look at the storage: %w", err)
	}
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

// epochLook is what one process counted in an epoch or a pass.
type epochLook struct {
	Epoch int
	// Node is the host of the process, and Device what the kernel fetched from block devices for the process.
	Node   string
	Device Count
	// Asked are the bytes that the process asked of each device.
	Asked map[uint64]int64
	// Before and After are nil where nobody looks, or another process of the host does. Dropped is what was done before.
	Before, After *StorageLook
	Dropped       *record.Dropped
}

// lookAfter looks again when an epoch or a pass has ended. device is what was fetched for this process meanwhile.
func (r *run) lookAfter(ctx context.Context, epoch int, device Count) (epochLook, error) {
	l := &r.looking
	e := epochLook{Epoch: epoch, Device: device, Dropped: l.dropped, Asked: r.askedOf()}
	for d := range e.Asked {
		if e.Asked[d] -= l.asked[d]; e.Asked[d] == 0 {
			delete(e.Asked, d)
		}
	}
	if r.o.Storage == nil {
		return e, nil
	}
	after, err := r.o.Storage.Look(ctx)
	if err != nil {
		return e, fmt.Errorf("look at the storage: %w", err)
	}
	before := l.before
	e.Before, e.After = &before, &after
	return e, nil
}

// merged is what all processes counted in the same epoch or pass. What the kernel counts for a process is summed over all of them; what it
// counts for a host is taken from the one process that looks there.
func merged(looks []epochLook, direct bool) (stats.Device, error) {
	d := stats.Device{Epoch: looks[0].Epoch}
	var device Count
	for i := range looks {
		if device.Bytes += looks[i].Device.Bytes; device.Absent == "" {
			device.Absent = looks[i].Device.Absent
		}
	}
	if d.Absent = device.Absent; d.Absent == "" {
		n := record.Int(device.Bytes)
		d.Bytes = &n
	}
	var err error
	d.Storage, err = mergedStorage(looks, device, direct)
	return d, err
}

// mergedStorage is what file systems and page caches tell of an epoch; nil where nobody looked.
func mergedStorage(looks []epochLook, device Count, direct bool) (*record.Storage, error) {
	s := &record.Storage{FileSystems: []record.FileSystemTraffic{}, Direct: direct}
	var took time.Duration
	hosts := hostsOf(looks)
	if !slices.ContainsFunc(hosts, func(h hostLook) bool { return h.look != nil }) {
		return nil, nil
	}
	counted, uncounted := true, "no file system was looked at"
	for _, h := range hosts {
		l := h.look
		if l == nil {
			counted = false
			continue
		}
		took = max(took, l.Before.Took+l.After.Took) // hosts look at the same time
		s.Files, s.LookedAt = max(s.Files, record.Int(l.After.Files)), max(s.LookedAt, record.Int(l.After.LookedAt))
		if len(l.After.FileSystems) != len(l.Before.FileSystems) {
			return nil, fmt.Errorf("look at the storage: %d file systems before the epoch, and %d after it", len(l.Before.FileSystems), len(l.After.FileSystems))
		}
		if len(l.After.FileSystems) == 0 {
			counted = false
		}
		for i, now := range l.After.FileSystems {
			then := l.Before.FileSystems[i]
			f := record.FileSystemTraffic{
				MountPoint: now.MountPoint, Type: now.Type, Disks: append([]string{}, now.Disks...), Asked: Count{Bytes: h.asked[now.Device]}.figure(),
				Disk: now.Disk.since(then.Disk).figure(), Network: now.Network.since(then.Network).figure(),
				CachedBefore: then.Cached.figure(), CachedAfter: now.Cached.figure(),
			}
			if len(hosts) > 1 {
				f.Host = h.node
			}
			s.FileSystems = append(s.FileSystems, f)
			delete(h.asked, now.Device)
			if !now.Counted {
				counted = false
				uncounted = fmt.Sprintf("the kernel does not count for a process what file systems of type %s fetch for it", now.Type)
				if now.Uncounted != "" {
					uncounted = now.Uncounted
				}
			}
		}
		for device := range h.asked {
			return nil, fmt.Errorf("files of device %d were read%s, which is none of the %d file systems that the data set was found on before the run; "+
				"leave mounts below the data folder alone during a run", device, onHost(h.node), len(l.After.FileSystems))
		}
		s.Dropped = mergeDropped(s.Dropped, l.Dropped)
	}
	seconds := took.Seconds()
	s.LookSeconds = record.Figure{Value: &seconds, Unit: "s", Class: record.HostOnly}
	slices.SortStableFunc(s.FileSystems, func(a, b record.FileSystemTraffic) int {
		return cmp.Or(strings.Compare(a.MountPoint, b.MountPoint), strings.Compare(a.Host, b.Host))
	})
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

// hostLook is what the processes of one host counted: look is that of the one that looked, nil where none did.
type hostLook struct {
	node  string
	look  *epochLook
	asked map[uint64]int64
}

// hostsOf puts the looks of processes together by host, in the order of the hosts' names.
func hostsOf(looks []epochLook) []hostLook {
	var hosts []hostLook
	for i := range looks {
		l := &looks[i]
		at := slices.IndexFunc(hosts, func(h hostLook) bool { return h.node == l.Node })
		if at < 0 {
			at = len(hosts)
			hosts = append(hosts, hostLook{node: l.Node, asked: map[uint64]int64{}})
		}
		h := &hosts[at]
		if l.After != nil && h.look == nil {
			h.look = l
		}
		for device, n := range l.Asked {
			h.asked[device] += n
		}
	}
	slices.SortFunc(hosts, func(a, b hostLook) int { return strings.Compare(a.node, b.node) })
	return hosts
}

func onHost(node string) string {
	if node == "" {
		return ""
	}
	return " on " + node
}

// mergeDropped adds what was dropped on another host.
func mergeDropped(all, more *record.Dropped) *record.Dropped {
	if all == nil || more == nil {
		return cmp.Or(all, more)
	}
	d := *all
	switch {
	case d.Cached.Value == nil:
	case more.Cached.Value == nil:
		d.Cached = more.Cached
	default:
		v := *d.Cached.Value + *more.Cached.Value
		d.Cached.Value = &v
	}
	if s := more.Seconds; s.Value != nil && d.Seconds.Value != nil && *s.Value > *d.Seconds.Value {
		d.Seconds = s
	}
	return &d
}
