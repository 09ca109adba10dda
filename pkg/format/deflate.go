package format

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// deflater compresses to DEFLATE (RFC 1951). Its output is defined by this file and pinned by golden values, so that data sets do not
// change with the release of a compression library.
//
// What data sets hold is random: there is nothing to find again, and all that can be gained is the code of the bytes. The input is
// cut into blocks of deflateBlock bytes. Each has its own Huffman code, or is stored where that is not longer; the only matches are
// repetitions of one byte, at distance 1.
type deflater struct {
	out  *writer // nil: nothing is written, only counted
	bits int64   // written so far

	block []byte
	acc   uint64 // bits that are waiting, the first one lowest
	held  uint   // their number, below 8 between calls of put

	literal  huffman // bytes, the end of a block, and lengths of matches
	lengths  huffman // of the code itself
	sequence []uint8 // code lengths and repetitions, with the extra bits of each following
}

const (
	deflateBlock = 32 << 10
	endOfBlock   = 256
	literals     = 286
	codeLengths  = 19
)

func newDeflater() *deflater {
	return &deflater{block: make([]byte, 0, deflateBlock), sequence: make([]uint8, 0, 2*literals+2)}
}

// reset begins a stream that goes to out, or one that is only counted.
func (d *deflater) reset(out *writer) {
	d.out, d.bits, d.block, d.acc, d.held = out, 0, d.block[:0], 0, 0
}

// deflateBound is the most that n bytes can become: each block stored, and aligned for it.
func deflateBound(n int64) int64 { return n + 6*(n/deflateBlock+1) }

func (d *deflater) write(p []byte) error {
	for len(p) > 0 {
		if len(d.block) == deflateBlock {
			if err := d.flushBlock(false); err != nil {
				return err
			}
		}
		n := min(len(p), deflateBlock-len(d.block))
		d.block = append(d.block, p[:n]...)
		p = p[n:]
	}
	return nil
}

func (d *deflater) zeros(n int64) error {
	var zero [1024]byte
	for ; n > 0; n -= min(n, int64(len(zero))) {
		if err := d.write(zero[:min(n, int64(len(zero)))]); err != nil {
			return err
		}
	}
	return nil
}

// close ends the stream and returns its bytes.
func (d *deflater) close() (int64, error) {
	if err := d.flushBlock(true); err != nil {
		return 0, err
	}
	if d.held > 0 {
		if err := d.put(0, 8-d.held); err != nil {
			return 0, err
		}
	}
	d.out = nil
	return d.bits / 8, nil
}

// put appends the n lowest bits of v.
func (d *deflater) put(v uint64, n uint) error {
	d.bits += int64(n)
	if d.out == nil {
		d.held = (d.held + n) & 7
		return nil
	}
	d.acc |= v << d.held
	d.held += n
	if d.held < 8 {
		return nil
	}
	var p [8]byte
	binary.LittleEndian.PutUint64(p[:], d.acc)
	whole := d.held / 8
	d.acc >>= 8 * whole
	d.held &= 7
	if out := d.out; len(out.buf)-out.n >= 8 {
		copy(out.buf[out.n:], p[:])
		out.n += int(whole)
		return nil
	}
	return d.out.write(p[:whole])
}

// leastRepetition is the shortest match that is made. Where there are short ones often, their bytes have short codes.
const leastRepetition = 16

// repetition returns how many bytes from i on equal the one before it, leastRepetition to 258, or 0.
func repetition(p []byte, i int) int {
	if i == 0 || i+leastRepetition > len(p) || p[i] != p[i-1] || p[i+1] != p[i] {
		return 0
	}
	n := 2
	for n < 258 && i+n < len(p) && p[i+n] == p[i] {
		n++
	}
	if n < leastRepetition {
		return 0
	}
	return n
}

// lengthSymbol is the symbol of a match of n bytes, with its extra bits.
func lengthSymbol(n int) (symbol int, extra uint64, width uint) {
	if n == 258 {
		return 285, 0, 0
	}
	n -= 3
	width = uint(max(0, bits.Len(uint(n))-3))
	return 257 + int(4*width) + n>>width, uint64(n) & (1<<width - 1), width
}

// flushBlock writes the block, coded or stored.
func (d *deflater) flushBlock(final bool) error {
	p, h := d.block, &d.literal
	h.clear(literals)
	extras := int64(0)
	for i := 0; i < len(p); i++ {
		if n := repetition(p, i); n > 0 {
			s, _, width := lengthSymbol(n)
			h.count[s]++
			extras += int64(width) + 1 // and one bit for the distance
			i += n - 1
			continue
		}
		h.count[p[i]]++
	}
	h.count[endOfBlock]++
	h.build(15)
	header := d.describe()
	coded := 3 + header + h.total() + extras
	stored := 3 + int64(-(d.held+3)&7) + 32 + 8*int64(len(p))
	last := uint64(0)
	if final {
		last = 1
	}
	d.block = d.block[:0]
	switch {
	case coded >= stored:
		return d.store(p, last)
	case d.out == nil:
		d.bits += coded
		d.held = uint(int64(d.held)+coded) & 7
		return nil
	}
	if err := d.put(last|2<<1, 3); err != nil {
		return err
	}
	if err := d.putHeader(); err != nil {
		return err
	}
	for i := 0; i < len(p); i++ {
		n := repetition(p, i)
		if n == 0 {
			if err := d.put(uint64(h.code[p[i]]), uint(h.width[p[i]])); err != nil {
				return err
			}
			continue
		}
		s, extra, width := lengthSymbol(n)
		w := uint(h.width[s])
		if err := d.put(uint64(h.code[s])|extra<<w, w+width+1); err != nil {
			return err
		}
		i += n - 1
	}
	return d.put(uint64(h.code[endOfBlock]), uint(h.width[endOfBlock]))
}

// store writes a block as it is.
func (d *deflater) store(p []byte, last uint64) error {
	if err := d.put(last, 3); err != nil {
		return err
	}
	if err := d.put(0, -d.held&7); err != nil {
		return err
	}
	n := uint64(len(p))
	if err := d.put(n|^n<<16&0xffff0000, 32); err != nil {
		return err
	}
	d.bits += 8 * int64(len(p))
	if d.out == nil {
		return nil
	}
	return d.out.write(p)
}

// describe lays out the description of the code, and returns its bits: the widths of the symbols up to the last one used and that of
// the one distance, with repetitions (16: the one before 3 to 6 times; 17 and 18: zeros 3 to 10 and 11 to 138 times).
func (d *deflater) describe() int64 {
	h := &d.literal
	d.sequence = d.sequence[:0]
	n := h.used()
	add := func(s, extra uint8) {
		d.sequence = append(d.sequence, s, extra)
		d.lengths.count[s]++
	}
	d.lengths.clear(codeLengths)
	for i := 0; i < n; {
		run := 1
		for i+run < n && h.width[i+run] == h.width[i] {
			run++
		}
		w := h.width[i]
		i += run
		if w > 0 {
			add(w, 0)
			run--
		}
		for run > 2 {
			switch {
			case w > 0:
				k := min(run, 6)
				add(16, uint8(k-3))
				run -= k
			case run < 11:
				add(17, uint8(run-3))
				run = 0
			default:
				k := min(run, 138)
				add(18, uint8(k-11))
				run -= k
			}
		}
		for ; run > 0; run-- {
			add(w, 0)
		}
	}
	add(1, 0) // distance 1: one code of one bit
	d.lengths.build(7)
	return 5 + 5 + 4 + 3*int64(d.lengthsUsed()) + d.lengths.total() + 2*int64(d.lengths.count[16]) + 3*int64(d.lengths.count[17]) +
		7*int64(d.lengths.count[18])
}

// lengthOrder is the order in which the widths of the code of widths are written.
const lengthOrder = "\x10\x11\x12\x00\x08\x07\x09\x06\x0a\x05\x0b\x04\x0c\x03\x0d\x02\x0e\x01\x0f"

func (d *deflater) lengthsUsed() int {
	n := codeLengths
	for n > 4 && d.lengths.width[lengthOrder[n-1]] == 0 {
		n--
	}
	return n
}

func (d *deflater) putHeader() error {
	n := d.lengthsUsed()
	if err := d.put(uint64(d.literal.used()-257)|uint64(n-4)<<10, 14); err != nil {
		return err
	}
	for _, s := range []byte(lengthOrder[:n]) {
		if err := d.put(uint64(d.lengths.width[s]), 3); err != nil {
			return err
		}
	}
	for i := 0; i < len(d.sequence); i += 2 {
		s, extra := d.sequence[i], d.sequence[i+1]
		width := [...]uint{2, 3, 7}
		w := uint(d.lengths.width[s])
		e := uint(0)
		if s >= 16 {
			e = width[s-16]
		}
		if err := d.put(uint64(d.lengths.code[s])|uint64(extra)<<w, w+e); err != nil {
			return err
		}
	}
	return nil
}

// huffman is a prefix code.
type huffman struct {
	n     int // symbols
	count [literals]uint32
	width [literals]uint8  // bits of each symbol, 0 if it does not occur
	code  [literals]uint16 // the first bit lowest, as it is written

	leaf   [literals]uint32 // weight<<9 | symbol, in order
	weight [literals]uint32 // of inner nodes
	parent [2 * literals]uint16
}

func (h *huffman) clear(n int) {
	h.n = n
	clear(h.count[:n])
}

// used is one more than the last symbol that occurs.
func (h *huffman) used() int {
	n := h.n
	for n > 0 && h.width[n-1] == 0 {
		n--
	}
	return n
}

// total is the bits that all symbols counted take.
func (h *huffman) total() int64 {
	n := int64(0)
	for s := range h.n {
		n += int64(h.count[s]) * int64(h.width[s])
	}
	return n
}

// build makes the code of the counts, of at most limit bits a symbol. Where Huffman's own is longer, weights are halved until it is
// not, which costs next to nothing.
func (h *huffman) build(limit uint8) {
	for shift := uint(0); ; shift++ {
		if h.widths(shift) <= limit {
			break
		}
	}
	var next [17]uint16
	var of [17]uint16
	for s := range h.n {
		of[h.width[s]]++
	}
	of[0] = 0
	for w := 1; w < len(next); w++ {
		next[w] = (next[w-1] + of[w-1]) << 1
	}
	for s := range h.n {
		if w := h.width[s]; w > 0 {
			h.code[s] = bits.Reverse16(next[w]) >> (16 - w)
			next[w]++
		}
	}
}

// widths computes the widths for counts of which the last bits are dropped, and returns the largest.
func (h *huffman) widths(shift uint) uint8 {
	n := 0
	for s := range h.n {
		h.width[s] = 0
		if c := h.count[s]; c > 0 {
			h.leaf[n] = max(c>>shift, 1)<<9 | uint32(s)
			n++
		}
	}
	leaves := h.leaf[:n]
	slices.Sort(leaves)
	if n < 2 {
		for _, l := range leaves {
			h.width[l&511] = 1
		}
		return 1
	}
	// Both leaves and inner nodes come in the order of their weights: the two lightest are at the front of the two queues. Nodes
	// are numbered leaves first.
	nextLeaf, nextInner := 0, 0
	for made := range n - 1 {
		sum := uint32(0)
		for range 2 {
			if nextLeaf < n && (nextInner == made || leaves[nextLeaf]>>9 <= h.weight[nextInner]) {
				sum += leaves[nextLeaf] >> 9
				h.parent[nextLeaf] = uint16(n + made)
				nextLeaf++
			} else {
				sum += h.weight[nextInner]
				h.parent[n+nextInner] = uint16(n + made)
				nextInner++
			}
		}
		h.weight[made] = sum
	}
	// From the root down, the depth of a node is that of its parent and one more.
	var depth [2 * literals]uint8
	largest := uint8(0)
	for i := 2*n - 3; i >= 0; i-- {
		depth[i] = depth[h.parent[i]] + 1
		if i < n {
			h.width[leaves[i]&511] = depth[i]
			largest = max(largest, depth[i])
		}
	}
	return largest
}
