package format

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sync"
)

// tfReader reads records one after the other.
type tfReader struct {
	reader
	start int64  // offset of the record
	left  int64  // bytes left of the record's Example
	crc   uint32 // of those before
	asked int64  // of the file before the current Next
	pool  *sync.Pool
	// foreign records hold anything: only their checksums are compared.
	foreign bool
}

// ReadSample finds record k as a reader without an index does, from length to length, and reads it.
func (f tfrecord) ReadSample(file io.ReaderAt, size int64, k int, buf []byte) (Sample, error) {
	t := f.readers.Get().(*tfReader)
	defer f.readers.Put(t)
	defer t.release()
	t.reset(file, size, buf)
	t.foreign = f.foreign
	if k < 0 {
		return Sample{}, t.problem(fmt.Sprintf("record %d is asked for; they count from 0", k))
	}
	var asked int64
	for at, i := int64(0), 0; ; i++ {
		if at == size {
			return Sample{}, t.problem(fmt.Sprintf("record %d is asked for; the file holds %d", k, i))
		}
		t.window(at, min(tfHeader, size-at))
		n, err := t.frame(size)
		if err != nil {
			return Sample{}, err
		}
		asked += tfHeader
		if i < k {
			at += tfHeader + n + tfFooter
			continue
		}
		t.window(at+tfHeader, n+tfFooter)
		logical, err := t.example(n)
		return Sample{Logical: logical, Asked: asked + n + tfFooter}, err
	}
}

// window makes the reader see n bytes at an offset of the file, and nothing behind them.
func (r *reader) window(at, n int64) { r.next, r.size, r.data = at, at+n, nil }

// ReadSampleWith takes the record's place from the index, and reads it alone, framing included.
func (f tfrecord) ReadSampleWith(file io.ReaderAt, size int64, open func(int) (io.ReaderAt, int64, error), k int, buf []byte) (Sample, error) {
	t := f.readers.Get().(*tfReader)
	defer f.readers.Put(t)
	defer t.release()
	index, indexSize, err := open(0)
	if err != nil {
		return Sample{}, err
	}
	t.reset(index, indexSize, buf)
	t.foreign = f.foreign
	at, n, asked, err := t.place(k)
	if err != nil {
		return Sample{}, err
	}
	t.reset(file, size, buf)
	if at > size || n > size-at || n < tfHeader+tfFooter {
		t.window(min(at, size), 0)
		return Sample{}, t.problem(fmt.Sprintf("the index has record %d, %d bytes, at %d; the file has %d bytes", k, n, at, size))
	}
	t.window(at, n)
	length, err := t.frame(at + n)
	if err != nil {
		return Sample{}, err
	}
	if length != n-tfHeader-tfFooter {
		return Sample{}, t.problem(fmt.Sprintf("a record of %d bytes; the index says %d", tfHeader+length+tfFooter, n))
	}
	logical, err := t.example(length)
	return Sample{Logical: logical, Asked: asked + n}, err
}

// place finds line k of an index. Files of ours have records of one length, so that the line's place follows from the first; that
// is tried, and an index of other origin is read from its beginning.
func (t *tfReader) place(k int) (offset, length, asked int64, err error) {
	if k < 0 {
		return 0, 0, 0, t.problem(fmt.Sprintf("index: record %d is asked for; they count from 0", k))
	}
	size := t.size
	asked = min(size, maxTFLine)
	t.window(0, asked)
	if offset, length, err = t.line(); k == 0 || err != nil {
		return offset, length, asked, err
	}
	if at := tfLine(int64(k), max(length, 1)); offset == 0 && length > 0 && at < size && int64(k) <= math.MaxInt64/length {
		n := min(size-at+1, maxTFLine) // with the newline before it
		asked += n
		t.window(at-1, n)
		p, err := t.take(1)
		if err != nil {
			return 0, 0, 0, err
		}
		if p[0] == '\n' {
			o, n, err := t.line()
			if err == nil && o == int64(k)*length && n == length {
				return o, n, asked, nil
			}
		}
	}
	t.window(0, size)
	for i := 0; ; i++ {
		if t.at() == size {
			return 0, 0, 0, t.problem(fmt.Sprintf("index: record %d is asked for; it has %d lines", k, i))
		}
		offset, length, err := t.line()
		if i == k || err != nil {
			return offset, length, asked + t.next, err
		}
	}
}

// maxTFLine is room for a line of two numbers of 19 digits.
const maxTFLine = 48

// line reads one line of an index.
func (t *tfReader) line() (offset, length int64, err error) {
	start := t.at()
	var number [2]int64
	for i, end := range []byte(" \n") {
		digits := 0
		for ; ; digits++ {
			p, err := t.take(1)
			if err != nil {
				return 0, 0, err
			}
			if p[0] == end && digits > 0 {
				break
			}
			if p[0] < '0' || p[0] > '9' || digits == 18 {
				return 0, 0, t.problem(fmt.Sprintf(`index: not a line "<offset> <length>" at byte %d`, start))
			}
			number[i] = 10*number[i] + int64(p[0]-'0')
		}
	}
	return number[0], number[1], nil
}

// frame reads what stands before an Example, whose end lies at the given offset at most, and returns its length.
func (t *tfReader) frame(end int64) (int64, error) {
	t.start = t.at()
	p, err := t.take(tfHeader)
	if err != nil {
		return 0, err
	}
	n, want := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint32(p[8:])
	if got := masked(crc32.Checksum(p[:8], castagnoli())); got != want {
		return 0, t.problem(fmt.Sprintf("the length of the record at byte %d has checksum %08x, not %08x", t.start, got, want))
	}
	if rest := end - t.at() - tfFooter; rest < 0 || n > uint64(rest) {
		return 0, t.problem(fmt.Sprintf("a record of %d bytes and its checksum, and %d bytes follow", n, end-t.at()))
	}
	return int64(n), nil
}

// example reads an Example of n bytes and the checksum behind it, and returns the bytes of its feature image.
func (t *tfReader) example(n int64) (int64, error) {
	t.left, t.crc = n, 0
	logical, found := int64(0), false
	if t.foreign {
		if err := t.pass(n); err != nil {
			return 0, err
		}
		logical, found = n, true
	}
	for t.left > 0 {
		feature, err := t.enter(0, 1)
		if err != nil {
			return 0, err
		}
		if !feature.ok {
			continue
		}
		for t.left > feature.end {
			entry, err := t.enter(feature.end, 1)
			if err != nil {
				return 0, err
			}
			if !entry.ok {
				continue
			}
			size, ok, err := t.entry(entry.end)
			if err != nil {
				return 0, err
			}
			if ok && found {
				return 0, t.problem("an Example with two features " + tfImage)
			}
			logical, found = logical+size, found || ok
		}
	}
	crc := masked(t.crc)
	p, err := t.take(tfFooter)
	if err != nil {
		return 0, err
	}
	switch want := binary.LittleEndian.Uint32(p); {
	case crc != want:
		return 0, t.problem(fmt.Sprintf("the record at byte %d has checksum %08x, not %08x", t.start, crc, want))
	case !found:
		return 0, t.problem(fmt.Sprintf("the record at byte %d has no feature %s with a list of bytes", t.start, tfImage))
	}
	return logical, nil
}

// entry reads a feature, key and value, up to end, and returns the bytes of the value if it is the image.
func (t *tfReader) entry(end int64) (size int64, found bool, err error) {
	image := false
	for t.left > end {
		field, n, err := t.field(end)
		if err != nil {
			return 0, false, err
		}
		switch inner := t.left - n; {
		case field == 1 && n == int64(len(tfImage)):
			p, err := t.bytes(len(tfImage))
			if err != nil {
				return 0, false, err
			}
			image = string(p) == tfImage
		case field == 2 && image:
			for t.left > inner {
				list, err := t.enter(inner, 1)
				if err != nil {
					return 0, false, err
				}
				for found = found || list.ok; list.ok && t.left > list.end; {
					field, n, err := t.field(list.end)
					if err == nil {
						err = t.pass(n)
					}
					if err != nil {
						return 0, false, err
					}
					if field == 1 {
						size += n
					}
				}
			}
		default:
			if err := t.pass(n); err != nil {
				return 0, false, err
			}
		}
	}
	return size, found, nil
}

// inside is a message in a message: ok if it is the field that was looked for, and end what t.left will be behind it.
type inside struct {
	ok  bool
	end int64
}

// enter reads a field in a message that ends when end bytes are left, and passes over it if it is another than that.
func (t *tfReader) enter(end int64, want uint64) (inside, error) {
	field, n, err := t.field(end)
	if err != nil {
		return inside{}, err
	}
	if field != want {
		return inside{}, t.pass(n)
	}
	return inside{true, t.left - n}, nil
}

// field reads a tag and, of a field with a length, the length. Of others it reads the value, and returns number and length 0.
func (t *tfReader) field(end int64) (number uint64, n int64, err error) {
	tag, err := t.varint(end)
	if err != nil {
		return 0, 0, err
	}
	switch tag & 7 {
	case 0:
		_, err = t.varint(end)
		return 0, 0, err
	case 1:
		n = 8
	case 5:
		n = 4
	case 2:
		v, err := t.varint(end)
		if err != nil {
			return 0, 0, err
		}
		if v > uint64(t.left-end) {
			return 0, 0, t.problem(fmt.Sprintf("a field of %d bytes where %d follow", v, t.left-end))
		}
		return tag >> 3, int64(v), nil
	default:
		return 0, 0, t.problem(fmt.Sprintf("a field of wire type %d, which protocol buffers do not have", tag&7))
	}
	if n > t.left-end {
		return 0, 0, t.problem(fmt.Sprintf("a field of %d bytes where %d follow", n, t.left-end))
	}
	return 0, 0, t.pass(n)
}

func (t *tfReader) varint(end int64) (uint64, error) {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		if t.left <= end {
			return 0, t.problem("a message ends inside a number")
		}
		p, err := t.bytes(1)
		if err != nil {
			return 0, err
		}
		v |= uint64(p[0]&0x7f) << shift
		if p[0] < 0x80 {
			return v, nil
		}
	}
	return 0, t.problem("a number of more than 64 bits")
}

// bytes returns the next n bytes of the Example.
func (t *tfReader) bytes(n int) ([]byte, error) {
	p, err := t.take(n)
	t.crc = crc32.Update(t.crc, castagnoli(), p)
	t.left -= int64(n)
	return p, err
}

// pass reads over n bytes of the Example.
func (t *tfReader) pass(n int64) error {
	t.left -= n
	for n > 0 {
		if len(t.data) == 0 {
			if err := t.more(); err != nil {
				return err
			}
		}
		piece := t.data[:min(n, int64(len(t.data)))]
		t.crc = crc32.Update(t.crc, castagnoli(), piece)
		t.data = t.data[len(piece):]
		n -= int64(len(piece))
	}
	return nil
}

// Stream reads the records as TFRecordDataset does.
func (f tfrecord) Stream(file io.ReaderAt, size int64, buf []byte) SampleStream {
	t := f.readers.Get().(*tfReader)
	t.reset(file, size, buf)
	t.pool, t.asked, t.foreign = f.readers, 0, f.foreign
	return t
}

// Next reads the next record of a stream.
func (t *tfReader) Next() (Sample, error) {
	if t.at() == t.size {
		return Sample{}, io.EOF
	}
	n, err := t.frame(t.size)
	if err != nil {
		return Sample{}, err
	}
	logical, err := t.example(n)
	asked := t.next - t.asked
	t.asked = t.next
	return Sample{Logical: logical, Asked: asked}, err
}

// Close ends a stream.
func (t *tfReader) Close() {
	pool := t.pool
	t.pool = nil
	t.release()
	pool.Put(t)
}

// AskedBytes is a record and two pieces of the index.
func (f tfrecord) AskedBytes(sampleBytes int64, samples int, _ int64) int64 {
	n := f.frame(sampleBytes).bytes
	return n + min(tfLine(int64(samples), n), 2*maxTFLine)
}

var (
	_ Streamed        = tfrecord{}
	_ Companioned     = tfrecord{}
	_ CompanionReader = tfrecord{}
	_ Partial         = tfrecord{}
)
