package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// split cuts a name into the folder ("" for the root) and its last element.
func split(name string) (dir, base string) {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return "", name
	}
	return name[:i], name[i+1:]
}

// openBeneath opens name without following any symbolic link. Opening never blocks, so that a pipe in place of a file
// cannot stop the program.
func (f *Folder) openBeneath(name string, flags int) (int, error) {
	if err := CheckName(name); err != nil {
		return -1, err
	}
	root, err := f.open()
	if err != nil {
		return -1, err
	}
	fd, err := f.resolve(root, name, flags)
	if errors.Is(err, unix.ELOOP) {
		return -1, f.symlinked(name)
	}
	if err != nil {
		return -1, f.wrap("open", name, err)
	}
	return fd, nil
}

// symlinked is the error for a name that leads through, or to, a symbolic link.
func (f *Folder) symlinked(name string) error {
	return fmt.Errorf("%s: %w: it is, or leads through, a symbolic link, which is not followed below %s",
		name, ErrIrregular, f.root)
}

func (f *Folder) resolve(root int, name string, flags int) (int, error) {
	flags |= unix.O_CLOEXEC | unix.O_NOFOLLOW
	if flags&unix.O_PATH == 0 {
		flags |= unix.O_NONBLOCK | unix.O_NOCTTY
	}
	if !f.noOpenat2.Load() {
		how := unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
		fd, err := retryOpenat2(root, name, &how)
		if err != unix.ENOSYS && err != unix.EPERM {
			return fd, err
		}
		// EPERM may be the file's own; the walk below then says so again.
		if err == unix.ENOSYS {
			f.noOpenat2.Store(true)
		}
	}
	return walk(root, name, flags)
}

// retryOpenat2 repeats the call on a signal, and on EAGAIN, which the kernel gives when a rename went on meanwhile.
func retryOpenat2(root int, name string, how *unix.OpenHow) (int, error) {
	for try := 0; ; try++ {
		fd, err := unix.Openat2(root, name, how)
		if err == unix.EINTR || (err == unix.EAGAIN && try < 100) {
			continue
		}
		return fd, err
	}
}

// walk opens name element by element, for kernels without openat2 (before Linux 5.6) and filters that refuse it.
func walk(root int, name string, flags int) (int, error) {
	at := root
	for {
		elem, rest, more := strings.Cut(name, "/")
		fl := flags
		if more {
			fl = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
		}
		fd, err := retry(func() (int, error) { return unix.Openat(at, elem, fl, 0) })
		if err == unix.ENOTDIR && more && isLink(at, elem) {
			err = unix.ELOOP
		}
		if at != root {
			_ = unix.Close(at)
		}
		if err != nil || !more {
			return fd, err
		}
		at, name = fd, rest
	}
}

func isLink(dir int, elem string) bool {
	var st unix.Stat_t
	return unix.Fstatat(dir, elem, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// openParent opens the folder dir ("" is the root) and makes it, and those above it, where make is true.
func (f *Folder) openParent(dir string, make bool) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY
	root, err := f.open()
	if errors.Is(err, unix.ENOENT) && make {
		if err := makeRoot(f.root); err != nil {
			return -1, err
		}
		root, err = f.open()
	}
	if err != nil {
		return -1, err
	}
	if dir == "" {
		fd, err := unix.FcntlInt(uintptr(root), unix.F_DUPFD_CLOEXEC, 0)
		return fd, wrap("open folder", f.root, err)
	}
	fd, err := f.resolve(root, dir, flags)
	if err == unix.ENOENT && make {
		if err := f.makeFolders(root, dir); err != nil {
			return -1, err
		}
		fd, err = f.resolve(root, dir, flags)
	}
	switch {
	case err == unix.ELOOP:
		return -1, f.symlinked(dir)
	case err == unix.ENOTDIR:
		return -1, fmt.Errorf("%s: %w", filepath.Join(f.root, dir), unix.ENOTDIR)
	case err != nil:
		return -1, f.wrap("open folder", dir, err)
	}
	return fd, nil
}

// makeFolders makes every element of dir that is not there. Others may be making the same ones at the same time.
func (f *Folder) makeFolders(root int, dir string) error {
	for i := 0; i <= len(dir); i++ {
		if i < len(dir) && dir[i] != '/' {
			continue
		}
		part := dir[:i]
		above, base := split(part)
		at := root
		if above != "" {
			fd, err := f.resolve(root, above, unix.O_PATH|unix.O_DIRECTORY)
			if err == unix.ELOOP {
				return f.symlinked(above)
			}
			if err != nil {
				return f.wrap("open folder", above, err)
			}
			at = fd
		}
		err := unix.Mkdirat(at, base, 0o777)
		if err == nil && f.opts.Sync {
			err = syncFolder(at)
		}
		if at != root {
			_ = unix.Close(at)
		}
		if err != nil && err != unix.EEXIST {
			return f.wrap("make folder", part, err)
		}
	}
	return nil
}

// syncFolder brings the names in a folder to the device; dir may have been opened as a path only.
func syncFolder(dir int) error {
	fd, err := retry(func() (int, error) {
		return unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fsync(fd)
}
