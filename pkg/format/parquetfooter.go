package format

import (
	"encoding/binary"
	"fmt"
)

// footer reads the description of the file: the columns, and where the chunks of the wanted row group are. It goes through the whole
// footer, as the frameworks' readers do, and keeps of it what concerns that group.
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
	r.firsts, r.all = r.firsts[:0], r.all[:0]
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
			r.rows = rows
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
			if e := column.expected; e != nil && e.form == storedText {
				column.row = e.width
			}
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
	// Texts may have a logical type alone.
	converted := l.converted == c.converted || c.converted == pqNone || c.form == storedText && l.converted == pqNone
	return l.physical == c.physical && converted && (c.physical != pqFixed || l.length == c.element)
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
		if r.remember {
			r.firsts, r.all = append(r.firsts, rows), append(r.all, r.found...)
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
