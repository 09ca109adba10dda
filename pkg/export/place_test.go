package export

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/benchpin/benchpin/pkg/manifest"
)

// TestCheckPlace: what describes a data set is written nowhere below it, except where the manifest leaves it out.
func TestCheckPlace(t *testing.T) {
	entries := []manifest.Entry{{Path: "train/a.bin", Size: 3}, {Path: "train/b.bin", Size: 4}}
	s := open(t, saveManifest(t, manifest.Meta{Exclude: []string{"/croissant.json", "crate/"}}, entries...), "")
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	write(t, filepath.Join(data, "train", "a.bin"), []byte("abc"))
	write(t, filepath.Join(dir, "other", "train", "a.bin"), []byte("abcd"))
	must(t, os.Symlink(filepath.Join(data, "train"), filepath.Join(dir, "link")))
	for path, within := range map[string]bool{
		"croissant.json": false, "other/x.json": false, "data/croissant.json": false, "data/crate": false, "absent/x.json": false,
		"data/x.json": true, "data/train/x.json": true, "data/train/croissant.json": true, "data/absent/x": true, "link/x.json": true, "data/set.sig": true,
	} {
		if err := s.CheckPlace(t.Context(), filepath.Join(dir, path)); errors.Is(err, ErrPlace) != within || (err != nil) != within {
			t.Errorf("%s: %v", path, err)
		}
	}
	t.Chdir(data)
	if err := s.CheckPlace(t.Context(), "x.json"); !errors.Is(err, ErrPlace) {
		t.Errorf("relative: %v", err)
	}
	empty := open(t, saveManifest(t, manifest.Meta{}), "")
	must(t, empty.CheckPlace(t.Context(), "x.json"))
}
