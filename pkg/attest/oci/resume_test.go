package oci

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest/fault"
)

// pieces are the layers of an archive and the digest of its manifest.
func pieces(t *testing.T) (parts []Part, content map[string][]byte, manifestHex string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "whole")
	content = map[string][]byte{"a": []byte("first"), "b/c": bytes.Repeat([]byte("second"), 1000)}
	g, err := Pack(t.Context(), dir, []Source{FromBytes("a", "text/plain", content["a"]), FromBytes("b/c", "text/plain", content["b/c"])})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "blobs", "sha256", g.Hex()))
	if err != nil {
		t.Fatal(err)
	}
	if parts, err = ParseArchive(raw); err != nil {
		t.Fatal(err)
	}
	return parts, content, g.Hex()
}

func TestResume(t *testing.T) {
	parts, content, hex := pieces(t)
	parent := t.TempDir()
	dir := filepath.Join(parent, "new")
	from := func(b []byte) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	}
	never := func() (io.ReadCloser, error) { return nil, errors.New("it was asked for again") }
	w, err := Resume(dir, hex)
	if err != nil {
		t.Fatal(err)
	}
	// Nobody else works in the same place meanwhile.
	if _, err := Resume(dir, hex); err == nil || !strings.Contains(err.Error(), "under way") {
		t.Errorf("a second attempt at once: %v", err)
	}
	if err := w.AddPart(t.Context(), parts[0], from([]byte("other"))); !errors.Is(err, ErrPart) {
		t.Errorf("other content: %v", err)
	}
	if err := w.AddPart(t.Context(), parts[0], from(bytes.Repeat([]byte("x"), 1<<20))); !errors.Is(err, ErrPart) {
		t.Errorf("more content: %v", err)
	}
	if err := w.AddPart(t.Context(), Part{Title: "../x", Hex: parts[0].Hex, Size: parts[0].Size}, never); !errors.Is(err, fault.Title) {
		t.Errorf("a hostile title: %v", err)
	}
	if err := w.AddPart(t.Context(), parts[0], from(content["a"])); err != nil {
		t.Fatal(err)
	}
	kept, err := w.Keep()
	if err != nil {
		t.Fatal(err)
	}
	// What does not belong there, and what belongs there and was changed.
	blobs := filepath.Join(kept, "blobs", "sha256")
	for _, err := range []error{os.WriteFile(filepath.Join(kept, "index.json"), nil, 0o644), os.Mkdir(filepath.Join(blobs, strings.Repeat("0", 64)), 0o755),
		os.WriteFile(filepath.Join(blobs, strings.Repeat("1", 64)), []byte("x"), 0o644), os.WriteFile(filepath.Join(blobs, parts[1].Hex), []byte("changed"), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if w, err = Resume(dir, hex); err != nil {
		t.Fatal(err)
	}
	if err := w.AddPart(t.Context(), parts[0], never); err != nil {
		t.Error(err)
	}
	if err := w.AddPart(t.Context(), parts[1], from(content["b/c"])); err != nil {
		t.Error(err)
	}
	if g, err := w.Seal(t.Context()); err != nil || g.Hex() != hex {
		t.Errorf("sealed %s, %v", g.Hex(), err)
	}
	for range 2 { // attached twice is attached once
		if err := w.Attach(t.Context(), "https://example.com/x", []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	l, err := Read(t.Context(), dir)
	if err != nil || l.Err() != nil || l.Manifest.Hex() != hex || len(l.Bundles) != 1 {
		t.Errorf("read: %v, %v, %d bundles", err, l.Err(), len(l.Bundles))
	}
	l.Close()
	if left, _ := os.ReadDir(parent); len(left) != 1 {
		t.Errorf("left over: %v", left)
	}
	if _, err := Resume(dir, hex); !errors.Is(err, ErrExists) {
		t.Errorf("a place that is taken: %v", err)
	}
	if _, err := Resume(filepath.Join(parent, "y"), "../"+hex[3:]); err == nil {
		t.Error("a digest that is a path")
	}
}
