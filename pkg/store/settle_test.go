package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mapped is a new file of a folder with a page that was changed through a shared mapping and not written back.
func mapped(t *testing.T) (dir string, page []byte) {
	t.Helper()
	dir = t.TempDir()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	if k := fileSystemName(int64(st.Type)); k != "ext4" && k != "xfs" {
		skip := t.Skipf
		if os.Getenv("CI") != "" {
			skip = t.Fatalf
		}
		skip("WRITING BACK WAS NOT TRIED: the folder for temporary files is on %s; set TMPDIR to a folder on ext4 or xfs", k)
	}
	file, err := os.OpenFile(filepath.Join(dir, "a"), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(make([]byte, 8192)); err != nil {
		t.Fatal(err)
	}
	page, err = unix.Mmap(int(file.Fd()), 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(page) })
	page[100] = 1
	time.Sleep(50 * time.Millisecond) // the clock of the file system moves
	return dir, page
}

// TestSettle: a change through a mapping that stood before shows in the identity that was taken settled, and does not in one that was not.
func TestSettle(t *testing.T) {
	for _, c := range []struct {
		name string
		o    FolderOptions
		take func(f *Folder) (Info, error)
		want bool
	}{
		{"looked at, not settled", FolderOptions{}, func(f *Folder) (Info, error) { return f.Stat("a") }, false},
		{"looked at", FolderOptions{}, func(f *Folder) (Info, error) { return f.StatSettled("a") }, true},
		{"opened", FolderOptions{Settle: true}, openedInfo, true},
		{"opened, uncached", FolderOptions{Settle: true, Uncached: true, Resident: true}, openedInfo, true},
	} {
		dir, page := mapped(t)
		f, err := NewFolder(dir, c.o)
		if err != nil {
			t.Fatal(err)
		}
		before, err := c.take(f)
		if err != nil {
			t.Fatal(err)
		}
		page[100] ^= 0xff
		after, err := f.Stat("a")
		if err != nil {
			t.Fatal(err)
		}
		if !after.Same(before) != c.want {
			t.Errorf("%s: a change shows: %t, expected %t", c.name, !c.want, c.want)
		}
		f.Close()
	}
}

func openedInfo(f *Folder) (Info, error) {
	r, err := f.Open("a")
	if err != nil {
		return Info{}, err
	}
	defer r.Close()
	return r.Info()
}

// TestStatSettledErrors: what is not there, or is no file, is said as by Stat.
func TestStatSettledErrors(t *testing.T) {
	f, err := NewFolder(t.TempDir(), FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Mkdir(filepath.Join(f.Root(), "dir"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"none", "dir", "../x"} {
		_, want := f.Stat(name)
		_, found := f.StatSettled(name)
		if want == nil || found == nil {
			t.Errorf("%s: expected an error as %v, found %v", name, want, found)
		}
		if os.IsNotExist(want) != os.IsNotExist(found) {
			t.Errorf("%s: expected %v, found %v", name, want, found)
		}
	}
}

// BenchmarkStatSettled compares what a look at a small clean file takes with and without writing back.
func BenchmarkStatSettled(b *testing.B) {
	dir := b.TempDir()
	const files = 20000
	for i := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), make([]byte, 4096), 0o666); err != nil {
			b.Fatal(err)
		}
	}
	unix.Sync()
	f, err := NewFolder(dir, FolderOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for name, stat := range map[string]func(string) (Info, error){"settled": f.StatSettled, "plain": f.Stat} {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				if _, err := stat(fmt.Sprint(i % files)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
