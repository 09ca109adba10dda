package format

import (
	"bytes"
	"compress/flate"
	"io"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// packedBy compresses p in pieces, and checks that counting gives the same number of bytes.
func packedBy(t interface{ Fatalf(string, ...any) }, d *deflater, p []byte, piece int) []byte {
	var out bytes.Buffer
	w := writer{w: &out, buf: make([]byte, 1000)}
	var sizes [2]int64
	for i, to := range []*writer{&w, nil} {
		d.reset(to)
		for at := 0; at < len(p); at += piece {
			if err := d.write(p[at:min(at+piece, len(p))]); err != nil {
				t.Fatalf("%v", err)
			}
		}
		var err error
		if sizes[i], err = d.close(); err != nil {
			t.Fatalf("%v", err)
		}
	}
	if err := w.flush(); err != nil {
		t.Fatalf("%v", err)
	}
	if n := int64(out.Len()); sizes[0] != n || sizes[1] != n || n > deflateBound(int64(len(p))) {
		t.Fatalf("%d bytes: %d were written, %d said, %d counted, bound %d", len(p), n, sizes[0], sizes[1], deflateBound(int64(len(p))))
	}
	return out.Bytes()
}

// TestDeflateIsDeflate lets the standard library inflate what the encoder makes of texts of every kind.
func TestDeflateIsDeflate(t *testing.T) {
	d := newDeflater()
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		symbols := rapid.IntRange(1, 256).Draw(t, "symbols")
		skew := rapid.IntRange(1, 6).Draw(t, "skew")
		runs := rapid.IntRange(1, 700).Draw(t, "longest run")
		p := make([]byte, 0, 100000)
		for n := rapid.IntRange(0, cap(p)).Draw(t, "bytes"); len(p) < n; {
			x := rng.Float64()
			y := x
			for range skew {
				y *= x
			}
			for range min(1+rng.IntN(runs), n-len(p)) {
				p = append(p, byte(int(y*float64(symbols))))
			}
		}
		packed := packedBy(t, d, p, rapid.IntRange(1, 50000).Draw(t, "piece"))
		r := flate.NewReader(bytes.NewReader(packed))
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, p) {
			t.Fatalf("%d bytes came back of %d: %v", len(got), len(p), err)
		}
		if again := packedBy(t, d, p, 7777); !bytes.Equal(again, packed) {
			t.Fatal("the stream depends on how the input came")
		}
	})
}

// TestDeflateGains compares the size with what the standard library's encoder reaches on the kinds of data that sets have.
func TestDeflateGains(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	digits := make([]byte, 200000)
	for i := range digits {
		digits[i] = "0123456789,"[rng.IntN(11)]
	}
	noise := make([]byte, 200000)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	for name, p := range map[string][]byte{"digits": digits, "noise": noise, "zeros": make([]byte, 200000)} {
		var ref bytes.Buffer
		w, err := flate.NewWriter(&ref, 6)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(p); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if n := len(packedBy(t, newDeflater(), p, len(p))); n > ref.Len()*101/100+500 {
			t.Errorf("%s: %d bytes; compress/flate needs %d", name, n, ref.Len())
		}
	}
}

// Weights like Fibonacci's numbers give the longest codes that there are; they are kept to the limit.
func TestHuffmanLimit(t *testing.T) {
	for _, limit := range []uint8{7, 15} {
		var h huffman
		h.clear(19)
		a, b := uint32(1), uint32(1)
		for s := range 19 {
			h.count[s] = a
			a, b = b, a+b
		}
		h.build(limit)
		kraft := 0
		for s := range 19 {
			if h.width[s] == 0 || h.width[s] > limit {
				t.Errorf("limit %d: symbol %d has %d bits", limit, s, h.width[s])
			}
			kraft += 1 << (15 - h.width[s])
		}
		if kraft != 1<<15 {
			t.Errorf("limit %d: the code uses %d of %d", limit, kraft, 1<<15)
		}
	}
}
