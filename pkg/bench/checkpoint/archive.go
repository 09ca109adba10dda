package checkpoint

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"strconv"
)

// The archive form is PyTorch's: a zip file of stored records under "archive/", each record's data at a multiple of 64
// bytes, sizes and checksums in a descriptor after the data, zip64 end records always. No field holds a time, so
// content alone decides the bytes.
const (
	archivePrefix   = "archive/"
	alignment       = 64
	localHeaderSize = 30
	zipFlags        = 0x0808 // sizes follow the data; names are UTF-8
	limit32         = math.MaxUint32
	formatVersion   = "3\n" // the version of PyTorch's archive format that 1.6 up to 2.0 write for plain tensors
)

// record is one entry of the zip file.
type record struct {
	name   string
	data   []byte // the content, when it is not a tensor
	tensor int    // index of the tensor that is the content; -1: data
	size   int64
	head   int64  // offset of the local header
	start  int64  // offset of the content
	sum    uint32 // of data, in a bundle
}

// zip64 tells whether the record needs 64-bit fields, by PyTorch's rule.
func (r *record) zip64() bool { return r.size >= limit32 || r.head >= limit32 }

// archive is the layout of one file: known to the byte before any content is.
type archive struct {
	tensors []Tensor
	records []record
	// directory is the offset of the central directory, size that of the whole file.
	directory, size int64

	// raw is true for a bundle's data: the records' contents and nothing else. Their checksums are CRC-32C.
	raw bool
	// index makes a bundle's index from the checksums of its data's records. It has no records.
	index func(crcs []uint32) []byte
}

// newArchive lays out the file that torch.save makes of a dictionary of tensors.
func newArchive(state []entry, tensors []Tensor) *archive {
	a := &archive{tensors: tensors}
	pickle := pickleState(state, tensors)
	a.place(record{name: "data.pkl", data: pickle, tensor: -1, size: int64(len(pickle))})
	keys := make([]string, len(tensors))
	for i := range keys {
		keys[i] = strconv.Itoa(i)
	}
	slices.Sort(keys) // as strings: 0, 1, 10, 11, 2
	for _, k := range keys {
		i, _ := strconv.Atoi(k) // made by Itoa above
		a.place(record{name: "data/" + k, tensor: i, size: tensors[i].Bytes()})
	}
	a.place(record{name: "version", data: []byte(formatVersion), tensor: -1, size: int64(len(formatVersion))})
	a.size = a.directory
	for i := range a.records {
		a.size += 46 + int64(len(a.records[i].name)) + int64(len(a.records[i].zip64Extra(0)))
	}
	a.size += 56 + 20 + 22
	return a
}

// place appends a record at the end of what is there.
func (a *archive) place(r record) {
	r.name = archivePrefix + r.name
	r.head = a.directory
	r.start = r.head + localHeaderSize + int64(len(r.name)) + int64(len(r.zip64Extra(r.size))) + 4
	r.start = (r.start + alignment - 1) / alignment * alignment
	a.directory = r.start + r.size + int64(len(r.descriptor(0)))
	a.records = append(a.records, r)
}

// zip64Extra is the zip64 extra field: only the values that do not fit their 32 bits, nothing when all do. The stored
// size is given because PyTorch leaves it 0 in the local header, where readers go by the descriptor.
func (r *record) zip64Extra(stored int64) []byte {
	if !r.zip64() {
		return nil
	}
	var fields []byte
	if r.size >= limit32 {
		fields = binary.LittleEndian.AppendUint64(fields, uint64(r.size))
		fields = binary.LittleEndian.AppendUint64(fields, uint64(stored))
	}
	if r.head >= limit32 {
		fields = binary.LittleEndian.AppendUint64(fields, uint64(r.head))
	}
	out := binary.LittleEndian.AppendUint16(nil, 1)
	out = binary.LittleEndian.AppendUint16(out, uint16(len(fields)))
	return append(out, fields...)
}

// header is the local header, its name and its extra fields, the last of which pads the content to its alignment.
func (r *record) header() []byte {
	extra := r.zip64Extra(0)
	padding := r.start - r.head - localHeaderSize - int64(len(r.name)) - int64(len(extra)) - 4
	extra = append(extra, 'F', 'B')
	extra = binary.LittleEndian.AppendUint16(extra, uint16(padding))
	for range padding {
		extra = append(extra, 'Z')
	}
	out := binary.LittleEndian.AppendUint32(nil, 0x04034b50)
	out = binary.LittleEndian.AppendUint16(out, 0) // version needed
	out = binary.LittleEndian.AppendUint16(out, zipFlags)
	out = append(out, make([]byte, 2+4+4+4+4)...) // stored, no time; checksum and sizes come after the data
	out = binary.LittleEndian.AppendUint16(out, uint16(len(r.name)))
	out = binary.LittleEndian.AppendUint16(out, uint16(len(extra)))
	return append(append(out, r.name...), extra...)
}

// descriptor follows the content.
func (r *record) descriptor(crc uint32) []byte {
	out := binary.LittleEndian.AppendUint32(nil, 0x08074b50)
	out = binary.LittleEndian.AppendUint32(out, crc)
	for range 2 { // stored and plain size
		if r.zip64() {
			out = binary.LittleEndian.AppendUint64(out, uint64(r.size))
		} else {
			out = binary.LittleEndian.AppendUint32(out, uint32(r.size))
		}
	}
	return out
}

// tail is the central directory with its end records.
func (a *archive) tail(crcs []uint32) []byte {
	le := binary.LittleEndian
	var out []byte
	for i := range a.records {
		r := &a.records[i]
		extra := r.zip64Extra(r.size)
		out = le.AppendUint32(out, 0x02014b50)
		out = le.AppendUint32(out, 0) // versions made by, needed
		out = le.AppendUint16(out, zipFlags)
		out = append(out, make([]byte, 2+4)...) // stored, no time
		out = le.AppendUint32(out, crcs[i])
		out = le.AppendUint32(out, clamp32(r.size))
		out = le.AppendUint32(out, clamp32(r.size))
		out = le.AppendUint16(out, uint16(len(r.name)))
		out = le.AppendUint16(out, uint16(len(extra)))
		out = append(out, make([]byte, 2+2+2+4)...) // no comment, disk 0, no attributes
		out = le.AppendUint32(out, clamp32(r.head))
		out = append(append(out, r.name...), extra...)
	}
	count, length := uint64(len(a.records)), int64(len(out))

	out = le.AppendUint32(out, 0x06064b50) // zip64 end of central directory
	out = le.AppendUint64(out, 56-12)
	out = le.AppendUint16(out, 0x031e) // made by
	out = le.AppendUint16(out, 45)     // needed
	out = le.AppendUint64(out, 0)      // disks
	out = le.AppendUint64(out, count)
	out = le.AppendUint64(out, count)
	out = le.AppendUint64(out, uint64(length))
	out = le.AppendUint64(out, uint64(a.directory))

	out = le.AppendUint32(out, 0x07064b50) // its locator
	out = le.AppendUint32(out, 0)
	out = le.AppendUint64(out, uint64(a.directory+length))
	out = le.AppendUint32(out, 1)

	out = le.AppendUint32(out, 0x06054b50) // end of central directory
	out = le.AppendUint32(out, 0)
	out = le.AppendUint16(out, uint16(min(count, math.MaxUint16)))
	out = le.AppendUint16(out, uint16(min(count, math.MaxUint16)))
	out = le.AppendUint32(out, clamp32(length))
	out = le.AppendUint32(out, clamp32(a.directory))
	return le.AppendUint16(out, 0)
}

func clamp32(v int64) uint32 { return uint32(min(v, limit32)) }

// firstTensor is the offset of the first tensor's content.
func (a *archive) firstTensor() int64 {
	for i := range a.records {
		if a.records[i].tensor >= 0 {
			return a.records[i].start
		}
	}
	return a.size
}

// where names the part of the file that the offset lies in, for messages.
func (a *archive) where(off int64) string {
	for i := range a.records {
		r := &a.records[i]
		switch {
		case off >= r.start+r.size || off < r.head:
		case off >= r.start && r.tensor >= 0:
			return "byte " + strconv.FormatInt(off-r.start, 10) + " of tensor " + a.tensors[r.tensor].Name
		case a.raw:
			return r.name
		default:
			return "zip record " + r.name
		}
	}
	if a.index != nil {
		return "index of the tensors"
	}
	return "zip directory"
}

// filler gives bytes [off, off+len(dst)) of a tensor.
type filler func(dst []byte, tensor int, off int64)

// source produces the bytes of one file in order, in pieces of any size, without holding more than small parts of it.
type source struct {
	arc     *archive
	fill    filler
	crcs    []uint32
	sealed  bool   // crcs are known from an earlier production of the whole file
	rec     int    // the record being produced; len(records): the tail
	pending []byte // bytes ready to be given out
	left    int64  // tensor bytes still to be produced, after pending
	stage   int    // what comes once pending and left are used up
}

const (
	stageHeader = iota
	stageContent
	stageDescriptor
	stageEnd
)

func newSource(arc *archive, fill filler) *source {
	return &source{arc: arc, fill: fill, crcs: make([]uint32, len(arc.records))}
}

// newSourceAfter is newSource for a file whose bytes may follow from those of the file before it, all of which must have been read from
// before by the time that anything is read.
func newSourceAfter(arc *archive, fill filler, before *source) *source {
	s := newSource(arc, fill)
	if arc.index != nil && before != nil {
		s.crcs = before.crcs
	}
	return s
}

// checksums is the polynomial of the records' checksums.
func (a *archive) checksums() *crc32.Table {
	if a.raw {
		return castagnoli()
	}
	return crc32.IEEETable
}

// end is what follows the records.
func (a *archive) end(crcs []uint32) []byte {
	switch {
	case a.raw:
		return nil
	case a.index != nil:
		return a.index(crcs)
	}
	return a.tail(crcs)
}

// resume makes a source of the same file that begins at an offset. The whole file must have been read from s.
func (s *source) resume(off int64) *source {
	r := &source{arc: s.arc, fill: s.fill, crcs: s.crcs, sealed: true}
	for off > 0 {
		switch {
		case len(r.pending) > 0:
			n := min(off, int64(len(r.pending)))
			r.pending, off = r.pending[n:], off-n
		case r.left > 0:
			n := min(off, r.left)
			r.left, off = r.left-n, off-n
		case r.stage == stageEnd:
			return r
		default:
			r.advance()
		}
	}
	return r
}

// read fills p and returns its length, or less when the file ends within p.
func (s *source) read(p []byte) int {
	n := 0
	for n < len(p) {
		switch {
		case len(s.pending) > 0:
			c := copy(p[n:], s.pending)
			s.pending, n = s.pending[c:], n+c
		case s.left > 0:
			r := &s.arc.records[s.rec]
			part := p[n : n+int(min(int64(len(p)-n), s.left))]
			s.fill(part, r.tensor, r.size-s.left)
			if !s.sealed {
				s.crcs[s.rec] = crc32.Update(s.crcs[s.rec], s.arc.checksums(), part)
			}
			s.left, n = s.left-int64(len(part)), n+len(part)
		case s.stage == stageEnd:
			return n
		default:
			s.advance()
		}
	}
	return n
}

// advance goes on to the next part of the file.
func (s *source) advance() {
	if s.rec == len(s.arc.records) {
		s.pending, s.stage = s.arc.end(s.crcs), stageEnd
		return
	}
	r := &s.arc.records[s.rec]
	switch s.stage {
	case stageHeader:
		if s.stage = stageContent; !s.arc.raw {
			s.pending = r.header()
		}
	case stageContent:
		s.stage = stageDescriptor
		if r.tensor >= 0 {
			s.left = r.size
			return
		}
		s.pending = r.data
		if s.crcs[s.rec] = r.sum; !s.arc.raw {
			s.crcs[s.rec] = crc32.ChecksumIEEE(r.data)
		}
	case stageDescriptor:
		if s.stage = stageHeader; !s.arc.raw {
			s.pending = r.descriptor(s.crcs[s.rec])
		}
		s.rec++
	}
}
