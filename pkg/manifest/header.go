package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/opencontainers/go-digest"
	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/store"
)

// Meta is what the maker of a manifest knows beside the entries.
type Meta struct {
	// Layout says how samples lie in the files; nil where nobody knows.
	Layout *Layout
	// Recipe is the canonical JSON object that determines every byte of a generated data set; nil for any other.
	Recipe json.RawMessage
	// Exclude is what was left out by intent, in any order: see [ParseExclude].
	Exclude []string
	// Lineage is what the data set was derived from; nil where nobody says.
	Lineage *Lineage
}

// Layout says how samples lie in the files of a data set.
type Layout struct {
	Format         string `json:"format"`           // name of the sample container: npz, npy, ...
	SamplesPerFile int64  `json:"samples_per_file"` // at least 1
	DType          string `json:"dtype"`            // numpy's name of the element type: uint8, float32, ...
	Train          int64  `json:"train"`            // files for training
	Valid          int64  `json:"valid"`            // files for evaluation; both together at most the count of entries
}

// Frame describes one frame of the file of entries.
type Frame struct {
	First, Last string        // paths of its first and its last entry
	Count       int64         // entries, 1 to MaxFrameEntries
	Offset      int64         // where it begins in the file of entries
	Size        int64         // its bytes there
	Digest      digest.Digest // of those bytes
	PlainSize   int64         // bytes of its lines, line ends included, at most MaxFrameBytes
	PlainDigest digest.Digest // of its lines
}

// Header is the content of manifest.json.
type Header struct {
	Count  int64         // files
	Bytes  int64         // sum of their sizes
	Root   digest.Digest // root of the tree over all lines
	Layout *Layout
	Recipe json.RawMessage
	// Exclude has the patterns of paths that are no part of the data set, sorted; empty where everything is.
	Exclude []string
	Lineage *Lineage // nil where the maker does not say what it was derived from
	Frames  []Frame
}

// Encode writes the header's one canonical form: one line of JSON and a line end. It checks what ParseHeader checks.
func (h *Header) Encode() ([]byte, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	b := append([]byte(nil), `{"media_type":"`+MediaType+`","count":`...)
	b = strconv.AppendInt(b, h.Count, 10)
	b = append(b, `,"bytes":"`...)
	b = strconv.AppendInt(b, h.Bytes, 10)
	b = append(b, `","root":"`+string(h.Root)+`","layout":`...)
	if h.Layout == nil {
		b = append(b, "null"...)
	} else {
		// Plain letters and digits were checked, so encoding/json has one way only to write this.
		l, err := json.Marshal(h.Layout)
		if err != nil {
			return nil, fmt.Errorf("manifest header: layout: %w", err)
		}
		b = append(b, l...)
	}
	b = append(b, `,"recipe":`...)
	if h.Recipe == nil {
		b = append(b, "null"...)
	} else {
		b = append(b, h.Recipe...)
	}
	if len(h.Exclude) > 0 {
		b = append(b, `,"exclude":[`...)
		for i, p := range h.Exclude {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, '"')
			b = appendEscaped(b, p)
			b = append(b, '"')
		}
		b = append(b, ']')
	}
	if h.Lineage != nil {
		b = h.Lineage.append(append(b, `,"lineage":`...))
	}
	b = append(b, `,"frames":[`...)
	for i := range h.Frames {
		if i > 0 {
			b = append(b, ',')
		}
		b = h.Frames[i].append(b)
	}
	b = append(b, ']')
	// The digest of all before it finds damage to layout and recipe, which nothing else in the pair vouches for.
	b = append(b, `,"header_digest":"`+string(FormatDigest(blake3.Sum256(b)))+"\"}\n"...)
	if len(b) > MaxHeaderBytes {
		return nil, fmt.Errorf("%w: header of %d bytes, at most %d are allowed", ErrLimit, len(b), MaxHeaderBytes)
	}
	return b, nil
}

func (f *Frame) append(b []byte) []byte {
	b = append(b, `{"first":"`...)
	b = appendEscaped(b, f.First)
	b = append(b, `","last":"`...)
	b = appendEscaped(b, f.Last)
	for _, n := range [...]struct {
		key string
		n   int64
	}{{`","count":`, f.Count}, {`,"offset":`, f.Offset}, {`,"size":`, f.Size}} {
		b = append(b, n.key...)
		b = strconv.AppendInt(b, n.n, 10)
	}
	b = append(b, `,"digest":"`+string(f.Digest)+`","plain_size":`...)
	b = strconv.AppendInt(b, f.PlainSize, 10)
	return append(b, `,"plain_digest":"`+string(f.PlainDigest)+`"}`...)
}

// headerJSON and frameJSON are what the bytes are read into before they are compared with what Encode writes.
type headerJSON struct {
	MediaType string          `json:"media_type"`
	Count     int64           `json:"count"`
	Bytes     string          `json:"bytes"`
	Root      string          `json:"root"`
	Layout    *Layout         `json:"layout"`
	Recipe    json.RawMessage `json:"recipe"`
	Exclude   []string        `json:"exclude"`
	Lineage   *lineageJSON    `json:"lineage"`
	Frames    []frameJSON     `json:"frames"`
	Digest    string          `json:"header_digest"`
}

type frameJSON struct {
	First       string `json:"first"`
	Last        string `json:"last"`
	Count       int64  `json:"count"`
	Offset      int64  `json:"offset"`
	Size        int64  `json:"size"`
	Digest      string `json:"digest"`
	PlainSize   int64  `json:"plain_size"`
	PlainDigest string `json:"plain_digest"`
}

// ParseHeader reads a header and accepts only the bytes that Encode writes for it. The error matches one [Class].
func ParseHeader(b []byte) (*Header, error) {
	if len(b) > MaxHeaderBytes {
		return nil, fmt.Errorf("%w: header of %d bytes, at most %d are allowed", ErrLimit, len(b), MaxHeaderBytes)
	}
	var j headerJSON
	if err := json.Unmarshal(b, &j); err != nil {
		class := ErrSyntax
		if t := (*json.UnmarshalTypeError)(nil); errors.As(err, &t) {
			class = ErrField
		}
		return nil, fmt.Errorf("%w: header: %w", class, err)
	}
	if j.MediaType != MediaType {
		return nil, fmt.Errorf("%w: expected %s, found %.100q", ErrMediaType, MediaType, j.MediaType)
	}
	total, err := strconv.ParseInt(j.Bytes, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: bytes: expected a decimal number in quotes, found %.40q", ErrField, j.Bytes)
	}
	h := &Header{Count: j.Count, Bytes: total, Root: digest.Digest(j.Root), Layout: j.Layout, Recipe: j.Recipe, Exclude: j.Exclude}
	if h.Lineage, err = j.Lineage.lineage(); err != nil {
		return nil, err
	}
	if bytes.Equal(h.Recipe, []byte("null")) {
		h.Recipe = nil
	}
	h.Frames = make([]Frame, len(j.Frames))
	for i, f := range j.Frames {
		h.Frames[i] = Frame{
			First: f.First, Last: f.Last, Count: f.Count, Offset: f.Offset, Size: f.Size, Digest: digest.Digest(f.Digest),
			PlainSize: f.PlainSize, PlainDigest: digest.Digest(f.PlainDigest),
		}
	}
	again, err := h.Encode()
	if err != nil {
		return nil, err
	}
	if i := firstDifference(b, again); i < len(b) && i >= len(again)-len("blake3:")-64-len("\"}\n") && len(b) == len(again) {
		return nil, fmt.Errorf("%w: expected %q, found %.100q: it was damaged or edited", ErrHeader, tail(again, b), tail(b, again))
	}
	if !bytes.Equal(b, again) {
		return nil, fmt.Errorf("%w: header: the bytes differ from the canonical form at byte %d: expected %.40q, found %.40q",
			ErrCanonical, firstDifference(b, again), tail(again, b), tail(b, again))
	}
	return h, nil
}

func firstDifference(a, b []byte) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return i
}

func tail(of, other []byte) []byte { return of[firstDifference(of, other):] }

// check holds everything that can be said about a header without its entries.
func (h *Header) check() error {
	if h.Count < 0 || h.Count > MaxNumber {
		return fmt.Errorf("%w: count: expected 0 to %d, found %d", ErrField, int64(MaxNumber), h.Count)
	}
	if h.Bytes < 0 {
		return fmt.Errorf("%w: bytes: expected 0 to %d, found %d", ErrField, int64(math.MaxInt64), h.Bytes)
	}
	if _, err := ParseDigest(string(h.Root)); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	if l := h.Layout; l != nil {
		if err := l.check(h.Count); err != nil {
			return err
		}
	}
	if h.Recipe != nil {
		if err := checkRecipe(h.Recipe); err != nil {
			return err
		}
	}
	exclude, err := ParseExclude(h.Exclude)
	if err != nil {
		return err
	}
	if !slices.Equal(exclude.Patterns(), h.Exclude) {
		return fmt.Errorf("%w: exclude: expected the patterns sorted, each once: %.200q, found %.200q", ErrCanonical, exclude.Patterns(), h.Exclude)
	}
	if h.Lineage != nil {
		if err := h.Lineage.check(); err != nil {
			return err
		}
	}
	if len(h.Frames) > MaxFrames {
		return fmt.Errorf("%w: %d frames, at most %d are allowed", ErrLimit, len(h.Frames), MaxFrames)
	}
	var count, offset int64
	last := ""
	for i := range h.Frames {
		if err := h.Frames[i].check(offset, last); err != nil {
			return fmt.Errorf("frame %d: %w", i, err)
		}
		for _, p := range [...]string{h.Frames[i].First, h.Frames[i].Last} {
			if exclude.Match(p) {
				return fmt.Errorf("frame %d: %w: %q is an entry, and the header excludes it", i, ErrExclude, p)
			}
		}
		count += h.Frames[i].Count
		offset += h.Frames[i].Size
		last = h.Frames[i].Last
	}
	if count != h.Count {
		return fmt.Errorf("%w: the header says %d files, its frames hold %d", ErrCount, h.Count, count)
	}
	return nil
}

func (f *Frame) check(offset int64, before string) error {
	for _, n := range [...]struct {
		what        string
		n, min, max int64
	}{
		{"count", f.Count, 1, MaxFrameEntries}, {"offset", f.Offset, 0, MaxNumber}, {"size", f.Size, 1, maxFrameSize},
		{"plain_size", f.PlainSize, 1, MaxFrameBytes},
	} {
		if n.n < n.min || n.n > n.max {
			return fmt.Errorf("%w: %s: expected %d to %d, found %d", ErrField, n.what, n.min, n.max, n.n)
		}
	}
	if f.Offset != offset {
		return fmt.Errorf("%w: offset: expected %d, where the frame before ends, found %d", ErrFrame, offset, f.Offset)
	}
	for _, p := range [...]string{f.First, f.Last} {
		if err := store.CheckName(p); err != nil {
			return fmt.Errorf("%w: %w", ErrPath, err)
		}
	}
	if f.First <= before || f.Last < f.First || (f.Count == 1) != (f.First == f.Last) {
		return fmt.Errorf("%w: %d paths from %q to %q after %q", ErrOrder, f.Count, f.First, f.Last, before)
	}
	for _, d := range [...]digest.Digest{f.Digest, f.PlainDigest} {
		if _, err := ParseDigest(string(d)); err != nil {
			return err
		}
	}
	return nil
}

// maxFrameSize is the most that a frame may take compressed: zstd expands what it cannot compress by less than 1/256.
const maxFrameSize = MaxFrameBytes + MaxFrameBytes/256 + 1024

func (l *Layout) check(count int64) error {
	for _, s := range [...]struct{ what, s string }{{"format", l.Format}, {"dtype", l.DType}} {
		if s.s == "" || len(s.s) > 64 {
			return fmt.Errorf("%w: layout.%s: expected 1 to 64 characters, found %d", ErrField, s.what, len(s.s))
		}
		for _, c := range []byte(s.s) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
				return fmt.Errorf("%w: layout.%s: expected a-z, 0-9, _, - and ., found %q", ErrField, s.what, s.s)
			}
		}
	}
	if l.SamplesPerFile < 1 || l.SamplesPerFile > MaxNumber {
		return fmt.Errorf("%w: layout.samples_per_file: expected 1 to %d, found %d", ErrField, int64(MaxNumber), l.SamplesPerFile)
	}
	if l.Train < 0 || l.Valid < 0 || l.Train > count || l.Valid > count-l.Train {
		return fmt.Errorf("%w: layout: train %d and valid %d are more than the %d files", ErrField, l.Train, l.Valid, count)
	}
	return nil
}

// checkRecipe holds the recipe to one form of its own: a JSON object without spaces and without a key twice, strings and
// numbers written as encoding/json writes them without HTML escapes. The order of keys is the recipe's own business.
func checkRecipe(raw []byte) error {
	if len(raw) > MaxRecipeBytes {
		return fmt.Errorf("%w: recipe of %d bytes, at most %d are allowed", ErrLimit, len(raw), MaxRecipeBytes)
	}
	if len(raw) == 0 || raw[0] != '{' {
		return fmt.Errorf("%w: recipe: expected a JSON object or null, found %.40q", ErrField, raw)
	}
	again, err := rewriteJSON(raw)
	if err != nil {
		return fmt.Errorf("recipe: %w", err)
	}
	if !bytes.Equal(again, raw) {
		return fmt.Errorf("%w: recipe: expected %.60q, found %.60q", ErrCanonical, tail(again, raw), tail(raw, again))
	}
	return nil
}

// isEntryJSON reports whether line is one JSON object with the keys of an entry.
func isEntryJSON(line []byte) bool {
	d := json.NewDecoder(bytes.NewReader(line))
	var m map[string]json.RawMessage
	if d.Decode(&m) != nil {
		return false
	}
	if _, err := d.Token(); err != io.EOF {
		return false
	}
	for _, k := range [...]string{"path", "size", "digest"} {
		if _, ok := m[k]; !ok {
			return false
		}
	}
	return true
}
