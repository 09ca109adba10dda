package attest

import (
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/record"
)

// Digest returns the digest of what the check of a name is about, for whoever writes a verdict down: the archive's OCI manifest, the data set's root,
// the file that was read; for every other check the record. It is "" where that could not be read.
func (v *Verification) Digest(check string) string {
	archive := ""
	if v.Archive != (oci.Digests{}) {
		archive = v.Archive.SHA256Digest().String()
	}
	switch check {
	case "content", "layout", "signatures", "subjects", "signing-time":
		return archive
	case "certificate", "certified", "repeats":
		return v.layerDigest(TitleCertificate)
	case "journal":
		return v.layerDigest("attempts.jsonl")
	case "figures":
		if steps := v.layerDigest("steps.parquet"); steps != "" {
			return steps
		}
	case "manifest":
		return v.layerDigest(TitleManifest)
	}
	r := v.Record
	if r == nil {
		return ""
	}
	switch check {
	case "preregistration":
		if r.Preregistration != nil {
			return r.Preregistration.Digest
		}
	case "dataset", "recipe", "reads":
		return r.Dataset.Root
	case "plan":
		return r.Workload.Digest
	case "transcript":
		return r.Transcript.Root
	}
	return record.Digest(v.RecordBytes)
}

// layerDigest is the BLAKE3 digest of a layer, "" where there is none.
func (v *Verification) layerDigest(title string) string {
	if v.layout == nil {
		return ""
	}
	if l := v.layout.Layer(title); l != nil && l.Blob != nil {
		return l.Blob.Blake3Digest().String()
	}
	return ""
}
