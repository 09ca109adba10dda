package store

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"
)

// StatSettled is Stat for an identity that is kept to find changes by. A page that somebody changed through a shared mapping stays writable
// there until it is written back, and is changed again without a trace in the file's times. So the file's changed pages are written back
// first, which takes the right to write from every mapping: the next store into one is a fault, and the kernel stamps the file.
//
// It waits for the device to take the pages, for no metadata and no flush. A file without changed pages costs some microseconds. File
// systems that are memory (tmpfs, ramfs, hugetlbfs) write nothing back, so that nothing can be found there.
func (f *Folder) StatSettled(name string) (Info, error) {
	defer runtime.KeepAlive(f)
	fd, err := f.openBeneath(name, unix.O_RDONLY)
	if err != nil {
		return Info{}, f.openError(name, err)
	}
	defer unix.Close(fd)
	return f.describeSettled(fd, name)
}

// describeSettled describes an open file whose changed pages were written back. They are before, because the server of a network file system
// stamps the file when it gets them, and again after, for what was changed in between.
func (f *Folder) describeSettled(fd int, name string) (Info, error) {
	if err := f.settle(fd); err != nil {
		return Info{}, f.wrap("write back", name, err)
	}
	info, err := f.describe(fd, name)
	if err != nil {
		return Info{}, err
	}
	return info, f.wrap("write back", name, f.settle(fd))
}

// writeBack is all of a range: what is on its way, what is not, and waiting for both.
const writeBack = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER

// settle writes the changed pages of an open file back.
func (f *Folder) settle(fd int) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err == nil && int64(st.Type) == unix.OVERLAYFS_SUPER_MAGIC {
		return dataSync(fd) // the pages are those of a file below, which a range does not reach
	}
	_, err := retry(func() (int, error) { return 0, unix.SyncFileRange(fd, 0, 0, writeBack) })
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // a container's filter
		return dataSync(fd)
	}
	if errors.Is(err, unix.ESPIPE) { // neither a file nor a folder: describing it says so
		return nil
	}
	return err
}

func dataSync(fd int) error {
	_, err := retry(func() (int, error) { return 0, unix.Fdatasync(fd) })
	if errors.Is(err, unix.EROFS) || errors.Is(err, unix.EINVAL) { // nothing to be written there
		return nil
	}
	return err
}
