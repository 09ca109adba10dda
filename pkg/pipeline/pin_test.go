package pipeline

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/datagen"
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

// TestAlteredDataIsSaidToBe: a file that was altered after it was made is told from one that never was of the data set.
func TestAlteredDataIsSaidToBe(t *testing.T) {
	w := small(t).Workload
	l, _ := generated(t, w)
	path := filepath.Join(l.Data(), "train", "1", "img_4_of_9.npz")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[1000] ^= 1
	again := func() error {
		_, err := Generate(t.Context(), GenerateOptions{Workload: w, Data: l.Data(), Manifest: l.Manifest()})
		return err
	}
	for text, content := range map[string][]byte{"img_4_of_9.npz (its byte 1000 is not": b, "img_4_of_9.npz (expected": b[:1500]} {
		if err := os.WriteFile(path, content, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := again(); !errors.Is(err, ErrVerification) || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "delete what was altered") {
			t.Errorf("altered: %v", err)
		}
	}
	// The advice helps.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := again(); err != nil {
		t.Errorf("deleted: %v", err)
	}
	// Another data set was never altered.
	w.Benchpin.Seed++
	if err := again(); !errors.Is(err, datagen.ErrOccupied) || errors.Is(err, ErrVerification) {
		t.Errorf("another seed: %v", err)
	}
}
