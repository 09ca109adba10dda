// Package certificate is the document in which it stands how fair a data set is to storage that deduplicates and compresses: its types, its
// one canonical form, and what must be true of it. Whoever has the data measures it (pkg/certify).
//
// The package never looks at data, and never says that a figure is good.
package certificate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
)

const (
	// SchemaName is the value of the field schema.
	SchemaName = "https://github.com/benchpin/benchpin/schemas/certificate-v1.schema.json"
	// SchemaFile is the name of its JSON schema in package schemas.
	SchemaFile = "certificate-v1.schema.json"
	// MediaType is the media type of a certificate.
	MediaType = "application/vnd.benchpin.certificate.v1+json"
	// MaxBytes is the most that Parse reads.
	MaxBytes = 1 << 20
)

// Certificate is what was measured on the bytes of a data set. The same data, options and library give the same bytes, on every machine.
type Certificate struct {
	Schema string `json:"schema"`
	// Class is "C" where the manifest has a recipe, so that anyone can make the data again and measure them; "H" where the measuring host
	// says it, and whoever has the data can measure again.
	Class       string      `json:"class"`
	Dataset     Dataset     `json:"dataset"`
	Scope       Scope       `json:"scope"`
	Repeats     Repeats     `json:"repeats"`
	Compression Compression `json:"compression"`
	// Method is the version of what was done, Library what compressed.
	Method  int    `json:"method"`
	Library string `json:"library"`
}

// Method is the version of measuring that this package describes.
const Method = 1

// Dataset is the data set, by its manifest.
type Dataset struct {
	Root      string `json:"root"`
	Manifest  string `json:"manifest"`
	Files     Int    `json:"files"`
	Bytes     Int    `json:"bytes"`
	Generated bool   `json:"generated"`
}

// Scope is what was read of it. Every file that was read was hashed, and was the one that the manifest lists.
type Scope struct {
	// Mode is "all", or "sample": files drawn by the root.
	Mode  string `json:"mode"`
	Files Int    `json:"files"`
	Bytes Int    `json:"bytes"`
}

// Modes of Scope.
const (
	All    = "all"
	Sample = "sample"
)

// Repeats is how much of the data is there more than once.
type Repeats struct {
	// Files are whole files of the manifest, by their digests, whatever was read.
	Files Distinct `json:"files"`
	// Blocks are aligned pieces of the files that were read, of 512 and of 4096 bytes.
	Blocks []Blocks `json:"blocks"`
}

// Blocks counts the blocks of one size.
type Blocks struct {
	Size int `json:"size"`
	// Zero counts blocks of zero bytes alone; they are among the others too.
	Zero Int `json:"zero"`
	Distinct
}

// Distinct counts things and the different ones among them.
type Distinct struct {
	Count    Int `json:"count"`
	Distinct Int `json:"distinct"`
	// Share is what a store that keeps each once does not keep: 1 - distinct/count, rounded to 6 decimals; 0 where there is nothing.
	Share float64 `json:"share"`
	// Exact: Distinct was counted. Otherwise it was estimated from those whose hashes end in a number of zero bits, and Error is the standard
	// error of Share.
	Exact bool    `json:"exact"`
	Error float64 `json:"error"`
}

// Compression is how small zstd makes the data that were read.
type Compression struct {
	Method string `json:"method"`
	Level  int    `json:"level"`
	// Chunks are the data in pieces of a size, each compressed alone, and stored as it is where that is smaller; the last one (size 0) has
	// whole files.
	Chunks []Chunks `json:"chunks"`
}

// Chunks is the outcome for one size of pieces.
type Chunks struct {
	Size       int `json:"size"`
	Plain      Int `json:"plain"`
	Compressed Int `json:"compressed"`
	// Ratio is plain/compressed, rounded to 4 decimals; 1 where there is nothing.
	Ratio float64 `json:"ratio"`
}

// Int is a number that may exceed 2^53; it is written as a text.
type Int int64

// MarshalJSON writes decimal digits in quotes.
func (n Int) MarshalJSON() ([]byte, error) {
	return []byte(`"` + strconv.FormatInt(int64(n), 10) + `"`), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Int) UnmarshalJSON(b []byte) error {
	if len(b) < 3 || b[0] != '"' || b[len(b)-1] != '"' {
		return fmt.Errorf("expected a decimal number in quotes, found %.40s", b)
	}
	v, err := strconv.ParseInt(string(b[1:len(b)-1]), 10, 64)
	if err != nil {
		return fmt.Errorf("expected a decimal number in quotes, found %.40s", b)
	}
	*n = Int(v)
	return nil
}

// ErrNotCertificate is wrapped by the errors of Parse.
var ErrNotCertificate = errors.New("not a certificate")

// Canonical is the one byte form: indented JSON with a line end. It checks what Parse checks.
func (c *Certificate) Canonical() ([]byte, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(c); err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return b.Bytes(), nil
}

// Parse reads the canonical form and nothing else.
func Parse(b []byte) (*Certificate, error) {
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", ErrNotCertificate, len(b), MaxBytes)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	c := new(Certificate)
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotCertificate, err)
	}
	again, err := c.Canonical()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, b) {
		return nil, fmt.Errorf("%w: the bytes are not the canonical form of what they say", ErrNotCertificate)
	}
	return c, nil
}

// BlockSizes are the sizes of Blocks, ChunkSizes those of Chunks, in their order.
func BlockSizes() []int { return []int{512, 4096} }

// ChunkSizes are the sizes of Chunks; 0 is whole files.
func ChunkSizes() []int { return []int{128 << 10, 1 << 20, 0} }

// Level is the level of zstd.
const Level = 3

// Check returns what cannot be true of the certificate, whatever the data are.
func (c *Certificate) Check() error {
	bad := func(field, format string, args ...any) error {
		return fmt.Errorf("%w: %s: %s", ErrNotCertificate, field, fmt.Sprintf(format, args...))
	}
	digest := regexp.MustCompile(`^blake3:[0-9a-f]{64}$`)
	class := "H"
	if c.Dataset.Generated {
		class = "C"
	}
	d, s := &c.Dataset, &c.Scope
	switch {
	case c.Schema != SchemaName:
		return bad("schema", "expected %s, found %.100q", SchemaName, c.Schema)
	case c.Class != class:
		return bad("class", "expected %s, since generated is %v, found %.10q", class, d.Generated, c.Class)
	case c.Method != Method:
		return bad("method", "expected %d, found %d", Method, c.Method)
	case c.Library == "" || len(c.Library) > 200:
		return bad("library", "expected 1 to 200 characters, found %d", len(c.Library))
	case !digest.MatchString(d.Root), !digest.MatchString(d.Manifest):
		return bad("dataset", "expected two digests, found %.100q, %.100q", d.Root, d.Manifest)
	case d.Files < 0 || d.Bytes < 0 || s.Files < 0 || s.Bytes < 0 || s.Files > d.Files || s.Bytes > d.Bytes:
		return bad("scope", "%d files, %d bytes of a data set of %d, %d", s.Files, s.Bytes, d.Files, d.Bytes)
	case s.Mode != All && s.Mode != Sample:
		return bad("scope.mode", "expected %s or %s, found %.20q", All, Sample, s.Mode)
	case s.Mode == All && (s.Files != d.Files || s.Bytes != d.Bytes):
		return bad("scope", "all is %d files, %d bytes, found %d, %d", d.Files, d.Bytes, s.Files, s.Bytes)
	case len(c.Repeats.Blocks) != len(BlockSizes()):
		return bad("repeats.blocks", "expected %d sizes, found %d", len(BlockSizes()), len(c.Repeats.Blocks))
	case c.Repeats.Files.Count != d.Files:
		return bad("repeats.files", "expected %d files, found %d", d.Files, c.Repeats.Files.Count)
	case c.Compression.Method != "zstd" || c.Compression.Level != Level:
		return bad("compression", "expected zstd at level %d, found %.20q at %d", Level, c.Compression.Method, c.Compression.Level)
	case len(c.Compression.Chunks) != len(ChunkSizes()):
		return bad("compression.chunks", "expected %d sizes, found %d", len(ChunkSizes()), len(c.Compression.Chunks))
	}
	if text := c.Repeats.Files.check(); text != "" {
		return bad("repeats.files", "%s", text)
	}
	for i, b := range c.Repeats.Blocks {
		field := fmt.Sprintf("repeats.blocks[%d]", i)
		// Each file has at most one block more than its bytes fill.
		least, most := (int64(s.Bytes)+int64(b.Size)-1)/int64(max(1, b.Size)), int64(s.Bytes)/int64(max(1, b.Size))+int64(s.Files)
		switch {
		case b.Size != BlockSizes()[i]:
			return bad(field, "expected blocks of %d bytes, found %d", BlockSizes()[i], b.Size)
		case int64(b.Count) < least || int64(b.Count) > most:
			return bad(field, "%d blocks of %d bytes in %d files of %d bytes", b.Count, b.Size, s.Files, s.Bytes)
		case b.Zero < 0 || b.Zero > b.Count:
			return bad(field, "%d of %d blocks are zero", b.Zero, b.Count)
		}
		if text := b.check(); text != "" {
			return bad(field, "%s", text)
		}
		if others := b.Count - b.Zero + min(1, b.Zero); b.Exact && b.Distinct.Distinct > others {
			return bad(field, "%d different blocks, where at most %d can be: blocks of zeros are alike", b.Distinct.Distinct, others)
		}
	}
	small, large := &c.Repeats.Blocks[0], &c.Repeats.Blocks[1]
	switch n := Int(large.Size / small.Size); {
	case small.Count < large.Count || large.Count > 0 && (small.Count-1)/n >= large.Count:
		return bad("repeats.blocks", "%d blocks of %d bytes in %d blocks of %d", small.Count, small.Size, large.Count, large.Size)
	case small.Zero < large.Zero:
		return bad("repeats.blocks", "%d blocks of %d zeros in %d of %d", small.Zero, small.Size, large.Zero, large.Size)
	case small.Exact && large.Exact && (small.Distinct.Distinct+n-1)/n > large.Distinct.Distinct:
		return bad("repeats.blocks", "%d different blocks of %d bytes in %d different ones of %d", small.Distinct.Distinct, small.Size, large.Distinct.Distinct,
			large.Size)
	}
	for i, k := range c.Compression.Chunks {
		field := fmt.Sprintf("compression.chunks[%d]", i)
		switch {
		case k.Size != ChunkSizes()[i]:
			return bad(field, "expected chunks of %d bytes, found %d", ChunkSizes()[i], k.Size)
		case k.Plain != s.Bytes || k.Compressed < 0 || k.Compressed > k.Plain || k.Compressed == 0 && k.Plain > 0:
			return bad(field, "%d bytes became %d, of %d that were read", k.Plain, k.Compressed, s.Bytes)
		case k.Compressed < leastCompressed(k.Size, k.Plain):
			return bad(field, "%d bytes became %d: zstd needs at least %d for them", k.Plain, k.Compressed, leastCompressed(k.Size, k.Plain))
		case k.Ratio != Ratio(k.Plain, k.Compressed):
			return bad(field, "the ratio of %d and %d is %v, found %v", k.Plain, k.Compressed, Ratio(k.Plain, k.Compressed), k.Ratio)
		}
	}
	return nil
}

// leastCompressed is the least that zstd can make of so many bytes in pieces of a size, 0 for whole files. A frame has a header of at least 6
// bytes, and blocks of at most 128 KiB with 4 bytes at least, of a header and one byte (RFC 8878, 3.1.1). What is stored as it is takes
// no less for each byte. Of whole files only the blocks count, since how many there are says nothing of their sizes.
func leastCompressed(size int, plain Int) Int {
	const block = 128 << 10
	per, of := int64(4), int64(block)
	if size > 0 {
		per, of = 6+4*int64((size+block-1)/block), int64(size)
	}
	whole, rest := int64(plain)/of, int64(plain)%of
	return Int(whole*per + (rest*per+of-1)/of)
}

func (d *Distinct) check() string {
	switch {
	case d.Distinct < 0 || d.Distinct > d.Count || d.Distinct == 0 && d.Count > 0 && d.Exact:
		return fmt.Sprintf("%d different ones of %d", d.Distinct, d.Count)
	case d.Share != Share(d.Count, d.Distinct):
		return fmt.Sprintf("the share of %d different ones of %d is %v, found %v", d.Distinct, d.Count, Share(d.Count, d.Distinct), d.Share)
	case d.Exact && d.Error != 0, !(d.Error >= 0 && d.Error <= 1):
		return fmt.Sprintf("an error of %v, exact is %v", d.Error, d.Exact)
	}
	return ""
}

// Share is the share of count things that are not needed where each of the distinct ones is kept once.
func Share(count, distinct Int) float64 {
	if count == 0 {
		return 0
	}
	return Round(float64(count-distinct)/float64(count), 6)
}

// Ratio is how many bytes one byte stands for.
func Ratio(plain, compressed Int) float64 {
	if compressed == 0 {
		return 1
	}
	return Round(float64(plain)/float64(compressed), 4)
}

// Round rounds to so many decimals.
func Round(x float64, decimals int) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(x, 'f', decimals, 64), 64)
	if err != nil || math.IsNaN(v) {
		return 0
	}
	return v
}

// Sentence says in one line what was found.
func (c *Certificate) Sentence() string {
	text := fmt.Sprintf("%s of %s read", text(int64(c.Scope.Bytes)), text(int64(c.Dataset.Bytes)))
	for _, b := range c.Repeats.Blocks {
		about := ""
		if !b.Exact {
			about = fmt.Sprintf(" ± %.2g", 100*b.Error)
		}
		text += fmt.Sprintf(", %.2f%s %% of blocks of %d bytes repeat", 100*b.Share, about, b.Size)
	}
	text += fmt.Sprintf(", %.2f %% of files do", 100*c.Repeats.Files.Share)
	names := []string{"128 KiB", "1 MiB", "files"}
	text += "; zstd makes"
	for i, k := range c.Compression.Chunks {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %.2f : 1 of %s", k.Ratio, names[i])
	}
	return text
}

// text writes a number of bytes for people.
func text(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%d bytes", n)
}
