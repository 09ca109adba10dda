package format

import "math/bits"

// bzipper compresses to bzip2's format, in blocks of 900,000 bytes, each independent of the others. Like the deflater, its output is
// defined here and pinned by golden values. Of the steps only the choice of Huffman codes is free: bzip2's own way is taken, several
// codes of which each 50 symbols take the shortest, in integers and a fixed order.
type bzipper struct {
	out  *writer // nil: nothing is written, only counted
	bits int64   // written so far
	acc  uint64  // bits that are waiting, the last one lowest
	held uint    // their number, below 8 between calls of put

	block []byte // text in which a run of 4 to 255 equal bytes is 4 of them and the number of the others
	last  int    // the byte before, -1 at the start of a block
	run   int    // how often it stands at the end of the block
	crc   uint32 // of the block's text
	all   uint32 // of all blocks before
	table [256]uint32

	sort      rotations
	column    []byte   // the bytes before the sorted rotations
	symbols   []uint16 // the column moved to front
	counts    [bzipSymbols]uint32
	tables    [bzipTables]huffman
	cost      [bzipSymbols]uint64 // bits of each symbol by all codes, bzipLane bits a code
	selectors []uint8             // the code of each group
}

const (
	bzipBlock    = 900_000 - 19 // as much as bzip2 itself fills of a block
	bzipSymbols  = 258          // 255 places, two digits of runs of the first place, and the end
	bzipTables   = 6
	bzipGroup    = 50 // symbols that share a code
	bzipRounds   = 4
	bzipLongest  = 15 // bits of a symbol; the format takes 20
	bzipLane     = 10 // 50 symbols of 15 bits are less than 2^10
	bzipMagic    = 0x314159265359
	bzipEndMagic = 0x177245385090
)

func newBzipper() *bzipper {
	return &bzipper{block: make([]byte, 0, bzipBlock), table: bzipCRC()}
}

// bzipBound is the most that n bytes of numbers become. A block is never longer than with one flat code of its symbols; numbers are
// written with 16 characters, and the numbers of runs are below 25, so that these are at most 6 bits. With runs of 4 made 5 that is less
// than the text; the rest is for the description of a block.
func bzipBound(n int64) int64 { return n + 128*(n/700_000+1) + 32 }

func (z *bzipper) reset(out *writer) {
	z.out, z.bits, z.acc, z.held, z.all = out, 0, 0, 0, 0
	z.begin()
}

// begin begins a block.
func (z *bzipper) begin() { z.block, z.last, z.run, z.crc = z.block[:0], -1, 0, ^uint32(0) }

func (z *bzipper) write(p []byte) error {
	if z.bits == 0 && len(p) > 0 {
		if err := z.put(0x425a6839, 32); err != nil { // "BZh9"
			return err
		}
	}
	for _, b := range p {
		if len(z.block) > bzipBlock-2 { // a byte adds two at most
			if err := z.flushBlock(); err != nil {
				return err
			}
		}
		z.crc = z.crc<<8 ^ z.table[byte(z.crc>>24)^b]
		if int(b) != z.last {
			z.last, z.run = int(b), 1
			z.block = append(z.block, b)
			continue
		}
		z.run++
		switch {
		case z.run < 4:
			z.block = append(z.block, b)
		case z.run == 4:
			z.block = append(z.block, b, 0)
		default:
			z.block[len(z.block)-1]++
			if z.run == 255 {
				z.last = -1
			}
		}
	}
	return nil
}

// close ends the file and returns its bytes.
func (z *bzipper) close() (int64, error) {
	if len(z.block) > 0 {
		if err := z.flushBlock(); err != nil {
			return 0, err
		}
	}
	if err := z.put(bzipEndMagic, 48); err != nil {
		return 0, err
	}
	if err := z.put(uint64(z.all), 32); err != nil {
		return 0, err
	}
	if err := z.put(0, -z.held&7); err != nil {
		return 0, err
	}
	z.out = nil
	return z.bits / 8, nil
}

// put appends the n lowest bits of v, at most 48, the highest first.
func (z *bzipper) put(v uint64, n uint) error {
	z.bits += int64(n)
	if z.out == nil {
		z.held = (z.held + n) & 7
		return nil
	}
	z.acc = z.acc<<n | v
	z.held += n
	for z.held >= 8 {
		z.held -= 8
		out := z.out
		if out.n == len(out.buf) {
			if err := out.flush(); err != nil {
				return err
			}
		}
		out.buf[out.n] = byte(z.acc >> z.held)
		out.n++
	}
	return nil
}

// flushBlock sorts, codes and writes the block, and begins the next.
func (z *bzipper) flushBlock() error {
	crc := ^z.crc
	z.all = bits.RotateLeft32(z.all, 1) ^ crc
	var origin int
	z.column, origin = z.sort.column(z.block, z.column)
	alphabet := z.moveToFront()
	tables := z.choose(alphabet)
	for _, field := range []struct {
		v uint64
		n uint
	}{{bzipMagic, 48}, {uint64(crc), 32}, {0, 1}, {uint64(origin), 24}} {
		if err := z.put(field.v, field.n); err != nil {
			return err
		}
	}
	if err := z.putUsed(); err != nil {
		return err
	}
	if err := z.putTables(tables, alphabet); err != nil {
		return err
	}
	if z.out == nil {
		n := z.total(tables)
		z.bits += n
		z.held = uint(int64(z.held)+n) & 7
	} else if err := z.putSymbols(); err != nil {
		return err
	}
	z.begin()
	return nil
}

// moveToFront makes symbols of the column: each byte becomes its place in a list, to the front of which it then goes. Repetitions of the
// first place are counted, in digits of 1 and 2 that stand for the symbols 0 and 1, the least first. It returns the number of symbols,
// the end included.
func (z *bzipper) moveToFront() int {
	var places [256]uint8
	used := 0
	for b, there := range z.used() {
		if there {
			places[used] = uint8(b)
			used++
		}
	}
	clear(z.counts[:])
	out, again := z.symbols[:0], 0
	flush := func() {
		for again++; again > 1; again >>= 1 {
			s := uint16(again & 1)
			out = append(out, s)
			z.counts[s]++
		}
		again = 0
	}
	for _, b := range z.column {
		if places[0] == b {
			again++
			continue
		}
		if again > 0 {
			flush()
		}
		before, i := places[0], 1
		for places[i] != b {
			before, places[i] = places[i], before
			i++
		}
		places[i] = before
		places[0] = b
		out = append(out, uint16(i+1))
		z.counts[i+1]++
	}
	if again > 0 {
		flush()
	}
	end := used + 1
	z.symbols = append(out, uint16(end))
	z.counts[end]++
	return used + 2
}

// used says which bytes are in the block.
func (z *bzipper) used() (used [256]bool) {
	for _, b := range z.block {
		used[b] = true
	}
	return used
}

// choose makes codes and selectors, and returns the number of codes.
func (z *bzipper) choose(alphabet int) int {
	n := len(z.symbols)
	tables := bzipTables
	for i, limit := range []int{200, 600, 1200, 2400} {
		if n < limit {
			tables = 2 + i
			break
		}
	}
	z.split(tables, alphabet)
	if z.selectors == nil {
		z.selectors = make([]uint8, 0, (bzipBlock+1)/bzipGroup+1)
	}
	for range bzipRounds {
		z.weigh(tables, alphabet)
		for t := range tables {
			z.tables[t].clear(alphabet)
		}
		z.selectors = z.selectors[:0]
		for at := 0; at < n; at += bzipGroup {
			group := z.symbols[at:min(n, at+bzipGroup)]
			sum := uint64(0)
			for _, s := range group {
				sum += z.cost[s]
			}
			best, least := 0, sum&(1<<bzipLane-1)
			for t := 1; t < tables; t++ {
				if c := sum >> (bzipLane * t) & (1<<bzipLane - 1); c < least {
					best, least = t, c
				}
			}
			z.selectors = append(z.selectors, uint8(best))
			count := &z.tables[best].count
			for _, s := range group {
				count[s]++
			}
		}
		for t := range tables {
			z.code(&z.tables[t], alphabet)
		}
	}
	if groups := int64(len(z.selectors)); z.total(tables)+z.describes(tables, alphabet) > int64(n)*int64(bits.Len(uint(alphabet-1)))+groups {
		// Symbols that have nothing in common but their number.
		tables = 2
		for t := range tables {
			z.tables[t].clear(alphabet)
			z.code(&z.tables[t], alphabet)
		}
		clear(z.selectors)
	}
	return tables
}

// split makes the first codes: each for a part of the symbols, which together occur as often as those of the other parts.
func (z *bzipper) split(tables, alphabet int) {
	left, first := uint32(len(z.symbols)), 0
	for part := tables; part > 0; part-- {
		goal, sum, next := left/uint32(part), uint32(0), first
		for sum < goal && next < alphabet {
			sum += z.counts[next]
			next++
		}
		if next > first+1 && part != tables && part != 1 && (tables-part)%2 == 1 {
			next--
			sum -= z.counts[next]
		}
		h := &z.tables[part-1]
		h.n = alphabet
		for s := range alphabet {
			h.width[s] = bzipLongest
			if s >= first && s < next {
				h.width[s] = 0
			}
		}
		first = next
		left -= sum
	}
}

// weigh lists the bits of each symbol by all codes.
func (z *bzipper) weigh(tables, alphabet int) {
	for s := range alphabet {
		c := uint64(0)
		for t := range tables {
			c |= uint64(z.tables[t].width[s]) << (bzipLane * t)
		}
		z.cost[s] = c
	}
}

// code makes the code of the symbols that were counted. Each symbol must have one, whether it occurs or not.
func (z *bzipper) code(h *huffman, alphabet int) {
	for s := range alphabet {
		h.count[s] = max(h.count[s], 1)
	}
	h.build(bzipLongest)
	for s := range alphabet {
		h.code[s] = bits.Reverse16(h.code[s]) >> (16 - h.width[s])
	}
}

// total is the bits of all symbols.
func (z *bzipper) total(tables int) int64 {
	z.weigh(tables, int(z.tables[0].n))
	n := int64(0)
	for g, t := range z.selectors {
		for _, s := range z.symbols[g*bzipGroup : min(len(z.symbols), (g+1)*bzipGroup)] {
			n += int64(z.cost[s] >> (bzipLane * t) & (1<<bzipLane - 1))
		}
	}
	return n
}

// describes is the bits of selectors and codes, as putTables writes them.
func (z *bzipper) describes(tables, alphabet int) int64 {
	out, n, held := z.out, z.bits, z.held
	z.out = nil
	_ = z.putTables(tables, alphabet) // nothing is written
	measured := z.bits - n
	z.out, z.bits, z.held = out, n, held
	return measured - 3 - 15
}

// putUsed writes which bytes are in the block: which rows of 16, and of each of these which.
func (z *bzipper) putUsed() error {
	used := z.used()
	rows, row := uint64(0), [16]uint64{}
	for b, there := range used {
		if there {
			rows |= 1 << (15 - b/16)
			row[b/16] |= 1 << (15 - b%16)
		}
	}
	if err := z.put(rows, 16); err != nil {
		return err
	}
	for _, r := range row {
		if r == 0 {
			continue
		}
		if err := z.put(r, 16); err != nil {
			return err
		}
	}
	return nil
}

// putTables writes the number of codes and groups, the selectors moved to front in unary, and the widths of each code: the first, and then
// steps up (10) and down (11) and a 0 for each symbol.
func (z *bzipper) putTables(tables, alphabet int) error {
	if err := z.put(uint64(tables)<<15|uint64(len(z.selectors)), 3+15); err != nil {
		return err
	}
	places := [bzipTables]uint8{0, 1, 2, 3, 4, 5}
	for _, t := range z.selectors {
		i := 0
		for places[i] != t {
			i++
		}
		copy(places[1:i+1], places[:i])
		places[0] = t
		if err := z.put(1<<(i+1)-2, uint(i)+1); err != nil {
			return err
		}
	}
	for t := range tables {
		width := z.tables[t].width[:alphabet]
		at := width[0]
		if err := z.put(uint64(at), 5); err != nil {
			return err
		}
		for _, w := range width {
			for ; at < w; at++ {
				if err := z.put(2, 2); err != nil {
					return err
				}
			}
			for ; at > w; at-- {
				if err := z.put(3, 2); err != nil {
					return err
				}
			}
			if err := z.put(0, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (z *bzipper) putSymbols() error {
	for g, t := range z.selectors {
		h := &z.tables[t]
		for _, s := range z.symbols[g*bzipGroup : min(len(z.symbols), (g+1)*bzipGroup)] {
			if err := z.put(uint64(h.code[s]), uint(h.width[s])); err != nil {
				return err
			}
		}
	}
	return nil
}

// bzipCRC makes the table of bzip2's checksum: CRC-32's polynomial, the highest bit first.
func bzipCRC() (table [256]uint32) {
	for i := range table {
		c := uint32(i) << 24
		for range 8 {
			c = c<<1 ^ 0x04c11db7&-(c>>31)
		}
		table[i] = c
	}
	return table
}
