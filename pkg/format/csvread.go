package format

import (
	"compress/bzip2"
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
	xz   xzReader
	out  []byte // unpacked text
	left int64  // bytes of text that may follow, where the file is packed; negative: it is not

	class [256]uint8 // of each byte
	rows  int64
	cells int64 // in each row, known after the first
	row   int64 // commas in the current row
	cell  bool  // the current row has begun

	foreign int // samples of each file of other origin; 0: the table is one of ours
}

// maxExpansion is how many bytes of text a byte of a packed file may become. Nothing that pandas writes comes near it: bzip2 packs zeros and
// commas by 20,000.
const maxExpansion = 1 << 16

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
	t.left = mul(size, maxExpansion)
	var err error
	switch f.packing {
	case "gzip":
		err = t.gunzip(size)
	case "bz2":
		err = t.bunzip(size)
	case "zip":
		z.table = t
		err = z.walk()
		z.table = nil
	case "xz":
		err = t.xz.read(t)
	default:
		t.left = -1
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
	if t.left >= 0 {
		if t.left -= int64(len(p)); t.left < 0 {
			t.left = 0
			return t.zip.problem(fmt.Sprintf("the text has more than %d bytes for each byte of the file", maxExpansion))
		}
	}
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
	if t.left < 0 {
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

// packed is the file's bytes for a reader that asks byte by byte.
func (t *tableReader) packed(size int64) *packed {
	t.zip.inflated.packed = packed{from: &t.zip.reader, left: size}
	return &t.zip.inflated.packed
}

func (t *tableReader) gunzip(size int64) (err error) {
	from := t.packed(size)
	if t.gzip == nil {
		t.gzip, err = gzip.NewReader(from)
	} else {
		err = t.gzip.Reset(from)
	}
	if err != nil {
		t.gzip = nil
		return t.broken("gzip", err)
	}
	return t.drain("gzip", t.gzip)
}

// bunzip reads a bzip2 file. The library has no way to use its memory again, which is up to 4 MB a file.
func (t *tableReader) bunzip(size int64) error {
	return t.drain("bzip2", bzip2.NewReader(t.packed(size)))
}

// drain reads the text that r unpacks, to its end.
func (t *tableReader) drain(packing string, r io.Reader) error {
	if t.out == nil {
		t.out = make([]byte, 64<<10)
	}
	for {
		n, err := r.Read(t.out)
		if ferr := t.feed(t.out[:n]); ferr != nil {
			return ferr
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return t.broken(packing, err)
		}
	}
}

// broken is the error for packed data of which the unpacker says err.
func (t *tableReader) broken(packing string, err error) error {
	if from := t.zip.inflated.packed.err; from != nil {
		return from
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &DataError{Format: "csv", Offset: t.zip.at(), Problem: packing + " data ends early or is damaged", Err: err}
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
