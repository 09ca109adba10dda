package store_test

import (
	"path/filepath"
	"testing"

	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/storetest"
)

func TestFolderContract(t *testing.T) {
	for name, o := range map[string]store.FolderOptions{
		"cached": {}, "uncached": {Uncached: true}, "resident": {Uncached: true, Resident: true}, "sync": {Sync: true}, "begin": {Begin: true},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) store.Store {
				f, err := store.NewFolder(filepath.Join(t.TempDir(), "root"), o)
				if err != nil {
					t.Fatal(err)
				}
				return f
			})
		})
	}
}
