package format

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// ReadSample reads the whole file, as Pillow does, and checks its structure: the segments before each scan, that scans are free of
// markers that do not belong there, and that an end follows the last. What follows the end is passed over, as decoders do. It does not
// decode the pixels, for the reason that png does not.
func (f jpeg) ReadSample(file io.ReaderAt, size int64, k int, buf []byte) (Sample, error) {
	r := f.readers.Get().(*reader)
	defer f.readers.Put(r)
	defer r.release()
	r.reset(file, size, buf)
	pixels, err := readJPEG(r)
	if err != nil {
		return Sample{}, err
	}
	if k != 0 {
		return Sample{}, r.problem(fmt.Sprintf("sample %d is asked for; the file is one image", k))
	}
	if f.exact {
		pixels = size
	}
	return Sample{Logical: pixels, Asked: size}, nil
}

// readJPEG walks through the segments and returns the bytes of the decoded image.
func readJPEG(r *reader) (int64, error) {
	if err := r.expect("\xff\xd8", "no JPEG: it does not begin with a start marker"); err != nil {
		return 0, err
	}
	var pixels int64
	scans := 0
	marker, err := r.marker()
	for err == nil {
		switch {
		case marker == markerEOI:
			if scans == 0 {
				return 0, r.problem("no scan before the end of the image")
			}
			return pixels, r.skip(r.size - r.at())
		case marker < markerSOF0, marker >= markerRST0 && marker <= markerSOI:
			return 0, r.problem(fmt.Sprintf("a marker %02x where a segment should begin", marker))
		}
		var p []byte
		if p, err = r.take(2); err != nil {
			break
		}
		n := int64(binary.BigEndian.Uint16(p)) - 2
		if n < 0 || n > r.size-r.at() {
			return 0, r.problem(fmt.Sprintf("a segment %02x of %d bytes, and %d follow", marker, n, r.size-r.at()))
		}
		frame := marker == markerSOF0 || marker == markerSOF0+1 || marker == markerSOF2
		switch {
		case frame && pixels != 0:
			return 0, r.problem("two frame headers")
		case frame:
			pixels, err = r.frame(n)
		case marker == markerSOS && pixels == 0:
			return 0, r.problem("a scan before the frame header")
		default:
			err = r.skip(n)
		}
		if err != nil {
			break
		}
		if marker == markerSOS {
			scans++
			marker, err = r.scan()
		} else {
			marker, err = r.marker()
		}
	}
	return 0, err
}

// marker reads the next marker, with any number of fill bytes before it.
func (r *reader) marker() (byte, error) {
	p, err := r.take(1)
	if err != nil {
		return 0, err
	}
	if p[0] != 0xff {
		return 0, r.problem(fmt.Sprintf("a byte %02x where a marker should begin", p[0]))
	}
	for {
		if p, err = r.take(1); err != nil {
			return 0, err
		}
		if p[0] != 0xff {
			return p[0], nil
		}
	}
}

// frame reads a frame header of n bytes and returns the bytes of the image once it is decoded.
func (r *reader) frame(n int64) (int64, error) {
	if n < 6 {
		return 0, r.problem(fmt.Sprintf("a frame header of %d bytes", n))
	}
	p, err := r.take(6)
	if err != nil {
		return 0, err
	}
	height, width, components := int64(binary.BigEndian.Uint16(p[1:])), int64(binary.BigEndian.Uint16(p[3:])), int64(p[5])
	switch {
	case p[0] != 8 && p[0] != 12, height == 0, width == 0, components == 0, components > 4:
		return 0, r.problem(fmt.Sprintf("an image of %d x %d pixels with %d components of %d bits", height, width, components, p[0]))
	case n != 6+3*components:
		return 0, r.problem(fmt.Sprintf("a frame header of %d bytes for %d components", n, components))
	}
	pixels := height * width * components * (1 + int64(p[0])/9)
	return pixels, r.skip(n - 6)
}

// scan passes over a scan, up to a marker that is neither a stuffed byte nor a restart, and returns that marker.
func (r *reader) scan() (byte, error) {
	for {
		i := bytes.IndexByte(r.data, 0xff)
		if i < 0 {
			r.data = nil
			if err := r.more(); err != nil {
				return 0, err
			}
			continue
		}
		r.data = r.data[i:]
		marker, err := r.marker()
		if err != nil || marker != 0 && (marker < markerRST0 || marker > markerRST7) {
			return marker, err
		}
	}
}
