package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/benchpin/benchpin/pkg/manifest/blake"
	"github.com/benchpin/benchpin/pkg/store"
)

// ProveOptions are the choices of ProveFile.
type ProveOptions struct {
	// Source is where the data set is. With nil nothing is read but the manifest, which is enough for a proof about a whole file: that
	// it belongs to the data set, whatever bytes anybody has. With a source the bytes that the proof is about are held to the manifest.
	Source Opener
	// From and To are the range, the bytes from From up to but not including To; both 0 for the whole file. A range needs a source.
	From, To int64
	// Groups are the group digests of the manifest; nil where there are none, and a large file is then read as a whole for a range of it.
	Groups *Groups
	// Workers is how many goroutines hash where a whole file is read; below 1: twice the number of cores.
	Workers int
}

// ProveFile makes the proof for a file, or a range of it, of the data set of a manifest. With group digests only the groups of 1 MiB
// that a range touches are read. The error matches ErrNoEntry where the manifest has no such file, and matches
// *MismatchError if the bytes are not those of the manifest.
func (m *Manifest) ProveFile(ctx context.Context, path string, o ProveOptions) (*FileProof, error) {
	membership, err := m.ProvePath(ctx, path)
	if err != nil {
		return nil, err
	}
	p := &FileProof{Root: m.Root(), Proof: membership}
	e, err := p.Verify(p.Root)
	if err != nil {
		return nil, fmt.Errorf("prove %s: %w", path, err)
	}
	if o.From == 0 && (o.To == 0 || o.To == e.Size) {
		if o.Source != nil {
			_, err = o.whole(ctx, e)
		}
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	br := blake.Range{Size: e.Size, From: o.From, To: o.To}
	if err := br.Check(); err != nil {
		return nil, fmt.Errorf("prove %s: %w", path, err)
	}
	if o.Source == nil {
		return nil, fmt.Errorf("prove %s: a range is proven from the file's bytes: say where the data set is", path)
	}
	if p.Range, err = o.cut(ctx, m, e, p.Index, br); err != nil {
		return nil, err
	}
	if _, err := p.Check(p.Root); err != nil { // what was made from bytes that were checked holds, or something is wrong here
		return nil, fmt.Errorf("prove %s: %w", path, err)
	}
	return p, nil
}

// whole holds a whole file to its entry.
func (o ProveOptions) whole(ctx context.Context, e Entry) (FileHash, error) {
	h, err := HashFile(ctx, o.Source, e.Path, HashOptions{Workers: o.Workers})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return h, &MismatchError{Kind: Missing, Path: e.Path, Expected: expected(e)}
	case err != nil:
		return h, err
	case h.Digest != e.Digest || h.Info.Size != e.Size:
		return h, &MismatchError{Kind: Changed, Path: e.Path, Expected: expected(e), Found: &Side{h.Info.Size, FormatDigest(h.Digest)}}
	}
	return h, nil
}

// cut makes the proof for a range.
func (o ProveOptions) cut(ctx context.Context, m *Manifest, e Entry, index int64, br blake.Range) (*RangeProof, error) {
	var groups [][32]byte
	var err error
	if GroupCount(e.Size) > 0 {
		if o.Groups != nil {
			groups, err = o.Groups.Of(ctx, m, index)
		} else {
			var h FileHash
			h, err = o.whole(ctx, e)
			groups = h.Groups
		}
		if err != nil {
			return nil, err
		}
	}
	f, err := o.Source.Open(e.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &MismatchError{Kind: Missing, Path: e.Path, Expected: expected(e)}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Info()
	if err != nil {
		return nil, err
	}
	if info.Size != e.Size {
		return nil, &MismatchError{Kind: Changed, Path: e.Path, Expected: expected(e), Found: &Side{Size: info.Size}}
	}
	v, err := NewVerifiedReader(f, e, groups)
	if err != nil {
		return nil, err
	}
	c := &cutter{ctx: ctx, v: v, e: e, groups: groups, kept: map[int64][]byte{}}
	return c.cut(br)
}

// cutter computes the values of subtrees from group digests, and from the bytes of the groups at the ends of a range.
type cutter struct {
	ctx    context.Context
	v      *VerifiedReader
	e      Entry
	groups [][32]byte
	kept   map[int64][]byte // of the groups at the ends
}

func (c *cutter) cut(br blake.Range) (*RangeProof, error) {
	lo, hi := br.From/GroupSize, (br.To-1)/GroupSize
	for i := lo; i <= hi; i++ { // every group that the range touches is read and held to its digest
		if err := c.ctx.Err(); err != nil {
			return nil, fmt.Errorf("prove %s: %w", c.e.Path, context.Cause(c.ctx))
		}
		b, err := c.v.group(i)
		if err != nil {
			return nil, err
		}
		if i == lo || i == hi {
			c.kept[i] = append([]byte(nil), b...)
		}
	}
	r := &RangeProof{From: br.From, To: br.To}
	first, last := r.edges(br)
	_, err := br.Digest(func(part blake.Part, lo, hi int64) ([32]byte, error) {
		if part == blake.Edge {
			b, err := c.chunks(lo, hi)
			switch {
			case err != nil:
				return [32]byte{}, err
			case lo == first:
				r.First = b
			case lo == last:
				r.Last = b
			}
			return [32]byte{}, nil
		}
		v, err := c.value(lo, hi)
		r.Values = append(r.Values, v)
		return v, err
	})
	return r, err
}

// value returns the chaining value of the subtree over the chunks [lo, hi).
func (c *cutter) value(lo, hi int64) ([32]byte, error) {
	const group = GroupSize / blake.ChunkSize
	if lo%group == 0 && (hi%group == 0 || hi == blake.Chunks(c.e.Size)) && c.groups != nil {
		return blake.Fold(c.groups[lo/group : (hi+group-1)/group]), nil
	}
	b, err := c.chunks(lo, hi)
	if err != nil {
		return [32]byte{}, err
	}
	return blake.Subtree(b, lo), nil
}

// chunks returns the bytes of chunks of one of the groups at the ends.
func (c *cutter) chunks(lo, hi int64) ([]byte, error) {
	start, end := lo*blake.ChunkSize, min(hi*blake.ChunkSize, c.e.Size)
	i := start / GroupSize
	b := c.kept[i]
	if int64(len(b)) < end-i*GroupSize {
		return nil, fmt.Errorf("prove %s: chunks %d to %d are needed, which the range does not touch", c.e.Path, lo, hi)
	}
	return b[start-i*GroupSize : end-i*GroupSize], nil
}

// VerifiedReader reads from a file and returns only bytes that belong to its entry: the group of 1 MiB in which they lie is read as a
// whole and held to its digest, before anything of it is given out. So whoever reads parts of a large file holds exactly these to the
// manifest. It keeps the last group, and is not safe for concurrent use.
type VerifiedReader struct {
	f      io.ReaderAt
	e      Entry
	groups [][32]byte
	buf    []byte
	have   int64 // number of the group in buf; -1 for none
	hashed int64
}

// NewVerifiedReader returns a reader of f, the file of an entry. groups are its group digests ([Groups.Of], FileHash.Groups), which must
// combine to the digest of the entry; nil for a file of at most GroupSize.
func NewVerifiedReader(f io.ReaderAt, e Entry, groups [][32]byte) (*VerifiedReader, error) {
	if n := GroupCount(e.Size); int64(len(groups)) != n {
		return nil, fmt.Errorf("%w: %s has %d groups, found %d digests of them", ErrGroups, e.Path, n, len(groups))
	}
	if len(groups) > 0 {
		if d := blake.Digest(groups); d != e.Digest {
			return nil, fmt.Errorf("%w: those of %s combine to %s, its entry has %s", ErrGroups, e.Path, FormatDigest(d), FormatDigest(e.Digest))
		}
	}
	return &VerifiedReader{f: f, e: e, groups: groups, have: -1}, nil
}

// Hashed returns how many bytes were read from the file and hashed so far.
func (v *VerifiedReader) Hashed() int64 { return v.hashed }

// group returns the bytes of a group, verified, valid until the next call.
func (v *VerifiedReader) group(i int64) ([]byte, error) {
	start := i * GroupSize
	end := min(start+GroupSize, v.e.Size)
	if v.have == i {
		return v.buf[:end-start], nil
	}
	v.have = -1
	if v.buf == nil {
		v.buf = store.AlignedBuffer(int(min(GroupSize, roundUp(max(1, v.e.Size)))))
	}
	n, err := v.f.ReadAt(v.buf[:roundUp(end-start)], start)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: %w", v.e.Path, err)
	}
	if int64(n) < end-start {
		return nil, &MismatchError{Kind: Changed, Path: v.e.Path, Expected: expected(v.e), Found: &Side{Size: start + int64(n)}}
	}
	b := v.buf[:end-start]
	v.hashed += end - start
	if v.groups == nil {
		if d := blake.Sum(b); d != v.e.Digest {
			return nil, &MismatchError{Kind: Changed, Path: v.e.Path, Expected: expected(v.e), Found: &Side{end, FormatDigest(d)}}
		}
	} else if d := blake.Group(b, i); d != v.groups[i] {
		m := &MismatchError{Kind: Changed, Path: v.e.Path, Expected: expected(v.e), Found: &Side{Size: v.e.Size}}
		return nil, fmt.Errorf("%w of which bytes %d to %d are others", m, start, end)
	}
	v.have = i
	return b, nil
}

// ReadAt is that of io.ReaderAt, except that calls must not overlap.
func (v *VerifiedReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read %s: offset %d is negative", v.e.Path, off)
	}
	n := 0
	for n < len(p) {
		at := off + int64(n)
		if at >= v.e.Size {
			return n, io.EOF
		}
		b, err := v.group(at / GroupSize)
		if err != nil {
			return n, err
		}
		n += copy(p[n:], b[at%GroupSize:])
	}
	return n, nil
}
