package journal

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Begun is an attempt that began in a journal, and has that very file open: wherever it is moved meanwhile, the end goes into the file in
// which the beginning stands. It is for one goroutine at a time.
type Begun struct {
	path string
	f    *os.File
}

// ErrRemoved is wrapped by the error of End when the journal in which the attempt began is gone, so that its end stands nowhere.
var ErrRemoved = errors.New("the journal was removed, or replaced by another file, while the run was at work")

// Begin is Append for the beginning of an attempt. The caller closes what it returns.
func Begin(path string, e Entry) (*Journal, *Begun, error) {
	j, f, err := appendTo(path, e)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_UN); err != nil && !errors.Is(err, unix.ENOLCK) && !errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil, errors.Join(fmt.Errorf("journal %s: unlock: %w", path, err), f.Close())
	}
	return j, &Begun{path, f}, nil
}

// Close lets go of the file. It is not locked between Begin and End.
func (b *Begun) Close() error { return b.f.Close() }

// End adds the end of the attempt to the file in which it began, and never makes a new one. moved says that this file is no longer at its path:
// the end stands in it, wherever it is now. Where the file is removed the error wraps ErrRemoved, and nothing is written.
func (b *Begun) End(e Entry) (moved bool, err error) {
	deadline := time.Now().Add(lockWait)
	for err = flock(b.f); err != nil; err = flock(b.f) {
		switch {
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return false, fmt.Errorf("journal %s: lock: %w", b.path, err)
		case time.Now().After(deadline):
			return false, fmt.Errorf("journal %s: %w for more than %v", b.path, ErrLocked, lockWait)
		}
		time.Sleep(2 * time.Millisecond)
	}
	defer func() {
		if uerr := unix.Flock(int(b.f.Fd()), unix.LOCK_UN); err == nil && uerr != nil && !errors.Is(uerr, unix.ENOLCK) && !errors.Is(uerr, unix.EOPNOTSUPP) {
			err = fmt.Errorf("journal %s: unlock: %w", b.path, uerr)
		}
	}()
	var mine unix.Stat_t
	if err := unix.Fstat(int(b.f.Fd()), &mine); err != nil {
		return false, fmt.Errorf("journal %s: %w", b.path, err)
	}
	if mine.Nlink == 0 {
		return false, fmt.Errorf("journal %s: %w: the end of run %s stands nowhere; the copy in the run folder (%s) has what was there when it began", b.path,
			ErrRemoved, e.Run, CopyName)
	}
	if _, err := add(b.f, b.path, e); err != nil {
		return false, err
	}
	now, err := os.Stat(b.path)
	if err != nil {
		return true, nil
	}
	was, err := b.f.Stat()
	return err == nil && !os.SameFile(was, now), nil
}
