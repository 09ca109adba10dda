package store

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrResidencyHidden is wrapped by the error of [Folder.Resident] where the kernel hides which pages are in memory: it
// shows them only to the owner of a file and to those who may write to it.
var ErrResidencyHidden = errors.New("the kernel does not show which pages of this file are in memory")

// Resident returns how many bytes of the file are in the page cache, counted in whole pages, the last one up to the end of
// the file. It reads nothing and changes nothing.
func (f *Folder) Resident(name string) (int64, error) {
	defer runtime.KeepAlive(f)
	fd, err := f.openBeneath(name, unix.O_RDONLY)
	if err != nil {
		return 0, f.openError(name, err)
	}
	defer unix.Close(fd)
	info, err := f.describe(fd, name)
	if err != nil {
		return 0, err
	}
	if !residencyShown(fd) {
		return 0, fmt.Errorf("resident pages of %s: %w: run as its owner, or give write permission", name, ErrResidencyHidden)
	}
	if !f.noCachestat.Load() {
		sum, err := cached(fd, info.Size)
		switch err {
		case nil:
			return sum, nil
		case unix.ENOSYS, unix.EPERM: // an older kernel (before 6.5), or a container's filter
			f.noCachestat.Store(true)
		}
	}
	return f.resident(fd, name, info.Size)
}

// cached asks cachestat how many bytes of an open file are in memory. It looks at the pages that are there, not at the file's size, and maps
// nothing.
func cached(fd int, size int64) (int64, error) {
	page := int64(os.Getpagesize())
	pages := func(off, n int64) (int64, error) {
		if n == 0 { // which would mean all to the end
			return 0, nil
		}
		var st unix.Cachestat_t
		_, err := retry(func() (int, error) {
			return 0, unix.Cachestat(uint(fd), &unix.CachestatRange{Off: uint64(off), Len: uint64(n)}, &st, 0)
		})
		return int64(st.Cache), err
	}
	whole := size &^ (page - 1)
	n, err := pages(0, whole)
	if err != nil {
		return 0, err
	}
	sum := min(n*page, whole)
	if n, err = pages(whole, size-whole); err == nil && n > 0 {
		sum += size - whole
	}
	return sum, err
}

// resident is Resident by mincore, for kernels without cachestat.
func (f *Folder) resident(fd int, name string, size int64) (int64, error) {
	const step = 1 << 30 // bytes looked up at once: 256 KiB of answers
	page := int64(os.Getpagesize())
	var vec []byte
	var sum int64
	for off := int64(0); off < size; off += step {
		n := min(step, size-off)
		var err error
		if vec, err = residency(fd, off, n, vec); err != nil {
			return 0, f.wrap("resident pages of", name, err)
		}
		for i, v := range vec {
			if v&1 != 0 {
				sum += min(page, n-int64(i)*page)
			}
		}
	}
	return sum, nil
}

// Evict writes the file's changed pages to the device and asks the kernel to drop all its pages from the page cache.
// The kernel keeps pages that somebody maps or is using; Resident tells.
func (f *Folder) Evict(name string) error {
	defer runtime.KeepAlive(f)
	fd, err := f.openBeneath(name, unix.O_RDONLY)
	if err != nil {
		return f.openError(name, err)
	}
	defer unix.Close(fd)
	if _, err := f.describe(fd, name); err != nil {
		return err
	}
	if _, err := retry(func() (int, error) { return 0, unix.Fsync(fd) }); err != nil {
		return f.wrap("sync", name, err)
	}
	_, err = retry(func() (int, error) { return 0, unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED) })
	return f.wrap("drop pages of", name, err)
}

// residency asks which pages of [off, off+n) of the file are in memory, one byte a page, into vec or a larger slice. off
// is a multiple of the page size.
func residency(fd int, off, n int64, vec []byte) ([]byte, error) {
	page := int64(os.Getpagesize())
	count := int((n + page - 1) / page)
	if count == 0 {
		return vec[:0], nil
	}
	if cap(vec) < count {
		vec = make([]byte, count)
	}
	vec = vec[:count]
	addr, err := unix.MmapPtr(fd, off, nil, uintptr(n), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.MunmapPtr(addr, uintptr(n)) }()
	for {
		_, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(addr), uintptr(n), uintptr(unsafe.Pointer(&vec[0])))
		switch e {
		case 0:
			return vec, nil
		case unix.EAGAIN, unix.EINTR:
			continue
		}
		return nil, e
	}
}

// whollyResident reports whether every page of a file is in the page cache, as far as the kernel tells; else false.
func (f *Folder) whollyResident(fd int, size int64) bool {
	if size == 0 {
		return true
	}
	page := int64(os.Getpagesize())
	pages := uint64((size + page - 1) / page)
	if !f.noCachestat.Load() {
		var st unix.Cachestat_t
		_, err := retry(func() (int, error) {
			return 0, unix.Cachestat(uint(fd), &unix.CachestatRange{Len: uint64(size)}, &st, 0)
		})
		if err == nil {
			return st.Cache >= pages
		}
		if err == unix.ENOSYS {
			f.noCachestat.Store(true)
		}
	}
	if !residencyShown(fd) {
		return false
	}
	const step = 64 << 20 // bytes looked up at once: a file of which the beginning is not there is known soon
	var vec []byte
	for off := int64(0); off < size; off += step {
		var err error
		if vec, err = residency(fd, off, min(step, size-off), vec); err != nil {
			return false
		}
		for _, v := range vec {
			if v&1 == 0 {
				return false
			}
		}
	}
	return true
}

// residencyShown reports whether mincore tells the truth about this file. To anyone but the owner and those who may
// write, Linux (since 5.2) says that every page is in memory.
func residencyShown(fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && (os.Geteuid() == 0 || int(st.Uid) == os.Geteuid()) {
		return true
	}
	return unix.Faccessat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.W_OK, unix.AT_EACCESS) == nil
}

// guarded runs a read of n bytes at off and then drops those pages of the range that were not in memory before it. Where
// residency is hidden or cannot be had, all pages of the range are dropped: colder than before, never warmer.
func (r *folderFile) guarded(off int64, n int, read func() (int, error)) (int, error) {
	if r.f.opts.Direct { // nothing came in
		return read()
	}
	page := int64(os.Getpagesize())
	start := off &^ (page - 1)
	end := min(off+int64(n), r.size)
	var local [window/4096 + 1]byte
	vec := local[:0]
	if !r.blind && end > start {
		if v, err := residency(r.fd, start, end-start, vec); err == nil {
			vec = v
		}
	}
	m, err := read()
	if end <= start {
		return m, err
	}
	if len(vec) == 0 {
		r.drop(start, end-start)
		return m, err
	}
	for i := 0; i < len(vec); {
		if vec[i]&1 != 0 {
			i++
			continue
		}
		j := i
		for j < len(vec) && vec[j]&1 == 0 {
			j++
		}
		r.drop(start+int64(i)*page, int64(j-i)*page)
		i = j
	}
	return m, err
}

// drop asks for pages to leave the cache. It is advice: that it had no effect shows in Resident, not as an error.
func (r *folderFile) drop(off, n int64) {
	_, _ = retry(func() (int, error) { return 0, unix.Fadvise(r.fd, off, n, unix.FADV_DONTNEED) })
}
