package store_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/storetest"
)

// kinds are the ways in which a folder can be read and written.
var kinds = map[string]store.FolderOptions{
	"cached": {}, "uncached": {Uncached: true}, "resident": {Uncached: true, Resident: true}, "sync": {Sync: true}, "begin": {Begin: true},
	"settle": {Uncached: true, Settle: true}, "direct": {Direct: true},
}

// able skips, but in CI, a kind that the file system of temporary files does not have.
func able(t *testing.T, root string, o store.FolderOptions) {
	t.Helper()
	if !o.Direct {
		return
	}
	probe := filepath.Join(root, "probe")
	if err := os.WriteFile(probe, make([]byte, 5000), 0o666); err != nil {
		t.Fatal(err)
	}
	f := folder(t, root, o)
	if err := f.CheckDirect("probe"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if err := os.Remove(probe); err != nil {
		t.Fatal(err)
	}
}

func folder(t *testing.T, root string, o store.FolderOptions) *store.Folder {
	t.Helper()
	f, err := store.NewFolder(root, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestFolderContract: the folder that is read past the page cache does what the others do.
func TestFolderContract(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		t.Run(name, func(t *testing.T) {
			able(t, t.TempDir(), kinds[name])
			storetest.Run(t, func(t *testing.T) store.Store {
				return folder(t, filepath.Join(t.TempDir(), "root"), kinds[name])
			})
		})
	}
}

// TestFolderLarge: files of more than 4 GiB are read as small ones are, by every kind.
func TestFolderLarge(t *testing.T) {
	root := t.TempDir()
	l, err := storetest.MakeLarge(filepath.Join(root, "large"))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("no large files with holes here: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		t.Run(name, func(t *testing.T) {
			able(t, root, kinds[name])
			f := folder(t, root, kinds[name])
			l.Run(t, f, "large")
			if name == "cached" || name == "direct" {
				l.Whole(t, f, "large")
			}
			if err := f.Evict("large"); err != nil {
				t.Error(err)
			}
		})
	}
}
