package manifest

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/blake3"
)

// TestFrameFaults has frames whose bytes the header describes rightly, and which are wrong all the same.
func TestFrameFaults(t *testing.T) {
	plain := append(entry("a", 1).AppendLine(nil), '\n')
	enc, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true))
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	other := append(entry("a", 2).AppendLine(nil), '\n')
	skippable := append([]byte{0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0}, 1, 2, 3, 4)
	streamed := streamedFrame(t, plain)
	for name, packed := range map[string][]byte{
		"not zstd": []byte("hello, world, this is no zstd at all"), "too short": {0x28}, "skippable": skippable,
		"no content size": streamed, "other content": enc.EncodeAll(other, nil), "longer content": enc.EncodeAll(append(plain, other...), nil),
		"two frames": enc.EncodeAll(plain[20:], enc.EncodeAll(plain[:20], nil)), "more after it": append(enc.EncodeAll(plain, nil), 'x'),
		"a frame after it": enc.EncodeAll(plain, enc.EncodeAll(plain, nil)),
	} {
		h, _ := frameOf(t, plain, "a", "a", 1, 1)
		h.Frames[0].Size, h.Frames[0].Digest = int64(len(packed)), FormatDigest(blake3.Sum256(packed))
		raw, err := h.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (pair{raw, packed}).read(); !errors.Is(err, ErrFrame) || !strings.Contains(err.Error(), "frame 0") {
			t.Errorf("%s: %v, expected class frame", name, err)
		}
	}
}

// streamedFrame compresses without knowing the size beforehand.
func streamedFrame(t *testing.T, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range plain {
		if _, err := w.Write([]byte{c}); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBomb has a frame of a few kilobytes that unpacks to 256 MiB under a header that is honest about none of it, and one
// that declares in the frame what the header says: neither makes the reader take the memory.
func TestBomb(t *testing.T) {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	zero := make([]byte, 1<<20)
	for range 256 {
		if _, err := w.Write(zero); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	bomb := b.Bytes()
	// The same blocks behind a frame header that declares 16 MiB, in one segment, without a checksum.
	var zh zstd.Header
	if err := zh.Decode(bomb); err != nil {
		t.Fatal(err)
	}
	lying := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 1}, bomb[zh.HeaderSize:len(bomb)-4]...)
	for name, packed := range map[string][]byte{"no size": bomb, "lying": lying} {
		h, _ := frameOf(t, append(entry("a", 1).AppendLine(nil), '\n'), "a", "a", 1, 1)
		f := &h.Frames[0]
		f.Size, f.Digest, f.PlainSize = int64(len(packed)), FormatDigest(blake3.Sum256(packed)), MaxFrameBytes
		raw, err := h.Encode()
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := (pair{raw, packed}).read(); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v, expected class frame", name, err)
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 4*MaxFrameBytes {
			t.Errorf("%s: a frame of %d bytes took %d bytes of memory", name, len(packed), got)
		}
	}
}
