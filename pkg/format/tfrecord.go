package format

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/bits"
	"path"
	"strconv"
	"strings"
	"sync"
)

// tfrecord is TensorFlow's record file: each sample is one record, a serialised tf.train.Example with the features image (the
// sample's bytes) and size (their number). Each file has an index, one line "<offset> <length>" a record, the framing included.
type tfrecord struct {
	readers *sync.Pool
	foreign bool // records hold anything
}

func newTFRecord() Format {
	return tfrecord{readers: &sync.Pool{New: func() any { return &tfReader{reader: reader{format: "tfrecord"}} }}}
}

func (tfrecord) Name() string { return "tfrecord" }

// Framing of a record: its length and that number's checksum before it, its own checksum behind it.
const (
	tfHeader  = 12
	tfFooter  = 4
	tfImage   = "image"
	tfSize    = "size"
	tfMaskAdd = 0xa282ead8
)

// masked returns the checksum as it stands in a record file: the CRC-32C of a text that holds CRC-32Cs would not be a good one.
func masked(crc uint32) uint32 { return bits.RotateLeft32(crc, -15) + tfMaskAdd }

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// tfFrame is what stands around the bytes of each sample of a file.
type tfFrame struct {
	before, after []byte // of the record's Example
	header        []byte
	bytes         int64 // of a whole record
}

// frame lays out a record for samples of n bytes. From the inside out, each of both features is a field (tag 1 of its list), the
// list (field 1 or 3 of Feature), a map entry of key and value, and an entry of Features (field 1); 2 in a tag means "length follows".
func (tfrecord) frame(n int64) tfFrame {
	const tag1, tag2, tag3 = 1<<3 | 2, 2<<3 | 2, 3<<3 | 2
	entry := func(key string) []byte { return append(append([]byte{tag1, byte(len(key))}, key...), tag2) }
	var before []byte
	for _, wrap := range [][]byte{{tag1}, {tag1}, entry(tfImage), {tag1}} {
		before = append(binary.AppendUvarint(wrap, uint64(int64(len(before))+n)), before...)
	}
	after := binary.AppendUvarint(nil, uint64(n))
	for _, wrap := range [][]byte{{tag1}, {tag3}, entry(tfSize), {tag1}} {
		after = append(binary.AppendUvarint(wrap, uint64(len(after))), after...)
	}
	features := int64(len(before)+len(after)) + n
	before = append(binary.AppendUvarint([]byte{tag1}, uint64(features)), before...)
	length := int64(len(before)+len(after)) + n
	header := binary.LittleEndian.AppendUint64(nil, uint64(length))
	header = binary.LittleEndian.AppendUint32(header, masked(crc32.Checksum(header, castagnoli())))
	return tfFrame{before, after, header, tfHeader + length + tfFooter}
}

func (f tfrecord) check(l Layout) error {
	if err := l.Check(); err != nil {
		return fmt.Errorf("tfrecord: %w", err)
	}
	if n := mul(f.frame(l.SampleBytes()).bytes, int64(l.Samples)); n > maxPayload {
		return fmt.Errorf("tfrecord: layout: %v x %d samples of %s exceed 2^62 bytes in one file", l.Dims, l.Samples, l.DType.Name)
	}
	return nil
}

func (f tfrecord) Size(l Layout) (int64, error) {
	if err := f.check(l); err != nil {
		return 0, err
	}
	return f.frame(l.SampleBytes()).bytes * int64(l.Samples), nil
}

func (f tfrecord) Write(w io.Writer, l Layout, c Content, buf []byte) error {
	if err := f.check(l); err != nil {
		return err
	}
	out, n := writer{w: w, buf: buffer(buf)}, l.SampleBytes()
	frame, table := f.frame(n), castagnoli()
	start := crc32.Checksum(frame.before, table)
	var footer [tfFooter]byte
	for k := range int64(l.Samples) {
		for _, p := range [][]byte{frame.header, frame.before} {
			if err := out.write(p); err != nil {
				return err
			}
		}
		crc := start
		for off := int64(0); off < n; {
			free, err := out.space(n - off)
			if err != nil {
				return err
			}
			c.Fill(free, k*n+off)
			crc = crc32.Update(crc, table, free)
			off += int64(len(free))
		}
		binary.LittleEndian.PutUint32(footer[:], masked(crc32.Update(crc, table, frame.after)))
		for _, p := range [][]byte{frame.after, footer[:]} {
			if err := out.write(p); err != nil {
				return err
			}
		}
	}
	return out.flush()
}

// Companions is the index, which DALI needs and TensorFlow does not: index/<part>/<file>.idx for <part>/[<subfolder>/]<file>.
func (f tfrecord) Companions() []Companion {
	return []Companion{{
		Path: func(data string) string {
			part, _, found := strings.Cut(data, "/")
			if !found {
				part = ""
			}
			return path.Join("index", part, path.Base(data)+".idx")
		},
		Size: func(l Layout) (int64, error) {
			if err := f.check(l); err != nil {
				return 0, err
			}
			return tfLine(int64(l.Samples), f.frame(l.SampleBytes()).bytes), nil
		},
		Write: func(w io.Writer, l Layout) error {
			if err := f.check(l); err != nil {
				return err
			}
			out, n := writer{w: w, buf: make([]byte, 32<<10)}, f.frame(l.SampleBytes()).bytes
			var line [48]byte
			for k := range int64(l.Samples) {
				if err := out.write(appendTFLine(line[:0], k*n, n)); err != nil {
					return err
				}
			}
			return out.flush()
		},
	}}
}

func appendTFLine(p []byte, offset, length int64) []byte {
	p = append(strconv.AppendInt(p, offset, 10), ' ')
	return append(strconv.AppendInt(p, length, 10), '\n')
}

// tfLine returns where line k of an index begins if all records have n bytes, and math.MaxInt64 if that is not a number of bytes.
func tfLine(k, n int64) int64 {
	var length [20]byte
	at := mul(k, int64(len(strconv.AppendInt(length[:0], n, 10))+3)) // space, newline, and the offset's first digit
	if at == math.MaxInt64 {
		return at
	}
	// One byte more for each offset from 10, 100, 1000, ... on.
	for ten := int64(10); ; ten *= 10 {
		first := (ten + n - 1) / n // the first record at an offset of ten or more
		if first >= k {
			return at
		}
		at += k - first
		if ten > math.MaxInt64/10-n {
			return at
		}
	}
}
