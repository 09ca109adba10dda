package bench

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zeebo/blake3"
)

// MaxNotBefore is the length of the longest public value that an order is drawn with, in bytes.
const MaxNotBefore = 1024

// readsUnhashed stands in the preamble of version 4 for a run that does not hash what it reads.
const readsUnhashed = "unhashed"

// notBeforeContext is the context of the derivation of the order's seed. It never changes.
const notBeforeContext = "benchpin 2026-11-30 order seed of a public value v1"

// CheckNotBefore refuses what cannot be a public value: it is one line of printable text, as people copy it.
func CheckNotBefore(value string) error {
	switch {
	case value == "" || len(value) > MaxNotBefore:
		return fmt.Errorf("%w: a public value of %d bytes: expected 1 to %d", ErrImpossible, len(value), MaxNotBefore)
	case !utf8.ValidString(value), strings.ContainsFunc(value, func(c rune) bool { return !unicode.IsPrint(c) }), strings.TrimSpace(value) != value:
		return fmt.Errorf("%w: a public value is one line of printable text without spaces around it, found %q", ErrImpossible, value)
	}
	return nil
}

// seedAfter is the seed of the order of samples: seed itself without a value, or else 31 bits of BLAKE3 in its mode for deriving keys over
// seed (8 bytes, big-endian) and value, so that seeds of epochs, which are counted up from it, stay in the range of numpy's generator.
func seedAfter(seed int64, value string) int64 {
	if value == "" {
		return seed
	}
	material := append(binary.BigEndian.AppendUint64(nil, uint64(seed)), value...)
	var out [4]byte
	blake3.DeriveKey(notBeforeContext, material, out[:])
	return int64(binary.BigEndian.Uint32(out[:]) & 0x7fffffff)
}
