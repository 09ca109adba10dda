package oci

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/internal/strictjson"
)

// Part is what a manifest says of one blob.
type Part struct {
	// Title is the layer's name, "" for what has none.
	Title     string
	MediaType string
	// Hex is the SHA-256 in 64 lower-case hex digits, Size the bytes.
	Hex  string
	Size int64
}

// ParseArchive reads the bytes of an archive's manifest and returns its layers in order. It accepts only the bytes that Writer.Seal
// writes, so that the layers alone determine the manifest. Errors are *fault.Fault, or wrap one.
func ParseArchive(raw []byte) ([]Part, error) {
	var m manifest
	// What is something else says so first: that it has not the form of an archive follows.
	var kind struct {
		ArtifactType string `json:"artifactType"`
	}
	if len(raw) <= limits.ManifestBytes && json.Unmarshal(raw, &kind) == nil && kind.ArtifactType != ArtifactType {
		return nil, fault.New(fault.MediaType, "artifactType", fmt.Sprintf("expected %s, found %.100q: this is no archive of benchpin", ArtifactType, kind.ArtifactType))
	}
	if err := readDocument(raw, &m); err != nil {
		return nil, err
	}
	if m.ArtifactType != ArtifactType {
		return nil, fault.New(fault.MediaType, "artifactType", fmt.Sprintf("expected %s, found %q", ArtifactType, m.ArtifactType))
	}
	if len(m.Layers) == 0 || len(m.Layers) > limits.Layers {
		return nil, fault.New(fault.Limit, "layers", fmt.Sprintf("expected 1 to %d layers, found %d", limits.Layers, len(m.Layers)))
	}
	parts := make([]Part, len(m.Layers))
	titles := make([]string, len(m.Layers))
	again := make([]descriptor, len(m.Layers))
	for i, d := range m.Layers {
		if d.Size < 0 || d.Size > limits.BlobBytes {
			return nil, fault.New(fault.Limit, fmt.Sprintf("layers[%d].size", i), fmt.Sprintf("expected 0 to %d, found %d", int64(limits.BlobBytes), d.Size))
		}
		titles[i] = d.Annotations[annotationTitle]
		parts[i] = Part{Title: titles[i], MediaType: d.MediaType, Hex: d.Digest.hex(), Size: d.Size}
		again[i] = descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size, Annotations: map[string]string{annotationTitle: titles[i]}}
	}
	if err := checkTitles(titles); err != nil {
		return nil, err
	}
	return parts, sameDocument(archiveManifest(again), raw)
}

// sameDocument refuses a document that says more than what it was rebuilt from.
func sameDocument(m manifest, raw []byte) error {
	want, err := strictjson.Marshal(m)
	if err != nil {
		return err
	}
	if string(want) != string(raw) {
		return fault.New(fault.NotCanonical, "", "it says something that its layers do not: "+firstDifference(want, raw))
	}
	return nil
}

// Documents returns the bytes of the archive's manifest and of the manifest of each bundle, in the order of Bundles. They are made again
// from the content that was read, and are what stands in the layout, which must be free of faults.
func (l *Layout) Documents() (archive []byte, bundles [][]byte, err error) {
	if err := l.Err(); err != nil {
		return nil, nil, err
	}
	layers := make([]descriptor, len(l.Layers))
	for i, layer := range l.Layers {
		layers[i] = describe(layer.MediaType, layer.Blob.Digests)
		layers[i].Annotations = map[string]string{annotationTitle: layer.Title}
	}
	if archive, err = strictjson.Marshal(archiveManifest(layers)); err != nil {
		return nil, nil, err
	}
	bundles = make([][]byte, len(l.Bundles))
	for i, b := range l.Bundles {
		if bundles[i], err = strictjson.Marshal(referrerManifest(l.Manifest, b.Blob.Digests, b.PredicateType)); err != nil {
			return nil, nil, err
		}
	}
	return archive, bundles, nil
}

// ReferrerDocument returns the bytes of the manifest of a bundle that refers to an archive. The predicate type is announced as it is given.
func ReferrerDocument(archive, bundle Digests, predicateType string) ([]byte, error) {
	if bundle.Size > limits.BundleBytes {
		return nil, fault.New(fault.Limit, "", fmt.Sprintf("a bundle of %d bytes, at most %d are allowed", bundle.Size, limits.BundleBytes))
	}
	raw, err := strictjson.Marshal(referrerManifest(archive, bundle, predicateType))
	if err != nil {
		return nil, err
	}
	var again manifest
	return raw, readDocument(raw, &again)
}

// Empty is the two bytes that stand for "no configuration" in every manifest.
func (l *Layout) Empty() *Blob {
	return &Blob{Digests: digestsOf([]byte(emptyBytes)), content: strings.NewReader(emptyBytes)}
}
