package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/environment"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// mostLooks is the number of files up to which all are asked for what the page cache holds of them. Of more, so many are asked, evenly
// spread: a look costs some 4 us a file, and 16 ns for each page of it that is in memory (BenchmarkResident of pkg/store).
const mostLooks = 1 << 13

// meter looks at the storage of a run's data set. It is a bench.StorageMeter.
type meter struct {
	data    *store.Folder
	files   int64
	systems []*meteredSystem
}

// meteredSystem is one file system, and those of its files that are looked at.
type meteredSystem struct {
	device uint64
	meter  *environment.Meter
	bytes  int64 // of all files on it
	looks  []string
	looked int64 // bytes of those
}

// meter finds the file systems of the files that the run reads.
func (r *run) meter(ctx context.Context, data *store.Folder) (*meter, error) {
	m := &meter{data: data}
	for _, p := range r.parts() {
		m.files += int64(p.Files() * (1 + len(p.companions)))
	}
	by := map[uint64]*meteredSystem{}
	every := max(1, (m.files+mostLooks-1)/mostLooks)
	where := r.where(data)
	var n int64
	for _, p := range r.parts() {
		for i := range p.Files() {
			for c := range 1 + len(p.companions) {
				if err := ctx.Err(); err != nil {
					return nil, context.Cause(ctx)
				}
				look := n%every == 0
				device, size, err := where(p, i, c, look)
				if errors.Is(err, fs.ErrNotExist) {
					err = fmt.Errorf("%w: a file of it is missing: %w; verify the data set (benchpin data verify)", bench.ErrOther, err)
				}
				if err != nil {
					return nil, asVerification(fmt.Errorf("look at the data set: %w", err))
				}
				s := by[device]
				if s == nil {
					s = &meteredSystem{device: device, meter: environment.NewMeter(data.Root(), device)}
					by[device] = s
					m.systems = append(m.systems, s)
				}
				s.bytes += size
				if look || s.looks == nil {
					s.looks = append(s.looks, p.name(i, c))
					s.looked += size
				}
				n++
			}
		}
	}
	slices.SortFunc(m.systems, func(a, b *meteredSystem) int {
		if a.device < b.device {
			return -1
		}
		return 1
	})
	return m, nil
}

// Look reads all counters.
func (m *meter) Look(ctx context.Context) (bench.StorageLook, error) {
	start := time.Now()
	l := bench.StorageLook{Files: m.files}
	for _, s := range m.systems {
		cached, err := s.cached(ctx, m.data)
		if ctx.Err() != nil {
			return l, context.Cause(ctx)
		}
		l.LookedAt += int64(len(s.looks))
		l.FileSystems = append(l.FileSystems, bench.FileSystemLook{
			Device: s.device, MountPoint: s.meter.MountPoint, Type: s.meter.FileSystem, Disks: s.meter.Disks,
			Disk: bench.CountOf(s.meter.Disk()), Network: bench.CountOf(s.meter.Network()), Cached: bench.CountOf(cached, err),
			Counted: s.meter.CountsProcess(),
		})
	}
	l.Took = time.Since(start)
	return l, nil
}

// cached is how many bytes of the file system's files are in the page cache, from those that are looked at.
func (s *meteredSystem) cached(ctx context.Context, data *store.Folder) (int64, error) {
	var sum int64
	for _, name := range s.looks {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		n, err := data.Resident(name)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	if s.looked == s.bytes || s.looked == 0 {
		return sum, nil
	}
	return min(s.bytes, int64(float64(sum)/float64(s.looked)*float64(s.bytes))), nil
}

// able refuses a run that asks for what this machine cannot do with the data set, before anything is verified or written.
func (r *run) able() error {
	if r.w.Benchpin.ColdCache == workload.ColdAll {
		if err := mayDropAll(); err != nil {
			return err
		}
	}
	if !r.plan.Direct {
		return nil
	}
	data, err := r.direct()
	if err != nil {
		return err
	}
	return data.Close()
}

// direct is the folder of the data set for reads past the page cache. A file system that has none is refused.
func (r *run) direct() (*store.Folder, error) {
	data, err := store.NewFolder(r.Data, store.FolderOptions{Direct: true})
	if err != nil {
		return nil, err
	}
	for name := range r.read() {
		if err := data.CheckDirect(name); errors.Is(err, store.ErrNoDirect) { // a file that is missing is for verification
			data.Close()
			return nil, &workload.Error{Path: "reader.odirect", Msg: err.Error(), Err: err}
		}
		break
	}
	return data, nil
}

// dropCachesFile drops the whole machine's page cache when it is written to.
const dropCachesFile = "/proc/sys/vm/drop_caches"

// mayDropAll refuses to drop all pages of the machine before a run, where that is not allowed.
func mayDropAll() error {
	err := unix.Access(dropCachesFile, unix.W_OK)
	if err == nil {
		return nil
	}
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS) {
		err = fs.ErrPermission
	}
	return fmt.Errorf("benchpin.cold_cache is all (--cold=all): writing to %s: %w; that takes the superuser, outside of a container as a rule: "+
		"use --cold, which drops the pages of the data set without", dropCachesFile, err)
}

// dropAll drops all pages of the machine that are on a device already.
func dropAll() error {
	unix.Sync()
	if err := os.WriteFile(dropCachesFile, []byte("1"), 0); err != nil {
		return fmt.Errorf("drop the page cache of the machine: %w", err)
	}
	return nil
}
