package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mostLinks is how many symbolic links a path may lead through, as Linux counts them.
const mostLinks = 40

// Inside reports whether path is the folder root or lies below it once every symbolic link is followed, whether or not the two exist
// yet. Folders that are the same by device and inode are the same, whatever they are called.
func Inside(root, path string) (bool, error) {
	r, err := follow(root)
	if err != nil {
		return false, err
	}
	p, err := follow(path)
	if err != nil {
		return false, err
	}
	same, err := os.Stat(r)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("look at %s: %w", root, err)
	}
	for {
		if p == r {
			return true, nil
		}
		if same != nil {
			if info, err := os.Stat(p); err == nil && os.SameFile(info, same) {
				return true, nil
			}
		}
		up := filepath.Dir(p)
		if up == p {
			return false, nil
		}
		p = up
	}
}

// follow resolves the symbolic links of a path as far as it exists, element by element, as the kernel does.
func follow(path string) (string, error) {
	if path == "" {
		return "", errors.New("expected a path, found an empty string")
	}
	at := string(filepath.Separator)
	if !filepath.IsAbs(path) {
		wd, err := filepath.Abs(".")
		if err != nil {
			return "", fmt.Errorf("path %s: %w", path, err)
		}
		if at, err = filepath.EvalSymlinks(wd); err != nil {
			return "", fmt.Errorf("path %s: %w", path, err)
		}
	}
	rest := strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		elem := rest[0]
		rest = rest[1:]
		switch elem {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		target, err := os.Readlink(filepath.Join(at, elem))
		if err != nil { // no link, or nothing at all
			at = filepath.Join(at, elem)
			continue
		}
		if links++; links > mostLinks {
			return "", fmt.Errorf("path %s: %w", path, unix.ELOOP)
		}
		if filepath.IsAbs(target) {
			at = string(filepath.Separator)
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at, nil
}

// ErrLocked is matched by the error of Lock for a folder that another process has locked.
var ErrLocked = errors.New("another process is at work in this folder")

// Lock keeps other processes that lock it out of a folder, which must exist, until the returned function is called or the process
// ends, however it ends. It leaves no file behind. Network file systems that cannot lock are left unlocked.
func Lock(dir string) (unlock func(), err error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	for {
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EINTR {
			break
		}
	}
	if err == unix.EWOULDBLOCK {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("%s: %w; wait for it to end", dir, ErrLocked)
	}
	return func() { _ = unix.Close(fd) }, nil
}
