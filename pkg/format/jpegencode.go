package format

import (
	"encoding/binary"
	"math/bits"
)

// jpegEncoder is the memory for encoding one image.
type jpegEncoder struct {
	// strip are the pixels of one row of blocks, stride bytes from one row of pixels to the next.
	strip  []byte
	stride int
	coeffs [64]int32 // of the block, in rows
	zigzag [64]int32 // quantised, in zigzag order
	// recip are 2^30 / quantiser, in zigzag order.
	recip [64]int64
	dc    int32
	bits  jpegBits
	// raw are the bytes of a block, block the same stuffed.
	raw, block [jpegBlock]byte
}

// jpegBits puts bits into bytes. It does so without asking how many are waiting, which nobody can predict where pixels are random.
type jpegBits struct {
	acc uint64 // bits that are not bytes yet, the first one highest
	n   uint   // how many, below 8
}

// put writes the n last bits of code, at most 32, after those that wait: to raw[at:], and a few bytes beyond the last.
func (b *jpegBits) put(raw *[jpegBlock]byte, at, code, n uint) uint {
	b.n += n
	b.acc |= uint64(code) << (64 - b.n)
	binary.BigEndian.PutUint64(raw[at&(jpegBlock/2-1):], b.acc)
	b.acc <<= b.n &^ 7
	at += b.n / 8
	b.n &= 7
	return at
}

// jpegBlock is room for the bytes of a block, twice: 64 numbers of 27 bits are less than half.
const jpegBlock = 512

// stuff copies the bytes of a scan, with a zero byte after each byte 0xff, and returns how many there are.
func stuff(dst, raw *[jpegBlock]byte, n uint) int {
	at := 0
	for i := uint(0); i < n; i += 4 {
		v := binary.BigEndian.Uint32(raw[i&(jpegBlock/2-1):])
		if i+4 <= n && (^v-0x01010101)&v&0x80808080 == 0 { // no byte of ^v is 0
			binary.BigEndian.PutUint32(dst[at:], v)
			at += 4
			continue
		}
		for j := i; j < min(i+4, n); j++ {
			dst[at] = byte(v >> 24)
			if at++; byte(v>>24) == 0xff {
				dst[at] = 0
				at++
			}
			v <<= 8
		}
	}
	return at
}

// scan writes the scan of an image, which the plan gave room for, and returns its bytes.
func (e *jpegEncoder) scan(out *writer, t *jpegTables, p jpegPlan, c Content) (int64, error) {
	for i, q := range p.quant {
		e.recip[i] = 1 << 30 / int64(q)
	}
	e.dc, e.bits = 0, jpegBits{}
	down, across := p.blocks()
	left, blocks := p.size-jpegHeader-jpegEnd, down*across
	var n int64
	for y := range down {
		e.fill(p, c, 8*y)
		for x := range across {
			blocks--
			// What follows must find room, at least as plain blocks.
			before := e.bits
			dc := e.transform(t, int(8*x))
			bytes := e.encode(t, dc)
			if int64(bytes)*8+int64(e.bits.n)+blocks*plainBits > left*8 {
				e.bits = before
				bytes = stuff(&e.block, &e.raw, e.bits.put(&e.raw, 0, plainBlock, plainBits))
			} else {
				e.dc = dc
			}
			if err := out.write(e.block[:bytes]); err != nil {
				return n, err
			}
			n, left = n+int64(bytes), left-int64(bytes)
		}
	}
	// What is left is filled up to a byte with ones.
	fill := -e.bits.n & 7
	last := stuff(&e.block, &e.raw, e.bits.put(&e.raw, 0, 1<<fill-1, fill))
	return n + int64(last), out.write(e.block[:last])
}

// stripBytes is how much memory a strip of the image takes.
func (p jpegPlan) stripBytes() int64 { return 8 * (p.width + 8) }

// fill gets eight rows of pixels from row y on. What lies outside the image is as the plan says.
func (e *jpegEncoder) fill(p jpegPlan, c Content, y int64) {
	if p.wrap { // the next rows, and after the last row the first
		e.stride = int(p.width)
		cyclic(c, e.strip[:8*p.width+8], y*p.width, p.height*p.width)
		return
	}
	// What is read at once goes to the end of the strip; its rows then move to where they belong, which is never behind them.
	stride, have := (p.width+7)&^7, min(8, p.height-y)
	e.stride = int(stride)
	from := e.strip[8*(stride-p.width) : 8*stride]
	c.Fill(from[:have*p.width], y*p.width)
	for r := range int64(8) {
		row := e.strip[r*stride : (r+1)*stride]
		if r >= have {
			copy(row, e.strip[(have-1)*stride:])
			continue
		}
		copy(row[:p.width], from[r*p.width:])
		for i := p.width; i < stride; i++ {
			row[i] = row[p.width-1]
		}
	}
}

// cosines of k pi/16, halved, in units of 2^-13.
const (
	cos1, cos2, cos3, cos4, cos5, cos6, cos7 = 4017, 3784, 3406, 2896, 2276, 1567, 799
	// cosBits are the fraction's bits of the cosines, passBits those that the first of the two passes leaves.
	cosBits, passBits = 13, 4
)

// dct8 transforms eight numbers.
func dct8(x0, x1, x2, x3, x4, x5, x6, x7 int32) (y0, y1, y2, y3, y4, y5, y6, y7 int32) {
	s0, d0 := x0+x7, x0-x7
	s1, d1 := x1+x6, x1-x6
	s2, d2 := x2+x5, x2-x5
	s3, d3 := x3+x4, x3-x4
	return cos4 * (s0 + s1 + s2 + s3), cos1*d0 + cos3*d1 + cos5*d2 + cos7*d3,
		cos2*(s0-s3) + cos6*(s1-s2), cos3*d0 - cos7*d1 - cos1*d2 - cos5*d3,
		cos4 * (s0 - s1 - s2 + s3), cos5*d0 - cos1*d1 + cos7*d2 + cos3*d3,
		cos6*(s0-s3) - cos2*(s1-s2), cos7*d0 - cos5*d1 + cos3*d2 - cos1*d3
}

// transform computes the coefficients of the block at column x of the strip, quantised, and returns the first.
func (e *jpegEncoder) transform(t *jpegTables, x int) int32 {
	const drop, half = cosBits - passBits, 1 << (cosBits - passBits - 1)
	for r := range 8 {
		p := (*[8]byte)(e.strip[r*e.stride+x:])
		y0, y1, y2, y3, y4, y5, y6, y7 := dct8(int32(p[0])-128, int32(p[1])-128, int32(p[2])-128, int32(p[3])-128,
			int32(p[4])-128, int32(p[5])-128, int32(p[6])-128, int32(p[7])-128)
		c := (*[8]int32)(e.coeffs[8*r:])
		c[0], c[1], c[2], c[3] = (y0+half)>>drop, (y1+half)>>drop, (y2+half)>>drop, (y3+half)>>drop
		c[4], c[5], c[6], c[7] = (y4+half)>>drop, (y5+half)>>drop, (y6+half)>>drop, (y7+half)>>drop
	}
	c := &e.coeffs
	for i := range 8 {
		c[i], c[i+8], c[i+16], c[i+24], c[i+32], c[i+40], c[i+48], c[i+56] =
			dct8(c[i], c[i+8], c[i+16], c[i+24], c[i+32], c[i+40], c[i+48], c[i+56])
	}
	// Divided by the quantisers and rounded.
	const fraction = cosBits + passBits
	for i := range e.zigzag {
		v := int64(c[t.zigzag[i]&63])
		sign := v >> 63
		v = (v ^ sign) - sign
		v = (v*e.recip[i]>>30 + 1<<(fraction-1)) >> fraction
		v = min(v, 1023) // what baseline images have room for; only rounding leads there
		e.zigzag[i] = int32((v ^ sign) - sign)
	}
	return e.zigzag[0]
}

// encode writes the block's codes to block and returns their bytes; dc is its first coefficient.
func (e *jpegEncoder) encode(t *jpegTables, dc int32) int {
	size, extra := category(dc - e.dc)
	code := t.dc[size]
	b := e.bits
	at := b.put(&e.raw, 0, uint(code.bits)<<size|extra, uint(code.n)+size)
	run := uint(0)
	for _, v := range e.zigzag[1:] {
		if v == 0 {
			run++
			continue
		}
		for ; run > 15; run -= 16 {
			code := t.ac[0xf0]
			at = b.put(&e.raw, at, uint(code.bits), uint(code.n))
		}
		size, extra := category(v)
		code := t.ac[(run<<4|size)&0xff]
		at = b.put(&e.raw, at, uint(code.bits)<<size|extra, uint(code.n)+size)
		run = 0
	}
	if run > 0 {
		at = b.put(&e.raw, at, uint(t.ac[0].bits), uint(t.ac[0].n))
	}
	e.bits = b
	return stuff(&e.block, &e.raw, at)
}

// category returns how many bits a value has, and those bits: of the value, or of the value less one if it is negative.
func category(v int32) (size, extra uint) {
	sign := v >> 31
	size = uint(bits.Len32(uint32((v ^ sign) - sign)))
	return size & 31, uint(v+sign) & (1<<(size&31) - 1)
}
