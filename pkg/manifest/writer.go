package manifest

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/blake3"
)

// Writer writes entries in frames and learns what the header must say. It is not safe for concurrent use.
type Writer struct {
	out    io.Writer
	h      Header
	skip   *Exclude
	tree   Tree
	enc    *zstd.Encoder
	plain  []byte // lines of the current frame
	packed []byte
	frame  Frame
	last   string
	lines  int64 // entries in a frame; tests make it small
	err    error
	closed bool
}

// NewWriter returns a writer of entries to out, which must be empty. The header is what Close returns; a meta that breaks the
// rules is an error of Add and Close.
func NewWriter(out io.Writer, meta Meta) *Writer {
	w := &Writer{out: out, h: Header{Layout: meta.Layout, Recipe: meta.Recipe, Lineage: meta.Lineage}, lines: MaxFrameEntries}
	w.skip, w.err = ParseExclude(meta.Exclude)
	w.h.Exclude = w.skip.Patterns()
	return w
}

var errClosed = errors.New("manifest writer: it is closed already")

// Add appends an entry. Paths must strictly ascend in the order of their bytes. After an error the writer is of no more use,
// and every further call returns that error.
func (w *Writer) Add(e Entry) error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return errClosed
	}
	w.err = w.add(e)
	return w.err
}

func (w *Writer) add(e Entry) error {
	if err := e.check(); err != nil {
		return err
	}
	if w.skip.Match(e.Path) {
		return fmt.Errorf("%w: %q was added, and the header excludes it", ErrExclude, e.Path)
	}
	if w.h.Count > 0 && e.Path <= w.last {
		return fmt.Errorf("%w: %q was added after %q, expected ascending paths, each once", ErrOrder, e.Path, w.last)
	}
	if e.Size > math.MaxInt64-w.h.Bytes {
		return fmt.Errorf("%w: the sizes of all files sum to more than %d bytes", ErrLimit, int64(math.MaxInt64))
	}
	if w.frame.Count == w.lines || len(w.plain)+maxLineBytes > MaxFrameBytes {
		if err := w.flush(); err != nil {
			return err
		}
	}
	start := len(w.plain)
	w.plain = e.AppendLine(w.plain)
	w.tree.Add(w.plain[start:])
	w.plain = append(w.plain, '\n')
	if w.frame.Count == 0 {
		w.frame.First = e.Path
	}
	w.frame.Count++
	w.last = e.Path
	w.h.Count++
	w.h.Bytes += e.Size
	return nil
}

// flush compresses and writes the current frame.
func (w *Writer) flush() error {
	if w.frame.Count == 0 {
		return nil
	}
	if w.enc == nil {
		// A single segment makes even the shortest frame declare its size, which readers insist on.
		enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(true))
		if err != nil {
			return fmt.Errorf("manifest writer: zstd: %w", err)
		}
		w.enc = enc
	}
	w.packed = w.enc.EncodeAll(w.plain, w.packed[:0])
	f := &w.frame
	f.Last = w.last
	if n := len(w.h.Frames); n > 0 {
		f.Offset = w.h.Frames[n-1].Offset + w.h.Frames[n-1].Size
	}
	f.Size, f.Digest = int64(len(w.packed)), FormatDigest(blake3.Sum256(w.packed))
	f.PlainSize, f.PlainDigest = int64(len(w.plain)), FormatDigest(blake3.Sum256(w.plain))
	if n, err := w.out.Write(w.packed); err != nil {
		return fmt.Errorf("manifest writer: frame %d: %w", len(w.h.Frames), err)
	} else if n != len(w.packed) {
		return fmt.Errorf("manifest writer: frame %d: %w", len(w.h.Frames), io.ErrShortWrite)
	}
	w.h.Frames = append(w.h.Frames, *f)
	w.frame, w.plain = Frame{}, w.plain[:0]
	return nil
}

// Close writes the last frame and returns the header, checked. It does not close the writer given to NewWriter.
func (w *Writer) Close() (Header, error) {
	if w.err != nil {
		return Header{}, w.err
	}
	if w.closed {
		return Header{}, errClosed
	}
	w.closed = true
	if w.err = w.flush(); w.err != nil {
		return Header{}, w.err
	}
	if w.enc != nil {
		w.err = w.enc.Close()
	}
	w.plain, w.packed = nil, nil
	if w.err != nil {
		return Header{}, fmt.Errorf("manifest writer: zstd: %w", w.err)
	}
	w.h.Root = FormatDigest(w.tree.Root())
	if w.err = w.h.check(); w.err != nil {
		return Header{}, w.err
	}
	return w.h, nil
}
