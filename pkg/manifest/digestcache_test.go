package manifest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/storetest"
)

// aged is a store whose files were changed long ago, as far as it says, and that counts what is opened.
type aged struct {
	*storetest.Memory
	mu     *sync.Mutex
	times  map[string]int64
	opened *atomic.Int64
}

func newAged(m *storetest.Memory) aged {
	return aged{m, &sync.Mutex{}, map[string]int64{}, &atomic.Int64{}}
}

func (a aged) age(i store.Info) store.Info {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok := a.times[i.Path]
	if !ok {
		t = time.Now().Add(-time.Hour).Unix()
		a.times[i.Path] = t
	}
	i.ModTime, i.ChangeTime, i.Device = t*1e9, t*1e9, 7
	return i
}

func (a aged) List(ctx context.Context, yield func(store.Info) error) error {
	return a.Memory.List(ctx, func(i store.Info) error { return yield(a.age(i)) })
}

func (a aged) Open(name string) (store.File, error) {
	a.opened.Add(1)
	f, err := a.Memory.Open(name)
	return agedFile{f, a}, err
}

type agedFile struct {
	store.File
	a aged
}

func (f agedFile) Info() (store.Info, error) {
	i, err := f.File.Info()
	return f.a.age(i), err
}

// build pins a store with a cache and returns what was pinned and how many files were read.
func (a aged) build(t testing.TB, path string) (pair, []byte, int64, *DigestCache) {
	t.Helper()
	c, err := OpenDigestCache(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Abort()
	manifest := filepath.Join(t.TempDir(), "m.json")
	f, err := Create(manifest, Meta{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	before := a.opened.Load()
	if err := Build(context.Background(), a, f, BuildOptions{Cache: c, Workers: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(); err != nil {
		t.Fatal(err)
	}
	var p pair
	var groups []byte
	for name, to := range map[string]*[]byte{manifest: &p.header, EntriesPath(manifest): &p.entries, GroupsPath(manifest): &groups} {
		if *to, err = os.ReadFile(name); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return p, groups, a.opened.Load() - before, c
}

func TestDigestCache(t *testing.T) {
	a := newAged(large())
	path := filepath.Join(t.TempDir(), "made", "cache.bin")
	first, groups, read, c := a.build(t, path)
	if hits, files := c.Used(); read != 4 || hits != 0 || files != 4 || c.Notice() != nil {
		t.Errorf("first: %d read, %d of %d from the cache, %v", read, hits, files, c.Notice())
	}
	for range 2 {
		again, g, read, c := a.build(t, path)
		if hits, files := c.Used(); read != 0 || hits != 4 || files != 4 || c.Notice() != nil {
			t.Errorf("again: %d read, %d of %d from the cache, %v", read, hits, files, c.Notice())
		}
		if !bytes.Equal(again.header, first.header) || !bytes.Equal(again.entries, first.entries) || !bytes.Equal(g, groups) {
			t.Error("the manifest from the cache is another")
		}
	}
	// Every part of the identity counts.
	a.Put("c/d", patterned(3<<20, 8)) // another inode
	a.times["a"]--
	a.Put("f", []byte("new"))
	a.Remove("e")
	again, _, read, c := a.build(t, path)
	if hits, files := c.Used(); read != 3 || hits != 1 || files != 4 {
		t.Errorf("after changes: %d read, %d of %d from the cache", read, hits, files)
	}
	es, err := again.read()
	if err != nil || len(es) != 4 || es[2].Digest != blake3.Sum256(storetest.Read(t, a.Memory, "c/d")) {
		t.Errorf("after changes: %v, %v", es, err)
	}
	if got := files(t, filepath.Dir(path)); !slices.Equal(got, []string{"cache.bin"}) {
		t.Errorf("files %q", got)
	}
}

// TestDigestCacheRacy has files that changed shortly before they were hashed: another change might hide in the same step of the clock.
func TestDigestCacheRacy(t *testing.T) {
	a := newAged(large())
	now := time.Now().Unix()
	a.times["a"], a.times["b"], a.times["c/d"] = now, now-1, now+100
	path := filepath.Join(t.TempDir(), "cache.bin")
	a.build(t, path)
	if _, _, read, c := a.build(t, path); read != 3 {
		hits, _ := c.Used()
		t.Errorf("expected three files read again, found %d, %d from the cache", read, hits)
	}
}

// TestDigestCacheDamage flips every bit of a small cache and cuts it everywhere: the manifest is the right one whatever it holds.
func TestDigestCacheDamage(t *testing.T) {
	m := storetest.NewMemory()
	for i := range 5 {
		m.Put(fmt.Sprint("f", i), patterned(10+i, byte(i)))
	}
	m.Put("g", patterned(2<<20+5, 7))
	a := newAged(m)
	path := filepath.Join(t.TempDir(), "cache.bin")
	want, groups, _, _ := a.build(t, path)
	cache, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		got, g, _, c := a.build(t, path)
		if !bytes.Equal(got.header, want.header) || !bytes.Equal(got.entries, want.entries) || !bytes.Equal(g, groups) {
			t.Fatalf("%s: another manifest", what)
		}
		if c.Notice() == nil && !bytes.Equal(b[:min(len(b), len(cache)-36)], cache[:len(cache)-36]) { // nothing is asked of the empty block
			t.Errorf("%s: nobody was told", what)
		}
		if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, cache) {
			t.Fatalf("%s: the cache was not made anew: %v", what, err)
		}
	}
	for i := range cache {
		if i > 60 && i%4 != 0 { // the magic and the head of the block, and every fourth byte
			continue
		}
		bad := bytes.Clone(cache)
		bad[i] ^= 1 << (i / 4 % 8)
		check(fmt.Sprintf("byte %d", i), bad)
		if i%28 == 0 {
			check(fmt.Sprintf("cut at %d", i), cache[:i])
		}
	}
	check("empty", nil)
	check("as it was", cache)
}

// FuzzDigestCache: bytes that claim to be records are read without harm, and what is accepted is written again as the same bytes.
func FuzzDigestCache(f *testing.F) {
	r := cacheRecord{info: store.Info{Path: "a/b", Size: 12, ModTime: 5, ChangeTime: -6, Inode: 7, Device: 8}, digest: [32]byte{9}}
	f.Add(r.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, rest, err := parseRecord(b)
		if err != nil {
			return
		}
		again, more, err := parseRecord(r.append(nil))
		if err != nil || len(more) != 0 || again.info != r.info || again.digest != r.digest || !slices.Equal(again.groups, r.groups) || len(rest) > len(b) {
			t.Fatalf("%x: read %+v, written and read %+v, %v", b, r, again, err)
		}
	})
}

// BenchmarkDigestCache pins a hundred thousand files that did not change.
func BenchmarkDigestCache(b *testing.B) {
	path := filepath.Join(b.TempDir(), "cache.bin")
	m := storetest.NewMemory()
	for i := range 100_000 {
		m.Put(fmt.Sprintf("%06d", i), []byte{byte(i)})
	}
	a := newAged(m)
	a.build(b, path)
	for b.Loop() {
		c, err := OpenDigestCache(path)
		if err != nil {
			b.Fatal(err)
		}
		if err := Build(context.Background(), a, NewWriter(io.Discard, Meta{}), BuildOptions{Cache: c}); err != nil {
			b.Fatal(err)
		}
		if err := c.Commit(); err != nil {
			b.Fatal(err)
		}
	}
}
