package pipeline

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
)

// fileOf describes a file of the run folder for the record.
func fileOf(dir, name string) (record.File, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return record.File{}, fmt.Errorf("file of the run: %w", err)
	}
	defer f.Close()
	h := blake3.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return record.File{}, fmt.Errorf("file of the run: %w", err)
	}
	return record.File{Name: name, Size: record.Int(n), Blake3: manifest.FormatDigest([32]byte(h.Sum(nil))).String()}, nil
}

// WriteFile writes a new file for a command: whole or not at all. Where something stands already, be it a device, nothing is written and the
// error wraps fs.ErrExist.
func WriteFile(path string, b []byte) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("write %s: %w: nothing is written over; choose another file", path, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return writeFile(path, b)
}

// writeFile writes a new file that is there whole or not at all, and brings it to the device.
func writeFile(path string, b []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(f.Name()))
		}
	}()
	if _, err = f.Write(b); err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}

// counted writes a number of things for people: "1 file", "2 files".
func counted[N ~int | ~int32 | ~int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// gigabytes writes a number of bytes for people, in powers of ten.
func gigabytes(n int64) string {
	switch {
	case n >= 1e12:
		return fmt.Sprintf("%.2f TB", float64(n)/1e12)
	case n >= 1e9:
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	default:
		return counted(n, "byte")
	}
}
