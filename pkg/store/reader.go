package store

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// alignment is what direct reads ask of offset, length and memory: the largest logical block of common devices.
	alignment = 4096
	// window is how much is read in one piece where reads go through a buffer of ours or residency is looked up.
	window = 1 << 20
)

// AlignedBuffer returns n bytes that begin at a multiple of 4096. Reading into such a buffer at offsets that are multiples
// of 4096 saves a copy where the store is an uncached folder.
func AlignedBuffer(n int) []byte {
	b := make([]byte, n+alignment-1)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (alignment - 1))
	return b[skip : skip+n : skip+n]
}

func aligned(p []byte, off int64) bool {
	return off%alignment == 0 && len(p)%alignment == 0 && uintptr(unsafe.Pointer(unsafe.SliceData(p)))%alignment == 0
}

// folderFile is an open regular file.
type folderFile struct {
	f      *Folder
	name   string
	fd     int
	direct atomic.Bool // reads bypass the page cache and must be aligned
	warm   bool        // wholly in the page cache when it was opened, and read from there
	size   int64       // when it was opened; bounds windows and nothing else
	opened Info
	blind  bool // residency of this file is not shown to us
	closed atomic.Bool
}

// Open opens the regular file of that name: see [Store].
func (f *Folder) Open(name string) (File, error) {
	defer runtime.KeepAlive(f)
	if f.opts.Uncached && f.opts.Resident {
		return f.openResident(name)
	}
	if f.opts.Direct {
		fd, err := f.openDirect(name)
		if err != nil {
			return nil, err
		}
		ff, err := f.opened(name, fd)
		if err != nil {
			return nil, err
		}
		return ff, nil
	}
	direct := f.opts.Uncached && !f.noDirect.Load()
	flags := unix.O_RDONLY
	if direct {
		flags |= unix.O_DIRECT
	}
	fd, err := f.openBeneath(name, flags)
	if direct && errors.Is(err, unix.EINVAL) {
		f.noDirect.Store(true)
		direct = false
		fd, err = f.openBeneath(name, unix.O_RDONLY)
	}
	if err != nil {
		return nil, f.openError(name, err)
	}
	ff, err := f.opened(name, fd)
	if err != nil {
		return nil, err
	}
	if f.opts.Uncached {
		ff.leaveCache(direct)
	}
	return ff, nil
}

// leaveCache prepares a file for reads that leave the page cache as it is.
func (r *folderFile) leaveCache(direct bool) {
	r.direct.Store(direct)
	r.blind = !residencyShown(r.fd)
	// Reading ahead would bring in pages beyond those that a read can drop again.
	_, _ = retry(func() (int, error) { return 0, unix.Fadvise(r.fd, 0, 0, unix.FADV_RANDOM) })
}

// openResident opens a file and decides, by what of it is in memory, how it is read: see FolderOptions.Resident.
func (f *Folder) openResident(name string) (File, error) {
	fd, err := f.openBeneath(name, unix.O_RDONLY)
	if err != nil {
		return nil, f.openError(name, err)
	}
	ff, err := f.opened(name, fd)
	if err != nil {
		return nil, err
	}
	if ff.warm = f.whollyResident(fd, ff.size); ff.warm {
		return ff, nil
	}
	direct := !f.noDirect.Load()
	if direct {
		switch err := setDirect(fd, true); err {
		case nil:
		case unix.EINVAL:
			f.noDirect.Store(true)
			direct = false
		default:
			_ = unix.Close(fd)
			return nil, f.wrap("open for direct reading", name, err)
		}
	}
	ff.leaveCache(direct)
	return ff, nil
}

// setDirect makes reads of a descriptor bypass the page cache, or no longer.
func setDirect(fd int, on bool) error {
	fl, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	fl &^= unix.O_DIRECT
	if on {
		fl |= unix.O_DIRECT
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, fl)
	return err
}

// InCache reports whether this file is read from the page cache, so that reads of any size and place cost no more than a copy.
func (r *folderFile) InCache() bool { return r.warm || !r.f.opts.Uncached && !r.f.opts.Direct }

// opened describes a file that was just opened, and takes its descriptor over.
func (f *Folder) opened(name string, fd int) (*folderFile, error) {
	describe := f.describe
	if f.opts.Settle {
		describe = f.describeSettled
	}
	info, err := describe(fd, name)
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return &folderFile{f: f, name: name, fd: fd, size: info.Size, opened: info}, nil
}

// openError names what stands in place of a file where the system's own error does not (a socket, a folder).
func (f *Folder) openError(name string, err error) error {
	if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EISDIR) {
		if _, serr := f.Stat(name); serr != nil {
			return serr
		}
	}
	return err
}

// Opened describes the file as it was when it was opened, which costs no system call more: opening asked already.
func (r *folderFile) Opened() Info { return r.opened }

func (r *folderFile) Info() (Info, error) {
	if r.closed.Load() {
		return Info{}, r.f.wrap("stat", r.name, errClosed)
	}
	return r.f.describe(r.fd, r.name)
}

var errClosed = errors.New("the file is closed")

func (r *folderFile) Close() error {
	if r.closed.Swap(true) {
		return r.f.wrap("close", r.name, errClosed)
	}
	return r.f.wrap("close", r.name, unix.Close(r.fd))
}

func (r *folderFile) ReadAt(p []byte, off int64) (int, error) {
	if r.closed.Load() {
		return 0, r.f.wrap("read", r.name, errClosed)
	}
	if off < 0 {
		return 0, fmt.Errorf("read %s: offset %d is negative", r.name, off)
	}
	n := 0
	for n < len(p) {
		var m int
		var err error
		if r.f.opts.Direct {
			m, err = r.readStrict(p[n:], off+int64(n))
		} else if r.f.opts.Uncached && !r.warm {
			m, err = r.readUncached(p[n:], off+int64(n))
		} else {
			m, err = r.pread(p[n:], off+int64(n))
		}
		if err != nil {
			return n, r.f.wrap(fmt.Sprintf("read at byte %d of", off+int64(n)), r.name, err)
		}
		if m == 0 {
			return n, io.EOF
		}
		n += m
	}
	return n, nil
}

func (r *folderFile) pread(p []byte, off int64) (int, error) {
	return retry(func() (int, error) { return unix.Pread(r.fd, p, off) })
}

// readUncached reads up to one window and returns 0 at the end of the file. Pages that were not resident before are
// dropped after, in direct mode too: some file systems take O_DIRECT and read through the cache all the same (compressed
// extents, inline data), and dropping nothing costs next to nothing.
func (r *folderFile) readUncached(p []byte, off int64) (int, error) {
	if r.direct.Load() {
		n, err := r.readDirect(p, off)
		if err != unix.EINVAL {
			return n, err
		}
		// Opening was allowed, reading was not: from here on this file is read through the cache.
		if err := setDirect(r.fd, false); err != nil {
			return 0, err
		}
		r.direct.Store(false)
	}
	p = p[:min(len(p), window)]
	return r.guarded(off, len(p), func() (int, error) { return r.pread(p, off) })
}

func (r *folderFile) readDirect(p []byte, off int64) (int, error) {
	if aligned(p[:min(len(p), window)], off) {
		p = p[:min(len(p), window)]
		n, err := r.guarded(off, len(p), func() (int, error) { return r.pread(p, off) })
		if err != nil || n%alignment == 0 {
			return n, err
		}
		return n, nil // a part of a block is read at the end of the file only; the next read is unaligned and sees the end
	}
	b := r.f.bounce.Get().(*[]byte)
	defer r.f.bounce.Put(b)
	start := off &^ (alignment - 1)
	skip := int(off - start)
	want := min(window, (skip+len(p)+alignment-1)&^(alignment-1))
	n, err := r.guarded(start, want, func() (int, error) { return r.pread((*b)[:want], start) })
	if err != nil || n <= skip {
		return 0, err
	}
	return copy(p, (*b)[skip:n]), nil
}
