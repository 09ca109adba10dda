package manifest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

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

// FileHash is what hashing a file gives.
type FileHash struct {
	Digest [32]byte   // BLAKE3 of its bytes
	Info   store.Info // its identity, which was the same before and after reading
	// Groups are the chaining values of its groups of 1 MiB, in order; nil for a file of no more than that.
	Groups [][32]byte
}

// HashOptions are the choices of HashFile. The zero value is good.
type HashOptions struct {
	// Workers is how many goroutines hash parts of the file; below 1: twice the number of cores.
	Workers int
	// Progress, if not nil, is called with the number of bytes of each piece, never two calls at once.
	Progress func(n int)
}

// HashFile reads a whole file, several parts of a large one at the same time. The error matches ErrUnstable where the file's identity
// was not the same before and after. Memory: 1 MiB for each worker, and 32 bytes for each MiB of the file.
func HashFile(ctx context.Context, src Opener, name string, o HashOptions) (h FileHash, err error) {
	m := &meter{}
	if o.Progress != nil {
		var before int64
		m.report = func(_, bytes int64) {
			if n := bytes - before; n > 0 {
				o.Progress(int(n))
			}
			before = bytes
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	jobs := make(chan hashJob, 1)
	jobs <- hashJob{name, func(got FileHash, err error) error {
		h = got
		return err
	}}
	close(jobs)
	hashAll(ctx, g, src, jobs, o.Workers, m)
	return h, g.Wait()
}

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
