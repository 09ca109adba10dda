package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/benchpin/benchpin/pkg/store"
)

// mostLookedAt is how much of a file is read to tell whether it is one that may be replaced. A badge is far smaller, and a page says what it
// is in its first lines.
const mostLookedAt = 1 << 14

// mustBeReplaceable refuses to write over anything but an earlier file of the same kind, by its content, or an empty one: a name given by
// mistake may be that of a manifest, a record or a key. Nor is anything written into an archive that is read, which it would damage.
func mustBeReplaceable(flag, path, kind string, isOne func(b []byte) bool, read []resultAt) error {
	for _, at := range read {
		if _, err := os.Lstat(filepath.Join(at.path, "oci-layout")); err != nil {
			continue
		}
		inside, err := store.Inside(at.path, path)
		if err != nil {
			return fmt.Errorf("%s %s: %w", flag, path, err)
		}
		if inside {
			return usagef("%s %s: it lies in the archive %s, which would not verify any more; choose a path outside of it", flag, path, at.name)
		}
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", flag, err)
	case !info.Mode().IsRegular():
		return usagef("%s %s is there already and is no regular file: expected a new file, or %s to replace", flag, path, kind)
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	defer func() { _ = f.Close() }() // read only
	b, err := io.ReadAll(io.LimitReader(f, mostLookedAt))
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	if len(b) > 0 && !isOne(b) {
		return usagef("%s %s is there already and is not %s: nothing else is written over; choose another file, or remove it first", flag, path, kind)
	}
	return nil
}

// writeWhole writes a file whole or not at all, over one that mustBeReplaceable has let through.
func writeWhole(name string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".benchpin-report-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error is the one that counts
	}
	return err
}
