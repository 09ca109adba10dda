package format

import (
	"encoding/binary"
	"hash/crc32"
	"hash/crc64"
)

// xzer compresses to the format of xz: one stream of one block, LZMA2, checked by CRC-64. Like the deflater, its output is defined here and
// pinned by golden values. Numbers drawn at random have nothing to find again: no matches are looked for, and all that is gained is the
// adaptive code of the bytes, each in the context of the one before. A reader needs the least dictionary that there is, 4 KiB.
//
// LZMA2 is a sequence of chunks. Each holds xzChunk bytes of the text, coded, or as they are where that is not longer.
type xzer struct {
	out   *writer // nil: nothing is written, only counted
	bytes int64   // written so far
	err   error

	chunk []byte
	plain int64 // text so far, without the chunk
	crc   uint64
	table *crc64.Table
	begun bool // a chunk was written
	named bool // the properties were

	// The model. Probabilities of a 0, of 2048.
	fresh    bool                   // as at the start
	before   byte                   // the byte before
	match    uint16                 // of a literal: all are
	literals [1 << xzLC][256]uint16 // by the highest bits of the byte before

	// The range coder, and what it wrote of the chunk.
	low     uint64
	span    uint32
	cache   byte
	pending int
	coded   []byte
}

const (
	xzChunk  = 1 << 16
	xzLC     = 4 // bits of the byte before: they tell digits from commas. No more are allowed in LZMA2
	xzHalf   = 1 << 10
	xzHeader = 12 // of stream and block each, and of the stream's footer
)

func newXzer() *xzer {
	return &xzer{chunk: make([]byte, 0, xzChunk), coded: make([]byte, 0, xzChunk+64), table: crc64.MakeTable(crc64.ECMA)}
}

// xzBound is the most that n bytes can become: each chunk as it is, and the container.
func xzBound(n int64) int64 { return n + 3*(n/xzChunk+1) + 128 }

func (z *xzer) reset(out *writer) {
	z.out, z.bytes, z.err, z.chunk, z.plain, z.crc, z.begun, z.named = out, 0, nil, z.chunk[:0], 0, 0, false, false
	z.forget()
	z.before = 0
	flags := []byte{0, 4} // CRC-64
	z.put([]byte("\xfd7zXZ\x00"), flags, binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(flags)))
	// Of the block: its header's length, one filter, no sizes; LZMA2, with one byte of properties, which means a dictionary of 4 KiB.
	block := [8]byte{xzHeader/4 - 1, 0, 0x21, 1, 0}
	z.put(block[:], binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(block[:])))
}

// forget puts the model into its first state.
func (z *xzer) forget() {
	if z.fresh {
		return
	}
	z.match, z.fresh = xzHalf, true
	for i := range z.literals {
		for j := range z.literals[i] {
			z.literals[i][j] = xzHalf
		}
	}
}

// put writes pieces one after the other. Its error is that of close and write.
func (z *xzer) put(pieces ...[]byte) {
	for _, p := range pieces {
		z.bytes += int64(len(p))
		if z.out != nil && z.err == nil {
			z.err = z.out.write(p)
		}
	}
}

func (z *xzer) write(p []byte) error {
	z.crc = crc64.Update(z.crc, z.table, p)
	for len(p) > 0 && z.err == nil {
		if len(z.chunk) == xzChunk {
			z.flushChunk()
		}
		n := min(len(p), xzChunk-len(z.chunk))
		z.chunk = append(z.chunk, p[:n]...)
		p = p[n:]
	}
	return z.err
}

// close ends the file and returns its bytes.
func (z *xzer) close() (int64, error) {
	if len(z.chunk) > 0 {
		z.flushChunk()
	}
	z.put([]byte{0}) // no more chunks
	unpadded := z.bytes - xzHeader + 8
	z.pad()
	z.put(binary.LittleEndian.AppendUint64(nil, z.crc))
	index := []byte{0, 1} // of one block: its size without padding, and that of the text
	index = binary.AppendUvarint(index, uint64(unpadded))
	index = binary.AppendUvarint(index, uint64(z.plain))
	for len(index)%4 > 0 {
		index = append(index, 0)
	}
	index = binary.LittleEndian.AppendUint32(index, crc32.ChecksumIEEE(index))
	z.put(index)
	footer := append(binary.LittleEndian.AppendUint32(nil, uint32(len(index)/4-1)), 0, 4)
	z.put(binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(footer)), footer, []byte("YZ"))
	z.out = nil
	return z.bytes, z.err
}

// pad fills up to a multiple of four.
func (z *xzer) pad() { z.put(make([]byte, -z.bytes&3)) }

// flushChunk writes the chunk.
func (z *xzer) flushChunk() {
	n := len(z.chunk)
	z.plain += int64(n)
	last := z.chunk[n-1]
	// The kinds of chunks: 1 and 2 hold text as it is, the first with a new dictionary; of coded ones 0x80 goes on, 0xa0 has the model
	// begin anew, 0xc0 gives its properties too, and 0xe0 a new dictionary.
	kind := byte(0x80)
	switch {
	case !z.begun:
		kind = 0xe0
	case !z.named:
		kind = 0xc0
	case z.fresh:
		kind = 0xa0
	}
	var head [6]byte
	size := 5
	if kind >= 0xc0 {
		head[5] = xzLC // and none of the position's bits
		size = 6
	}
	if z.encode(n + 3 - size) {
		head[0] = kind
		binary.BigEndian.PutUint16(head[1:], uint16(n-1))
		binary.BigEndian.PutUint16(head[3:], uint16(len(z.coded)-1))
		z.put(head[:size], z.coded)
		z.named = true
	} else {
		head[0] = 2
		if !z.begun {
			head[0] = 1
		}
		binary.BigEndian.PutUint16(head[1:], uint16(n-1))
		z.put(head[:3], z.chunk)
		z.forget()
	}
	z.begun, z.before, z.chunk = true, last, z.chunk[:0]
}

// encode codes the chunk, and reports whether it became shorter than limit.
func (z *xzer) encode(limit int) bool {
	z.low, z.span, z.cache, z.pending, z.coded = 0, 0xffffffff, 0, 1, z.coded[:0]
	z.fresh = false
	match, before := z.match, z.before
	for _, b := range z.chunk {
		z.bit(&match, 0)
		tree := &z.literals[before>>(8-xzLC)]
		node := uint32(1)
		for i := 7; i >= 0; i-- {
			bit := uint32(b>>i) & 1
			z.bit(&tree[node&255], bit)
			node = node<<1 | bit
		}
		before = b
		if len(z.coded) >= limit {
			return false
		}
	}
	z.match = match
	for range 5 {
		z.shift()
	}
	return len(z.coded) < limit
}

// bit codes a bit whose probability of being 0 is p of 2048, and learns.
func (z *xzer) bit(p *uint16, bit uint32) {
	bound := z.span >> 11 * uint32(*p)
	if bit == 0 {
		z.span = bound
		*p += (1<<11 - *p) >> 5
	} else {
		z.low += uint64(bound)
		z.span -= bound
		*p -= *p >> 5
	}
	if z.span < 1<<24 {
		z.span <<= 8
		z.shift()
	}
}

// shift moves the highest byte of low out, once it is known whether a carry will come.
func (z *xzer) shift() {
	if uint32(z.low) < 0xff000000 || z.low>>32 != 0 {
		carry := byte(z.low >> 32)
		for b := z.cache; z.pending > 0; z.pending-- {
			z.coded = append(z.coded, b+carry)
			b = 0xff
		}
		z.cache = byte(z.low >> 24)
	}
	z.pending++
	z.low = z.low & 0x00ffffff << 8
}
