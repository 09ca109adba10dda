package manifest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/manifest/blake"
)

const (
	// ProofMediaType is the media type of a proof that a file, or a range of one, belongs to a data set.
	ProofMediaType = "application/vnd.benchpin.proof.v1+json"
	// MaxProofBytes bounds a proof: the longest path takes 17 KB, the deepest tree of a file about 25 KB.
	MaxProofBytes = 128 << 10
	// maxProofValues bounds the subtrees into which a range divides the largest file: two at each level on each side of it.
	maxProofValues = 4 * 44
)

// ErrRange is wrapped by errors about ranges that a file does not have.
var ErrRange = blake.ErrRange

// FileProof shows that a file, or a range of its bytes, belongs to the data set with a root. It is self-contained: whoever knows the
// root checks it, and then knows path, size and digest of the file, and for a range the BLAKE3 subtrees that its bytes must have. The
// format is specified in docs/manifest.md.
type FileProof struct {
	Root [32]byte
	Proof
	// Range is nil for a proof about the whole file.
	Range *RangeProof
}

// RangeProof ties the bytes from From up to but not including To to the digest of their file.
type RangeProof struct {
	From, To int64
	// First and Last are the bytes of the chunks of 1024 bytes in which the range begins and ends, empty where it does so between
	// chunks, and where the last one is the first.
	First, Last []byte
	// Values are the chaining values of all other subtrees, in the order of their bytes: see [blake.Range].
	Values [][32]byte
}

// Encode writes the one canonical form of a proof: one line of JSON and a line end.
func (p *FileProof) Encode() ([]byte, error) {
	if err := p.form(); err != nil {
		return nil, err
	}
	b := append([]byte(nil), `{"media_type":"`+ProofMediaType+`","root":"`+string(FormatDigest(p.Root))+`","count":`...)
	b = strconv.AppendInt(b, p.Count, 10)
	b = append(b, `,"index":`...)
	b = strconv.AppendInt(b, p.Index, 10)
	b = append(append(b, `,"entry":`...), p.Line...)
	b = appendDigests(append(b, `,"path":[`...), p.Path)
	b = append(b, `],"range":`...)
	if r := p.Range; r == nil {
		b = append(b, "null"...)
	} else {
		b = append(b, `{"from":`...)
		b = strconv.AppendInt(b, r.From, 10)
		b = append(b, `,"to":`...)
		b = strconv.AppendInt(b, r.To, 10)
		b = append(b, `,"first":"`...)
		b = base64.StdEncoding.AppendEncode(b, r.First)
		b = append(b, `","last":"`...)
		b = base64.StdEncoding.AppendEncode(b, r.Last)
		b = appendHex(append(b, `","values":[`...), r.Values)
		b = append(b, "]}"...)
	}
	// Damage to the count, which the root does not vouch for, is found by this alone.
	b = append(b, `,"proof_digest":"`+string(FormatDigest(blake3.Sum256(b)))+"\"}\n"...)
	return b, nil
}

func appendDigests(b []byte, ds [][32]byte) []byte {
	for i, d := range ds {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), FormatDigest(d)...), '"')
	}
	return b
}

func appendHex(b []byte, ds [][32]byte) []byte {
	for i, d := range ds {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(hex.AppendEncode(append(b, '"'), d[:]), '"')
	}
	return b
}

// form checks what can be said of a proof without the root.
func (p *FileProof) form() error {
	e, err := ParseEntry(p.Line)
	if err != nil {
		return fmt.Errorf("proof: entry: %w", err)
	}
	if p.Index < 0 || p.Index >= p.Count || p.Count > MaxNumber || len(p.Path) > MaxProofPath {
		return fmt.Errorf("%w: proof: entry %d of %d with a path of %d hashes", ErrField, p.Index, p.Count, len(p.Path))
	}
	r := p.Range
	if r == nil {
		return nil
	}
	br := blake.Range{Size: e.Size, From: r.From, To: r.To}
	if err := br.Check(); err != nil {
		return fmt.Errorf("%w: proof: %w", ErrField, err)
	}
	first, last := r.edges(br)
	if len(r.First) != chunkLen(e.Size, first) || len(r.Last) != chunkLen(e.Size, last) || len(r.Values) > maxProofValues {
		return fmt.Errorf("%w: proof: bytes %d to %d of %d need chunks of %d and %d bytes, found %d and %d, and at most %d values, found %d",
			ErrField, r.From, r.To, e.Size, chunkLen(e.Size, first), chunkLen(e.Size, last), len(r.First), len(r.Last), maxProofValues, len(r.Values))
	}
	return nil
}

// edges are the chunks whose bytes are in First and Last, -1 for none.
func (r *RangeProof) edges(br blake.Range) (first, last int64) {
	first, last = br.Edges()
	if first == last {
		last = -1
	}
	return first, last
}

// chunkLen is how many bytes a chunk of a file has.
func chunkLen(size, chunk int64) int {
	if chunk < 0 {
		return 0
	}
	return int(min(blake.ChunkSize, size-chunk*blake.ChunkSize))
}

type fileProofJSON struct {
	MediaType string          `json:"media_type"`
	Root      string          `json:"root"`
	Count     int64           `json:"count"`
	Index     int64           `json:"index"`
	Entry     json.RawMessage `json:"entry"`
	Path      []string        `json:"path"`
	Range     *rangeProofJSON `json:"range"`
	Digest    string          `json:"proof_digest"`
}

type rangeProofJSON struct {
	From   int64    `json:"from"`
	To     int64    `json:"to"`
	First  []byte   `json:"first"`
	Last   []byte   `json:"last"`
	Values []string `json:"values"`
}

// ParseFileProof reads a proof and accepts only the bytes that Encode writes for it. It does not say that the proof holds: see
// [FileProof.Check]. The error matches one [Class].
func ParseFileProof(b []byte) (*FileProof, error) {
	if len(b) > MaxProofBytes {
		return nil, fmt.Errorf("%w: proof of more than %d bytes", ErrLimit, MaxProofBytes)
	}
	var j fileProofJSON
	if err := json.Unmarshal(b, &j); err != nil {
		class := ErrSyntax
		if t := (*json.UnmarshalTypeError)(nil); errors.As(err, &t) {
			class = ErrField
		}
		return nil, fmt.Errorf("%w: proof: %w", class, err)
	}
	if j.MediaType != ProofMediaType {
		return nil, fmt.Errorf("%w: expected %s, found %.100q", ErrMediaType, ProofMediaType, j.MediaType)
	}
	p := &FileProof{Proof: Proof{Index: j.Index, Count: j.Count, Line: j.Entry}}
	var err error
	if p.Root, err = ParseDigest(j.Root); err != nil {
		return nil, fmt.Errorf("proof: root: %w", err)
	}
	for i, s := range j.Path {
		d, err := ParseDigest(s)
		if err != nil {
			return nil, fmt.Errorf("proof: path[%d]: %w", i, err)
		}
		p.Path = append(p.Path, d)
	}
	if r := j.Range; r != nil {
		p.Range = &RangeProof{From: r.From, To: r.To, First: r.First, Last: r.Last}
		for i, s := range r.Values {
			var d [32]byte
			if !decodeHex(&d, []byte(s)) {
				return nil, fmt.Errorf("%w: proof: range.values[%d]: expected 64 lower-case hex digits, found %.100q", ErrField, i, s)
			}
			p.Range.Values = append(p.Range.Values, d)
		}
	}
	again, err := p.Encode()
	if err != nil {
		return nil, err
	}
	if i := firstDifference(b, again); i < len(b) && i >= len(again)-len("blake3:")-64-len("\"}\n") && len(b) == len(again) {
		return nil, fmt.Errorf("%w: proof: expected %q, found %.100q: it was damaged or edited", ErrHeader, tail(again, b), tail(b, again))
	}
	if !bytes.Equal(b, again) {
		return nil, fmt.Errorf("%w: proof: the bytes differ from the canonical form at byte %d: expected %.40q, found %.40q",
			ErrCanonical, firstDifference(b, again), tail(again, b), tail(b, again))
	}
	return p, nil
}

// Check holds the proof to a root that is known from elsewhere, and returns the entry of the file that it speaks of. A range is held to
// the digest of the file: First, Last and Values are then what belongs there, whatever bytes anyone has. The error matches ErrProof.
func (p *FileProof) Check(root [32]byte) (Entry, error) {
	if err := p.form(); err != nil {
		return Entry{}, err
	}
	if p.Root != root {
		return Entry{}, fmt.Errorf("%w: it is about the data set with root %s, expected %s", ErrProof, FormatDigest(p.Root), FormatDigest(root))
	}
	e, err := p.Verify(root)
	if err != nil || p.Range == nil {
		return e, err
	}
	return e, p.Range.check(e, nil)
}

// check computes the digest of the file from the parts that the range divides it into. bytes, which may be nil, computes the value of a
// part inside the range from bytes that are at hand.
func (r *RangeProof) check(e Entry, bytes func(first, end int64) ([32]byte, error)) error {
	br := blake.Range{Size: e.Size, From: r.From, To: r.To}
	first, _ := r.edges(br)
	left := r.Values
	digest, err := br.Digest(func(part blake.Part, lo, hi int64) (v [32]byte, err error) {
		if part == blake.Edge {
			chunk := r.Last
			if lo == first {
				chunk = r.First
			}
			if e.Size <= blake.ChunkSize {
				return blake.Sum(chunk), nil
			}
			return blake.Subtree(chunk, lo), nil
		}
		if len(left) == 0 {
			return v, fmt.Errorf("%w: %s: it has %d values, and more subtrees outside bytes %d to %d", ErrProof, e.Path, len(r.Values), r.From, r.To)
		}
		v, left = left[0], left[1:]
		if part != blake.Inside || bytes == nil {
			return v, nil
		}
		found, err := bytes(lo, hi)
		if err == nil && found != v {
			err = fmt.Errorf("%w: %s: bytes %d to %d are not those of the data set: expected subtree %x, found %x",
				ErrProof, e.Path, lo*blake.ChunkSize, min(hi*blake.ChunkSize, e.Size), v, found)
		}
		return v, err
	})
	switch {
	case err != nil:
		return err
	case len(left) > 0:
		return fmt.Errorf("%w: %s: it has %d values, %d more than there are subtrees", ErrProof, e.Path, len(r.Values), len(left))
	case digest != e.Digest:
		return fmt.Errorf("%w: %s: its subtrees combine to %s, the entry has %s", ErrProof, e.Path, FormatDigest(digest), FormatDigest(e.Digest))
	}
	return nil
}

// CheckRange holds the bytes of a range to the proof, which Check accepted with this entry: f is the file, or whatever has the range's
// bytes at the same place. Only these bytes are read, in pieces of at most 1 MiB. The error matches ErrProof where they differ, and says
// where.
func (r *RangeProof) CheckRange(e Entry, f io.ReaderAt) error {
	buf := make([]byte, min(blake.GroupSize, r.To-r.From+2*blake.ChunkSize))
	read := func(off, end int64) ([]byte, error) {
		b := buf[:end-off]
		if n, err := f.ReadAt(b, off); n < len(b) {
			if err == nil || err == io.EOF {
				return nil, fmt.Errorf("%w: %s: bytes %d to %d are not there, reading ended after %d", ErrProof, e.Path, off, end, off+int64(n))
			}
			return nil, err
		}
		return b, nil
	}
	first, last := r.edges(blake.Range{Size: e.Size, From: r.From, To: r.To})
	for _, edge := range []struct {
		chunk int64
		want  []byte
	}{{first, r.First}, {last, r.Last}} {
		if edge.chunk < 0 {
			continue
		}
		start := edge.chunk * blake.ChunkSize
		from, to := max(start, r.From), min(start+int64(len(edge.want)), r.To)
		b, err := read(from, to)
		if err != nil {
			return err
		}
		if want := edge.want[from-start : to-start]; !bytes.Equal(b, want) {
			at := from + int64(firstDifference(b, want))
			return fmt.Errorf("%w: %s: byte %d is not that of the data set: expected 0x%02x, found 0x%02x", ErrProof, e.Path, at, want[at-from], b[at-from])
		}
	}
	return r.check(e, func(lo, hi int64) ([32]byte, error) {
		end := min(hi*blake.ChunkSize, e.Size)
		if hi-lo <= blake.GroupSize/blake.ChunkSize {
			b, err := read(lo*blake.ChunkSize, end)
			if err != nil {
				return [32]byte{}, err
			}
			return blake.Subtree(b, lo), nil
		}
		var groups [][32]byte
		for off := lo * blake.ChunkSize; off < end; off += blake.GroupSize {
			b, err := read(off, min(off+blake.GroupSize, end))
			if err != nil {
				return [32]byte{}, err
			}
			groups = append(groups, blake.Group(b, off/blake.GroupSize))
		}
		return blake.Fold(groups), nil
	})
}
