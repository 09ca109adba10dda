package storetest

import (
	"io"
	"sync"

	"github.com/benchpin/benchpin/pkg/store"
)

// The decorators below pass everything on to a store and break one thing, so that tests see what users of the store do then.

// faulty hands out files that may be replaced by broken ones.
type faulty struct {
	store.Store
	open func(name string, f store.File) (store.File, error)
}

func (s faulty) Open(name string) (store.File, error) {
	f, err := s.Store.Open(name)
	if err != nil {
		return nil, err
	}
	g, err := s.open(name, f)
	if err != nil {
		_ = f.Close()
	}
	return g, err
}

// readAt is a file with another way of reading.
type readAt struct {
	store.File
	read func(p []byte, off int64) (int, error)
}

func (r readAt) ReadAt(p []byte, off int64) (int, error) { return r.read(p, off) }

// FlipBit returns a store that reads one bit of one file wrongly: bit number bit&7 of byte bit>>3.
func FlipBit(s store.Store, name string, bit int64) store.Store {
	return faulty{s, func(n string, f store.File) (store.File, error) {
		if n != name {
			return f, nil
		}
		return readAt{f, func(p []byte, off int64) (int, error) {
			m, err := f.ReadAt(p, off)
			if i := bit>>3 - off; i >= 0 && i < int64(m) {
				p[i] ^= 1 << (bit & 7)
			}
			return m, err
		}}, nil
	}}
}

// ShortRead returns a store in which reading one file ends after n bytes, while its description still gives the whole size:
// a file that was cut off behind the reader's back, or a store that lies.
func ShortRead(s store.Store, name string, n int64) store.Store {
	return faulty{s, func(opened string, f store.File) (store.File, error) {
		if opened != name {
			return f, nil
		}
		return readAt{f, func(p []byte, off int64) (int, error) {
			if off >= n {
				return 0, io.EOF
			}
			if int64(len(p)) <= n-off {
				return f.ReadAt(p, off)
			}
			m, err := f.ReadAt(p[:n-off], off)
			if err == nil {
				err = io.EOF
			}
			return m, err
		}}, nil
	}}
}

// FailOnce returns a store in which the first read of one file fails with err, and every later one works.
func FailOnce(s store.Store, name string, err error) store.Store {
	var mu sync.Mutex
	failed := false
	return faulty{s, func(n string, f store.File) (store.File, error) {
		if n != name {
			return f, nil
		}
		return readAt{f, func(p []byte, off int64) (int, error) {
			mu.Lock()
			first := !failed
			failed = true
			mu.Unlock()
			if first {
				return 0, err
			}
			return f.ReadAt(p, off)
		}}, nil
	}}
}

// OnRead returns a store that calls do before every read of one file, to change things while it is being read.
func OnRead(s store.Store, name string, do func(off int64)) store.Store {
	return faulty{s, func(n string, f store.File) (store.File, error) {
		if n != name {
			return f, nil
		}
		return readAt{f, func(p []byte, off int64) (int, error) {
			do(off)
			return f.ReadAt(p, off)
		}}, nil
	}}
}

// FailWrites returns a store whose writers accept limit bytes in all and then fail with err: a disk that is full.
func FailWrites(s store.Store, limit int64, err error) store.Store {
	return &full{Store: s, left: limit, err: err}
}

type full struct {
	store.Store
	mu   sync.Mutex
	left int64
	err  error
}

func (s *full) Create(name string, size int64) (store.Writer, error) {
	w, err := s.Store.Create(name, size)
	if err != nil {
		return nil, err
	}
	return &fullWriter{Writer: w, s: s}, nil
}

type fullWriter struct {
	store.Writer
	s      *full
	failed bool
}

func (w *fullWriter) Write(p []byte) (int, error) {
	w.s.mu.Lock()
	n := min(int64(len(p)), w.s.left)
	w.s.left -= n
	w.s.mu.Unlock()
	m, err := w.Writer.Write(p[:n])
	if err == nil && n < int64(len(p)) {
		err = w.s.err
	}
	w.failed = w.failed || err != nil
	return m, err
}

func (w *fullWriter) Commit() error {
	if w.failed {
		_ = w.Abort()
		return w.s.err
	}
	return w.Writer.Commit()
}
