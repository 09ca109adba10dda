package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
)

// RemoveData deletes a data set after its run, as dataset.keep_files asks when it is false: the files that the manifest lists, where they
// still have the size that it says, and the folders that this leaves empty. Everything else in the folder stays. What was deleted can be
// generated again, byte for byte.
func RemoveData(ctx context.Context, data, manifestPath string) (err error) {
	m, err := manifest.Open(manifestPath)
	if err != nil {
		return err
	}
	defer m.Close()
	if m.Header().Recipe == nil {
		return fmt.Errorf("remove the data set: %s has no recipe, so that its files could not be made again; they are kept", manifestPath)
	}
	st, err := store.NewFolder(data, store.FolderOptions{})
	if err != nil {
		return err
	}
	defer st.Close()
	folders := map[string]bool{".": true}
	err = m.Entries(ctx, func(e manifest.Entry) error {
		for dir := path.Dir(e.Path); !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
		}
		info, err := st.Stat(e.Path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size != e.Size {
			return nil
		}
		if err != nil {
			return err
		}
		return st.Remove(e.Path)
	})
	if err != nil {
		return fmt.Errorf("remove the data set: %w", err)
	}
	// Inner folders first.
	var dirs []string
	for dir := range folders {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	slices.Reverse(dirs)
	for _, dir := range dirs {
		err := os.Remove(filepath.Join(data, filepath.FromSlash(dir)))
		if err != nil && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST) && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the data set: %w", err)
		}
	}
	return nil
}
