package format

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Write's memory beside buf is a page, where pages are compressed, and a few numbers for each chunk.
func (f parquetFormat) Write(w io.Writer, l Layout, c Content, buf []byte) error {
	columns, err := f.table(l)
	if err != nil {
		return err
	}
	b := buffer(buf)
	half := len(b) / 2 &^ 15
	p := parquetWriter{f: f, out: writer{w: w, buf: b[half:]}, work: b[:half], content: c}
	if f.codec.compress {
		p.packer = f.codec.packers.Get().(*parquetPacker)
		defer f.codec.packers.Put(p.packer)
	}
	if err := p.out.write([]byte(parquetMagic)); err != nil {
		return err
	}
	p.at = int64(len(parquetMagic))
	rows, row := int64(l.Samples), l.SampleBytes()
	var sizes []parquetSize // of chunks, where they have to be remembered
	err = f.groups(rows, func(first, n int64) error {
		for i := range columns {
			start := p.at
			plain, err := p.chunk(&columns[i], first*row+n*columns[i].offset, n)
			if err != nil {
				return err
			}
			if f.codec.compress {
				sizes = append(sizes, parquetSize{p.data - start, p.at - start, plain})
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := p.footer(columns, rows, sizes); err != nil {
		return err
	}
	return p.out.flush()
}

// parquetSize is what the footer says of a chunk, its offset apart.
type parquetSize struct{ data, size, plain int64 }

type parquetWriter struct {
	f       parquetFormat
	out     writer
	at      int64 // offset in the file
	data    int64 // offset of the chunk's first page of data
	work    []byte
	content Content
	packer  *parquetPacker
	small   []byte
}

func (p *parquetWriter) write(b []byte) error {
	p.at += int64(len(b))
	return p.out.write(b)
}

// chunk writes the pages of one column of n rows, whose content begins at the given offset, and returns their bytes before
// compression, headers included.
func (p *parquetWriter) chunk(c *parquetColumn, off, n int64) (plain int64, err error) {
	if c.form == storedIndexed {
		size, err := p.page(c, pqDictionaryPage, 256, 4*256, func(w *writer) error { return w.write(c.dictionary()) })
		if err != nil {
			return 0, err
		}
		plain += size
	}
	p.data = p.at
	for full := c.pageRows(); n > 0; {
		rows := min(n, full)
		size, err := p.page(c, pqDataPage, rows*c.values, c.bodyLen(rows), func(w *writer) error { return p.body(w, c, off, rows) })
		if err != nil {
			return 0, err
		}
		plain += size
		off, n = off+rows*c.width, n-rows
	}
	return plain, nil
}

// page writes one page, whose body of the given size is written by body, and returns its bytes before compression.
func (p *parquetWriter) page(c *parquetColumn, kind, values, size int64, body func(w *writer) error) (int64, error) {
	if p.packer != nil {
		packed, err := p.packer.pack(size, body)
		if err != nil {
			return 0, err
		}
		p.small = c.pageHeader(p.small[:0], kind, values, size, int64(len(packed)))
		if err := p.write(p.small); err != nil {
			return 0, err
		}
		return int64(len(p.small)) + size, p.write(packed)
	}
	p.small = c.pageHeader(p.small[:0], kind, values, size, p.f.codec.most(size))
	header := int64(len(p.small))
	p.small = p.f.codec.prefix(p.small, size)
	if err := p.write(p.small); err != nil {
		return 0, err
	}
	p.at += size
	return header + size, body(&p.out)
}

// body writes levels and numbers of n rows.
func (p *parquetWriter) body(w *writer, c *parquetColumn, off, n int64) error {
	values := n * c.values
	if c.list {
		row := c.repetitions(nil)
		if err := w.write(binary.LittleEndian.AppendUint32(nil, uint32(n*int64(len(row))))); err != nil {
			return err
		}
		for range n {
			if err := w.write(row); err != nil {
				return err
			}
		}
		// All numbers are there: level 1, that of a list which has elements.
		def := append(binary.AppendUvarint(nil, uint64(values)<<1), 1)
		if err := w.write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(def))), def...)); err != nil {
			return err
		}
	}
	groups := (values + 7) / 8
	if c.form == storedIndexed { // 8 bits an index, all in one run of whole groups of eight
		if err := w.write(binary.AppendUvarint([]byte{8}, uint64(groups)<<1|1)); err != nil {
			return err
		}
	}
	if err := p.numbers(w, c, off, values); err != nil {
		return err
	}
	if c.form == storedIndexed {
		return w.zeros(8*groups - values)
	}
	return nil
}

// numbers writes the content's numbers from the given offset on.
func (p *parquetWriter) numbers(w *writer, c *parquetColumn, off, values int64) error {
	if c.form == storedText {
		return p.texts(w, c, off, values)
	}
	room := int64(len(p.work))
	if c.form == storedWide {
		room /= 2
	}
	for left := values * c.element; left > 0; {
		n := min(left, room) // a multiple of 16, or what is left
		in := p.work[int64(len(p.work))-n:]
		p.content.Fill(in, off)
		if c.convert != nil {
			c.convert(in)
		}
		out := in
		switch c.form {
		case storedWide:
			out = widen(p.work[:2*n], in, c.converted == pqInt16)
		case storedBits:
			out = packBits(p.work[:(n+7)/8], in)
		}
		if err := w.write(out); err != nil {
			return err
		}
		off, left = off+n, left-n
	}
	return nil
}

// widen makes numbers of 32 bits of those of 16 bits; dst may lie in front of src, and overlap with it as far as it has been read.
func widen(dst, src []byte, signed bool) []byte {
	for i := 0; i+1 < len(src); i += 2 {
		v := uint32(binary.LittleEndian.Uint16(src[i:]))
		if signed {
			v = uint32(int32(int16(v)))
		}
		binary.LittleEndian.PutUint32(dst[2*i:], v)
	}
	return dst
}

// packBits puts the lowest bit of each byte of src into dst, the first into the lowest place.
func packBits(dst, src []byte) []byte {
	for i := range dst {
		var b byte
		for j, v := range src[8*i : min(8*i+8, len(src))] {
			b |= v & 1 << j
		}
		dst[i] = b
	}
	return dst
}

// footer writes the description of everything before it. sizes is nil if they follow from the layout.
func (p *parquetWriter) footer(columns []parquetColumn, rows int64, sizes []parquetSize) error {
	start, at := p.at, int64(len(parquetMagic))
	if err := p.write(p.f.footerHead(nil, columns, rows)); err != nil {
		return err
	}
	chunks := make([]parquetChunk, len(columns))
	last := int64(-1)
	err := p.f.groups(rows, func(_, n int64) error {
		if err := p.write(p.f.groupHead(nil, len(columns))); err != nil {
			return err
		}
		var plain int64
		for i := range columns {
			c := &columns[i]
			ch := &chunks[i]
			if n != last {
				*ch = p.f.chunkOf(c, 0, n)
			}
			ch.data += at - ch.offset
			ch.offset = at
			if sizes != nil {
				s := sizes[0]
				ch.data, ch.size, ch.plain, sizes = at+s.data, s.size, s.plain, sizes[1:]
			}
			p.small = p.f.chunkMeta(p.small[:0], c, *ch)
			if err := p.write(p.small); err != nil {
				return err
			}
			at += ch.size
			plain += ch.plain
		}
		last = n
		return p.write(p.f.groupEnd(nil, plain, n))
	})
	if err != nil {
		return err
	}
	if at != start {
		return fmt.Errorf("parquet: the chunks end at byte %d and not at %d: a fault of this program", start, at)
	}
	if err := p.write(p.f.footerEnd(nil)); err != nil {
		return err
	}
	return p.write(append(binary.LittleEndian.AppendUint32(nil, uint32(p.at-start)), parquetMagic...))
}

// footerHead appends the footer up to the head of the list of row groups.
func (f parquetFormat) footerHead(b []byte, columns []parquetColumn, rows int64) []byte {
	w := thriftWriter{b: b}
	w.i32(1, 2) // version of the format
	elements := 1 + len(columns)
	for i := range columns {
		if columns[i].list {
			elements += 2
		}
	}
	w.list(2, thriftStruct, elements)
	s := w.begin(0)
	w.text(4, "schema")
	w.i32(5, int64(len(columns)))
	w.end(s)
	for i := range columns {
		columns[i].schema(&w)
	}
	w.i64(3, rows)
	w.list(4, thriftStruct, int((rows+f.rows-1)/f.rows))
	return w.b
}

// schema appends a column: a number, or a list in the three levels that parquet prescribes.
func (c *parquetColumn) schema(w *thriftWriter) {
	name := c.name
	if c.list {
		s := w.begin(0)
		w.i32(3, pqRequired)
		w.text(4, name)
		w.i32(5, 1)
		w.i32(6, pqListConverted)
		w.end(s)
		s = w.begin(0)
		w.i32(3, pqRepeated)
		w.text(4, "list")
		w.i32(5, 1)
		w.end(s)
		name = "element"
	}
	s := w.begin(0)
	w.i32(1, c.physical)
	if c.physical == pqFixed {
		w.i32(2, c.element)
	}
	w.i32(3, pqRequired)
	w.text(4, name)
	if c.converted != pqNone {
		w.i32(6, c.converted)
	}
	if c.float16 {
		union := w.begin(10)
		kind := w.begin(pqFloat16Logical)
		w.end(kind)
		w.end(union)
	}
	w.end(s)
}

// footerEnd appends what follows the row groups.
func (parquetFormat) footerEnd(b []byte) []byte {
	w := thriftWriter{b: b, last: 4}
	w.text(6, parquetCreator)
	return append(w.b, thriftStop)
}

func (parquetFormat) groupHead(b []byte, columns int) []byte {
	w := thriftWriter{b: b}
	w.list(1, thriftStruct, columns)
	return w.b
}

func (parquetFormat) groupEnd(b []byte, plain, rows int64) []byte {
	w := thriftWriter{b: b, last: 1}
	w.i64(2, plain)
	w.i64(3, rows)
	return append(w.b, thriftStop)
}

// chunkMeta appends the description of a chunk.
func (f parquetFormat) chunkMeta(b []byte, c *parquetColumn, ch parquetChunk) []byte {
	w := thriftWriter{b: b}
	w.i64(2, 0) // a description beside the chunk, which there is not
	s := w.begin(3)
	w.i32(1, c.physical)
	encodings := []int64{pqPlain, pqRLE}
	if c.form == storedIndexed {
		encodings = append(encodings, pqDictionary)
	}
	w.list(2, thriftI32, len(encodings))
	for _, e := range encodings {
		w.varint(e)
	}
	path := []string{c.name}
	if c.list {
		path = append(path, "list", "element")
	}
	w.list(3, thriftBinary, len(path))
	for _, p := range path {
		w.b = append(binary.AppendUvarint(w.b, uint64(len(p))), p...)
	}
	w.i32(4, f.codec.number)
	w.i64(5, ch.values)
	w.i64(6, ch.plain)
	w.i64(7, ch.size)
	w.i64(9, ch.data)
	if c.form == storedIndexed {
		w.i64(11, ch.offset)
	}
	w.end(s)
	return append(w.b, thriftStop)
}
