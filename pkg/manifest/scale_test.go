package manifest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/store"
)

// many is a source of n made-up files of one byte, each that of its number, without memory for any of them.
type many struct {
	n   int
	tap func(i int)
}

func (m many) name(i int) string {
	return fmt.Sprintf("train/%04d/img_%08d_of_%08d.npz", i/1000, i, m.n)
}

func (m many) List(_ context.Context, yield func(store.Info) error) error {
	for i := range m.n {
		if m.tap != nil {
			m.tap(i)
		}
		if err := yield(store.Info{Path: m.name(i), Size: 1}); err != nil {
			return err
		}
	}
	return nil
}

type oneByte struct{ b byte }

func (m many) Open(name string) (store.File, error) {
	var dir, i int
	if _, err := fmt.Sscanf(name, "train/%d/img_%d", &dir, &i); err != nil {
		return nil, err
	}
	return oneByte{byte(i)}, nil
}

func (f oneByte) Info() (store.Info, error) { return store.Info{Size: 1}, nil }
func (f oneByte) Close() error              { return nil }
func (f oneByte) ReadAt(p []byte, off int64) (int, error) {
	if off > 0 || len(p) == 0 {
		return 0, io.EOF
	}
	p[0] = f.b
	if len(p) > 1 {
		return 1, io.EOF
	}
	return 1, nil
}

func (m many) save(t testing.TB, path string, lines int64) {
	t.Helper()
	f, err := Create(path, Meta{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	f.w.lines = lines
	for i := range m.n {
		if m.tap != nil {
			m.tap(i)
		}
		if err := f.Add(Entry{m.name(i), 1, blake3.Sum256([]byte{byte(i)})}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Commit(); err != nil {
		t.Fatal(err)
	}
}

// TestMemory finds that live memory while writing, verifying, comparing and proving does not grow with the number of files.
func TestMemory(t *testing.T) {
	small, large, lines := 30_000, 90_000, 5_000
	if os.Getenv("BENCHPIN_LONG") == "1" {
		// Both sizes are looked at in the middle of a frame that follows a whole one, when all buffers are there.
		small, large, lines = 420_000, 2_000_000, MaxFrameEntries
	}
	dir := t.TempDir()
	peaks := map[string]map[int]int64{"write": {}, "verify": {}, "diff": {}, "prove": {}}
	for _, n := range []int{small, large} {
		runtime.GC()
		var base, now runtime.MemStats
		runtime.ReadMemStats(&base)
		tap := func(what string) func(int) {
			return func(i int) {
				if i%(lines+lines/2) != lines { // at the end of frames and in their middle
					return
				}
				runtime.GC()
				runtime.ReadMemStats(&now)
				peaks[what][n] = max(peaks[what][n], int64(now.HeapAlloc)-int64(base.HeapAlloc))
			}
		}
		path := filepath.Join(dir, fmt.Sprint(n, ".json"))
		many{n, tap("write")}.save(t, path, int64(lines))
		m, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := Verify(context.Background(), m, many{n, tap("verify")}, VerifyOptions{Workers: 2}); err != nil || r.Files != int64(n) {
			t.Fatalf("%+v, %v", r, err)
		}
		seen := 0
		watch := tap("diff")
		if err := merge(context.Background(), m, m, func(_, _ *Entry) error { watch(seen); seen++; return nil }); err != nil {
			t.Fatal(err)
		}
		if s, err := Diff(context.Background(), m, m, nil); err != nil || s.Same.Files != int64(n) {
			t.Fatalf("%+v, %v", s, err)
		}
		// Nothing is called for each entry while proving: looked at is when a frame is read.
		frames := &tapped{ReaderAt: m.entries, each: func(frame int) {
			if frame > maxAhead { // all that are read ahead have their memory
				tap("prove")(lines)
			}
		}}
		again, err := OpenReaders(m.HeaderBytes(), frames, m.size)
		if err != nil {
			t.Fatal(err)
		}
		ps, err := again.ProveAll(context.Background(), []int64{0, int64(n / 2), int64(n - 1)})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range ps {
			if _, err := p.Verify(m.Root()); err != nil {
				t.Error(err)
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for what, p := range peaks {
		t.Logf("%s: %d bytes for %d files, %d bytes for %d", what, p[small], small, p[large], large)
		if p[small] <= 0 || p[large] > p[small]*3/2 {
			t.Errorf("%s: live memory grows from %d bytes for %d files to %d for %d", what, p[small], small, p[large], large)
		}
	}
}

// tapped calls each before every reading.
type tapped struct {
	io.ReaderAt
	mu   sync.Mutex // frames are read by several goroutines
	n    int
	each func(n int)
}

func (t *tapped) ReadAt(p []byte, off int64) (int, error) {
	t.mu.Lock()
	t.each(t.n)
	t.n++
	t.mu.Unlock()
	return t.ReaderAt.ReadAt(p, off)
}
