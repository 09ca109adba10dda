package format

import (
	"errors"
	"fmt"
	"io"
)

// raw is a file of whatever content: the file is the sample. It is what any data can be read as, and what data are read as of which
// nobody says more. Generated, it is the elements of one sample and nothing else.
type raw struct{}

func newRaw() Format { return raw{} }

// RawName is the name of the container that takes any file.
const RawName = "raw"

func (raw) Name() string { return RawName }

func (raw) check(l Layout) error {
	if err := l.Check(); err != nil {
		return fmt.Errorf("raw: %w", err)
	}
	if l.Samples != 1 {
		return fmt.Errorf("raw: dataset.num_samples_per_file is %d; a raw file is one sample", l.Samples)
	}
	return nil
}

func (f raw) Size(l Layout) (int64, error) {
	if err := f.check(l); err != nil {
		return 0, err
	}
	return l.PayloadBytes(), nil
}

func (f raw) Write(w io.Writer, l Layout, c Content, buf []byte) error {
	if err := f.check(l); err != nil {
		return err
	}
	out := writer{w: w, buf: buffer(buf)}
	if err := out.content(c, l.PayloadBytes()); err != nil {
		return err
	}
	return out.flush()
}

// ReadSample reads the whole file. There is nothing in it that could be wrong, but that it ends before its size.
func (raw) ReadSample(file io.ReaderAt, size int64, k int, buf []byte) (Sample, error) {
	if k != 0 {
		return Sample{}, &DataError{Format: RawName, Problem: fmt.Sprintf("sample %d is asked for; a raw file is one sample", k)}
	}
	buf = buffer(buf)
	for at := int64(0); at < size; {
		p := buf[:min(int64(len(buf)), size-at)]
		if err := readPiece(RawName, file, p, at); err != nil {
			return Sample{}, err
		}
		at += int64(len(p))
	}
	return Sample{Logical: size, Asked: size}, nil
}

// readPiece fills p with the bytes of a file at byte at.
func readPiece(format string, file io.ReaderAt, p []byte, at int64) error {
	n, err := file.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return &DataError{Format: format, Offset: at + int64(n), Problem: "the file ends here, too early", Err: io.ErrUnexpectedEOF}
	}
	return fmt.Errorf("%s: read %d bytes at byte %d: %w", format, len(p), at, err)
}
