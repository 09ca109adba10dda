package stats

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// StepBytes is the length of a row as processes send it to each other.
const StepBytes = 8 * stepFields

// stepFields is the number of columns.
const stepFields = 21

// fields are all columns of a row, in the order of the file.
func (s *Step) fields() [stepFields]int64 {
	return [stepFields]int64{
		int64(s.Epoch), s.Step, int64(s.Rank), int64(s.Block), s.BlockStart, s.BlockEnd, s.Start, s.Load, s.Compute, s.Prescribed, s.Proc,
		s.Barrier, s.Open, s.Read, s.Decode, s.Samples, s.Bytes, s.Queue, s.Ready, s.Preprocess, s.Hash,
	}
}

// AppendTo appends the row's StepBytes bytes to b: every column in the order of the file, as 8 bytes, big-endian.
func (s *Step) AppendTo(b []byte) []byte {
	for _, v := range s.fields() {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// ParseStep reads a row that AppendTo wrote, and checks it as the row of a file.
func ParseStep(b []byte) (s Step, err error) {
	if len(b) != StepBytes {
		return s, fmt.Errorf("%w: a row of %d bytes, expected %d", ErrFormat, len(b), StepBytes)
	}
	var v [stepFields]int64
	for i := range v {
		v[i] = int64(binary.BigEndian.Uint64(b[8*i:]))
	}
	s = Step{
		Epoch: int32(v[0]), Step: v[1], Rank: int32(v[2]), Block: int32(v[3]), BlockStart: v[4], BlockEnd: v[5], Start: v[6], Load: v[7],
		Compute: v[8], Prescribed: v[9], Proc: v[10], Barrier: v[11], Open: v[12], Read: v[13], Decode: v[14], Samples: v[15], Bytes: v[16],
		Queue: v[17], Ready: v[18], Preprocess: v[19], Hash: v[20],
	}
	if s.fields() != v {
		return s, fmt.Errorf("%w: a row whose epoch, rank or block does not fit into 32 bits", ErrFormat)
	}
	return s, s.check()
}

// Rows reads all rows of a file of steps of the given size in bytes as AppendTo writes them, one after the other. Close it.
func Rows(f io.ReaderAt, size int64) io.ReadCloser {
	out, in := io.Pipe()
	go func() {
		in.CloseWithError(writeRows(in, f, size)) // a nil error is the end
	}()
	return out
}

// sentRows is how many rows are written to a pipe at a time.
const sentRows = 256

func writeRows(to io.Writer, f io.ReaderAt, size int64) error {
	r, err := Open(f, size)
	if err != nil {
		return err
	}
	defer r.Close()
	buf := make([]byte, 0, sentRows*StepBytes)
	err = r.Each(func(s *Step) error {
		if buf = s.AppendTo(buf); len(buf) < cap(buf) {
			return nil
		}
		_, err := to.Write(buf)
		buf = buf[:0]
		return err
	})
	if err == nil {
		_, err = to.Write(buf)
	}
	return err
}

// Ranks are the rows of some ranks of a run, in the order of a file that holds no others: Count ranks from First on.
type Ranks struct {
	Rows         io.Reader
	First, Count int
}

// Merge writes the rows of all parts to w, in the order of one file: parts are in the order of their ranks, and each has a row for every
// step of its ranks, for so many epochs of so many steps. It holds one chunk of rows, and what a part's reader holds. A part whose rows
// are not those is an error that wraps ErrPlan.
func Merge(ctx context.Context, w *Writer, parts []Ranks, epochs int, steps int64) error {
	buffered := make([]*bufio.Reader, len(parts))
	for i := range parts {
		buffered[i] = bufio.NewReaderSize(parts[i].Rows, 4<<10)
	}
	one := make([]byte, StepBytes)
	rows := make([]Step, 1)
	for e := 1; e <= epochs; e++ {
		for s := int64(1); s <= steps; s++ {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			for i, p := range parts {
				for rank := p.First; rank < p.First+p.Count; rank++ {
					if _, err := io.ReadFull(buffered[i], one); err != nil {
						return fmt.Errorf("steps: row of epoch %d step %d rank %d: %w", e, s, rank, err)
					}
					var err error
					if rows[0], err = ParseStep(one); err != nil {
						return err
					}
					if r := &rows[0]; int(r.Epoch) != e || r.Step != s || int(r.Rank) != rank {
						return fmt.Errorf("%w: found epoch %d step %d rank %d where epoch %d step %d rank %d belongs", ErrPlan, r.Epoch, r.Step, r.Rank, e, s, rank)
					}
					if err := w.Write(rows); err != nil {
						return err
					}
				}
			}
		}
	}
	for i, p := range parts {
		if _, err := buffered[i].ReadByte(); err == nil {
			return fmt.Errorf("%w: ranks %d to %d have more rows than %d epochs of %d steps", ErrPlan, p.First, p.First+p.Count-1, epochs, steps)
		} else if !errors.Is(err, io.EOF) {
			return fmt.Errorf("steps: after the last row of rank %d: %w", p.First+p.Count-1, err)
		}
	}
	return nil
}

// Copy writes all rows of a file of steps of the given size in bytes to w.
func Copy(w *Writer, f io.ReaderAt, size int64) error {
	r, err := Open(f, size)
	if err != nil {
		return err
	}
	defer r.Close()
	rows := make([]Step, 1)
	return r.Each(func(s *Step) error {
		rows[0] = *s
		return w.Write(rows)
	})
}
