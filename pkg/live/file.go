package live

import (
	"encoding/json"
	"errors"
	"fmt"
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

// OpenFile opens a file that samples are appended to; what it holds already stays. It may be a named pipe that somebody reads.
func OpenFile(name string) (*File, error) {
	// Not blocking, so that a pipe whose reader has gone, or that is full, can be given up.
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o666)
	switch {
	case errors.Is(err, syscall.ENXIO):
		return nil, fmt.Errorf("live samples: %s is a pipe that nobody reads: start its reader first: %w", name, err)
	case err != nil:
		return nil, fmt.Errorf("live samples: %w", err)
	}
	if info, err := f.Stat(); err != nil || info.IsDir() || info.Mode()&fs.ModeDevice != 0 && info.Mode()&fs.ModeCharDevice == 0 {
		return nil, errors.Join(fmt.Errorf("live samples: %s: expected a file, a pipe or a terminal", name), err, f.Close())
	}
	return &File{f: f, name: name}, nil
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
