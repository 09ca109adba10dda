package format

import (
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"io"
	"sync"
)

// png is one 8-bit gray image, its rows unfiltered and stored in deflate's uncompressed blocks: pixels are random, so that a
// compressor would gain nothing, and no encoder's version can change the bytes.
//
// With exact sizing the image has the record's width and as many whole rows as fit; what is left over is filled by a private
// ancillary chunk of the content's next bytes, which decoders pass over.
type png struct {
	exact   bool
	readers *sync.Pool
}

func newPNG(s Spec) (Format, error) {
	exact, err := s.exact()
	if err != nil {
		return nil, err
	}
	return png{exact, &sync.Pool{New: func() any { return &reader{format: "png"} }}}, nil
}

func (png) Name() string { return "png" }

const (
	pngSignature = "\x89PNG\r\n\x1a\n"
	// chunkFrame is the length, type and checksum of a chunk.
	chunkFrame = 12
	// pngHeader is the bytes of signature and header chunk.
	pngHeader = len(pngSignature) + chunkFrame + ihdrSize
	ihdrSize  = 13
	// blockBytes is the most that a stored block of deflate holds. Each block has a data chunk of its own.
	blockBytes = 65535
	blockFrame = 5
	// zlibFrame is the bytes of zlib's header and checksum.
	zlibFrame = 2 + 4
	// padType is the type of the chunk that fills up a record: ancillary, private, safe to copy.
	padType = "bpAd"

	pngIHDR, pngIDAT, pngIEND = 0x49484452, 0x49444154, 0x49454e44
)

// pngSize returns the bytes of a file of the given image, without padding.
func pngSize(height, width int64) int64 {
	data := height * (width + 1)
	return int64(pngHeader) + zlibFrame + data + (data+blockBytes-1)/blockBytes*(chunkFrame+blockFrame) + chunkFrame
}

// smallestPNG is the smallest record that an image fits into, whatever is left over.
const smallestPNG = int64(pngHeader) + zlibFrame + chunkFrame + blockFrame + 1 + 1 + chunkFrame + chunkFrame

// plan returns the image of a record, and how many bytes of padding follow it; -1 for no chunk of padding.
func (f png) plan(l Layout) (p picture, pad int64, err error) {
	if p, err = newPicture(l); err != nil {
		return p, 0, fmt.Errorf("png: %w", err)
	}
	if !f.exact {
		return p, -1, nil
	}
	if p.bytes < smallestPNG {
		return p, 0, fmt.Errorf("png: %w", tooSmall(p, smallestPNG))
	}
	// As many rows as fit; what is left over is nothing, or at least a chunk. Where not even one does, a narrower one.
	for ; ; p.width-- {
		for p.height = p.bytes / (p.width + 1); p.height > 0; p.height-- {
			if pad = p.bytes - pngSize(p.height, p.width) - chunkFrame; pad >= 0 || pad == -chunkFrame {
				return p, max(pad, -1), nil
			}
		}
	}
}

func (f png) Size(l Layout) (int64, error) {
	p, _, err := f.plan(l)
	if err != nil {
		return 0, err
	}
	if f.exact {
		return p.bytes, nil
	}
	return pngSize(p.height, p.width), nil
}

func (f png) Write(w io.Writer, l Layout, c Content, buf []byte) error {
	p, pad, err := f.plan(l)
	if err != nil {
		return err
	}
	b := buffer(buf)
	out := pngWriter{writer: writer{w: w, buf: b[len(b)/2:]}, pixels: b[:len(b)/2]}
	if err := out.write([]byte(pngSignature)); err != nil {
		return err
	}
	var header [ihdrSize]byte
	binary.BigEndian.PutUint32(header[0:], uint32(p.width))
	binary.BigEndian.PutUint32(header[4:], uint32(p.height))
	header[8] = 8 // bits; gray, deflate, filters by row, not interlaced
	if err := out.chunk("IHDR", header[:]); err != nil {
		return err
	}
	if err := out.image(c, p.height, p.width); err != nil {
		return err
	}
	if pad >= 0 {
		if err := out.padding(c, p.height*p.width, pad, p.bytes); err != nil {
			return err
		}
	}
	if err := out.chunk("IEND", nil); err != nil {
		return err
	}
	return out.flush()
}

// pngWriter writes chunks.
type pngWriter struct {
	writer
	pixels []byte
	crc    uint32
}

// begin starts a chunk of n bytes; sum and end must follow.
func (w *pngWriter) begin(typ string, n int64) error {
	var head [8]byte
	binary.BigEndian.PutUint32(head[:], uint32(n))
	copy(head[4:], typ)
	w.crc = crc32.ChecksumIEEE(head[4:])
	return w.write(head[:])
}

func (w *pngWriter) sum(p []byte) error {
	w.crc = crc32.Update(w.crc, crc32.IEEETable, p)
	return w.write(p)
}

func (w *pngWriter) end() error { return w.write(binary.BigEndian.AppendUint32(nil, w.crc)) }

func (w *pngWriter) chunk(typ string, data []byte) error {
	if err := w.begin(typ, int64(len(data))); err != nil {
		return err
	}
	if err := w.sum(data); err != nil {
		return err
	}
	return w.end()
}

// image writes the rows, each with a filter byte of 0 before it.
func (w *pngWriter) image(c Content, height, width int64) error {
	total := height * (width + 1)
	adler := adler32.New()
	for off := int64(0); off < total; off += blockBytes {
		n := min(blockBytes, total-off)
		first, last := off == 0, off+n == total
		length := blockFrame + n
		if first {
			length += 2
		}
		if last {
			length += 4
		}
		if err := w.begin("IDAT", length); err != nil {
			return err
		}
		var frame [7]byte
		copy(frame[:], "\x78\x01") // window of 32 KiB, least effort
		if last {
			frame[2] = 1
		}
		binary.LittleEndian.PutUint16(frame[3:], uint16(n))
		binary.LittleEndian.PutUint16(frame[5:], ^uint16(n))
		start := 2
		if first {
			start = 0
		}
		if err := w.sum(frame[start:]); err != nil {
			return err
		}
		for at := off; at < off+n; {
			piece, err := w.space(off + n - at)
			if err != nil {
				return err
			}
			pngRows(c, piece, at, width, w.pixels)
			w.crc = crc32.Update(w.crc, crc32.IEEETable, piece)
			_, _ = adler.Write(piece) // never fails
			at += int64(len(piece))
		}
		if last {
			if err := w.sum(binary.BigEndian.AppendUint32(nil, adler.Sum32())); err != nil {
				return err
			}
		}
		if err := w.end(); err != nil {
			return err
		}
	}
	return nil
}

// pngRows fills dst with bytes [off, off+len(dst)) of the rows with their filter bytes. The content is asked for many rows at once,
// into pixels: it costs by the call where little is asked for.
func pngRows(c Content, dst []byte, off, width int64, pixels []byte) {
	var have []byte
	for len(dst) > 0 {
		row, col := off/(width+1), off%(width+1)
		if col == 0 {
			dst[0] = 0
			dst, off = dst[1:], off+1
			continue
		}
		if len(have) == 0 {
			// Of n bytes of rows at least n / (width + 1) are filters, and at most one more.
			n := int64(len(dst))
			have = pixels[:min(int64(len(pixels)), n-n/(width+1))]
			c.Fill(have, row*width+col-1)
		}
		n := copy(dst[:min(int64(len(dst)), width+1-col)], have)
		dst, have, off = dst[n:], have[n:], off+int64(n)
	}
}

// padding writes a chunk of n bytes of the content from off on.
func (w *pngWriter) padding(c Content, off, n, payload int64) error {
	if err := w.begin(padType, n); err != nil {
		return err
	}
	for n > 0 {
		piece, err := w.space(n)
		if err != nil {
			return err
		}
		cyclic(c, piece, off, payload)
		w.crc = crc32.Update(w.crc, crc32.IEEETable, piece)
		off, n = off+int64(len(piece)), n-int64(len(piece))
	}
	return w.end()
}

// ReadSample reads the whole file, as Pillow does, and checks its chunks: their order, their checksums, and that they end with the
// file. It does not decode the pixels: that is the work of the framework's processor, which a run's computation and preprocessing
// times stand for, and would measure this program's decoder instead of the storage.
func (f png) ReadSample(file io.ReaderAt, size int64, k int, buf []byte) (Sample, error) {
	r := f.readers.Get().(*reader)
	defer f.readers.Put(r)
	defer r.release()
	r.reset(file, size, buf)
	pixels, err := readPNG(r)
	if err != nil {
		return Sample{}, err
	}
	if k != 0 {
		return Sample{}, r.problem(fmt.Sprintf("sample %d is asked for; the file is one image", k))
	}
	if f.exact {
		pixels = size
	}
	return Sample{Logical: pixels, Asked: size}, nil
}

// readPNG walks through the chunks and returns the bytes of the decoded image.
func readPNG(r *reader) (int64, error) {
	if err := r.expect(pngSignature, "no PNG signature"); err != nil {
		return 0, err
	}
	var pixels int64
	var data, ended bool // whether data chunks began, and ended
	for first := true; ; first = false {
		p, err := r.take(8)
		if err != nil {
			return 0, err
		}
		n, typ := int64(binary.BigEndian.Uint32(p)), binary.BigEndian.Uint32(p[4:])
		switch {
		case n > r.size-r.at()-4:
			return 0, r.problem(fmt.Sprintf("a chunk %08x of %d bytes, and %d follow", typ, n, max(0, r.size-r.at()-4)))
		case first != (typ == pngIHDR), first && n != ihdrSize:
			return 0, r.problem(fmt.Sprintf("a chunk %08x of %d bytes; there must be one header, IHDR of %d bytes, at the start", typ, n, ihdrSize))
		}
		idat, iend := typ == pngIDAT, typ == pngIEND
		ended = ended || data && !idat
		if idat && ended {
			return 0, r.problem("image data after chunks that followed image data")
		}
		data = data || idat
		crc := crc32.ChecksumIEEE(p[4:])
		if first {
			if p, err = r.take(ihdrSize); err != nil {
				return 0, err
			}
			crc = crc32.Update(crc, crc32.IEEETable, p)
			if pixels = pngPixels(p); pixels == 0 {
				return 0, r.problem("a header that PNG does not know, or an image without pixels")
			}
		} else if crc, err = r.checksum(crc, n); err != nil {
			return 0, err
		}
		if p, err = r.take(4); err != nil {
			return 0, err
		}
		if sum := binary.BigEndian.Uint32(p); sum != crc {
			return 0, r.problem(fmt.Sprintf("checksum of chunk %08x is %08x, not %08x", typ, crc, sum))
		}
		if !iend {
			continue
		}
		switch {
		case n != 0:
			return 0, r.problem(fmt.Sprintf("an end chunk of %d bytes", n))
		case !data:
			return 0, r.problem("no image data")
		case r.at() != r.size:
			return 0, r.problem(fmt.Sprintf("%d bytes follow the end of the image", r.size-r.at()))
		}
		return pixels, nil
	}
}

// pngPixels returns the bytes of the image that a header describes once it is decoded, 8 or 16 bits a channel; 0 if PNG has no
// such image.
func pngPixels(p []byte) int64 {
	channels := [7]int64{1, 0, 3, 1, 2, 0, 4}
	depths := [7]string{"\x01\x02\x04\x08\x10", "", "\x08\x10", "\x01\x02\x04\x08", "\x08\x10", "", "\x08\x10"}
	width, height := int64(binary.BigEndian.Uint32(p)), int64(binary.BigEndian.Uint32(p[4:]))
	depth, color := p[8], p[9]
	if width > 1<<31-1 || height > 1<<31-1 || color > 6 || p[10] != 0 || p[11] != 0 || p[12] > 1 {
		return 0
	}
	for _, d := range []byte(depths[color]) {
		if d == depth {
			return mul(mul(width, height), channels[color]*(1+int64(depth)/16))
		}
	}
	return 0
}
