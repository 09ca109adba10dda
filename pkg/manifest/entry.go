package manifest

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/benchpin/benchpin/pkg/store"
)

// The one way to write an entry:
//
//	{"path":"train/img_00_of_28.npz","size":146600628,"digest":"blake3:<64 hex>"}
const (
	lineStart  = `{"path":"`
	lineSize   = `","size":`
	lineDigest = `,"digest":"`
	lineEnd    = `"}`
)

// check says whether an entry may be in a manifest.
func (e Entry) check() error {
	if err := store.CheckName(e.Path); err != nil {
		return fmt.Errorf("%w: %w", ErrPath, err)
	}
	if e.Size < 0 || e.Size > MaxNumber {
		return fmt.Errorf("%w: size of %q: expected 0 to %d bytes, found %d", ErrField, e.Path, int64(MaxNumber), e.Size)
	}
	return nil
}

// AppendLine appends the entry's line to dst, without a line end: the bytes that are the entry's leaf in the tree. It
// does not check the entry.
func (e Entry) AppendLine(dst []byte) []byte {
	dst = append(dst, lineStart...)
	dst = appendEscaped(dst, e.Path)
	dst = append(dst, lineSize...)
	dst = strconv.AppendInt(dst, e.Size, 10)
	dst = append(dst, lineDigest+digestPrefix...)
	dst = hex.AppendEncode(dst, e.Digest[:])
	return append(dst, lineEnd...)
}

// appendEscaped writes the inside of a JSON string. Paths hold no control characters, so that two escapes are all.
func appendEscaped(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] == '"' || s[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, s[i])
	}
	return dst
}

// ParseEntry reads one line, without its line end, and accepts only what AppendLine writes.
func ParseEntry(line []byte) (Entry, error) {
	var e Entry
	rest, ok := bytes.CutPrefix(line, []byte(lineStart))
	if !ok {
		return e, lineFault(line, "it does not begin with "+lineStart)
	}
	path, rest, err := cutString(line, rest)
	if err != nil {
		return e, err
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(lineSize[1:])); !ok {
		return e, lineFault(line, "expected "+lineSize[1:]+" after the path")
	}
	digits := 0
	for digits < len(rest) && '0' <= rest[digits] && rest[digits] <= '9' {
		digits++
	}
	size, err := strconv.ParseInt(string(rest[:digits]), 10, 64)
	switch {
	case digits == 0:
		return e, lineFault(line, "expected decimal digits after size")
	case rest[0] == '0' && digits > 1:
		return e, fmt.Errorf("%w: size has leading zeros in %.200q", ErrCanonical, line)
	case err != nil || size > MaxNumber:
		return e, fmt.Errorf("%w: size: expected 0 to %d, found %.40s", ErrField, int64(MaxNumber), rest[:digits])
	}
	if rest, ok = bytes.CutPrefix(rest[digits:], []byte(lineDigest)); !ok {
		return e, lineFault(line, "expected "+lineDigest+" after the size")
	}
	text, rest, ok := bytes.Cut(rest, []byte{'"'})
	if !ok || string(rest) != lineEnd[1:] {
		return e, lineFault(line, "expected "+lineEnd+" after the digest")
	}
	hex, ok := bytes.CutPrefix(text, []byte(digestPrefix))
	if !ok || !decodeHex(&e.Digest, hex) {
		return e, fmt.Errorf("%w: digest: expected blake3: and 64 lower-case hex digits, found %.100q", ErrField, text)
	}
	e.Path, e.Size = path, size
	return e, e.check()
}

// cutString reads up to the closing quote and returns what follows it.
func cutString(line, b []byte) (s string, rest []byte, err error) {
	end, escapes := 0, 0
	for ; end < len(b) && b[end] != '"'; end++ {
		if b[end] != '\\' {
			continue
		}
		end++
		escapes++
		if end < len(b) && b[end] != '"' && b[end] != '\\' {
			return "", nil, fmt.Errorf("%w: escape \\%c in the path; only \\\" and \\\\ are written: %.200q", ErrCanonical, b[end], line)
		}
	}
	if end >= len(b) {
		return "", nil, lineFault(line, "the path does not end")
	}
	if escapes == 0 {
		return string(b[:end]), b[end+1:], nil
	}
	raw := make([]byte, 0, end-escapes)
	for i := 0; i < end; i++ {
		if b[i] == '\\' {
			i++
		}
		raw = append(raw, b[i])
	}
	return string(raw), b[end+1:], nil
}

// lineFault tells JSON that is written another way from what is no entry at all.
func lineFault(line []byte, what string) error {
	class := ErrSyntax
	if isEntryJSON(line) {
		class = ErrCanonical
	}
	return fmt.Errorf("%w: %s: %.200q", class, what, line)
}
