package attest

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/manifest"
)

// EntriesPartMediaType is the media type of the second and all further layers of a file of entries that is too large for one: bytes that go on
// where the layer before ends.
const EntriesPartMediaType = "application/vnd.benchpin.manifest.entries.v1.part"

// entriesTitle is the title of a part of the entries, counted from 1. The first has the title that the only one has; sorted by title they are in
// order, so that concatenating what `oras pull` makes of them gives the file.
func entriesTitle(part int) string {
	if part == 1 {
		return TitleEntries
	}
	return fmt.Sprintf("%s.%03d", TitleEntries, part)
}

// addEntries packs the file of entries: in one layer, or in several of `part` bytes each, the last one smaller.
func addEntries(ctx context.Context, w *oci.Writer, path string, part int64) error {
	if part <= 0 {
		part = limits.EntriesPartBytes
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	parts := max(1, (info.Size()+part-1)/part)
	if parts > limits.EntriesParts {
		return fault.New(fault.Limit, "", fmt.Sprintf("%s: %d parts of %d bytes, at most %d are written", path, parts, part, limits.EntriesParts))
	}
	for i := range int(parts) {
		source := oci.FromFile(TitleEntries, manifest.EntriesMediaType, path)
		if parts > 1 {
			mediaType := manifest.EntriesMediaType
			if i > 0 {
				mediaType = EntriesPartMediaType
			}
			source = oci.FromPartOfFile(entriesTitle(i+1), mediaType, path, int64(i)*part, part)
		}
		if _, err := w.Add(ctx, source); err != nil {
			return err
		}
	}
	return nil
}

// entriesParts is how many layers the entries of an archive claim to have.
func entriesParts(l *oci.Layout) int {
	n := 0
	for at := 2; at < len(l.Layers) && n < limits.EntriesParts && l.Layers[at].Title == entriesTitle(n+1); at++ {
		n++
	}
	return n
}

// Entries are the verified bytes of an archive's file of entries, whether it stands in one layer or in several. The error is a *fault.Fault:
// a part is missing, damaged, of another media type, or of another size than its place demands.
func Entries(l *oci.Layout) (content io.ReaderAt, size int64, err error) {
	parts := entriesParts(l)
	if parts == 0 {
		return nil, 0, fault.New(fault.FileMissing, "", "expected this file as layer 2 of the archive").In(TitleEntries)
	}
	var all concatenated
	for i, layer := range l.Layers[2 : 2+parts] {
		want := manifest.EntriesMediaType
		if i > 0 {
			want = EntriesPartMediaType
		}
		switch {
		case layer.MediaType != want:
			return nil, 0, fault.New(fault.MediaType, "mediaType", fmt.Sprintf("expected %q, found %q", want, shorten(layer.MediaType))).In(layer.Part)
		case layer.Blob == nil:
			return nil, 0, unchecked(layer.Part, "its content is missing or damaged")
		case i > 0 && (layer.Blob.Size == 0 || layer.Blob.Size > all.each || int64(i)*all.each != all.size):
			return nil, 0, fault.New(fault.SizeMismatch, "", fmt.Sprintf("expected 1 to %d bytes behind %d parts of as many, found %d", all.each, i, layer.Blob.Size)).In(layer.Part)
		case i == 0:
			all.each = layer.Blob.Size
		}
		all.blobs = append(all.blobs, layer.Blob)
		all.size += layer.Blob.Size
	}
	return &all, all.size, nil
}

// concatenated reads blobs one behind the other: all have the same size, but for the last.
type concatenated struct {
	blobs      []*oci.Blob
	each, size int64
}

// ReadAt reads across the borders of parts.
func (c *concatenated) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		if off < 0 || off >= c.size {
			return n, io.EOF
		}
		at := int64(0)
		if c.each > 0 {
			at = off / c.each
		}
		b := c.blobs[at]
		inside := off - at*c.each
		got, err := b.ReadAt(p[n:min(int64(len(p)), int64(n)+b.Size-inside)], inside)
		n, off = n+got, off+int64(got)
		if got == 0 {
			if err == nil {
				err = io.ErrNoProgress
			}
			return n, err
		}
	}
	return n, nil
}
