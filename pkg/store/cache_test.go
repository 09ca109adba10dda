package store

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// readAll reads a file the way hashing does.
func readAll(t *testing.T, f *Folder, name string, buf []byte) []byte {
	t.Helper()
	o, err := f.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	var all []byte
	for {
		n, err := o.ReadAt(buf, int64(len(all)))
		all = append(all, buf[:n]...)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func resident(t *testing.T, f *Folder, name string) int64 {
	t.Helper()
	n, err := f.Resident(name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestUncachedLeavesCache reads a file of which a part is resident, in every way, and finds the same part resident after.
func TestUncachedLeavesCache(t *testing.T) {
	const size = 5<<20 + 1234
	root := t.TempDir()
	plain := mustFolder(t, root, FolderOptions{Sync: true})
	data := random(size)
	put(t, plain, "f", data)
	if got := resident(t, plain, "f"); got != size {
		t.Skipf("a file just written has %d of %d bytes resident: this file system does not use the page cache", got, size)
	}
	if err := plain.Evict("f"); err != nil {
		t.Fatal(err)
	}
	if got := resident(t, plain, "f"); got != 0 {
		t.Skipf("%d bytes stay resident after eviction: this file system keeps its pages", got)
	}
	if !bytes.Equal(readAll(t, plain, "f", make([]byte, 1<<20)), data) {
		t.Fatal("cached read differs")
	}
	if got := resident(t, plain, "f"); got != size {
		t.Errorf("after a cached read %d bytes are resident, expected %d: the test would prove nothing", got, size)
	}
	if err := plain.Evict("f"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		noDirect bool
		buf      []byte
		resident bool
	}{
		{"direct, aligned", false, AlignedBuffer(1 << 20), false},
		{"direct, large", false, AlignedBuffer(3 << 20), false},
		{"direct, unaligned", false, AlignedBuffer(1 << 20)[5:77_777], false},
		{"fallback, aligned", true, AlignedBuffer(1 << 20), false},
		{"fallback, unaligned", true, AlignedBuffer(1 << 20)[5:77_777], false},
		{"resident, direct", false, AlignedBuffer(1 << 20), true},
		{"resident, direct, unaligned", false, AlignedBuffer(1 << 20)[5:77_777], true},
		{"resident, fallback", true, AlignedBuffer(1 << 20), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, warm := range []bool{false, true} {
				before := int64(0)
				if warm { // 16 pages in the middle, brought in without reading ahead
					warmPages(t, filepath.Join(root, "f"), 1<<20, 16*4096)
					before = 16 * 4096
				}
				if got := resident(t, plain, "f"); got != before {
					t.Fatalf("before: %d bytes resident, expected %d", got, before)
				}
				f := mustFolder(t, root, FolderOptions{Uncached: true, Resident: c.resident})
				f.noDirect.Store(c.noDirect)
				if !bytes.Equal(readAll(t, f, "f", c.buf), data) {
					t.Fatal("uncached read differs")
				}
				if got := resident(t, plain, "f"); got != before {
					t.Errorf("%d bytes resident before, %d after", before, got)
				}
				if err := plain.Evict("f"); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// deviceReads is what the kernel fetched from devices for this process.
func deviceReads(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skipf("the kernel does not count what a process reads: %v", err)
	}
	for line := range bytes.Lines(b) {
		if n, ok := bytes.CutPrefix(line, []byte("read_bytes: ")); ok {
			v, err := strconv.ParseInt(string(bytes.TrimSpace(n)), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Skip("the kernel does not count what a process reads")
	return 0
}

// TestResidentIsNotFetched reads a file that is in memory: with Resident nothing comes from the device, without it all does. A file
// of which one page is missing is read from the device, and is no more in memory after than before.
func TestResidentIsNotFetched(t *testing.T) {
	const size = 3<<20 + 555
	root := t.TempDir()
	plain := mustFolder(t, root, FolderOptions{Sync: true})
	data := random(size)
	put(t, plain, "f", data)
	if got := resident(t, plain, "f"); got != size {
		t.Skipf("a file just written has %d of %d bytes resident: this file system does not use the page cache", got, size)
	}
	for _, noCachestat := range []bool{false, true} {
		fetched := func(o FolderOptions) int64 {
			f := mustFolder(t, root, o)
			f.noCachestat.Store(noCachestat)
			before := deviceReads(t)
			if !bytes.Equal(readAll(t, f, "f", AlignedBuffer(1<<20)), data) {
				t.Error("read differs")
			}
			return deviceReads(t) - before
		}
		if n := fetched(FolderOptions{Uncached: true}); n < size {
			t.Skipf("direct reads fetched %d of %d bytes: what they fetch is not counted here", n, size)
		}
		if n := fetched(FolderOptions{Uncached: true, Resident: true}); n != 0 {
			t.Errorf("expected nothing from the device, found %d bytes", n)
		}
		if n := resident(t, plain, "f"); n != size {
			t.Errorf("%d of %d bytes are still in memory", n, size)
		}
	}
	if err := plain.Evict("f"); err != nil {
		t.Fatal(err)
	}
	warmPages(t, filepath.Join(root, "f"), 0, 2<<20)
	before := resident(t, plain, "f")
	if before == size {
		t.Skip("more was read than asked for")
	}
	f := mustFolder(t, root, FolderOptions{Uncached: true, Resident: true})
	if !bytes.Equal(readAll(t, f, "f", AlignedBuffer(1<<20)), data) {
		t.Error("read differs")
	}
	if after := resident(t, plain, "f"); after != before {
		t.Errorf("%d bytes in memory before, %d after", before, after)
	}
}

// warmPages brings exactly n bytes at off into the page cache.
func warmPages(t *testing.T, path string, off int64, n int) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Fadvise(fd, 0, 0, unix.FADV_RANDOM); err != nil {
		t.Fatal(err)
	}
	if m, err := unix.Pread(fd, make([]byte, n), off); m != n || err != nil {
		t.Fatalf("read %d of %d bytes, %v", m, n, err)
	}
}

// TestDirectRefusedLate has a file whose direct reads fail after it was opened: it is read through the cache.
func TestDirectRefusedLate(t *testing.T) {
	root := t.TempDir()
	f := mustFolder(t, root, FolderOptions{Uncached: true})
	data := random(300_000)
	put(t, f, "f", data)
	o, err := f.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	ff := o.(*folderFile)
	// An unaligned length is what the kernel refuses with EINVAL where it needs alignment.
	fl, err := unix.FcntlInt(uintptr(ff.fd), unix.F_GETFL, 0)
	if err != nil {
		t.Fatal(err)
	}
	if fl&unix.O_DIRECT == 0 {
		t.Skip("this file system refuses direct reads on opening")
	}
	ff.direct.Store(false) // read as in the fallback, though the descriptor is still direct
	b := make([]byte, 1000)
	if _, err := ff.pread(b, 1); err != unix.EINVAL {
		t.Skipf("this file system takes unaligned direct reads: %v", err)
	}
	if _, err := unix.FcntlInt(uintptr(ff.fd), unix.F_SETFL, fl&^unix.O_DIRECT); err != nil {
		t.Fatal(err)
	}
	if n, err := o.ReadAt(b, 1); n != 1000 || err != nil || !bytes.Equal(b, data[1:1001]) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestResidencyHidden reads, as another user, a file of root's: what is resident cannot be known then, and an uncached
// read must leave nothing behind all the same.
func TestResidencyHidden(t *testing.T) {
	const env = "BENCHPIN_TEST_HIDDEN"
	if root := os.Getenv(env); root != "" {
		f := mustFolder(t, root, FolderOptions{Uncached: true})
		if _, err := f.Resident("f"); !errors.Is(err, ErrResidencyHidden) {
			t.Errorf("resident pages of another user's file: %v", err)
		}
		for _, fallback := range []bool{false, true} {
			f.noDirect.Store(fallback)
			if got := readAll(t, f, "f", AlignedBuffer(1<<20)); !bytes.Equal(got, random(1_500_000)) {
				t.Error("read differs")
			}
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("becoming another user needs root")
	}
	root, err := os.MkdirTemp("", "benchpin-hidden")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	exe := filepath.Join(root, "test")
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(root, 0o755), os.WriteFile(exe, b, 0o755)); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(root, "data")
	f := mustFolder(t, data, FolderOptions{})
	put(t, f, "f", random(1_500_000))
	if err := f.Evict("f"); err != nil {
		t.Fatal(err)
	}
	before := resident(t, f, "f")
	cmd := exec.Command(exe, "-test.run=^TestResidencyHidden$", "-test.count=1")
	cmd.Env = append(os.Environ(), env+"="+data)
	cmd.Dir = root
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("as another user: %v\n%s", err, out)
	}
	if after := resident(t, f, "f"); after > before {
		t.Errorf("%d bytes resident before, %d after", before, after)
	}
}

// TestResidentCounts counts to the byte at the end of a file.
func TestResidentCounts(t *testing.T) {
	f := mustFolder(t, t.TempDir(), FolderOptions{})
	put(t, f, "f", random(10_000))
	put(t, f, "empty", nil)
	for name, want := range map[string]int64{"f": 10_000, "empty": 0} {
		if n := resident(t, f, name); n != want {
			t.Errorf("%s: %d bytes resident, expected %d", name, n, want)
		}
	}
	if _, err := f.Resident("none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("resident pages of no file: %v", err)
	}
}

func BenchmarkRead(b *testing.B) {
	for _, c := range []struct {
		name string
		o    FolderOptions
	}{{"cached", FolderOptions{}}, {"uncached", FolderOptions{Uncached: true}}} {
		b.Run(c.name, func(b *testing.B) {
			f, err := NewFolder(b.TempDir(), c.o)
			if err != nil {
				b.Fatal(err)
			}
			w, err := f.Create("f", 100_000)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := w.Write(random(100_000)); err != nil {
				b.Fatal(err)
			}
			if err := w.Commit(); err != nil {
				b.Fatal(err)
			}
			buf := AlignedBuffer(1 << 20)
			b.SetBytes(100_000)
			b.ReportAllocs()
			for b.Loop() {
				o, err := f.Open("f")
				if err != nil {
					b.Fatal(err)
				}
				if _, err := o.ReadAt(buf, 0); err != io.EOF {
					b.Fatal(err)
				}
				if err := o.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkResident is what asking for the resident bytes of one file costs, small and large, all of it in memory.
func BenchmarkResident(b *testing.B) {
	root := b.TempDir()
	f, err := NewFolder(root, FolderOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for name, size := range map[string]int{"100KB": 100_000, "100MB": 100_000_000} {
		if err := os.WriteFile(filepath.Join(root, name), make([]byte, size), 0o666); err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := f.Resident(name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
