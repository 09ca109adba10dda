// Package storetest holds what every store must do: a suite to run against it, a store in memory, and decorators that make a
// store misbehave in one way. It is for tests only.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/benchpin/benchpin/pkg/store"
)

// Trait is something that a store cannot do and says so.
type Trait int

const (
	// Flat: there are no folders, so that "d" and "d/f" may both be files.
	Flat Trait = iota
	// Loses: a file that was replaced while it was open can no longer be read. Reading it fails, or gives the old bytes; never new ones.
	Loses
)

// Run runs the contract suite. fresh returns an empty store each time it is called.
func Run(t *testing.T, fresh func(t *testing.T) store.Store, traits ...Trait) {
	stays, noFile := testOpenFileStays, testFolderIsNoFile
	if slices.Contains(traits, Loses) {
		stays = testOpenFileIsNeverNew
	}
	if slices.Contains(traits, Flat) {
		noFile = testPrefixIsNoFile
	}
	for _, c := range []struct {
		name string
		test func(*testing.T, store.Store)
	}{
		{"Empty", testEmpty}, {"RoundTrip", testRoundTrip}, {"ReadAt", testReadAt}, {"Atomic", testAtomic},
		{"Replace", testReplace}, {"Sizes", testSizes}, {"Ends", testEnds}, {"Names", testNames}, {"NotExist", testNotExist},
		{"Order", testOrder}, {"ListStops", testListStops}, {"Identity", testIdentity}, {"OpenFileStays", stays},
		{"FolderIsNoFile", noFile}, {"Concurrent", testConcurrent},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, fresh(t)) })
	}
}

// Write stores a file, in pieces of odd sizes.
func Write(t testing.TB, s store.Store, name string, data []byte) {
	t.Helper()
	w, err := s.Create(name, int64(len(data)))
	if err != nil {
		t.Fatalf("create %s: %v", name, err)
	}
	defer w.Abort()
	for i, step := 0, 1; i < len(data); step = step*3 + 1 {
		n := min(step, len(data)-i)
		if m, err := w.Write(data[i : i+n]); err != nil || m != n {
			t.Fatalf("write %s: %d of %d bytes, %v", name, m, n, err)
		}
		i += n
	}
	if err := w.Commit(); err != nil {
		t.Fatalf("commit %s: %v", name, err)
	}
}

// Read returns the whole content of a file.
func Read(t testing.TB, s store.Store, name string) []byte {
	t.Helper()
	f, err := s.Open(name)
	if err != nil {
		t.Fatalf("open %s: %v", name, err)
	}
	defer f.Close()
	i, err := f.Info()
	if err != nil {
		t.Fatalf("info %s: %v", name, err)
	}
	b := make([]byte, i.Size)
	if n, err := f.ReadAt(b, 0); n != len(b) || (err != nil && err != io.EOF) {
		t.Fatalf("read %s: %d of %d bytes, %v", name, n, len(b), err)
	}
	return b
}

// List returns the names of all files in the order of the listing.
func List(t testing.TB, s store.Store) []string {
	t.Helper()
	names := []string{}
	if err := s.List(context.Background(), func(i store.Info) error { names = append(names, i.Path); return nil }); err != nil {
		t.Fatalf("list: %v", err)
	}
	return names
}

// Pattern returns n bytes that differ from place to place and from seed to seed.
func Pattern(seed, n int) []byte {
	b := make([]byte, n)
	x := uint32(seed)*2654435761 + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func testEmpty(t *testing.T, s store.Store) {
	Write(t, s, "only", nil)
	if got := Read(t, s, "only"); len(got) != 0 {
		t.Errorf("an empty file reads as %d bytes", len(got))
	}
	if got := List(t, s); !slices.Equal(got, []string{"only"}) {
		t.Errorf("list: %q", got)
	}
}

func testRoundTrip(t *testing.T, s store.Store) {
	for i, n := range []int{1, 511, 512, 4095, 4096, 4097, 100_000, 1 << 20, 1<<20 + 1, 3<<20 + 12345} {
		name := fmt.Sprintf("d/e%d/f", i)
		data := Pattern(i, n)
		Write(t, s, name, data)
		if !bytes.Equal(Read(t, s, name), data) {
			t.Errorf("%s of %d bytes reads differently from what was written", name, n)
		}
		if st, err := s.Stat(name); err != nil || st.Size != int64(n) || st.Path != name {
			t.Errorf("stat %s: %+v, %v", name, st, err)
		}
	}
}

func testReadAt(t *testing.T, s store.Store) {
	data := Pattern(7, 1<<20+5000)
	Write(t, s, "f", data)
	f, err := s.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	big := store.AlignedBuffer(2 << 20)
	for _, c := range []struct{ off, n, skip int }{
		{0, 1, 0}, {1, 1, 0}, {4095, 2, 0}, {4096, 4096, 0}, {4096, 4096, 1}, {3, 1 << 20, 0}, {0, len(data), 0}, {0, len(data) + 1, 0},
		{len(data) - 1, 1, 0}, {len(data) - 1, 2, 0}, {len(data), 1, 0}, {len(data) + 10, 1, 0}, {1 << 20, 8192, 0}, {0, 2 << 20, 0},
		{5000, 0, 0},
	} {
		p := big[c.skip : c.skip+min(c.n, len(big)-c.skip)]
		clear(p)
		n, err := f.ReadAt(p, int64(c.off))
		want := data[min(c.off, len(data)):min(c.off+len(p), len(data))]
		if !bytes.Equal(p[:n], want) {
			t.Errorf("read of %d at %d: %d bytes, expected %d, or they differ", len(p), c.off, n, len(want))
		}
		if n < len(p) && err != io.EOF {
			t.Errorf("read of %d at %d beyond the end: error %v, expected EOF", len(p), c.off, err)
		}
		if n == len(p) && err != nil && (err != io.EOF || c.off+n < len(data)) {
			t.Errorf("read of %d at %d: error %v", len(p), c.off, err)
		}
	}
	if _, err := f.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("a negative offset was accepted")
	}
}

func testAtomic(t *testing.T, s store.Store) {
	w, err := s.Create("a/f", 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat("a/f"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before Commit the file is there, or stat fails otherwise: %v", err)
	}
	for _, n := range List(t, s) {
		if !store.IsTemporary(n) {
			t.Errorf("before Commit, %s is listed", n)
		}
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if got := List(t, s); len(got) != 0 {
		t.Errorf("after Abort: %q", got)
	}
}

func testReplace(t *testing.T, s store.Store) {
	Write(t, s, "f", []byte("old content"))
	w, err := s.Create("f", -1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	if got := Read(t, s, "f"); string(got) != "old content" {
		t.Errorf("before Commit: %q", got)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := Read(t, s, "f"); string(got) != "new" {
		t.Errorf("after Commit: %q", got)
	}
	if got := List(t, s); !slices.Equal(got, []string{"f"}) {
		t.Errorf("list: %q", got)
	}
}

func testSizes(t *testing.T, s store.Store) {
	for _, c := range []struct{ declared, written int }{{5, 4}, {5, 6}, {0, 1}, {1, 0}, {2 << 20, 1}} {
		w, err := s.Create("f", int64(c.declared))
		if err != nil {
			t.Fatal(err)
		}
		_, werr := w.Write(make([]byte, c.written))
		if cerr := w.Commit(); werr == nil && cerr == nil {
			t.Errorf("%d bytes were committed as a file of %d", c.written, c.declared)
		}
		if got := List(t, s); len(got) != 0 {
			t.Errorf("%d of %d bytes: %q is there", c.written, c.declared, got)
		}
	}
}

func testEnds(t *testing.T, s store.Store) {
	w, err := s.Create("f", -1)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("writing after Commit was accepted")
	}
	if err := w.Commit(); err == nil {
		t.Error("a second Commit was accepted")
	}
	if err := w.Abort(); err != nil {
		t.Errorf("Abort after Commit: %v", err)
	}
	f, err := s.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err == nil {
		t.Error("a second Close was accepted")
	}
	if _, err := f.ReadAt(make([]byte, 1), 0); err == nil || err == io.EOF {
		t.Errorf("reading after Close: %v", err)
	}
}

// badNames are names that no store may accept.
var badNames = []string{
	"", "/", "/abs", ".", "..", "../x", "a/../b", "a/..", "a//b", "a/", "./a", "a/.", "nul\x00", "line\n", "del\x7f", "c1\u0085", "bad\xff",
	strings.Repeat("a", store.MaxName+1), strings.Repeat("a/", store.MaxDepth) + "a",
}

func testNames(t *testing.T, s store.Store) {
	for _, n := range badNames {
		_, oerr := s.Open(n)
		_, serr := s.Stat(n)
		w, cerr := s.Create(n, 0)
		if cerr == nil {
			_ = w.Abort()
		}
		for _, err := range []error{oerr, serr, cerr} {
			if !errors.Is(err, store.ErrName) {
				t.Errorf("name %.40q: error %v, expected one that matches ErrName", n, err)
			}
		}
	}
	for _, n := range []string{"a b", "ünïcödé/日本", `q"uote\back`, "...", ".hidden", "-dash", "a:b", "*?"} {
		Write(t, s, n, []byte(n))
		if got := Read(t, s, n); string(got) != n {
			t.Errorf("%q reads as %q", n, got)
		}
	}
}

func testNotExist(t *testing.T, s store.Store) {
	Write(t, s, "dir/f", nil)
	for _, n := range []string{"none", "dir/none", "none/none"} {
		if _, err := s.Open(n); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("open %s: %v", n, err)
		}
		if _, err := s.Stat(n); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("stat %s: %v", n, err)
		}
	}
}

func testOrder(t *testing.T, s store.Store) {
	want := []string{
		"a-b", "a.c/x", "a/b", "a/b-", "a0", "aa", "b/c-d/e", "b/c/d", "b/c0", "b0/a", "A", "Z/z", "ä", "z/\U0001F600", "z/\uFFFD", "z!/x", "z/a/b/c/d",
	}
	for i, n := range want {
		Write(t, s, n, Pattern(i, i))
	}
	slices.Sort(want)
	if got := List(t, s); !slices.Equal(got, want) {
		t.Errorf("list:\n%q, expected raw byte order:\n%q", got, want)
	}
}

func testListStops(t *testing.T, s store.Store) {
	for i := range 10 {
		Write(t, s, fmt.Sprintf("d%d/f", i), nil)
	}
	stop := errors.New("enough")
	n := 0
	err := s.List(context.Background(), func(store.Info) error {
		if n++; n == 3 {
			return stop
		}
		return nil
	})
	if err != stop || n != 3 {
		t.Errorf("stopped after %d files with %v", n, err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("no longer wanted")
	n = 0
	err = s.List(ctx, func(store.Info) error {
		if n++; n == 2 {
			cancel(why)
		}
		return nil
	})
	if !errors.Is(err, why) || n != 2 {
		t.Errorf("cancelled at 2: %d files, error %v, expected the cause", n, err)
	}
}

func testIdentity(t *testing.T, s store.Store) {
	Write(t, s, "f", []byte("one"))
	Write(t, s, "g", []byte("one"))
	f, err := s.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, err := f.Info()
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Stat("f")
	if err != nil || a != b {
		t.Errorf("open file says %+v, stat says %+v, %v", a, b, err)
	}
	err = s.List(context.Background(), func(i store.Info) error {
		if same := i.Same(a); same != (i.Path == "f") {
			t.Errorf("listed %+v, same as %+v: %v", i, a, same)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	Write(t, s, "f", []byte("two"))
	if c, err := s.Stat("f"); err != nil || c.Same(a) {
		t.Errorf("a replaced file has the identity of the old one: %+v, %v", c, err)
	}
}

func testOpenFileStays(t *testing.T, s store.Store) {
	Write(t, s, "f", []byte("old"))
	f, err := s.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	Write(t, s, "f", []byte("newer"))
	b := make([]byte, 3)
	if _, err := f.ReadAt(b, 0); (err != nil && err != io.EOF) || string(b) != "old" {
		t.Errorf("an open file reads %q, %v after its name was given to another", b, err)
	}
	if i, err := f.Info(); err != nil || i.Size != 3 {
		t.Errorf("info: %+v, %v", i, err)
	}
}

func testOpenFileIsNeverNew(t *testing.T, s store.Store) {
	Write(t, s, "f", Pattern(1, 3<<20))
	f, err := s.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	Write(t, s, "f", Pattern(2, 3<<20))
	for _, off := range []int64{0, 1 << 20, 5, 2 << 20} {
		b := make([]byte, 1000)
		if _, err := f.ReadAt(b, off); err == nil && !bytes.Equal(b, Pattern(1, 3<<20)[off:off+1000]) {
			t.Errorf("an open file reads other bytes at %d after its name was given to another", off)
		}
	}
	if i, err := f.Info(); err == nil && i.Size != 3<<20 {
		t.Errorf("info: %+v", i)
	}
}

func testPrefixIsNoFile(t *testing.T, s store.Store) {
	Write(t, s, "d/f", nil)
	if f, err := s.Open("d"); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			_ = f.Close()
		}
		t.Errorf("open a prefix: %v", err)
	}
	if _, err := s.Stat("d"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat a prefix: %v", err)
	}
	if got := List(t, s); !slices.Equal(got, []string{"d/f"}) {
		t.Errorf("list: %q", got)
	}
}

func testFolderIsNoFile(t *testing.T, s store.Store) {
	Write(t, s, "d/f", nil)
	if f, err := s.Open("d"); err == nil {
		_ = f.Close()
		t.Error("a folder was opened as a file")
	}
	for _, n := range []string{"d", "d/f/x"} {
		w, err := s.Create(n, 0)
		if err == nil {
			err = w.Commit()
		}
		if err == nil {
			t.Errorf("%s was created", n)
		}
	}
	if got := List(t, s); !slices.Equal(got, []string{"d/f"}) {
		t.Errorf("list: %q", got)
	}
}

func testConcurrent(t *testing.T, s store.Store) {
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 20 {
				name := fmt.Sprintf("p/q%d/r%d", i%5, g*100+i)
				Write(t, s, name, Pattern(g, 1000+i))
				if !bytes.Equal(Read(t, s, name), Pattern(g, 1000+i)) {
					t.Errorf("%s differs", name)
				}
				Write(t, s, "p/same", Pattern(1, 5000)) // all write the same file at once
			}
		})
	}
	wg.Wait()
	if !bytes.Equal(Read(t, s, "p/same"), Pattern(1, 5000)) {
		t.Error("the file that all wrote differs")
	}
	if got := List(t, s); len(got) != 161 {
		t.Errorf("%d files, expected 161", len(got))
	}
}
