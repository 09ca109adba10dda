// Package manifest is the content address of a data set: path, size and BLAKE3 digest of every file, under one root. It
// writes manifests, reads them strictly, pins what lies in a store, compares a store with a manifest, compares two
// manifests, proves that one file is in one, and follows what a data set was derived from. The format is specified in
// docs/manifest.md.
//
// Entries stream: writing, reading, verifying, comparing and proving need memory for one frame of entries, whatever the
// number of files.
//
// The package never takes a file's word for anything it can compute, never records a time, a host or an absolute path, and
// never follows what a manifest says to anywhere but the store, the files and the folders it was given.
package manifest

import (
	"encoding/hex"
	"fmt"

	"github.com/opencontainers/go-digest"
)

const (
	// MediaType is the media type of the header (manifest.json).
	MediaType = "application/vnd.benchpin.manifest.v1+json"
	// EntriesMediaType is the media type of the file of entries (manifest.entries.jsonl.zst).
	EntriesMediaType = "application/vnd.benchpin.manifest.entries.v1+jsonl.zstd"
)

// Limits of the format. Writer and reader hold the same ones.
const (
	MaxFrameEntries = 65_536       // lines in one frame
	MaxFrameBytes   = 16 << 20     // bytes of the lines of one frame, before compression
	MaxFrames       = 1 << 18      // frames, so at most 2^34 files
	MaxHeaderBytes  = 256 << 20    // bytes of the header
	MaxRecipeBytes  = 1 << 20      // bytes of the recipe
	MaxNumber       = 1<<53 - 1    // any number that is written as a JSON number: sizes, counts, offsets
	maxLineBytes    = 2*4095 + 128 // a path of quotes alone, escaped, and the rest of the line
)

// Class is the class of a fault in a manifest. Errors of this package match exactly one of the constants below with
// errors.Is; the negative vectors in testdata/manifest name theirs.
type Class string

// Error returns the name of the class.
func (c Class) Error() string { return "invalid manifest (" + string(c) + ")" }

const (
	ErrSyntax    Class = "syntax"        // not the JSON that is expected at all
	ErrCanonical Class = "canonical"     // JSON, but other bytes than the one way in which it may be written
	ErrMediaType Class = "media-type"    // another kind of document, or another version
	ErrLimit     Class = "limit"         // a limit of the format is exceeded
	ErrField     Class = "field"         // a field's value is outside its range
	ErrPath      Class = "path"          // a path breaks the rules of store.CheckName
	ErrOrder     Class = "order"         // paths do not strictly ascend
	ErrExclude   Class = "exclude"       // an entry that the header excludes
	ErrHeader    Class = "header-digest" // the header is not the one that its own digest was computed over
	ErrFrame     Class = "frame"         // a frame is not what the header says, or not zstd
	ErrCount     Class = "count"         // number of entries or of bytes differs from what the header says
	ErrRoot      Class = "root"          // the tree over the entries has another root than the header says
)

// Entry is one file of a data set.
type Entry struct {
	Path   string   // relative to the data set, as store.CheckName demands
	Size   int64    // bytes, 0 to MaxNumber
	Digest [32]byte // BLAKE3 of the content
}

// FormatDigest writes a BLAKE3 digest the way documents hold it: "blake3:" and 64 lower-case hex digits.
func FormatDigest(d [32]byte) digest.Digest {
	return digest.NewDigestFromEncoded(digest.BLAKE3, hex.EncodeToString(d[:]))
}

// ParseDigest reads what FormatDigest writes and refuses everything else, upper case and other algorithms among it.
func ParseDigest(s string) ([32]byte, error) {
	var d [32]byte
	if len(s) != len(digestPrefix)+64 || s[:len(digestPrefix)] != digestPrefix || !decodeHex(&d, []byte(s[len(digestPrefix):])) {
		return d, fmt.Errorf("%w: expected blake3: and 64 lower-case hex digits, found %.100q", ErrField, s)
	}
	return d, nil
}

const digestPrefix = "blake3:"

// decodeHex reads 64 lower-case hex digits.
func decodeHex(d *[32]byte, s []byte) bool {
	if len(s) != 64 {
		return false
	}
	for _, c := range s {
		if c-'A' < 26 { // encoding/hex reads upper case as well
			return false
		}
	}
	_, err := hex.Decode(d[:], s)
	return err == nil
}
