package format

import (
	"encoding/binary"
	"fmt"
)

// Names of column types that are none of numpy's.
const (
	typeString = "string" // text of one length
	typeBinary = "binary" // bytes of one length
	typeList   = "list"   // a list of float32, even of one number
)

const (
	// pqUTF8 is parquet's number of the converted type of texts.
	pqUTF8 = 0
	// textLen is the bytes of a text whose length is not given: "s_" and a number below 2^31 in ten digits, the longest that DLIO's fork makes.
	textLen = 2 + 10
	// letters are what the bytes of a text of given length are made of: byte x becomes letter x mod 64.
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
)

// RowBytes returns the bytes that the column has in a row: elements, or the bytes of a text. It is an error if there is no such type.
func (c Column) RowBytes() (int64, error) {
	size := int64(c.Size)
	switch c.DType {
	case typeString:
		if size == 1 {
			return textLen, nil
		}
		return size, nil
	case typeBinary:
		return size, nil
	case typeList:
		return mul(4, size), nil
	}
	d, err := ParseDType(c.DType)
	if err != nil {
		return 0, fmt.Errorf("%w; columns may also be %s, %s or %s", err, typeString, typeBinary, typeList)
	}
	return mul(int64(d.Size), size), nil
}

// newParquetTyped resolves a column of any type.
func newParquetTyped(s Column) (parquetColumn, error) {
	width, err := s.RowBytes()
	if err != nil {
		return parquetColumn{}, fmt.Errorf("column %q: %w", s.Name, err)
	}
	switch s.DType {
	case typeString, typeBinary:
		// The elements are bytes, and all of a row are one value.
		c, err := newParquetColumn(s.Name, uint8Type(), width)
		if err != nil {
			return c, err
		}
		c.dtype.Name = s.DType
		c.physical, c.converted, c.form, c.list, c.values, c.element = pqBytes, pqNone, storedText, false, 1, width
		if s.DType == typeString {
			c.converted, c.convert = pqUTF8, toLetters
			if s.Size == 1 {
				c.convert = toNumbered
			}
		}
		return c, nil
	case typeList:
		c, err := newParquetColumn(s.Name, DType{Name: "float32", Descr: "<f4", Size: 4}, int64(s.Size))
		c.list = true
		return c, err
	}
	d, err := ParseDType(s.DType)
	if err != nil {
		return parquetColumn{}, fmt.Errorf("column %q: %w", s.Name, err)
	}
	return newParquetColumn(s.Name, d, int64(s.Size))
}

func uint8Type() DType { return DType{Name: "uint8", Descr: "|u1", Size: 1} }

// toLetters makes letters of bytes.
func toLetters(p []byte) {
	for i, x := range p {
		p[i] = letters[x%64]
	}
}

// toNumbered makes texts of textLen bytes each, of the first four of them: a number, little-endian, mod 2^31.
func toNumbered(p []byte) {
	for ; len(p) >= textLen; p = p[textLen:] {
		x := binary.LittleEndian.Uint32(p) % (1 << 31)
		p[0], p[1] = 's', '_'
		for i := textLen - 1; i >= 2; i-- {
			p[i] = '0' + byte(x%10)
			x /= 10
		}
	}
}

// texts writes the content's texts from the given offset on, each after its length in four bytes.
func (p *parquetWriter) texts(w *writer, c *parquetColumn, off, values int64) error {
	const prefix = 4
	room := int64(len(p.work))
	whole := c.element + prefix
	if whole > room {
		for range values {
			if err := w.write(binary.LittleEndian.AppendUint32(nil, uint32(c.element))); err != nil {
				return err
			}
			for left := c.element; left > 0; {
				n := min(left, room)
				p.letters(c, p.work[:n], off)
				if err := w.write(p.work[:n]); err != nil {
					return err
				}
				off, left = off+n, left-n
			}
		}
		return nil
	}
	for values > 0 {
		n := min(values, room/whole)
		in := p.work[room-n*c.element:]
		p.letters(c, in, off)
		// The texts move to the front, each to where nothing is that is still needed.
		for i := range n {
			to := p.work[i*whole:]
			copy(to[prefix:whole], in[i*c.element:][:c.element])
			binary.LittleEndian.PutUint32(to, uint32(c.element))
		}
		if err := w.write(p.work[:n*whole]); err != nil {
			return err
		}
		off, values = off+n*c.element, values-n
	}
	return nil
}

func (p *parquetWriter) letters(c *parquetColumn, dst []byte, off int64) {
	p.content.Fill(dst, off)
	if c.convert != nil {
		c.convert(dst)
	}
}
