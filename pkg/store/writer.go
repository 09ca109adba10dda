package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// preallocateFrom is the size from which space is reserved before writing. Below it the extra system call costs more
// than what it saves; above it a full disk is seen at once, and the file lies in fewer pieces.
const preallocateFrom = 1 << 20

// beginBytes is how much of a large file is written before the device is set to work on it (FolderOptions.Begin).
const beginBytes = 8 << 20

// errEnded is returned for use of a writer after Commit or Abort.
var errEnded = errors.New("the file was committed or aborted already")

// folderWriter writes to a temporary name in the folder of the final one. The name is random, so that two programs
// that write the same file never write into each other's.
type folderWriter struct {
	f       *Folder
	name    string
	base    string
	temp    string
	size    int64 // negative: not known
	written int64
	begun   int64 // of these, what the device was set to work on
	dir, fd int
	failed  error
	ended   bool
}

// Create begins a file: see [Store]. A process that is killed before Commit leaves a temporary file (see
// [IsTemporary]) and nothing else.
func (f *Folder) Create(name string, size int64) (Writer, error) {
	defer runtime.KeepAlive(f)
	if err := CheckName(name); err != nil {
		return nil, err
	}
	dir, base := split(name)
	if IsTemporary(base) {
		return nil, fmt.Errorf("%w %q: names that begin with %s are for temporary files", ErrName, name, temporaryPrefix)
	}
	dirfd, err := f.openParent(dir, true)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", name, err)
	}
	w := &folderWriter{f: f, name: name, base: base, size: size, dir: dirfd, fd: -1}
	if err := w.begin(); err != nil {
		_ = w.Abort()
		return nil, fmt.Errorf("create %s: %w", name, err)
	}
	return w, nil
}

func (w *folderWriter) begin() error {
	var r [8]byte
	if _, err := rand.Read(r[:]); err != nil {
		return fmt.Errorf("random name: %w", err)
	}
	temp := temporaryPrefix + hex.EncodeToString(r[:])
	fd, err := retry(func() (int, error) {
		return unix.Openat(w.dir, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o666)
	})
	if err != nil {
		return w.f.wrap("open", w.name, err)
	}
	w.fd, w.temp = fd, temp
	if w.size < preallocateFrom {
		return nil
	}
	_, err = retry(func() (int, error) { return 0, unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, w.size) })
	if err == unix.ENOSPC || err == unix.EDQUOT || err == unix.EFBIG {
		return w.f.wrap(fmt.Sprintf("reserve %d bytes for", w.size), w.name, err)
	}
	return nil // every other error: this file system cannot reserve, writing will tell
}

func (w *folderWriter) Write(p []byte) (int, error) {
	if w.ended {
		return 0, w.f.wrap("write", w.name, errEnded)
	}
	if w.failed != nil {
		return 0, w.failed
	}
	if w.size >= 0 && w.written+int64(len(p)) > w.size {
		w.failed = fmt.Errorf("write %s: expected %d bytes in all, found %d or more", w.name, w.size, w.written+int64(len(p)))
		return 0, w.failed
	}
	n := 0
	for n < len(p) {
		m, err := retry(func() (int, error) { return unix.Write(w.fd, p[n:min(len(p), n+1<<30)]) })
		if err == nil && m == 0 {
			err = unix.EIO
		}
		if err != nil {
			w.failed = w.f.wrap(fmt.Sprintf("write at byte %d of", w.written), w.name, err)
			return n, w.failed
		}
		n += m
		w.written += int64(m)
	}
	if w.f.opts.Begin && w.written-w.begun >= beginBytes {
		_ = unix.SyncFileRange(w.fd, w.begun, w.written-w.begun, unix.SYNC_FILE_RANGE_WRITE) // a hint, as in Commit
		w.begun = w.written
	}
	return n, nil
}

// WriteFront replaces the first bytes of the file, all of which were written, before Commit.
func (w *folderWriter) WriteFront(p []byte) error {
	switch {
	case w.ended:
		return w.f.wrap("write", w.name, errEnded)
	case w.failed != nil:
		return w.failed
	case int64(len(p)) > w.written:
		return fmt.Errorf("write the first %d bytes of %s: only %d were written", len(p), w.name, w.written)
	}
	for n := 0; n < len(p); {
		m, err := retry(func() (int, error) { return unix.Pwrite(w.fd, p[n:], int64(n)) })
		if err == nil && m == 0 {
			err = unix.EIO
		}
		if err != nil {
			w.failed = w.f.wrap(fmt.Sprintf("write at byte %d of", n), w.name, err)
			return w.failed
		}
		n += m
	}
	return nil
}

func (w *folderWriter) Commit() (err error) {
	if w.ended {
		return w.f.wrap("commit", w.name, errEnded)
	}
	defer func() {
		if aerr := w.Abort(); err == nil {
			err = aerr
		}
	}()
	if w.failed != nil {
		return w.failed
	}
	if w.size >= 0 && w.written != w.size {
		return fmt.Errorf("commit %s: expected %d bytes, found %d written", w.name, w.size, w.written)
	}
	if w.f.opts.Sync {
		if err := unix.Fsync(w.fd); err != nil {
			return w.f.wrap("sync", w.name, err)
		}
	}
	if w.f.opts.Begin && !w.f.opts.Sync && w.written >= preallocateFrom {
		_ = unix.SyncFileRange(w.fd, 0, 0, unix.SYNC_FILE_RANGE_WRITE) // to the end; where that cannot be, the kernel does it later
	}
	fd := w.fd
	w.fd = -1
	if err := unix.Close(fd); err != nil && err != unix.EINTR { // the descriptor is gone even then; NFS reports lost writes here
		return w.f.wrap("close", w.name, err)
	}
	var st unix.Stat_t
	if unix.Fstatat(w.dir, w.base, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		return w.f.irregular(w.name, st.Mode)
	}
	if err := unix.Renameat(w.dir, w.temp, w.dir, w.base); err != nil {
		return w.f.wrap("rename", w.name, err)
	}
	w.temp = ""
	if w.f.opts.Sync {
		if err := unix.Fsync(w.dir); err != nil {
			return w.f.wrap("sync folder of", w.name, err)
		}
	}
	return nil
}

func (w *folderWriter) Abort() error {
	if w.ended {
		return nil
	}
	w.ended = true
	var errs []error
	if w.fd >= 0 {
		errs = append(errs, w.f.wrap("close", w.name, unix.Close(w.fd)))
	}
	if w.temp != "" {
		if err := unix.Unlinkat(w.dir, w.temp, 0); err != nil && err != unix.ENOENT {
			errs = append(errs, w.f.wrap("remove temporary of", w.name, err))
		}
	}
	errs = append(errs, wrap("close folder of", w.name, unix.Close(w.dir)))
	w.fd, w.dir = -1, -1
	return errors.Join(errs...)
}

// makeRoot makes the folder itself and those above it.
func makeRoot(root string) error {
	if err := os.MkdirAll(root, 0o777); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	return nil
}
