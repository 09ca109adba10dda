package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zeebo/blake3"
	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/manifest/blake"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/storetest"
)

// proving is a data set with its manifest and its group digests.
type proving struct {
	src    *storetest.Memory
	m      *Manifest
	groups *Groups
}

func newProving(t testing.TB, src *storetest.Memory) proving {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.json")
	pinned(t, src, path)
	m := opened(t, path)
	g, err := OpenGroupsIfAny(path, m)
	if err != nil {
		t.Fatal(err)
	}
	if g != nil {
		t.Cleanup(func() { _ = g.Close() })
	}
	return proving{src, m, g}
}

func (p proving) prove(t testing.TB, path string, from, to int64) *FileProof {
	t.Helper()
	proof, err := p.m.ProveFile(context.Background(), path, ProveOptions{Source: p.src, From: from, To: to, Groups: p.groups})
	if err != nil {
		t.Fatal(err)
	}
	return proof
}

func encoded(t testing.TB, p *FileProof) []byte {
	t.Helper()
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// accept reads a proof and holds it to a root, and the file at hand to it.
func accept(b []byte, root [32]byte, f io.ReaderAt) (Entry, error) {
	p, err := ParseFileProof(b)
	if err != nil {
		return Entry{}, err
	}
	e, err := p.Check(root)
	if err == nil && f != nil && p.Range != nil {
		err = p.Range.CheckRange(e, f)
	}
	return e, err
}

// only gives the bytes of a range, at their place, and nothing else.
type only struct {
	data     []byte
	from, to int64
}

func (o only) ReadAt(p []byte, off int64) (int, error) {
	if off < o.from || off+int64(len(p)) > o.to {
		return 0, fmt.Errorf("bytes %d to %d were asked for, the range is %d to %d", off, off+int64(len(p)), o.from, o.to)
	}
	return copy(p, o.data[off:]), nil
}

func TestProveFileProperties(t *testing.T) {
	src := storetest.NewMemory()
	content := map[string][]byte{}
	for i, n := range []int{0, 1, 700, 1024, 1025, 100_000, 1<<20 - 1, 1 << 20, 1<<20 + 1, 2 << 20, 5<<20 + 77} {
		name := fmt.Sprintf("f%02d", i)
		content[name] = patterned(n, byte(i))
		src.Put(name, content[name])
	}
	p := newProving(t, src)
	root := p.m.Root()
	rapid.Check(t, func(rt *rapid.T) {
		name := fmt.Sprintf("f%02d", rapid.IntRange(0, len(content)-1).Draw(rt, "file"))
		data := content[name]
		var from, to int
		if len(data) > 0 && rapid.IntRange(0, 9).Draw(rt, "whole") > 0 {
			near := rapid.OneOf(rapid.IntRange(0, len(data)), rapid.Map(rapid.IntRange(0, len(data)/1024), func(i int) int { return min(len(data), 1024*i) }),
				rapid.Map(rapid.IntRange(0, len(data)>>20), func(i int) int { return min(len(data), i<<20) }))
			from, to = near.Draw(rt, "from"), near.Draw(rt, "to")
			if from > to {
				from, to = to, from
			}
			if from == to {
				return
			}
		}
		options := ProveOptions{Source: p.src, From: int64(from), To: int64(to)}
		if rapid.Bool().Draw(rt, "group digests") {
			options.Groups = p.groups
		}
		proof, err := p.m.ProveFile(context.Background(), name, options)
		if err != nil {
			rt.Fatal(err)
		}
		b := encoded(t, proof)
		if len(b) > 12_000 {
			rt.Fatalf("a proof of %d bytes", len(b))
		}
		if whole := to == 0 || from == 0 && to == len(data); whole != (proof.Range == nil) {
			rt.Fatalf("%d to %d of %d: range %+v", from, to, len(data), proof.Range)
		}
		e, err := accept(b, root, only{data, int64(from), int64(to)})
		if err != nil || e != (Entry{name, int64(len(data)), blake3.Sum256(data)}) {
			rt.Fatalf("%d to %d of %d: %+v, %v", from, to, len(data), e, err)
		}
		if proof.Range == nil {
			return
		}
		// A bit of the range in hand that differs is found, and its place named.
		at := rapid.IntRange(from, to-1).Draw(rt, "flip")
		bad := bytes.Clone(data)
		bad[at] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
		if _, err := accept(b, root, only{bad, int64(from), int64(to)}); !errors.Is(err, ErrProof) || !strings.Contains(err.Error(), name) {
			rt.Fatalf("byte %d of range %d to %d flipped: %v", at, from, to, err)
		}
		if _, err := accept(b, root, bytes.NewReader(data[:at])); !errors.Is(err, ErrProof) {
			rt.Fatalf("file that ends at byte %d of range %d to %d: %v", at, from, to, err)
		}
	})
}

// TestProveFileReadsItsGroups counts what is read for a range of a large file.
func TestProveFileReadsItsGroups(t *testing.T) {
	p := newProving(t, large())
	var least, most atomic.Int64
	least.Store(1 << 40)
	watch := watched{p.src, func(off, n int64) {
		least.Store(min(least.Load(), off))
		most.Store(max(most.Load(), off+n))
	}}
	_, err := p.m.ProveFile(context.Background(), "c/d", ProveOptions{Source: watch, From: 1<<20 + 5, To: 1<<20 + 50, Groups: p.groups})
	if err != nil || least.Load() != 1<<20 || most.Load() > 2<<20 {
		t.Errorf("bytes %d to %d were read, expected group 1, %v", least.Load(), most.Load(), err)
	}
}

type watched struct {
	*storetest.Memory
	read func(off, n int64)
}

func (w watched) Open(name string) (store.File, error) {
	f, err := w.Memory.Open(name)
	return watchedFile{f, w.read}, err
}

type watchedFile struct {
	store.File
	read func(off, n int64)
}

func (w watchedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := w.File.ReadAt(p, off)
	w.read(off, int64(n))
	return n, err
}

// TestProveFileRefuses has bytes that are not those of the manifest, in and outside the range.
func TestProveFileRefuses(t *testing.T) {
	p := newProving(t, large())
	ctx := context.Background()
	var mismatch *MismatchError
	bad := storetest.FlipBit(p.src, "c/d", 8*(1<<20+100))
	for name, o := range map[string]ProveOptions{
		"whole":           {Source: bad},
		"range":           {Source: bad, From: 1 << 20, To: 1<<20 + 10, Groups: p.groups},
		"no digests":      {Source: bad, From: 5, To: 10},
		"in another part": {Source: bad, From: 5, To: 1<<20 + 1, Groups: p.groups},
	} {
		if _, err := p.m.ProveFile(ctx, "c/d", o); !errors.As(err, &mismatch) || mismatch.Path != "c/d" || mismatch.Kind != Changed {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What the range does not touch is not looked at.
	if _, err := p.m.ProveFile(ctx, "c/d", ProveOptions{Source: bad, From: 5, To: 10, Groups: p.groups}); err != nil {
		t.Errorf("another group is damaged: %v", err)
	}
	if _, err := p.m.ProveFile(ctx, "c/d", ProveOptions{}); err != nil {
		t.Errorf("from the manifest alone: %v", err)
	}
	if _, err := p.m.ProveFile(ctx, "c/d", ProveOptions{From: 1, To: 2}); err == nil {
		t.Error("a range without the data set was proven")
	}
	if _, err := p.m.ProveFile(ctx, "none", ProveOptions{}); !errors.Is(err, ErrNoEntry) {
		t.Errorf("no entry: %v", err)
	}
	if _, err := p.m.ProveFile(ctx, "a", ProveOptions{Source: p.src, From: 5, To: 1 << 40}); !errors.Is(err, blake.ErrRange) {
		t.Errorf("beyond the end: %v", err)
	}
	p.src.Put("a", patterned(2<<20+4, 1))
	for _, o := range []ProveOptions{{Source: p.src}, {Source: p.src, From: 5, To: 10, Groups: p.groups}} {
		if _, err := p.m.ProveFile(ctx, "a", o); !errors.As(err, &mismatch) || mismatch.Kind != Changed {
			t.Errorf("shorter: %v", err)
		}
	}
	p.src.Remove("a")
	for _, o := range []ProveOptions{{Source: p.src}, {Source: p.src, From: 5, To: 10, Groups: p.groups}} {
		if _, err := p.m.ProveFile(ctx, "a", o); !errors.As(err, &mismatch) || mismatch.Kind != Missing {
			t.Errorf("missing: %v", err)
		}
	}
}

// resealed ends the bytes of a proof with the digest of what they say.
func resealed(b []byte) []byte {
	before, _, _ := bytes.Cut(b, []byte(`,"proof_digest":"`))
	return append(bytes.Clone(before), `,"proof_digest":"`+string(FormatDigest(blake3.Sum256(before)))+"\"}\n"...)
}

// TestProofAttacks: no proof that was altered is accepted, whether or not its own digest was made to suit.
func TestProofAttacks(t *testing.T) {
	p := newProving(t, large())
	root := p.m.Root()
	data := storetest.Read(t, p.src, "c/d")
	file := bytes.NewReader(data)
	good := p.prove(t, "c/d", 1<<20+100, 2<<20+5000)
	b := encoded(t, good)
	refused := func(what string, b []byte) {
		t.Helper()
		_, err := accept(b, root, nil)
		if c := Class(""); err == nil || !errors.As(err, &c) && !errors.Is(err, ErrProof) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, proof := range [][]byte{b, encoded(t, p.prove(t, "b", 0, 0)), encoded(t, p.prove(t, "b", 10, 20))} {
		if _, err := accept(proof, root, nil); err != nil {
			t.Fatal(err)
		}
		sealed := bytes.Index(proof, []byte(`,"proof_digest":"`))
		// Two things can be altered by whoever computes the digest anew, and the proof is still true: the number of entries, which the
		// root does not say (see Proof.Verify), and a range within the same chunks, since all of their bytes are known.
		free := func(i int) bool {
			for _, key := range []string{`"count":`, `"index":`, `"from":`, `"to":`} {
				if at := bytes.Index(proof, []byte(key)) + len(key); i >= at && i < at+bytes.IndexAny(proof[at:], ",}") {
					return true
				}
			}
			return false
		}
		for i := range proof {
			for _, flip := range []byte{0x01, 0x02, 0x10, 0x20, 0x80} {
				bad := bytes.Clone(proof)
				bad[i] ^= flip
				refused(fmt.Sprintf("byte %d of %q", i, proof[max(0, i-10):min(len(proof), i+10)]), bad)
				if i >= sealed {
					continue
				}
				if bad = resealed(bad); !free(i) {
					refused(fmt.Sprintf("byte %d of %q, resealed", i, proof[max(0, i-10):min(len(proof), i+10)]), bad)
				} else if e, err := accept(bad, root, nil); err == nil {
					if _, err := accept(bad, root, bytes.NewReader(storetest.Read(t, p.src, e.Path))); err != nil {
						t.Errorf("byte %d of %q, resealed, was accepted, and is not true: %v", i, proof[max(0, i-10):min(len(proof), i+10)], err)
					}
				}
			}
		}
		for n := range proof {
			refused(fmt.Sprintf("cut at %d", n), proof[:n])
		}
		refused("longer", append(bytes.Clone(proof), '\n'))
		refused("twice", append(bytes.Clone(proof), proof...))
	}
	if _, err := accept(b, [32]byte{1}, nil); !errors.Is(err, ErrProof) {
		t.Errorf("another root: %v", err)
	}
	altered := func(f func(p *FileProof)) *FileProof {
		again, err := ParseFileProof(b)
		if err != nil {
			t.Fatal(err)
		}
		f(again)
		return again
	}
	other := p.prove(t, "a", 1<<20+100, 2<<20)
	for what, f := range map[string]func(p *FileProof){
		"another root":         func(p *FileProof) { p.Root[3] ^= 1 },
		"shifted by a chunk":   func(p *FileProof) { p.Range.From += 1024; p.Range.To += 1024 },
		"shifted by a group":   func(p *FileProof) { p.Range.From -= GroupSize; p.Range.To -= GroupSize },
		"swapped values":       func(p *FileProof) { v := p.Range.Values; v[0], v[1] = v[1], v[0] },
		"swapped last values":  func(p *FileProof) { v := p.Range.Values; n := len(v); v[n-1], v[n-2] = v[n-2], v[n-1] },
		"swapped edges":        func(p *FileProof) { p.Range.First, p.Range.Last = p.Range.Last, p.Range.First },
		"one value less":       func(p *FileProof) { p.Range.Values = p.Range.Values[1:] },
		"one value more":       func(p *FileProof) { p.Range.Values = append(p.Range.Values, [32]byte{}) },
		"another file's entry": func(p *FileProof) { p.Proof = other.Proof },
		"another file's line":  func(p *FileProof) { p.Line = other.Line },
		"another file's range": func(p *FileProof) { p.Range = other.Range },
		"another index":        func(p *FileProof) { p.Index ^= 1 },
		"no path":              func(p *FileProof) { p.Path = nil },
	} {
		bad, err := altered(f).Encode()
		if err != nil {
			continue // it cannot even be written
		}
		refused(what, bad)
	}
	// A range that is shifted within its chunks is proven as well: it is divided in the same way. Whoever has bytes finds the difference.
	within := encoded(t, altered(func(p *FileProof) { p.Range.From++; p.Range.To++ }))
	if _, err := accept(within, root, file); err != nil {
		t.Errorf("the next range of the same chunks: %v", err)
	}
	if _, err := accept(within, root, bytes.NewReader(data[1:])); !errors.Is(err, ErrProof) {
		t.Errorf("bytes of the range before: %v", err)
	}
	if _, err := accept(b, root, bytes.NewReader(storetest.Read(t, p.src, "a"))); !errors.Is(err, ErrProof) {
		t.Error("the bytes of another file were accepted")
	}
}

// TestProofKnown holds the form of a proof: testdata/manifest/proof.json is what everyone who reads proofs has to accept.
func TestProofKnown(t *testing.T) {
	p := newProving(t, large())
	b := encoded(t, p.prove(t, "a", 1<<20-5, 1<<20+1500))
	want, err := os.ReadFile(vectors + "/proof.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, want) {
		t.Errorf("expected %s, found %s", want, b)
	}
}

func TestVerifiedReader(t *testing.T) {
	p := newProving(t, large())
	for index, e := range []Entry{{Path: "a"}, {Path: "b"}, {Path: "c/d"}, {Path: "e"}} {
		data := storetest.Read(t, p.src, e.Path)
		e.Size, e.Digest = int64(len(data)), blake3.Sum256(data)
		groups, err := p.groups.Of(context.Background(), p.m, int64(index))
		if err != nil {
			t.Fatal(err)
		}
		v, err := NewVerifiedReader(bytes.NewReader(data), e, groups)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(io.NewSectionReader(v, 0, 1<<40)); err != nil || !bytes.Equal(got, data) || v.Hashed() != e.Size {
			t.Errorf("%s: %d bytes, %d hashed, %v", e.Path, len(got), v.Hashed(), err)
		}
		if len(data) == 0 {
			continue
		}
		for _, at := range []int{0, len(data) / 2, len(data) - 1} {
			bad := bytes.Clone(data)
			bad[at] ^= 4
			v, err := NewVerifiedReader(bytes.NewReader(bad), e, groups)
			if err != nil {
				t.Fatal(err)
			}
			var mismatch *MismatchError
			if n, err := v.ReadAt(make([]byte, 1), int64(at)); n != 0 || !errors.As(err, &mismatch) || mismatch.Path != e.Path {
				t.Errorf("%s: byte %d flipped: %d bytes, %v", e.Path, at, n, err)
			}
		}
		if v, err := NewVerifiedReader(bytes.NewReader(data[:len(data)-1]), e, groups); err != nil {
			t.Error(err)
		} else if _, err := v.ReadAt(make([]byte, 1), e.Size-1); err == nil {
			t.Errorf("%s: a file that is cut off was read", e.Path)
		}
	}
	if _, err := NewVerifiedReader(nil, Entry{"a", 3 << 20, [32]byte{}}, make([][32]byte, 3)); !errors.Is(err, ErrGroups) {
		t.Errorf("digests of another file: %v", err)
	}
	if _, err := NewVerifiedReader(nil, Entry{"a", 3 << 20, [32]byte{}}, nil); !errors.Is(err, ErrGroups) {
		t.Errorf("no digests: %v", err)
	}
}

// FuzzFileProof: what is accepted is written again as the same bytes, and holds only if it is one of those that were made.
func FuzzFileProof(f *testing.F) {
	p := newProving(f, large())
	root := p.m.Root()
	for _, r := range [][2]int64{{0, 0}, {5, 10}, {1 << 20, 2 << 20}, {1<<20 + 100, 2<<20 + 5000}} {
		f.Add(encoded(f, p.prove(f, "c/d", r[0], r[1])))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, resealed(b)} {
			proof, err := ParseFileProof(b)
			if err != nil {
				continue
			}
			again, err := proof.Encode()
			if err != nil || !bytes.Equal(again, b) {
				t.Fatalf("read %q, written %q, %v", b, again, err)
			}
			e, err := proof.Check(root)
			if err == nil && blake3.Sum256(storetest.Read(t, p.src, e.Path)) != e.Digest {
				t.Fatalf("accepted %q", b)
			}
		}
	})
}
