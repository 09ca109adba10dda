package datagen

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// errEnough ends the making of a file when the last byte that was asked for is there.
var errEnough = errors.New("enough")

// Ranges makes the bytes [offsets[i], offsets[i]+lengths[i]) of entry i of the recipe and hands them to yield in order, without any
// storage. Offsets ascend and ranges do not overlap. A file is made from its beginning to the end of the last range, on one core; memory is one
// range and the generator's buffers. Bytes are valid until yield returns; its error, or that of a file that ends before a range does,
// is returned.
func (r Recipe) Ranges(ctx context.Context, entry int, offsets, lengths []int64, yield func(i int, b []byte) error) error {
	if err := r.Available(); err != nil {
		return err
	}
	for i, off := range offsets {
		if off < 0 || lengths[i] < 1 || i > 0 && off < offsets[i-1]+lengths[i-1] {
			return fmt.Errorf("ranges: %d bytes at %d: expected ranges that ascend and do not overlap", lengths[i], off)
		}
	}
	f := r.Entry(entry)
	c := &cutter{ctx: ctx, offsets: offsets, lengths: lengths, yield: yield}
	w := (&generator{r: r}).newWorker()
	var err error
	if f.companion > 0 {
		err = w.companion(c, f)
	} else {
		err = r.format.Write(c, f.Layout, r.content(f), w.buf)
	}
	switch {
	case errors.Is(err, errEnough):
		return nil
	case err != nil:
		return fmt.Errorf("make %s: %w", f.Path, err)
	case c.i < len(offsets):
		return fmt.Errorf("make %s: it has %d bytes: %w", f.Path, c.at, io.ErrUnexpectedEOF)
	}
	return nil
}

// cutter keeps of what is written the ranges that were asked for.
type cutter struct {
	ctx              context.Context
	offsets, lengths []int64
	yield            func(i int, b []byte) error
	i                int   // the range that comes next, or is begun
	at               int64 // bytes written before
	buf              []byte
}

// Write keeps what belongs to a range.
func (c *cutter) Write(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	n := len(p)
	for len(p) > 0 && c.i < len(c.offsets) {
		if skip := min(int64(len(p)), c.offsets[c.i]-c.at); skip > 0 {
			p, c.at = p[skip:], c.at+skip
			continue
		}
		take := min(int64(len(p)), c.lengths[c.i]-int64(len(c.buf)))
		c.buf = append(c.buf, p[:take]...)
		p, c.at = p[take:], c.at+take
		if int64(len(c.buf)) < c.lengths[c.i] {
			continue
		}
		if err := c.yield(c.i, c.buf); err != nil {
			return 0, err
		}
		c.buf = c.buf[:0]
		if c.i++; c.i == len(c.offsets) {
			return 0, errEnough
		}
	}
	c.at += int64(len(p))
	return n, nil
}
