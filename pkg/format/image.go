package format

import (
	"fmt"
	"hash/crc32"
	"math"
)

// Image formats hold one 8-bit gray image a file, whose pixels are the content's bytes row by row. What Layout.Dims means:
//
//	[h w]   the record is h w bytes; DLIO makes an image of h x w pixels of it
//	[n]     the record is n bytes; DLIO makes a square of int(sqrt(n)) pixels a side of it
//
// With sizing "exact" the file has as many bytes as the record. With "encoded" the image has DLIO's pixels and the file has
// whatever they take, which is known beforehand too: nothing here depends on the values of the pixels.
const (
	sizingExact   = "exact"
	sizingEncoded = "encoded"
)

// exact returns whether files are of the record's size.
func (s Spec) exact() (bool, error) {
	switch s.Sizing {
	case "", sizingExact:
		return true, s.only("sizing")
	case sizingEncoded:
		return false, s.only("sizing")
	}
	return false, fmt.Errorf("dataset.%s.sizing is %q; there are: %s, %s", s.Name, s.Sizing, sizingExact, sizingEncoded)
}

// maxSide is the largest side of an image: JPEG's own limit, and beyond what a decoder of either format takes by default
// (Pillow warns from 89 million pixels on).
const maxSide = 65535

// picture is the record of an image file and what DLIO makes of it.
type picture struct {
	bytes         int64 // of the record
	height, width int64 // pixels
}

func newPicture(l Layout) (picture, error) {
	if err := l.Check(); err != nil {
		return picture{}, err
	}
	p := picture{bytes: l.SampleBytes()}
	switch {
	case l.DType.Descr != "|u1":
		return p, fmt.Errorf("pixels are uint8, not %s", l.DType.Name)
	case l.Samples != 1:
		return p, fmt.Errorf("a file holds one image, not %d samples: DLIO would read the same image for each of them; "+
			"set dataset.num_samples_per_file to 1 and have more files", l.Samples)
	case len(l.Dims) == 1:
		p.height = int64(math.Sqrt(float64(p.bytes)))
		p.width = p.height
	case len(l.Dims) == 2:
		p.height, p.width = int64(l.Dims[0]), int64(l.Dims[1])
	default:
		return p, fmt.Errorf("an image of the dimensions %v; it has one (its bytes) or two (height and width)", l.Dims)
	}
	if p.height > maxSide || p.width > maxSide {
		return p, fmt.Errorf("an image of %d x %d pixels; a side has at most %d", p.height, p.width, maxSide)
	}
	return p, nil
}

// tooSmall says that a record cannot hold any image.
func tooSmall(p picture, least int64) error {
	return fmt.Errorf("no image, of %d x %d pixels, fits into a record of %d bytes; it takes at least %d", p.height, p.width, p.bytes, least)
}

// cyclic fills dst from offset off of a payload of n bytes on, beginning again at its end.
func cyclic(c Content, dst []byte, off, n int64) {
	for off %= n; len(dst) > 0; off = 0 {
		piece := dst[:min(int64(len(dst)), n-off)]
		c.Fill(piece, off)
		dst = dst[len(piece):]
	}
}

// expect reads text and compares it.
func (r *reader) expect(text, otherwise string) error {
	p, err := r.take(len(text))
	if err != nil {
		return err
	}
	if string(p) != text {
		return r.problem(otherwise)
	}
	return nil
}

// checksum passes over n bytes and continues the CRC-32 of zip and PNG over them.
func (r *reader) checksum(crc uint32, n int64) (uint32, error) {
	for n > 0 {
		if len(r.data) == 0 {
			if err := r.more(); err != nil {
				return 0, err
			}
		}
		piece := r.data[:min(int64(len(r.data)), n)]
		crc = crc32.Update(crc, crc32.IEEETable, piece)
		r.data = r.data[len(piece):]
		n -= int64(len(piece))
	}
	return crc, nil
}
