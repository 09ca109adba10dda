package store

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrNoDirect is wrapped by errors about files that were to be read past the page cache (FolderOptions.Direct), on a file system that
// cannot do that.
var ErrNoDirect = errors.New("the file system has no direct reads (O_DIRECT)")

// noDirectError says which file system refuses direct reads of a file, and what to do.
func (f *Folder) noDirectError(name, why string, fd int) error {
	var st unix.Statfs_t
	kind := "its file system"
	if fd >= 0 && unix.Fstatfs(fd, &st) == nil || fd < 0 && unix.Statfs(f.root, &st) == nil {
		kind = fileSystemName(int64(st.Type))
	}
	return fmt.Errorf("open %s below %s past the page cache: %w: %s %s; put the data set on a file system of a disk, or read through the page "+
		"cache (no reader.odirect, and storage.storage_type local_fs)", name, f.root, ErrNoDirect, kind, why)
}

// fileSystemName is the name of a file system's magic number, for messages.
func fileSystemName(magic int64) string {
	switch uint32(magic) {
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.RAMFS_MAGIC:
		return "ramfs"
	case unix.EXT4_SUPER_MAGIC: // ext2 and ext3 too
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay"
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	}
	return fmt.Sprintf("the file system of type %#x", uint32(magic))
}

// openDirect opens a file for direct reads and nothing else. Newer kernels let files of tmpfs be opened so, and read them from memory all
// the same: those are refused too.
func (f *Folder) openDirect(name string) (int, error) {
	fd, err := f.openBeneath(name, unix.O_RDONLY|unix.O_DIRECT)
	switch {
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP):
		return -1, f.noDirectError(name, "refuses to open files so", -1)
	case err != nil:
		return -1, f.openError(name, err)
	case f.directChecked.Load():
		return fd, nil
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err == nil && (int64(st.Type) == unix.TMPFS_MAGIC || int64(st.Type) == unix.RAMFS_MAGIC) {
		err := f.noDirectError(name, "is memory", fd)
		_ = unix.Close(fd)
		return -1, err
	}
	f.directChecked.Store(true)
	return fd, nil
}

// readStrict reads up to one window past the page cache and returns 0 at the end of the file.
func (r *folderFile) readStrict(p []byte, off int64) (int, error) {
	n, err := r.readDirect(p, off)
	if err == unix.EINVAL {
		return 0, r.f.noDirectError(r.name, "refuses the reads, although it lets files be opened for them", r.fd)
	}
	return n, err
}

// CheckDirect opens a file for direct reads and reads its beginning, so that a file system that has none is found before a run begins.
func (f *Folder) CheckDirect(name string) error {
	r, err := f.Open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := r.ReadAt(AlignedBuffer(alignment), 0); err != nil && errors.Is(err, ErrNoDirect) {
		return err
	}
	return nil // another fault comes up where the file is read
}
