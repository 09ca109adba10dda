package manifest

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	"github.com/zeebo/blake3"
)

// Manifest is an open manifest. Its header was checked; its entries are checked whenever they are read. It is safe for
// concurrent use.
type Manifest struct {
	header  *Header
	exclude *Exclude
	raw     []byte
	entries io.ReaderAt
	size    int64
	name    string
	close   func() error
}

// OpenReaders opens a manifest from the bytes of its header and from its entries, which are size bytes long. The caller
// keeps entries open for as long as the manifest is used.
func OpenReaders(header []byte, entries io.ReaderAt, size int64) (*Manifest, error) {
	h, err := ParseHeader(header)
	if err != nil {
		return nil, err
	}
	var want int64
	if n := len(h.Frames); n > 0 {
		want = h.Frames[n-1].Offset + h.Frames[n-1].Size
	}
	if size != want {
		return nil, fmt.Errorf("%w: the file of entries has %d bytes, the header says %d: they do not belong together, or one is damaged",
			ErrFrame, size, want)
	}
	exclude, err := ParseExclude(h.Exclude)
	if err != nil {
		return nil, err
	}
	return &Manifest{header: h, exclude: exclude, raw: bytes.Clone(header), entries: entries, size: size, name: "entries"}, nil
}

// Header returns the header, which must not be changed.
func (m *Manifest) Header() *Header { return m.header }

// Exclude returns what the header excludes; nil where it excludes nothing.
func (m *Manifest) Exclude() *Exclude { return m.exclude }

// HeaderBytes returns the bytes of manifest.json, which must not be changed.
func (m *Manifest) HeaderBytes() []byte { return m.raw }

// Digest returns the BLAKE3 digest of the header's bytes. It stands for the manifest as a document; what stands for the
// data set is the root.
func (m *Manifest) Digest() digest.Digest { return FormatDigest(blake3.Sum256(m.raw)) }

// Root returns the root that the header claims. Entries, read to the end, has checked it.
func (m *Manifest) Root() [32]byte {
	d, _ := ParseDigest(string(m.header.Root)) // the header was checked
	return d
}

// Close closes what Open opened.
func (m *Manifest) Close() error {
	if m.close == nil {
		return nil
	}
	return m.close()
}

// Entries calls yield for every entry in order and stops at its first error, which it returns as it is. It returns nil only
// after all entries were read and found to be what the header says: bytes of every frame, order, counts, sizes and root. What
// yield did before that may rest on entries that turn out to be damaged. Frames are read by a few goroutines ahead of yield, which is
// called by this one. Memory: a frame for each of them and one more.
func (m *Manifest) Entries(ctx context.Context, yield func(Entry) error) error {
	r := entriesReader{m: m, yield: yield}
	return r.all(ctx)
}

// entriesReader holds the frames together that a manifest has, in their order.
type entriesReader struct {
	m     *Manifest
	yield func(Entry) error
	leaf  func(t *Tree, line []byte, hash [32]byte) // if not nil, called before a leaf is added to the tree
	tree  Tree
	last  string
	bytes int64
}

// all reads every frame, and compares their sums with the header.
func (r *entriesReader) all(ctx context.Context) error {
	h := r.m.header
	if err := r.frames(ctx); err != nil {
		return err
	}
	if r.bytes != h.Bytes {
		return fmt.Errorf("%w: the header says %d bytes, the entries sum to %d", ErrCount, h.Bytes, r.bytes)
	}
	if root := FormatDigest(r.tree.Root()); root != h.Root {
		return fmt.Errorf("%w: the header says %s, the entries give %s", ErrRoot, h.Root, root)
	}
	return nil
}

// frame reads, checks and yields one frame.
func (r *entriesReader) frame(i int) error {
	f, err := r.m.newFrameReader()
	if err != nil {
		return err
	}
	defer f.close()
	var p parsed
	f.parse(i, &p)
	return r.take(i, &p)
}

// take checks what a frame is beside those before it, and yields its entries.
func (r *entriesReader) take(i int, p *parsed) error {
	for n := range p.entries {
		e := &p.entries[n]
		if n == 0 && e.Path <= r.last {
			return r.m.fault(i, ErrOrder, "line %d: %q stands after %q", n+1, e.Path, r.last)
		}
		if r.bytes += e.Size; r.bytes < 0 {
			return r.m.fault(i, ErrLimit, "line %d: the sizes sum to more than 2^63-1 bytes", n+1)
		}
		if r.leaf != nil {
			r.leaf(&r.tree, p.line(n), p.hashes[n])
		}
		if r.leaf != nil || !p.subtree {
			r.tree.AddHash(p.hashes[n])
		}
		if err := r.yield(*e); err != nil {
			return err
		}
	}
	if p.fault != nil {
		return p.fault
	}
	if r.leaf == nil && p.subtree {
		r.tree.addSubtree(frameLevel, p.root)
	}
	r.last = p.entries[len(p.entries)-1].Path // a frame has entries: its header was checked
	return nil
}
