package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"math"

	"github.com/ulikunitz/xz/lzma"
)

// xzReader reads the container of xz, with the library's decoder of LZMA2. The library's own reader of the container takes a file that
// ends between two blocks for a whole one, and makes a dictionary as large as a file likes.
type xzReader struct {
	t    *tableReader
	head [1024]byte // the longest header of a block
	kind byte       // of the checksum

	// Blocks of the current stream: their number, and one number of all their sizes, to be compared with the index.
	blocks, sizes uint64
	crc           uint32 // of the index so far
}

const (
	// xzDictionary is the largest dictionary that is made, in bytes: that of xz -9.
	xzDictionary = 64 << 20
	xzLZMA2      = 0x21 // number of the filter
)

// read reads the whole file and feeds its text to t. A file is one stream or several, and zeros behind them, four at a time.
func (x *xzReader) read(t *tableReader) error {
	x.t = t
	defer func() { x.t = nil }()
	z := &t.zip
	if t.out == nil {
		t.out = make([]byte, 64<<10)
	}
	for have := 0; ; have = 4 {
		if err := x.fill(x.head[have:xzHeader]); err != nil {
			return err
		}
		if err := x.stream(); err != nil {
			return err
		}
		for {
			if z.at() == z.size {
				return nil
			}
			if err := x.fill(x.head[:4]); err != nil {
				return err
			}
			if binary.LittleEndian.Uint32(x.head[:]) != 0 {
				break
			}
		}
	}
}

// fill reads p from the file.
func (x *xzReader) fill(p []byte) error {
	q, err := x.t.zip.take(len(p))
	copy(p, q)
	return err
}

// stream reads the stream whose header was read.
func (x *xzReader) stream() error {
	z := &x.t.zip
	flags := [2]byte(x.head[6:8])
	switch {
	case string(x.head[:6]) != "\xfd7zXZ\x00":
		return z.problem("not an xz file: a stream begins otherwise")
	case crc32.ChecksumIEEE(flags[:]) != binary.LittleEndian.Uint32(x.head[8:]):
		return z.problem("checksum of a stream's header is wrong")
	}
	x.kind, x.blocks, x.sizes = flags[1], 0, 0
	if _, ok := x.sum(); !ok || flags[0] != 0 {
		return z.problem(fmt.Sprintf("a stream has the flags %02x %02x; known are no checksum, CRC-32, CRC-64 and SHA-256", flags[0], flags[1]))
	}
	for {
		start := z.at()
		if err := x.fill(x.head[:1]); err != nil {
			return err
		}
		if x.head[0] == 0 {
			return x.index(start, flags)
		}
		if err := x.block(start); err != nil {
			return err
		}
	}
}

// sum makes the checksum of a block, nil where there is none, and false where it is not known.
func (x *xzReader) sum() (hash.Hash, bool) {
	switch x.kind {
	case 0:
		return nil, true
	case 1:
		return crc32.NewIEEE(), true
	case 4:
		return crc64.New(crc64.MakeTable(crc64.ECMA)), true
	case 10:
		return sha256.New(), true
	}
	return nil, false
}

// block reads a block that begins at start, of whose header the first byte was read: its length.
func (x *xzReader) block(start int64) error {
	z := &x.t.zip
	head := x.head[:(int(x.head[0])+1)*4]
	if err := x.fill(head[1:]); err != nil {
		return err
	}
	fields, crc := head[:len(head)-4], binary.LittleEndian.Uint32(head[len(head)-4:])
	if crc32.ChecksumIEEE(fields) != crc {
		return z.problem("checksum of a block's header is wrong")
	}
	flags, fields := fields[1], fields[2:]
	packedSize, textSize := uint64(math.MaxUint64), uint64(math.MaxUint64) // not said
	ok := true
	number := func() uint64 {
		v, n := binary.Uvarint(fields)
		if n <= 0 {
			ok = false
			return 0
		}
		fields = fields[n:]
		return v
	}
	if flags&0x40 != 0 {
		packedSize = number()
	}
	if flags&0x80 != 0 {
		textSize = number()
	}
	filter, properties := number(), number()
	switch {
	case !ok || flags&0x3c != 0 || flags&3 == 0 && filter == xzLZMA2 && (properties != 1 || len(fields) < 1):
		return z.problem("a block's header is not one of xz")
	case flags&3 != 0 || filter != xzLZMA2:
		return z.problem(fmt.Sprintf("a block has %d filters, the first one number %#x; expected LZMA2 alone: pack it with xz, without filters",
			flags&3+1, filter))
	}
	dictionary, err := lzma.DecodeDictCap(fields[0])
	if err != nil || dictionary > xzDictionary {
		return z.problem(fmt.Sprintf("a block asks for a dictionary of %d bytes; at most %d are made: pack it with xz -9 or less", dictionary, xzDictionary))
	}
	if len(bytes.Trim(fields[1:], "\x00")) > 0 {
		return z.problem("a block's header is not one of xz")
	}
	begin := z.at()
	text, sum, err := x.chunks(int(dictionary), textSize)
	if err != nil {
		return err
	}
	packed := z.at() - begin
	if textSize != math.MaxUint64 && text != textSize || packedSize != math.MaxUint64 && uint64(packed) != packedSize {
		return z.problem(fmt.Sprintf("a block has %d bytes and %d of text, its header says otherwise", packed, text))
	}
	if err := x.padding(-(z.at() - start) & 3); err != nil {
		return err
	}
	if err := x.fill(x.head[:len(sum)]); err != nil {
		return err
	}
	if !bytes.Equal(sum, x.head[:len(sum)]) {
		return z.problem("checksum of a block is wrong")
	}
	x.blocks++
	x.add(uint64(begin - start + packed + int64(len(sum))))
	x.add(text)
	return nil
}

// add takes one more size into the number of all sizes.
func (x *xzReader) add(size uint64) { x.sizes = (x.sizes ^ size) * 0x100000001b3 } // FNV-1a

// padding reads n zeros.
func (x *xzReader) padding(n int64) error {
	if err := x.fill(x.head[:n]); err != nil {
		return err
	}
	x.crc = crc32.Update(x.crc, crc32.IEEETable, x.head[:n])
	if len(bytes.Trim(x.head[:n], "\x00")) > 0 {
		return x.t.zip.problem("padding is not zeros")
	}
	return nil
}

// chunks reads a block's LZMA2, and returns how much text it has and its checksum in the order in which it is written.
func (x *xzReader) chunks(dictionary int, most uint64) (text uint64, sum []byte, err error) {
	t := x.t
	check, _ := x.sum()
	r, err := lzma.Reader2Config{DictCap: max(dictionary, lzma.MinDictCap)}.NewReader2(t.packed(t.zip.size - t.zip.at()))
	for err == nil {
		var n int
		n, err = r.Read(t.out)
		if check != nil {
			_, _ = check.Write(t.out[:n])
		}
		if text += uint64(n); text > most {
			return 0, nil, t.zip.problem(fmt.Sprintf("a block has more than %d bytes of text, which its header says", most))
		}
		if ferr := t.feed(t.out[:n]); ferr != nil {
			return 0, nil, ferr
		}
	}
	if !errors.Is(err, io.EOF) {
		return 0, nil, t.broken("xz", err)
	}
	switch c := check.(type) {
	case hash.Hash32:
		return text, binary.LittleEndian.AppendUint32(nil, c.Sum32()), nil
	case hash.Hash64:
		return text, binary.LittleEndian.AppendUint64(nil, c.Sum64()), nil
	case hash.Hash:
		return text, c.Sum(nil), nil
	}
	return text, nil, nil
}

// index reads the index that begins at start, behind its first byte, and the end of the stream.
func (x *xzReader) index(start int64, flags [2]byte) error {
	z := &x.t.zip
	x.crc = crc32.ChecksumIEEE([]byte{0})
	blocks, sizes := x.blocks, x.sizes
	n, err := x.number()
	if err != nil {
		return err
	}
	x.sizes = 0
	if n == blocks {
		for range 2 * n {
			v, err := x.number()
			if err != nil {
				return err
			}
			x.add(v)
		}
	}
	if n != blocks || x.sizes != sizes {
		return z.problem("the index does not describe the blocks before it")
	}
	if err := x.padding(-(z.at() - start) & 3); err != nil {
		return err
	}
	crc, size := x.crc, (z.at()-start)/4
	if err := x.fill(x.head[:4+xzHeader]); err != nil {
		return err
	}
	footer := x.head[4 : 4+xzHeader]
	switch {
	case binary.LittleEndian.Uint32(x.head[:]) != crc:
		return z.problem("checksum of the index is wrong")
	case binary.LittleEndian.Uint32(footer) != crc32.ChecksumIEEE(footer[4:10]):
		return z.problem("checksum of a stream's end is wrong")
	case int64(binary.LittleEndian.Uint32(footer[4:])) != size || [2]byte(footer[8:10]) != flags || string(footer[10:]) != "YZ":
		return z.problem("a stream's end does not belong to what is before it")
	}
	return nil
}

// number reads a number of the index, seven bits a byte.
func (x *xzReader) number() (v uint64, err error) {
	for shift := 0; shift < 63; shift += 7 {
		p, err := x.t.zip.take(1)
		if err != nil {
			return 0, err
		}
		x.crc = crc32.Update(x.crc, crc32.IEEETable, p)
		v |= uint64(p[0]&127) << shift
		if p[0] < 128 {
			return v, nil
		}
	}
	return 0, x.t.zip.problem("a number of the index is longer than 9 bytes")
}
