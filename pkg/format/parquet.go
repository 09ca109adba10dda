package format

import (
	"encoding/binary"
	"fmt"
	"sync"
)

// parquetFormat is a table of numbers and texts, one row a sample: required columns of one number, of a list of always the same length, or
// of a text of one length, in row groups. It is written by this package and not by a library, for three reasons: a file's size must be known beforehand, its
// bytes must never change, and a row group of long vectors (flux: 2 GB) must not be held in memory.
//
// The content is in the order of the file: row group by row group, in each one column by column, in each the rows' numbers. Its bytes
// become numbers as those of an array of the column's type do.
type parquetFormat struct {
	columns []parquetColumn // nil: one column, data, of the layout's numbers
	rows    int64           // of a row group
	codec   parquetCodec
	index   map[string]int // of a column's name
	readers *sync.Pool
	sizes   *parquetSizes
}

// parquetPacked is a parquetFormat with a compression that makes sizes depend on what is compressed.
type parquetPacked struct{ parquetFormat }

const (
	parquetMagic = "PAR1"
	// parquetCreator is of the form that readers parse. Its version is that of the bytes, not of this program.
	parquetCreator = "benchpin version 1.0.0 (build 1)"
	// parquetRows are the rows of a row group if nothing else is asked for.
	parquetRows = 1024
	// parquetPage is the most bytes of values in a page, unless one row has more.
	parquetPage = 1 << 20
	// parquetMaxRow bounds the bytes of one column in a row, so that a page's size fits into 31 bits whatever is added.
	parquetMaxRow = 1 << 30
	// parquetMaxGroups and parquetMaxColumns are what readers number with 16 bits.
	parquetMaxGroups  = 1<<15 - 1
	parquetMaxColumns = 1<<15 - 1
	parquetTail       = 4 + 4 // length of the footer, magic
)

// Parquet's own numbers of types, repetitions, encodings and pages.
const (
	pqBoolean, pqInt32, pqInt64, pqFloat, pqDouble, pqBytes, pqFixed = 0, 1, 2, 4, 5, 6, 7
	pqRequired, pqOptional, pqRepeated                               = 0, 1, 2
	pqPlain, pqRLE, pqDictionary                                     = 0, 3, 8
	pqDataPage, pqIndexPage, pqDictionaryPage, pqDataPageV2          = 0, 1, 2, 3

	pqListConverted   = 3
	pqNone            = -1 // no converted type
	pqUint8, pqUint16 = 11, 12
	pqUint32          = 13
	pqUint64          = 14
	pqInt8, pqInt16   = 15, 16
	pqFloat16Logical  = 15 // field of the union of logical types
)

// The ways in which the bytes of an element become bytes of a page.
const (
	storedAsIs    = iota
	storedWide    // 16 bits become 32: parquet has no shorter numbers
	storedIndexed // a byte is an index into a dictionary of the 256 numbers that it can be
	storedBits    // a truth value becomes a bit
	storedText    // a text or bytes, after their length
)

// parquetColumn is a column, resolved.
type parquetColumn struct {
	name  string
	dtype DType
	skip  bool

	offset, width int64 // bytes of a row before it, and of its own
	values        int64 // numbers in a row
	list          bool

	physical, converted int64
	float16             bool
	form                int
	element             int64        // bytes of content for one number, or text
	convert             func([]byte) // content to numbers, or nil
}

func newParquet(s Spec) (Format, error) {
	if err := s.only("compression", "columns", "row_group"); err != nil {
		return nil, err
	}
	codec, err := parquetCodecOf(s.Compression)
	if err != nil {
		return nil, err
	}
	f := parquetFormat{rows: int64(s.RowGroup), codec: codec, index: make(map[string]int),
		sizes:   &parquetSizes{known: make(map[parquetShape]int64)},
		readers: &sync.Pool{New: func() any { return &parquetReader{reader: reader{format: "parquet"}} }}}
	if f.rows == 0 {
		f.rows = parquetRows
	}
	if f.rows < 1 {
		return nil, fmt.Errorf("dataset.parquet.row_group_size is %d; a row group has at least 1 row", s.RowGroup)
	}
	if len(s.Columns) > parquetMaxColumns {
		return nil, fmt.Errorf("dataset.parquet.columns: %d columns; there may be %d", len(s.Columns), parquetMaxColumns)
	}
	read := 0
	for i, c := range s.Columns {
		col, err := newParquetTyped(c)
		if err != nil {
			return nil, fmt.Errorf("dataset.parquet.columns: %w", err)
		}
		if _, ok := f.index[c.Name]; ok {
			return nil, fmt.Errorf("dataset.parquet.columns: two columns %q", c.Name)
		}
		if i > 0 {
			col.offset = f.columns[i-1].offset + f.columns[i-1].width
		}
		if col.skip = c.Skip; !c.Skip {
			read++
		}
		f.index[c.Name] = i
		f.columns = append(f.columns, col)
	}
	if len(s.Columns) > 0 && read == 0 {
		return nil, fmt.Errorf("dataset.parquet.columns: none of the %d columns is read; set read: true for one", len(s.Columns))
	}
	if codec.compress {
		return parquetPacked{f}, nil
	}
	return f, nil
}

func newParquetColumn(name string, d DType, size int64) (parquetColumn, error) {
	c := parquetColumn{name: name, dtype: d, values: size, width: mul(size, int64(d.Size)), converted: pqNone, element: int64(d.Size)}
	switch {
	case name == "" || len(name) > 1024:
		return c, fmt.Errorf("a column's name has %d bytes; expected 1 to 1024", len(name))
	case size < 1:
		return c, fmt.Errorf("column %q: size %d; there is at least 1 number in a row", name, size)
	case c.width > parquetMaxRow:
		return c, fmt.Errorf("column %q: a row of %d bytes; it has at most %d", name, c.width, parquetMaxRow)
	}
	switch d.Descr[1:] {
	case "b1":
		c.physical, c.form = pqBoolean, storedBits
	case "i1":
		c.physical, c.converted, c.form = pqInt32, pqInt8, storedIndexed
	case "u1":
		c.physical, c.converted, c.form = pqInt32, pqUint8, storedIndexed
	case "i2":
		c.physical, c.converted, c.form = pqInt32, pqInt16, storedWide
	case "u2":
		c.physical, c.converted, c.form = pqInt32, pqUint16, storedWide
	case "i4":
		c.physical = pqInt32
	case "u4":
		c.physical, c.converted = pqInt32, pqUint32
	case "i8":
		c.physical = pqInt64
	case "u8":
		c.physical, c.converted = pqInt64, pqUint64
	case "f2":
		c.physical, c.float16, c.convert = pqFixed, true, toFloat16
	case "f4", "c8":
		c.physical, c.convert = pqFloat, toFloat32
	case "f8", "c16":
		c.physical, c.convert = pqDouble, toFloat64
	}
	if d.Descr[1] == 'c' { // parquet has no complex numbers: a list of twice as many
		c.values, c.element = 2*size, int64(d.Size)/2
	}
	c.list = c.values > 1
	return c, nil
}

func (parquetFormat) Name() string { return "parquet" }

// table returns the columns of a file of layout l, checked.
func (f parquetFormat) table(l Layout) ([]parquetColumn, error) {
	if err := l.Check(); err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	columns := f.columns
	if columns == nil {
		c, err := newParquetColumn("data", l.DType, l.SampleBytes()/int64(l.DType.Size))
		if err != nil {
			return nil, fmt.Errorf("parquet: %w", err)
		}
		columns = []parquetColumn{c}
	}
	last := columns[len(columns)-1]
	switch row := last.offset + last.width; {
	case f.columns != nil && l.DType.Descr != "|u1":
		return nil, fmt.Errorf("parquet: the element type is %s beside the types of the columns; expected uint8, the bytes of rows", l.DType.Name)
	case row != l.SampleBytes():
		return nil, fmt.Errorf("parquet: samples of %d bytes; a row of the columns has %d", l.SampleBytes(), row)
	case (int64(l.Samples)-1)/f.rows >= parquetMaxGroups:
		return nil, fmt.Errorf("parquet: %d rows in groups of %d are more than %d groups; set dataset.parquet.row_group_size to at least %d",
			l.Samples, f.rows, parquetMaxGroups, (int64(l.Samples)-1)/parquetMaxGroups+1)
	}
	return columns, nil
}

// pageRows is the number of rows of a full page.
func (c *parquetColumn) pageRows() int64 { return max(1, parquetPage/c.width) }

// groups calls yield for each row group: its first row, and how many there are.
func (f parquetFormat) groups(rows int64, yield func(first, n int64) error) error {
	for first := int64(0); first < rows; first += f.rows {
		if err := yield(first, min(f.rows, rows-first)); err != nil {
			return err
		}
	}
	return nil
}

// bodyLen is the bytes of a page of n rows before compression.
func (c *parquetColumn) bodyLen(n int64) int64 {
	values := n * c.values
	size := values * c.element
	switch c.form {
	case storedWide:
		size *= 2
	case storedIndexed:
		groups := (values + 7) / 8
		size = 1 + uvarintLen(groups<<1|1) + 8*groups
	case storedBits:
		size = (values + 7) / 8
	case storedText:
		size += 4 * values
	}
	if c.list {
		size += 4 + n*int64(len(c.repetitions(nil))) + 4 + uvarintLen(values<<1) + 1
	}
	return size
}

// repetitions appends the levels of one row of a list: the first number begins a row, the others do not.
func (c *parquetColumn) repetitions(p []byte) []byte {
	p = append(p, 1<<1, 0)
	if c.values == 1 {
		return p
	}
	return append(binary.AppendUvarint(p, uint64(c.values-1)<<1), 1)
}

func uvarintLen(v int64) int64 {
	n := int64(1)
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// dictionary is the bytes of the page of the 256 numbers that a byte can be, in the order of the byte.
func (c *parquetColumn) dictionary() []byte {
	p := make([]byte, 0, 4*256)
	for i := range 256 {
		v := uint32(i)
		if c.converted == pqInt8 {
			v = uint32(int32(int8(i)))
		}
		p = binary.LittleEndian.AppendUint32(p, v)
	}
	return p
}

// pageHeader appends the header of a page of so many values and bytes.
func (c *parquetColumn) pageHeader(p []byte, kind, values, body, packed int64) []byte {
	w := thriftWriter{b: p}
	w.i32(1, kind)
	w.i32(2, body)
	w.i32(3, packed)
	if kind == pqDictionaryPage {
		s := w.begin(7)
		w.i32(1, values)
		w.i32(2, pqPlain)
		w.end(s)
	} else {
		s := w.begin(5)
		w.i32(1, values)
		w.i32(2, c.encoding())
		w.i32(3, pqRLE)
		w.i32(4, pqRLE)
		w.end(s)
	}
	return append(w.b, thriftStop)
}

func (c *parquetColumn) encoding() int64 {
	if c.form == storedIndexed {
		return pqDictionary
	}
	return pqPlain
}

// parquetChunk is a column in a row group, as the footer describes it.
type parquetChunk struct {
	offset, data, size, plain, values int64
}

// chunkOf returns what a column of n rows takes at the given offset, at most where sizes depend on content.
func (f parquetFormat) chunkOf(c *parquetColumn, offset, n int64) parquetChunk {
	ch := parquetChunk{offset: offset, data: offset, values: n * c.values}
	page := func(kind, values, body, times int64) {
		packed := f.codec.most(body)
		header := int64(len(c.pageHeader(nil, kind, values, body, packed)))
		ch.size += times * (header + packed)
		ch.plain += times * (header + body)
	}
	if c.form == storedIndexed {
		page(pqDictionaryPage, 256, 4*256, 1)
		ch.data += ch.size
	}
	full := c.pageRows()
	if n >= full {
		page(pqDataPage, full*c.values, c.bodyLen(full), n/full)
	}
	if rest := n % full; rest > 0 {
		page(pqDataPage, rest*c.values, c.bodyLen(rest), 1)
	}
	return ch
}

// parquetShape is what a size depends on.
type parquetShape struct {
	samples int
	bytes   int64 // of a row
	dtype   string
}

// parquetSizes remembers the sizes of files, which take a while to add up.
type parquetSizes struct {
	mu    sync.Mutex
	known map[parquetShape]int64
}

// Size of a parquetPacked is an upper bound.
func (f parquetFormat) Size(l Layout) (int64, error) {
	columns, err := f.table(l)
	if err != nil {
		return 0, err
	}
	shape := parquetShape{l.Samples, l.SampleBytes(), l.DType.Descr}
	f.sizes.mu.Lock()
	defer f.sizes.mu.Unlock()
	if n, ok := f.sizes.known[shape]; ok {
		return n, nil
	}
	n := f.sizeOf(columns, int64(l.Samples))
	if len(f.sizes.known) < 1000 {
		f.sizes.known[shape] = n
	}
	return n, nil
}

// sizeOf adds up a file's bytes.
func (f parquetFormat) sizeOf(columns []parquetColumn, rows int64) int64 {
	at := int64(len(parquetMagic))
	footer := int64(len(f.footerHead(nil, columns, rows)) + len(f.footerEnd(nil)))
	// Chunks differ in their offsets only, from one full group to the next.
	chunks := make([]parquetChunk, len(columns))
	meta := make([]int64, len(columns))
	last := int64(-1)
	_ = f.groups(rows, func(_, n int64) error {
		var size int64
		for i := range columns {
			c := &columns[i]
			if n != last {
				chunks[i] = f.chunkOf(c, 0, n)
				meta[i] = int64(len(f.chunkMeta(nil, c, chunks[i]))) - varintLen(chunks[i].data)
			}
			ch := chunks[i]
			footer += meta[i] + varintLen(at+ch.data)
			if c.form == storedIndexed {
				footer += varintLen(at) - 1 // the offset was 0
			}
			at += ch.size
			size += ch.plain
		}
		last = n
		footer += int64(len(f.groupHead(nil, len(columns))) + len(f.groupEnd(nil, size, n)))
		return nil
	})
	return at + footer + parquetTail
}

// Measure writes the file to nowhere.
func (f parquetPacked) Measure(l Layout, c Content, buf []byte) (int64, error) {
	var n countingWriter
	err := f.Write(&n, l, c, buf)
	return int64(n), err
}

type countingWriter int64

func (w *countingWriter) Write(p []byte) (int, error) {
	*w += countingWriter(len(p))
	return len(p), nil
}
