package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/store"
)

// ErrUnstable is wrapped by the error about a file whose identity changed while it was hashed: somebody is writing to the
// data set, and no digest of it would mean anything.
var ErrUnstable = errors.New("the file changed while it was read")

// Opener opens files for reading.
type Opener interface {
	Open(name string) (store.File, error)
}

// Source is a store as far as pinning and verifying need it.
type Source interface {
	Opener
	List(ctx context.Context, yield func(store.Info) error) error
}

// chunk is what a worker reads at once: large enough for full speed of hash and device, small enough for many workers.
const chunk = 1 << 20

// HashFile reads a whole file and returns its BLAKE3 digest and its identity, which was the same before and after reading;
// otherwise the error matches ErrUnstable. buf is the memory to read into (best: 1 MiB from store.AlignedBuffer). progress,
// which may be nil, is called with the number of bytes of each piece.
func HashFile(ctx context.Context, src Opener, name string, buf []byte, progress func(n int)) (sum [32]byte, info store.Info, err error) {
	f, err := src.Open(name)
	if err != nil {
		return sum, info, fmt.Errorf("hash: %w", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("hash: %w", cerr)
		}
	}()
	if info, err = f.Info(); err != nil {
		return sum, info, fmt.Errorf("hash: %w", err)
	}
	if len(buf) == 0 {
		buf = store.AlignedBuffer(chunk)
	}
	h := blake3.New()
	var off int64
	for off < info.Size {
		if ctx.Err() != nil {
			return sum, info, fmt.Errorf("hash %s: %w", name, context.Cause(ctx))
		}
		p := buf[:min(int64(len(buf)), roundUp(info.Size-off))]
		n, err := f.ReadAt(p, off)
		if n > 0 {
			_, _ = h.Write(p[:n])
			off += int64(n)
			if progress != nil {
				progress(n)
			}
		}
		if err != nil && err != io.EOF {
			return sum, info, fmt.Errorf("hash: %w", err)
		}
		if n < len(p) && off != info.Size {
			return sum, info, fmt.Errorf("hash %s: %w: expected %d bytes, reading ended after %d", name, ErrUnstable, info.Size, off)
		}
	}
	after, err := f.Info()
	if err != nil {
		return sum, info, fmt.Errorf("hash: %w", err)
	}
	if off != info.Size || !after.Same(info) {
		return sum, info, fmt.Errorf("hash %s: %w: before %s, after %s; stop what writes to the data set and try again",
			name, ErrUnstable, identity(info), identity(after))
	}
	h.Sum(sum[:0])
	return sum, info, nil
}

// roundUp makes the last piece a multiple of the block size too, so that an uncached store can read it without a copy.
func roundUp(n int64) int64 { return (n + 4095) &^ 4095 }

func identity(i store.Info) string {
	return fmt.Sprintf("%d bytes, mtime %d, ctime %d, inode %d", i.Size, i.ModTime, i.ChangeTime, i.Inode)
}

// workers returns how many goroutines hash: n, or for n < 1 twice the number of cores, so that a device has something to do
// while cores hash.
func workers(n int) int {
	if n < 1 {
		n = 2 * runtime.GOMAXPROCS(0)
	}
	return min(n, 1024)
}

// meter adds up what was hashed and reports it to one callback, never from two goroutines at once.
type meter struct {
	mu           sync.Mutex
	files, bytes int64
	report       func(files, bytes int64)
}

func (m *meter) add(files, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files += files
	m.bytes += bytes
	if m.report != nil {
		m.report(m.files, m.bytes)
	}
}

func (m *meter) piece(n int) { m.add(0, int64(n)) }
