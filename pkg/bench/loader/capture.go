package loader

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/benchpin/benchpin/pkg/manifest/blake"
	"github.com/benchpin/benchpin/pkg/store"
)

// Form says of which bytes the digest of a sample is (docs/transcript.md).
type Form string

// The forms.
const (
	// FormNone: nothing is read. The digest is 32 zero bytes.
	FormNone Form = "none"
	// FormFile: the reader reads the whole file. The digest is that of its bytes, the one of the manifest.
	FormFile Form = "file"
	// FormRanges: the reader reads parts of the file and of its companions. The digest is that of the account of these parts.
	FormRanges Form = "ranges"
	// FormGroups: the reader remembers. The digest is that of two digests of accounts: of what is read when a file is come to, and of
	// what is read of the sample's group.
	FormGroups Form = "groups"
	// FormStream: the reader streams the file. The digest is a chain over what each sample of the file asked for, up to this one.
	FormStream Form = "stream"
)

// Blocks is a pool of equal blocks of memory, which hold what was read until it is hashed. The block that was put back last is handed
// out first. It bounds nothing: how much is held follows from the batches in flight.
type Blocks struct {
	size int

	mu        sync.Mutex
	free      [][]byte
	out, most int
}

// NewBlocks makes a pool of blocks of size bytes each.
func NewBlocks(size int) (*Blocks, error) {
	if size <= 0 {
		return nil, fmt.Errorf("blocks: expected a positive size, found %d bytes", size)
	}
	return &Blocks{size: size}, nil
}

// Grow makes blocks of so many bytes before they are needed, and touches them: the first touch of new memory costs more than hashing it.
func (b *Blocks) Grow(bytes int64) {
	const page = 4096
	for range bytes / int64(b.size) {
		block := store.AlignedBuffer(b.size)
		for i := 0; i < len(block); i += page {
			block[i] = 1
		}
		b.mu.Lock()
		b.free = append(b.free, block)
		b.mu.Unlock()
	}
}

func (b *Blocks) get() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.out++
	b.most = max(b.most, b.out)
	if n := len(b.free); n > 0 {
		block := b.free[n-1]
		b.free = b.free[:n-1]
		return block
	}
	return store.AlignedBuffer(b.size)
}

func (b *Blocks) put(blocks [][]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.out -= len(blocks)
	b.free = append(b.free, blocks...)
}

// Most is the largest number of bytes that were ever held at once.
func (b *Blocks) Most() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(b.most) * int64(b.size)
}

// Capturing makes the workers of a Source keep what they read.
type Capturing struct {
	Form   Form
	Blocks *Blocks
}

// Hold is what one goroutine kept of what it read: bytes in blocks, and whose they are.
type Hold struct {
	// Captures are in the order in which they were read.
	Captures []*Capture

	pool   *Blocks
	blocks [][]byte
	bytes  int64
	left   atomic.Int64 // captures that are not hashed
}

func (c *Capturing) hold() *Hold { return &Hold{pool: c.Blocks} }

// Bytes is how much it keeps.
func (h *Hold) Bytes() int64 { return h.bytes }

// write keeps a copy of p.
func (h *Hold) write(p []byte) {
	size := int64(h.pool.size)
	for len(p) > 0 {
		at := h.bytes % size
		if at == 0 {
			h.blocks = append(h.blocks, h.pool.get())
		}
		n := copy(h.blocks[len(h.blocks)-1][at:], p)
		h.bytes += int64(n)
		p = p[n:]
	}
}

// each calls f with the kept bytes [from, to), piece by piece.
func (h *Hold) each(from, to int64, f func(p []byte)) {
	size := int64(h.pool.size)
	for from < to {
		at := from % size
		n := min(size-at, to-from)
		f(h.blocks[from/size][at : at+n])
		from += n
	}
}

// Capture is what was read at once: a file, parts of it, or what a stream asked for. It is made by the worker, hashed by a Hasher, and
// not changed afterwards.
type Capture struct {
	// File is the number of the data file, Position that of the sample for which it was read.
	File, Position int64
	// Sum is its digest, once it was hashed and, of a stream, linked.
	Sum [32]byte

	form  Form
	name  string
	size  int64 // of the file
	hold  *Hold
	start int64 // of its bytes in the hold
	spans []span
	chain *[32]byte // of the stream
}

// span is a stretch of bytes that was read: of the file itself, or of a companion from 1.
type span struct{ companion, off, bytes int64 }

// Name is the path of the data file.
func (c *Capture) Name() string { return c.name }

// Size is the size of the data file in bytes.
func (c *Capture) Size() int64 { return c.size }

// Bytes is how many bytes were read.
func (c *Capture) Bytes() int64 {
	var n int64
	for i := range c.spans {
		n += c.spans[i].bytes
	}
	return n
}

// add keeps what was read.
func (c *Capture) add(companion, off int64, p []byte) {
	if len(p) == 0 {
		return
	}
	n := int64(len(p))
	if last := len(c.spans) - 1; last >= 0 && c.spans[last].companion == companion && c.spans[last].off+c.spans[last].bytes == off {
		c.spans[last].bytes += n
	} else {
		c.spans = append(c.spans, span{companion, off, n})
	}
	c.hold.write(p)
}

// Link makes the Sum of a stream's capture, which was hashed, the chain over all that were read before it. It must be called once for
// each capture, in the order in which they were read; of others it does nothing.
func (c *Capture) Link() {
	if c.chain == nil {
		return
	}
	*c.chain = pair(*c.chain, c.Sum)
	c.Sum = *c.chain
}

// pair is the digest of two digests.
func pair(a, b [32]byte) [32]byte {
	var both [64]byte
	copy(both[:32], a[:])
	copy(both[32:], b[:])
	return blake.Sum(both[:])
}

// Read says what a sample was read as. The zero value is that of a sample of which nothing was read.
type Read struct {
	a, b *Capture // b is the group, where a is what is read when a file is come to
}

// Digest is the digest of the sample. All its captures must have been hashed.
func (r Read) Digest() [32]byte {
	switch {
	case r.a == nil:
		return [32]byte{}
	case r.b == nil:
		return r.a.Sum
	}
	return pair(r.a.Sum, r.b.Sum)
}

// Hasher hashes captures, for one goroutine.
type Hasher struct{ h *blake.Hasher }

// NewHasher makes a Hasher.
func NewHasher() *Hasher { return &Hasher{new(blake.Hasher)} }

// Hash fills in the Sum of a capture and, with the last one of its hold, gives the memory back. The error says that a reader which is to
// read whole files left something out or read it twice.
func (x *Hasher) Hash(c *Capture) error {
	err := x.sum(c)
	if h := c.hold; h.left.Add(-1) == 0 {
		h.pool.put(h.blocks)
		h.blocks = nil
	}
	return err
}

func (x *Hasher) sum(c *Capture) error {
	x.h.Reset()
	write := func(p []byte) { x.h.Write(p) }
	at := c.start
	switch c.form {
	case FormFile:
		if err := x.whole(c); err != nil {
			return err
		}
	case FormStream:
		c.hold.each(at, at+c.Bytes(), write)
	default:
		var head [24]byte
		for _, s := range c.spans {
			binary.BigEndian.PutUint64(head[0:], uint64(s.companion))
			binary.BigEndian.PutUint64(head[8:], uint64(s.off))
			binary.BigEndian.PutUint64(head[16:], uint64(s.bytes))
			x.h.Write(head[:])
			c.hold.each(at, at+s.bytes, write)
			at += s.bytes
		}
	}
	c.Sum = x.h.Sum()
	return nil
}

// whole hashes the bytes of a file front to back, in whatever order they were read.
func (x *Hasher) whole(c *Capture) error {
	type piece struct {
		span
		start int64
	}
	pieces := make([]piece, len(c.spans))
	at := c.start
	for i, s := range c.spans {
		pieces[i] = piece{s, at}
		at += s.bytes
	}
	slices.SortFunc(pieces, func(a, b piece) int {
		if a.off < b.off {
			return -1
		}
		return 1
	})
	end := int64(0)
	for _, p := range pieces {
		if p.companion != 0 || p.off != end {
			return fmt.Errorf("%s: expected the reader to read each byte of the file once, found a read at %d after byte %d of %d; "+
				"this is a fault of benchpin: verify before the run (benchpin.verify: before)", c.name, p.off, end, c.size)
		}
		c.hold.each(p.start, p.start+p.bytes, func(b []byte) { x.h.Write(b) })
		end += p.bytes
	}
	if end != c.size {
		return fmt.Errorf("%s: expected the reader to read all %d bytes of the file, found %d; this is a fault of benchpin: "+
			"verify before the run (benchpin.verify: before)", c.name, c.size, end)
	}
	return nil
}
