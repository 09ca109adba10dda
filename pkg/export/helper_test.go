package export

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
)

// needPeer skips a test whose peer is missing, and fails it in continuous integration.
func needPeer(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip("SKIPPED: " + why)
}

// frozenArchive unpacks the archive of an earlier version that every version must read.
func frozenArchive(t *testing.T) string {
	t.Helper()
	f, err := os.Open("../../testdata/archives/v0/archive.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return filepath.Join(dir, "archive")
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, filepath.FromSlash(h.Name)), b)
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// open opens a source until the test ends.
func open(t *testing.T, path, manifestPath string) *Source {
	t.Helper()
	s, err := Open(t.Context(), path, manifestPath)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// runFolder writes the content of an archive as a run folder, with its manifest beside it. change may alter the record.
func runFolder(t *testing.T, change func(*record.Record)) (folder, manifestPath string) {
	t.Helper()
	s := open(t, frozenArchive(t), "")
	dir := t.TempDir()
	folder, manifestPath = filepath.Join(dir, "run"), filepath.Join(dir, "manifest.json")
	for _, c := range s.Contents {
		var b bytes.Buffer
		if _, err := c.copyTo(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(folder, c.Name)
		switch c.MediaType {
		case manifest.MediaType, manifest.EntriesMediaType, manifest.GroupsMediaType:
			to = filepath.Join(dir, c.Name)
		case record.MediaType:
			if change != nil {
				change(s.Record)
				raw, err := s.Record.Canonical()
				if err != nil {
					t.Fatal(err)
				}
				b.Reset()
				b.Write(raw)
			}
		}
		write(t, to, b.Bytes())
	}
	return folder, manifestPath
}

// saveManifest pins files that exist in name only.
func saveManifest(t *testing.T, meta manifest.Meta, entries ...manifest.Entry) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.json")
	f, err := manifest.Create(path, meta)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := f.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	return path
}

// inMemory makes a manifest that is no file.
func inMemory(t rapid.TB, meta manifest.Meta, entries ...manifest.Entry) *manifest.Manifest {
	var b bytes.Buffer
	w := manifest.NewWriter(&b, meta)
	for _, e := range entries {
		if err := w.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	h, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	header, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.OpenReaders(header, bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// card is a card that every format takes.
func card() Card {
	return Card{License: "https://spdx.org/licenses/CC-BY-4.0", URL: "https://example.com/set", Persons: []string{"Ada Example"},
		Organizations: []string{"Example"}, Publisher: "Example Press", Published: "2026-11-30", Version: "1.2.0", Citation: "@misc{set}"}
}

// runNode runs a script of testdata and returns what it prints.
func runNode(t *testing.T, script string, args ...string) []byte {
	t.Helper()
	cmd := nodeCommand(t, script, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node %s: %v\n%s", script, err, stderr.String())
	}
	return out
}

// nodeCommand is a script of testdata, to be run by Node.js with the packages of the npm registry that scripts/deps.sh brings.
func nodeCommand(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	modules, err := filepath.Abs("../../build/peers/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, "jsonld"))
	}
	if err != nil {
		needPeer(t, "Node.js with jsonld and ro-crate of the npm registry is missing (make deps): "+err.Error())
	}
	cmd := exec.CommandContext(t.Context(), node, append([]string{filepath.Join("testdata", script)}, args...)...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	return cmd
}
