package format

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sync"
)

// npz is a zip file of the arrays x (the samples) and y (one int64 label of 0 a sample), as numpy.savez(x=..., y=...)
// writes it: stored, dated 1980-01-01, with room for 64-bit sizes in every local header.
//
// The local headers hold true 32-bit sizes beside the 64-bit ones, as Python up to 3.11.3 wrote them (later ones write
// 0xffffffff and version 45): DLIO's direct-I/O reader finds the arrays by those fields.
type npz struct {
	readers *sync.Pool
	foreign int // samples of each file of other origin; 0: files are ours
}

// newZIP makes npz, or with dataset.compression zip the deflated form of it.
func newZIP(s Spec) (Format, error) {
	if err := s.only("compression"); err != nil {
		return nil, err
	}
	switch f := newNPZ().(npz); s.Compression {
	case "":
		return f, nil
	case "zip":
		return deflatedNPZ{f, &sync.Pool{New: func() any { return newDeflater() }}}, nil
	}
	return nil, fmt.Errorf("dataset.compression is %q; npz files are stored (none) or deflated (zip)", s.Compression)
}

func newNPZ() Format {
	return npz{readers: &sync.Pool{New: func() any { return &zipReader{reader: reader{format: "npz"}} }}}
}

func (npz) Name() string { return "npz" }

// Signatures and fixed sizes of a zip file's records.
const (
	sigLocal     = "PK\x03\x04"
	sigCentral   = "PK\x01\x02"
	sigEnd       = "PK\x05\x06"
	sigEnd64     = "PK\x06\x06"
	sigEnd64Loc  = "PK\x06\x07"
	localSize    = 30
	centralSize  = 46
	endSize      = 22
	end64Size    = 56
	end64LocSize = 20

	zip64Extra = 1          // identifier of the extra field with 64-bit sizes
	use64      = 0xffffffff // a 32-bit field whose value stands in the extra field
	dosDate    = 0x21       // 1980-01-01
	memberX    = "x.npy"
	memberY    = "y.npy"
)

// pythonZip64Limit is the size above which Python's zipfile turns to 64-bit fields.
const pythonZip64Limit = 1<<31 - 1

// member is one array of the file.
type member struct {
	name   string
	header []byte // of the array
	bytes  int64  // of its elements
	offset int64  // of its local header
	crc    uint32
	method byte  // 0: stored
	packed int64 // bytes of the file, where they are not stored
}

// deflateMethod is zip's number for deflated members.
const deflateMethod = 8

// size is the member's bytes, and stored how many the file has of it.
func (m member) size() int64 { return int64(len(m.header)) + m.bytes }

func (m member) stored() int64 {
	if m.method == 0 {
		return m.size()
	}
	return m.packed
}

// wide reports whether the sizes need 64-bit fields, by Python's measure.
func (m member) wide() bool { return max(m.size(), m.stored()) > pythonZip64Limit }

// end is the offset after the member.
func (m member) end() int64 { return m.offset + int64(localSize+len(m.name)+20) + m.stored() }

// members lays out the two arrays, without checksums.
func (npz) members(l Layout) (x, y member) {
	shape := append(append(make([]int, 0, len(l.Dims)+1), l.Dims...), l.Samples)
	x = member{name: memberX, header: appendNPYHeader(nil, l.DType.Descr, shape), bytes: l.PayloadBytes()}
	y = member{name: memberY, header: appendNPYHeader(nil, "<i8", shape[len(shape)-1:]), bytes: 8 * int64(l.Samples), offset: x.end()}
	return x, y
}

func (f npz) Size(l Layout) (int64, error) {
	if err := l.Check(); err != nil {
		return 0, fmt.Errorf("npz: %w", err)
	}
	x, y := f.members(l)
	return y.end() + int64(len(appendDirectory(nil, x, y))), nil
}

func (f npz) Write(w io.Writer, l Layout, c Content, buf []byte) error {
	if err := l.Check(); err != nil {
		return fmt.Errorf("npz: %w", err)
	}
	out := writer{w: w, buf: buffer(buf)}
	x, y := f.members(l)
	x.crc = crc32.ChecksumIEEE(x.header)
	front := int64(localSize + len(x.name) + 20 + len(x.header))
	var last Fronted
	if front+x.bytes <= int64(len(out.buf)) {
		// The local header needs the checksum of what follows. A file that fits into the buffer gets it afterwards.
		payload := out.buf[front : front+x.bytes]
		c.Fill(payload, 0)
		x.crc = crc32.Update(x.crc, crc32.IEEETable, payload)
		out.n = copy(out.buf, append(appendLocal(nil, x), x.header...)) + len(payload)
	} else if fw, ok := w.(Fronted); ok && fw.Later(int(front)) {
		last = fw
		if err := out.zeros(front); err != nil {
			return err
		}
		for off := int64(0); off < x.bytes; {
			piece, err := out.space(x.bytes - off)
			if err != nil {
				return err
			}
			c.Fill(piece, off)
			x.crc = crc32.Update(x.crc, crc32.IEEETable, piece)
			off += int64(len(piece))
		}
	} else {
		// Where there is no way back, a longer one is made twice: making it again costs less than hashing it.
		for off := int64(0); off < x.bytes; {
			piece := out.buf[:min(int64(len(out.buf)), x.bytes-off)]
			c.Fill(piece, off)
			x.crc = crc32.Update(x.crc, crc32.IEEETable, piece)
			off += int64(len(piece))
		}
		if err := out.write(append(appendLocal(nil, x), x.header...)); err != nil {
			return err
		}
		if err := out.content(c, x.bytes); err != nil {
			return err
		}
	}
	y.crc = crc32Zeros(crc32.ChecksumIEEE(y.header), y.bytes)
	if err := out.write(append(appendLocal(nil, y), y.header...)); err != nil {
		return err
	}
	if err := out.zeros(y.bytes); err != nil {
		return err
	}
	if err := out.write(appendDirectory(nil, x, y)); err != nil {
		return err
	}
	if err := out.flush(); err != nil || last == nil {
		return err
	}
	return last.Front(append(appendLocal(nil, x), x.header...))
}

// crc32Zeros continues a checksum over n zero bytes.
func crc32Zeros(crc uint32, n int64) uint32 {
	var zero [1024]byte
	for ; n > 0; n -= min(n, int64(len(zero))) {
		crc = crc32.Update(crc, crc32.IEEETable, zero[:min(n, int64(len(zero)))])
	}
	return crc
}

// appendLocal appends the header before a member.
func appendLocal(p []byte, m member) []byte {
	version, size, stored := uint16(20), uint32(use64), uint32(use64)
	if m.wide() {
		version = 45
	} else {
		size, stored = uint32(m.size()), uint32(m.stored())
	}
	p = append(p, sigLocal...)
	p = binary.LittleEndian.AppendUint16(p, version)
	p = append(p, 0, 0, m.method, 0, 0, 0) // flags, method, time
	p = binary.LittleEndian.AppendUint16(p, dosDate)
	p = binary.LittleEndian.AppendUint32(p, m.crc)
	p = binary.LittleEndian.AppendUint32(p, stored)
	p = binary.LittleEndian.AppendUint32(p, size)
	p = binary.LittleEndian.AppendUint16(p, uint16(len(m.name)))
	p = binary.LittleEndian.AppendUint16(p, 20)
	p = append(p, m.name...)
	return appendZip64(p, m.size(), m.stored())
}

func appendZip64(p []byte, values ...int64) []byte {
	p = binary.LittleEndian.AppendUint16(p, zip64Extra)
	p = binary.LittleEndian.AppendUint16(p, uint16(8*len(values)))
	for _, v := range values {
		p = binary.LittleEndian.AppendUint64(p, uint64(v))
	}
	return p
}

// appendCentral appends a member's entry in the central directory.
func appendCentral(p []byte, m member) []byte {
	version, size, stored, offset := uint16(20), uint32(use64), uint32(use64), uint32(use64)
	var wide []int64
	if m.wide() {
		wide = append(wide, m.size(), m.stored())
	} else {
		size, stored = uint32(m.size()), uint32(m.stored())
	}
	if m.offset > pythonZip64Limit {
		wide = append(wide, m.offset)
	} else {
		offset = uint32(m.offset)
	}
	extra := 0
	if len(wide) > 0 {
		version, extra = 45, 4+8*len(wide)
	}
	p = append(p, sigCentral...)
	p = append(p, byte(version), 3) // made by that version on Unix
	p = binary.LittleEndian.AppendUint16(p, version)
	p = append(p, 0, 0, m.method, 0, 0, 0) // flags, method, time
	p = binary.LittleEndian.AppendUint16(p, dosDate)
	p = binary.LittleEndian.AppendUint32(p, m.crc)
	p = binary.LittleEndian.AppendUint32(p, stored)
	p = binary.LittleEndian.AppendUint32(p, size)
	p = binary.LittleEndian.AppendUint16(p, uint16(len(m.name)))
	p = binary.LittleEndian.AppendUint16(p, uint16(extra))
	p = append(p, 0, 0, 0, 0, 0, 0)                    // no comment, disk 0, binary
	p = binary.LittleEndian.AppendUint32(p, 0o600<<16) // mode
	p = binary.LittleEndian.AppendUint32(p, offset)
	p = append(p, m.name...)
	if extra > 0 {
		p = appendZip64(p, wide...)
	}
	return p
}

// appendDirectory appends what follows the last member: the central directory and its end records.
func appendDirectory(p []byte, members ...member) []byte {
	start := len(p)
	for _, m := range members {
		p = appendCentral(p, m)
	}
	size, offset := int64(len(p)-start), members[len(members)-1].end()
	if offset > pythonZip64Limit {
		p = append(p, sigEnd64...)
		p = binary.LittleEndian.AppendUint64(p, end64Size-12)
		p = append(p, 45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		p = binary.LittleEndian.AppendUint64(p, uint64(len(members)))
		p = binary.LittleEndian.AppendUint64(p, uint64(len(members)))
		p = binary.LittleEndian.AppendUint64(p, uint64(size))
		p = binary.LittleEndian.AppendUint64(p, uint64(offset))
		p = append(p, sigEnd64Loc...)
		p = append(p, 0, 0, 0, 0)
		p = binary.LittleEndian.AppendUint64(p, uint64(offset+size))
		p = append(p, 1, 0, 0, 0)
	}
	p = append(p, sigEnd...)
	p = append(p, 0, 0, 0, 0)
	p = binary.LittleEndian.AppendUint16(p, uint16(len(members)))
	p = binary.LittleEndian.AppendUint16(p, uint16(len(members)))
	p = binary.LittleEndian.AppendUint32(p, uint32(size))
	p = binary.LittleEndian.AppendUint32(p, uint32(min(offset, math.MaxUint32)))
	return append(p, 0, 0)
}
