package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
)

// Each limit is tried at its value, which must pass, and one above, which must not.

func TestLimitLayers(t *testing.T) {
	for n, ok := range map[int]bool{limits.Layers: true, limits.Layers + 1: false} {
		l := newLayout()
		l.archive.Layers = nil
		for i := range n {
			d := describe("text/plain", digestsOf([]byte("a")))
			d.Annotations = map[string]string{annotationTitle: fmt.Sprintf("%05d", i)}
			l.archive.Layers = append(l.archive.Layers, d)
		}
		l.blobs = [][]byte{[]byte(emptyBytes), []byte("a"), []byte("{\"x\":1}")}
		judge(t, l.write(t), ok, "layers, at most")
	}
	w, err := Create(filepath.Join(t.TempDir(), "a"))
	must(t, err)
	w.layers = make([]descriptor, limits.Layers-1)
	_, err = w.Add(context.Background(), layers()[0])
	must(t, err)
	if _, err := w.Add(context.Background(), layers()[1]); err == nil {
		t.Error("one layer too many was added")
	}
	must(t, w.Abort())
}

func TestLimitReferrers(t *testing.T) {
	for n, ok := range map[int]bool{limits.Referrers: true, limits.Referrers + 1: false} {
		l := newLayout()
		archive := digestsOf(marshal(t, l.archive))
		l.referrers = nil
		for i := range n {
			l.referrers = append(l.referrers, referrerManifest(archive, digestsOf(l.blobs[len(l.blobs)-1]), fmt.Sprint("p", i)))
		}
		judge(t, l.write(t), ok, "bundles, at most")
	}
	must(t, checkReferrer(limits.Referrers-1, nil))
	if err := checkReferrer(limits.Referrers, nil); !errors.Is(err, fault.Limit) {
		t.Errorf("one bundle too many: %v", err)
	}
	must(t, checkReferrer(0, make([]byte, limits.BundleBytes)))
	if err := checkReferrer(0, make([]byte, limits.BundleBytes+1)); !errors.Is(err, fault.Limit) {
		t.Errorf("one byte too many: %v", err)
	}
}

func TestLimitManifestBytes(t *testing.T) {
	for n, ok := range map[int]bool{limits.ManifestBytes: true, limits.ManifestBytes + 1: false} {
		l := newLayout()
		l.archive.Layers[0].MediaType = ""
		empty := len(marshal(t, l.archive))
		l.archive.Layers[0].MediaType = strings.Repeat("x", n-empty)
		judge(t, l.write(t), ok, "at most")

		l = newLayout()
		l.raw = func(b []byte) []byte { return append(b, bytes.Repeat([]byte(" "), n-len(b))...) }
		wantFault(t, l.write(t), map[bool]fault.Class{true: fault.NotCanonical, false: fault.Limit}[ok], indexName, "")
	}
	w, err := Create(filepath.Join(t.TempDir(), "a"))
	must(t, err)
	l := newLayout()
	l.archive.Layers[0].MediaType = strings.Repeat("x", limits.ManifestBytes)
	if _, err := writeDocument(context.Background(), w.staging, w.staging, l.archive); err == nil {
		t.Error("a manifest that no registry takes was written")
	}
	must(t, w.Abort())
}

func TestLimitBlobBytes(t *testing.T) {
	if f := blobTooLarge(limits.BlobBytes); f != nil {
		t.Error(f)
	}
	if f := blobTooLarge(limits.BlobBytes + 1); f == nil || f.Class != fault.Limit {
		t.Error("a blob above the limit is read")
	}
	// A file that only claims to be so large costs nothing and is refused by its size.
	dir := build(t)
	path := filepath.Join(dir, blobsName, "sha256", strings.Repeat("a", 64))
	must(t, os.WriteFile(path, nil, 0o666))
	if err := os.Truncate(path, limits.BlobBytes+1); err != nil {
		t.Skip("this file system has no sparse files of 1 TiB: " + err.Error())
	}
	wantFault(t, dir, fault.Limit, strings.Repeat("a", 64), "at most")
}

func TestLimitLayoutEntries(t *testing.T) {
	for extra, ok := range map[int]bool{0: true, 1: false} {
		dir := build(t)
		blobs := filepath.Join(dir, blobsName, "sha256")
		have, err := os.ReadDir(blobs)
		must(t, err)
		for i := range limits.LayoutEntries - len(have) + extra {
			must(t, os.WriteFile(filepath.Join(blobs, fmt.Sprintf("x%d", i)), nil, 0o666))
		}
		judge(t, dir, ok, "more than")
	}
}

func TestLimitTitleBytes(t *testing.T) {
	must(t, checkTitle(strings.Repeat("x", limits.TitleBytes)))
	if err := checkTitle(strings.Repeat("x", limits.TitleBytes+1)); !errors.Is(err, fault.Title) {
		t.Error(err)
	}
}

// Content goes to a file above the limits of memory, and is the same content there.
func TestLimitMemory(t *testing.T) {
	var s stager
	defer func() { must(t, s.close()) }()
	var blobs []*Blob
	stage := func(size int) *Blob {
		b, err := s.stage(context.Background(), bytes.NewReader(bytes.Repeat([]byte{byte(len(blobs))}, size)))
		must(t, err)
		blobs = append(blobs, b)
		return b
	}
	stage(limits.MemoryBlobBytes)
	if s.file != nil || s.memory != limits.MemoryBlobBytes {
		t.Error("a blob at the limit is not held in memory")
	}
	stage(limits.MemoryBlobBytes + 1)
	if s.file == nil || s.end != limits.MemoryBlobBytes+1 || s.memory != limits.MemoryBlobBytes {
		t.Error("a blob above the limit is held in memory")
	}
	for s.memory < limits.MemoryBytes {
		stage(limits.MemoryBlobBytes)
	}
	stage(0)
	before := s.end
	stage(1)
	if s.end != before+1 || s.memory != limits.MemoryBytes {
		t.Error("memory grows above its limit")
	}
	for i, b := range blobs {
		raw, err := b.Bytes(limits.MemoryBlobBytes + 1)
		must(t, err)
		if digestsOf(raw) != b.Digests || digestsOf(bytes.Repeat([]byte{byte(i)}, len(raw))) != b.Digests {
			t.Errorf("blob %d is not what it was", i)
		}
	}
}

func marshal(t testing.TB, m manifest) []byte {
	t.Helper()
	l := newLayout()
	l.archive = m
	dir := l.write(t)
	x := read(t, dir)
	raw, err := os.ReadFile(filepath.Join(dir, blobsName, "sha256", x.Manifest.Hex()))
	must(t, err)
	return raw
}

func judge(t testing.TB, dir string, ok bool, text string) {
	t.Helper()
	found := false
	for _, f := range read(t, dir).Faults {
		found = found || f.Class == fault.Limit && strings.Contains(f.Error(), text)
	}
	if found == ok {
		t.Errorf("within the limit is %v, and the limit was found exceeded: %v", ok, found)
	}
}
