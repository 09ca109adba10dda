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
	coeffs [64]int32
	// recip are 2^30 / quantiser, in zigzag order.
	recip [64]int64
	dc    int32
	bits  jpegBits
	block []byte
}

// jpegBits puts bits into bytes, and a zero byte after each byte 0xff, as the scan of an image demands.
type jpegBits struct {
	acc uint64
	n   uint // bits in acc that are not bytes yet, below 32 between two calls
}

func (b *jpegBits) put(dst []byte, code uint32, n uint) []byte {
	b.acc = b.acc<<n | uint64(code)
	if b.n += n; b.n < 32 {
		return dst
	}
	b.n -= 32
	v := uint32(b.acc >> b.n)
	if (^v-0x01010101)&v&0x80808080 == 0 { // no byte of ^v is 0
		return binary.BigEndian.AppendUint32(dst, v)
	}
	return stuffed(dst, v, 32)
}

// stuffed appends the n last bits of v, a multiple of 8.
func stuffed(dst []byte, v uint32, n uint) []byte {
	for n > 0 {
		n -= 8
		if dst = append(dst, byte(v>>n)); byte(v>>n) == 0xff {
			dst = append(dst, 0)
		}
	}
	return dst
}

// end appends what is left, filled up to a byte with ones.
func (b *jpegBits) end(dst []byte) []byte {
	fill := -b.n & 7
	return stuffed(dst, uint32(b.acc<<fill|1<<fill-1), b.n+fill)
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
			dc := e.transform(int(8 * x))
			e.block = e.encode(t, e.block[:0], dc)
			if int64(len(e.block))*8+int64(e.bits.n)+blocks*plainBits > left*8 {
				e.bits = before
				e.block = e.bits.put(e.block[:0], plainBlock, plainBits)
			} else {
				e.dc = dc
			}
			if err := out.write(e.block); err != nil {
				return n, err
			}
			n, left = n+int64(len(e.block)), left-int64(len(e.block))
		}
	}
	e.block = e.bits.end(e.block[:0])
	return n + int64(len(e.block)), out.write(e.block)
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

// dct8 transforms eight numbers that are step apart in v, and drops the given bits of the fraction.
func dct8(v *[64]int32, at, step int, drop uint) {
	x := func(i int) *int32 { return &v[at+i*step] }
	s0, d0 := *x(0)+*x(7), *x(0)-*x(7)
	s1, d1 := *x(1)+*x(6), *x(1)-*x(6)
	s2, d2 := *x(2)+*x(5), *x(2)-*x(5)
	s3, d3 := *x(3)+*x(4), *x(3)-*x(4)
	half := int32(1) << drop >> 1
	*x(0) = (cos4*(s0+s1+s2+s3) + half) >> drop
	*x(4) = (cos4*(s0-s1-s2+s3) + half) >> drop
	*x(2) = (cos2*(s0-s3) + cos6*(s1-s2) + half) >> drop
	*x(6) = (cos6*(s0-s3) - cos2*(s1-s2) + half) >> drop
	*x(1) = (cos1*d0 + cos3*d1 + cos5*d2 + cos7*d3 + half) >> drop
	*x(3) = (cos3*d0 - cos7*d1 - cos1*d2 - cos5*d3 + half) >> drop
	*x(5) = (cos5*d0 - cos1*d1 + cos7*d2 + cos3*d3 + half) >> drop
	*x(7) = (cos7*d0 - cos5*d1 + cos3*d2 - cos1*d3 + half) >> drop
}

// transform computes the coefficients of the block at column x of the strip, with cosBits+passBits bits of fraction, and returns
// the first, quantised.
func (e *jpegEncoder) transform(x int) int32 {
	for r := range 8 {
		for i, p := range e.strip[r*e.stride+x : r*e.stride+x+8] {
			e.coeffs[8*r+i] = int32(p) - 128
		}
		dct8(&e.coeffs, 8*r, 1, cosBits-passBits)
	}
	for i := range 8 {
		dct8(&e.coeffs, i, 8, 0)
	}
	return e.quantised(0, 0)
}

// quantised returns coefficient i of the zigzag order, which stands at the given place, divided by its quantiser and rounded.
func (e *jpegEncoder) quantised(i int, place uint8) int32 {
	const fraction = cosBits + passBits
	v := int64(e.coeffs[place])
	sign := v >> 63
	v = (v ^ sign) - sign
	v = (v*e.recip[i]>>30 + 1<<(fraction-1)) >> fraction
	v = min(v, 1023) // what baseline images have room for; only rounding leads there
	return int32((v ^ sign) - sign)
}

// encode appends the block's codes to dst; dc is its first coefficient.
func (e *jpegEncoder) encode(t *jpegTables, dst []byte, dc int32) []byte {
	size, extra := category(dc - e.dc)
	dst = e.symbol(dst, t.dc[size], size, extra)
	run := 0
	for i := 1; i < 64; i++ {
		v := e.quantised(i, t.zigzag[i])
		if v == 0 {
			run++
			continue
		}
		for ; run > 15; run -= 16 {
			dst = e.symbol(dst, t.ac[0xf0], 0, 0)
		}
		size, extra := category(v)
		dst = e.symbol(dst, t.ac[uint(run)<<4|size], size, extra)
		run = 0
	}
	if run > 0 {
		dst = e.symbol(dst, t.ac[0], 0, 0)
	}
	return dst
}

func (e *jpegEncoder) symbol(dst []byte, c jpegCode, size uint, extra uint32) []byte {
	return e.bits.put(dst, uint32(c.bits)<<size|extra, uint(c.n)+size)
}

// category returns how many bits a value has, and those bits: of the value, or of the value less one if it is negative.
func category(v int32) (size uint, extra uint32) {
	a, extra := v, uint32(v)
	if v < 0 {
		a, extra = -v, uint32(v-1)
	}
	size = uint(bits.Len32(uint32(a)))
	return size, extra & (1<<size - 1)
}
