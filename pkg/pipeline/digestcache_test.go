package pipeline

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/environment"
)

// pinnedWithCache pins a folder and returns the root and what was said of the cache.
func pinnedWithCache(t *testing.T, data, cache string) (root, said string) {
	t.Helper()
	var lines []string
	h, err := Pin(t.Context(), PinOptions{Data: data, Manifest: filepath.Join(t.TempDir(), "m.json"), DigestCache: cache, Notify: Notify{
		Stage: func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }}})
	if err != nil {
		t.Fatal(err)
	}
	return string(h.Root), strings.Join(lines, "\n")
}

// TestDigestCacheMapped: a file that was mapped, with a changed page, before it was pinned and is changed after that is hashed again.
func TestDigestCacheMapped(t *testing.T) {
	data, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache.bin")
	var st unix.Stat_t
	if err := unix.Stat(data, &st); err != nil {
		t.Fatal(err)
	}
	if k := environment.NewMeter(data, uint64(st.Dev)).FileSystem; k != "ext4" && k != "xfs" {
		skipOrFail(t, "CHANGES THROUGH MAPPINGS WERE NOT TRIED: the folder for temporary files is on %s; set TMPDIR to a folder on ext4 or xfs", k)
	}
	path := filepath.Join(data, "a")
	if err := os.WriteFile(path, make([]byte, 4096), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	m[100] = 1
	time.Sleep(3500 * time.Millisecond) // younger files are not cached
	first, _ := pinnedWithCache(t, data, cache)
	same, said := pinnedWithCache(t, data, cache)
	if same != first || !strings.Contains(said, "cache    1 of 1 file") {
		t.Fatalf("root %s, expected %s; said %q", same, first, said)
	}
	m[100] = 2
	if changed, said := pinnedWithCache(t, data, cache); changed == first || !strings.Contains(said, "cache    0 of 1 file") {
		t.Errorf("the changed file was taken from the cache: root %s; said %q", changed, said)
	}
}

// TestDigestCacheMemory: files in memory are not cached, and that is said once.
func TestDigestCacheMemory(t *testing.T) {
	data, err := os.MkdirTemp("/dev/shm", "digests")
	if err != nil {
		skipOrFail(t, "CACHING OF FILES IN MEMORY WAS NOT TRIED: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(data) })
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"a", "b"} {
		path := filepath.Join(data, name)
		if err := os.WriteFile(path, []byte(name), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(3500 * time.Millisecond) // the change time cannot be set
	cache := filepath.Join(t.TempDir(), "cache.bin")
	for range 2 {
		_, said := pinnedWithCache(t, data, cache)
		if !strings.Contains(said, "0 of 2 files") || strings.Count(said, "2 files in memory (tmpfs, ramfs)") != 1 {
			t.Errorf("said %q", said)
		}
	}
}
