package pipeline

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/store"
)

// where returns what tells of each file of the run, in whatever order, the device that it lies on and its size in bytes. Files that were
// verified or looked at are known. Of others one in each folder is asked where that is enough, because asking a million takes seconds, and
// each that is to be asked anyway.
func (r *run) where(data *store.Folder) func(p pinnedPart, i, c int, ask bool) (device uint64, size int64, err error) {
	if r.known != nil {
		return func(p pinnedPart, i, c int, _ bool) (uint64, int64, error) {
			info := r.known[p.entry(i, c)]
			return info.Device, info.Size, nil
		}
	}
	folders := map[string]uint64{}
	alike := foldersAlike(data.Root())
	return func(p pinnedPart, i, c int, ask bool) (uint64, int64, error) {
		name := p.name(i, c)
		folder := path.Dir(name)
		if device, seen := folders[folder]; seen && alike && !ask && c == 0 {
			return device, p.Size(i), nil
		}
		info, err := data.Stat(name)
		if err != nil {
			return 0, 0, err
		}
		folders[folder] = info.Device
		return info.Device, info.Size, nil
	}
}

// foldersAlike says whether all files of a folder below root lie on one device: where nothing is mounted there, which could be a single file,
// and the file system is not put together of others. Where nobody tells, they may not.
func foldersAlike(root string) bool {
	var fs unix.Statfs_t
	real, err := filepath.EvalSymlinks(root)
	if err != nil || unix.Statfs(real, &fs) != nil || fs.Type == unix.OVERLAYFS_SUPER_MAGIC || fs.Type == unix.FUSE_SUPER_MAGIC {
		return false
	}
	mounts, err := procfs.GetMounts()
	if err != nil {
		return false
	}
	below := strings.TrimSuffix(real, "/") + "/"
	for _, m := range mounts {
		if strings.HasPrefix(m.MountPoint, below) {
			return false
		}
	}
	return true
}
