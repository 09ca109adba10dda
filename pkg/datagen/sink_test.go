package datagen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/zeebo/blake3"
	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/manifest/blake"
)

// memory is an out that can go back.
type memory struct{ bytes.Buffer }

func (m *memory) WriteFront(p []byte) error {
	copy(m.Bytes(), p)
	return nil
}

// TestSinkComesBack: the digest and the values of groups are those of the file, wherever it ends and however long its front is.
func TestSinkComesBack(t *testing.T) {
	w := (&generator{}).newWorker()
	noise := make([]byte, 4<<20)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(1, len(noise)),
			rapid.Map(rapid.IntRange(-2, 2), func(d int) int { return blake.GroupSize + d }),
			rapid.Map(rapid.IntRange(-2, 2), func(d int) int { return 2*blake.GroupSize + d })).Draw(rt, "size")
		front := rapid.IntRange(1, min(size, 5000)).Draw(rt, "front")
		piece := rapid.IntRange(1000, 1<<20).Draw(rt, "piece")
		file := bytes.Clone(noise[:size])
		w.hash.Reset()
		out := &memory{}
		s := &sink{ctx: context.Background(), w: w, out: out}
		if !s.Later(front) {
			rt.Fatal("refused")
		}
		dummy := bytes.Clone(file)
		clear(dummy[:front])
		for at := 0; at < size; at += piece {
			if _, err := s.Write(dummy[at:min(size, at+piece)]); err != nil {
				rt.Fatal(err)
			}
		}
		if err := s.Front(file[:front]); err != nil {
			rt.Fatal(err)
		}
		digest, groups := s.sum()
		if !bytes.Equal(out.Bytes(), file) {
			rt.Fatal("another file was written")
		}
		if want := blake3.Sum256(file); digest != want {
			rt.Fatalf("digest %x, want %x", digest, want)
		}
		if n := blake.Groups(int64(size)); n > 1 != (len(groups) > 0) || n > 1 && int64(len(groups)) != n {
			rt.Fatalf("%d values of groups, of %d bytes", len(groups), size)
		}
		for i, g := range groups {
			if g != blake.Group(file[i*blake.GroupSize:min(size, (i+1)*blake.GroupSize)], int64(i)) {
				rt.Fatalf("value of group %d", i)
			}
		}
	})
}

// TestSinkThatCannotComeBack says so, and changes nothing.
func TestSinkThatCannotComeBack(t *testing.T) {
	w := (&generator{}).newWorker()
	s := &sink{ctx: context.Background(), w: w, out: &bytes.Buffer{}}
	if s.Later(10) {
		t.Error("a plain writer goes back")
	}
	s = &sink{ctx: context.Background(), w: w, out: io.Discard}
	if s.Later(0) || s.Later(blake.GroupSize+1) {
		t.Error("a front of no bytes, or more than a group")
	}
	if !s.Later(10) {
		t.Fatal("refused")
	}
	if _, err := s.Write(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if s.Later(3) {
		t.Error("Later after a Write")
	}
	if err := s.Front(make([]byte, 10)); err == nil {
		t.Error("a front longer than the file")
	}
}

// TestComparerComesBack finds a difference in the front, which is compared last.
func TestComparerComesBack(t *testing.T) {
	file := []byte("0123456789abcdef")
	for _, bad := range []int{-1, 0, 3, 4, 15} {
		c := &comparer{file: bytes.NewReader(file), path: "x", buf: make([]byte, 5)}
		s := &sink{ctx: context.Background(), w: (&generator{}).newWorker(), out: c}
		if !s.Later(4) {
			t.Fatal("refused")
		}
		made := bytes.Clone(file)
		if bad >= 0 {
			made[bad] ^= 1
		}
		written := append([]byte("...."), made[4:]...)
		_, err := s.Write(written[:2])
		if err == nil {
			_, err = s.Write(written[2:])
		}
		if err == nil {
			err = s.Front(made[:4])
		}
		if (err != nil) != (bad >= 0) || err != nil && !errors.Is(err, ErrOccupied) {
			t.Errorf("byte %d: %v", bad, err)
		}
	}
}

// TestLargeArchives: an npz file above the buffer is written once, its checksum last, and has the bytes that writing it front to back gives;
// a folder of such files is told from another by every byte, those of the front included.
func TestLargeArchives(t *testing.T) {
	r := recipe(t, 1, "format: npz", "num_files_train: 3", "record_length_bytes: 2300000", "record_length_bytes_stdev: 900000")
	dir := t.TempDir()
	h := generate(t, folder(t, dir), r, Options{})
	if again := generate(t, folder(t, dir), r, Options{}); again.Root != h.Root {
		t.Errorf("compared: root %s, want %s", again.Root, h.Root)
	}
	large := 0
	for i := range r.Files() {
		f := r.File(i)
		var want bytes.Buffer
		if err := r.format.Write(&want, f.Layout, r.content(f), make([]byte, pieceBytes)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s differs", f.Path)
		}
		if digest, _, err := r.Digest(t.Context(), i); err != nil || digest != blake3.Sum256(got) {
			t.Errorf("%s: digest %x, %v", f.Path, digest, err)
		}
		if len(got) > pieceBytes {
			large++
		}
	}
	if large < 2 {
		t.Fatalf("%d files are larger than the buffer", large)
	}
	path := filepath.Join(dir, r.File(0).Path)
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, 14, 30, 200, len(got) / 2, len(got) - 1} {
		got[at] ^= 4
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Generate(t.Context(), folder(t, dir), r, Options{}); !errors.Is(err, ErrOccupied) {
			t.Errorf("byte %d was changed: %v", at, err)
		}
		got[at] ^= 4
	}
}
