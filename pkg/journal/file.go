package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockWait is how long Append waits for others that append to the same file; each needs milliseconds.
const lockWait = 5 * time.Second

// ErrLocked is wrapped by the error of Append when another process holds the journal for long.
var ErrLocked = errors.New("another process holds the journal")

// Open reads and checks the journal in a file. Its error wraps fs.ErrNotExist where there is none.
func Open(path string) (*Journal, error) {
	f, err := open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f, path)
}

// open opens a regular file, without waiting for a pipe.
func open(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|unix.O_NONBLOCK, 0o666)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("expected a regular file")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("journal %s: %w", path, err), f.Close())
	}
	return f, nil
}

func read(f *os.File, path string) (*Journal, error) {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	j, err := Read(b)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	return j, nil
}

// Append adds an entry at the end of the journal in a file, which it makes when it is not there, and returns the journal as it is then.
// V, Seq, Prev and Torn of the entry are Append's to fill in. The file is locked against others that append, read and checked first: nothing
// is added to a broken journal. The entry is on the device when Append returns. A line that an earlier writer left unfinished is removed, and
// Torn tells of it.
func Append(path string, e Entry) (*Journal, error) {
	j, f, err := appendTo(path, e)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	return j, nil
}

// appendTo is Append, and returns the file too, locked, for the caller to unlock and close.
func appendTo(path string, e Entry) (j *Journal, f *os.File, err error) {
	_, statErr := os.Lstat(path)
	if f, err = locked(path); err != nil {
		return nil, nil, err
	}
	if j, err = add(f, path, e); err == nil && errors.Is(statErr, os.ErrNotExist) {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return j, f, nil
}

// add adds an entry to a file that is locked.
func add(f *os.File, path string, e Entry) (*Journal, error) {
	j, err := read(f, path)
	if err != nil {
		return nil, fmt.Errorf("%w; move it away to begin a new one: attestations that hold its head will show that", err)
	}
	e.V, e.Seq, e.Prev, e.Torn = Version, int64(len(j.Entries))+1, j.Head(), j.Torn
	line, err := e.Encode()
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	before := int64(len(j.Raw))
	if err := j.add(line); err != nil { // an end without a start, for example
		return nil, fmt.Errorf("journal %s: nothing is added: %w", path, err)
	}
	if before+int64(len(line)) > MaxBytes {
		return nil, fmt.Errorf("journal %s: it has %d bytes, and at most %d are read; move it away to begin a new one", path, before, MaxBytes)
	}
	j.Raw, j.Torn = append(j.Raw, line...), 0
	if e.Torn > 0 {
		if err := f.Truncate(before); err != nil {
			return nil, fmt.Errorf("journal %s: remove an unfinished line: %w", path, err)
		}
	}
	if _, err = f.WriteAt(line, before); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("journal %s: %w", path, err), f.Truncate(before))
	}
	return j, nil
}

// locked opens the journal for appending when nobody else has it.
func locked(path string) (*os.File, error) {
	for deadline := time.Now().Add(lockWait); ; {
		f, err := open(path, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return nil, err
		}
		switch err = flock(f); {
		case err == nil:
			mine, err := f.Stat()
			now, nerr := os.Stat(path)
			if err == nil && nerr == nil && os.SameFile(mine, now) {
				return f, nil
			}
			// It was moved away while we waited: what is at the path now is the journal.
		case errors.Is(err, unix.EWOULDBLOCK), errors.Is(err, unix.EINTR):
		default:
			return nil, errors.Join(fmt.Errorf("journal %s: lock: %w", path, err), f.Close())
		}
		if cerr := f.Close(); cerr != nil {
			return nil, fmt.Errorf("journal %s: %w", path, cerr)
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("journal %s: %w for more than %v", path, ErrLocked, lockWait)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// flock locks a file, without waiting. A network file system that cannot lock is left unlocked, as everywhere in benchpin.
func flock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
