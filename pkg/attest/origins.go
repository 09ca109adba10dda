package attest

import (
	"fmt"

	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/manifest"
)

// Origin says where one digest of a verdict comes from.
type Origin struct {
	// Name is what the digest is of.
	Name string `json:"name"`
	// Digest is as it stands in the archive: "sha256:<hex>", "blake3:<hex>", or the hint of a key.
	Digest string `json:"digest"`
	// Hashed says which bytes were hashed, and how.
	Hashed string `json:"hashed"`
	// Command makes the digest again with tools that are none of benchpin's, in the archive's folder; "" where no short one does.
	Command string `json:"command,omitempty"`
}

// Origins says of every digest that the verdict rests on what was hashed, and how to hash it by hand. It is about what the verifier read,
// so that a digest that is not there, because its content was refused, has no entry.
func (v *Verification) Origins() []Origin {
	var all []Origin
	add := func(name, digest, hashed, command string) {
		all = append(all, Origin{Name: name, Digest: digest, Hashed: hashed, Command: command})
	}
	blob := func(g oci.Digests) string { return "blobs/sha256/" + g.Hex() }
	twice := func(name, what string, g oci.Digests) {
		add(name, g.SHA256Digest().String(), "SHA-256 of "+what+", all of its bytes; its name too", "sha256sum "+blob(g))
		add(name, g.Blake3Digest().String(), "BLAKE3 of the same bytes", "b3sum "+blob(g))
	}
	if v.Archive != (oci.Digests{}) {
		twice("archive", "the archive's OCI manifest, which lists every layer by its SHA-256", v.Archive)
	}
	if v.layout == nil {
		return all
	}
	for _, l := range v.layout.Layers {
		if l.Blob == nil {
			continue
		}
		twice(l.Title, "the layer "+l.Title, l.Blob.Digests)
		if l.Title == TitleEntries && v.Manifest != nil {
			add("data set's root", v.Manifest.Header().Root.String(),
				fmt.Sprintf("the Merkle tree of RFC 6962 with BLAKE3 over the %d lines of %s: a leaf is BLAKE3(0x00 and the line without its end), a node "+
					"BLAKE3(0x01, left, right); docs/manifest.md", v.Manifest.Header().Count, TitleEntries), firstLine(v.Manifest.Header(), blob(l.Blob.Digests)))
		}
	}
	if r := v.Record; r != nil {
		add("workload", r.Workload.Digest, "BLAKE3 of the value of workload.canonical in record.json, as it is written there without white space",
			"jq -cj .workload.canonical "+v.recordBlob()+" | b3sum --no-names")
		add("transcript's root", r.Transcript.Root, "the Merkle tree of RFC 6962 with BLAKE3 over the final digests of all ranks, each a chain over what the rank read; "+
			"docs/transcript.md, and `benchpin transcript expected` computes it without the data", "")
		add("program", r.Tool.Binary, "BLAKE3 of the executable that made the record, by its own word: b3sum of the same release gives it", "")
	}
	for i, b := range v.layout.Bundles {
		if b.Blob == nil {
			continue
		}
		add(fmt.Sprintf("bundle %d", i+1), b.Blob.SHA256Digest().String(), "SHA-256 of the bundle that attests "+shorten(b.PredicateType)+
			"; what it says is in its payload: jq -r .dsseEnvelope.payload FILE | base64 -d", "sha256sum "+blob(b.Blob.Digests))
	}
	for _, hint := range v.Keys {
		add("key", hint, "base64 of the SHA-256 of the public key in DER form", "openssl pkey -pubin -in KEY.pub -outform DER | openssl dgst -sha256 -binary | base64")
	}
	return all
}

// firstLine is the command that makes the root of a data set of one file; a larger tree takes a program.
func firstLine(h *manifest.Header, entries string) string {
	if h.Count != 1 {
		return ""
	}
	return `(printf '\000'; zstd -dc ` + entries + ` | tr -d '\n') | b3sum --no-names`
}

func (v *Verification) recordBlob() string {
	if l := v.layout.Layer(TitleRecord); l != nil && l.Blob != nil {
		return "blobs/sha256/" + l.Blob.Hex()
	}
	return "FILE"
}
