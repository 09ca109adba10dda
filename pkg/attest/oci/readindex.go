package oci

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/internal/strictjson"
)

// readIndex follows the index to the archive's manifest and its referrers. Each document is rebuilt from what it leads to and
// compared, so that no field of it can say anything else than the content does.
func (r *reader) readIndex(raw []byte) {
	var x index
	if err := readDocument(raw, &x); err != nil {
		r.refuse(err, indexName)
		return
	}
	if len(x.Manifests) == 0 {
		r.fault(fault.New(fault.FileMissing, "manifests", "the index names no archive").In(indexName))
		return
	}
	if n := len(x.Manifests) - 1; n > limits.Referrers {
		r.fault(fault.New(fault.Limit, "manifests", fmt.Sprintf("%d bundles, at most %d are read", n, limits.Referrers)).In(indexName))
		return
	}
	archive := x.Manifests[0]
	r.readArchive(archive, r.call(archive, "archive manifest"))
	var referrers []descriptor
	for i, d := range x.Manifests[1:] {
		field := "manifests[" + strconv.Itoa(i+1) + "]"
		if d.Digest == x.Manifests[i].Digest {
			r.fault(fault.New(fault.FileUnexpected, field, "the same manifest stands twice").In(indexName))
			continue
		}
		announced := r.readReferrer(d, r.call(d, "bundle manifest"), field, archive)
		referrers = append(referrers, referrerEntry(r.sized(d), announced))
	}
	r.compare(layoutIndex(archiveEntry(r.sized(archive)), referrers), raw, indexName)
}

// call adds a name under which messages speak of a blob. The same content may stand in several places.
func (r *reader) call(d descriptor, name string) string {
	if names := r.names[d.Digest.hex()]; !slices.Contains(names, name) {
		r.names[d.Digest.hex()] = append(names, name)
	}
	return name + " (" + d.file() + ")"
}

// part is how messages call a blob: all its names and its file.
func (r *reader) part(hex string) string {
	file := blobsFolder + "/" + hex
	if names := r.names[hex]; len(names) > 0 {
		return strings.Join(names, " and ") + " (" + file + ")"
	}
	return file
}

// sized returns the digests of a blob that was read, or those that the descriptor declares.
func (r *reader) sized(d descriptor) Digests {
	if b := r.blobs[d.Digest.hex()]; b != nil {
		return b.Digests
	}
	return declared(d)
}

// declared takes the digests from a descriptor: SHA-256 and size, for lack of the content.
func declared(d descriptor) Digests {
	g := Digests{Size: d.Size}
	for i := range g.SHA256 {
		n, _ := strconv.ParseUint(d.Digest.hex()[2*i:2*i+2], 16, 8) // the digest was read as hex
		g.SHA256[i] = byte(n)
	}
	return g
}

// lookup returns the content that a descriptor in a document leads to, or nil and a fault that names the document or the content.
// Content of more than most bytes is refused.
func (r *reader) lookup(d descriptor, document, field string, most int64) *Blob {
	if r.failed != nil {
		return nil
	}
	hex := d.Digest.hex()
	r.used[hex] = true
	if r.blobs[hex] == nil && r.damaged[hex] == nil && r.present[hex] {
		if r.failed = r.readBlob(d, most); r.failed != nil {
			return nil
		}
	}
	b := r.blobs[hex]
	if b == nil && r.damaged[hex] == nil {
		r.fault(fault.New(fault.FileMissing, "", "it is missing; "+document+" names it in "+field).In(r.part(d.Digest.hex())))
		// Every other document is what its digest says; of the index nobody knows whether it or the file is what changed.
		if document == indexName {
			r.fault(fault.New(fault.FileMissing, field, "it names content that is not there: "+r.part(d.Digest.hex())).In(document))
		}
	}
	return b
}

// document reads a manifest blob into m; false means that it was refused.
func (r *reader) document(b *Blob, m *manifest, part string) ([]byte, bool) {
	raw, err := b.Bytes(limits.ManifestBytes)
	if err != nil {
		r.fault(fault.New(fault.Limit, "", err.Error()).In(part))
		return nil, false
	}
	if err := readDocument(raw, m); err != nil {
		r.refuse(err, part)
		return nil, false
	}
	return raw, true
}

func (r *reader) readArchive(d descriptor, part string) {
	b := r.lookup(d, indexName, "manifests[0]", limits.ManifestBytes)
	if b == nil {
		return
	}
	var m manifest
	raw, ok := r.document(b, &m, part)
	if !ok {
		return
	}
	r.l.Manifest = b.Digests
	if len(m.Layers) > limits.Layers {
		r.fault(fault.New(fault.Limit, "layers", fmt.Sprintf("%d layers, at most %d are read", len(m.Layers), limits.Layers)).In(part))
		return
	}
	var titles []string
	var rebuilt []descriptor
	for i, layer := range m.Layers {
		title := layer.Annotations[annotationTitle]
		titles = append(titles, title)
		name := r.call(layer, title)
		content := r.lookup(layer, part, "layers["+strconv.Itoa(i)+"]", limits.BlobBytes)
		r.l.Layers = append(r.l.Layers, Layer{Title: title, MediaType: layer.MediaType, Part: name, Blob: content})
		again := describe(layer.MediaType, r.sized(layer))
		again.Annotations = map[string]string{annotationTitle: title}
		rebuilt = append(rebuilt, again)
	}
	if err := checkTitles(titles); err != nil {
		r.refuse(err, part)
	}
	r.readEmpty(part)
	r.compare(archiveManifest(rebuilt), raw, part)
}

// readEmpty looks for the two bytes that stand for "no configuration".
func (r *reader) readEmpty(document string) {
	d := emptyConfig()
	r.call(d, "empty configuration")
	r.lookup(d, document, "config", limits.ManifestBytes)
}

// readReferrer reads one referrer and its bundle, and returns the predicate type that it announces.
func (r *reader) readReferrer(d descriptor, part, field string, archive descriptor) string {
	b := r.lookup(d, indexName, field, limits.ManifestBytes)
	if b == nil {
		return d.Annotations[annotationPredicate]
	}
	var m manifest
	raw, ok := r.document(b, &m, part)
	if !ok {
		return d.Annotations[annotationPredicate]
	}
	announced := m.Annotations[annotationPredicate]
	if len(m.Layers) != 1 {
		r.fault(fault.New(fault.FileUnexpected, "layers", fmt.Sprintf("expected one bundle, found %d layers", len(m.Layers))).In(part))
		return announced
	}
	name := r.call(m.Layers[0], "bundle "+announced)
	content := r.lookup(m.Layers[0], part, "layers[0]", limits.BundleBytes)
	r.l.Bundles = append(r.l.Bundles,
		Bundle{PredicateType: announced, Part: name, Blob: content, manifest: b.Digests})
	r.readEmpty(part)
	r.compare(referrerManifest(r.sized(archive), r.sized(m.Layers[0]), announced), raw, part)
	return announced
}

// compare refuses a document that is not, byte for byte, what its content makes it.
func (r *reader) compare(rebuilt any, raw []byte, part string) {
	again, err := strictjson.Marshal(rebuilt)
	if err != nil {
		r.refuse(err, part)
		return
	}
	if string(again) == string(raw) {
		return
	}
	where, same, err := strictjson.Difference(again, raw, 2*limits.ManifestBytes)
	switch {
	case err != nil:
		r.refuse(err, part)
	case same:
		r.fault(fault.New(fault.NotCanonical, "", firstDifference(again, raw)).In(part))
	default:
		r.fault(fault.New(differenceClass(where), "", where).In(part))
	}
}

func differenceClass(where string) fault.Class {
	field, _, _ := strings.Cut(where, ":")
	switch {
	case strings.HasPrefix(field, "subject"):
		return fault.Subject
	case strings.HasSuffix(field, "size"):
		return fault.SizeMismatch
	case strings.HasSuffix(field, "mediaType"), strings.HasSuffix(field, "artifactType"):
		return fault.MediaType
	}
	return fault.NotCanonical
}

func (r *reader) refuse(err error, part string) {
	var f *fault.Fault
	if !errors.As(err, &f) {
		f = fault.New(fault.Syntax, "", err.Error())
	}
	r.fault(f.In(part))
}

// finish reports damaged blobs under the name that the manifests gave them, and blobs that nothing names.
func (r *reader) finish() {
	for _, hex := range slices.Sorted(maps.Keys(r.damaged)) {
		r.fault(r.damaged[hex].In(r.part(hex)))
	}
	for _, hex := range slices.Sorted(maps.Keys(r.present)) {
		if !r.used[hex] {
			r.fault(fault.New(fault.FileUnexpected, "", "no readable manifest names this file").In(r.part(hex)))
		}
	}
}
