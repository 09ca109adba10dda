package manifest

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/store"
)

var paths = rapid.StringMatching(`([ab"\\\-. é日]{1,4}/){0,3}[a-c"\\<>&]{1,5}`).Filter(func(s string) bool {
	return store.CheckName(s) == nil
})

func drawEntries(t *rapid.T) []Entry {
	ps := rapid.SliceOfNDistinct(paths, 0, 40, rapid.ID[string]).Draw(t, "paths")
	slices.Sort(ps)
	es := make([]Entry, len(ps))
	for i, p := range ps {
		es[i] = Entry{Path: p, Size: rapid.Int64Range(0, MaxNumber).Draw(t, "size")}
		copy(es[i].Digest[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "digest"))
	}
	return es
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		es := drawEntries(rt)
		meta := Meta{}
		if rapid.Bool().Draw(rt, "meta") && len(es) > 0 {
			meta = someMeta
		}
		p := write(t, rapid.Int64Range(1, 50).Draw(rt, "lines"), meta, es...)
		m := mustOpen(t, p)
		got, err := m.list()
		if err != nil || (len(es) > 0 && !reflect.DeepEqual(got, es)) || len(got) != len(es) {
			rt.Fatalf("read %v, %v", got, err)
		}
		var leaves [][]byte
		for _, e := range es {
			leaves = append(leaves, e.AppendLine(nil))
		}
		if m.Root() != rootOf(leaves) {
			rt.Fatal("root differs from the recursive tree over the lines")
		}
		if h := m.Header(); !reflect.DeepEqual(h.Layout, meta.Layout) || !bytes.Equal(h.Recipe, meta.Recipe) {
			rt.Fatalf("layout or recipe differ: %+v", h)
		}
	})
}

// TestRootIgnoresFrames: how entries are cut and compressed does not matter to the root.
func TestRootIgnoresFrames(t *testing.T) {
	es := someEntries(100)
	want := mustOpen(t, write(t, 100, someMeta, es...)).Root()
	for _, n := range []int64{1, 7, 99, 1000} {
		if got := mustOpen(t, write(t, n, Meta{}, es...)).Root(); got != want {
			t.Errorf("%d lines a frame: another root", n)
		}
	}
	es[50].Size++
	if mustOpen(t, write(t, 100, someMeta, es...)).Root() == want {
		t.Error("another size, same root")
	}
}

// TestFullFrames goes over the real limits: lines in a frame, and bytes in a frame.
func TestFullFrames(t *testing.T) {
	p := write(t, MaxFrameEntries, Meta{}, someEntries(MaxFrameEntries+1)...)
	h := mustOpen(t, p).Header()
	if len(h.Frames) != 2 || h.Frames[0].Count != MaxFrameEntries || h.Frames[1].Count != 1 {
		t.Errorf("%d frames", len(h.Frames))
	}
	if es, err := p.read(); err != nil || len(es) != MaxFrameEntries+1 {
		t.Errorf("%d entries, %v", len(es), err)
	}
	long := strings.Repeat(`"`, 4000)
	var es []Entry
	for i := range 2200 {
		es = append(es, entry(long+string(rune('a'+i/26/26%26))+string(rune('a'+i/26%26))+string(rune('a'+i%26)), 1))
	}
	slices.SortFunc(es, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	es = slices.Compact(es)
	p = write(t, MaxFrameEntries, Meta{}, es...)
	h = mustOpen(t, p).Header()
	if len(h.Frames) < 2 {
		t.Errorf("%d frames for %d bytes of lines", len(h.Frames), h.Frames[0].PlainSize)
	}
	if got, err := p.read(); err != nil || len(got) != len(es) {
		t.Errorf("%d entries, expected %d, %v", len(got), len(es), err)
	}
}

func TestWriterRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		class Class
		es    []Entry
	}{
		{"descending", ErrOrder, []Entry{entry("b", 1), entry("a", 1)}},
		{"twice", ErrOrder, []Entry{entry("a", 1), entry("a", 1)}},
		{"folder order", ErrOrder, []Entry{entry("a/b", 1), entry("a-b", 1)}},
		{"negative size", ErrField, []Entry{entry("a", -1)}},
		{"size beyond 2^53", ErrField, []Entry{entry("a", MaxNumber+1)}},
		{"dot dot", ErrPath, []Entry{entry("a/../b", 1)}},
		{"absolute", ErrPath, []Entry{entry("/a", 1)}},
		{"control character", ErrPath, []Entry{entry("a\x01", 1)}},
		{"not UTF-8", ErrPath, []Entry{entry("a\xff", 1)}},
	} {
		w := NewWriter(&bytes.Buffer{}, Meta{})
		var err error
		for _, e := range c.es {
			err = errors.Join(err, w.Add(e))
		}
		if !errors.Is(err, c.class) {
			t.Errorf("%s: %v, expected class %s", c.name, err, c.class)
		}
		if _, err := w.Close(); !errors.Is(err, c.class) {
			t.Errorf("%s: Close after the error: %v", c.name, err)
		}
	}
	w := NewWriter(&bytes.Buffer{}, Meta{})
	w.h.Bytes = math.MaxInt64 - 5
	if err := w.Add(entry("a", 6)); !errors.Is(err, ErrLimit) {
		t.Errorf("sum of sizes beyond 2^63: %v", err)
	}
	w = NewWriter(&bytes.Buffer{}, Meta{Layout: &Layout{Format: "npz", SamplesPerFile: 1, DType: "uint8", Train: 1}})
	if _, err := w.Close(); !errors.Is(err, ErrField) {
		t.Errorf("more training files than files: %v", err)
	}
	w = NewWriter(&bytes.Buffer{}, Meta{})
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Add(entry("a", 1)); err == nil {
		t.Error("Add after Close was accepted")
	}
	if _, err := w.Close(); err == nil {
		t.Error("a second Close was accepted")
	}
	broken := NewWriter(failing{}, Meta{})
	_ = broken.Add(entry("a", 1))
	if _, err := broken.Close(); !errors.Is(err, errDisk) {
		t.Errorf("a failing file: %v", err)
	}
}

var errDisk = errors.New("disk on fire")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errDisk }

// TestBitFlips flips every bit of a small header and of its entries, and random bits of a larger pair: none goes unseen.
func TestBitFlips(t *testing.T) {
	small := write(t, 2, someMeta, someEntries(5)...)
	large := write(t, 3000, someMeta, someEntries(10_000)...)
	if _, err := small.read(); err != nil {
		t.Fatal(err)
	}
	flips := 0
	flip := func(p pair, i int, bit byte) {
		t.Helper()
		flips++
		part := p.header
		if i >= len(part) {
			i, part = i-len(part), p.entries
		}
		part[i] ^= bit
		if es, err := p.read(); err == nil {
			t.Errorf("bit %d of byte %d is flipped (of %d header bytes: %v), read %d entries without an error",
				bit, i, len(p.header), &part[0] == &p.header[0], len(es))
		}
		part[i] ^= bit
	}
	for i := range len(small.header) + len(small.entries) {
		for b := range 8 {
			flip(small, i, 1<<b)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		flip(large, len(large.header)+r.IntN(len(large.entries)), 1<<r.IntN(8))
	}
	for range 1000 {
		flip(large, r.IntN(len(large.header)), 1<<r.IntN(8))
	}
	if flips < 2000 {
		t.Errorf("%d flips only", flips)
	}
	t.Logf("%d flips", flips)
	if _, err := large.read(); err != nil {
		t.Errorf("the unharmed pair: %v", err)
	}
}

// TestTruncated cuts, extends and mixes the two files.
func TestTruncated(t *testing.T) {
	p, q := write(t, 2, someMeta, someEntries(5)...), write(t, 2, someMeta, someEntries(6)...)
	for n := range len(p.entries) {
		if _, err := (pair{p.header, p.entries[:n]}).read(); err == nil {
			t.Fatalf("entries cut to %d bytes were read", n)
		}
	}
	for n := range len(p.header) {
		if _, err := (pair{p.header[:n], p.entries}).read(); err == nil {
			t.Fatalf("a header cut to %d bytes was read", n)
		}
	}
	for name, bad := range map[string]pair{
		"entries and more": {p.header, append(bytes.Clone(p.entries), 0)}, "header and more": {append(bytes.Clone(p.header), '\n'), p.entries},
		"header of another": {q.header, p.entries}, "nothing": {},
	} {
		if _, err := bad.read(); err == nil {
			t.Errorf("%s: read without an error", name)
		}
	}
	m, err := OpenReaders(p.header, bytes.NewReader(p.entries[:10]), int64(len(p.entries)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.list(); err == nil || !strings.Contains(err.Error(), "frame 0") {
		t.Errorf("a file that is shorter than said: %v", err)
	}
}

func TestEntriesStops(t *testing.T) {
	m := mustOpen(t, write(t, 2, Meta{}, someEntries(5)...))
	stop := errors.New("enough")
	n := 0
	if err := m.Entries(context.Background(), func(Entry) error { n++; return stop }); err != stop || n != 1 {
		t.Errorf("%d entries, %v", n, err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	n = 0
	err := m.Entries(ctx, func(Entry) error { n++; cancel(stop); return nil })
	if !errors.Is(err, stop) || n != 2 {
		t.Errorf("cancelled in the first frame of 2: %d entries, %v", n, err)
	}
}

// TestZstdcat has the real zstd read the entries.
func TestZstdcat(t *testing.T) {
	needPeer(t, "zstd")
	path := filepath.Join(t.TempDir(), "m.json")
	f, err := Create(path, Meta{})
	if err != nil {
		t.Fatal(err)
	}
	f.w.lines = 30
	var want []byte
	for _, e := range someEntries(100) {
		if err := f.Add(e); err != nil {
			t.Fatal(err)
		}
		want = append(e.AppendLine(want), '\n')
	}
	if _, err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	got, err := exec.Command("zstd", "-dc", EntriesPath(path)).Output()
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("zstd reads %d bytes, expected %d, %v", len(got), len(want), err)
	}
}
