package format

import (
	"encoding/binary"
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
	var logical int64
	for i := range r.kept {
		n, err := r.chunk(&r.kept[i])
		if err != nil {
			return Sample{}, err
		}
		logical += n
	}
	return Sample{Logical: logical, Asked: r.asked}, nil
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
	footerAt    int64
	unpack      parquetUnpacker
}

// parquetLeaf is a column of numbers in the file.
type parquetLeaf struct {
	physical, length, converted int64
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

func (r *parquetReader) footer(size int64) error {
	if size < int64(len(parquetMagic))+parquetTail {
		r.next = size
		return r.truncated()
	}
	r.span(size-parquetTail, size)
	p, err := r.take(parquetTail)
	if err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(p))
	switch {
	case string(p[4:]) != parquetMagic:
		return r.problem(fmt.Sprintf("the file ends in %q and not in %s", p[4:], parquetMagic))
	case n > size-parquetTail-int64(len(parquetMagic)):
		return r.problem(fmt.Sprintf("a footer of %d bytes in a file of %d", n, size))
	}
	r.footerAt = size - parquetTail - n
	r.span(r.footerAt, r.footerAt+n)
	r.leaves, r.found, r.kept = r.leaves[:0], r.found[:0], r.kept[:0]
	if err := r.metadata(); err != nil {
		return err
	}
	if r.at() != r.size {
		return r.problem(fmt.Sprintf("%d bytes after the end of the footer's structure", r.size-r.at()))
	}
	return nil
}

// metadata reads the footer's structure.
func (r *parquetReader) metadata() error {
	var id int64
	rows, first := int64(-1), int64(0)
	for {
		typ, err := r.field(&id)
		if err != nil {
			return err
		}
		switch {
		case typ == thriftStop:
			switch {
			case rows < 0 || first != rows:
				return r.problem(fmt.Sprintf("row groups of %d rows in all, and a footer that says %d", first, rows))
			case r.row < 0 || r.row >= rows:
				return r.problem(fmt.Sprintf("sample %d is asked for; the file holds %d rows", r.row, rows))
			}
			return nil
		case id == 2 && typ == thriftList:
			err = r.schema()
		case id == 3 && typ == thriftI64:
			rows, err = r.varint()
		case id == 4 && typ == thriftList:
			first, err = r.rowGroups()
		default:
			err = r.pass(typ, 0)
		}
		if err != nil {
			return err
		}
	}
}

// schema reads the columns, which stand in the footer before the row groups: as a list of the nodes of a tree, parents first.
func (r *parquetReader) schema() error {
	n, typ, err := r.listHead()
	if err != nil {
		return err
	}
	if typ != thriftStruct || n < 2 || len(r.leaves) > 0 {
		return r.problem("no list of columns")
	}
	if _, _, err := r.node(false); err != nil { // the root
		return err
	}
	known := 0
	for left := n - 1; left > 0; { // one column of the table
		column, children, err := r.node(true)
		if err != nil {
			return err
		}
		left--
		known += column.known
		if children == 0 {
			r.leaves = append(r.leaves, column.parquetLeaf)
			continue
		}
		leaf := -1
		for open := children; open > 0; open-- {
			if left == 0 {
				return r.problem("a column without all of its parts")
			}
			left--
			part, children, err := r.node(false)
			if err != nil {
				return err
			}
			if children == 0 {
				leaf = len(r.leaves)
				part.read = column.read
				r.leaves = append(r.leaves, part.parquetLeaf)
			}
			if open += children; open > 1<<20 {
				return r.problem("a column of more than a million parts")
			}
		}
		if column.expected != nil && (leaf < 0 || !column.expected.list || !r.leaves[leaf].is(column.expected)) {
			return r.problem(fmt.Sprintf("column %q is not a list of %s", column.expected.name, column.expected.dtype.Name))
		}
	}
	if known != len(r.table.columns) {
		return r.problem(fmt.Sprintf("the file has %d of the %d columns of dataset.parquet.columns", known, len(r.table.columns)))
	}
	return nil
}

// is reports whether the leaf holds the numbers of column c.
func (l parquetLeaf) is(c *parquetColumn) bool {
	return l.physical == c.physical && (l.converted == c.converted || c.converted == pqNone) && (c.physical != pqFixed || l.length == c.element)
}

// parquetNode is a node of the schema.
type parquetNode struct {
	parquetLeaf
	known    int            // 1 if it is one of the columns that the data set has
	expected *parquetColumn // that column, or nil
}

// node reads a node of the schema and returns how many children it has.
func (r *parquetReader) node(column bool) (n parquetNode, children int64, err error) {
	n.physical, n.converted = -1, pqNone
	n.read = r.table.columns == nil
	var id int64
	for {
		typ, err := r.field(&id)
		if err != nil {
			return n, 0, err
		}
		switch {
		case typ == thriftStop:
			if e := n.expected; e != nil && children == 0 && (e.list || !n.is(e)) {
				return n, 0, r.problem(fmt.Sprintf("column %q is not of type %s, or is no list", e.name, e.dtype.Name))
			}
			return n, children, nil
		case id == 1 && typ == thriftI32:
			n.physical, err = r.varint()
		case id == 2 && typ == thriftI32:
			n.length, err = r.varint()
		case id == 4 && typ == thriftBinary && column:
			err = r.name(&n)
		case id == 5 && typ == thriftI32:
			if children, err = r.varint(); err == nil && (children < 0 || children > 1<<20) {
				err = r.problem(fmt.Sprintf("a column of %d parts", children))
			}
		case id == 6 && typ == thriftI32:
			n.converted, err = r.varint()
		default:
			err = r.pass(typ, 0)
		}
		if err != nil {
			return n, 0, err
		}
		if n.length < 0 || n.length > maxParquetPage {
			return n, 0, r.problem(fmt.Sprintf("numbers of %d bytes", n.length))
		}
	}
}

// name reads a column's name and finds what is expected of it.
func (r *parquetReader) name(n *parquetNode) error {
	size, err := r.textLen()
	if err != nil {
		return err
	}
	if size > 1024 {
		return r.skip(size)
	}
	text, err := r.take(int(size))
	if err != nil {
		return err
	}
	if i, ok := r.table.index[string(text)]; ok {
		n.expected, n.known, n.read = &r.table.columns[i], 1, !r.table.columns[i].skip
	}
	return nil
}

// rowGroups reads the list of row groups and returns their rows.
func (r *parquetReader) rowGroups() (rows int64, err error) {
	n, typ, err := r.listHead()
	if err != nil {
		return 0, err
	}
	if typ != thriftStruct || len(r.leaves) == 0 {
		return 0, r.problem("a list of row groups that is none, or has no columns before it")
	}
	for ; n > 0; n-- {
		count, err := r.rowGroup()
		if err != nil {
			return 0, err
		}
		if count < 0 || count > 1<<62-rows {
			return 0, r.problem(fmt.Sprintf("a row group of %d rows", count))
		}
		if r.row >= rows && r.row-rows < count {
			r.kept, r.found = r.found, r.kept
			r.groupRows = count
		}
		rows += count
	}
	return rows, nil
}

// rowGroup reads one row group into found.
func (r *parquetReader) rowGroup() (rows int64, err error) {
	r.found = r.found[:0]
	rows = -1
	var id int64
	for {
		typ, err := r.field(&id)
		if err != nil || typ == thriftStop {
			return rows, err
		}
		switch {
		case id == 1 && typ == thriftList:
			err = r.columnChunks()
		case id == 3 && typ == thriftI64:
			rows, err = r.varint()
		default:
			err = r.pass(typ, 0)
		}
		if err != nil {
			return 0, err
		}
	}
}

func (r *parquetReader) columnChunks() error {
	n, typ, err := r.listHead()
	if err != nil {
		return err
	}
	if typ != thriftStruct || n != uint64(len(r.leaves)) {
		return r.problem(fmt.Sprintf("a row group of %d columns in a table of %d", n, len(r.leaves)))
	}
	for i := range r.leaves {
		c := parquetPiece{leaf: i, size: -1, values: -1}
		if err := r.columnChunk(&c); err != nil {
			return err
		}
		if r.leaves[i].read {
			r.found = append(r.found, c)
		}
	}
	return nil
}

func (r *parquetReader) columnChunk(c *parquetPiece) error {
	var id int64
	for {
		typ, err := r.field(&id)
		if err != nil || typ == thriftStop {
			return err
		}
		switch {
		case id == 1 && typ == thriftBinary:
			return r.problem("a column in another file")
		case id == 3 && typ == thriftStruct:
			err = r.chunkMeta(c)
		default:
			err = r.pass(typ, 0)
		}
		if err != nil {
			return err
		}
	}
}

// chunkMeta reads the description of a chunk.
func (r *parquetReader) chunkMeta(c *parquetPiece) error {
	var id int64
	for {
		typ, err := r.field(&id)
		if err != nil || typ == thriftStop {
			return err
		}
		var to *int64
		switch id {
		case 4:
			to = &c.codec
		case 5:
			to = &c.values
		case 6:
			to = &c.plain
		case 7:
			to = &c.size
		case 9:
			to = &c.data
		case 10:
			to = &c.ix
		case 11:
			to = &c.dict
		}
		if to != nil && (typ == thriftI32 || typ == thriftI64) {
			*to, err = r.varint()
		} else {
			err = r.pass(typ, 0)
		}
		if err != nil {
			return err
		}
	}
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
		return 0, r.problem(fmt.Sprintf("column %d: %d values in %d bytes at %d, where the footer begins at %d", c.leaf, c.values, c.size, start, r.footerAt))
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
