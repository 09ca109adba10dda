package format

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
)

// jpeg is one 8-bit gray baseline image, made by an encoder of our own in integer arithmetic, so that the same pixels give the same
// bytes on every machine and with every release of Go.
//
// A file's size is fixed before its pixels are known. It is the size that random pixels need, and a little more; what is left over
// are fill bytes before the last marker, which JPEG allows there. Should pixels need more than they have, the last blocks of the
// image become plain. With exact sizing the quantisers are chosen so that the image, of DLIO's dimensions, fills the record; with
// encoded sizing they are those of quality 75, as DLIO's.
type jpeg struct {
	exact   bool
	tables  *jpegTables
	writers *sync.Pool
	readers *sync.Pool
}

func newJPEG(s Spec) (Format, error) {
	exact, err := s.exact()
	if err != nil {
		return nil, err
	}
	return jpeg{exact, newJPEGTables(),
		&sync.Pool{New: func() any { return new(jpegEncoder) }},
		&sync.Pool{New: func() any { return &reader{format: "jpeg"} }}}, nil
}

func (jpeg) Name() string { return "jpeg" }

const (
	// jpegHeader is the bytes before the scan: start 2, JFIF 18, quantisers 69, frame 13, code tables 33 and 183, scan header 10.
	jpegHeader = 2 + 18 + 69 + 13 + 33 + 183 + 10
	// jpegEnd is the end marker, and room for what may still be stuffed when it is decided whether a block fits.
	jpegEnd = 2 + 5
	// plainBits is what a block takes that differs in nothing from the one before: codes for no change and for the end of the block.
	plainBits  = 2 + 4
	plainBlock = 0b00_1010
)

// jpegPlan is what is fixed before the pixels.
type jpegPlan struct {
	picture
	size  int64 // of the file
	quant [64]uint8
	// wrap is true if blocks that stick out of the image go on with other pixels of it rather than repeat the last: they take as
	// many bits as the others then.
	wrap bool
}

func (p picture) blocks() (down, across int64) { return (p.height + 7) / 8, (p.width + 7) / 8 }

func (f jpeg) plan(l Layout) (jpegPlan, error) {
	pic, err := newPicture(l)
	if err != nil {
		return jpegPlan{}, fmt.Errorf("jpeg: %w", err)
	}
	p := jpegPlan{picture: pic, size: pic.bytes, wrap: f.exact, quant: f.tables.quality75}
	down, across := pic.blocks()
	n := down * across
	if !f.exact {
		t := f.tables
		bits := (down-1)*((across-1)*t.edge(8, 8)+t.edge(8, pic.width)) + (across-1)*t.edge(pic.height, 8) + t.edge(pic.height, pic.width)
		p.size = jpegHeader + (bits/16+spare(n)+7)/8 + jpegEnd
		return p, nil
	}
	least := jpegHeader + (n*plainBits+7)/8 + jpegEnd
	if p.size < least {
		return p, fmt.Errorf("jpeg: %w", tooSmall(pic, least))
	}
	p.quant = f.tables.quantFor(((p.size-jpegHeader-jpegEnd)*8 - spare(n)) * 16 / n)
	return p, nil
}

// spare is how many bits more than expected n blocks of random pixels get: four times the spread of their sum, 18 bits a block with
// the quantisers of exact sizing, 10 with quality 75.
func spare(n int64) int64 { return 4 * 18 * isqrt(n) }

// edge returns the average bits, in sixteenths, of the last block of so many rows and columns with quality 75.
func (t *jpegTables) edge(rows, columns int64) int64 {
	return int64(t.edges[8*((rows-1)%8)+(columns-1)%8])
}

// isqrt returns the square root of n, at most 2^32, rounded down.
func isqrt(n int64) int64 {
	r := int64(0)
	for bit := int64(1) << 16; bit > 0; bit >>= 1 {
		if (r+bit)*(r+bit) <= n {
			r += bit
		}
	}
	return r
}

// quantFor returns the finest quantisers with which a block of random pixels takes at most the given sixteenths of a bit: q for
// most coefficients, q+1 for the others, those of the highest frequency.
func (t *jpegTables) quantFor(bits int64) (quant [64]uint8) {
	q := 1
	for q < len(t.noise) && int64(t.noise[q]) > bits {
		q++
	}
	// t.noise[q] fits, or nothing does. Go back towards q-1 as far as there is room: it falls almost evenly in between.
	fine := int64(0)
	if q > 1 && q < len(t.noise) {
		fine = 64 * (bits - int64(t.noise[q])) / int64(t.noise[q-1]-t.noise[q])
	}
	q = min(q, len(t.noise)-1)
	for i := range quant {
		quant[i] = uint8(q)
		if int64(i) < fine {
			quant[i]--
		}
	}
	return quant
}

func (f jpeg) Size(l Layout) (int64, error) {
	p, err := f.plan(l)
	return p.size, err
}

func (f jpeg) Write(w io.Writer, l Layout, c Content, buf []byte) error {
	p, err := f.plan(l)
	if err != nil {
		return err
	}
	out := writer{w: w, buf: buffer(buf)}
	e := f.writers.Get().(*jpegEncoder)
	defer f.writers.Put(e)
	if strip := p.stripBytes(); int64(len(out.buf)) >= strip+MinBuffer {
		cut := int64(len(out.buf)) - strip
		out.buf, e.strip = out.buf[:cut], out.buf[cut:]
		defer func() { e.strip = nil }()
	} else if int64(len(e.strip)) < strip {
		e.strip = make([]byte, strip)
	}
	if err := out.write(f.header(p)); err != nil {
		return err
	}
	n, err := e.scan(&out, f.tables, p, c)
	if err != nil {
		return err
	}
	for left := p.size - jpegHeader - n - 2; left > 0; {
		fill, err := out.space(left)
		if err != nil {
			return err
		}
		for i := range fill {
			fill[i] = 0xff
		}
		left -= int64(len(fill))
	}
	if err := out.write([]byte{0xff, markerEOI}); err != nil {
		return err
	}
	return out.flush()
}

// The markers that are written or looked at: a byte 0xff comes before each.
const (
	markerSOF0 = 0xc0
	markerSOF2 = 0xc2
	markerDHT  = 0xc4
	markerRST0 = 0xd0
	markerRST7 = 0xd7
	markerSOI  = 0xd8
	markerEOI  = 0xd9
	markerSOS  = 0xda
	markerDQT  = 0xdb
	markerAPP0 = 0xe0
)

// header returns everything before the scan.
func (f jpeg) header(p jpegPlan) []byte {
	h := make([]byte, 0, jpegHeader)
	segment := func(marker byte, parts ...string) {
		n := 2
		for _, s := range parts {
			n += len(s)
		}
		h = binary.BigEndian.AppendUint16(append(h, 0xff, marker), uint16(n))
		for _, s := range parts {
			h = append(h, s...)
		}
	}
	h = append(h, 0xff, markerSOI)
	segment(markerAPP0, "JFIF\x00", "\x01\x01\x00\x00\x01\x00\x01\x00\x00") // version 1.1, square pixels, no thumbnail
	segment(markerDQT, "\x00", string(p.quant[:]))
	segment(markerSOF0, "\x08", string(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, uint16(p.height)), uint16(p.width))),
		"\x01", "\x01\x11\x00")
	segment(markerDHT, "\x00", dcCounts, f.tables.dcValues)
	segment(markerDHT, "\x10", acCounts, f.tables.acValues)
	segment(markerSOS, "\x01", "\x01\x00", "\x00\x3f\x00")
	return h
}

// The code tables are the usual ones for brightness (ITU-T T.81, tables K.3 and K.5): how many codes there are of each length, and
// what they stand for.
const (
	dcCounts    = "\x00\x01\x05\x01\x01\x01\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00"
	acCounts    = "\x00\x02\x01\x03\x03\x02\x04\x03\x05\x05\x04\x04\x00\x00\x01\x7d"
	dcValuesHex = "000102030405060708090a0b"
	acValuesHex = "01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728292a" +
		"3435363738393a434445464748494a535455565758595a636465666768696a737475767778797a838485868788898a929394959697" +
		"98999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4" +
		"f5f6f7f8f9fa"
	// quality75Hex are the quantisers of quality 75 (table K.1, halved), in zigzag order.
	quality75Hex = "080606070605080707070909080a0c140d0c0b0b0c1912130f141d1a1f1e1d1a1c1c20242e2720222c231c1c2837292c30313434341f" +
		"27393d38323c2e333432"
)

// jpegCode is one code of a table.
type jpegCode struct {
	bits uint16
	n    uint8 // length; 0 if there is no such code
}

// jpegTables is everything that is computed once.
type jpegTables struct {
	dcValues, acValues string
	quality75          [64]uint8
	dc, ac             [256]jpegCode
	// noise is how many sixteenths of a bit a block of random pixels takes on average if all quantisers are q, rounded up. edges is
	// the same with the quantisers of quality 75 for a block of which only the first rows and columns are random and the others
	// repeat the last: edges[8*(rows-1)+columns-1].
	noise [256]uint16
	edges [64]uint16
	// zigzag is the place of coefficient i of the zigzag order in a block of rows.
	zigzag [64]uint8
}

func newJPEGTables() *jpegTables {
	t := &jpegTables{}
	t.dcValues, t.acValues = unhex(dcValuesHex), unhex(acValuesHex)
	copy(t.quality75[:], unhex(quality75Hex))
	for i := range t.noise {
		t.noise[i] = binary.BigEndian.Uint16([]byte(unhex(noiseHex[4*i : 4*i+4])))
	}
	for i := range t.edges {
		t.edges[i] = binary.BigEndian.Uint16([]byte(unhex(edgesHex[4*i : 4*i+4])))
	}
	assign(&t.dc, dcCounts, t.dcValues)
	assign(&t.ac, acCounts, t.acValues)
	for i, x, y := 0, 0, 0; i < 64; i++ {
		t.zigzag[i] = uint8(8*y + x)
		switch up := (x+y)%2 == 0; {
		case up && x == 7, !up && y < 7 && x == 0:
			y++
		case up && y == 0, !up && y == 7:
			x++
		case up:
			x, y = x+1, y-1
		default:
			x, y = x-1, y+1
		}
	}
	return t
}

func unhex(s string) string {
	b, _ := hex.DecodeString(s) // of constants
	return string(b)
}

// assign gives every value its code: the shortest first, counting up.
func assign(codes *[256]jpegCode, counts, values string) {
	code, k := 0, 0
	for n := range len(counts) {
		for range counts[n] {
			codes[values[k]] = jpegCode{uint16(code), uint8(n + 1)}
			code++
			k++
		}
		code <<= 1
	}
}
