package audit

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/manifest"
)

// Form is what an answer holds of the chunks.
type Form string

// The forms of answers.
const (
	// Bytes: the bytes themselves, which anyone who has the root can check.
	Bytes Form = "bytes"
	// Digests: a digest of the bytes under a key that follows from the challenge, which whoever can make the bytes again can check.
	Digests Form = "digests"
)

// answerHead is the first line of an answer.
type answerHead struct {
	Schema string `json:"schema"`
	// Challenge is the digest of the challenge's bytes, which binds the answer to it.
	Challenge string `json:"challenge"`
	Root      string `json:"root"`
	Form      Form   `json:"form"`
	Chunks    int    `json:"chunks"`
}

// answerLine is the line of one chunk.
type answerLine struct {
	// N is the number of the chunk in the challenge, from 0.
	N int `json:"n"`
	// Line is the file's line of the manifest, entry Index of Entries; Path are the hashes from there up to the root.
	Index   int64  `json:"index,string"`
	Entries int64  `json:"entries,string"`
	Line    string `json:"line"`
	Path    []hash `json:"path"`
	// Groups are the chaining values from the chunk up to the file's digest; none for a file of one chunk.
	Groups []hash `json:"groups"`
	// Bytes or Keyed is what the form says.
	Bytes []byte `json:"bytes,omitempty"`
	Keyed *hash  `json:"keyed,omitempty"`
}

// keyContext is the BLAKE3 key derivation context of the keys of chunks.
const keyContext = "benchpin 2026-11-30 audit answer v1"

// keyedDigest is the digest of a chunk under the key of its place in a challenge: BLAKE3 in its keyed mode, the key being BLAKE3 in
// its key derivation mode over the challenge's digest and the number of the chunk (32 bits, big-endian). The key follows from a value that nobody
// knew before, so that the digest cannot be kept instead of the bytes, nor taken from another answer.
func keyedDigest(challenge [32]byte, n int, bytes []byte) (sum [32]byte) {
	var key [32]byte
	d := blake3.NewDeriveKey(keyContext)
	d.Write(challenge[:])
	d.Write(binary.BigEndian.AppendUint32(nil, uint32(n)))
	d.Sum(key[:0])
	h, err := blake3.NewKeyed(key[:])
	if err != nil {
		return sum // the key has 32 bytes
	}
	h.Write(bytes)
	h.Sum(sum[:0])
	return sum
}

// proof is the proof of membership that a line holds.
func (l *answerLine) proof() manifest.Proof {
	return manifest.Proof{Index: l.Index, Count: l.Entries, Line: []byte(l.Line), Path: plain(l.Path)}
}

func plain(h []hash) [][32]byte {
	out := make([][32]byte, len(h))
	for i := range h {
		out[i] = h[i]
	}
	return out
}

func hashes(h [][32]byte) []hash {
	out := make([]hash, len(h))
	for i := range h {
		out[i] = h[i]
	}
	return out
}

// lines reads an answer line by line, with bounds.
type lines struct {
	r *bufio.Reader
	n int
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, MaxLine)} }

// errTruncated is the error about an answer that ends too early.
var errTruncated = errors.New("the answer ends before its last line")

// next decodes the next line.
func (l *lines) next(v any) error {
	l.n++
	b, err := l.r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return fmt.Errorf("%w: answer: line %d has more than %d bytes", ErrDocument, l.n, MaxLine)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: %w (line %d)", ErrDocument, errTruncated, l.n)
	case err != nil:
		return fmt.Errorf("answer: %w", err)
	}
	if err := decode(b, v); err != nil {
		return fmt.Errorf("answer: line %d: %w", l.n, err)
	}
	return nil
}

// end refuses anything after the last line.
func (l *lines) end() error {
	if _, err := l.r.ReadByte(); err == nil {
		return fmt.Errorf("%w: answer: there is more after line %d, the last one", ErrDocument, l.n)
	} else if !errors.Is(err, io.EOF) {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}
