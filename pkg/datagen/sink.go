package datagen

import (
	"context"
	"fmt"
	"io"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/manifest/blake"
)

// sink hashes and counts what goes to out. It is a format.Fronted where out can go back: then it keeps the first group of the file and hashes
// it at the end, which the digest allows, since that is made of the values of groups.
type sink struct {
	ctx context.Context
	w   *worker
	out io.Writer
	n   int64

	front int    // bytes that come last
	first []byte // the first group so far, where some come last
}

// fronter is an out that can go back to its first bytes.
type fronter interface {
	WriteFront(p []byte) error
}

var _ format.Fronted = (*sink)(nil)

func (s *sink) Write(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	n, err := s.out.Write(p)
	s.hash(p[:n])
	s.n += int64(n)
	s.w.g.report(0, int64(n))
	return n, err
}

func (s *sink) hash(p []byte) {
	if s.front > 0 {
		n := min(len(p), blake.GroupSize-len(s.first))
		s.first = append(s.first, p[:n]...)
		if p = p[n:]; len(p) == 0 {
			return
		}
	}
	_, _ = s.w.hash.Write(p)
}

// Later keeps what comes first, if that is all in one group and out can go back to it.
func (s *sink) Later(n int) bool {
	_, ok := s.out.(fronter)
	if !ok && s.out != io.Discard || s.n > 0 || n < 1 || n > blake.GroupSize {
		return false
	}
	if c, ok := s.out.(*comparer); ok {
		c.skip = n
	}
	if s.w.first == nil {
		s.w.first = make([]byte, 0, blake.GroupSize)
	}
	s.front, s.first = n, s.w.first[:0]
	s.w.hash.ResetGroup(1)
	return true
}

// Front gives the bytes that come last.
func (s *sink) Front(p []byte) error {
	if len(p) != s.front || len(s.first) < s.front {
		return fmt.Errorf("%d bytes come last; expected %d, of %d that were written", len(p), s.front, len(s.first))
	}
	copy(s.first, p)
	if out, ok := s.out.(fronter); ok {
		return out.WriteFront(p)
	}
	return nil
}

// sum returns the digest of the file, and the values of its groups where it has several.
func (s *sink) sum() (digest [32]byte, groups [][32]byte) {
	h := &s.w.hash
	if s.front == 0 {
		return h.Sum(), h.Groups()
	}
	var others [][32]byte
	switch rest := s.n - blake.GroupSize; {
	case rest <= 0:
		h.Reset()
		_, _ = h.Write(s.first)
		return h.Sum(), h.Groups()
	case rest <= blake.GroupSize:
		others = [][32]byte{h.GroupCV()}
	default:
		h.Sum() // of all but the first group, which is no digest of anything
		others = h.Groups()
	}
	h.ResetGroup(0)
	_, _ = h.Write(s.first)
	groups = append([][32]byte{h.GroupCV()}, others...)
	return blake.Digest(groups), groups
}
