package format

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/benchpin/benchpin/pkg/workload"
)

// ForeignSpec takes the container of files that nobody here wrote from a workload's section "dataset". Keys that say how files are
// written have no part in it, and the columns of a table are those that it has, unless the workload names those to read.
func ForeignSpec(d *workload.Dataset) (Spec, error) {
	c := *d
	if c.Format != "csv" { // there it says how the text is read
		c.Compression = "none"
	}
	c.EnableChunking, c.HDF5.ChunkDims, c.HDF5.MaxShape, c.JPEG.Sizing = false, nil, nil, workload.SizingExact
	s, err := SpecOf(&c)
	if err == nil && len(d.Parquet.Columns) == 0 {
		s.Columns = nil
	}
	return s, err
}

// NewForeign returns the format s as it reads files of other origin, of which is known how many samples a run takes each to hold.
//
// With one sample a file, the sample is the file: all of it is read, whatever it holds, once its first bytes (and more, where checking
// costs nothing) say that it is a file of this format. With more, a sample is what the format's readers take it for:
//
//	hdf5      row k of records_0 ..., or of the data set with the most bytes in the root group
//	tfrecord  record k, whatever it holds; both of its checksums are compared
//	parquet   row k: the row group that holds it
//	indexed   what the indexes say
//	npz, npy  a share of the file, which is read whole, as numpy does: its arrays are samples along their first or their last axis
//	csv       line k of the file, which is read whole, as pandas does
//
// Images and raw files hold one sample each; synthetic files none that could be read.
func NewForeign(s Spec, samples int) (Format, error) {
	f, err := New(s)
	if err != nil {
		return nil, err
	}
	if samples < 1 {
		return nil, fmt.Errorf("dataset.num_samples_per_file is %d; expected at least 1", samples)
	}
	switch g := f.(type) {
	case npz:
		g.foreign = samples
		return g, nil
	case npy:
		return foreignNPY{g, samples}, nil
	case table:
		g.foreign = samples
		return g, nil
	case synthetic:
		return nil, fmt.Errorf("dataset.format is synthetic, whose reader reads nothing; data that are there are read as another format, or as %s", RawName)
	case raw, jpeg, png:
		if samples > 1 {
			return nil, fmt.Errorf("dataset.num_samples_per_file is %d; a file of format %s is one sample", samples, s.Name)
		}
		return f, nil
	case indexed:
		return f, nil
	case tfrecord:
		if samples == 1 {
			return &wholeFile{name: s.Name, check: g.wholeStart}, nil
		}
		g.foreign = true
		return g, nil
	case hdf5:
		if samples == 1 {
			return &wholeFile{name: s.Name, check: magicAt(s.Name, h5Signature, "not an HDF5 file: the first bytes are not its signature")}, nil
		}
		g.foreign = true
		return g, nil
	case parquetFormat:
		if samples == 1 {
			return &wholeFile{name: s.Name, check: magicAt(s.Name, parquetMagic, "not a parquet file: it does not begin with "+parquetMagic),
				tail: parquetMagic}, nil
		}
		return f, nil
	}
	return f, nil
}

// wholeFile reads files of a container whose samples could be read one by one as one sample each.
type wholeFile struct {
	name string
	// check looks at the first piece of a file of the given size, of at least MinBuffer bytes where the file has as many.
	check func(p []byte, size int64) error
	tail  string // what the file ends in, at most 8 bytes
}

func (f *wholeFile) Name() string { return f.name }

func (f *wholeFile) refuse() error {
	return fmt.Errorf("%s: files of other origin are read, and not written", f.name)
}

func (f *wholeFile) Size(Layout) (int64, error)                     { return 0, f.refuse() }
func (f *wholeFile) Write(io.Writer, Layout, Content, []byte) error { return f.refuse() }

func (f *wholeFile) ReadSample(file io.ReaderAt, size int64, k int, buf []byte) (Sample, error) {
	if k != 0 {
		return Sample{}, &DataError{Format: f.name, Problem: fmt.Sprintf("sample %d is asked for; the file is taken for one", k)}
	}
	if size == 0 {
		return Sample{}, &DataError{Format: f.name, Problem: "the file is empty", Err: io.ErrUnexpectedEOF}
	}
	buf = buffer(buf)
	var last [8]byte
	n := 0
	for at := int64(0); at < size; {
		p := buf[:min(int64(len(buf)), size-at)]
		if err := readPiece(f.name, file, p, at); err != nil {
			return Sample{}, err
		}
		if at == 0 {
			if err := f.check(p, size); err != nil {
				return Sample{}, err
			}
		}
		if len(p) >= len(last) {
			n = copy(last[:], p[len(p)-len(last):])
		} else { // the last piece may be short
			kept := min(n, len(last)-len(p))
			copy(last[:], last[n-kept:n])
			n = kept + copy(last[kept:], p)
		}
		at += int64(len(p))
	}
	if tail := last[max(0, n-len(f.tail)):n]; string(tail) != f.tail {
		return Sample{}, &DataError{Format: f.name, Offset: max(0, size-int64(len(f.tail))), Problem: fmt.Sprintf("the file ends in %q and not in %s",
			bytes.Clone(tail), f.tail)}
	}
	return Sample{Logical: size, Asked: size}, nil
}

// magicAt checks the first bytes of a file.
func magicAt(name, magic, problem string) func([]byte, int64) error {
	return func(p []byte, size int64) error {
		if bytes.HasPrefix(p, []byte(magic)) {
			return nil
		}
		if size < int64(len(magic)) && bytes.HasPrefix([]byte(magic), p) {
			return &DataError{Format: name, Offset: size, Problem: "the file ends here, too early", Err: io.ErrUnexpectedEOF}
		}
		return &DataError{Format: name, Problem: problem}
	}
}

// wholeStart checks the frame of the first record: its length has a checksum of its own.
func (f tfrecord) wholeStart(p []byte, size int64) error {
	if len(p) < tfHeader {
		return &DataError{Format: f.Name(), Offset: size, Problem: "the file ends here, too early", Err: io.ErrUnexpectedEOF}
	}
	n, want := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint32(p[8:])
	if got := masked(crc32.Checksum(p[:8], castagnoli())); got != want {
		return &DataError{Format: f.Name(), Offset: tfHeader, Problem: fmt.Sprintf("the length of the record at byte 0 has checksum %08x, not %08x", got, want)}
	}
	if rest := size - tfHeader - tfFooter; rest < 0 || n > uint64(rest) {
		return &DataError{Format: f.Name(), Offset: min(size, tfHeader), Problem: fmt.Sprintf("a record of %d bytes and its checksum, and %d bytes follow", n,
			size-tfHeader)}
	}
	return nil
}

// foreignNPY is an array of any shape and any type of elements.
type foreignNPY struct {
	npy
	samples int
}

// ReadSample reads the whole file, as numpy.load does.
func (f foreignNPY) ReadSample(file io.ReaderAt, size int64, k int, buf []byte) (Sample, error) {
	r := f.readers.Get().(*reader)
	defer f.readers.Put(r)
	defer r.release()
	r.reset(file, size, buf)
	h, err := npyHeaderOf(r, true)
	if err != nil {
		return Sample{}, err
	}
	switch rest := size - h.length; {
	case !h.opaque && rest != h.payload:
		return Sample{}, r.problem(fmt.Sprintf("the header announces %d bytes of elements, and %d follow", h.payload, rest))
	case !h.holds(f.samples):
		return Sample{}, r.problem(fmt.Sprintf("an array of %d samples along its first axis and %d along its last; expected %d along one of them "+
			"(dataset.num_samples_per_file)", h.first, h.samples, f.samples))
	case k < 0 || k >= f.samples:
		return Sample{}, r.problem(fmt.Sprintf("sample %d is asked for; the file is taken for %d", k, f.samples))
	}
	if err := r.skip(size - h.length); err != nil {
		return Sample{}, err
	}
	return Sample{Logical: size / int64(f.samples), Asked: size}, nil
}

// holds reports whether the array can be so many samples. Any array is one.
func (h npyHeader) holds(samples int) bool {
	return samples == 1 || h.first == int64(samples) || h.samples == int64(samples)
}

// foreignArray reads a member of a foreign npz file.
func (z *zipReader) foreignArray(e entry) error {
	deflated := e.method != 0
	var src source = z
	if deflated {
		if err := z.inflated.start(z, e); err != nil {
			return err
		}
		src = &z.inflated
	}
	h := npyHeader{}
	if z.foreign > 1 {
		var err error
		if h, err = npyHeaderOf(src, true); err != nil {
			return err
		}
		if !h.opaque && e.plain-h.length != h.payload {
			return z.problem(fmt.Sprintf("an array's header announces %d bytes of elements, and %d follow", h.payload, e.plain-h.length))
		}
		z.fits = z.fits || h.holds(z.foreign)
	}
	if !deflated {
		return z.skip(e.packed - h.length)
	}
	for z.inflated.plain < e.plain {
		if err := z.inflated.more(); err != nil {
			return err
		}
	}
	return z.inflated.finish(z, e)
}

// foreignSample is a sample of a foreign npz file that was read.
func (z *zipReader) foreignSample(k int, size int64) (Sample, error) {
	switch {
	case z.members == 0:
		return Sample{}, z.problem("a zip file without arrays")
	case z.foreign > 1 && !z.fits:
		return Sample{}, z.problem(fmt.Sprintf("none of %d arrays has %d samples along its first or last axis (dataset.num_samples_per_file)", z.members, z.foreign))
	case k < 0 || k >= z.foreign:
		return Sample{}, z.problem(fmt.Sprintf("sample %d is asked for; the file is taken for %d", k, z.foreign))
	}
	return Sample{Logical: size / int64(z.foreign), Asked: size}, nil
}

// lines counts the lines of a foreign text.
func (t *tableReader) lines(p []byte) {
	if len(p) > 0 {
		t.rows += int64(bytes.Count(p, []byte{'\n'}))
		t.cell = p[len(p)-1] != '\n'
	}
}

// foreignSample is a line of a foreign text that was read.
func (t *tableReader) foreignSample(k int, size int64) (Sample, error) {
	if t.cell { // the last line has no end, as in many files
		t.rows++
	}
	if k < 0 || k >= t.foreign || t.foreign > 1 && int64(k) >= t.rows {
		return Sample{}, t.zip.problem(fmt.Sprintf("line %d is asked for; the file has %d and is taken for %d", k, t.rows, t.foreign))
	}
	return Sample{Logical: Unsaid, Asked: size}, nil
}

// largest finds, of all that stands in the root group, the data set with the most bytes.
func (r *h5Reader) largest(at int64) error {
	most := int64(-1)
	var bad error
	for _, address := range r.others {
		var d h5Object
		if err := r.object(int64(address), &d); err != nil {
			bad = err // of a kind that is not read: another one may be
			continue
		}
		if !d.haveSpace || !d.haveType || !d.haveLayout || d.rank == 0 {
			continue
		}
		if n := mul(mul(d.rowElements, d.elementSize), int64(min(d.count, 1<<62))); n > most {
			most, r.sets[0] = n, address
		}
	}
	if most >= 0 {
		return nil
	}
	if bad != nil {
		return bad
	}
	return r.problem(at, "no data set of numbers in the root group")
}

// CountSamples looks into a file for how many samples it holds, for containers that say it: rows of hdf5 and parquet, records of tfrecord,
// numbers of an index. It is false for others. open opens companion i, which the caller closes; nil where there are none.
func CountSamples(f Format, file io.ReaderAt, size int64, open func(i int) (io.ReaderAt, int64, error)) (n int64, known bool, err error) {
	switch g := f.(type) {
	case hdf5:
		r := &h5Reader{foreign: true}
		r.reset(file, size, nil)
		if err := r.root(g.datasets); err != nil {
			return 0, true, err
		}
		var d h5Object
		if err := r.object(int64(r.sets[0]), &d); err != nil {
			return 0, true, err
		}
		return int64(min(d.count, 1<<62)), true, nil
	case parquetFormat:
		r := &parquetReader{reader: reader{format: "parquet"}, remember: true}
		r.reset(file, size, nil)
		r.table, r.row = g, 0
		err := r.footer(size)
		if err != nil && r.rows == 0 {
			return 0, true, err
		}
		return r.rows, true, nil
	case tfrecord:
		n, err := g.records(file, size)
		return n, true, err
	case indexed:
		if open == nil {
			return 0, true, fmt.Errorf("%s: a file without its indexes", g.name)
		}
		_, bytes, err := open(0)
		return bytes / indexEntry, true, err
	}
	return 0, false, nil
}

// records counts records from length to length.
func (f tfrecord) records(file io.ReaderAt, size int64) (n int64, err error) {
	t := &tfReader{reader: reader{format: "tfrecord"}, foreign: f.foreign}
	buf := make([]byte, MinBuffer)
	for at := int64(0); at < size; n++ {
		t.reset(file, size, buf)
		t.window(at, min(tfHeader, size-at))
		length, err := t.frame(size)
		if err != nil {
			return n, err
		}
		at += tfHeader + length + tfFooter
	}
	return n, nil
}

// foreignFormats are those that take part of reading foreign files by types of their own.
var (
	_ Format = (*wholeFile)(nil)
	_ Format = foreignNPY{}
)
