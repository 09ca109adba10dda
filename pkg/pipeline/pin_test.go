package pipeline

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestPinReplacesNoManifest: the manifest of a generated data set holds its recipe, and pinning cannot find it again.
func TestPinReplacesNoManifest(t *testing.T) {
	l, m := generated(t, small(t).Workload)
	before, err := os.ReadFile(l.Manifest())
	if err != nil {
		t.Fatal(err)
	}
	o := PinOptions{Data: l.Data(), Manifest: l.Manifest()}
	h, err := Pin(t.Context(), o)
	if err != nil || h.Root != m.Header().Root || h.Recipe == nil {
		t.Errorf("the same files: root %s, recipe %s, %v", h.Root, h.Recipe, err)
	}
	if err := os.WriteFile(filepath.Join(l.Data(), "more"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Pin(t.Context(), o); !errors.Is(err, ErrPinned) {
		t.Errorf("other files: expected %v, found %v", ErrPinned, err)
	}
	if after, err := os.ReadFile(l.Manifest()); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the manifest was replaced: %v", err)
	}
	o.Manifest = filepath.Join(l.Dir, "other.json")
	if h, err = Pin(t.Context(), o); err != nil || h.Count != 10 {
		t.Errorf("another manifest: %d files, %v", h.Count, err)
	}
	if err := os.Truncate(l.Manifest(), 20); err != nil {
		t.Fatal(err)
	}
	o.Manifest = l.Manifest()
	if _, err := Pin(t.Context(), o); err == nil {
		t.Error("a damaged manifest was replaced")
	}
}
