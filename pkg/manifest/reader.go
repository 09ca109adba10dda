package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
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
// yield did before that may rest on entries that turn out to be damaged. Memory: one frame.
func (m *Manifest) Entries(ctx context.Context, yield func(Entry) error) error {
	r, done, err := m.newReader()
	if err != nil {
		return err
	}
	defer done()
	r.yield = yield
	return r.all(ctx)
}

// newReader returns a reader of the entries; done must be called in the end.
func (m *Manifest) newReader() (r *entriesReader, done func(), err error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxFrameBytes),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, nil, fmt.Errorf("manifest: zstd: %w", err)
	}
	return &entriesReader{m: m, zstd: d}, d.Close, nil
}

// all reads every frame, and compares their sums with the header.
func (r *entriesReader) all(ctx context.Context) error {
	h := r.m.header
	for i := range h.Frames {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("read manifest: %w", context.Cause(ctx))
		}
		if err := r.frame(i); err != nil {
			return err
		}
	}
	if r.bytes != h.Bytes {
		return fmt.Errorf("%w: the header says %d bytes, the entries sum to %d", ErrCount, h.Bytes, r.bytes)
	}
	if root := FormatDigest(r.tree.Root()); root != h.Root {
		return fmt.Errorf("%w: the header says %s, the entries give %s", ErrRoot, h.Root, root)
	}
	return nil
}

// maxWindow is the largest zstd window accepted; a frame of the largest size needs no more.
const maxWindow = 32 << 20

type entriesReader struct {
	m             *Manifest
	zstd          *zstd.Decoder
	yield         func(Entry) error
	leaf          func(t *Tree, line []byte, hash [32]byte) // if not nil, called before a leaf is added to the tree
	buf           []byte
	packed, plain []byte
	tree          Tree
	last          string
	bytes         int64
}

// frame reads, checks and yields one frame.
func (r *entriesReader) frame(i int) error {
	f := &r.m.header.Frames[i]
	fault := func(class Class, format string, args ...any) error {
		return fmt.Errorf("%w: %s: frame %d at byte %d: %s", class, r.m.name, i, f.Offset, fmt.Sprintf(format, args...))
	}
	if err := r.load(f); err != nil {
		if c := Class(""); errors.As(err, &c) {
			return fmt.Errorf("%s: frame %d at byte %d: %w", r.m.name, i, f.Offset, err)
		}
		return fmt.Errorf("read %s: frame %d at byte %d: %w", r.m.name, i, f.Offset, err)
	}
	rest := r.plain
	for n := int64(0); ; n++ {
		if len(rest) == 0 {
			if n != f.Count || r.last != f.Last {
				return fault(ErrCount, "the header says %d entries up to %q, found %d up to %q", f.Count, f.Last, n, r.last)
			}
			return nil
		}
		line, more, ok := bytes.Cut(rest, []byte{'\n'})
		if !ok {
			return fault(ErrSyntax, "the last line has no line end")
		}
		rest = more
		e, err := ParseEntry(line)
		if err != nil {
			return fmt.Errorf("%s: frame %d, line %d: %w", r.m.name, i, n+1, err)
		}
		if n == 0 && e.Path != f.First {
			return fault(ErrCount, "the header says it begins with %q, found %q", f.First, e.Path)
		}
		if e.Path <= r.last {
			return fault(ErrOrder, "line %d: %q stands after %q", n+1, e.Path, r.last)
		}
		if r.m.exclude.Match(e.Path) {
			return fault(ErrExclude, "line %d: %q is an entry, and the header excludes it", n+1, e.Path)
		}
		if r.bytes += e.Size; r.bytes < 0 {
			return fault(ErrLimit, "line %d: the sizes sum to more than 2^63-1 bytes", n+1)
		}
		r.last = e.Path
		r.buf = append(append(r.buf[:0], leafPrefix), line...)
		hash := blake3.Sum256(r.buf)
		if r.leaf != nil {
			r.leaf(&r.tree, line, hash)
		}
		r.tree.AddHash(hash)
		if err := r.yield(e); err != nil {
			return err
		}
	}
}

// load reads a frame's bytes, compares them with the header, and decompresses them under the sizes that it declares.
func (r *entriesReader) load(f *Frame) error {
	if int64(cap(r.packed)) < f.Size {
		r.packed = make([]byte, f.Size)
	}
	r.packed = r.packed[:f.Size]
	if n, err := r.m.entries.ReadAt(r.packed, f.Offset); n < len(r.packed) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	if d := FormatDigest(blake3.Sum256(r.packed)); d != f.Digest {
		return fmt.Errorf("%w: digest of its bytes: expected %s, found %s", ErrFrame, f.Digest, d)
	}
	var zh zstd.Header
	if err := zh.Decode(r.packed); err != nil {
		return fmt.Errorf("%w: zstd: %w", ErrFrame, err)
	}
	if zh.Skippable || !zh.HasFCS || zh.FrameContentSize != uint64(f.PlainSize) {
		return fmt.Errorf("%w: zstd frame declares %d bytes, expected %d", ErrFrame, zh.FrameContentSize, f.PlainSize)
	}
	plain, err := r.zstd.DecodeAll(r.packed, r.plain[:0])
	if err != nil {
		return fmt.Errorf("%w: zstd: %w", ErrFrame, err)
	}
	r.plain = plain
	if int64(len(plain)) != f.PlainSize {
		return fmt.Errorf("%w: expected %d bytes after decompression, found %d", ErrFrame, f.PlainSize, len(plain))
	}
	if d := FormatDigest(blake3.Sum256(plain)); d != f.PlainDigest {
		return fmt.Errorf("%w: digest of its lines: expected %s, found %s", ErrFrame, f.PlainDigest, d)
	}
	return nil
}
