package oci

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// vectorFiles calls do with the changed files of every vector of archives.
func vectorFiles(f *testing.F, do func(name string, content []byte)) {
	f.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "testdata", "vectors", "archive", "*.json"))
	must(f, err)
	if len(paths) == 0 {
		f.Fatal("there are no vectors")
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		must(f, err)
		var v struct{ Files map[string][]byte }
		must(f, json.Unmarshal(raw, &v))
		for name, content := range v.Files {
			do(name, content)
		}
	}
}

// FuzzManifest: the manifest of an archive has one form: what is read is written again as the same bytes.
func FuzzManifest(f *testing.F) {
	vectorFiles(f, func(name string, content []byte) {
		if bytes.Contains(content, []byte(ArtifactType)) && name != indexName {
			f.Add(content)
		}
	})
	f.Fuzz(func(t *testing.T, raw []byte) {
		parts, err := ParseArchive(raw)
		if err != nil {
			return
		}
		var layers []descriptor
		for _, p := range parts {
			if err := checkTitle(p.Title); err != nil {
				t.Fatal(err)
			}
			layers = append(layers, descriptor{MediaType: p.MediaType, Digest: sha256Digest("sha256:" + p.Hex), Size: p.Size,
				Annotations: map[string]string{annotationTitle: p.Title}})
		}
		if err := sameDocument(archiveManifest(layers), raw); err != nil {
			t.Fatalf("%s is read and would be written in another way: %v", raw, err)
		}
	})
}

// FuzzLayout: whatever stands in the index and the manifest of an archive, reading it gives faults with a class and no error, and an archive
// without faults is the one that was written.
func FuzzLayout(f *testing.F) {
	dir := newLayout().write(f)
	good := read(f, dir)
	name := good.Manifest.Hex()
	readFile := func(path ...string) []byte {
		raw, err := os.ReadFile(filepath.Join(append([]string{dir}, path...)...))
		must(f, err)
		return raw
	}
	index, archive := readFile(indexName), readFile(blobsName, "sha256", name)
	f.Add(index, archive)
	vectorFiles(f, func(name string, content []byte) {
		switch {
		case name == indexName:
			f.Add(content, archive)
		case bytes.Contains(content, []byte(ArtifactType)):
			f.Add(index, content)
		}
	})
	f.Add(bytes.Replace(index, []byte(name), []byte(strings.ToUpper(name)), 1), archive)
	f.Fuzz(func(t *testing.T, x, m []byte) {
		to := filepath.Join(t.TempDir(), "archive")
		must(t, os.CopyFS(to, os.DirFS(dir)))
		// The index goes on naming the manifest, so that what is in it is looked at.
		g := digestsOf(m)
		must(t, os.Remove(filepath.Join(to, blobsName, "sha256", name)))
		must(t, os.WriteFile(filepath.Join(to, blobsName, "sha256", g.Hex()), m, 0o666))
		x = bytes.ReplaceAll(x, []byte(name), []byte(g.Hex()))
		must(t, os.WriteFile(filepath.Join(to, indexName), x, 0o666))
		l := read(t, to)
		for _, found := range l.Faults {
			if found.Class == "" || found.Error() == "" {
				t.Fatalf("a fault without a class: %v", found)
			}
		}
		if l.Err() == nil && (!bytes.Equal(x, index) || !bytes.Equal(m, archive)) {
			t.Fatalf("accepted: %s and %s", x, m)
		}
		if err := l.Err(); err != nil && !errors.Is(err, l.Faults[0].Class) {
			t.Fatal(err)
		}
	})
}
