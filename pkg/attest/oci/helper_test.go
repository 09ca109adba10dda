package oci

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/strictjson"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// layers are the content of a small archive.
func layers() []Source {
	return []Source{
		FromBytes("record.json", "application/json", []byte(`{"a":1}`)),
		FromBytes("logs/run.txt", "text/plain", []byte("one line\n")),
		FromBytes("empty", "application/octet-stream", nil),
	}
}

// build makes an archive with two bundles.
func build(t testing.TB) string {
	t.Helper()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "archive")
	w, err := Create(dir)
	must(t, err)
	for _, s := range layers() {
		_, err := w.Add(ctx, s)
		must(t, err)
	}
	_, err = w.Seal(ctx)
	must(t, err)
	must(t, w.Attach(ctx, "https://example.com/a", []byte(`{"bundle":"a"}`)))
	must(t, w.Attach(ctx, "https://example.com/b", []byte(`{"bundle":"b"}`)))
	must(t, w.Commit())
	return dir
}

func read(t testing.TB, dir string) *Layout {
	t.Helper()
	l, err := Read(context.Background(), dir)
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	return l
}

// wantFault requires a fault of a class in a part whose text says something.
func wantFault(t testing.TB, dir string, class fault.Class, part, text string) {
	t.Helper()
	l := read(t, dir)
	for _, f := range l.Faults {
		if f.Class == class && strings.Contains(f.Part, part) && strings.Contains(f.Error(), text) {
			return
		}
	}
	t.Errorf("expected %s in %q saying %q, found %v", class, part, text, l.Err())
}

// layout is an archive in pieces whose documents can be changed; write puts it into a folder with every digest right.
type layout struct {
	blobs     [][]byte
	archive   manifest
	referrers []manifest
	index     func(*index)
	raw       func([]byte) []byte // changes the bytes of index.json
	rawArch   func([]byte) []byte // changes the bytes of the archive manifest
}

// newLayout is what build makes.
func newLayout() *layout {
	l := &layout{blobs: [][]byte{[]byte(emptyBytes)}}
	put := func(mediaType string, b []byte) descriptor {
		l.blobs = append(l.blobs, b)
		return describe(mediaType, digestsOf(b))
	}
	var ds []descriptor
	for title, content := range map[string]string{"a.txt": "a", "b.txt": "b"} {
		d := put("text/plain", []byte(content))
		d.Annotations = map[string]string{annotationTitle: title}
		ds = append(ds, d)
	}
	if ds[0].Annotations[annotationTitle] > ds[1].Annotations[annotationTitle] {
		ds[0], ds[1] = ds[1], ds[0]
	}
	l.archive = archiveManifest(ds)
	put(BundleType, []byte("{\"x\":1}"))
	l.referrers = []manifest{{}}
	return l
}

// write returns the folder.
func (l *layout) write(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	blobs := filepath.Join(dir, blobsName, "sha256")
	must(t, os.MkdirAll(blobs, 0o777))
	put := func(b []byte) Digests {
		g := digestsOf(b)
		must(t, os.WriteFile(filepath.Join(blobs, g.Hex()), b, 0o666))
		return g
	}
	for _, b := range l.blobs {
		put(b)
	}
	document := func(v any, change func([]byte) []byte) []byte {
		raw, err := strictjson.Marshal(v)
		must(t, err)
		if change != nil {
			raw = change(raw)
		}
		return raw
	}
	archive := put(document(l.archive, l.rawArch))
	var entries []descriptor
	for _, m := range l.referrers {
		if m.MediaType == "" { // the one good referrer
			m = referrerManifest(archive, digestsOf(l.blobs[len(l.blobs)-1]), "https://example.com/a")
		}
		entries = append(entries, referrerEntry(put(document(m, nil)), m.Annotations[annotationPredicate]))
	}
	x := layoutIndex(archiveEntry(archive), entries)
	if l.index != nil {
		l.index(&x)
	}
	must(t, os.WriteFile(filepath.Join(dir, indexName), document(x, l.raw), 0o666))
	must(t, os.WriteFile(filepath.Join(dir, layoutName), []byte(layoutBytes), 0o666))
	return dir
}
