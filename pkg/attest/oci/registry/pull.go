package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// Pulled says what was fetched.
type Pulled struct {
	// Reference is the archive by its digest, whatever the tag means by now.
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
	Bytes     int64  `json:"bytes"`
	// Bundles counts the attestations that came with it; Others are referrers of other kinds, which stay in the registry.
	Bundles int        `json:"bundles"`
	Others  []Referrer `json:"others"`
}

// Pull fetches the archive that ref names, with every bundle that refers to it, into folder dir, which must not exist or be empty. The
// folder appears whole or not at all. When the connection fails for good, the blobs that came whole are kept beside it, and the next Pull of
// the same archive to the same place goes on from there. Bundles are taken over as they are and not judged; verifying the folder judges them.
func Pull(ctx context.Context, ref, dir string, o Options) (*Pulled, error) {
	c, r, err := open(ctx, ref, o)
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
	w, err := oci.Resume(dir, strings.TrimPrefix(digest, "sha256:"))
	if err != nil {
		return nil, err
	}
	out := &Pulled{Reference: r.Pinned(digest), Digest: digest, Others: []Referrer{}}
	if err := c.fill(ctx, w, parts, digest, out); err != nil {
		return nil, fmt.Errorf("pull %s: %w", ref, c.leave(w, out, err))
	}
	err = c.referrers(digest, func(one Referrer) error {
		if one.Other != "" {
			out.Others = append(out.Others, one)
			return nil
		}
		out.Bundles++
		return w.Attach(ctx, one.PredicateType, one.Bundle)
	})
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", ref, c.leave(w, out, err))
	}
	if err := w.Commit(); err != nil {
		return nil, err
	}
	c.o.Progress(fmt.Sprintf("pulled   %s, %d bytes, %d attestations", out.Reference, out.Bytes, out.Bundles))
	return out, nil
}

// leave ends a pull that failed. What came whole is kept where another attempt may be luckier.
func (c *client) leave(w *oci.Writer, out *Pulled, err error) error {
	if c.o.Once || out.Bytes == 0 || !(passing(err) || c.ctx.Err() != nil) || errors.Is(err, ErrDamaged) {
		return errors.Join(err, w.Abort())
	}
	kept, problem := w.Keep()
	if problem != nil {
		return errors.Join(err, problem)
	}
	return fmt.Errorf("%w; %d bytes came whole and are kept in %s: repeat the command to go on from there, or remove that folder", err, out.Bytes, kept)
}

// archive resolves a reference, once, and returns the digest and the bytes of the manifest.
func (c *client) archive(r Reference) (digest string, raw []byte, err error) {
	err = c.retry(c.ctx, func() error {
		if digest = r.digest; digest == "" {
			var err error
			if digest, raw, err = c.tagged(r.tag); err != nil || raw != nil {
				return err
			}
		}
		raw, err = c.manifest(digest)
		return err
	})
	if err != nil {
		return "", nil, c.explain("look up "+r.String(), err)
	}
	return digest, raw, nil
}

// tagged asks what a tag means. Registries say the digest beside the manifest, so that what comes can be held to it; where one does not, raw
// is the manifest as it came, and digest is its own.
func (c *client) tagged(tag string) (digest string, raw []byte, err error) {
	d, err := c.puller.Head(c.ctx, c.repo.Tag(tag))
	if err == nil && d.Digest.Algorithm == "sha256" {
		return d.Digest.String(), nil, nil
	}
	var answer *transport.Error
	if errors.As(err, &answer) || (err != nil && !strings.Contains(err.Error(), "did not include")) {
		return "", nil, err
	}
	got, err := c.puller.Get(c.ctx, c.repo.Tag(tag))
	if err != nil {
		return "", nil, err
	}
	return "sha256:" + oci.DigestsOf(got.Manifest).Hex(), got.Manifest, nil
}

// manifest fetches a manifest by its SHA-256.
func (c *client) manifest(digest string) ([]byte, error) {
	got, err := c.puller.Get(c.ctx, c.repo.Digest(digest))
	if err != nil {
		return nil, damaged(err)
	}
	if found := "sha256:" + oci.DigestsOf(got.Manifest).Hex(); found != digest {
		return nil, fmt.Errorf("%w: expected the manifest %s, found %s", ErrDamaged, digest, found)
	}
	return got.Manifest, nil
}

// fill packs the layers again, which gives the same manifest.
func (c *client) fill(ctx context.Context, w *oci.Writer, parts []oci.Part, digest string, out *Pulled) error {
	for _, p := range parts {
		err := c.retry(ctx, func() error {
			return damaged(w.AddPart(ctx, p, func() (io.ReadCloser, error) { return c.blob(ctx, p.Hex, p.Size) }))
		})
		if err != nil {
			return c.explain(p.Title, err)
		}
		out.Bytes += p.Size
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
	layer, err := c.puller.Layer(ctx, c.repo.Digest("sha256:"+hex))
	if err != nil {
		return nil, c.explain("blob sha256:"+hex, err)
	}
	r, err := layer.Compressed()
	if err != nil {
		return nil, c.explain("blob sha256:"+hex, err)
	}
	return body{io.LimitReader(r, size+1), r}, nil
}

// damaged gives an error about content that was checked on its way the class that it has here: go-containerregistry only has texts for it.
func damaged(err error) error {
	if err == nil || errors.Is(err, ErrDamaged) {
		return err
	}
	for _, text := range []string{"error verifying sha256", "error verifying size", "does not match expected size", "does not match requested digest"} {
		if strings.Contains(err.Error(), text) {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	if errors.Is(err, oci.ErrPart) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}
