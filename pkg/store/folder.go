package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// FolderOptions are the choices of a folder. The zero value reads and writes through the page cache.
type FolderOptions struct {
	// Uncached makes reads leave the page cache as it was: what was resident stays, what was not does not come in. Reads
	// bypass the cache (O_DIRECT) where the file system can; elsewhere, what came in is dropped again.
	Uncached bool
	// Resident, beside Uncached, reads a file that is wholly in the page cache when it is opened from there, and every other one as
	// Uncached says: what is in memory is not fetched from the device once more. Without it no read is served by the cache where the
	// file system can read directly.
	Resident bool
	// Direct makes reads bypass the page cache (O_DIRECT), or fail: a file system that cannot do that is an error that wraps ErrNoDirect.
	// Unlike Uncached it never reads through the cache and does no work beside the read.
	Direct bool
	// Settle makes Open write the file's changed pages back first, so that any change from then on shows in its identity: see
	// [Folder.StatSettled].
	Settle bool
	// Sync makes Commit wait until file and name are on the device.
	Sync bool
	// Begin sets the device to work on files of 1 MiB and more when they are complete, on larger ones each 8 MiB, without waiting for it. Without it the kernel begins when it
	// likes, some seconds later, and all of it is still to be done when somebody waits.
	Begin bool
}

// Folder is a store in a folder of a mounted file system. Names are resolved beneath it without following symbolic
// links; the folder itself may be reached through one.
type Folder struct {
	root string
	opts FolderOptions
	// noOpenat2 is set once the kernel, or a container's filter, turned out to refuse openat2.
	noOpenat2 atomic.Bool
	// noDirect is set once the file system turned out to refuse direct reads.
	noDirect atomic.Bool
	// noCachestat is set once the kernel, or a container's filter, turned out to refuse cachestat.
	noCachestat atomic.Bool
	// directChecked is set once a file was opened on a file system that is not memory.
	directChecked atomic.Bool
	bounce        sync.Pool

	mu sync.Mutex
	h  *handle // nil until the root was first needed and there
}

// handle is the open root, apart from Folder so that it can be closed after the Folder was collected.
type handle struct{ fd int }

var _ Store = (*Folder)(nil)

// NewFolder returns the store below root, a path that may not exist yet: the first Create makes it. It is an error if
// root is there and is not a folder. The root's descriptor is held until Close, or until the Folder is collected.
func NewFolder(root string, o FolderOptions) (*Folder, error) {
	if root == "" {
		return nil, errors.New("folder: expected a path, found an empty string")
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", root, err)
	}
	f := &Folder{root: abs, opts: o}
	f.bounce.New = func() any { b := AlignedBuffer(window); return &b }
	if _, err := f.open(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return f, nil
}

// Root returns the absolute path of the folder.
func (f *Folder) Root() string { return f.root }

// Close gives the root's descriptor back. The folder opens it again if it is used after that.
func (f *Folder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.h == nil {
		return nil
	}
	fd := f.h.fd
	f.h.fd, f.h = -1, nil
	return wrap("close", f.root, unix.Close(fd))
}

// open returns the descriptor of the root. Callers keep f alive while they use it.
func (f *Folder) open() (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.h != nil {
		return f.h.fd, nil
	}
	fd, err := retry(func() (int, error) {
		return unix.Open(f.root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return -1, wrap("open folder", f.root, err)
	}
	h := &handle{fd: fd}
	runtime.AddCleanup(f, func(h *handle) {
		if h.fd >= 0 {
			_ = unix.Close(h.fd)
		}
	}, h)
	f.h = h
	return fd, nil
}

// FreeSpace returns how many bytes an ordinary user may still write to the file system that holds the folder, or would
// hold it once made.
func (f *Folder) FreeSpace() (int64, error) {
	at := f.root
	for {
		var st unix.Statfs_t
		_, err := retry(func() (int, error) { return 0, unix.Statfs(at, &st) })
		if err == nil {
			unit := int64(st.Frsize) // what blocks are counted in; older file systems leave it 0
			if unit == 0 {
				unit = int64(st.Bsize)
			}
			return int64(st.Bavail) * unit, nil
		}
		up := filepath.Dir(at)
		if !errors.Is(err, fs.ErrNotExist) || up == at {
			return 0, wrap("free space of", at, err)
		}
		at = up
	}
}

// Stat describes the regular file of that name.
func (f *Folder) Stat(name string) (Info, error) {
	defer runtime.KeepAlive(f)
	fd, err := f.openBeneath(name, unix.O_PATH)
	if err != nil {
		return Info{}, err
	}
	defer unix.Close(fd)
	return f.describe(fd, name)
}

// Remove deletes the regular file of that name; folders that it leaves empty stay.
func (f *Folder) Remove(name string) error {
	defer runtime.KeepAlive(f)
	if _, err := f.Stat(name); err != nil {
		return err
	}
	dir, base := split(name)
	fd, err := f.openParent(dir, false)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f.wrap("remove", name, unix.Unlinkat(fd, base, 0))
}

// describe returns the identity of an open file, which must be regular.
func (f *Folder) describe(fd int, name string) (Info, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Info{}, f.wrap("stat", name, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return Info{}, f.irregular(name, st.Mode)
	}
	return infoOf(name, &st), nil
}

func infoOf(name string, st *unix.Stat_t) Info {
	return Info{
		Path: name, Size: st.Size, ModTime: st.Mtim.Nano(), ChangeTime: st.Ctim.Nano(),
		Inode: st.Ino, Device: uint64(st.Dev), // 32 bits on some architectures
	}
}

// irregular says what was found in place of a regular file.
func (f *Folder) irregular(name string, mode uint32) error {
	kind := "a thing of unknown kind"
	switch mode & unix.S_IFMT {
	case unix.S_IFLNK:
		kind = "a symbolic link"
	case unix.S_IFDIR:
		kind = "a folder"
	case unix.S_IFIFO:
		kind = "a named pipe"
	case unix.S_IFSOCK:
		kind = "a socket"
	case unix.S_IFCHR, unix.S_IFBLK:
		kind = "a device"
	}
	return fmt.Errorf("%s: %w: found %s; only regular files and folders may stand below %s, remove it or choose another folder",
		name, ErrIrregular, kind, f.root)
}

// wrap adds what was done to which file to an error of the operating system.
func (f *Folder) wrap(op, name string, err error) error {
	if err == nil {
		return nil // without building the path: this is on the way of every read
	}
	return wrap(op, filepath.Join(f.root, name), err)
}

func wrap(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: path, Err: err}
}

// retry repeats a system call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}
