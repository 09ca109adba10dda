package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// Pulled says what was fetched.
type Pulled struct {
	// Reference is the archive by its digest, whatever the tag means by now.
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
	Bytes     int64  `json:"bytes"`
	// Bundles counts the attestations that came with it; Others are referrers of other kinds, which stay in the registry.
	Bundles int     `json:"bundles"`
	Others  []Other `json:"others"`
}

// Other is a referrer of an archive that is no bundle that could be taken along.
type Other struct {
	Digest       string `json:"digest"`
	ArtifactType string `json:"artifact_type"`
	// Why says why it was left.
	Why string `json:"why"`
}

// Referrer is a bundle that refers to an archive in a registry.
type Referrer struct {
	// Digest is that of its manifest.
	Digest        string
	PredicateType string
	Bundle        []byte
}

// Pull fetches the archive that ref names, with every bundle that refers to it, into folder dir, which must not exist or be empty. The
// folder appears whole or not at all. Bundles are taken over as they are and not judged; verifying the folder judges them.
func Pull(ctx context.Context, ref, dir string, o Options) (*Pulled, error) {
	r, err := ParseReference(ref)
	if err != nil {
		return nil, err
	}
	if r.tag == "" && r.digest == "" {
		return nil, fmt.Errorf("%q: %w: expected a tag or a digest after the repository", ref, ErrReference)
	}
	c, err := newClient(ctx, r, o)
	if err != nil {
		return nil, err
	}
	digest, raw, err := c.archive(r)
	if err != nil {
		return nil, err
	}
	parts, err := oci.ParseArchive(raw)
	if err != nil {
		return nil, fmt.Errorf("pull %s: manifest %s: %w", ref, digest, err)
	}
	w, err := oci.Create(dir)
	if err != nil {
		return nil, err
	}
	out := &Pulled{Reference: r.Pinned(digest), Digest: digest, Others: []Other{}}
	if err := c.fill(ctx, w, parts, digest, out); err != nil {
		return nil, errors.Join(fmt.Errorf("pull %s: %w", ref, err), w.Abort())
	}
	bundles, others, err := c.referrers(digest)
	if err == nil {
		out.Others = append(out.Others, others...)
		for _, b := range bundles {
			if err = w.Attach(ctx, b.PredicateType, b.Bundle); err != nil {
				break
			}
			out.Bundles++
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pull %s: %w", ref, err), w.Abort())
	}
	if err := w.Commit(); err != nil {
		return nil, err
	}
	c.o.Progress(fmt.Sprintf("pulled   %s, %d bytes, %d attestations", out.Reference, out.Bytes, out.Bundles))
	return out, nil
}

// archive resolves a reference, once, and returns the digest and the bytes of the manifest.
func (c *client) archive(r Reference) (digest string, raw []byte, err error) {
	var got *remote.Descriptor
	if r.digest != "" {
		got, err = remote.Get(c.repo.Digest(r.digest), c.with...)
	} else {
		got, err = remote.Get(c.repo.Tag(r.tag), c.with...)
	}
	if err != nil {
		return "", nil, c.explain("pull "+r.String(), err)
	}
	if len(got.Manifest) > limits.ManifestBytes {
		return "", nil, fmt.Errorf("pull %s: %w: a manifest of %d bytes, at most %d are read", r, ErrDamaged, len(got.Manifest), limits.ManifestBytes)
	}
	digest = "sha256:" + oci.DigestsOf(got.Manifest).Hex()
	if want := got.Digest.String(); digest != want || (r.digest != "" && digest != r.digest) {
		return "", nil, fmt.Errorf("pull %s: %w: expected the manifest %s, found %s", r, ErrDamaged, want, digest)
	}
	return digest, got.Manifest, nil
}

// fill packs the layers again, which gives the same manifest.
func (c *client) fill(ctx context.Context, w *oci.Writer, parts []oci.Part, digest string, out *Pulled) error {
	for _, p := range parts {
		g, err := w.Add(ctx, oci.Source{Title: p.Title, MediaType: p.MediaType, Open: func() (io.ReadCloser, error) { return c.blob(ctx, p.Hex, p.Size) }})
		if err != nil {
			return err
		}
		if g.Hex() != p.Hex || g.Size != p.Size {
			return fmt.Errorf("%s: %w: expected %d bytes with sha256 %s, found %d with %s", p.Title, ErrDamaged, p.Size, p.Hex, g.Size, g.Hex())
		}
		out.Bytes += g.Size
	}
	g, err := w.Seal(ctx)
	if err != nil {
		return err
	}
	if found := "sha256:" + g.Hex(); found != digest {
		return fmt.Errorf("%w: the layers make the archive %s, expected %s", ErrDamaged, found, digest)
	}
	return nil
}

// body is a blob that never gives more than its size and one byte.
type body struct {
	io.Reader
	io.Closer
}

// blob opens a blob of the repository.
func (c *client) blob(ctx context.Context, hex string, size int64) (io.ReadCloser, error) {
	layer, err := remote.Layer(c.repo.Digest("sha256:"+hex), append(c.with, remote.WithContext(ctx))...)
	if err != nil {
		return nil, c.explain("blob sha256:"+hex, err)
	}
	r, err := layer.Compressed()
	if err != nil {
		return nil, c.explain("blob sha256:"+hex, err)
	}
	return body{io.LimitReader(r, size+1), r}, nil
}

// referrerDocument is as much of a referrer's manifest as decides what it is. Whoever wrote it may have written more.
type referrerDocument struct {
	ArtifactType string          `json:"artifactType"`
	Layers       []v1.Descriptor `json:"layers"`
	Subject      *v1.Descriptor  `json:"subject"`
	Annotations  map[string]string
}

// referrers fetches what refers to an archive. The list is not believed: each manifest in it decides by its own bytes whether it refers
// to the archive, and what it is. The bundles are in the order of their digests.
func (c *client) referrers(digest string) ([]Referrer, []Other, error) {
	index, err := remote.Referrers(c.repo.Digest(digest), c.with...)
	if err != nil {
		return nil, nil, c.explain("list what refers to "+digest, err)
	}
	list, err := index.IndexManifest()
	if err != nil {
		return nil, nil, fmt.Errorf("list what refers to %s: %w", digest, err)
	}
	if n := len(list.Manifests); n > limits.ReferrersListed {
		return nil, nil, tooMany(n)
	}
	var digests []string
	for _, d := range list.Manifests {
		digests = append(digests, d.Digest.String())
	}
	slices.Sort(digests)
	var bundles []Referrer
	var others []Other
	for _, d := range slices.Compact(digests) {
		b, other, err := c.referrer(d, digest)
		switch {
		case err != nil:
			return nil, nil, err
		case other != nil:
			others = append(others, *other)
		case len(bundles) == limits.Referrers:
			return nil, nil, fmt.Errorf("%w: more than %d bundles refer to %s", ErrDamaged, limits.Referrers, digest)
		default:
			bundles = append(bundles, *b)
		}
	}
	return bundles, others, nil
}

// referrer fetches one referrer of the archive with the given digest.
func (c *client) referrer(digest, archive string) (*Referrer, *Other, error) {
	got, err := remote.Get(c.repo.Digest(digest), c.with...)
	if err != nil {
		return nil, nil, c.explain("referrer "+digest, err)
	}
	if len(got.Manifest) > limits.ManifestBytes || "sha256:"+oci.DigestsOf(got.Manifest).Hex() != digest {
		return nil, nil, fmt.Errorf("referrer %s: %w", digest, ErrDamaged)
	}
	var m referrerDocument
	if err := json.Unmarshal(got.Manifest, &m); err != nil {
		return nil, &Other{Digest: digest, Why: "its manifest is not JSON"}, nil
	}
	leave := func(why string) (*Referrer, *Other, error) {
		return nil, &Other{Digest: digest, ArtifactType: m.ArtifactType, Why: why}, nil
	}
	switch {
	case m.Subject == nil || m.Subject.Digest.String() != archive:
		return leave("it does not refer to this archive")
	case m.ArtifactType != oci.BundleType || len(m.Layers) != 1 || string(m.Layers[0].MediaType) != oci.BundleType:
		return leave("it is no Sigstore bundle v0.3")
	case m.Layers[0].Size < 0 || m.Layers[0].Size > limits.BundleBytes:
		return leave(fmt.Sprintf("its bundle has %d bytes, at most %d are read", m.Layers[0].Size, limits.BundleBytes))
	case m.Layers[0].Digest.Algorithm != "sha256":
		return leave("its bundle has no sha256 digest")
	}
	r, err := c.blob(c.ctx, m.Layers[0].Digest.Hex, m.Layers[0].Size)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, nil, c.explain("bundle of referrer "+digest, err)
	}
	if g := oci.DigestsOf(raw); g.Hex() != m.Layers[0].Digest.Hex || g.Size != m.Layers[0].Size {
		return nil, nil, fmt.Errorf("bundle of referrer %s: %w: expected %s, found sha256:%s", digest, ErrDamaged, m.Layers[0].Digest, g.Hex())
	}
	predicate := m.Annotations["dev.sigstore.bundle.predicateType"]
	return &Referrer{Digest: digest, PredicateType: strings.ToValidUTF8(predicate, ""), Bundle: raw}, nil, nil
}
