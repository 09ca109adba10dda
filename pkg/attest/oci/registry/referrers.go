package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/internal/strictjson"
	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// Referrer is something that refers to an archive in a registry.
type Referrer struct {
	// Digest is that of its manifest.
	Digest       string `json:"digest"`
	ArtifactType string `json:"artifact_type"`
	// PredicateType is what its manifest announces, "" for nothing.
	PredicateType string `json:"predicate_type,omitempty"`
	// Other says why it is no bundle that can be taken along, "" for a bundle.
	Other string `json:"other,omitempty"`
	// Bundle are the bytes of a bundle; nobody checked a signature.
	Bundle []byte `json:"-"`
}

// Listed is an archive in a registry and what refers to it.
type Listed struct {
	// Reference is the archive by its digest.
	Reference string     `json:"reference"`
	Digest    string     `json:"digest"`
	Referrers []Referrer `json:"referrers"`
}

// List returns everything that refers to an archive in a registry, whoever put it there. Nothing is judged.
func List(ctx context.Context, ref string, o Options) (*Listed, error) {
	c, r, err := open(ctx, ref, o)
	if err != nil {
		return nil, err
	}
	digest, _, err := c.archive(r)
	if err != nil {
		return nil, err
	}
	out := &Listed{Reference: r.Pinned(digest), Digest: digest, Referrers: []Referrer{}}
	err = c.referrers(digest, func(one Referrer) error {
		out.Referrers = append(out.Referrers, one)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	return out, nil
}

// Resolve returns an archive in a registry by its digest, and that digest.
func Resolve(ctx context.Context, ref string, o Options) (pinned, digest string, err error) {
	c, r, err := open(ctx, ref, o)
	if err != nil {
		return "", "", err
	}
	if digest, _, err = c.archive(r); err != nil {
		return "", "", err
	}
	return r.Pinned(digest), digest, nil
}

// Bundle is an attestation bundle that is to be attached, with the predicate type that is announced beside it.
type Bundle struct {
	PredicateType string
	Content       []byte
}

// Attach adds bundles to an archive that stands in a registry already. The archive's digest stays what it is, and so do all tags. Nothing
// is judged; what a bundle says is for whoever calls to check.
func Attach(ctx context.Context, ref string, bundles []Bundle, o Options) (*Pushed, error) {
	c, r, err := open(ctx, ref, o)
	if err != nil {
		return nil, err
	}
	digest, raw, err := c.archive(r)
	if err != nil {
		return nil, err
	}
	if _, err := oci.ParseArchive(raw); err != nil {
		return nil, fmt.Errorf("attach to %s: manifest %s: %w", ref, digest, err)
	}
	out := &Pushed{Reference: r.Pinned(digest), Digest: digest, Tag: r.tag}
	blobs := []*blob{newBlob(string(types.OCIEmptyJSON), strings.NewReader(oci.EmptyConfig), oci.DigestsOf([]byte(oci.EmptyConfig)))}
	var manifests [][]byte
	for _, b := range bundles {
		g := oci.DigestsOf(b.Content)
		m, err := oci.ReferrerDocument(oci.DigestsOf(raw), g, b.PredicateType)
		if err != nil {
			return nil, fmt.Errorf("attach to %s: %w", ref, err)
		}
		manifests = append(manifests, m)
		blobs = append(blobs, newBlob(oci.BundleType, strings.NewReader(string(b.Content)), g))
		out.Bytes += g.Size
	}
	if err := c.upload(blobs); err != nil {
		return nil, fmt.Errorf("attach to %s: %w", ref, err)
	}
	if out.Bundles, err = c.refer(digest, manifests); err != nil {
		return nil, fmt.Errorf("attach to %s: %w", ref, err)
	}
	return out, nil
}

// open parses a reference that must name an archive, and returns who asks for it.
func open(ctx context.Context, ref string, o Options) (*client, Reference, error) {
	r, err := ParseReference(ref)
	if err != nil {
		return nil, r, err
	}
	if r.tag == "" && r.digest == "" {
		return nil, r, fmt.Errorf("%q: %w: expected a tag or a digest after the repository", ref, ErrReference)
	}
	c, err := newClient(ctx, r, o)
	return c, r, err
}

// list returns the digests of everything that the registry says refers to an archive, sorted, each once.
func (c *client) list(archive string) ([]string, error) {
	var digests []string
	err := c.retry(c.ctx, func() error {
		var err error
		digests, err = c.pages(archive)
		return err
	})
	if err != nil {
		return nil, c.explain("list what refers to "+archive, err)
	}
	slices.Sort(digests)
	return slices.Compact(digests), nil
}

// pages asks the Referrers API, page by page, or reads the list under the fallback tag where the registry does not have it.
func (c *client) pages(archive string) ([]string, error) {
	if c.listing == nil {
		auth, err := authn.Resolve(c.ctx, c.o.Keychain, c.repo)
		if err != nil {
			return nil, err
		}
		if c.listing, err = transport.NewWithContext(c.ctx, c.repo.Registry, auth, transport.NewUserAgent(c.guarded, c.o.UserAgent), []string{c.repo.Scope(transport.PullScope)}); err != nil {
			return nil, err
		}
	}
	at := &url.URL{Scheme: c.repo.Scheme(), Host: c.repo.RegistryStr(), Path: "/v2/" + c.repo.RepositoryStr() + "/referrers/" + archive}
	var digests []string
	for pages := 1; ; pages++ {
		if pages > limits.ReferrersListed {
			return nil, fmt.Errorf("%w: more than %d pages of referrers", ErrLimit, limits.ReferrersListed)
		}
		found, next, err := c.page(at)
		if err != nil {
			return nil, err
		}
		if found == nil {
			return c.fallback(archive)
		}
		digests = append(digests, found...)
		if len(digests) > limits.ReferrersListed {
			return nil, tooMany(len(digests))
		}
		if next == nil {
			return digests, nil
		}
		at = next
	}
}

// page reads one page of the Referrers API. found is nil where the registry does not have it.
func (c *client) page(at *url.URL) (found []string, next *url.URL, err error) {
	q, err := http.NewRequestWithContext(c.ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, nil, err
	}
	q.Header.Set("Accept", string(types.OCIImageIndex))
	answer, err := (&http.Client{Transport: c.listing}).Do(q)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	if err := transport.CheckError(answer, http.StatusOK, http.StatusNotFound, http.StatusBadRequest, http.StatusNotAcceptable); err != nil {
		return nil, nil, err
	}
	mediaType, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	if answer.StatusCode != http.StatusOK || mediaType != string(types.OCIImageIndex) {
		return nil, nil, nil
	}
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, nil, err
	}
	if found, err = digestsIn(raw); err != nil {
		return nil, nil, err
	}
	for _, link := range answer.Header.Values("Link") {
		target, rel, _ := strings.Cut(link, ";")
		if strings.Contains(rel, `rel="next"`) {
			next, err = at.Parse(strings.Trim(strings.TrimSpace(target), "<>"))
			if err == nil && next.Host != at.Host {
				err = fmt.Errorf("%w: the next page of referrers is at %s", ErrLimit, next.Host)
			}
			return found, next, err
		}
	}
	return found, nil, nil
}

// fallback reads the list under the fallback tag of the OCI distribution specification, "Referrers Tag Schema". No tag is an empty list.
func (c *client) fallback(archive string) ([]string, error) {
	digest, raw, err := c.tagged(strings.Replace(archive, ":", "-", 1))
	if err == nil && raw == nil {
		raw, err = c.manifest(digest)
	}
	if notFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return digestsIn(raw)
}

func notFound(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}

// digestsIn returns the digests in an index.
func digestsIn(raw []byte) ([]string, error) {
	var index struct {
		MediaType types.MediaType  `json:"mediaType"`
		Manifests *[]v1.Descriptor `json:"manifests"`
	}
	err := strictjson.Valid(raw, limits.ManifestBytes)
	if err == nil {
		err = json.Unmarshal(raw, &index)
	}
	if err != nil {
		return nil, fmt.Errorf("the list of referrers: %w: %w", ErrDamaged, err)
	}
	if index.MediaType != types.OCIImageIndex || index.Manifests == nil {
		return nil, fmt.Errorf("the list of referrers: %w: expected a list of manifests and %s, found %.100q", ErrDamaged, types.OCIImageIndex, index.MediaType)
	}
	digests := []string{}
	for _, d := range *index.Manifests {
		if _, err := v1.NewHash(d.Digest.String()); err != nil {
			return nil, fmt.Errorf("the list of referrers: %w: %w", ErrDamaged, err)
		}
		digests = append(digests, d.Digest.String())
	}
	return digests, nil
}

// referrerDocument is as much of a referrer's manifest as decides what it is. Whoever wrote it may have written more.
type referrerDocument struct {
	ArtifactType string            `json:"artifactType"`
	Config       v1.Descriptor     `json:"config"`
	Layers       []v1.Descriptor   `json:"layers"`
	Subject      *v1.Descriptor    `json:"subject"`
	Annotations  map[string]string `json:"annotations"`
}

// referrers hands over everything that refers to an archive, in the order of the digests, and holds one at a time. The list is not
// believed: each manifest in it decides by its own bytes whether it refers to the archive, and what it is.
func (c *client) referrers(archive string, yield func(Referrer) error) error {
	digests, err := c.list(archive)
	if err != nil {
		return err
	}
	bundles := 0
	again := false // the list was fetched once more
	for i := 0; i < len(digests); i++ {
		one := Referrer{}
		err := c.retry(c.ctx, func() error {
			one = Referrer{Digest: digests[i]}
			return c.referrer(&one, archive)
		})
		if err != nil {
			return c.explain("referrer "+digests[i], err)
		}
		if one.Other == absent && !again {
			// A list has no digest that it could be held to: one that names what is not there may have been damaged on its way. If it is
			// the same once more, it is the registry's.
			again = true
			once, err := c.list(archive)
			if err != nil {
				return err
			}
			if !slices.Equal(once, digests) {
				if i > 0 && !slices.Equal(once[:min(i, len(once))], digests[:i]) {
					return fmt.Errorf("%w: the list of referrers changed while it was read; repeat the command", ErrDamaged)
				}
				digests = once
				i--
				continue
			}
		}
		if one.Other == "" {
			if bundles++; bundles > limits.Referrers {
				return fmt.Errorf("%w: more than %d bundles refer to %s", ErrLimit, limits.Referrers, archive)
			}
		}
		if err := yield(one); err != nil {
			return err
		}
	}
	return nil
}

// absent says of a referrer that the registry lists it and does not have it: someone deleted it, and the list under the fallback tag stayed.
const absent = "the registry lists it and does not have it"

// referrer fetches one referrer of an archive.
func (c *client) referrer(r *Referrer, archive string) error {
	if !strings.HasPrefix(r.Digest, "sha256:") {
		r.Other = "its manifest has no sha256 digest"
		return nil
	}
	raw, err := c.manifest(r.Digest)
	if notFound(err) {
		r.Other = absent
		return nil
	}
	if err != nil {
		return err
	}
	var m referrerDocument
	if strictjson.Valid(raw, limits.ManifestBytes) != nil || json.Unmarshal(raw, &m) != nil {
		r.Other = "its manifest is no OCI manifest, or beyond the limits"
		return nil
	}
	r.ArtifactType, r.PredicateType = m.ArtifactType, strings.ToValidUTF8(m.Annotations[oci.AnnotationPredicate], "")
	if r.ArtifactType == "" {
		r.ArtifactType = string(m.Config.MediaType)
	}
	switch {
	case m.Subject == nil || m.Subject.Digest.String() != archive:
		r.Other = "it does not refer to this archive"
	case m.ArtifactType != oci.BundleType || len(m.Layers) != 1 || string(m.Layers[0].MediaType) != oci.BundleType:
		r.Other = "it is no Sigstore bundle v0.3"
	case m.Layers[0].Size < 0 || m.Layers[0].Size > limits.BundleBytes:
		r.Other = fmt.Sprintf("its bundle has %d bytes, at most %d are read", m.Layers[0].Size, limits.BundleBytes)
	case m.Layers[0].Digest.Algorithm != "sha256":
		r.Other = "its bundle has no sha256 digest"
	}
	if r.Other != "" {
		return nil
	}
	body, err := c.blob(c.ctx, m.Layers[0].Digest.Hex, m.Layers[0].Size)
	if err != nil {
		return err
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		return damaged(err)
	}
	if g := oci.DigestsOf(content); g.Hex() != m.Layers[0].Digest.Hex || g.Size != m.Layers[0].Size {
		return fmt.Errorf("its bundle: %w: expected %s, found sha256:%s", ErrDamaged, m.Layers[0].Digest, g.Hex())
	}
	r.Bundle = content
	return nil
}
