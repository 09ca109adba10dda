// Package oci keeps archives: a folder in OCI image layout that holds one artifact manifest, its layers, and one referrer manifest
// for each attestation bundle (docs/attestation.md). It packs, attaches and reads, and names every file that is not what it must be.
// It never judges what a layer or a bundle says, never checks a signature, and never follows a link out of the folder.
package oci

import (
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Media types of an archive.
const (
	// ArtifactType is the artifact type of an archive's manifest.
	ArtifactType = "application/vnd.benchpin.archive.v1+json"
	// BundleType is the artifact type of a referrer's manifest and the media type of its one layer: a Sigstore bundle v0.3.
	BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

	manifestType = string(types.OCIManifestSchema1)
	indexType    = string(types.OCIImageIndex)
	emptyType    = string(types.OCIEmptyJSON)
)

// AnnotationPredicate is the annotation of a referrer's manifest that announces the type of its predicate.
const AnnotationPredicate = "dev.sigstore.bundle.predicateType"

// EmptyConfig is the content of every manifest's configuration: an empty JSON object.
const EmptyConfig = emptyBytes

// MaxBundleBytes is the size of the largest bundle that an archive may carry.
const MaxBundleBytes = limits.BundleBytes

// Annotations of manifests and descriptors.
const (
	annotationTitle     = "org.opencontainers.image.title"
	annotationCreated   = "org.opencontainers.image.created"
	annotationRef       = "org.opencontainers.image.ref.name"
	annotationContent   = "dev.sigstore.bundle.content"
	annotationPredicate = AnnotationPredicate

	// created is the creation time in every manifest: a real time would give the same content another digest each time.
	created = "1970-01-01T00:00:00Z"
	// refName is the tag under which tools find the archive in its folder.
	refName = "archive"
	// contentDSSE is what a bundle holds, in the words of cosign.
	contentDSSE = "dsse-envelope"
)

// Files of a layout.
const (
	layoutName  = "oci-layout"
	indexName   = "index.json"
	blobsName   = "blobs"
	blobsFolder = "blobs/sha256"
	layoutBytes = `{"imageLayoutVersion":"1.0.0"}`
	emptyBytes  = `{}`
)
