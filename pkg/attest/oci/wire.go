package oci

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/internal/strictjson"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// The documents of a layout as they are written, field by field in the order of the OCI image specification. They are types of
// this package, with only the fields that an archive uses, so that a field nobody expects cannot ride along unseen.
type descriptor struct {
	MediaType    string            `json:"mediaType"`
	Digest       sha256Digest      `json:"digest"`
	Size         int64             `json:"size"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	ArtifactType string            `json:"artifactType,omitempty"`
}

type manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	ArtifactType  string            `json:"artifactType"`
	Config        descriptor        `json:"config"`
	Layers        []descriptor      `json:"layers"`
	Subject       *descriptor       `json:"subject,omitempty"`
	Annotations   map[string]string `json:"annotations"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

// sha256Digest is "sha256:" and 64 lower-case hex digits; nothing else is read.
type sha256Digest string

// UnmarshalJSON reads a digest and refuses other algorithms and other spellings.
func (d *sha256Digest) UnmarshalJSON(data []byte) error {
	var h v1.Hash
	if err := h.UnmarshalJSON(data); err != nil {
		return fault.New(fault.DigestMismatch, "", "expected sha256: and 64 lower-case hex digits, found "+string(data))
	}
	if h.Algorithm != "sha256" {
		return fault.New(fault.DigestMismatch, "", "expected a sha256 digest, found "+h.Algorithm)
	}
	*d = sha256Digest(h.String())
	return nil
}

func (d sha256Digest) hex() string { return strings.TrimPrefix(string(d), "sha256:") }

func (d descriptor) file() string { return blobsFolder + "/" + d.Digest.hex() }

// describe is the descriptor of content as it stands inside a manifest.
func describe(mediaType string, g Digests) descriptor {
	return descriptor{MediaType: mediaType, Digest: sha256Digest("sha256:" + g.Hex()), Size: g.Size}
}

func emptyConfig() descriptor { return describe(emptyType, digestsOf([]byte(emptyBytes))) }

func archiveManifest(layers []descriptor) manifest {
	return manifest{SchemaVersion: 2, MediaType: manifestType, ArtifactType: ArtifactType, Config: emptyConfig(), Layers: layers,
		Annotations: map[string]string{annotationCreated: created}}
}

func referrerManifest(subject Digests, bundle Digests, predicateType string) manifest {
	s := describe(manifestType, subject)
	return manifest{SchemaVersion: 2, MediaType: manifestType, ArtifactType: BundleType, Config: emptyConfig(),
		Layers: []descriptor{describe(BundleType, bundle)}, Subject: &s,
		Annotations: map[string]string{annotationCreated: created, annotationContent: contentDSSE, annotationPredicate: predicateType}}
}

// archiveEntry and referrerEntry are the descriptors of the two kinds of manifest in index.json.
func archiveEntry(g Digests) descriptor {
	d := describe(manifestType, g)
	d.ArtifactType = ArtifactType
	d.Annotations = map[string]string{annotationRef: refName}
	return d
}

func referrerEntry(g Digests, predicateType string) descriptor {
	d := describe(manifestType, g)
	d.ArtifactType = BundleType
	d.Annotations = map[string]string{annotationCreated: created, annotationContent: contentDSSE, annotationPredicate: predicateType}
	return d
}

// layoutIndex lists the archive first and then its referrers by digest, so that the order in which they came does not show.
func layoutIndex(archive descriptor, referrers []descriptor) index {
	sorted := slices.SortedFunc(slices.Values(referrers), func(a, b descriptor) int {
		return strings.Compare(string(a.Digest), string(b.Digest))
	})
	return index{SchemaVersion: 2, MediaType: indexType, Manifests: append([]descriptor{archive}, sorted...)}
}

// readDocument reads a strict document and refuses every byte form of it but the canonical one.
func readDocument(data []byte, v any) error {
	if err := strictjson.Unmarshal(data, limits.ManifestBytes, v); err != nil {
		return err
	}
	again, err := strictjson.Marshal(v)
	if err != nil {
		return fault.New(fault.NotCanonical, "", err.Error())
	}
	if !bytes.Equal(again, data) {
		return fault.New(fault.NotCanonical, "", "the same content is written in other bytes: "+firstDifference(again, data))
	}
	return nil
}

func firstDifference(expected, found []byte) string {
	at := 0
	for at < len(expected) && at < len(found) && expected[at] == found[at] {
		at++
	}
	return fmt.Sprintf("byte %d: expected %q, found %q", at, near(expected, at), near(found, at))
}

func near(b []byte, at int) []byte { return b[min(at, len(b)):min(at+24, len(b))] }

// checkTitle says why a title must not name a file, or nil.
func checkTitle(title string) error {
	refuse := func(why string) error {
		return fault.New(fault.Title, "", fmt.Sprintf("title %q %s", title, why))
	}
	switch {
	case title == "":
		return refuse("is empty")
	case len(title) > limits.TitleBytes:
		return refuse(fmt.Sprintf("has %d bytes, at most %d are allowed", len(title), limits.TitleBytes))
	case strings.ToValidUTF8(title, "") != title:
		return refuse("is not UTF-8")
	case strings.ContainsFunc(title, func(r rune) bool { return r < 0x20 || r == 0x7f || r == '\\' || r == ':' }):
		return refuse("has a control character, a backslash or a colon")
	}
	for element := range strings.SplitSeq(title, "/") {
		if element == "" || element == "." || element == ".." {
			return refuse("is not a plain relative path")
		}
	}
	return nil
}

// checkTitles says which title of a list is unsafe or collides with an earlier one, on file systems that ignore case too.
func checkTitles(titles []string) error {
	seen := map[string]string{}
	for _, title := range titles {
		if err := checkTitle(title); err != nil {
			return err
		}
		folded := strings.ToLower(title)
		if other, twice := seen[folded]; twice {
			return fault.New(fault.Title, "", fmt.Sprintf("titles %q and %q name the same file", other, title))
		}
		seen[folded] = title
	}
	for _, title := range titles {
		for at, c := range title {
			if other, file := seen[strings.ToLower(title[:at])]; c == '/' && file {
				return fault.New(fault.Title, "", fmt.Sprintf("title %q is a file and, in %q, a folder", other, title))
			}
		}
	}
	return nil
}
