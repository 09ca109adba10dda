package datagen

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchpin/benchpin/pkg/manifest"
)

// errFolder is wrapped by the error of a process that does not see the data folder that the first one sees.
var errFolder = errors.New("the data folder is not the one that process 0 generates into")

// seenWithin is how long a file that another host wrote may take to be seen here: network file systems remember what was not there.
const seenWithin = 10 * time.Second

// begun is what process 0 tells the others when it has looked at the data folder.
type begun struct {
	// Marked: the marker stands there. Files are those of the recipe that do.
	Marked bool
	Files  int
	// Checking: a pass that compares what is there comes first.
	Checking bool
}

// several is true where several processes generate.
func (o *Options) several() bool { return o.World != nil && o.World.Size() > 1 }

// leads is true in the one that looks at the folder and pins.
func (o *Options) leads() bool { return o.World == nil || o.World.Rank() == 0 }

// tell brings what process 0 found to all, or that it failed.
func (o *Options) tell(ctx context.Context, b begun, failed error) (begun, error) {
	if !o.several() {
		return b, failed
	}
	if err := o.World.Agree(ctx, failed); err != nil {
		return b, err
	}
	doc, err := json.Marshal(b)
	if err == nil {
		doc, err = o.World.BroadcastBytes(ctx, doc)
	}
	if err == nil {
		err = json.Unmarshal(doc, &b)
	}
	return b, err
}

// follow is Generate in a process that is not the first: it makes its share of the files, and hands on what goes into the manifest.
func follow(ctx context.Context, st Store, r Recipe, o Options) error {
	if err := o.World.Handshake(ctx, map[string]string{"recipe": string(r.raw)}); err != nil {
		return err
	}
	b, err := o.tell(ctx, begun{}, nil)
	if err != nil {
		return err
	}
	g := &generator{st: st, r: r, o: o, have: found{marker: b.Marked, files: b.Files}}
	if b.Checking { // before anything is marked
		g.checking = true
		if err := g.files(ctx, nil); err != nil {
			return err
		}
		g.checking = false
	}
	if b, err = o.tell(ctx, begun{}, nil); err != nil {
		return err
	}
	if err := o.World.Agree(ctx, g.sees(ctx, b.Marked)); err != nil {
		return err
	}
	if err := g.files(ctx, nil); err != nil {
		return err
	}
	_, err = o.tell(ctx, begun{}, nil) // process 0 has the manifest
	return err
}

// sees looks for the marker that process 0 left in the data folder, if it did.
func (g *generator) sees(ctx context.Context, marked bool) error {
	if !marked {
		return nil // all files are there, and are opened
	}
	for patience := time.Now().Add(seenWithin); ; {
		err := checkMarker(g.st, g.r)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if time.Now().After(patience) {
			return fmt.Errorf("%w: its %s is not seen here; give all processes the same folder, on a file system that all hosts have mounted", errFolder, Marker)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// slot is one file, in the order of paths.
type slot struct {
	spec FileSpec
	// done gets what this process made; nil for a file of another process.
	done chan made
	from int // that process
}

// mine says which process makes the file of a place in the order of paths.
func (g *generator) mine(place int) (process int, here bool) {
	if !g.o.several() {
		return 0, true
	}
	process = place % g.o.World.Size()
	return process, process == g.o.World.Rank()
}

// shares makes all files, each process its share, and calls add with all entries in the first one.
func (g *generator) shares(ctx context.Context, add func(manifest.Entry, [][32]byte) error) error {
	ctx, free := g.o.World.Context(ctx)
	defer free()
	if g.o.leads() {
		return g.o.World.Gather(ctx, nil, func(streams []io.Reader) error {
			others := make([]*bufio.Reader, len(streams))
			for p := 1; p < len(streams); p++ {
				others[p] = bufio.NewReaderSize(streams[p], 16<<10)
			}
			return g.make(ctx, func(s slot, f made) error {
				if s.done == nil {
					var err error
					if f, err = receiveMade(others[s.from]); err != nil {
						return fmt.Errorf("%s, which process %d makes: %w", s.spec.Path, s.from, err)
					}
					g.report(1, f.size)
				}
				return add(manifest.Entry{Path: s.spec.Path, Size: f.size, Digest: f.digest}, f.groups)
			})
		})
	}
	src, in := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w := bufio.NewWriterSize(in, 16<<10)
		err := g.make(ctx, func(_ slot, f made) error { return sendMade(w, f) })
		if err == nil {
			err = w.Flush()
		}
		in.CloseWithError(err)
	}()
	err := g.o.World.Gather(ctx, src, nil)
	src.CloseWithError(errors.New("nobody takes what is made"))
	<-ended
	return err
}

// make makes this process's files with all workers, and calls each with every file in the order of paths: in the first process those of
// the others too.
func (g *generator) make(ctx context.Context, each func(slot, made) error) error {
	group, ctx := errgroup.WithContext(ctx)
	jobs, order := make(chan slot), make(chan slot, window)
	group.Go(func() error {
		defer close(jobs)
		defer close(order)
		place := -1
		for _, f := range g.r.Sorted() {
			place++
			process, here := g.mine(place)
			s := slot{spec: f, from: process}
			to := []chan slot{order}
			if here {
				s.done = make(chan made, 1)
				to = append(to, jobs)
			} else if !g.o.leads() {
				continue
			}
			for _, to := range to {
				select {
				case to <- s:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		}
		return nil
	})
	for range min(g.workers(), g.r.Entries()) {
		group.Go(func() error {
			w := g.newWorker()
			for s := range jobs {
				file, err := w.file(ctx, s.spec)
				if err != nil {
					return err
				}
				g.report(1, 0)
				s.done <- file
			}
			return nil
		})
	}
	group.Go(func() error {
		for s := range order {
			var f made
			if s.done != nil {
				select {
				case f = <-s.done:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			if err := each(s, f); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// sendMade writes what is known of a file for process 0: its size, its digest, and how many groups of which digests.
func sendMade(w io.Writer, f made) error {
	b := make([]byte, 0, 44)
	b = binary.BigEndian.AppendUint64(b, uint64(f.size))
	b = append(b, f.digest[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.groups)))
	if _, err := w.Write(b); err != nil {
		return err
	}
	for i := range f.groups {
		if _, err := w.Write(f.groups[i][:]); err != nil {
			return err
		}
	}
	return nil
}

// mostGroups bounds what a process may say of one file: 2^20 groups are a file of many terabytes.
const mostGroups = 1 << 28

func receiveMade(r io.Reader) (f made, err error) {
	var b [44]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return f, err
	}
	f.size = int64(binary.BigEndian.Uint64(b[:]))
	copy(f.digest[:], b[8:])
	n := binary.BigEndian.Uint32(b[40:])
	if f.size < 0 || n > mostGroups {
		return f, fmt.Errorf("%d bytes in %d groups", f.size, n)
	}
	for range n {
		var d [32]byte
		if _, err := io.ReadFull(r, d[:]); err != nil {
			return f, err
		}
		f.groups = append(f.groups, d)
	}
	return f, nil
}
