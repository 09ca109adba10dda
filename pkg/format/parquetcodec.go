package format

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Numbers of parquet's compressions.
const (
	pqUncompressed, pqSnappy, pqGzip, pqBrotli, pqZstd, pqLZ4Raw = 0, 1, 2, 4, 6, 7

	// maxParquetPage bounds the memory that a page of a file may ask for when it is decompressed.
	maxParquetPage = 1<<30 + 1<<20
	// gzipHead is a gzip file's head: deflated, no name, no time, unknown system. A checksum and a length of 4 bytes each follow.
	gzipHead = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
)

// parquetCodec is how pages are compressed.
//
// snappy and lz4 only replace what was there before, four bytes and more; random numbers have no such thing, so that what these two
// write is the numbers with a few bytes before them. That is what is written here, whatever the content. gzip and zstd also give
// frequent bytes fewer bits, which makes random floating-point numbers below 1 smaller by an eighth. gzip is the package's own
// deflater; zstd is a library's, pinned by golden values.
type parquetCodec struct {
	number   int64
	compress bool
	// most is the largest size of n bytes compressed, and the only one unless compress is true.
	most func(n int64) int64
	// prefix appends what stands before n bytes that stay as they are.
	prefix  func(p []byte, n int64) []byte
	packers *sync.Pool
}

func parquetCodecOf(word string) (parquetCodec, error) {
	switch word {
	case "", "none":
		return literal(pqUncompressed, func(p []byte, n int64) []byte { return p }), nil
	case "snappy":
		return literal(pqSnappy, snappyLiteral), nil
	case "lz4":
		return literal(pqLZ4Raw, lz4Literal), nil
	case "gzip":
		return compressing(pqGzip, gzipBound, newGzipPacker), nil
	case "zstd":
		return compressing(pqZstd, zstdBound, func() *parquetPacker {
			// Bytes that do not repeat get a code, too, as the reference encoder gives them one.
			enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault),
				zstd.WithEncoderCRC(false), zstd.WithAllLitEntropyCompression(true), zstd.WithWindowSize(parquetPage), zstd.WithLowerEncoderMem(true))
			return &parquetPacker{compress: func(dst *memory, src []byte) error {
				if err == nil {
					dst.b = enc.EncodeAll(src, dst.b)
				}
				return err
			}}
		}), nil
	}
	return parquetCodec{}, fmt.Errorf("dataset.compression is %q; parquet files have: none, snappy, gzip, lz4, zstd", word)
}

func literal(number int64, prefix func([]byte, int64) []byte) parquetCodec {
	return parquetCodec{number: number, prefix: prefix, most: func(n int64) int64 {
		// Long runs of length bytes are lz4's, one for each 255 bytes; only their number counts here.
		if number == pqLZ4Raw && n >= 15 {
			return n + 2 + (n-15)/255
		}
		return n + int64(len(prefix(nil, n)))
	}}
}

// snappyLiteral appends snappy's head of n bytes, at least 1, that are one literal.
func snappyLiteral(p []byte, n int64) []byte {
	p = binary.AppendUvarint(p, uint64(n))
	switch m := n - 1; {
	case m < 60:
		return append(p, byte(m)<<2)
	case m < 1<<8:
		return append(p, 60<<2, byte(m))
	case m < 1<<16:
		return append(p, 61<<2, byte(m), byte(m>>8))
	case m < 1<<24:
		return append(p, 62<<2, byte(m), byte(m>>8), byte(m>>16))
	default:
		return binary.LittleEndian.AppendUint32(append(p, 63<<2), uint32(m))
	}
}

// lz4Literal appends the head of an lz4 block of n literal bytes.
func lz4Literal(p []byte, n int64) []byte {
	if n < 15 {
		return append(p, byte(n)<<4)
	}
	p = append(p, 15<<4)
	for n -= 15; n >= 255; n -= 255 {
		p = append(p, 255)
	}
	return append(p, byte(n))
}

// memory is an io.Writer.
type memory struct{ b []byte }

func (m *memory) Write(p []byte) (int, error) {
	m.b = append(m.b, p...)
	return len(p), nil
}

// parquetPacker compresses pages.
type parquetPacker struct {
	compress   func(dst *memory, src []byte) error
	plain, out memory
	buf        [16 << 10]byte
}

func compressing(number int64, most func(int64) int64, pack func() *parquetPacker) parquetCodec {
	return parquetCodec{number: number, compress: true, most: most, packers: &sync.Pool{New: func() any { return pack() }}}
}

func gzipBound(n int64) int64 { return deflateBound(n) + int64(len(gzipHead)) + 8 }

// zstdBound is generous: a frame has a head of some bytes, and each block of 128 KiB one of three.
func zstdBound(n int64) int64 { return n + n>>12 + 64 }

func newGzipPacker() *parquetPacker {
	d, buf := newDeflater(), make([]byte, 16<<10)
	return &parquetPacker{compress: func(dst *memory, src []byte) error {
		out := writer{w: dst, buf: buf}
		if err := out.write([]byte(gzipHead)); err != nil {
			return err
		}
		d.reset(&out)
		if err := d.write(src); err != nil {
			return err
		}
		if _, err := d.close(); err != nil {
			return err
		}
		end := binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(src))
		if err := out.write(binary.LittleEndian.AppendUint32(end, uint32(len(src)))); err != nil {
			return err
		}
		return out.flush()
	}}
}

// pack returns the page of the given size that body writes, compressed. It is valid until the next call.
func (p *parquetPacker) pack(size int64, body func(w *writer) error) ([]byte, error) {
	p.plain.b, p.out.b = p.plain.b[:0], p.out.b[:0]
	w := writer{w: &p.plain, buf: p.buf[:]}
	if err := body(&w); err != nil {
		return nil, err
	}
	if err := w.flush(); err != nil {
		return nil, err
	}
	if int64(len(p.plain.b)) != size {
		return nil, fmt.Errorf("parquet: a page of %d bytes has %d: a fault of this program", size, len(p.plain.b))
	}
	err := p.compress(&p.out, p.plain.b)
	return p.out.b, err
}

// parquetUnpacker decompresses pages.
type parquetUnpacker struct {
	gz      *gzip.Reader
	zstd    *zstd.Decoder
	src     packed
	in, out []byte
}

// page reads a page of size bytes that are plain bytes decompressed, and throws them away.
func (u *parquetUnpacker) page(r *reader, codec, size, plain int64) error {
	if plain > maxParquetPage || size > maxParquetPage {
		return r.problem(fmt.Sprintf("a page of %d bytes, %d decompressed; there may be %d", size, plain, maxParquetPage))
	}
	u.src = packed{from: r, left: size}
	var n int64
	var err error
	switch codec {
	case pqGzip:
		n, err = u.gunzip(plain)
	case pqZstd:
		n, err = u.unzstd(plain)
	case pqSnappy, pqLZ4Raw:
		n, err = u.block(codec, size, plain)
	default:
		return r.problem(fmt.Sprintf("pages compressed by parquet's codec %d; known are 0 (none), 1 (snappy), 2 (gzip), 6 (zstd) and 7 (lz4)", codec))
	}
	switch {
	case u.src.err != nil:
		return u.src.err
	case err != nil:
		return &DataError{Format: r.format, Offset: r.at(), Problem: "a damaged page", Err: err}
	case n != plain || u.src.left != 0:
		return r.problem(fmt.Sprintf("a page of %d bytes decompressed; it should have %d", n, plain))
	}
	return nil
}

// discard reads all of src, but not much more than want bytes, and returns how many there were.
func (u *parquetUnpacker) discard(src io.Reader, want int64) (n int64, err error) {
	u.grow(&u.out, 64<<10)
	for n <= want {
		k, err := src.Read(u.out)
		n += int64(k)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (u *parquetUnpacker) gunzip(plain int64) (int64, error) {
	var err error
	if u.gz == nil {
		u.gz, err = gzip.NewReader(&u.src)
		if err != nil {
			u.gz = nil
		}
	} else {
		err = u.gz.Reset(&u.src)
	}
	if err != nil {
		return 0, err
	}
	return u.discard(u.gz, plain)
}

func (u *parquetUnpacker) unzstd(plain int64) (int64, error) {
	var err error
	if u.zstd == nil {
		u.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxParquetPage),
			zstd.WithDecoderMaxWindow(64<<20))
		if err != nil {
			return 0, err
		}
	}
	if err := u.zstd.Reset(&u.src); err != nil {
		return 0, err
	}
	return u.discard(u.zstd, plain)
}

// block decompresses what has to be in memory as a whole. The compressed bytes are read before memory is taken for what they say
// that they become.
func (u *parquetUnpacker) block(codec, size, plain int64) (int64, error) {
	u.in = u.in[:0]
	for have := int64(0); have < size; have = int64(len(u.in)) {
		u.grow(&u.in, min(size, max(64<<10, 2*have)))
		k, err := u.src.Read(u.in[have:])
		u.in = u.in[:have+int64(k)]
		if err != nil {
			return 0, err
		}
	}
	if plain > 255*size { // neither can say more with a byte
		return -1, nil
	}
	u.grow(&u.out, max(plain, 64<<10))
	if codec == pqSnappy {
		n, err := snappy.DecodedLen(u.in)
		if err != nil || int64(n) != plain {
			return int64(n), err
		}
		out, err := snappy.Decode(u.out, u.in)
		return int64(len(out)), err
	}
	n, err := lz4.UncompressBlock(u.in, u.out[:plain])
	return int64(n), err
}

// grow makes *p a slice of n bytes, keeping what is in it.
func (*parquetUnpacker) grow(p *[]byte, n int64) {
	if int64(cap(*p)) < n {
		*p = append(make([]byte, 0, n), *p...)
	}
	*p = (*p)[:n]
}
