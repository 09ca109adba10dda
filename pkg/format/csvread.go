package format

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/gzip"
)

// tableReader reads a table to its end, as pandas.read_csv does for one sample too.
type tableReader struct {
	zip  zipReader
	gzip *gzip.Reader
	out  []byte // inflated text

	class [256]uint8 // of each byte
	rows  int64
	cells int64 // in each row, known after the first
	row   int64 // commas in the current row
	cell  bool  // the current row has begun

	foreign int // samples of each file of other origin; 0: the table is one of ours
}

// Classes of bytes.
const (
	cellByte  = iota + 1 // of a number, or of a word that stands for one
	cellEnd              // comma
	rowEnd               // newline
	rowReturn            // carriage return, before a newline
)

func newTableReader() *tableReader {
	t := &tableReader{zip: zipReader{reader: reader{format: "csv"}}}
	for _, b := range []byte(`0123456789+-. "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz`) {
		t.class[b] = cellByte
	}
	t.class[','], t.class['\n'], t.class['\r'] = cellEnd, rowEnd, rowReturn
	return t
}

// ReadSample reads the whole file and checks that it is a table: rows of as many cells each, and nothing in them but what numbers,
// true, false, nan and inf are written with. What the numbers are is left to verification. A sample's bytes are Unsaid.
func (f table) ReadSample(file io.ReaderAt, size int64, k int, buf []byte) (Sample, error) {
	t := f.readers.Get().(*tableReader)
	defer f.readers.Put(t)
	z := &t.zip
	defer z.release()
	*z = zipReader{reader: z.reader, inflated: z.inflated}
	z.reset(file, size, buf)
	t.rows, t.cells, t.row, t.cell, t.foreign = 0, 0, 0, false, f.foreign
	var err error
	switch f.packing {
	case "gzip":
		err = t.gunzip(size)
	case "zip":
		z.table = t
		err = z.walk()
		z.table = nil
	default:
		err = t.plain(size)
	}
	if err != nil {
		return Sample{}, err
	}
	if t.foreign > 0 {
		return t.foreignSample(k, size)
	}
	if t.cell || t.row > 0 {
		return Sample{}, &DataError{Format: "csv", Offset: z.at(), Problem: "the last row has no end", Err: io.ErrUnexpectedEOF}
	}
	if k < 0 || int64(k) >= t.rows {
		return Sample{}, z.problem(fmt.Sprintf("row %d is asked for; the table has %d", k, t.rows))
	}
	return Sample{Logical: Unsaid, Asked: size}, nil
}

// feed takes the next piece of text.
func (t *tableReader) feed(p []byte) error {
	if t.foreign > 0 {
		t.lines(p)
		return nil
	}
	row, cell := t.row, t.cell
	for i, b := range p {
		switch t.class[b] {
		case cellByte:
			cell = true
		case cellEnd:
			row, cell = row+1, true
		case rowEnd:
			if !cell && row == 0 {
				continue // pandas skips blank lines
			}
			if t.rows == 0 {
				t.cells = row + 1
			} else if row+1 != t.cells {
				return t.damaged(len(p)-i, fmt.Sprintf("row %d has %d cells, the first one %d", t.rows, row+1, t.cells))
			}
			t.rows++
			row, cell = 0, false
		case rowReturn:
		default:
			return t.damaged(len(p)-i, fmt.Sprintf("row %d has the byte 0x%02x, which no number is written with", t.rows, b))
		}
	}
	t.row, t.cell = row, cell
	return nil
}

// damaged is the error for a byte of the text that has left bytes behind it in the piece that was fed.
func (t *tableReader) damaged(left int, text string) error {
	z := &t.zip
	e := &DataError{Format: "csv", Offset: z.at(), Problem: text}
	if z.table == nil && len(z.data) == 0 && t.gzip == nil {
		e.Offset = z.next - int64(left)
	}
	return e
}

func (t *tableReader) plain(size int64) error {
	z := &t.zip
	for z.next < size {
		if err := z.more(); err != nil {
			return err
		}
		p := z.data
		z.data = nil
		if err := t.feed(p); err != nil {
			return err
		}
	}
	return nil
}

func (t *tableReader) gunzip(size int64) error {
	z := &t.zip
	from := &z.inflated.packed
	*from = packed{from: &z.reader, left: size}
	damaged := func(err error) error {
		if from.err != nil {
			return from.err
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return &DataError{Format: "csv", Offset: z.at(), Problem: "gzip data ends early or is damaged", Err: err}
	}
	var err error
	if t.gzip == nil {
		t.out = make([]byte, 64<<10)
		t.gzip, err = gzip.NewReader(from)
	} else {
		err = t.gzip.Reset(from)
	}
	if err != nil {
		t.gzip = nil
		return damaged(err)
	}
	for {
		n, err := t.gzip.Read(t.out)
		if ferr := t.feed(t.out[:n]); ferr != nil {
			return ferr
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return damaged(err)
		}
	}
}

// member reads the table e of a zip file.
func (t *tableReader) member(z *zipReader, e entry) error {
	if e.method != 0 {
		i := &z.inflated
		if err := i.start(z, e); err != nil {
			return err
		}
		for i.plain < e.plain {
			if err := i.more(); err != nil {
				return err
			}
			if err := t.feed(i.data); err != nil {
				return err
			}
		}
		return i.finish(z, e)
	}
	crc := uint32(0)
	for left := e.plain; left > 0; {
		if len(z.data) == 0 {
			if err := z.more(); err != nil {
				return err
			}
		}
		p := z.data[:min(int64(len(z.data)), left)]
		z.data = z.data[len(p):]
		left -= int64(len(p))
		crc = crc32.Update(crc, crc32.IEEETable, p)
		if err := t.feed(p); err != nil {
			return err
		}
	}
	if crc != e.crc {
		return z.problem(fmt.Sprintf("checksum of the table is %08x, not %08x", crc, e.crc))
	}
	return nil
}

var (
	_ Measured = table{}
	_ Extended = table{}
)
