package audit

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/manifest"
)

// Challenge names chunks of a data set.
type Challenge struct {
	Schema string `json:"schema"`
	// Root is the root of the data set, Bytes the size of all its files, and Groups the number of chunks in them.
	Root   string `json:"root"`
	Bytes  int64  `json:"bytes,string"`
	Groups int64  `json:"groups,string"`
	// Equal is true when all chunks of the data set have the same size, so that each is as likely as any other.
	Equal bool `json:"equal"`
	// From is the public value, Count the number of chunks that were asked for.
	From  string `json:"from"`
	Count int    `json:"count"`
	// Chunks are in the order of the manifest. They are fewer than Count where the data set has fewer.
	Chunks []Chunk `json:"chunks"`
}

// mostDraws bounds the positions that are drawn for each chunk that is asked for: where chunks differ much in size, the same large ones
// come again and again.
const mostDraws = 64

// NewChallenge picks count different chunks of a data set, by a public value. Positions among all bytes of the data set, files in the
// order of the manifest, are drawn until so many different chunks hold one of them (at most 64 x count draws are made); a data set of
// no more chunks is asked for as a whole. So a chunk is picked with the share that it has of the bytes, and whoever damages a share of
// the bytes is found with it. The same root, value and count give the same chunks everywhere, and a larger count gives those of a smaller one and
// more.
func NewChallenge(ctx context.Context, m *manifest.Manifest, from string, count int) (*Challenge, error) {
	if err := checkFrom(from); err != nil {
		return nil, err
	}
	if count < 1 || count > MaxChunks {
		return nil, fmt.Errorf("%d chunks: expected 1 to %d", count, MaxChunks)
	}
	h := m.Header()
	if h.Bytes == 0 {
		return nil, errors.New("the data set has no bytes, so that there is nothing to ask for")
	}
	c := &Challenge{Schema: ChallengeSchema, Root: h.Root.String(), Bytes: h.Bytes, From: from, Count: count}
	if err := c.census(ctx, m); err != nil {
		return nil, err
	}
	var err error
	if c.Groups <= int64(count) {
		err = c.all(ctx, m)
	} else {
		err = c.pick(ctx, m)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// census counts the chunks.
func (c *Challenge) census(ctx context.Context, m *manifest.Manifest) error {
	var size int64
	c.Equal = true
	return m.Entries(ctx, func(e manifest.Entry) error {
		if e.Size == 0 {
			return nil
		}
		n := chunks(e.Size)
		last := e.Size - (n-1)*ChunkSize
		if size == 0 {
			size = min(e.Size, ChunkSize)
		}
		c.Equal = c.Equal && last == size && (n == 1 || size == ChunkSize)
		c.Groups += n
		return nil
	})
}

// all takes every chunk.
func (c *Challenge) all(ctx context.Context, m *manifest.Manifest) error {
	return m.Entries(ctx, func(e manifest.Entry) error {
		for k := range chunks(e.Size) {
			c.Chunks = append(c.Chunks, Chunk{e.Path, e.Size, k})
		}
		return nil
	})
}

// place is a chunk and where it begins among all bytes, which orders chunks and tells them apart.
type place struct {
	at int64
	Chunk
}

// pick draws until there are enough different chunks. The manifest is read once for each round of draws, and rarely more than once.
func (c *Challenge) pick(ctx context.Context, m *manifest.Manifest) error {
	d := NewDraws(challengeContext, m.Root(), c.From, c.Bytes)
	picked := map[int64]place{}
	for left := mostDraws * c.Count; left > 0 && len(picked) < c.Count; {
		missing := c.Count - len(picked)
		round := min(left, missing+missing/8+16)
		left -= round
		positions := make([]int64, round)
		for i := range positions {
			positions[i] = d.Next()
		}
		found, err := c.places(ctx, m, positions)
		if err != nil {
			return err
		}
		for _, p := range positions {
			if len(picked) < c.Count {
				picked[found[p].at] = found[p]
			}
		}
	}
	chosen := make([]place, 0, len(picked))
	for _, p := range picked {
		chosen = append(chosen, p)
	}
	sort.Slice(chosen, func(i, j int) bool { return chosen[i].at < chosen[j].at })
	for _, p := range chosen {
		c.Chunks = append(c.Chunks, p.Chunk)
	}
	return nil
}

// places finds the chunks that hold some positions.
func (c *Challenge) places(ctx context.Context, m *manifest.Manifest, positions []int64) (map[int64]place, error) {
	sorted := slices.Sorted(slices.Values(positions))
	found := make(map[int64]place, len(positions))
	var before int64
	err := m.Entries(ctx, func(e manifest.Entry) error {
		for len(sorted) > 0 && sorted[0] < before+e.Size {
			k := (sorted[0] - before) / ChunkSize
			found[sorted[0]] = place{before + k*ChunkSize, Chunk{e.Path, e.Size, k}}
			sorted = sorted[1:]
		}
		before += e.Size
		return nil
	})
	return found, err
}

// Encode writes the challenge's one form: a line of JSON and a line end.
func (c *Challenge) Encode() ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	b, err := encode(c)
	if err == nil && len(b) > MaxChallenge {
		err = fmt.Errorf("a challenge of %d bytes: expected at most %d; ask for fewer chunks", len(b), MaxChallenge)
	}
	return b, err
}

// Digest is the BLAKE3 digest of the challenge's bytes, which answers hold; "" for one that cannot be written.
func (c *Challenge) Digest() string {
	b, err := c.Encode()
	if err != nil {
		return ""
	}
	return manifest.FormatDigest(digestOf(b)).String()
}

// ParseChallenge reads a challenge, and accepts nothing but the form that Encode writes. It does not say whether the chunks are those that
// the value picks: Same does, with the manifest.
func ParseChallenge(b []byte) (*Challenge, error) {
	if len(b) > MaxChallenge {
		return nil, fmt.Errorf("%w: challenge of more than %d bytes", ErrDocument, MaxChallenge)
	}
	c := new(Challenge)
	if err := decode(b, c); err != nil {
		return nil, fmt.Errorf("challenge: %w", err)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%w: challenge: %w", ErrDocument, err)
	}
	return c, nil
}

func (c *Challenge) check() error {
	switch {
	case c.Schema != ChallengeSchema:
		return fmt.Errorf("schema is %.100q, expected %q", c.Schema, ChallengeSchema)
	case c.Bytes < 1 || c.Groups < 1 || c.Groups > c.Bytes:
		return fmt.Errorf("%d bytes in %d chunks", c.Bytes, c.Groups)
	case c.Count < 1 || c.Count > MaxChunks || len(c.Chunks) < 1 || len(c.Chunks) > c.Count || int64(len(c.Chunks)) > c.Groups:
		return fmt.Errorf("%d chunks of %d that were asked for, of %d: expected 1 to %d", len(c.Chunks), c.Count, c.Groups, MaxChunks)
	}
	if _, err := manifest.ParseDigest(c.Root); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	if err := checkFrom(c.From); err != nil {
		return err
	}
	for i, k := range c.Chunks {
		if k.Size < 1 || k.Size > manifest.MaxNumber || k.Group < 0 || k.Group >= chunks(k.Size) {
			return fmt.Errorf("chunks[%d]: group %d of a file of %d bytes", i, k.Group, k.Size)
		}
		if i > 0 {
			if b := c.Chunks[i-1]; b.Path > k.Path || b.Path == k.Path && (b.Group >= k.Group || b.Size != k.Size) {
				return fmt.Errorf("chunks[%d]: they are not in order, or stand twice", i)
			}
		}
	}
	return nil
}

// Same reports whether the chunks are those that the challenge's value picks in a data set.
func (c *Challenge) Same(ctx context.Context, m *manifest.Manifest) error {
	if root := m.Header().Root.String(); root != c.Root {
		return fmt.Errorf("%w: the challenge is for the data set %s, and the manifest has %s", ErrOther, c.Root, root)
	}
	again, err := NewChallenge(ctx, m, c.From, c.Count)
	if err != nil {
		return err
	}
	a, err := again.Encode()
	if err != nil {
		return err
	}
	b, err := c.Encode()
	if err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("%w: the value %q picks other chunks of this data set than the challenge has", ErrAudit, c.From)
	}
	return nil
}

// ChunkBytes is the size of all chunks together.
func (c *Challenge) ChunkBytes() int64 {
	var n int64
	for _, k := range c.Chunks {
		n += k.Length()
	}
	return n
}

// encode writes one line of JSON without anything that could be written in another way.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// decode reads what encode writes, and nothing else.
func decode(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", ErrDocument, err)
	}
	again, err := encode(v)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDocument, err)
	}
	if !bytes.Equal(again, b) {
		at := 0
		for at < len(again) && at < len(b) && again[at] == b[at] {
			at++
		}
		return fmt.Errorf("%w: it is not in the one form of what it says: byte %d: expected %.40q, found %.40q", ErrDocument, at, again[at:], b[at:])
	}
	return nil
}

// digestOf is the digest of a document.
func digestOf(b []byte) [32]byte { return blake3.Sum256(b) }

// hash is 32 bytes, written as 64 lower-case hexadecimal digits.
type hash [32]byte

// MarshalText writes the digits.
func (h hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText reads the digits.
func (h *hash) UnmarshalText(b []byte) error {
	if len(b) != 2*len(h) {
		return fmt.Errorf("expected %d hexadecimal digits, found %d", 2*len(h), len(b))
	}
	_, err := hex.Decode(h[:], b)
	return err
}
