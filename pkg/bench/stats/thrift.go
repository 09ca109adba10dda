package stats

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The parquet library believes the lengths in the Thrift structures of a file: a few crafted or damaged bytes make it take gigabytes.
// So this file walks those structures first, without building anything, and refuses lengths that the bytes at hand cannot
// hold.

const (
	// maxFooter bounds the footer: 32,767 row groups of all columns stay far below.
	maxFooter = 256 << 20
	// maxHeader bounds the header of one page.
	maxHeader = 8 << 10
	// maxDepth bounds the nesting of Thrift structures; parquet's own nest to about 8.
	maxDepth = 32
)

var errThrift = errors.New("not a Thrift structure of parquet")

// walker steps over a value in Thrift's compact protocol.
type walker struct {
	b   []byte
	pos int
}

// The types of the compact protocol.
const (
	tTrue, tFalse, tByte, tI16, tI32, tI64, tDouble = 1, 2, 3, 4, 5, 6, 7
	tBinary, tList, tSet, tMap, tStruct             = 8, 9, 10, 11, 12
)

func (w *walker) byte() (byte, error) {
	if w.pos >= len(w.b) {
		return 0, io.ErrUnexpectedEOF
	}
	w.pos++
	return w.b[w.pos-1], nil
}

func (w *walker) uvarint() (uint64, error) {
	v, n := binary.Uvarint(w.b[w.pos:])
	if n <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	w.pos += n
	return v, nil
}

func (w *walker) varint() (int64, error) {
	u, err := w.uvarint()
	return int64(u>>1) ^ -int64(u&1), err
}

// room checks that n bytes, or elements of at least one byte, are there.
func (w *walker) room(n uint64) error {
	if n > uint64(len(w.b)-w.pos) {
		return fmt.Errorf("%w: a length of %d where %d bytes are left", errThrift, n, len(w.b)-w.pos)
	}
	return nil
}

// structure steps over a struct; field, if not nil, is told the number and type of each field and may step over it itself.
func (w *walker) structure(depth int, field func(id int64, typ byte) (bool, error)) error {
	if depth > maxDepth {
		return fmt.Errorf("%w: nested too deep", errThrift)
	}
	var id int64
	for {
		head, err := w.byte()
		if err != nil || head == 0 {
			return err
		}
		if delta := head >> 4; delta != 0 {
			id += int64(delta)
		} else if id, err = w.varint(); err != nil {
			return err
		}
		typ := head & 0x0f
		if field != nil {
			done, err := field(id, typ)
			if err != nil {
				return err
			}
			if done {
				continue
			}
		}
		if typ == tTrue || typ == tFalse { // the value is in the type
			continue
		}
		if err := w.value(typ, depth+1); err != nil {
			return err
		}
	}
}

// value steps over one value.
func (w *walker) value(typ byte, depth int) error {
	switch typ {
	case tTrue, tFalse, tByte:
		_, err := w.byte()
		return err
	case tI16, tI32, tI64:
		_, err := w.uvarint()
		return err
	case tDouble:
		if err := w.room(8); err != nil {
			return err
		}
		w.pos += 8
		return nil
	case tBinary:
		n, err := w.uvarint()
		if err == nil {
			err = w.room(n)
		}
		if err != nil {
			return err
		}
		w.pos += int(n)
		return nil
	case tList, tSet:
		return w.list(depth)
	case tStruct:
		return w.structure(depth, nil)
	}
	// Maps do not occur in parquet's structures.
	return fmt.Errorf("%w: type %d", errThrift, typ)
}

func (w *walker) list(depth int) error {
	head, err := w.byte()
	if err != nil {
		return err
	}
	n := uint64(head >> 4)
	if n == 15 {
		if n, err = w.uvarint(); err != nil {
			return err
		}
	}
	if err := w.room(n); err != nil {
		return err
	}
	if depth > maxDepth {
		return fmt.Errorf("%w: nested too deep", errThrift)
	}
	for range n {
		if err := w.value(head&0x0f, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// checkFooter looks at the frame of a parquet file and walks its footer.
func checkFooter(f io.ReaderAt, size int64) error {
	const magic = "PAR1"
	if size < 12 {
		return fmt.Errorf("%w: %d bytes are no parquet file", ErrFormat, size)
	}
	var head [4]byte
	var tail [8]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if n, err := f.ReadAt(tail[:], size-8); n < len(tail) {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if string(head[:]) != magic || string(tail[4:]) != magic || n > size-12 || n > maxFooter {
		return fmt.Errorf("%w: no parquet file, or not all of it", ErrFormat)
	}
	b := make([]byte, n)
	if n, err := f.ReadAt(b, size-8-n); n < len(b) {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	w := walker{b: b}
	if err := w.structure(0, nil); err != nil {
		return fmt.Errorf("%w: footer: %w", ErrFormat, err)
	}
	if w.pos != len(b) {
		return fmt.Errorf("%w: footer: %d bytes after its end", ErrFormat, len(b)-w.pos)
	}
	return nil
}

// The fields of parquet's PageHeader that are looked at, and the kinds of page that Writer writes.
const (
	pageType, pageUncompressed, pageCompressed = 1, 2, 3
	dataPage, dataPageV2                       = 0, 3
)

// checkPages walks the headers of the pages that fill [off, off+length) of the file. buf is of maxHeader bytes.
func checkPages(f io.ReaderAt, off, length int64, buf []byte) error {
	for end := off + length; off < end; {
		b := buf[:min(int64(len(buf)), end-off)]
		if n, err := f.ReadAt(b, off); n < len(b) {
			return fmt.Errorf("%w: page at %d: %w", ErrFormat, off, err)
		}
		w := walker{b: b}
		fields := [4]int64{-1, -1, -1, -1}
		err := w.structure(0, func(id int64, typ byte) (bool, error) {
			if id < pageType || id > pageCompressed || typ != tI32 {
				return false, nil
			}
			v, err := w.varint()
			fields[id] = v
			return true, err
		})
		if err != nil {
			return fmt.Errorf("%w: page at %d: %w", ErrFormat, off, err)
		}
		kind, plain, packed := fields[pageType], fields[pageUncompressed], fields[pageCompressed]
		off += int64(w.pos)
		if kind != dataPage && kind != dataPageV2 || plain < 0 || plain > maxColumn || packed < 0 || packed > end-off {
			return fmt.Errorf("%w: page before %d: kind %d, %d bytes for %d where %d are left", ErrFormat, off, kind, packed, plain, end-off)
		}
		off += packed
	}
	return nil
}
