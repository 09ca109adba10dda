package registry

import (
	"context"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"

	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// Pushed says what stands in the registry now.
type Pushed struct {
	// Reference is the archive by its digest, Digest that digest, Tag the tag that points at it now, "" for none.
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
	Tag       string `json:"tag,omitempty"`
	// Bundles are the digests of the manifests of its attestations.
	Bundles []string `json:"bundles"`
	// Bytes is the size of all blobs, whether they were sent now or stood there before.
	Bytes int64 `json:"bytes"`
}

// blob is a blob of an archive as it is sent: it can be read again when a request must be repeated.
type blob struct {
	content   io.ReaderAt
	digest    v1.Hash
	size      int64
	mediaType types.MediaType
}

// Digest, DiffID, Compressed, Uncompressed, Size and MediaType make it a v1.Layer.
func (b *blob) Digest() (v1.Hash, error) { return b.digest, nil }

// DiffID is the digest: nothing is compressed.
func (b *blob) DiffID() (v1.Hash, error) { return b.digest, nil }

// Compressed reads the blob as it is.
func (b *blob) Compressed() (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(b.content, 0, b.size)), nil
}

// Uncompressed reads the blob as it is.
func (b *blob) Uncompressed() (io.ReadCloser, error) { return b.Compressed() }

// Size is the number of bytes.
func (b *blob) Size() (int64, error) { return b.size, nil }

// MediaType is what the manifest says of the blob.
func (b *blob) MediaType() (types.MediaType, error) { return b.mediaType, nil }

// document is a manifest that is put as it is.
type document []byte

// RawManifest returns the bytes.
func (d document) RawManifest() ([]byte, error) { return d, nil }

// MediaType is that of every manifest of an archive.
func (d document) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// Push sends the archive in folder dir, which must be free of faults, to where ref says: blobs that the registry lacks, then the manifest
// by its digest, then the bundles, and the tag last, so that nobody who follows it finds half an archive. It can be repeated at any
// point, and sends only what is missing.
func Push(ctx context.Context, dir, ref string, o Options) (*Pushed, error) {
	r, err := ParseReference(ref)
	if err != nil {
		return nil, err
	}
	l, err := oci.Read(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	archive, bundles, err := l.Documents()
	if err != nil {
		return nil, fmt.Errorf("push %s: nothing is sent of a damaged archive: %w", dir, err)
	}
	digest := "sha256:" + l.Manifest.Hex()
	if r.digest != "" && r.digest != digest {
		return nil, fmt.Errorf("push %s to %s: the archive's digest is %s; push to a tag, or to that digest", dir, ref, digest)
	}
	c, err := newClient(ctx, r, o)
	if err != nil {
		return nil, err
	}
	out := &Pushed{Reference: r.Pinned(digest), Digest: digest, Tag: r.tag, Bundles: []string{}}
	blobs := blobsOf(l)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(c.o.Jobs)
	for _, b := range blobs {
		out.Bytes += b.size
		g.Go(func() error {
			if gctx.Err() != nil {
				return context.Cause(gctx)
			}
			return c.explain(fmt.Sprintf("push %s: blob %s, %d bytes", ref, b.digest, b.size), remote.WriteLayer(c.repo, b, append(c.with, remote.WithContext(gctx))...))
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	c.o.Progress(fmt.Sprintf("pushed   %d blobs, %d bytes", len(blobs), out.Bytes))
	if err := c.put(digest, archive); err != nil {
		return nil, err
	}
	for i, raw := range bundles {
		d := "sha256:" + oci.DigestsOf(raw).Hex()
		if err := c.put(d, raw); err != nil {
			return nil, fmt.Errorf("%s: %w", l.Bundles[i].PredicateType, err)
		}
		out.Bundles = append(out.Bundles, d)
	}
	c.o.Progress(fmt.Sprintf("pushed   %s with %d attestations", digest, len(bundles)))
	if r.tag == "" {
		return out, nil
	}
	if err := c.explain("push "+ref+": move the tag", remote.Put(c.repo.Tag(r.tag), document(archive), c.with...)); err != nil {
		return nil, err
	}
	c.o.Progress("tagged   " + r.repo.Name() + ":" + r.tag)
	return out, nil
}

// put puts a manifest under its digest. A manifest with a subject is also entered into the list of that subject's referrers where the
// registry does not do so itself.
func (c *client) put(digest string, raw []byte) error {
	return c.explain("push manifest "+digest, remote.Put(c.repo.Digest(digest), document(raw), c.with...))
}

// blobsOf are the blobs of an archive, each once.
func blobsOf(l *oci.Layout) []*blob {
	var out []*blob
	seen := map[string]bool{}
	add := func(mediaType string, b *oci.Blob) {
		if seen[b.Hex()] {
			return
		}
		seen[b.Hex()] = true
		out = append(out, &blob{content: b, digest: v1.Hash{Algorithm: "sha256", Hex: b.Hex()}, size: b.Size, mediaType: types.MediaType(mediaType)})
	}
	for _, layer := range l.Layers {
		add(layer.MediaType, layer.Blob)
	}
	for _, b := range l.Bundles {
		add(oci.BundleType, b.Blob)
	}
	add(string(types.OCIEmptyJSON), l.Empty())
	return out
}

var (
	_ v1.Layer        = (*blob)(nil)
	_ remote.Taggable = document(nil)
	_ name.Reference  = name.Digest{}
)
