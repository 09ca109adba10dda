package manifest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/blake3"
)

// pair is a manifest in memory.
type pair struct{ header, entries []byte }

func (p pair) open() (*Manifest, error) {
	return OpenReaders(p.header, bytes.NewReader(p.entries), int64(len(p.entries)))
}

// read opens a pair and reads it to the end.
func (p pair) read() ([]Entry, error) {
	m, err := p.open()
	if err != nil {
		return nil, err
	}
	return m.list()
}

func (m *Manifest) list() (es []Entry, err error) {
	err = m.Entries(context.Background(), func(e Entry) error { es = append(es, e); return nil })
	return es, err
}

// write makes a manifest of entries with a given number of lines in a frame.
func write(t testing.TB, lines int64, meta Meta, es ...Entry) pair {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, meta)
	w.lines = lines
	for _, e := range es {
		if err := w.Add(e); err != nil {
			t.Fatal(err)
		}
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

func mustOpen(t testing.TB, p pair) *Manifest {
	t.Helper()
	m, err := p.open()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// entry makes one up.
func entry(path string, size int64) Entry {
	return Entry{path, size, blake3.Sum256([]byte(fmt.Sprint(path, size)))}
}

func someEntries(n int) []Entry {
	es := make([]Entry, n)
	for i := range es {
		es[i] = entry(fmt.Sprintf("train/img_%06d_of_%d.npz", i, n), int64(i)*977)
	}
	return es
}

var someMeta = Meta{
	Layout: &Layout{Format: "npz", SamplesPerFile: 1, DType: "uint8", Train: 1, Valid: 0},
	Recipe: json.RawMessage(`{"generator":"example","version":1,"seed":"42","stdev":71277951.5}`),
}

// frameOf makes a manifest of one frame around lines that may be wrong, so that everything about it is right but the
// lines. first and last are what the header says, for lines from which they cannot be taken.
func frameOf(t testing.TB, plain []byte, first, last string, count, size int64) (Header, []byte) {
	t.Helper()
	enc, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true))
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	packed := enc.EncodeAll(plain, nil)
	var tree Tree
	for _, l := range strings.SplitAfter(string(plain), "\n") {
		if l != "" {
			tree.Add([]byte(strings.TrimSuffix(l, "\n")))
		}
	}
	return Header{Count: count, Bytes: size, Root: FormatDigest(tree.Root()), Frames: []Frame{{
		First: first, Last: last, Count: count, Size: int64(len(packed)), Digest: FormatDigest(blake3.Sum256(packed)),
		PlainSize: int64(len(plain)), PlainDigest: FormatDigest(blake3.Sum256(plain)),
	}}}, packed
}

func blake3Sum(b []byte) [32]byte { return blake3.Sum256(b) }

// sealed ends a header with the digest of what it has.
func sealed(before []byte) []byte {
	return append(bytes.Clone(before), `,"header_digest":"`+string(FormatDigest(blake3.Sum256(before)))+"\"}\n"...)
}
