package format

import (
	"fmt"
	"hash/crc32"
	"io"
	"sync"
)

// deflatedNPZ is npz as numpy.savez_compressed lays it out, both arrays deflated. Random bytes do not become less, random numbers of
// [0, 1) a little, labels of zeros much: the size follows from the content.
type deflatedNPZ struct {
	npz
	deflaters *sync.Pool
}

// members lays out the two arrays, with what they deflate to: of x as given.
func (f deflatedNPZ) members(l Layout, d *deflater, packed int64) (x, y member, err error) {
	x, y = f.npz.members(l)
	x.method, x.packed = deflateMethod, packed
	y.method, y.offset = deflateMethod, x.end()
	d.reset(nil)
	y.packed, err = f.labels(y, d)
	y.crc = crc32Zeros(crc32.ChecksumIEEE(y.header), y.bytes)
	return x, y, err
}

// labels deflates y.
func (deflatedNPZ) labels(y member, d *deflater) (int64, error) {
	if err := d.write(y.header); err != nil {
		return 0, err
	}
	if err := d.zeros(y.bytes); err != nil {
		return 0, err
	}
	return d.close()
}

// array deflates x, and returns its checksum as well.
func (deflatedNPZ) array(x member, c Content, d *deflater) (packed int64, crc uint32, err error) {
	crc = crc32.ChecksumIEEE(x.header)
	if err := d.write(x.header); err != nil {
		return 0, 0, err
	}
	var piece [4 << 10]byte
	for off := int64(0); off < x.bytes; {
		p := piece[:min(int64(len(piece)), x.bytes-off)]
		c.Fill(p, off)
		crc = crc32.Update(crc, crc32.IEEETable, p)
		if err := d.write(p); err != nil {
			return 0, 0, err
		}
		off += int64(len(p))
	}
	packed, err = d.close()
	return packed, crc, err
}

// size is that of a file with these members.
func (deflatedNPZ) size(x, y member) int64 { return y.end() + int64(len(appendDirectory(nil, x, y))) }

// Size is the most that a file of the layout takes: nothing deflates.
func (f deflatedNPZ) Size(l Layout) (int64, error) {
	if err := l.Check(); err != nil {
		return 0, fmt.Errorf("npz: %w", err)
	}
	x, y := f.npz.members(l)
	x.method, x.packed = deflateMethod, deflateBound(x.size())
	y.method, y.packed = deflateMethod, deflateBound(y.size())
	y.offset = x.end()
	return f.size(x, y), nil
}

// Measure returns the size of a file with content c.
func (f deflatedNPZ) Measure(l Layout, c Content, _ []byte) (int64, error) {
	if err := l.Check(); err != nil {
		return 0, fmt.Errorf("npz: %w", err)
	}
	d := f.deflaters.Get().(*deflater)
	defer f.deflaters.Put(d)
	x, y, err := f.measured(l, c, d)
	if err != nil {
		return 0, err
	}
	return f.size(x, y), nil
}

// measured lays out the members of a file with content c, complete.
func (f deflatedNPZ) measured(l Layout, c Content, d *deflater) (x, y member, err error) {
	x, _ = f.npz.members(l)
	d.reset(nil)
	packed, crc, err := f.array(x, c, d)
	if err != nil {
		return x, y, err
	}
	x, y, err = f.members(l, d, packed)
	x.crc = crc
	return x, y, err
}

func (f deflatedNPZ) Write(w io.Writer, l Layout, c Content, buf []byte) error {
	if err := l.Check(); err != nil {
		return fmt.Errorf("npz: %w", err)
	}
	d := f.deflaters.Get().(*deflater)
	defer f.deflaters.Put(d)
	// The local header needs the checksum and the size of what follows: a pass that only counts comes first.
	x, y, err := f.measured(l, c, d)
	if err != nil {
		return err
	}
	out := writer{w: w, buf: buffer(buf)}
	if err := out.write(appendLocal(nil, x)); err != nil {
		return err
	}
	d.reset(&out)
	if _, _, err := f.array(x, c, d); err != nil {
		return err
	}
	if err := out.write(appendLocal(nil, y)); err != nil {
		return err
	}
	d.reset(&out)
	if _, err := f.labels(y, d); err != nil {
		return err
	}
	if err := out.write(appendDirectory(nil, x, y)); err != nil {
		return err
	}
	return out.flush()
}

var _ Measured = deflatedNPZ{}
