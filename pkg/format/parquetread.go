package format

import (
	"fmt"
	"io"
)

// ReadSample reads what a reader of row groups does: the last 8 bytes, the footer, and of the row group that holds row k the columns
// that are read, page by page, decompressed. Numbers are not taken out of their pages.
func (f parquetFormat) ReadSample(file io.ReaderAt, size int64, k int, buf []byte) (Sample, error) {
	r := f.readers.Get().(*parquetReader)
	defer f.readers.Put(r)
	defer r.release()
	r.reset(file, size, buf)
	r.table, r.row, r.asked = f, int64(k), 0
	if err := r.footer(size); err != nil {
		return Sample{}, err
	}
	logical, err := r.chunks(r.kept)
	if err != nil {
		return Sample{}, err
	}
	return Sample{Logical: logical, Asked: r.asked}, nil
}

// chunks reads chunks of the row group of groupRows rows, and returns the bytes of one row.
func (r *parquetReader) chunks(pieces []parquetPiece) (logical int64, err error) {
	for i := range pieces {
		n, err := r.chunk(&pieces[i])
		if err != nil {
			return 0, err
		}
		logical += n
	}
	return logical, nil
}

// parquetReader is the memory for reading.
type parquetReader struct {
	reader
	table  parquetFormat
	row    int64 // that is wanted
	asked  int64
	leaves []parquetLeaf
	// found are the chunks of the row group that is being read, kept those of the one that holds the row.
	found, kept []parquetPiece
	groupRows   int64 // of the kept one
	rows        int64 // of the file
	// remember keeps all row groups: their first rows, and the chunks to read of each.
	remember bool
	firsts   []int64
	all      []parquetPiece
	footerAt int64
	unpack   parquetUnpacker
}

// parquetLeaf is a column of numbers in the file.
type parquetLeaf struct {
	physical, length, converted int64
	row                         int64 // bytes of a row where the workload says it, of texts, else 0
	read                        bool
}

// width is the bytes of a number as the framework has it, 0 if it is not known.
func (l parquetLeaf) width() int64 {
	switch l.converted {
	case pqInt8, pqUint8:
		return 1
	case pqInt16, pqUint16:
		return 2
	}
	switch l.physical {
	case pqBoolean:
		return 1
	case pqInt32, pqFloat:
		return 4
	case pqInt64, pqDouble:
		return 8
	case 3: // 96 bits
		return 12
	case pqFixed:
		return l.length
	}
	return 0
}

// parquetPiece is a chunk of a column.
type parquetPiece struct {
	leaf                                       int
	codec, values, size, plain, data, dict, ix int64
}

// span sets what is read next to the bytes [from, to) of the file.
func (r *parquetReader) span(from, to int64) {
	r.next, r.size, r.data = from, to, nil
	r.asked += to - from
}

// chunk reads the pages of a chunk and returns the bytes of one row.
func (r *parquetReader) chunk(c *parquetPiece) (int64, error) {
	start := c.data
	if c.dict > 0 && c.dict < start {
		start = c.dict
	}
	if c.ix > 0 && c.ix < start {
		start = c.ix
	}
	if start < int64(len(parquetMagic)) || c.size < 0 || c.size > r.footerAt-start || c.values < 0 {
		return 0, r.problem(fmt.Sprintf("column %d: %d values in %d bytes at %d, where the footer begins at %d",
			c.leaf, c.values, c.size, start, r.footerAt))
	}
	r.span(start, start+c.size)
	values := int64(0)
	for r.at() < r.size {
		n, err := r.page(c)
		if err != nil {
			return 0, err
		}
		if values += n; values > c.values {
			break
		}
	}
	if values != c.values {
		return 0, r.problem(fmt.Sprintf("column %d: pages of %d values; the footer says %d", c.leaf, values, c.values))
	}
	if row := r.leaves[c.leaf].row; row > 0 {
		return row, nil
	}
	if w := r.leaves[c.leaf].width(); w > 0 {
		return mul(c.values/r.groupRows, w), nil
	}
	return max(0, c.plain) / r.groupRows, nil
}

// parquetPageHead is what is looked at in the header of a page.
type parquetPageHead struct {
	kind, plain, size, values int64
	levels                    int64 // bytes of levels that are not compressed
	stored                    bool  // nothing is, although the chunk has a compression
}

// page reads a page and returns how many values it has.
func (r *parquetReader) page(c *parquetPiece) (int64, error) {
	h := parquetPageHead{kind: -1, plain: -1, size: -1, values: -1}
	if err := r.pageHead(&h); err != nil {
		return 0, err
	}
	data := h.kind == pqDataPage || h.kind == pqDataPageV2
	switch {
	case !data && h.kind != pqDictionaryPage && h.kind != pqIndexPage, h.plain < 0, h.size < 0, h.size > r.size-r.at(),
		h.values < 0 && h.kind != pqIndexPage, h.values > c.values && data, h.levels < 0, h.levels > min(h.size, h.plain):
		return 0, r.problem(fmt.Sprintf("column %d: a page of kind %d, %d values, %d bytes (%d decompressed) where %d are left",
			c.leaf, h.kind, h.values, h.size, h.plain, r.size-r.at()))
	case c.codec == pqUncompressed && h.size != h.plain:
		return 0, r.problem(fmt.Sprintf("column %d: a page of %d bytes, not compressed, of %d", c.leaf, h.plain, h.size))
	}
	var err error
	if c.codec == pqUncompressed || h.stored {
		err = r.skip(h.size)
	} else if err = r.skip(h.levels); err == nil {
		err = r.unpack.page(&r.reader, c.codec, h.size-h.levels, h.plain-h.levels)
	}
	if !data {
		return 0, err
	}
	return h.values, err
}

func (r *parquetReader) pageHead(h *parquetPageHead) error {
	var id int64
	for {
		typ, err := r.field(&id)
		if err != nil || typ == thriftStop {
			return err
		}
		switch {
		case id == 1 && typ == thriftI32:
			h.kind, err = r.varint()
		case id == 2 && typ == thriftI32:
			h.plain, err = r.varint()
		case id == 3 && typ == thriftI32:
			h.size, err = r.varint()
		case (id == 5 || id == 7 || id == 8) && typ == thriftStruct:
			err = r.pageValues(h, id == 8)
		default:
			err = r.pass(typ, 0)
		}
		if err != nil {
			return err
		}
	}
}

// pageValues reads the part of a page's header that is of its kind; v2 if it is that of a data page of version 2.
func (r *parquetReader) pageValues(h *parquetPageHead, v2 bool) error {
	var id int64
	for {
		typ, err := r.field(&id)
		if err != nil || typ == thriftStop {
			return err
		}
		switch {
		case id == 1 && typ == thriftI32:
			h.values, err = r.varint()
		case v2 && (id == 5 || id == 6) && typ == thriftI32:
			var n int64
			n, err = r.varint()
			if n < 0 || n > maxParquetPage {
				n = maxParquetPage + 1
			}
			h.levels += n
		case v2 && id == 7:
			h.stored = typ == thriftFalse
		default:
			err = r.pass(typ, 0)
		}
		if err != nil {
			return err
		}
	}
}
