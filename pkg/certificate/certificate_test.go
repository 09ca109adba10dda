package certificate

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// The bound is below what zstd makes of the most compressible bytes there are, and near it: a certificate below it is false.
func TestLeastCompressed(t *testing.T) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(false))
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	pack := func(n int) int { return min(n, len(enc.EncodeAll(make([]byte, n), nil))) }
	for _, n := range []int{0, 1, 5, 9, 10, 100, 512, 4096, 128<<10 - 1, 128 << 10, 128<<10 + 1, 300000, 1 << 20, 1<<20 + 7, 9 << 20} {
		for _, size := range ChunkSizes() {
			found := 0
			if size == 0 {
				found = pack(n)
			}
			for rest := n; size > 0 && rest > 0; rest -= size {
				found += pack(min(rest, size))
			}
			least := leastCompressed(size, Int(n))
			if int(least) > found || n > 0 && least < 1 {
				t.Errorf("%d bytes in pieces of %d: the bound is %d, and zstd needs %d", n, size, least, found)
			}
			if n == 9<<20 && size > 0 && found > 4*int(least) {
				t.Errorf("%d bytes in pieces of %d: the bound of %d is far below the %d that zstd needs", n, size, least, found)
			}
		}
	}
	// Parts of files bring the bound no higher than the files do.
	if a, b := leastCompressed(0, 200<<10), leastCompressed(0, 100<<10); a > 2*b {
		t.Errorf("%d for the whole and %d for a half", a, b)
	}
}

// What no data can have is refused.
func TestCheckImpossible(t *testing.T) {
	made := func() *Certificate {
		digest := "blake3:" + string(bytes.Repeat([]byte("a"), 64))
		c := &Certificate{Schema: SchemaName, Class: "H", Method: Method, Library: "zstd", Dataset: Dataset{Root: digest, Manifest: digest, Files: 1, Bytes: 1 << 20},
			Scope: Scope{Mode: All, Files: 1, Bytes: 1 << 20}, Compression: Compression{Method: "zstd", Level: Level}}
		c.Repeats.Files = Distinct{Count: 1, Distinct: 1, Exact: true}
		for _, size := range BlockSizes() {
			n := Int(1<<20) / Int(size)
			c.Repeats.Blocks = append(c.Repeats.Blocks, Blocks{Size: size, Distinct: Distinct{Count: n, Distinct: n, Exact: true}})
		}
		for _, size := range ChunkSizes() {
			c.Compression.Chunks = append(c.Compression.Chunks, Chunks{Size: size, Plain: 1 << 20, Compressed: 1 << 19, Ratio: 2})
		}
		return c
	}
	if err := made().Check(); err != nil {
		t.Fatal(err)
	}
	distinct := func(d *Distinct, n Int) { d.Distinct, d.Share = n, Share(d.Count, n) }
	for what, change := range map[string]func(*Certificate){
		"a ratio of a million":    func(c *Certificate) { k := &c.Compression.Chunks[0]; k.Compressed, k.Ratio = 1, 1<<20 },
		"beyond zstd, 1 MiB":      func(c *Certificate) { k := &c.Compression.Chunks[1]; k.Compressed, k.Ratio = 37, Ratio(1<<20, 37) },
		"beyond zstd, files":      func(c *Certificate) { k := &c.Compression.Chunks[2]; k.Compressed, k.Ratio = 31, Ratio(1<<20, 31) },
		"different zeros":         func(c *Certificate) { c.Repeats.Blocks[0].Zero = 2 },
		"zeros in no zeros":       func(c *Certificate) { c.Repeats.Blocks[1].Zero = 1 },
		"more than they can hold": func(c *Certificate) { distinct(&c.Repeats.Blocks[1].Distinct, 255) },
	} {
		c := made()
		change(c)
		if err := c.Check(); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
}
