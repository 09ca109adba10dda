package manifest

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

// TestSubtrees: a tree that whole subtrees are added to is the tree of their leaves.
func TestSubtrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.IntRange(0, 5).Draw(t, "level")
		whole := rapid.IntRange(0, 9).Draw(t, "subtrees")
		rest := rapid.IntRange(0, 40).Draw(t, "leaves behind them")
		var byLeaf, bySubtree Tree
		number := byte(0)
		leaf := func() [32]byte { number++; return LeafHash([]byte{number}) }
		for range whole {
			var sub Tree
			for range 1 << level {
				h := leaf()
				byLeaf.AddHash(h)
				sub.AddHash(h)
			}
			bySubtree.addSubtree(level, sub.Root())
		}
		for range rest {
			h := leaf()
			byLeaf.AddHash(h)
			bySubtree.AddHash(h)
		}
		if byLeaf.Root() != bySubtree.Root() || byLeaf.Count() != bySubtree.Count() {
			t.Errorf("%d subtrees of level %d and %d leaves: roots differ", whole, level, rest)
		}
	})
}

// TestFramesInOrder: however many goroutines read frames, entries come in order, a stop is a stop, and damage of a later frame comes to light
// behind all entries of those before it.
func TestFramesInOrder(t *testing.T) {
	const files, lines = 1000, 30
	path := filepath.Join(t.TempDir(), "m.json")
	many{n: files}.save(t, path, lines)
	for _, procs := range []int{1, 2, 3, 16} {
		was := runtime.GOMAXPROCS(procs)
		m, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		next := 0
		err = m.Entries(context.Background(), func(e Entry) error {
			if want := (many{n: files}).name(next); e.Path != want {
				t.Fatalf("%d cores: entry %d is %s, expected %s", procs, next, e.Path, want)
			}
			next++
			return nil
		})
		if err != nil || next != files {
			t.Errorf("%d cores: %d entries of %d: %v", procs, next, files, err)
		}
		stop := errors.New("enough")
		next = 0
		err = m.Entries(context.Background(), func(Entry) error {
			if next++; next == 2*lines+7 {
				return stop
			}
			return nil
		})
		if err != stop || next != 2*lines+7 {
			t.Errorf("%d cores: stopped after %d entries: %v", procs, next, err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		err = m.Entries(ctx, func(Entry) error { cancel(stop); return nil })
		if !errors.Is(err, stop) {
			t.Errorf("%d cores: cancelled: %v", procs, err)
		}
		frames := m.header.Frames
		hurt := frames[len(frames)-2]
		next = 0
		damaged, err := OpenReaders(m.HeaderBytes(), flipped{m.entries, hurt.Offset + hurt.Size/2}, m.size)
		if err != nil {
			t.Fatal(err)
		}
		err = damaged.Entries(context.Background(), func(Entry) error { next++; return nil })
		if !errors.Is(err, ErrFrame) || next != (len(frames)-2)*lines {
			t.Errorf("%d cores: of damage in frame %d of %d: %d entries came before it: %v", procs, len(frames)-2, len(frames), next, err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		runtime.GOMAXPROCS(was)
	}
}

// flipped has one bit of a file the other way round.
type flipped struct {
	io.ReaderAt
	at int64
}

func (f flipped) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.ReaderAt.ReadAt(p, off)
	if f.at >= off && f.at < off+int64(n) {
		p[f.at-off] ^= 1
	}
	return n, err
}
