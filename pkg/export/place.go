package export

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/benchpin/benchpin/pkg/manifest"
)

// ErrPlace is returned when what is to be written would be one file more of the data set that it is about.
var ErrPlace = errors.New("it would be one file more of the data set")

// CheckPlace refuses a path in the folder of the source's data set, unless the manifest excludes it. A folder is that of the data set when the
// manifest's first file lies there with its size: nothing else is known of where the files are. Files that are elsewhere, or nowhere, are fine.
func (s *Source) CheckPlace(ctx context.Context, path string) error {
	var first *manifest.Entry
	found := errors.New("found")
	err := s.Manifest.Entries(ctx, func(e manifest.Entry) error { first = &e; return found })
	if first == nil {
		return err
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return err
	}
	// The folder of a new file may be a link into the data set.
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(first.Path)))
		if err == nil && info.Mode().IsRegular() && info.Size() == first.Size {
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			if name = filepath.ToSlash(name); !s.Manifest.Exclude().Match(name) && !s.Manifest.Exclude().MatchFolder(name) {
				return fmt.Errorf("export: %s: %w in %s: choose another place, or pin the data set with --exclude %s", path, ErrPlace, dir, name)
			}
			return nil
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}
