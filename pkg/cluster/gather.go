package cluster

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// pieceBytes is how much of a stream is sent at a time: large enough that transports do not store it up at the receiver.
const pieceBytes = 64 << 10

// MaxDocument is the largest document that GatherBytes and BroadcastBytes carry, in bytes.
const MaxDocument = 64 << 20

func putInt64(b []byte, v int64) { binary.LittleEndian.PutUint64(b, uint64(v)) }
func getInt64(b []byte) int64    { return int64(binary.LittleEndian.Uint64(b)) }

// What process 0 says to the one whose stream it reads.
const (
	askMore = 1
	enough  = 2
)

// Gather hands the streams of all processes, in the order of ranks, to sink, which runs in process 0 only and may read them in any order
// or interleaved; it need not read them to the end. Nothing is sent before it is read: process 0 holds one piece of 64 KiB of each
// stream at most. src is what this process contributes, nil for nothing; its errors, and those of sink, end the world.
func (w *World) Gather(ctx context.Context, src io.Reader, sink func(streams []io.Reader) error) error {
	if src == nil {
		src = bytes.NewReader(nil)
	}
	if w.t == nil {
		if err := w.meet(ctx, kindGather, 0, nil); err != nil {
			return err
		}
		if err := sink([]io.Reader{src}); err != nil {
			w.Abort(err)
		}
		return w.Err()
	}
	return w.meet(ctx, kindGather, 0, func(ctx context.Context) error {
		if w.rank != 0 {
			return w.serve(ctx, src)
		}
		streams := make([]io.Reader, w.size)
		streams[0] = src
		for r := 1; r < w.size; r++ {
			streams[r] = &stream{ctx: ctx, t: w.t, rank: r}
		}
		if err := sink(streams); err != nil {
			return err
		}
		var b [8]byte
		putInt64(b[:], enough)
		for r := 1; r < w.size; r++ {
			if err := w.t.Send(ctx, r, b[:]); err != nil {
				return err
			}
		}
		return nil
	})
}

// serve sends src to process 0, a piece each time that it asks, until it has enough. A piece of no bytes is the end.
func (w *World) serve(ctx context.Context, src io.Reader) error {
	var head [8]byte
	piece := make([]byte, pieceBytes)
	for {
		if err := w.t.Recv(ctx, 0, head[:]); err != nil {
			return err
		}
		if getInt64(head[:]) == enough {
			return nil
		}
		n, err := io.ReadFull(src, piece)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		putInt64(head[:], int64(n))
		if err := w.t.Send(ctx, 0, head[:]); err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		if err := w.t.Send(ctx, 0, piece[:n]); err != nil {
			return err
		}
	}
}

// stream is another process's stream, read in process 0.
type stream struct {
	ctx  context.Context
	t    Transport
	rank int
	buf  []byte // what was received and not read
	all  []byte // where it stands
	err  error
}

func (s *stream) Read(p []byte) (int, error) {
	if len(s.buf) == 0 && len(p) > 0 {
		if s.err == nil {
			s.err = s.more()
		}
		if s.err != nil {
			return 0, s.err
		}
	}
	n := copy(p, s.buf)
	s.buf = s.buf[n:]
	return n, nil
}

func (s *stream) more() error {
	var head [8]byte
	putInt64(head[:], askMore)
	if err := s.t.Send(s.ctx, s.rank, head[:]); err != nil {
		return err
	}
	if err := s.t.Recv(s.ctx, s.rank, head[:]); err != nil {
		return err
	}
	n := getInt64(head[:])
	if n == 0 {
		s.all = nil
		return io.EOF
	}
	if n < 0 || n > pieceBytes {
		return fmt.Errorf("cluster: process %d announced a piece of %d bytes: expected at most %d", s.rank, n, pieceBytes)
	}
	if s.all == nil {
		s.all = make([]byte, pieceBytes)
	}
	s.buf = s.all[:n]
	return s.t.Recv(s.ctx, s.rank, s.buf)
}

// GatherBytes returns, in process 0, what each process gave, in the order of ranks; the others get nil. No document may be larger than
// MaxDocument: it is for environments and such, not for results.
func (w *World) GatherBytes(ctx context.Context, p []byte) ([][]byte, error) {
	var all [][]byte
	err := w.Gather(ctx, bytes.NewReader(p), func(streams []io.Reader) error {
		all = make([][]byte, len(streams))
		for r, s := range streams {
			b, err := io.ReadAll(io.LimitReader(s, MaxDocument+1))
			if err != nil {
				return err
			}
			if len(b) > MaxDocument {
				return fmt.Errorf("cluster: the document of %s is larger than %d bytes", processName(r, w.NodeOf(r)), MaxDocument)
			}
			all[r] = b
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Broadcast copies what process 0 reads from src to dst in every other process, in pieces that each process passes on to others. src
// is used in process 0 only, dst in the others only; their errors end the world.
func (w *World) Broadcast(ctx context.Context, src io.Reader, dst io.Writer) error {
	return w.meet(ctx, kindBroadcast, 0, func(ctx context.Context) error {
		piece := make([]byte, 8+pieceBytes) // the length, then the bytes, in one message of fixed size
		for {
			n := 0
			if w.rank == 0 {
				var err error
				if n, err = io.ReadFull(src, piece[8:]); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					return err
				}
				putInt64(piece, int64(n))
			}
			if err := w.passOn(ctx, piece); err != nil {
				return err
			}
			if w.rank != 0 {
				n = int(getInt64(piece))
				if n < 0 || n > pieceBytes {
					return fmt.Errorf("cluster: a piece of a broadcast of %d bytes: expected at most %d", n, pieceBytes)
				}
				if _, err := dst.Write(piece[8 : 8+n]); err != nil {
					return err
				}
			}
			if n < pieceBytes {
				return nil
			}
		}
	})
}

// passOn brings a message from process 0 to all, along a binomial tree: process r has it from r without its lowest bit.
func (w *World) passOn(ctx context.Context, p []byte) error {
	bit := 1
	for ; bit < w.size && w.rank&bit == 0; bit <<= 1 {
	}
	if w.rank != 0 {
		if err := w.t.Recv(ctx, w.rank-bit, p); err != nil {
			return err
		}
	}
	for bit >>= 1; bit > 0; bit >>= 1 {
		if to := w.rank + bit; to < w.size {
			if err := w.t.Send(ctx, to, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// BroadcastBytes returns in every process what process 0 gave, MaxDocument bytes at most.
func (w *World) BroadcastBytes(ctx context.Context, p []byte) ([]byte, error) {
	if w.rank == 0 && len(p) > MaxDocument {
		err := fmt.Errorf("cluster: a document of %d bytes to broadcast: expected at most %d", len(p), MaxDocument)
		w.Abort(err)
		return nil, w.Err()
	}
	var got bytes.Buffer
	if err := w.Broadcast(ctx, bytes.NewReader(p), &got); err != nil {
		return nil, err
	}
	if w.rank == 0 {
		return p, nil
	}
	return got.Bytes(), nil
}
