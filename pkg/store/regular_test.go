package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOpenRegular(t *testing.T) {
	dir := t.TempDir()
	file, link, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(file, []byte("abc"), 0o666), os.Symlink(file, link), unix.Mkfifo(pipe, 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link} {
		if b, err := ReadRegular(path, 3); err != nil || string(b) != "abc" {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
	if _, err := ReadRegular(file, 2); err == nil {
		t.Error("more was read than the limit")
	}
	for _, path := range []string{pipe, dir, "/dev/null"} { // the pipe would block until somebody writes
		if _, err := OpenRegular(path); !errors.Is(err, ErrIrregular) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := OpenRegular(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
