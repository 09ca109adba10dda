package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/klauspost/compress/flate"
)

// zipReader walks through a zip file from front to back. Members must follow each other without gaps, with their sizes
// in the local headers, as in every file that numpy wrote to a path.
type zipReader struct {
	reader
	inflated inflater
	table    *tableReader // what reads the file's one member; nil: the file holds arrays

	// What the members said, to compare with the central directory, which repeats it. sum adds up a hash of each
	// member, so that nothing is kept for a member and their number does not matter.
	members   int64
	localSum  uint64
	centrals  int64
	centSum   uint64
	x         npyHeader
	haveX     bool
	foreign   int   // samples of each file of other origin, whose arrays have any names; 0: the file is one of ours
	fits      bool  // an array of a foreign file has as many
	directory int64 // offset of the central directory
	end64     int64 // offset of the 64-bit end record, 0 if there is none
}

// entry is what local header and directory both hold of one member.
type entry struct {
	method, flags  uint16
	crc            uint32
	packed, plain  int64
	offset, extras int64
	nameLen        int
	name           uint64 // hash
	isX            bool
}

// hash mixes everything that both places must agree on.
func (e entry) hash() uint64 {
	h := e.name
	for _, v := range [...]uint64{uint64(e.method), uint64(e.flags), uint64(e.crc), uint64(e.packed), uint64(e.plain), uint64(e.offset)} {
		h = (h ^ v) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

// ReadSample reads the whole file, as numpy.load(path)["x"] does at the end of all seeks. The checksum of a stored array
// is not computed: that is the business of verification, before the clock starts. A deflated array's is.
func (f npz) ReadSample(file io.ReaderAt, size int64, k int, buf []byte) (Sample, error) {
	z := f.readers.Get().(*zipReader)
	defer f.readers.Put(z)
	defer z.release()
	*z = zipReader{reader: z.reader, inflated: z.inflated, foreign: f.foreign}
	z.reset(file, size, buf)
	if err := z.walk(); err != nil {
		return Sample{}, err
	}
	if f.foreign > 0 {
		return z.foreignSample(k, size)
	}
	if k < 0 || int64(k) >= z.x.samples {
		return Sample{}, z.problem(fmt.Sprintf("sample %d is asked for; x holds %d", k, z.x.samples))
	}
	return Sample{Logical: z.x.sampleBytes(), Asked: size}, nil
}

func (z *zipReader) walk() error {
	for {
		sig, err := z.take(4)
		if err != nil {
			return err
		}
		switch string(sig) {
		case sigLocal:
			err = z.local()
		case sigCentral:
			err = z.central()
		case sigEnd64:
			err = z.endRecord64()
		case sigEnd64Loc:
			err = z.endLocator()
		case sigEnd:
			return z.endRecord()
		default:
			return z.problem("not a zip file as numpy writes it: no record starts 4 bytes before")
		}
		if err != nil {
			return err
		}
	}
}

// local reads one member: header and data.
func (z *zipReader) local() error {
	if z.centrals > 0 || z.end64 > 0 {
		return z.problem("an array follows the central directory")
	}
	e := entry{offset: z.at() - 4}
	p, err := z.take(localSize - 4)
	if err != nil {
		return err
	}
	z.fields(&e, p[2:])
	if err := z.nameAndExtra(&e, false); err != nil {
		return err
	}
	switch {
	case e.flags&1 != 0:
		return z.problem("an encrypted array")
	case e.flags&8 != 0:
		return z.problem("sizes follow the data (flag bit 3), as in a file that was written to a pipe; write it to a path")
	case e.method != 0 && e.method != 8:
		return z.problem("an array compressed by a method that numpy does not write; stored and deflated are known")
	case e.method == 0 && e.packed != e.plain:
		return z.problem(fmt.Sprintf("a stored array of %d bytes in %d", e.plain, e.packed))
	case e.packed > z.size-z.at():
		return z.problem(fmt.Sprintf("an array of %d bytes, and %d follow", e.packed, z.size-z.at()))
	}
	z.members++
	z.localSum += e.hash()
	if z.table != nil {
		if z.members > 1 {
			return z.problem("more than one table")
		}
		return z.table.member(z, e)
	}
	if z.foreign > 0 {
		return z.foreignArray(e)
	}
	if !e.isX {
		return z.skip(e.packed)
	}
	if z.haveX {
		return z.problem("x.npy occurs twice")
	}
	z.haveX = true
	if e.method == 8 {
		return z.inflated.array(z, e)
	}
	if z.x, err = readNPYHeader(z); err != nil {
		return err
	}
	if err := z.arraySize(e); err != nil {
		return err
	}
	return z.skip(z.x.payload)
}

func (z *zipReader) arraySize(e entry) error {
	if rest := e.plain - z.x.length; rest != z.x.payload {
		return z.problem(fmt.Sprintf("the header of x announces %d bytes of elements, and %d follow", z.x.payload, rest))
	}
	return nil
}

// fields reads the fields that local header and directory have in common, from the flags on.
func (z *zipReader) fields(e *entry, p []byte) {
	e.flags, e.method = binary.LittleEndian.Uint16(p), binary.LittleEndian.Uint16(p[2:])
	e.crc = binary.LittleEndian.Uint32(p[8:])
	e.packed, e.plain = int64(binary.LittleEndian.Uint32(p[12:])), int64(binary.LittleEndian.Uint32(p[16:]))
	e.nameLen, e.extras = int(binary.LittleEndian.Uint16(p[20:])), int64(binary.LittleEndian.Uint16(p[22:]))
}

// nameAndExtra reads a member's name and replaces fields that stand in the 64-bit extra field.
func (z *zipReader) nameAndExtra(e *entry, offset bool) error {
	if e.nameLen > 1024 || e.extras > 1024 {
		return z.problem("a name or extra field of more than 1024 bytes")
	}
	name, err := z.take(e.nameLen)
	if err != nil {
		return err
	}
	e.isX = string(name) == memberX
	e.name = 0xcbf29ce484222325
	for _, b := range name { // FNV-1a
		e.name = (e.name ^ uint64(b)) * 0x100000001b3
	}
	extra, err := z.take(int(e.extras))
	if err != nil {
		return err
	}
	want := [3]*int64{&e.plain, &e.packed, &e.offset}
	for len(extra) > 0 {
		if len(extra) < 4 || len(extra)-4 < int(binary.LittleEndian.Uint16(extra[2:])) {
			return z.problem("an extra field longer than its space")
		}
		id, field := binary.LittleEndian.Uint16(extra), extra[4:4+binary.LittleEndian.Uint16(extra[2:])]
		extra = extra[4+len(field):]
		if id != zip64Extra {
			continue
		}
		for i, w := range want {
			if w == nil || *w != use64 || i == 2 && !offset {
				continue
			}
			if len(field) < 8 || binary.LittleEndian.Uint64(field) > math.MaxInt64 {
				return z.problem("a 64-bit extra field without the sizes it should hold")
			}
			*w = int64(binary.LittleEndian.Uint64(field))
			field = field[8:]
			want[i] = nil
		}
	}
	return nil
}

// central reads one entry of the central directory.
func (z *zipReader) central() error {
	if z.centrals == 0 {
		z.directory = z.at() - 4
	}
	if z.end64 > 0 {
		return z.problem("an entry follows the end of the central directory")
	}
	p, err := z.take(centralSize - 4)
	if err != nil {
		return err
	}
	comment := int64(binary.LittleEndian.Uint16(p[28:]))
	e := entry{offset: int64(binary.LittleEndian.Uint32(p[38:]))}
	z.fields(&e, p[4:])
	if err := z.nameAndExtra(&e, true); err != nil {
		return err
	}
	z.centrals++
	z.centSum += e.hash()
	return z.skip(comment)
}

// endRecord64 reads the 64-bit end record, and checks what it repeats.
func (z *zipReader) endRecord64() error {
	start := z.at() - 4
	p, err := z.take(end64Size - 4)
	if err != nil {
		return err
	}
	count, size, offset := binary.LittleEndian.Uint64(p[28:]), binary.LittleEndian.Uint64(p[36:]), binary.LittleEndian.Uint64(p[44:])
	if binary.LittleEndian.Uint64(p) != end64Size-12 || count != uint64(z.centrals) ||
		offset != uint64(z.directory) || size != uint64(start-z.directory) {
		return z.problem("the 64-bit end record does not describe the central directory before it")
	}
	z.end64 = start
	return nil
}

func (z *zipReader) endLocator() error {
	p, err := z.take(end64LocSize - 4)
	if err != nil {
		return err
	}
	if z.end64 == 0 || binary.LittleEndian.Uint64(p[4:]) != uint64(z.end64) {
		return z.problem("the locator does not point at the 64-bit end record before it")
	}
	return nil
}

// endRecord reads the end of the file, and compares the members with the directory.
func (z *zipReader) endRecord() error {
	size := z.at() - 4 - z.directory
	if z.end64 > 0 {
		size = z.end64 - z.directory
	}
	p, err := z.take(endSize - 4)
	if err != nil {
		return err
	}
	fits := func(field uint64, top uint64, value int64) bool {
		return field == uint64(value) || z.end64 > 0 && field == top
	}
	comment := int64(binary.LittleEndian.Uint16(p[16:]))
	switch {
	case z.members != z.centrals:
		return z.problem(fmt.Sprintf("%d arrays, and %d entries in the central directory", z.members, z.centrals))
	case z.localSum != z.centSum:
		return z.problem("the central directory does not describe the arrays before it")
	case !fits(uint64(binary.LittleEndian.Uint16(p[6:])), math.MaxUint16, z.centrals),
		!fits(uint64(binary.LittleEndian.Uint32(p[8:])), math.MaxUint32, size),
		!fits(uint64(binary.LittleEndian.Uint32(p[12:])), math.MaxUint32, z.directory):
		return z.problem("the end record does not describe the central directory before it")
	case z.size-z.at() != comment:
		return z.problem(fmt.Sprintf("a comment of %d bytes, and %d follow", comment, z.size-z.at()))
	case z.table != nil && z.members == 0:
		return z.problem("no table")
	case z.table == nil && z.foreign == 0 && !z.haveX:
		return z.problem("no array x.npy")
	}
	return z.skip(comment)
}

// inflater reads a deflated array.
type inflater struct {
	flate  io.ReadCloser // with Reset
	out    []byte
	data   []byte // what is left of out
	packed packed
	plain  int64 // inflated bytes so far
	crc    uint32
	head   []byte // scratch for the array's header
}

// packed hands one member's bytes to flate, which asks byte by byte and so never takes one too many.
type packed struct {
	from *reader
	left int64
	err  error // of the file; flate would hide it
}

func (p *packed) ReadByte() (byte, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	if len(p.from.data) == 0 {
		if err := p.from.more(); err != nil {
			p.err = err
			return 0, err
		}
	}
	b := p.from.data[0]
	p.from.data = p.from.data[1:]
	p.left--
	return b, nil
}

func (p *packed) Read(dst []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	if len(p.from.data) == 0 {
		if err := p.from.more(); err != nil {
			p.err = err
			return 0, err
		}
	}
	n := copy(dst[:min(int64(len(dst)), p.left)], p.from.data)
	p.from.data = p.from.data[n:]
	p.left -= int64(n)
	return n, nil
}

// start begins to inflate the member e of z.
func (i *inflater) start(z *zipReader, e entry) error {
	i.packed = packed{from: &z.reader, left: e.packed}
	i.data, i.plain, i.crc = nil, 0, 0
	if i.flate == nil {
		i.out = make([]byte, 64<<10)
		i.flate = flate.NewReader(&i.packed)
	} else if err := i.flate.(flate.Resetter).Reset(&i.packed, nil); err != nil {
		return fmt.Errorf("%s: %w", z.format, err)
	}
	return nil
}

// array reads the member e of z, header and elements, and checks its length and checksum.
func (i *inflater) array(z *zipReader, e entry) error {
	if err := i.start(z, e); err != nil {
		return err
	}
	var err error
	if z.x, err = readNPYHeader(i); err != nil {
		return err
	}
	if err := z.arraySize(e); err != nil {
		return err
	}
	for i.plain < e.plain {
		if err := i.more(); err != nil {
			return err
		}
	}
	return i.finish(z, e)
}

// finish checks that the member e of z ends here, and its checksum.
func (i *inflater) finish(z *zipReader, e entry) error {
	// The end of the stream comes with the last data or after it.
	n, err := i.flate.Read(i.out[:1])
	switch {
	case i.plain != e.plain || n != 0 || !errors.Is(err, io.EOF) || i.packed.left != 0:
		return z.problem(fmt.Sprintf("a deflated member is not exactly %d bytes", e.plain))
	case i.crc != e.crc:
		return z.problem(fmt.Sprintf("checksum of a deflated member is %08x, not %08x", i.crc, e.crc))
	}
	return nil
}

// more inflates the next piece.
func (i *inflater) more() error {
	n, err := i.flate.Read(i.out)
	i.data = i.out[:n]
	i.plain += int64(n)
	i.crc = crc32.Update(i.crc, crc32.IEEETable, i.data)
	if i.packed.err != nil {
		return i.packed.err
	}
	if n == 0 && err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return &DataError{Format: i.packed.from.format, Offset: i.packed.from.at(), Problem: "deflated data ends early or is damaged", Err: err}
	}
	return nil
}

func (i *inflater) take(n int) ([]byte, error) {
	if cap(i.head) < n {
		i.head = make([]byte, max(n, 1024))
	}
	p := i.head[:n]
	for have := 0; have < n; {
		if len(i.data) == 0 {
			if err := i.more(); err != nil {
				return nil, err
			}
		}
		c := copy(p[have:], i.data)
		i.data = i.data[c:]
		have += c
	}
	return p, nil
}

func (i *inflater) problem(text string) error { return i.packed.from.problem(text) }
