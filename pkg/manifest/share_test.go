package manifest

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/storetest"
)

// unlisted is a store of which nobody may ask what is in it.
type unlisted struct {
	*storetest.Memory
	t *testing.T
}

func (u unlisted) List(context.Context, func(store.Info) error) error {
	u.t.Error("the store was listed")
	return nil
}

// TestVerifyShares: several processes hash every file once between them, one of them lists, and each finds what is wrong with its own
// files.
func TestVerifyShares(t *testing.T) {
	src := sample()
	m, err := pin(t, src, 1).open()
	if err != nil {
		t.Fatal(err)
	}
	verify := func(share Share) (Report, map[string]bool, error) {
		s, hashed := Source(src), map[string]bool{}
		if share.Index > 0 {
			s = unlisted{src, t}
		}
		r, err := Verify(t.Context(), m, s, VerifyOptions{Share: share, Each: func(index int64, e Entry, _ store.Info) {
			if share.Of > 1 && index%int64(share.Of) != int64(share.Index) {
				t.Errorf("%+v hashed entry %d", share, index)
			}
			hashed[e.Path] = true
		}})
		return r, hashed, err
	}
	for _, of := range []int{0, 1, 2, 3, 20} {
		var files, bytes int64
		all := map[string]int{}
		for index := range max(1, of) {
			r, hashed, err := verify(Share{index, of})
			if err != nil {
				t.Fatal(err)
			}
			files, bytes = files+r.Files, bytes+r.Bytes
			for path := range hashed {
				all[path]++
			}
		}
		if h := m.Header(); files != h.Count || bytes != h.Bytes || len(all) != int(h.Count) {
			t.Errorf("%d processes hashed %d files of %d bytes, %d different ones; expected %d of %d", of, files, bytes, len(all), h.Count, h.Bytes)
		}
	}
	for i, name := range sampleNames {
		if name == "empty" {
			continue
		}
		src = sample()
		f, err := src.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, info.Size)
		if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if len(b) == 0 {
			continue
		}
		b[0] ^= 1
		src.Put(name, b)
		for index := range 3 {
			_, _, err := verify(Share{index, 3})
			var mismatch *MismatchError
			if found := errors.As(err, &mismatch); found != (entryOf(t, m, name)%3 == int64(index)) {
				t.Errorf("file %d, %s: process %d found %v", i, name, index, err)
			}
		}
	}
	src = sample()
	src.Put("extra", []byte("x"))
	for index := range 2 {
		if _, _, err := verify(Share{index, 2}); (err != nil) != (index == 0) {
			t.Errorf("process %d: a file in addition: %v", index, err)
		}
	}
}

// entryOf is the index of a path in a manifest.
func entryOf(t *testing.T, m *Manifest, path string) int64 {
	t.Helper()
	index, found := int64(0), int64(-1)
	if err := m.Entries(t.Context(), func(e Entry) error {
		if e.Path == path {
			found = index
		}
		index++
		return nil
	}); err != nil || found < 0 {
		t.Fatalf("%s: %v", path, err)
	}
	return found
}
