package pipeline

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/benchpin/benchpin/pkg/manifest"
)

// TestKeepFiles: without keep_files the data set is gone at the end, the archive verifies without it, and it can be made again.
func TestKeepFiles(t *testing.T) {
	l, out := gone(t, "dataset.keep_files=false")
	if !out.Verification.OK() {
		t.Errorf("the archive does not verify: %v", out.Verification.Err())
	}
	if _, err := os.Lstat(l.Data()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data set is still there: %v", err)
	}
	// Where the data set was, nothing is left; its manifest is in the run folder, from where the run can be attested once more.
	for _, path := range []string{l.Manifest(), manifest.EntriesPath(l.Manifest())} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	key, _, err := ownKey(l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Attest(t.Context(), AttestOptions{Run: out.Run, Archive: filepath.Join(t.TempDir(), "again"), Key: key}); err != nil {
		t.Errorf("attested once more: %v", err)
	}
	w := small(t).Workload
	h, err := Generate(t.Context(), GenerateOptions{Workload: w, Data: l.Data(), Manifest: filepath.Join(t.TempDir(), "m.json")})
	if err != nil || h.Root.String() != out.Record.Dataset.Root {
		t.Errorf("made again with root %s, %v; the record has %s", h.Root, err, out.Record.Dataset.Root)
	}
}

// TestRemoveDataTouchesNothingElse: files that the manifest does not list, or not with this size, stay, and their folders with them.
func TestRemoveDataTouchesNothingElse(t *testing.T) {
	w := described(t, "format: tfrecord, record_length_bytes: 400, num_samples_per_file: 5")
	l, _ := generated(t, w)
	mine := filepath.Join(l.Data(), "train/1/notes.txt")
	if err := os.WriteFile(mine, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(l.Data(), "valid/img_0_of_5.tfrecord")
	if err := os.WriteFile(changed, []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := RemoveData(t.Context(), nil, l.Data(), l.Manifest()); err != nil {
		t.Fatal(err)
	}
	var left []string
	err := filepath.WalkDir(l.Data(), func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			rel, _ := filepath.Rel(l.Data(), path)
			left = append(left, rel)
		}
		return err
	})
	if want := []string{".", "train", "train/1", "train/1/notes.txt", "valid", "valid/img_0_of_5.tfrecord"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %v, %v; want %v", left, err, want)
	}
	// A data set that nobody can make again is kept.
	pinned := filepath.Join(t.TempDir(), "pinned.json")
	if _, err := Pin(t.Context(), PinOptions{Data: l.Data(), Manifest: pinned}); err != nil {
		t.Fatal(err)
	}
	if err := RemoveData(t.Context(), nil, l.Data(), pinned); err == nil {
		t.Error("a data set without a recipe was removed")
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
}
