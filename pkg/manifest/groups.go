package manifest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/manifest/blake"
	"github.com/benchpin/benchpin/pkg/store"
)

const (
	// GroupsMediaType is the media type of the file of group digests (manifest.groups.bin).
	GroupsMediaType = "application/vnd.benchpin.manifest.groups.v1"
	// GroupSize is the number of bytes of a group: a subtree of a file's BLAKE3 tree.
	GroupSize = blake.GroupSize
)

// ErrGroups is the class of faults in group digests: they are damaged, or do not combine to the digest of their entry.
const ErrGroups Class = "groups"

// The header of a file of group digests: see docs/manifest.md. All numbers are little-endian.
const (
	groupsMagic   = "benchpin/groups\n"
	groupsVersion = 1
	groupsLog     = 20  // the binary logarithm of GroupSize
	groupsHeader  = 136 // bytes
	groupBytes    = 32
)

// GroupsPath returns where the group digests stand for a header at headerPath: NAME.groups.bin beside NAME.json.
func GroupsPath(headerPath string) string {
	return strings.TrimSuffix(headerPath, ".json") + ".groups.bin"
}

// GroupCount returns how many group digests are kept for a file of size bytes: none for one of at most GroupSize, whose digest stands
// for its only group.
func GroupCount(size int64) int64 {
	if size <= GroupSize {
		return 0
	}
	return blake.Groups(size)
}

// groupsInfo is what the header of a file of group digests says.
type groupsInfo struct {
	files, values int64
	root, body    [32]byte
}

func (g groupsInfo) encode() []byte {
	b := make([]byte, 0, groupsHeader)
	b = append(b, groupsMagic...)
	b = binary.LittleEndian.AppendUint32(b, groupsVersion)
	b = binary.LittleEndian.AppendUint32(b, groupsLog)
	b = binary.LittleEndian.AppendUint64(b, uint64(g.files))
	b = binary.LittleEndian.AppendUint64(b, uint64(g.values))
	b = append(b, g.root[:]...)
	b = append(b, g.body[:]...)
	sum := blake3.Sum256(b)
	return append(b, sum[:]...)
}

func parseGroupsInfo(b []byte) (g groupsInfo, err error) {
	if len(b) < len(groupsMagic)+8 || string(b[:len(groupsMagic)]) != groupsMagic {
		return g, fmt.Errorf("%w: expected group digests, which begin with %q, found %.20q", ErrMediaType, groupsMagic, b)
	}
	at := b[len(groupsMagic):]
	if v := binary.LittleEndian.Uint32(at); v != groupsVersion {
		return g, fmt.Errorf("%w: group digests: expected version %d, found %d", ErrMediaType, groupsVersion, v)
	}
	if len(b) < groupsHeader {
		return g, fmt.Errorf("%w: group digests: %d bytes, a header has %d", ErrCount, len(b), groupsHeader)
	}
	if sum := blake3.Sum256(b[:groupsHeader-32]); !bytes.Equal(sum[:], b[groupsHeader-32:groupsHeader]) {
		return g, fmt.Errorf("%w: group digests: expected %x, found %x: the header was damaged or edited", ErrHeader, sum, b[groupsHeader-32:groupsHeader])
	}
	if v := binary.LittleEndian.Uint32(at[4:]); v != groupsLog {
		return g, fmt.Errorf("%w: group digests: expected groups of 2^%d bytes, found 2^%d", ErrField, groupsLog, v)
	}
	files, values := binary.LittleEndian.Uint64(at[8:]), binary.LittleEndian.Uint64(at[16:])
	if values > MaxNumber/groupBytes || files > values/2 {
		return g, fmt.Errorf("%w: group digests: %d of %d files", ErrField, values, files)
	}
	g.files, g.values = int64(files), int64(values)
	copy(g.root[:], at[24:])
	copy(g.body[:], at[56:])
	return g, nil
}

// Groups are the group digests of a manifest: for every file larger than GroupSize, in the order of the entries, the chaining values of
// its groups. They need no signature, since those of a file combine to the digest of its entry and no others do; everything that is
// returned with an entry was held to that. It is safe for concurrent use.
type Groups struct {
	groupsInfo
	r     io.ReaderAt
	name  string
	close func() error
}

// OpenGroups opens the group digests beside the header of a manifest. The error matches fs.ErrNotExist where there are none.
func OpenGroups(headerPath string, m *Manifest) (*Groups, error) {
	path := GroupsPath(headerPath)
	f, err := store.OpenRegular(path)
	if err != nil {
		return nil, fmt.Errorf("group digests of manifest %s: %w", headerPath, err)
	}
	st, err := f.Stat()
	var g *Groups
	if err == nil {
		g, err = OpenGroupsReader(f, st.Size(), m)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	g.name, g.close = path, f.Close
	return g, nil
}

// OpenGroupsIfAny is OpenGroups, and returns nil where there are none.
func OpenGroupsIfAny(headerPath string, m *Manifest) (*Groups, error) {
	g, err := OpenGroups(headerPath, m)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return g, err
}

// OpenGroupsReader opens group digests of size bytes, which must be those of a manifest with the root of m. The caller keeps r open for
// as long as they are used.
func OpenGroupsReader(r io.ReaderAt, size int64, m *Manifest) (*Groups, error) {
	b := make([]byte, min(size, groupsHeader))
	if n, err := r.ReadAt(b, 0); n < len(b) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("group digests: %w", err)
	}
	info, err := parseGroupsInfo(b)
	if err != nil {
		return nil, err
	}
	if want := groupsHeader + groupBytes*info.values; size != want {
		return nil, fmt.Errorf("%w: group digests: the header says %d bytes, found %d", ErrCount, want, size)
	}
	if root := m.Root(); info.root != root {
		return nil, fmt.Errorf("%w: group digests of a manifest with root %s, expected %s; \"benchpin data pin\" writes those of this data set anew once they are removed",
			ErrRoot, FormatDigest(info.root), FormatDigest(root))
	}
	return &Groups{groupsInfo: info, r: r, name: "group digests"}, nil
}

// Close closes what OpenGroups opened.
func (g *Groups) Close() error {
	if g.close == nil {
		return nil
	}
	return g.close()
}

// Count returns the number of files that have group digests, and of these digests.
func (g *Groups) Count() (files, digests int64) { return g.files, g.values }

// read reads n values from number first on, and holds them to the entry that they belong to.
func (g *Groups) read(e Entry, first int64, buf []byte, values [][32]byte) ([]byte, [][32]byte, error) {
	n := GroupCount(e.Size)
	if first+n > g.values {
		return buf, nil, fmt.Errorf("%w: %s: %s has %d groups from number %d on, and there are %d in all", ErrCount, g.name, e.Path, n, first, g.values)
	}
	if int64(cap(buf)) < n*groupBytes {
		buf = make([]byte, n*groupBytes)
	}
	buf = buf[:n*groupBytes]
	if m, err := g.r.ReadAt(buf, groupsHeader+first*groupBytes); m < len(buf) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return buf, nil, fmt.Errorf("%s: groups of %s: %w", g.name, e.Path, err)
	}
	values = values[:0]
	for i := range n {
		values = append(values, [32]byte(buf[i*groupBytes:]))
	}
	if d := blake.Digest(values); d != e.Digest {
		return buf, nil, fmt.Errorf("%w: %s: those of %s combine to %s, its entry has %s", ErrGroups, g.name, e.Path, FormatDigest(d), FormatDigest(e.Digest))
	}
	return buf, values, nil
}

// Each calls yield for every entry of m, in order, with its number and its group digests, none for a file of at most GroupSize. They
// are valid until yield returns. It stops at yield's first error and returns it as it is, and returns nil only after manifest and group
// digests were read to their ends and found sound: see [Manifest.Entries].
func (g *Groups) Each(ctx context.Context, m *Manifest, yield func(index int64, e Entry, groups [][32]byte) error) error {
	var index, first, files int64
	var buf []byte
	var values [][32]byte
	body := blake3.New()
	err := m.Entries(ctx, func(e Entry) (err error) {
		values = values[:0]
		if n := GroupCount(e.Size); n > 0 {
			if buf, values, err = g.read(e, first, buf, values); err != nil {
				return err
			}
			_, _ = body.Write(buf)
			first += n
			files++
		}
		index++
		return yield(index-1, e, values)
	})
	if err != nil {
		return err
	}
	if first != g.values || files != g.files {
		return fmt.Errorf("%w: %s: %d of %d files, the manifest has %d of %d", ErrCount, g.name, g.values, g.files, first, files)
	}
	if [32]byte(body.Sum(nil)) != g.body {
		return fmt.Errorf("%w: %s: the digest in the header is not that of what follows", ErrGroups, g.name)
	}
	return nil
}

// Check reads the group digests and the manifest to their ends.
func (g *Groups) Check(ctx context.Context, m *Manifest) error {
	return g.Each(ctx, m, func(int64, Entry, [][32]byte) error { return nil })
}

// Of returns the group digests of one entry, by its number, nil for a file of at most GroupSize. It reads the manifest as far as that
// entry; whoever needs those of many files takes Each.
func (g *Groups) Of(ctx context.Context, m *Manifest, index int64) ([][32]byte, error) {
	var at, first int64
	var found *Entry
	err := m.Entries(ctx, func(e Entry) error {
		if at == index {
			found = &e
			return errFound
		}
		first += GroupCount(e.Size)
		at++
		return nil
	})
	switch {
	case err == nil:
		return nil, fmt.Errorf("%w: number %d", ErrNoEntry, index)
	case found == nil:
		return nil, err
	case GroupCount(found.Size) == 0:
		return nil, nil
	}
	_, values, err := g.read(*found, first, nil, nil)
	return values, err
}

// errFound ends a reading that found what it looked for.
var errFound = errors.New("found")
