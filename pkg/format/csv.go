package format

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strconv"
	"sync"
)

// table is a text of numbers, one line a sample, without a header: the elements in C order, decimal, separated by commas. It may
// be compressed whole. Its size follows from the numbers.
type table struct {
	packing string // "", "gzip", "bz2", "zip" or "xz"
	foreign int    // samples of each file of other origin, whose lines hold anything; 0: files are ours
	writers *sync.Pool
	readers *sync.Pool
}

// newTable makes csv files, compressed in each way that DLIO hands to pandas. All encoders are ours: that of a library may pack the same text
// into other bytes in its next release.
func newTable(s Spec) (Format, error) {
	if err := s.only("compression"); err != nil {
		return nil, err
	}
	switch s.Compression {
	case "", "gzip", "bz2", "zip", "xz":
	default:
		return nil, fmt.Errorf("dataset.compression is %q; csv files are written uncompressed (none), or by gzip, bz2, zip or xz: take one of these",
			s.Compression)
	}
	return table{packing: s.Compression, writers: &sync.Pool{New: func() any { return newTableWriter() }},
		readers: &sync.Pool{New: func() any { return newTableReader() }}}, nil
}

func (table) Name() string { return "csv" }

// Extension is pandas' own: it opens a file by what its name ends in. DLIO writes such names too, and then does not find them.
func (f table) Extension() string {
	switch f.packing {
	case "":
		return "csv"
	case "gzip":
		return "csv.gz"
	}
	return "csv." + f.packing
}

// widest returns the most bytes that an element takes as text, and 0 for types that are not written.
func (table) widest(d DType) int64 {
	switch d.Descr[1:] {
	case "f2", "f4":
		return int64(len("-1.23456789e-38"))
	case "f8":
		return int64(len("-1.2345678901234567e-308"))
	case "c8", "c16":
		return 0
	}
	digits := [...]int64{1: 3, 2: 5, 4: 10, 8: 20}[d.Size] // of the largest unsigned number
	if d.Descr[1] == 'i' {
		digits = [...]int64{1: 4, 2: 6, 4: 11, 8: 20}[d.Size] // of the least number, with its sign
	}
	return digits
}

// bound returns the most bytes of text.
func (f table) bound(l Layout) (int64, error) {
	if err := l.Check(); err != nil {
		return 0, fmt.Errorf("csv: %w", err)
	}
	w := f.widest(l.DType)
	if w == 0 {
		return 0, fmt.Errorf("csv: element type %s has no form as one number of a table; take real numbers", l.DType.Name)
	}
	n := mul(l.PayloadBytes()/int64(l.DType.Size), w+1)
	if n > maxPayload {
		return 0, fmt.Errorf("csv: layout: %v x %d samples of %s exceed 2^62 bytes in one file", l.Dims, l.Samples, l.DType.Name)
	}
	return n, nil
}

// gzipFrame is header and trailer of a gzip file.
const gzipFrame = 10 + 8

// memberTable is the name of the one table in a zip file.
const memberTable = "x.csv"

// Size is the most that a file of the layout takes: each number the longest of its type.
func (f table) Size(l Layout) (int64, error) {
	n, err := f.bound(l)
	if err != nil {
		return 0, err
	}
	switch f.packing {
	case "bz2":
		return f.packed(n, bzipBound(n)), nil
	case "xz":
		return f.packed(n, xzBound(n)), nil
	}
	return f.packed(n, deflateBound(n)), nil
}

// packed is the size of a file of n bytes of text that the packer makes d of.
func (f table) packed(n, d int64) int64 {
	switch f.packing {
	case "gzip":
		return gzipFrame + d
	case "zip":
		m := member{name: memberTable, method: deflateMethod, bytes: n, packed: d}
		return m.end() + int64(len(appendDirectory(nil, m)))
	case "bz2", "xz":
		return d
	}
	return n
}

// packer compresses what is written between reset and close: the deflater, the bzipper and the xzer.
type packer interface {
	reset(out *writer) // out nil: only counts
	write(p []byte) error
	close() (int64, error) // the bytes that it made
}

func newPacker(packing string) packer {
	switch packing {
	case "bz2":
		return newBzipper()
	case "xz":
		return newXzer()
	}
	return newDeflater()
}

// Measure returns the size of a file with content c.
func (f table) Measure(l Layout, c Content, _ []byte) (int64, error) {
	if _, err := f.bound(l); err != nil {
		return 0, err
	}
	w := f.writers.Get().(*tableWriter)
	defer f.writers.Put(w)
	if err := w.pass(l, c, f.packing, nil); err != nil {
		return 0, err
	}
	return f.packed(w.bytes, w.packed), nil
}

func (f table) Write(to io.Writer, l Layout, c Content, buf []byte) error {
	if _, err := f.bound(l); err != nil {
		return err
	}
	w := f.writers.Get().(*tableWriter)
	defer f.writers.Put(w)
	out := &w.out
	*out = writer{w: to, buf: buffer(buf)}
	defer func() { *out = writer{} }()
	var m member
	switch f.packing {
	case "gzip": // compressed, no name, no time, made on an unknown system
		if err := out.write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}); err != nil {
			return err
		}
	case "zip":
		// The local header needs the checksum and the size of what follows: a pass that only counts comes before.
		if err := w.pass(l, c, f.packing, nil); err != nil {
			return err
		}
		m = member{name: memberTable, method: deflateMethod, bytes: w.bytes, packed: w.packed, crc: w.crc}
		if err := out.write(appendLocal(nil, m)); err != nil {
			return err
		}
	}
	if err := w.pass(l, c, f.packing, out); err != nil {
		return err
	}
	switch f.packing {
	case "gzip":
		trailer := binary.LittleEndian.AppendUint32(nil, w.crc)
		if err := out.write(binary.LittleEndian.AppendUint32(trailer, uint32(w.bytes))); err != nil {
			return err
		}
	case "zip":
		if err := out.write(appendDirectory(nil, m)); err != nil {
			return err
		}
	}
	return out.flush()
}

// tableWriter makes the text of a table, piece by piece.
type tableWriter struct {
	out      writer
	elements [2 << 10]byte
	text     []byte
	packer   packer         // of the format's packing, made when first used
	small    [1 << 8][]byte // all numbers of one byte and their commas, made when first used
	signed   bool           // what small holds

	// Of the pass that was made: text, its checksum, and what it is packed to.
	bytes, packed int64
	crc           uint32
}

func newTableWriter() *tableWriter { return &tableWriter{text: make([]byte, 0, 40<<10)} }

// pass makes the whole text, and writes it to out, compressed if so; out nil: it only counts.
func (w *tableWriter) pass(l Layout, c Content, packing string, out *writer) error {
	w.bytes, w.packed, w.crc = 0, 0, 0
	if packing != "" {
		if w.packer == nil {
			w.packer = newPacker(packing)
		}
		w.packer.reset(out)
	}
	width := int64(l.DType.Size)
	cells, all := l.SampleBytes()/width, l.PayloadBytes()
	row := cells // cells left in the row
	for off := int64(0); off < all; {
		p := w.elements[:min(int64(len(w.elements)), all-off)]
		c.Fill(p, off)
		off += int64(len(p))
		w.text = w.text[:0]
		for len(p) > 0 {
			n := min(int64(len(p))/width, row)
			w.cells(l.DType, p[:n*width])
			p = p[n*width:]
			if row -= n; row == 0 {
				w.text[len(w.text)-1] = '\n'
				row = cells
			}
		}
		w.bytes += int64(len(w.text))
		var err error
		switch {
		case packing != "":
			if out == nil && packing == "zip" || out != nil && packing == "gzip" {
				w.crc = crc32.Update(w.crc, crc32.IEEETable, w.text)
			}
			err = w.packer.write(w.text)
		case out != nil:
			err = out.write(w.text)
		}
		if err != nil {
			return err
		}
	}
	if packing == "" {
		return nil
	}
	var err error
	w.packed, err = w.packer.close()
	return err
}

// cells appends elements as text, a comma behind each.
func (w *tableWriter) cells(d DType, p []byte) {
	t := w.text
	signed := d.Descr[1] == 'i'
	switch kind := d.Descr[1:]; {
	case d.Size == 1:
		if w.small[0] == nil || w.signed != signed {
			w.fillSmall(signed)
		}
		for _, b := range p {
			t = append(t, w.small[b]...)
		}
	case kind == "f2":
		for ; len(p) > 0; p = p[2:] {
			t = append(strconv.AppendFloat(t, float64(half(binary.LittleEndian.Uint16(p))), 'g', -1, 32), ',')
		}
	case kind == "f4":
		for ; len(p) > 0; p = p[4:] {
			t = append(strconv.AppendFloat(t, float64(math.Float32frombits(binary.LittleEndian.Uint32(p))), 'g', -1, 32), ',')
		}
	case kind == "f8":
		for ; len(p) > 0; p = p[8:] {
			t = append(strconv.AppendFloat(t, math.Float64frombits(binary.LittleEndian.Uint64(p)), 'g', -1, 64), ',')
		}
	default:
		var wide [8]byte
		for ; len(p) > 0; p = p[d.Size:] {
			copy(wide[:], p[:d.Size])
			switch v := binary.LittleEndian.Uint64(wide[:]); {
			case signed:
				unused := 64 - 8*d.Size
				t = strconv.AppendInt(t, int64(v<<unused)>>unused, 10)
			default:
				t = strconv.AppendUint(t, v, 10)
			}
			t = append(t, ',')
		}
	}
	w.text = t
}

func (w *tableWriter) fillSmall(signed bool) {
	w.signed = signed
	for b := range w.small {
		v := int64(b)
		if signed {
			v = int64(int8(b))
		}
		w.small[b] = append(strconv.AppendInt(nil, v, 10), ',')
	}
}

// half returns the number that the bits of a half-precision number stand for; all of them are numbers of single precision too.
func half(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&1023
	switch exponent {
	case 0:
		f := float32(fraction) * 0x1p-24
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 31:
		return math.Float32frombits(sign | 255<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}
