package audit

import (
	"encoding/binary"
	"io"

	"github.com/zeebo/blake3"
)

// challengeContext is the BLAKE3 key derivation context of the draws. Its last word is the version of the construction.
const challengeContext = "benchpin 2026-11-30 audit challenge v1"

// Draws is the endless sequence of positions that follows from a root and a public value: the output of BLAKE3 in its key derivation mode
// (with a context that says what is drawn) over root || value, in words of 64 bits, big-endian. A word w gives the position w mod n, unless it is one of the last 2^64 mod n
// words, which would favour the first positions and are left out: each position is exactly as likely as any other.
type Draws struct {
	out io.Reader
	n   uint64 // positions
	buf [8]byte
}

// NewDraws begins the draws among n positions, 1 or more.
func NewDraws(context string, root [32]byte, from string, n int64) *Draws {
	h := blake3.NewDeriveKey(context)
	h.Write(root[:])
	h.WriteString(from)
	return &Draws{out: h.Digest(), n: uint64(n)}
}

// Next returns a position, 0 to n-1.
func (d *Draws) Next() int64 {
	excess := (^uint64(0)%d.n + 1) % d.n // 2^64 mod n
	for {
		_, _ = io.ReadFull(d.out, d.buf[:]) // the output has 2^64 bytes, and reading it never fails
		w := binary.BigEndian.Uint64(d.buf[:])
		if w <= ^uint64(0)-excess {
			return int64(w % d.n)
		}
	}
}
