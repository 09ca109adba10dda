package format

import (
	"errors"
	"fmt"
	"io"
)

// reader walks through a file once, front to back, asking for len(buf) bytes at multiples of len(buf) each time: what
// lies across two pieces is put together in scratch, so that the pieces stay aligned for direct input.
type reader struct {
	format  string
	f       io.ReaderAt
	size    int64
	next    int64  // offset of the next piece
	buf     []byte // pieces
	data    []byte // what is left of the current piece
	scratch []byte
}

func (r *reader) reset(f io.ReaderAt, size int64, buf []byte) {
	r.f, r.size, r.buf, r.next, r.data = f, size, buffer(buf), 0, nil
}

// release forgets the caller's memory before the reader waits for its next use.
func (r *reader) release() { r.f, r.buf, r.data = nil, nil, nil }

// at is the offset of the next byte.
func (r *reader) at() int64 { return r.next - int64(len(r.data)) }

func (r *reader) problem(text string) error {
	return &DataError{Format: r.format, Offset: r.at(), Problem: text}
}

func (r *reader) truncated() error {
	return &DataError{Format: r.format, Offset: r.at(), Problem: "the file ends here, too early", Err: io.ErrUnexpectedEOF}
}

// more reads the next piece; the current one must be used up.
func (r *reader) more() error {
	n := int(min(int64(len(r.buf)), r.size-r.next))
	if n <= 0 {
		return r.truncated()
	}
	got, err := r.f.ReadAt(r.buf[:n], r.next)
	if got < n {
		if err == nil || errors.Is(err, io.EOF) {
			r.next += int64(got)
			return r.truncated()
		}
		return fmt.Errorf("%s: read %d bytes at byte %d: %w", r.format, n, r.next, err)
	}
	r.data = r.buf[:n]
	r.next += int64(n)
	return nil
}

// take returns the next n bytes, valid until the next call.
func (r *reader) take(n int) ([]byte, error) {
	if len(r.data) >= n {
		p := r.data[:n]
		r.data = r.data[n:]
		return p, nil
	}
	if cap(r.scratch) < n {
		r.scratch = make([]byte, max(n, 1024))
	}
	p := r.scratch[:n]
	for have := 0; have < n; {
		if len(r.data) == 0 {
			if err := r.more(); err != nil {
				return nil, err
			}
		}
		c := copy(p[have:], r.data)
		r.data = r.data[c:]
		have += c
	}
	return p, nil
}

// skip passes over n bytes, reading them.
func (r *reader) skip(n int64) error {
	for n > int64(len(r.data)) {
		n -= int64(len(r.data))
		r.data = nil
		if err := r.more(); err != nil {
			return err
		}
	}
	r.data = r.data[n:]
	return nil
}

// writer gathers what is written into pieces of len(buf) bytes.
type writer struct {
	w   io.Writer
	buf []byte
	n   int // bytes waiting in buf
}

func (w *writer) flush() error {
	n, err := w.w.Write(w.buf[:w.n])
	if err == nil && n < w.n {
		err = io.ErrShortWrite
	}
	w.n = 0
	return err
}

// space returns free memory of at least one and at most n bytes; the caller fills it.
func (w *writer) space(n int64) ([]byte, error) {
	if w.n == len(w.buf) {
		if err := w.flush(); err != nil {
			return nil, err
		}
	}
	free := w.buf[w.n:]
	if int64(len(free)) > n {
		free = free[:n]
	}
	w.n += len(free)
	return free, nil
}

func (w *writer) write(p []byte) error {
	for len(p) > 0 {
		free, err := w.space(int64(len(p)))
		if err != nil {
			return err
		}
		p = p[copy(free, p):]
	}
	return nil
}

func (w *writer) zeros(n int64) error {
	for n > 0 {
		free, err := w.space(n)
		if err != nil {
			return err
		}
		clear(free)
		n -= int64(len(free))
	}
	return nil
}

// content writes n bytes of c.
func (w *writer) content(c Content, n int64) error {
	for off := int64(0); off < n; {
		free, err := w.space(n - off)
		if err != nil {
			return err
		}
		c.Fill(free, off)
		off += int64(len(free))
	}
	return nil
}
