package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

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
	for _, b := range blobs {
		out.Bytes += b.size
	}
	if err := c.upload(blobs); err != nil {
		return nil, fmt.Errorf("push %s: %w", ref, err)
	}
	c.o.Progress(fmt.Sprintf("pushed   %d blobs, %d bytes", len(blobs), out.Bytes))
	if err := c.put(digest, archive); err != nil {
		return nil, err
	}
	if out.Bundles, err = c.refer(digest, bundles); err != nil {
		return nil, fmt.Errorf("push %s: %w", ref, err)
	}
	c.o.Progress(fmt.Sprintf("pushed   %s with %d attestations", digest, len(bundles)))
	if r.tag == "" {
		return out, nil
	}
	err = c.retry(ctx, func() error { return c.pusher.Put(ctx, c.repo.Tag(r.tag), document(archive)) })
	if err := c.explain("push "+ref+": move the tag", err); err != nil {
		return nil, err
	}
	c.o.Progress("tagged   " + r.repo.Name() + ":" + r.tag)
	return out, nil
}

// upload sends the blobs that the registry lacks, several at once.
func (c *client) upload(blobs []*blob) error {
	g, ctx := errgroup.WithContext(c.ctx)
	g.SetLimit(c.o.Jobs)
	for _, b := range blobs {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			err := c.retry(ctx, func() error { return c.pusher.Upload(ctx, c.repo, b) })
			return c.explain(fmt.Sprintf("blob %s, %d bytes", b.digest, b.size), err)
		})
	}
	return g.Wait()
}

// put puts a manifest under its digest. A manifest with a subject is also entered into the list of that subject's referrers where the
// registry does not do so itself.
func (c *client) put(digest string, raw []byte) error {
	return c.explain("push manifest "+digest, c.retry(c.ctx, func() error { return c.pusher.Put(c.ctx, c.repo.Digest(digest), document(raw)) }))
}

// errMissing: the registry does not list a referrer that it was given.
var errMissing = errors.New("the registry does not list it among what refers to the archive")

// refer puts the manifests of bundles and sees to it that the registry lists them. A registry without the Referrers API has the list under
// a tag that every writer replaces as a whole, so that two of them at once lose entries: what is missing is put again.
func (c *client) refer(archive string, bundles [][]byte) ([]string, error) {
	digests := make([]string, len(bundles))
	for i, raw := range bundles {
		digests[i] = "sha256:" + oci.DigestsOf(raw).Hex()
		if err := c.put(digests[i], raw); err != nil {
			return nil, err
		}
	}
	if len(bundles) == 0 {
		return digests, nil
	}
	for try := 1; ; try++ {
		listed, err := c.list(archive)
		if err != nil {
			return nil, err
		}
		var missing error
		for i, digest := range digests {
			if !slices.Contains(listed, digest) {
				missing = fmt.Errorf("referrer %s: %w", digest, errMissing)
				if try == attempts {
					return nil, missing
				}
				if err := c.put(digest, bundles[i]); err != nil {
					return nil, err
				}
			}
		}
		if missing == nil {
			return digests, nil
		}
		if err := c.pause(c.ctx, try); err != nil {
			return nil, err
		}
	}
}

// blobsOf are the blobs of an archive, each once.
func blobsOf(l *oci.Layout) []*blob {
	var out []*blob
	seen := map[string]bool{}
	add := func(mediaType string, b *oci.Blob) {
		if !seen[b.Hex()] {
			seen[b.Hex()] = true
			out = append(out, newBlob(mediaType, b, b.Digests))
		}
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

func newBlob(mediaType string, content io.ReaderAt, g oci.Digests) *blob {
	return &blob{content: content, digest: v1.Hash{Algorithm: "sha256", Hex: g.Hex()}, size: g.Size, mediaType: types.MediaType(mediaType)}
}

var (
	_ v1.Layer        = (*blob)(nil)
	_ remote.Taggable = document(nil)
)
