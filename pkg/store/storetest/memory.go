package storetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchpin/benchpin/pkg/store"
)

// Memory is a store in memory, for tests that need no file system. It passes the contract suite.
type Memory struct {
	mu    sync.Mutex
	files map[string]*memoryFile
	inode uint64
}

type memoryFile struct {
	data []byte
	info store.Info
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{files: map[string]*memoryFile{}} }

// Put stores a file without further ado.
func (m *Memory) Put(name string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inode++
	now := time.Now().UnixNano()
	m.files[name] = &memoryFile{bytes.Clone(data), store.Info{
		Path: name, Size: int64(len(data)), ModTime: now, ChangeTime: now, Inode: m.inode, Device: 1,
	}}
}

// Remove forgets a file.
func (m *Memory) Remove(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, name)
}

func (m *Memory) find(op, name string) (*memoryFile, error) {
	if err := store.CheckName(name); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.files[name]
	if !ok {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return f, nil
}

// Open implements store.Store.
func (m *Memory) Open(name string) (store.File, error) {
	f, err := m.find("open", name)
	if err != nil {
		return nil, err
	}
	return &openMemory{Reader: bytes.NewReader(f.data), info: f.info}, nil
}

// Stat implements store.Store.
func (m *Memory) Stat(name string) (store.Info, error) {
	f, err := m.find("stat", name)
	if err != nil {
		return store.Info{}, err
	}
	return f.info, nil
}

// List implements store.Store.
func (m *Memory) List(ctx context.Context, yield func(store.Info) error) error {
	m.mu.Lock()
	names := slices.Sorted(maps.Keys(m.files))
	m.mu.Unlock()
	for _, n := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f, err := m.find("list", n)
		if err != nil {
			continue // removed meanwhile
		}
		if err := yield(f.info); err != nil {
			return err
		}
	}
	return nil
}

// Create implements store.Store.
func (m *Memory) Create(name string, size int64) (store.Writer, error) {
	if err := store.CheckName(name); err != nil {
		return nil, err
	}
	if store.IsTemporary(name) {
		return nil, fmt.Errorf("%w %q: it is a temporary name", store.ErrName, name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for other := range m.files {
		if strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") {
			return nil, fmt.Errorf("create %s: %w: %s is there", name, store.ErrIrregular, other)
		}
	}
	return &memoryWriter{m: m, name: name, size: size}, nil
}

type openMemory struct {
	*bytes.Reader
	info   store.Info
	mu     sync.Mutex
	closed bool
}

func (o *openMemory) use() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return fmt.Errorf("%s: %w", o.info.Path, fs.ErrClosed)
	}
	return nil
}

func (o *openMemory) ReadAt(p []byte, off int64) (int, error) {
	if err := o.use(); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	return o.Reader.ReadAt(p, off)
}

func (o *openMemory) Info() (store.Info, error) { return o.info, o.use() }

func (o *openMemory) Close() error {
	err := o.use()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return err
}

type memoryWriter struct {
	m     *Memory
	name  string
	size  int64
	buf   bytes.Buffer
	ended bool
	err   error
}

func (w *memoryWriter) Write(p []byte) (int, error) {
	switch {
	case w.ended:
		return 0, fmt.Errorf("write %s: %w", w.name, fs.ErrClosed)
	case w.size >= 0 && int64(w.buf.Len()+len(p)) > w.size:
		w.err = fmt.Errorf("write %s: more than %d bytes: %w", w.name, w.size, io.ErrShortWrite)
	}
	if w.err != nil {
		return 0, w.err
	}
	return w.buf.Write(p)
}

func (w *memoryWriter) Commit() error {
	if w.ended {
		return fmt.Errorf("commit %s: %w", w.name, fs.ErrClosed)
	}
	w.ended = true
	if w.err != nil {
		return w.err
	}
	if w.size >= 0 && int64(w.buf.Len()) != w.size {
		return fmt.Errorf("commit %s: expected %d bytes, found %d", w.name, w.size, w.buf.Len())
	}
	w.m.Put(w.name, w.buf.Bytes())
	return nil
}

func (w *memoryWriter) Abort() error {
	w.ended = true
	return nil
}
