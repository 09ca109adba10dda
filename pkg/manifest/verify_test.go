package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/blake3"
	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/storetest"
)

// pin builds the manifest of a store.
func pin(t testing.TB, src Source, workers int) pair {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, Meta{})
	w.lines = 3
	if err := Build(context.Background(), src, w, BuildOptions{Workers: workers}); err != nil {
		t.Fatal(err)
	}
	h, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return pair{raw, out.Bytes()}
}

var sampleNames = []string{"a-b", "a/b", "a/c/d", "a0", "empty", "big", "z/1", "z/2", "z/3"}

// sample is a small data set, with the names that are sorted wrongly most easily.
func sample() *storetest.Memory {
	m := storetest.NewMemory()
	for i, n := range sampleNames {
		m.Put(n, storetest.Pattern(i, 1000*i))
	}
	m.Put("empty", nil)
	m.Put("big", storetest.Pattern(99, 3<<20+77))
	return m
}

func TestBuild(t *testing.T) {
	src := sample()
	want := pin(t, src, 1)
	es, err := want.read()
	if err != nil {
		t.Fatal(err)
	}
	if got, names := len(es), storetest.List(t, src); got != len(names) {
		t.Fatalf("%d entries for %d files", got, len(names))
	}
	for _, e := range es {
		data := storetest.Read(t, src, e.Path)
		if e.Digest != blake3.Sum256(data) || e.Size != int64(len(data)) {
			t.Errorf("%s: size or digest differ", e.Path)
		}
	}
	for _, n := range []int{0, 2, 7, 64} {
		if got := pin(t, src, n); !bytes.Equal(got.header, want.header) || !bytes.Equal(got.entries, want.entries) {
			t.Errorf("%d workers: another manifest", n)
		}
	}
	// The same files in a folder, read past the page cache, are the same data set.
	f, err := store.NewFolder(t.TempDir(), store.FolderOptions{Uncached: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range storetest.List(t, src) {
		storetest.Write(t, f, n, storetest.Read(t, src, n))
	}
	if got := pin(t, f, 3); !bytes.Equal(got.header, want.header) {
		t.Error("in a folder: another manifest")
	}
}

func TestBuildRefuses(t *testing.T) {
	add := func(name string) *storetest.Memory { m := sample(); m.Put(name, nil); return m }
	boom := errors.New("boom")
	w := func() *Writer { return NewWriter(&bytes.Buffer{}, Meta{}) }
	if err := Build(context.Background(), add("z/.benchpin-tmp-0123"), w(), BuildOptions{}); err == nil || !strings.Contains(err.Error(), "z/.benchpin-tmp-0123") {
		t.Errorf("a temporary file was pinned: %v", err)
	}
	if err := Build(context.Background(), storetest.FailOnce(sample(), "z/2", boom), w(), BuildOptions{}); !errors.Is(err, boom) {
		t.Errorf("a failing read: %v", err)
	}
	if err := Build(context.Background(), storetest.ShortRead(sample(), "z/2", 10), w(), BuildOptions{}); !errors.Is(err, ErrUnstable) || !strings.Contains(err.Error(), "z/2") {
		t.Errorf("a file that ends early: %v", err)
	}
	if err := Build(context.Background(), sample(), NewWriter(failing{}, Meta{}), BuildOptions{}); err != nil {
		t.Errorf("one frame is not written before Close: %v", err)
	}
	one := NewWriter(failing{}, Meta{})
	one.lines = 1
	if err := Build(context.Background(), sample(), one, BuildOptions{}); !errors.Is(err, errDisk) {
		t.Errorf("a manifest that cannot be written: %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(boom)
	if err := Build(ctx, sample(), w(), BuildOptions{}); !errors.Is(err, boom) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestVerifyEqual(t *testing.T) {
	src := sample()
	m := mustOpen(t, pin(t, src, 2))
	for _, workers := range []int{0, 1, 2, 7} {
		infos := map[string]store.Info{}
		index := map[int64]string{}
		var lastFiles, lastBytes int64
		r, err := Verify(context.Background(), m, src, VerifyOptions{
			Workers: workers,
			Each:    func(i int64, e Entry, info store.Info) { infos[e.Path] = info; index[i] = e.Path },
			Progress: func(files, bytes int64) {
				if files < lastFiles || bytes < lastBytes {
					t.Errorf("progress went back from %d, %d to %d, %d", lastFiles, lastBytes, files, bytes)
				}
				lastFiles, lastBytes = files, bytes
			},
		})
		h := m.Header()
		if err != nil || r.Files != h.Count || r.Bytes != h.Bytes || len(r.Mismatches) != 0 || r.Stopped || r.Root != h.Root {
			t.Fatalf("%+v, %v", r, err)
		}
		if lastFiles != h.Count || lastBytes != h.Bytes {
			t.Errorf("progress ended with %d files, %d bytes", lastFiles, lastBytes)
		}
		for i, n := range storetest.List(t, src) {
			if st, err := src.Stat(n); err != nil || infos[n] != st || index[int64(i)] != n {
				t.Errorf("%s: identity %+v at index of %q, expected %+v", n, infos[n], index[int64(i)], st)
			}
		}
	}
	r, err := Verify(context.Background(), m, storetest.FlipBit(src, "big", 99), VerifyOptions{Select: func(e Entry) bool { return e.Path != "big" }})
	if err != nil || r.Skipped != 1 || r.Files != m.Header().Count-1 {
		t.Errorf("without big: %+v, %v", r, err)
	}
}

func kinds(r Report) []string {
	var s []string
	for _, m := range r.Mismatches {
		s = append(s, strings.TrimSuffix(fmt.Sprintf("%s %s>%s", m.Kind, m.Path, m.To), ">"))
	}
	return s
}

func TestVerifyKinds(t *testing.T) {
	pinned := pin(t, sample(), 2)
	for _, c := range []struct {
		name   string
		change func(m *storetest.Memory)
		want   []string
		text   string
	}{
		{"missing first", func(m *storetest.Memory) { m.Remove("a-b") }, []string{"missing a-b"}, "expected 0 bytes blake3:af13"},
		{"missing last", func(m *storetest.Memory) { m.Remove("z/3") }, []string{"missing z/3"}, "found no file"},
		{"missing all", func(m *storetest.Memory) {
			for _, n := range sampleNames {
				m.Remove(n)
			}
		}, []string{"missing a-b", "missing a/b", "missing a/c/d", "missing a0", "missing big", "missing empty", "missing z/1", "missing z/2", "missing z/3"}, "and 8 more"},
		{"extra", func(m *storetest.Memory) { m.Put("a.x", []byte("new")); m.Put("zz", nil) }, []string{"extra a.x", "extra zz"}, "expected no file, found 3 bytes"},
		{"changed", func(m *storetest.Memory) { m.Put("a/c/d", storetest.Pattern(77, 2000)) }, []string{"changed a/c/d"}, "found 2000 bytes blake3:"},
		{"grown", func(m *storetest.Memory) { m.Put("a/c/d", storetest.Pattern(2, 2001)) }, []string{"changed a/c/d"}, "found 2001 bytes"},
		{"renamed", func(m *storetest.Memory) { d := m2(m, "z/2"); m.Remove("z/2"); m.Put("a/new", d) }, []string{"renamed z/2>a/new"}, "its bytes are at a/new"},
		{"same size, other bytes", func(m *storetest.Memory) { m.Remove("z/2"); m.Put("a/new", make([]byte, 7000)) }, []string{"extra a/new", "missing z/2"}, "a/new is extra"},
		{"swapped", func(m *storetest.Memory) {
			a, b := m2(m, "z/1"), m2(m, "z/2")
			m.Put("z/1", b)
			m.Put("z/2", a)
		}, []string{"changed z/1", "changed z/2"}, "and 1 more"},
		{"copied", func(m *storetest.Memory) { m.Put("copy", m2(m, "z/1")) }, []string{"extra copy"}, "copy is extra"},
		{"folder order", func(m *storetest.Memory) { d := m2(m, "a/b"); m.Remove("a/b"); m.Put("a-b2", d) }, []string{"renamed a/b>a-b2"}, "renamed"},
	} {
		src := sample()
		c.change(src)
		for _, workers := range []int{1, 5} {
			r, err := Verify(context.Background(), mustOpen(t, pinned), src, VerifyOptions{Workers: workers})
			if got := kinds(r); !slices.Equal(got, c.want) {
				t.Errorf("%s: found %q, expected %q", c.name, got, c.want)
			}
			var mm *MismatchError
			if !errors.As(err, &mm) || mm != r.Mismatches[0] || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), mm.Path) {
				t.Errorf("%s: error %v, expected %q in it", c.name, err, c.text)
			}
		}
	}
}

func m2(m *storetest.Memory, name string) []byte {
	f, err := m.Open(name)
	if err != nil {
		return nil
	}
	i, _ := f.Info()
	b := make([]byte, i.Size)
	_, _ = f.ReadAt(b, 0)
	return b
}

// TestVerifyAsSets compares with a plain comparison of two maps, for any two data sets.
func TestVerifyAsSets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(label string) map[string]string {
			return rapid.MapOfN(paths, rapid.SampledFrom([]string{"", "x", "y", "xx", "yy"}), 0, 12).Draw(rt, label)
		}
		a, b := draw("a"), draw("b")
		load := func(files map[string]string) *storetest.Memory {
			m := storetest.NewMemory()
			for n, c := range files {
				m.Put(n, []byte(c))
			}
			return m
		}
		ma, mb := mustOpen(t, pin(t, load(a), 2)), mustOpen(t, pin(t, load(b), 2))
		missing, extra, changed := map[string]bool{}, map[string]bool{}, map[string]bool{}
		left := map[string]int{} // renames: how many missing and extra files share a content
		right := map[string]int{}
		for n, c := range a {
			if d, ok := b[n]; !ok {
				missing[n] = true
				left[c]++
			} else if c != d {
				changed[n] = true
			}
		}
		for n, c := range b {
			if _, ok := a[n]; !ok {
				extra[n] = true
				right[c]++
			}
		}
		renamed := 0
		for c := range left {
			renamed += min(left[c], right[c])
		}
		r, err := Verify(context.Background(), ma, load(b), VerifyOptions{})
		count := map[Kind]int{}
		for _, m := range r.Mismatches {
			count[m.Kind]++
			switch m.Kind {
			case Missing:
				delete(missing, m.Path)
			case Extra:
				delete(extra, m.Path)
			case Changed:
				delete(changed, m.Path)
			case Renamed:
				if a[m.Path] != b[m.To] {
					rt.Fatalf("%s and %s are no rename", m.Path, m.To)
				}
				delete(missing, m.Path)
				delete(extra, m.To)
			}
		}
		if len(missing)+len(extra)+len(changed) != 0 || count[Renamed] != renamed || (err == nil) != (len(r.Mismatches) == 0) {
			rt.Fatalf("not reported: %v %v %v; %d renamed, expected %d; %v", missing, extra, changed, count[Renamed], renamed, err)
		}
		// Diff of the two manifests says the same.
		var changes []Change
		s, err := Diff(context.Background(), ma, mb, func(c Change) error { changes = append(changes, c); return nil })
		if err != nil || !s.RenamesSearched || s.Equal() != (len(r.Mismatches) == 0) || len(changes) != len(r.Mismatches) {
			rt.Fatalf("diff: %+v, %v, %d changes for %d mismatches", s, err, len(changes), len(r.Mismatches))
		}
		for i, c := range changes {
			kind := map[Kind]Kind{Missing: Removed, Extra: Added, Changed: Changed, Renamed: Renamed}
			if m := r.Mismatches[i]; c.Kind != kind[m.Kind] || c.Path != m.Path || c.To != m.To {
				rt.Fatalf("change %d: %+v, mismatch %+v", i, c, m)
			}
		}
		both := s.Same.Files + s.Changed.Files + s.Renamed.Files
		if both+s.Removed.Files != int64(len(a)) || both+s.Added.Files != int64(len(b)) {
			rt.Fatalf("counts do not add up: %+v for %d and %d files", s, len(a), len(b))
		}
		same := s.Same.Bytes + s.Renamed.Bytes
		if same+s.Changed.Bytes+s.Removed.Bytes != ma.Header().Bytes || same+s.ChangedTo+s.Added.Bytes != mb.Header().Bytes {
			rt.Fatalf("bytes do not add up: %+v for %d and %d bytes", s, ma.Header().Bytes, mb.Header().Bytes)
		}
	})
}

// TestVerifyFlips: no flipped bit of the data goes unseen, and the file is named.
func TestVerifyFlips(t *testing.T) {
	src := sample()
	m := mustOpen(t, pin(t, src, 2))
	names := slices.DeleteFunc(storetest.List(t, src), func(n string) bool { i, err := src.Stat(n); return err != nil || i.Size == 0 })
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		n := names[r.IntN(len(names))]
		i, err := src.Stat(n)
		if err != nil {
			t.Fatal(err)
		}
		bit := r.Int64N(8 * i.Size)
		rep, err := Verify(context.Background(), m, storetest.FlipBit(src, n, bit), VerifyOptions{})
		var mm *MismatchError
		if !errors.As(err, &mm) || mm.Kind != Changed || mm.Path != n || len(rep.Mismatches) != 1 {
			t.Fatalf("bit %d of %s: %v", bit, n, err)
		}
	}
}

func TestVerifyErrors(t *testing.T) {
	src := sample()
	p := pin(t, src, 2)
	m := mustOpen(t, p)
	boom := errors.New("boom")
	if _, err := Verify(context.Background(), m, storetest.FailOnce(src, "big", boom), VerifyOptions{}); !errors.Is(err, boom) {
		t.Errorf("a failing read: %v", err)
	}
	if _, err := Verify(context.Background(), m, storetest.ShortRead(src, "big", 1<<20), VerifyOptions{}); !errors.Is(err, ErrUnstable) {
		t.Errorf("a file that ends early: %v", err)
	}
	broken := pair{p.header, bytes.Clone(p.entries)}
	broken.entries[len(broken.entries)-5] ^= 1
	if _, err := Verify(context.Background(), mustOpen(t, broken), src, VerifyOptions{}); !errors.Is(err, ErrFrame) {
		t.Errorf("a damaged manifest: %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	_, err := Verify(ctx, m, storetest.OnRead(src, "big", func(int64) { cancel(boom) }), VerifyOptions{Workers: 1})
	if !errors.Is(err, boom) {
		t.Errorf("cancelled in the middle of a file: %v", err)
	}
	empty := storetest.NewMemory()
	for i := range 500 {
		empty.Put(fmt.Sprint("x", i), []byte("x"))
	}
	r, err := Verify(context.Background(), m, empty, VerifyOptions{Limit: 20})
	var mm *MismatchError
	if !errors.As(err, &mm) || !r.Stopped || len(r.Mismatches) != 20 || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("another data set: %d mismatches, stopped %v, %v", len(r.Mismatches), r.Stopped, err)
	}
	src.Remove("z/3")
	vanishing := storetest.OnRead(src, "a0", func(int64) { src.Remove("z/2") })
	if r, err = Verify(context.Background(), m, vanishing, VerifyOptions{Workers: 1}); !slices.Equal(kinds(r), []string{"missing z/2", "missing z/3"}) {
		t.Errorf("files that vanish: %q, %v", kinds(r), err)
	}
}

// TestUnstable writes to a file while it is hashed: an error, whatever the bytes were.
func TestUnstable(t *testing.T) {
	dir := t.TempDir()
	f, err := store.NewFolder(dir, store.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "f")
	data := storetest.Pattern(1, 3<<20)
	for name, change := range map[string]func() error{
		"rewritten with the same bytes": func() error { return writeAt(path, data[:10], 0) },
		"grown":                         func() error { return writeAt(path, []byte("x"), int64(len(data))) },
		"cut":                           func() error { return os.Truncate(path, 1<<20+5) },
		"given another time":            func() error { return os.Chtimes(path, time.Unix(1, 0), time.Unix(2, 0)) },
	} {
		storetest.Write(t, f, "f", data)
		m := mustOpen(t, pin(t, f, 1))
		time.Sleep(15 * time.Millisecond) // older kernels stamp times every few milliseconds only
		once := false
		src := storetest.OnRead(f, "f", func(int64) {
			if !once {
				once = true
				if err := change(); err != nil {
					t.Error(err)
				}
			}
		})
		if _, err := Verify(context.Background(), m, src, VerifyOptions{Workers: 1}); !errors.Is(err, ErrUnstable) || !strings.Contains(err.Error(), "f") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := HashFile(context.Background(), f, "none", HashOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if h, err := HashFile(context.Background(), f, "f", HashOptions{}); err != nil || h.Digest != blake3.Sum256(storetest.Read(t, f, "f")) {
		t.Errorf("digest of f: %v", err)
	}
}

func writeAt(path string, b []byte, off int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, off)
	return errors.Join(err, f.Close())
}

// TestVerifyLeavesCache verifies a folder of which one file is in the page cache: after, it is the same one.
func TestVerifyLeavesCache(t *testing.T) {
	f, err := store.NewFolder(t.TempDir(), store.FolderOptions{Uncached: true, Sync: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		storetest.Write(t, f, fmt.Sprintf("d/%d", i), storetest.Pattern(i, 700_000*i+100))
	}
	m := mustOpen(t, pin(t, f, 2))
	resident := func() (n [6]int64) {
		for i := range n {
			if n[i], err = f.Resident(fmt.Sprintf("d/%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	for i := range 6 {
		if i != 3 {
			if err := f.Evict(fmt.Sprintf("d/%d", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := resident()
	if before[3] == 0 || before[5] != 0 {
		t.Skipf("resident bytes %v: this file system does not let pages be dropped, or has none", before)
	}
	if _, err := Verify(context.Background(), m, f, VerifyOptions{}); err != nil {
		t.Fatal(err)
	}
	if after := resident(); after != before {
		t.Errorf("resident before %v, after %v", before, after)
	}
}
