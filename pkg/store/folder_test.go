package store

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func mustFolder(t *testing.T, root string, o FolderOptions) *Folder {
	t.Helper()
	f, err := NewFolder(root, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func put(t *testing.T, f *Folder, name string, data []byte) {
	t.Helper()
	w, err := f.Create(name, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

func list(f *Folder) (names []string, err error) {
	err = f.List(context.Background(), func(i Info) error { names = append(names, i.Path); return nil })
	return names, err
}

func TestFolderMissingRoot(t *testing.T) {
	root := filepath.Join(t.TempDir(), "not", "yet")
	f := mustFolder(t, root, FolderOptions{})
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("NewFolder touched the disk: %v", err)
	}
	if _, err := list(f); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("list: %v", err)
	}
	if _, err := f.Open("x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open: %v", err)
	}
	if n, err := f.FreeSpace(); err != nil || n <= 0 {
		t.Errorf("free space where the folder would be: %d, %v", n, err)
	}
	put(t, f, "a/b", []byte("x"))
	if got, err := list(f); err != nil || !slices.Equal(got, []string{"a/b"}) {
		t.Errorf("list: %q, %v", got, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Stat("a/b"); err != nil {
		t.Errorf("a closed folder opens itself again: %v", err)
	}
	if _, err := NewFolder(filepath.Join(root, "a/b"), FolderOptions{}); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("a file as root: %v", err)
	}
}

// TestFolderWalk uses the way of opening for kernels without openat2.
func TestFolderWalk(t *testing.T) {
	f := mustFolder(t, t.TempDir(), FolderOptions{})
	f.noOpenat2.Store(true)
	for _, n := range []string{"a", "b/c", "b/d/e/f"} {
		put(t, f, n, []byte(n))
		o, err := f.Open(n)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, len(n))
		if _, err := o.ReadAt(b, 0); err != nil || string(b) != n {
			t.Errorf("%s reads as %q, %v", n, b, err)
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []string{"x", "b/x", "b/x/y"} {
		if _, err := f.Open(n); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("open %s: %v", n, err)
		}
	}
	if _, err := f.Open("a/x"); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("open below a file: %v", err)
	}
}

// odd puts one thing of every refused kind below root and returns their names.
func odd(t *testing.T, root string) map[string]string {
	t.Helper()
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.MkdirAll(outside, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o666); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": filepath.Join(outside, "secret"), "dangling": "nowhere", "dir": outside} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(root, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Mknod(filepath.Join(root, "socket"), unix.S_IFSOCK|0o666, 0); err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"link": "symbolic link", "dangling": "symbolic link", "dir/secret": "symbolic link", "dir": "symbolic link",
		"pipe": "named pipe", "socket": "socket",
	}
}

// TestFolderRefusesOddFiles holds with openat2 and with the walk that replaces it.
func TestFolderRefusesOddFiles(t *testing.T) {
	for _, walk := range []bool{false, true} {
		for _, uncached := range []bool{false, true} {
			root := t.TempDir()
			f := mustFolder(t, root, FolderOptions{Uncached: uncached})
			f.noOpenat2.Store(walk)
			put(t, f, "fine", []byte("x"))
			for name, kind := range odd(t, root) {
				if o, err := f.Open(name); !errors.Is(err, ErrIrregular) || !strings.Contains(err.Error(), kind) || !strings.Contains(err.Error(), name) {
					t.Errorf("walk %v, open %s: %v, %v, expected %q", walk, name, o, err, kind)
				}
				if _, err := f.Stat(name); !errors.Is(err, ErrIrregular) {
					t.Errorf("walk %v, stat %s: %v", walk, name, err)
				}
				if w, err := f.Create(name, 0); err == nil {
					if err = w.Commit(); !errors.Is(err, ErrIrregular) {
						t.Errorf("walk %v, create %s: %v", walk, name, err)
					}
				} else if !errors.Is(err, ErrIrregular) && !errors.Is(err, unix.ENOTDIR) {
					t.Errorf("walk %v, create %s: %v", walk, name, err)
				}
				top, _, _ := strings.Cut(name, "/")
				sub := t.TempDir()
				if err := os.Rename(filepath.Join(root, top), filepath.Join(sub, top)); err == nil {
					g := mustFolder(t, sub, FolderOptions{})
					if _, err := list(g); !errors.Is(err, ErrIrregular) || !strings.Contains(err.Error(), top) {
						t.Errorf("list with %s: %v", top, err)
					}
					if err := os.Rename(filepath.Join(sub, top), filepath.Join(root, top)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if b, err := os.ReadFile(filepath.Join(root, "dir", "secret")); err != nil || string(b) != "secret" {
				t.Errorf("a file outside was touched: %q, %v", b, err)
			}
		}
	}
}

func TestFolderListBadName(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "bad\xffname"), nil, 0o666); err != nil {
		t.Skipf("the file system takes no such name: %v", err)
	}
	if _, err := list(mustFolder(t, root, FolderOptions{})); !errors.Is(err, ErrName) {
		t.Errorf("a name that is not UTF-8 was listed: %v", err)
	}
}

func TestFolderTemporaryNames(t *testing.T) {
	root := t.TempDir()
	f := mustFolder(t, root, FolderOptions{Sync: true})
	w, err := f.Create("d/f", -1)
	if err != nil {
		t.Fatal(err)
	}
	names, err := list(f)
	if err != nil || len(names) != 1 || !IsTemporary(names[0]) {
		t.Fatalf("%q, %v", names, err)
	}
	if _, err := f.Create(names[0], 0); !errors.Is(err, ErrName) {
		t.Errorf("a temporary name was taken for a file: %v", err)
	}
	if err := f.Remove(names[0]); err != nil { // what a resumed program does with left-overs
		t.Fatal(err)
	}
	if err := w.Commit(); err == nil {
		t.Error("Commit succeeded although the temporary file is gone")
	}
	put(t, f, "d/f", []byte("x"))
	if err := f.Remove("d/f"); err != nil {
		t.Fatal(err)
	}
	if names, err := list(f); err != nil || len(names) != 0 {
		t.Errorf("%q, %v", names, err)
	}
	if err := f.Remove("d/f"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("remove twice: %v", err)
	}
	if err := f.Remove("d"); !errors.Is(err, ErrIrregular) {
		t.Errorf("remove of a folder: %v", err)
	}
}

// TestFolderFull writes to a file system of 1 MiB: the error is the system's, and nothing is left.
func TestFolderFull(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a small file system needs privileges: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	f := mustFolder(t, dir, FolderOptions{Uncached: true})
	if _, err := f.Create("big", 8<<20); !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "big") {
		t.Errorf("create: %v, expected no space", err)
	}
	w, err := f.Create("big", -1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 8<<20)); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("write: %v, expected no space", err)
	}
	if err := w.Commit(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("commit after a failed write: %v", err)
	}
	if names, err := list(f); err != nil || len(names) != 0 {
		t.Errorf("left over: %q, %v", names, err)
	}
	put(t, f, "small", make([]byte, 100_000))
	if n, err := f.FreeSpace(); err != nil || n > 1<<20 {
		t.Errorf("free space: %d, %v", n, err)
	}
	_ = f.Close()
}

// TestListOrderProperty compares the listing with sorted names, for names that are likely to be sorted wrongly.
func TestListOrderProperty(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		root, err := os.MkdirTemp(base, "x")
		if err != nil {
			t.Fatal(err)
		}
		elem := rapid.StringMatching(`[ab\-.0!é~]{1,3}`).Filter(func(s string) bool { return s != "." && s != ".." })
		f, err := NewFolder(root, FolderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		want := map[string]bool{}
		for range rapid.IntRange(0, 30).Draw(t, "files") {
			name := strings.Join(rapid.SliceOfN(elem, 1, 3).Draw(t, "path"), "/")
			w, err := f.Create(name, 0)
			if err != nil {
				continue // an element of it is a file already
			}
			if w.Commit() == nil {
				want[name] = true
			}
		}
		got, err := list(f)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSorted(got) || len(got) != len(want) {
			t.Fatalf("listed %q, %d files written", got, len(want))
		}
		for _, n := range got {
			if !want[n] {
				t.Fatalf("%q was never written", n)
			}
		}
	})
}

func random(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestFolderListExcept: what is skipped is not looked into, whatever it is.
func TestFolderListExcept(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"a", "b/c", "b/skip", "skip/x/y", "skipped"} {
		path := filepath.Join(dir, n)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "skip", "link")); err != nil {
		t.Fatal(err)
	}
	f, err := NewFolder(dir, FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var asked, listed []string
	err = f.ListExcept(context.Background(), func(name string, folder bool) bool {
		if folder {
			name += "/"
		}
		asked = append(asked, name)
		return name == "skip/" || name == "b/skip"
	}, func(i Info) error { listed = append(listed, i.Path); return nil })
	slices.Sort(asked)
	if err != nil || !slices.Equal(listed, []string{"a", "b/c", "skipped"}) ||
		!slices.Equal(asked, []string{"a", "b/", "b/c", "b/skip", "skip/", "skipped"}) {
		t.Errorf("listed %q, asked about %q, %v", listed, asked, err)
	}
	if err := f.List(context.Background(), func(Info) error { return nil }); !errors.Is(err, ErrIrregular) {
		t.Errorf("the link is there: %v", err)
	}
}

// TestWriteFront replaces the first bytes of what was written, and nothing else.
func TestWriteFront(t *testing.T) {
	f := mustFolder(t, t.TempDir(), FolderOptions{})
	create := func() *folderWriter {
		w, err := f.Create("a", 10)
		if err != nil {
			t.Fatal(err)
		}
		return w.(*folderWriter)
	}
	w := create()
	defer w.Abort()
	if _, err := w.Write([]byte("01234")); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFront([]byte("abcdef")); err == nil {
		t.Error("more than was written")
	}
	if err := w.WriteFront([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("56789")); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFront([]byte("x")); err == nil {
		t.Error("after Commit")
	}
	if got, err := os.ReadFile(filepath.Join(f.Root(), "a")); err != nil || string(got) != "abc3456789" {
		t.Errorf("%q, %v", got, err)
	}
	w = create()
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFront(nil); err == nil {
		t.Error("after Abort")
	}
}

// TestBegin: a file whose write-back was begun in the middle, and whose front was replaced then, is what was written.
func TestBegin(t *testing.T) {
	f := mustFolder(t, t.TempDir(), FolderOptions{Begin: true})
	data := random(2*beginBytes + 12345)
	w, err := f.Create("a", int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for at := 0; at < len(data); at += 1 << 20 {
		if _, err := w.Write(data[at:min(len(data), at+1<<20)]); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.(*folderWriter).begun; got != 2*beginBytes {
		t.Errorf("begun with %d bytes, want %d", got, 2*beginBytes)
	}
	data[0]++
	if err := w.(*folderWriter).WriteFront(data[:1]); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(f.Root(), "a")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
