package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// RemoveData deletes a data set after its run, as dataset.keep_files asks when it is false: the files that the manifest lists, where they
// still have the size that it says, and the folders that this leaves empty. Everything else in the folder stays. What was deleted can be
// generated again, byte for byte. A bucket is reached as the workload says.
func RemoveData(ctx context.Context, w *workload.Workload, data, manifestPath string) (err error) {
	m, err := manifest.Open(manifestPath)
	if err != nil {
		return err
	}
	defer m.Close()
	if m.Header().Recipe == nil {
		return fmt.Errorf("remove the data set: %s has no recipe, so that its files could not be made again; they are kept", manifestPath)
	}
	st, err := openPlace(ctx, w, data, false, store.FolderOptions{})
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
	if IsBucket(data) {
		return nil // which has no folders
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

// keepManifest moves the manifest of a data set that was removed into the run folder, under the name NoDataManifest: beside data that are
// not there it would be in the way, and to attest the run takes it.
func keepManifest(manifestPath, run string) error {
	to := filepath.Join(run, NoDataManifest)
	// The header goes last, and leaves last: without it the others are no manifest.
	for _, file := range []struct{ from, to string }{
		{manifest.GroupsPath(manifestPath), manifest.GroupsPath(to)}, {manifest.EntriesPath(manifestPath), manifest.EntriesPath(to)}, {manifestPath, to},
	} {
		err := move(file.from, file.to)
		if errors.Is(err, fs.ErrNotExist) && file.from == manifest.GroupsPath(manifestPath) {
			continue // not every manifest has one
		}
		if err != nil {
			return fmt.Errorf("move the manifest of the removed data set to the run folder: %w", err)
		}
	}
	return nil
}

// move renames a file, or copies it where that is another file system.
func move(from, to string) error {
	err := os.Rename(from, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return os.Remove(from)
}
