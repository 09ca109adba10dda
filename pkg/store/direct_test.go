package store

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// onDisk is a folder for tests of direct reads, whose file system must have them.
func onDisk(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "probe"), make([]byte, 5000), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := mustFolder(t, root, FolderOptions{Direct: true}).CheckDirect("probe"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return root
}

// TestDirect: direct reads give the same bytes whatever is asked for, and bring nothing into the page cache.
func TestDirect(t *testing.T) {
	const size = 5<<20 + 1234
	root := onDisk(t)
	plain, direct := mustFolder(t, root, FolderOptions{Sync: true}), mustFolder(t, root, FolderOptions{Direct: true})
	data := random(size)
	put(t, plain, "f", data)
	if err := plain.Evict("f"); err != nil {
		t.Fatal(err)
	}
	for name, buf := range map[string][]byte{"aligned": AlignedBuffer(1 << 20), "larger than a window": AlignedBuffer(3 << 20),
		"unaligned": AlignedBuffer(1 << 20)[5:77_777], "one byte": make([]byte, 1)[:1]} {
		if name == "one byte" {
			o, err := direct.Open("f")
			if err != nil {
				t.Fatal(err)
			}
			for _, off := range []int64{0, 4095, 4096, size - 1} {
				if n, err := o.ReadAt(buf, off); n != 1 || err != nil && err != io.EOF || buf[0] != data[off] {
					t.Errorf("byte %d: %d bytes, %v", off, n, err)
				}
			}
			if n, err := o.ReadAt(buf, size); n != 0 || err != io.EOF {
				t.Errorf("behind the end: %d bytes, %v", n, err)
			}
			o.Close()
			continue
		}
		if !bytes.Equal(readAll(t, direct, "f", buf), data) {
			t.Errorf("%s: other bytes", name)
		}
	}
	if got := resident(t, plain, "f"); got != 0 {
		t.Errorf("%d bytes came into the page cache", got)
	}
	if _, err := direct.Open("none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestDirectRefused: a file system of memory is refused and named, whether its kernel lets files be opened so or not.
func TestDirectRefused(t *testing.T) {
	const shm = "/dev/shm"
	var st unix.Statfs_t
	if err := unix.Statfs(shm, &st); err != nil || int64(st.Type) != unix.TMPFS_MAGIC {
		t.Skipf("%s is no tmpfs here: %v", shm, err)
	}
	root, err := os.MkdirTemp(shm, "benchpin-test-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	put(t, mustFolder(t, root, FolderOptions{}), "f", random(10_000))
	direct := mustFolder(t, root, FolderOptions{Direct: true})
	for _, err := range []error{direct.CheckDirect("f"), func() error { _, err := direct.Open("f"); return err }()} {
		if !errors.Is(err, ErrNoDirect) || !strings.Contains(err.Error(), "tmpfs") || !strings.Contains(err.Error(), root) {
			t.Errorf("expected an error that names the file system and the folder, found %v", err)
		}
	}
}

// TestCachestatAgrees: cachestat and mincore count the same pages, to the byte at the end of a file.
func TestCachestatAgrees(t *testing.T) {
	root := t.TempDir()
	plain := mustFolder(t, root, FolderOptions{Sync: true})
	page := int64(os.Getpagesize())
	for _, size := range []int64{0, 1, page - 1, page, page + 1, 100*page + 17} {
		put(t, plain, "f", random(int(size)))
		for _, keep := range []int64{0, 1, size} {
			if err := plain.Evict("f"); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(filepath.Join(root, "f"))
			if err != nil {
				t.Fatal(err)
			}
			fd := int(f.Fd())
			_ = unix.Fadvise(fd, 0, 0, unix.FADV_RANDOM)
			if _, err := f.ReadAt(make([]byte, min(keep, size)), 0); err != nil && err != io.EOF {
				t.Fatal(err)
			}
			want, err := plain.resident(fd, "f", size)
			if err != nil {
				t.Fatal(err)
			}
			got, err := cached(fd, size)
			f.Close()
			if err == unix.ENOSYS || err == unix.EPERM {
				t.Skipf("no cachestat here (Linux 6.5 has it): %v", err)
			}
			if err != nil || got != want {
				t.Errorf("size %d, the first %d bytes read: cachestat says %d (%v), mincore %d", size, keep, got, err, want)
			}
		}
	}
}
