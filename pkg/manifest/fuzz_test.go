package manifest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// seeds adds the bodies of the vectors of one kind.
func seeds(f *testing.F, kind string) {
	f.Helper()
	files, err := filepath.Glob(vectors + "/" + kind + "-*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("%d vectors, %v", len(files), err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		_, body, _ := bytes.Cut(raw, []byte("\n\n"))
		f.Add(body)
	}
}

// FuzzHeader: what is accepted is written again as the same bytes, whatever its own digest says.
func FuzzHeader(f *testing.F) {
	seeds(f, "header")
	f.Fuzz(func(t *testing.T, b []byte) {
		if before, _, ok := bytes.Cut(b, []byte(`,"header_digest":"`)); ok { // a fuzzer does not find digests
			if h, err := ParseHeader(b); err == nil {
				again, err := h.Encode()
				if err != nil || !bytes.Equal(again, b) {
					t.Fatalf("read %q, written %q, %v", b, again, err)
				}
			}
			b = sealed(before)
		}
		h, err := ParseHeader(b)
		if err != nil {
			return
		}
		again, err := h.Encode()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("read %q, written %q, %v", b, again, err)
		}
	})
}

// FuzzEntry: what is accepted is written again as the same bytes.
func FuzzEntry(f *testing.F) {
	seeds(f, "entries")
	f.Add(entry(`a"\b`, MaxNumber).AppendLine(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEntry(bytes.TrimSuffix(b, []byte("\n")))
		if err != nil {
			return
		}
		if again := e.AppendLine(nil); !bytes.Equal(again, bytes.TrimSuffix(b, []byte("\n"))) {
			t.Fatalf("read %q, written %q", b, again)
		}
	})
}

// FuzzEntries: lines in a frame that the header describes rightly; what is accepted makes the same manifest again.
func FuzzEntries(f *testing.F) {
	seeds(f, "entries")
	f.Fuzz(func(t *testing.T, plain []byte) {
		if len(plain) == 0 || len(plain) > 1<<16 {
			return
		}
		lines := strings.Split(strings.TrimSuffix(string(plain), "\n"), "\n")
		first, err := ParseEntry([]byte(lines[0]))
		if err != nil {
			return
		}
		var total int64
		last := first
		for _, l := range lines {
			if e, err := ParseEntry([]byte(l)); err == nil {
				total += e.Size
				last = e
			}
		}
		h, packed := frameOf(t, plain, first.Path, last.Path, int64(len(lines)), total)
		raw, err := h.Encode()
		if err != nil {
			return
		}
		es, err := pair{raw, packed}.read()
		if err != nil {
			return
		}
		m := mustOpen(t, write(t, MaxFrameEntries, Meta{}, es...))
		if m.Header().Root != h.Root {
			t.Fatalf("%q: read, written again, another root", plain)
		}
	})
}

// FuzzFrame: bytes that claim to be a zstd frame.
func FuzzFrame(f *testing.F) {
	plain := append(entry("a", 1).AppendLine(nil), '\n')
	_, packed := frameOf(f, plain, "a", "a", 1, 1)
	f.Add(packed)
	f.Fuzz(func(t *testing.T, packed []byte) {
		if len(packed) == 0 {
			return
		}
		h, _ := frameOf(t, plain, "a", "a", 1, 1)
		h.Frames[0].Size, h.Frames[0].Digest = int64(len(packed)), FormatDigest(blake3Sum(packed))
		raw, err := h.Encode()
		if err != nil {
			return
		}
		if es, err := (pair{raw, packed}).read(); err == nil && (len(es) != 1 || es[0] != entry("a", 1)) {
			t.Fatalf("%x reads as %v", packed, es)
		}
	})
}
