package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// File appends samples to a file as lines of JSON.
type File struct {
	f    *os.File
	name string
	err  error
}

// patience is how long a pipe may take a line, before no more are written to it.
const patience = time.Second

// ErrUnfit is wrapped by the error about a name that no samples can be appended to: that of a folder, of a place that does not exist, or of a
// file that holds something else.
var ErrUnfit = errors.New("live samples")

// longestLine bounds the first line of a file that is looked at.
const longestLine = 1 << 14

// OpenFile opens a file that samples are appended to; what it holds already stays, and must be samples: lines at the end of another file
// would damage it. It may be a named pipe that somebody reads. It fails with ErrUnfit.
func OpenFile(name string) (*File, error) {
	// Not blocking, so that a pipe whose reader has gone, or that is full, can be given up.
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o666)
	switch {
	case errors.Is(err, syscall.ENXIO):
		return nil, fmt.Errorf("live samples: %s is a pipe that nobody reads: start its reader first: %w", name, err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR):
		return nil, fmt.Errorf("%w: %w; expected a file, a pipe or a terminal", ErrUnfit, err)
	case err != nil:
		return nil, fmt.Errorf("live samples: %w", err)
	}
	if err := fit(f, name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &File{f: f, name: name}, nil
}

// fit refuses what no samples belong to.
func fit(f *os.File, name string) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("live samples: %w", err)
	case info.IsDir() || info.Mode()&fs.ModeDevice != 0 && info.Mode()&fs.ModeCharDevice == 0:
		return fmt.Errorf("%w: %s: expected a file, a pipe or a terminal", ErrUnfit, name)
	case !info.Mode().IsRegular() || info.Size() == 0:
		return nil
	}
	there, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("live samples: %s holds something, and what it is must be seen before anything is appended: %w", name, err)
	}
	defer func() { _ = there.Close() }() // read only
	line := make([]byte, longestLine)
	n, err := io.ReadFull(there, line)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("live samples: %w", err)
	}
	line, _, whole := bytes.Cut(line[:n], []byte("\n"))
	var s Sample
	if !whole || json.Unmarshal(line, &s) != nil || s.Schema != Schema {
		return fmt.Errorf("%w: %s holds something else already, and nothing is appended to it; expected a new file, an empty one, or one that begins with a line of "+
			"samples (%q)", ErrUnfit, name, Schema)
	}
	return nil
}

// Write appends a sample. After an error nothing more is written, so that no line follows half a line; the error is returned once.
func (f *File) Write(s Sample) error {
	if f.err != nil {
		return nil
	}
	line, err := json.Marshal(s)
	if err == nil {
		if derr := f.f.SetWriteDeadline(time.Now().Add(patience)); derr != nil && !errors.Is(derr, os.ErrNoDeadline) {
			err = derr
		} else {
			_, err = f.f.Write(append(line, '\n'))
		}
	}
	if err != nil {
		f.err = fmt.Errorf("live samples: %w; no more are written", err)
	}
	return f.err
}

// Close closes the file.
func (f *File) Close() error { return f.f.Close() }
