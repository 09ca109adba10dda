package pipeline

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
)

// infoBytes is the length of a file's identity as processes send it: the fields of store.Info but the path.
const infoBytes = 5 * 8

// shareKnown gives every process the identities of the files that each of them has looked at (run.mine).
func (r *run) shareKnown(ctx context.Context) error {
	if !several(r.World) {
		return nil
	}
	process, processes := r.World.Rank(), r.World.Size()
	own := r.sendKnown(process, processes)
	defer own.Close()
	err := r.World.Gather(ctx, own, func(streams []io.Reader) error {
		for p := 1; p < len(streams); p++ {
			w := knownWriter{r: r, next: p, step: processes}
			if _, err := io.Copy(&w, streams[p]); err != nil {
				return err
			}
			if err := w.done(); err != nil {
				return fmt.Errorf("identities of the files that process %d looked at: %w", p, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var all io.Reader // of the others none: what they would send is being written
	if leads(r.World) {
		sent := r.sendKnown(0, 1)
		defer sent.Close()
		all = sent
	}
	w := knownWriter{r: r, step: 1}
	if err := r.World.Broadcast(ctx, all, &w); err != nil {
		return err
	}
	if !leads(r.World) {
		if err := w.done(); err != nil {
			return fmt.Errorf("identities of all files: %w", err)
		}
	}
	return r.ownDevices(ctx)
}

// sendKnown reads as the identities of every step-th entry of the manifest, from first on.
func (r *run) sendKnown(first, step int) io.ReadCloser {
	out, in := io.Pipe()
	go func() {
		w := bufio.NewWriterSize(in, 32<<10)
		var b [infoBytes]byte
		var err error
		for index := first; index < len(r.files.byEntry) && err == nil; index += step {
			i := &r.known[r.files.byEntry[index]]
			for k, v := range [...]uint64{uint64(i.Size), uint64(i.ModTime), uint64(i.ChangeTime), i.Inode, i.Device} {
				binary.BigEndian.PutUint64(b[8*k:], v)
			}
			_, err = w.Write(b[:])
		}
		if err == nil {
			err = w.Flush()
		}
		in.CloseWithError(err)
	}()
	return out
}

// knownWriter takes identities of every step-th entry of the manifest.
type knownWriter struct {
	r          *run
	next, step int
	part       []byte // of an identity
}

func (w *knownWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		take := min(len(p), infoBytes-len(w.part))
		w.part, p = append(w.part, p[:take]...), p[take:]
		if len(w.part) < infoBytes {
			break
		}
		if w.next >= len(w.r.files.byEntry) {
			return 0, fmt.Errorf("more than the manifest has files")
		}
		v := func(k int) uint64 { return binary.BigEndian.Uint64(w.part[8*k:]) }
		w.r.known[w.r.files.byEntry[w.next]] = store.Info{Size: int64(v(0)), ModTime: int64(v(1)), ChangeTime: int64(v(2)), Inode: v(3), Device: v(4)}
		w.next += w.step
		w.part = w.part[:0]
	}
	return n, nil
}

// done is an error unless all identities came.
func (w *knownWriter) done() error {
	if w.next < len(w.r.files.byEntry) || len(w.part) > 0 {
		return fmt.Errorf("they end before entry %d of %d", w.next, len(w.r.files.byEntry))
	}
	return nil
}

// ownDevices exchanges the device numbers that other hosts have for file systems for those of this host, which number the devices of a
// network file system each for itself. One look at a file of each tells; that all files of one lie on one here is checked when they are
// opened.
func (r *run) ownDevices(ctx context.Context) error {
	type device struct {
		node   string
		number uint64
	}
	here := map[device]uint64{}
	away := false
	for p := range r.World.Size() {
		away = away || r.World.NodeOf(p) != r.World.Node()
	}
	if !away || IsBucket(r.Data) {
		return nil
	}
	index := 0
	return r.manifest.Entries(ctx, func(e manifest.Entry) error {
		node := r.World.NodeOf(index % r.World.Size())
		i := &r.known[r.files.byEntry[index]]
		index++
		if node == r.World.Node() {
			return nil
		}
		number, known := here[device{node, i.Device}]
		if !known {
			info, err := r.data.Stat(e.Path)
			if err != nil {
				return fmt.Errorf("look at the data set: %w", err)
			}
			number = info.Device
			here[device{node, i.Device}] = number
		}
		i.Device = number
		return nil
	})
}
