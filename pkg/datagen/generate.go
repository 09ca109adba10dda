package datagen

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"sync"

	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/manifest/blake"
	"github.com/benchpin/benchpin/pkg/store"
)

// Progress says how far generating has come. Files and bytes that were there already count when they were compared. AllBytes is -1
// where it is not known before all is made (Recipe.Exact).
type Progress struct {
	Files, AllFiles int64
	Bytes, AllBytes int64
}

// Options are the choices of Generate. The zero value is good.
type Options struct {
	// Workers is how many files are made at once; below 1: the number of cores.
	Workers int
	// Manifest is the path of the manifest's header (NAME.json); "" writes none. It must not lie in the data folder.
	Manifest string
	// World are the processes that make the data set together, this one among them; each makes its share of the files, into the same store.
	// Nil: this one makes all. Process 0 looks at the folder and writes the manifest, and alone returns its header.
	World *cluster.World
	// Progress, if not nil, is called after each piece of at most 1 MiB, never two calls at once.
	Progress func(Progress)
}

const (
	// pieceBytes is the memory of a worker, twice where it compares.
	pieceBytes = 1 << 20
	// companionBytes is the memory of a worker for companions.
	companionBytes = 64 << 10
	// window is how many files may be ahead of the oldest that is not done yet.
	window = 4096
)

// Generate makes the data set of a recipe in st, with its manifest, and returns the manifest's header. It hashes while it
// writes; nothing is read again.
//
// It may be cancelled or killed at any moment and called again: files that are there are made again in memory and
// compared, and kept where they are equal. A folder in which generation began by this recipe (see Marker) is completed,
// whatever state its files are in. In any other folder, only files of this very data set may be: anything else, by name,
// by size or by content, is an error that matches ErrOccupied and names it, before anything was written; a *ContentError
// where only size or content is another one.
func Generate(ctx context.Context, st Store, r Recipe, o Options) (h manifest.Header, err error) {
	defer func() { r.judge(err, o.Manifest) }()
	if r.family == nil {
		return manifest.Header{}, errors.New("generate: the recipe is empty; take one from FromWorkload or ParseRecipe")
	}
	if err := r.Available(); err != nil {
		return manifest.Header{}, err
	}
	if !o.leads() {
		return manifest.Header{}, follow(ctx, st, r, o)
	}
	if o.several() {
		if err := o.World.Handshake(ctx, map[string]string{"recipe": string(r.raw)}); err != nil {
			return manifest.Header{}, err
		}
	}
	g := &generator{st: st, r: r, o: o}
	unlock, err := g.begin(ctx)
	defer unlock()
	have := g.have
	checking := !have.marker && have.files > 0 && have.files < r.Entries()
	if _, err := o.tell(ctx, begun{Marked: have.marker, Files: have.files, Checking: checking}, err); err != nil {
		return manifest.Header{}, err
	}
	if checking {
		// Before the first write, everything that is there must prove to be of this data set.
		g.checking = true
		if err := g.files(ctx, func(manifest.Entry, [][32]byte) error { return nil }); err != nil {
			return manifest.Header{}, err
		}
		g.checking, g.progress.Files, g.progress.Bytes = false, 0, 0
	}
	err = g.clear(ctx)
	if _, err := o.tell(ctx, begun{Marked: have.marker || g.mark}, err); err != nil {
		return manifest.Header{}, err
	}
	if o.several() {
		if err := o.World.Agree(ctx, nil); err != nil { // all see the folder
			return manifest.Header{}, err
		}
	}
	h, err = g.pin(ctx)
	if err == nil && (have.marker || g.mark) {
		err = st.Remove(Marker)
	}
	if o.several() && o.World.Err() != nil {
		return manifest.Header{}, err
	}
	if _, err := o.tell(ctx, begun{}, err); err != nil {
		return manifest.Header{}, err
	}
	return h, nil
}

// begin prepares the folder and looks at what is in it. unlock is never nil.
func (g *generator) begin(ctx context.Context) (unlock func(), err error) {
	unlock = func() {}
	if err := checkManifestPath(g.st, g.o.Manifest); err != nil {
		return unlock, err
	}
	locked, err := prepareRoot(g.st)
	if err != nil {
		return unlock, err
	}
	unlock = locked
	if g.have, err = inspect(ctx, g.st, g.r); err != nil {
		return unlock, err
	}
	total, err := g.r.totalBytes(ctx)
	if err != nil {
		return unlock, err
	}
	if err := checkSpace(g.st, total-g.have.bytes); err != nil {
		return unlock, err
	}
	g.progress.AllFiles, g.progress.AllBytes = int64(g.r.Entries()), total
	if !g.r.Exact() {
		g.progress.AllBytes = -1
	}
	return unlock, nil
}

// clear removes what a process that was killed left behind, and marks the folder as one that is being generated into.
func (g *generator) clear(ctx context.Context) error {
	if s, ok := g.st.(abandoner); ok && g.have.marker { // else nobody knows whose they are
		if _, err := s.Abandon(ctx); err != nil {
			return err
		}
	}
	for _, name := range g.have.temporary {
		if err := g.st.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if !g.have.marker && g.have.files < g.r.Entries() {
		if err := write(g.st, Marker, g.r.raw); err != nil {
			return err
		}
		g.mark = true
	}
	return nil
}

// prepareRoot makes the folder of a store that is one, and locks it.
func prepareRoot(st Store) (unlock func(), err error) {
	if s, ok := st.(rooted); ok {
		if err := os.MkdirAll(s.Root(), 0o777); err != nil {
			return nil, fmt.Errorf("make the data folder: %w", err)
		}
	}
	return lock(st)
}

// generator is one call of Generate.
type generator struct {
	st   Store
	r    Recipe
	o    Options
	have found
	mark bool // the marker was written by this call

	checking bool // files that are there are compared, and nothing is written

	mu       sync.Mutex
	progress Progress
}

// pin makes all files, and the manifest over them.
func (g *generator) pin(ctx context.Context) (manifest.Header, error) {
	meta := manifest.Meta{Layout: g.r.Layout(), Recipe: g.r.raw}
	if g.o.Manifest == "" {
		w := manifest.NewWriter(io.Discard, meta)
		if err := g.files(ctx, func(e manifest.Entry, _ [][32]byte) error { return w.Add(e) }); err != nil {
			return manifest.Header{}, err
		}
		return w.Close()
	}
	f, err := manifest.Create(g.o.Manifest, meta)
	if err != nil {
		return manifest.Header{}, err
	}
	defer f.Abort()
	if err := g.files(ctx, f.AddGroups); err != nil {
		return manifest.Header{}, err
	}
	return f.Commit()
}

// made is what a worker knows of a file that it made.
type made struct {
	digest [32]byte
	groups [][32]byte // chaining values of its groups, where it is larger than one
	size   int64
}

// files makes all files with all workers, and calls add with their entries, and the digests of their groups, in the order of their paths.
func (g *generator) files(ctx context.Context, add func(manifest.Entry, [][32]byte) error) error {
	if g.o.several() {
		return g.shares(ctx, add)
	}
	return g.make(ctx, func(s slot, f made) error {
		return add(manifest.Entry{Path: s.spec.Path, Size: f.size, Digest: f.digest}, f.groups)
	})
}

// workers is how many files are made at once.
func (g *generator) workers() int {
	if g.o.Workers < 1 {
		return runtime.GOMAXPROCS(0)
	}
	return g.o.Workers
}

func (g *generator) report(files, n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.progress.Files += files
	g.progress.Bytes += n
	if g.o.Progress != nil && !g.checking {
		g.o.Progress(g.progress)
	}
}

// worker makes one file at a time.
type worker struct {
	g      *generator
	hash   blake.Hasher
	buf    []byte
	second []byte        // for comparing; made when needed
	first  []byte        // the first group of a file that begins with what is known last; made when needed
	small  *bufio.Writer // for companions, which are written in little pieces; made when needed
}

func (g *generator) newWorker() *worker {
	return &worker{g: g, buf: store.AlignedBuffer(pieceBytes)}
}

// file makes one file, or keeps it where it is what it should be.
func (w *worker) file(ctx context.Context, f FileSpec) (made, error) {
	if w.g.have.files > 0 {
		m, err := w.compare(ctx, f)
		if w.g.checking && errors.Is(err, fs.ErrNotExist) {
			return made{}, nil
		}
		replace := errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrOccupied) && w.g.have.marker
		if !replace {
			return m, err
		}
	}
	return w.create(ctx, f)
}

func (w *worker) create(ctx context.Context, f FileSpec) (m made, err error) {
	size := f.Size
	if f.AtMost {
		size = -1 // not known yet
	}
	out, err := w.g.st.Create(f.Path, size)
	if err != nil {
		return m, err
	}
	defer func() {
		if aerr := out.Abort(); err == nil {
			err = aerr
		}
	}()
	if m, err = w.produce(ctx, f, out); err != nil {
		return made{}, fmt.Errorf("generate %s: %w", f.Path, err)
	}
	return m, out.Commit()
}

// produce writes the bytes of a file to out.
func (w *worker) produce(ctx context.Context, f FileSpec, out io.Writer) (made, error) {
	w.hash.Reset()
	sink := &sink{ctx: ctx, w: w, out: out}
	var err error
	if f.companion > 0 {
		err = w.companion(sink, f)
	} else {
		err = w.g.r.format.Write(sink, f.Layout, w.g.r.content(f), w.buf)
	}
	if err == nil && !f.CanBe(sink.n) {
		err = fmt.Errorf("expected %s, made %d; this is a fault of the format %s", f.SizeText(), sink.n, w.g.r.doc.Format)
	}
	if err != nil {
		// What was counted will be made again, or never.
		w.g.report(0, -sink.n)
		return made{}, err
	}
	m := made{size: sink.n}
	m.digest, m.groups = sink.sum()
	return m, nil
}

func (w *worker) companion(out io.Writer, f FileSpec) error {
	if w.small == nil {
		w.small = bufio.NewWriterSize(nil, companionBytes)
	}
	w.small.Reset(out)
	if err := w.g.r.companions[f.companion-1].Write(w.small, f.Layout); err != nil {
		return err
	}
	return w.small.Flush()
}

// compare makes a file's bytes and compares them with those in the store. The error matches ErrOccupied where they differ,
// and fs.ErrNotExist where there is no such file.
func (w *worker) compare(ctx context.Context, f FileSpec) (m made, err error) {
	file, err := w.g.st.Open(f.Path)
	if err != nil {
		return m, err
	}
	defer func() {
		if cerr := file.Close(); err == nil {
			err = cerr
		}
	}()
	info, err := file.Info()
	if err != nil {
		return m, err
	}
	if !f.CanBe(info.Size) {
		return m, &ContentError{What: fmt.Sprintf("%s (expected %s, found %d)", f.Path, f.SizeText(), info.Size)}
	}
	if w.second == nil {
		w.second = store.AlignedBuffer(pieceBytes)
	}
	if m, err = w.produce(ctx, f, &comparer{file: file, path: f.Path, buf: w.second}); err != nil {
		return made{}, err
	}
	if m.size != info.Size {
		w.g.report(0, -m.size)
		return made{}, &ContentError{What: fmt.Sprintf("%s (expected %d bytes, found %d)", f.Path, m.size, info.Size)}
	}
	return m, nil
}

// comparer compares what is written to it with a file.
type comparer struct {
	file io.ReaderAt
	path string
	off  int64
	buf  []byte
	skip int // bytes at the beginning that come last
}

// WriteFront compares the first bytes.
func (c *comparer) WriteFront(p []byte) error {
	off := c.off
	c.off, c.skip = 0, 0
	defer func() { c.off = off }()
	_, err := c.Write(p)
	return err
}

func (c *comparer) Write(p []byte) (int, error) {
	done := min(c.skip, len(p))
	c.off, c.skip = c.off+int64(done), c.skip-done
	for done < len(p) {
		q := p[done:min(len(p), done+len(c.buf))]
		n, err := c.file.ReadAt(c.buf[:len(q)], c.off)
		if n < len(q) {
			if err == nil || errors.Is(err, io.EOF) {
				err = &ContentError{What: fmt.Sprintf("%s (it ends at byte %d)", c.path, c.off+int64(n))}
			}
			return done, err
		}
		if !bytes.Equal(c.buf[:len(q)], q) {
			i := 0
			for c.buf[i] == q[i] {
				i++
			}
			return done, &ContentError{What: fmt.Sprintf("%s (its byte %d is not what the recipe makes)", c.path, c.off+int64(i))}
		}
		done += n
		c.off += int64(n)
	}
	return len(p), nil
}
