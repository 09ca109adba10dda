package storetest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/benchpin/benchpin/pkg/store"
)

// Large is a file with holes, larger than 2 and 4 GiB by a part of a block, which holds a pattern across these borders, and at its end.
type Large struct {
	size   int64
	places []int64
	mark   []byte
}

// MakeLarge makes the file in the file system, where it takes next to no room. The error says why there can be none.
func MakeLarge(path string) (*Large, error) {
	l := &Large{size: 1<<32 + 1<<20 + 777, mark: Pattern(3, 1000)}
	l.places = []int64{0, 1<<31 - 500, 1<<32 - 500, l.size - int64(len(l.mark))}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	err = f.Truncate(l.size)
	for _, off := range l.places {
		if err == nil {
			_, err = f.WriteAt(l.mark, off)
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("large file %s: %w", path, err)
	}
	return l, nil
}

// Run checks that a store has the file with its size, and the right bytes wherever they are asked for.
func (l *Large) Run(t *testing.T, s store.Store, name string) {
	t.Helper()
	if info, err := s.Stat(name); err != nil || info.Size != l.size {
		t.Errorf("stat: expected %d bytes, found %+v, %v", l.size, info, err)
	}
	f, err := s.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := store.AlignedBuffer(1 << 20)
	for _, off := range l.places {
		got := make([]byte, len(l.mark))
		if n, err := f.ReadAt(got, off); n != len(got) || err != nil && err != io.EOF || !bytes.Equal(got, l.mark) {
			t.Errorf("at byte %d: %d bytes, %v, or other ones", off, n, err)
		}
		from := off &^ (1<<20 - 1)
		n, err := f.ReadAt(block, from)
		want := min(int64(len(block)), l.size-from)
		if int64(n) != want || err != nil && err != io.EOF || !bytes.Equal(block[:n], l.piece(from, n)) {
			t.Errorf("the block at %d: %d bytes of %d, %v, or other ones", from, n, want, err)
		}
	}
	for _, off := range []int64{l.size, l.size + 1, l.size + 1<<20} {
		if n, err := f.ReadAt(block, off); n != 0 || err != io.EOF {
			t.Errorf("at byte %d, behind the end: %d bytes, %v", off, n, err)
		}
	}
}

// Whole reads the file front to back and compares every byte.
func (l *Large) Whole(t *testing.T, s store.Store, name string) {
	t.Helper()
	f, err := s.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	buf := store.AlignedBuffer(1 << 20)
	zero := make([]byte, len(buf))
	for off := int64(0); off < l.size; {
		n, err := f.ReadAt(buf, off)
		if n == 0 || err != nil && err != io.EOF {
			t.Fatalf("at byte %d of %d: %d bytes, %v", off, l.size, n, err)
		}
		want := zero[:n]
		if slices.ContainsFunc(l.places, func(p int64) bool { return p < off+int64(n) && p+int64(len(l.mark)) > off }) {
			want = l.piece(off, n)
		}
		if !bytes.Equal(buf[:n], want) {
			t.Fatalf("other bytes between %d and %d", off, off+int64(n))
		}
		off += int64(n)
	}
}

// piece is what the file has at off.
func (l *Large) piece(off int64, n int) []byte {
	b := make([]byte, n)
	for _, p := range l.places {
		for i, c := range l.mark {
			if at := p + int64(i) - off; at >= 0 && at < int64(n) {
				b[at] = c
			}
		}
	}
	return b
}
