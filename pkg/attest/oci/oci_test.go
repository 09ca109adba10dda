package oci

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/benchpin/benchpin/pkg/attest/fault"
)

func TestWrittenIsRead(t *testing.T) {
	l := read(t, build(t))
	must(t, l.Err())
	for i, s := range layers() {
		got := l.Layers[i]
		r, err := s.Open()
		must(t, err)
		want, err := io.ReadAll(r)
		must(t, err)
		content, err := got.Blob.Bytes(1000)
		must(t, err)
		if got.Title != s.Title || got.MediaType != s.MediaType || !bytes.Equal(content, want) || got.Blob.Digests != digestsOf(want) {
			t.Errorf("layer %d came back as %+v %q", i, got, content)
		}
	}
	if len(l.Layers) != 3 || len(l.Bundles) != 2 || l.Layer("nothing") != nil || l.Layer("empty") == nil {
		t.Errorf("found %d layers and %d bundles", len(l.Layers), len(l.Bundles))
	}
	for _, b := range l.Bundles {
		raw, err := b.Blob.Bytes(100)
		must(t, err)
		if !strings.Contains(string(raw), b.PredicateType[len("https://example.com/"):]) {
			t.Errorf("bundle %s is %s", b.PredicateType, raw)
		}
		if _, err := b.Blob.Bytes(3); err == nil {
			t.Error("a limit is not kept")
		}
	}
}

// The manifest's digest is the identity of an archive: it must never change for the same layers. The value was computed apart from
// this code, from the text that docs/attestation.md specifies.
func TestManifestIsGolden(t *testing.T) {
	g, err := Pack(context.Background(), filepath.Join(t.TempDir(), "x"), layers())
	must(t, err)
	if want := "sha256:9bb15023572f8c405a6156b5aa1cace976be9e41b6b9ba8527fb1a2f88e3a468"; g.SHA256Digest().String() != want {
		t.Errorf("manifest digest is %s, expected %s", g.SHA256Digest(), want)
	}
}

// go-containerregistry must find the same content under the same digests.
func TestPeerReadsLayout(t *testing.T) {
	dir := build(t)
	ours := read(t, dir)
	open := func(name string) io.Reader {
		raw, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		must(t, err)
		return bytes.NewReader(raw)
	}
	blob := func(h v1.Hash) io.Reader { return open(blobsName + "/" + h.Algorithm + "/" + h.Hex) }
	x, err := v1.ParseIndexManifest(open(indexName))
	must(t, err)
	if len(x.Manifests) != 3 || x.MediaType != types.OCIImageIndex || x.Manifests[0].ArtifactType != ArtifactType {
		t.Errorf("index is read as %+v", x)
	}
	for i, d := range x.Manifests {
		h, size, err := v1.SHA256(blob(d.Digest))
		must(t, err)
		m, err := v1.ParseManifest(blob(d.Digest))
		must(t, err)
		if h != d.Digest || size != d.Size || m.ArtifactType != d.ArtifactType || m.MediaType != d.MediaType {
			t.Errorf("manifest %d is read as %+v", i, m)
		}
		if i == 0 {
			for j, layer := range m.Layers {
				h, size, err := v1.SHA256(blob(layer.Digest))
				must(t, err)
				if h != layer.Digest || size != layer.Size || layer.Annotations[annotationTitle] != ours.Layers[j].Title {
					t.Errorf("layer %d is read as %+v", j, layer)
				}
			}
		} else if m.Subject == nil || m.Subject.Digest != x.Manifests[0].Digest || m.Subject.Size != x.Manifests[0].Size {
			t.Errorf("referrer %d is read as %+v", i, m)
		}
	}
}

// A layer's size must not show in the memory that packing takes.
func TestPackStreams(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes pools forget memory at random, so that allocations say nothing")
	}
	const size = 96 << 20
	path := filepath.Join(t.TempDir(), "large")
	f, err := os.Create(path)
	must(t, err)
	must(t, f.Truncate(size))
	must(t, f.Close())
	dir := filepath.Join(t.TempDir(), "archive")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = Pack(context.Background(), dir, []Source{FromFile("large", "application/octet-stream", path)})
	must(t, err)
	l := read(t, dir)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 24<<20 {
		t.Errorf("packing and reading %d bytes allocated %d", size, used)
	}
	must(t, l.Err())
	if l.Layers[0].Blob.Size != size {
		t.Errorf("size is %d", l.Layers[0].Blob.Size)
	}
}

func TestTitles(t *testing.T) {
	for _, title := range []string{"", ".", "..", "../x", "a/../b", "/etc/passwd", "a//b", "a/", "a\\b", "c:x", "a\x00b", "a\nb", "\x7f", "\xff",
		strings.Repeat("x", 256)} {
		var f *fault.Fault
		if err := checkTitle(title); !errors.As(err, &f) || f.Class != fault.Title {
			t.Errorf("%q: %v", title, err)
		}
		dir := filepath.Join(t.TempDir(), "x")
		if _, err := Pack(context.Background(), dir, []Source{FromBytes(title, "text/plain", nil)}); !errors.Is(err, fault.Title) {
			t.Errorf("packed %q: %v", title, err)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*")); len(left) > 0 {
			t.Errorf("%q: left %v", title, left)
		}
		if strings.ToValidUTF8(title, "") != title {
			continue // JSON cannot carry it
		}
		bad := newLayout()
		bad.archive.Layers[0].Annotations[annotationTitle] = title
		wantFault(t, bad.write(t), fault.Title, "archive manifest", "title")
	}
	for _, titles := range [][]string{{"a", "a"}, {"a", "A"}, {"x", "x/y"}, {"x/y", "X"}} {
		if err := checkTitles(titles); !errors.Is(err, fault.Title) {
			t.Errorf("%v: %v", titles, err)
		}
	}
	if err := checkTitles([]string{"a", "b/a", "b/c", "ä.json", "a b", strings.Repeat("x", 255)}); err != nil {
		t.Error(err)
	}
}

// Every document of a layout has one form: whatever else it says or however else it is written is refused, with every digest right.
func TestDocumentsAreExact(t *testing.T) {
	must(t, read(t, newLayout().write(t)).Err())
	other := digestsOf([]byte("{\"x\":1}"))
	for name, c := range map[string]struct {
		change func(*layout)
		class  fault.Class
		part   string
	}{
		"white space in the index": {func(l *layout) { l.raw = func(b []byte) []byte { return append(b, '\n') } }, fault.NotCanonical, indexName},
		"a key twice":              {func(l *layout) { l.raw = replace(`"schemaVersion":2`, `"schemaVersion":2,"schemaVersion":2`) }, fault.DuplicateKey, indexName},
		"a key in other case":      {func(l *layout) { l.raw = replace(`"schemaVersion"`, `"SchemaVersion"`) }, fault.KeyCase, indexName},
		"another key":              {func(l *layout) { l.raw = replace(`"schemaVersion":2`, `"schemaVersion":2,"subject":{}`) }, fault.UnknownField, indexName},
		"a URL":                    {func(l *layout) { l.raw = replace(`"size":`, `"urls":["https://example.com"],"size":`) }, fault.UnknownField, indexName},
		"no list":                  {func(l *layout) { l.raw = replace(`"manifests":[`, `"manifests":null,"x":[`) }, fault.WrongType, indexName},
		"not JSON":                 {func(l *layout) { l.raw = func([]byte) []byte { return nil } }, fault.Syntax, indexName},
		"a number with a point":    {func(l *layout) { l.raw = replace(`"schemaVersion":2`, `"schemaVersion":2.0`) }, fault.WrongType, indexName},
		"another schema version":   {func(l *layout) { l.index = func(x *index) { x.SchemaVersion = 3 } }, fault.NotCanonical, indexName},
		"another media type":       {func(l *layout) { l.index = func(x *index) { x.MediaType = "text/plain" } }, fault.MediaType, indexName},
		"no manifest":              {func(l *layout) { l.index = func(x *index) { x.Manifests = []descriptor{} } }, fault.FileMissing, indexName},
		"another artifact type":    {func(l *layout) { l.index = func(x *index) { x.Manifests[0].ArtifactType = BundleType } }, fault.MediaType, indexName},
		"another tag":              {func(l *layout) { l.index = func(x *index) { x.Manifests[0].Annotations[annotationRef] = "latest" } }, fault.NotCanonical, indexName},
		"another size":             {func(l *layout) { l.index = func(x *index) { x.Manifests[0].Size++ } }, fault.SizeMismatch, indexName},
		"the referrer first": {func(l *layout) {
			l.index = func(x *index) { x.Manifests[0], x.Manifests[1] = x.Manifests[1], x.Manifests[0] }
		}, fault.FileUnexpected, ""},
		"a referrer twice": {func(l *layout) { l.referrers = append(l.referrers, l.referrers[0]) }, fault.FileUnexpected, indexName},
		"an upper-case digest": {func(l *layout) {
			l.index = func(x *index) { x.Manifests[0].Digest = "sha256:" + sha256Digest(strings.Repeat("A", 64)) }
		}, fault.DigestMismatch, indexName},
		"another algorithm": {func(l *layout) {
			l.index = func(x *index) { x.Manifests[0].Digest = "sha512:" + sha256Digest(strings.Repeat("a", 128)) }
		}, fault.DigestMismatch, indexName},
		"a lying annotation": {func(l *layout) {
			l.index = func(x *index) { x.Manifests[1].Annotations[annotationPredicate] = "https://example.com/other" }
		}, fault.NotCanonical, indexName},
		"white space in the manifest": {func(l *layout) { l.rawArch = func(b []byte) []byte { return append(b, ' ') } }, fault.NotCanonical, "archive manifest"},
		"data in the manifest":        {func(l *layout) { l.rawArch = replace(`"size":2`, `"size":2,"data":"e30="`) }, fault.UnknownField, "archive manifest"},
		"a creation time":             {func(l *layout) { l.archive.Annotations[annotationCreated] = "2026-11-30T00:00:00Z" }, fault.NotCanonical, "archive manifest"},
		"an annotation more":          {func(l *layout) { l.archive.Annotations["x"] = "y" }, fault.NotCanonical, "archive manifest"},
		"a configuration":             {func(l *layout) { l.archive.Config = l.archive.Layers[0] }, fault.MediaType, "archive manifest"},
		"a layer's size":              {func(l *layout) { l.archive.Layers[0].Size = 2 }, fault.SizeMismatch, "archive manifest"},
		"a layer without a title":     {func(l *layout) { l.archive.Layers[0].Annotations = nil }, fault.Title, "archive manifest"},
		"a manifest with a subject":   {func(l *layout) { d := l.archive.Layers[0]; l.archive.Subject = &d }, fault.Subject, "archive manifest"},
		"colliding titles":            {func(l *layout) { l.archive.Layers[0].Annotations[annotationTitle] = "B.txt" }, fault.Title, "archive manifest"},
		"a missing layer":             {func(l *layout) { l.blobs = l.blobs[1:] }, fault.FileMissing, "empty configuration"},
		"a referrer of another":       {func(l *layout) { l.referrers = append(l.referrers, referrerManifest(other, other, "p")) }, fault.Subject, "bundle manifest"},
		"a referrer of itself": {func(l *layout) {
			m := referrerManifest(other, other, "p")
			m.Subject = nil
			l.referrers = append(l.referrers, m)
		}, fault.Subject, "bundle manifest"},
		"a referrer of other kind": {func(l *layout) {
			m := referrerManifest(other, other, "p")
			m.ArtifactType = "text/plain"
			l.referrers = append(l.referrers, m)
		}, fault.MediaType, "bundle manifest"},
		"a referrer with two layers": {func(l *layout) {
			m := referrerManifest(other, other, "p")
			m.Layers = append(m.Layers, m.Layers[0])
			l.referrers = append(l.referrers, m)
		}, fault.FileUnexpected, "bundle manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLayout()
			c.change(l)
			wantFault(t, l.write(t), c.class, c.part, "")
		})
	}
}

func replace(old, new string) func([]byte) []byte {
	return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(new), 1) }
}

func TestOddFiles(t *testing.T) {
	// A pipe must not be waited for.
	dir := build(t)
	must(t, syscall.Mkfifo(filepath.Join(dir, blobsName, "sha256", strings.Repeat("a", 64)), 0o666))
	wantFault(t, dir, fault.FileUnexpected, strings.Repeat("a", 64), "special file")
	must(t, os.Remove(filepath.Join(dir, indexName)))
	must(t, syscall.Mkfifo(filepath.Join(dir, indexName), 0o666))
	wantFault(t, dir, fault.FileUnexpected, indexName, "special file")

	// A link is refused even where it leads to the right content.
	dir = build(t)
	l := read(t, dir)
	blob := filepath.Join(dir, blobsName, "sha256", l.Layers[0].Blob.Hex())
	aside := filepath.Join(t.TempDir(), "aside")
	must(t, os.Rename(blob, aside))
	must(t, os.Symlink(aside, blob))
	wantFault(t, dir, fault.FileUnexpected, "record.json", "symbolic link")

	if _, err := Read(context.Background(), filepath.Join(dir, indexName)); err == nil {
		t.Error("a file was read as a folder")
	}
}

func TestAttach(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "archive")
	_, err := Pack(ctx, dir, layers())
	must(t, err)
	must(t, Attach(ctx, dir, "https://example.com/b", []byte(`{"bundle":"b"}`)))
	must(t, Attach(ctx, dir, "https://example.com/a", []byte(`{"bundle":"a"}`)))
	// The order in which bundles came does not show.
	want, err := os.ReadFile(filepath.Join(build(t), indexName))
	must(t, err)
	got, err := os.ReadFile(filepath.Join(dir, indexName))
	must(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("index is\n%s\nexpected\n%s", got, want)
	}
	must(t, read(t, dir).Err())
	if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) != 1 {
		t.Errorf("%v was left beside the archive", left)
	}
	must(t, os.WriteFile(filepath.Join(dir, "x"), nil, 0o666))
	if err := Attach(ctx, dir, "https://example.com/c", []byte(`{}`)); !errors.Is(err, fault.FileUnexpected) {
		t.Errorf("attached to a damaged archive: %v", err)
	}
}

func TestWriterOrder(t *testing.T) {
	ctx := context.Background()
	w, err := Create(filepath.Join(t.TempDir(), "a"))
	must(t, err)
	if _, err := w.Seal(ctx); err == nil {
		t.Error("sealed without layers")
	}
	if err := w.Attach(ctx, "x", nil); err == nil {
		t.Error("attached before it was sealed")
	}
	if err := w.Finish(); err == nil {
		t.Error("finished before it was sealed")
	}
	_, err = w.Add(ctx, layers()[0])
	must(t, err)
	broken := errors.New("device failed")
	if _, err := w.Add(ctx, Source{Title: "b", Open: func() (io.ReadCloser, error) { return io.NopCloser(&failing{broken}), nil }}); !errors.Is(err, broken) {
		t.Errorf("a failing source: %v", err)
	}
	_, err = w.Seal(ctx)
	must(t, err)
	if _, err := w.Add(ctx, layers()[1]); err == nil {
		t.Error("added after it was sealed")
	}
	if _, err := w.Seal(ctx); err == nil {
		t.Error("sealed twice")
	}
	must(t, w.Abort())
	must(t, w.Abort())
	if left, err := os.ReadDir(filepath.Dir(w.dir)); err != nil || len(left) != 0 {
		t.Errorf("%v was left", left)
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o666))
	if _, err := Create(file); !errors.Is(err, ErrExists) {
		t.Errorf("in place of a file: %v", err)
	}
}

type failing struct{ err error }

func (f *failing) Read(p []byte) (int, error) { return 0, f.err }
