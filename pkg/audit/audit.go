// Package audit asks whether somebody has the bytes of a pinned data set, without taking all of them: a challenge picks chunks of the
// data set by a public value that nobody knew before, an answer shows these chunks, and whoever holds the root of the manifest checks it.
// docs/audit.md specifies the documents and says what each form of an answer proves.
//
// It never decides which value is fair, never writes into a data set, and makes no bytes: whoever can make them from a recipe hands that
// in (Maker).
package audit

import (
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/benchpin/benchpin/pkg/manifest"
)

// The names of the documents, in their field "schema".
const (
	ChallengeSchema = "benchpin.audit.challenge/v1"
	AnswerSchema    = "benchpin.audit.answer/v1"
)

// ChunkSize is the number of bytes of a chunk: a group of a file's BLAKE3 tree. The last chunk of a file may have fewer; a file of at
// most this size is one chunk, and an empty file has none.
const ChunkSize = manifest.GroupSize

// Limits of what is made and read.
const (
	// MaxChunks is the largest number of chunks of a challenge: damage of 0.01 % is found with 99.8 %.
	MaxChunks = 1 << 16
	// MaxFrom is the length of the longest public value in bytes.
	MaxFrom = 1024
	// MaxChallenge is the size of the largest challenge in bytes.
	MaxChallenge = 64 << 20
	// MaxLine is the length of the longest line of an answer in bytes: a chunk in base64, its entry and two paths through trees.
	MaxLine = 2 << 20
)

// Errors of this package, for errors.Is.
var (
	// ErrDocument: the bytes are no challenge, or no answer, in the one form in which they are written.
	ErrDocument = errors.New("not an audit document")
	// ErrAudit: an answer does not show what the challenge asks for, or the data set does not hold it.
	ErrAudit = errors.New("the audit fails")
	// ErrOther: a document belongs to another challenge, or to another data set.
	ErrOther = fmt.Errorf("%w: it belongs to something else", ErrAudit)
	// ErrNeedBytes: an answer holds keyed digests, and nothing that could make the chunks was given.
	ErrNeedBytes = errors.New("keyed digests are checked by making the chunks again, and there is no recipe")
)

// ChunkError is the error about one chunk.
type ChunkError struct {
	// Path is the path of the file, Offset and Length the place of the chunk in it.
	Path           string
	Offset, Length int64
	Err            error
}

// Error names file and place.
func (e *ChunkError) Error() string {
	return fmt.Sprintf("%s, bytes %d to %d: %v", e.Path, e.Offset, e.Offset+e.Length, e.Err)
}

// Unwrap gives the class ErrAudit beside what was found.
func (e *ChunkError) Unwrap() []error { return []error{ErrAudit, e.Err} }

// chunks is the number of chunks of a file.
func chunks(size int64) int64 { return (size + ChunkSize - 1) / ChunkSize }

// Chunk is a part of a file.
type Chunk struct {
	Path string `json:"path"`
	// Size is that of the file, Group the number of the chunk in it.
	Size  int64 `json:"size"`
	Group int64 `json:"group"`
}

// Offset is where the chunk begins in its file.
func (c Chunk) Offset() int64 { return c.Group * ChunkSize }

// Length is the number of its bytes.
func (c Chunk) Length() int64 { return min(ChunkSize, c.Size-c.Offset()) }

func (c Chunk) fail(err error) *ChunkError {
	return &ChunkError{Path: c.Path, Offset: c.Offset(), Length: c.Length(), Err: err}
}

// checkFrom refuses values that could not be written down by a second person.
func checkFrom(from string) error {
	if from == "" || len(from) > MaxFrom || !utf8.ValidString(from) {
		return fmt.Errorf("the public value has %d bytes: expected 1 to %d bytes of UTF-8", len(from), MaxFrom)
	}
	for _, r := range from {
		if unicode.IsControl(r) {
			return fmt.Errorf("the public value %q has control characters", from)
		}
	}
	return nil
}
