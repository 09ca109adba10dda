// Package certify measures on the bytes of a data set what a storage system could make smaller: how much of it is there more than once, and
// how far it compresses. docs/certificate.md specifies what is done, to the byte.
//
// Memory is bounded, whatever the data set: 256 MiB, and 64 MiB for each worker. The outcome depends neither on the number of workers nor on
// the order in which files are read. It never writes anything, and never takes a file for the one that a manifest lists without hashing it.
package certify

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"runtime/debug"
	"sort"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/blake3"
	"github.com/zeebo/xxh3"
	"golang.org/x/sync/errgroup"

	"github.com/benchpin/benchpin/pkg/certificate"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/stream"
)

// Opener opens the files of the data set.
type Opener interface {
	Open(name string) (store.File, error)
}

// Options are the choices of Measure. The zero value reads everything.
type Options struct {
	// SampleBytes, where it is not 0, is how many bytes are enough: files are drawn, by the root, until they have as many.
	SampleBytes int64
	// Workers is how many files are read at once; below 1: the number of cores.
	Workers int
	// Progress, if not nil, is called with the files and bytes read so far, never from two goroutines at once.
	Progress func(files, bytes int64)

	limit int // of hashes held; 0: defaultLimit. Tests make it small.
}

// Measure reads the data set of a manifest, or a sample of it, and measures. Every file that is read is hashed too: one that is not what the
// manifest lists is an error, a *manifest.MismatchError.
func Measure(ctx context.Context, m *manifest.Manifest, src Opener, o Options) (*certificate.Certificate, error) {
	h := m.Header()
	c := &certificate.Certificate{
		Schema: certificate.SchemaName, Class: "H", Method: certificate.Method, Library: library(),
		Dataset: certificate.Dataset{Root: h.Root.String(), Manifest: m.Digest().String(), Files: certificate.Int(h.Count),
			Bytes: certificate.Int(h.Bytes), Generated: h.Recipe != nil},
		Scope:       certificate.Scope{Mode: certificate.All},
		Compression: certificate.Compression{Method: "zstd", Level: certificate.Level},
	}
	if c.Dataset.Generated {
		c.Class = "C"
	}
	if o.limit == 0 {
		o.limit = defaultLimit
	}
	if o.Workers < 1 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	root := m.Root()
	t := &tally{seed: binary.BigEndian.Uint64(root[:]), progress: o.Progress, files: newDistinct(o.limit), small: newDistinct(o.limit), large: newDistinct(o.limit)}
	t.zeroSmall, t.zeroLarge = t.zeroes()
	var chosen map[int64]bool
	if o.SampleBytes > 0 && o.SampleBytes < h.Bytes {
		var bytes int64
		var err error
		if chosen, bytes, err = choose(ctx, m, o.SampleBytes); err != nil {
			return nil, err
		}
		if bytes == h.Bytes { // the other files are empty
			chosen = nil
		} else {
			c.Scope.Mode = certificate.Sample
		}
	}
	if err := t.all(ctx, m, src, o.Workers, chosen); err != nil {
		return nil, err
	}
	c.Scope.Files, c.Scope.Bytes = certificate.Int(t.readFiles), certificate.Int(t.readBytes)
	c.Repeats.Files = t.files.result()
	c.Repeats.Blocks = []certificate.Blocks{
		{Size: smallBlock, Zero: certificate.Int(t.smallZeros), Distinct: t.small.result()},
		{Size: largeBlock, Zero: certificate.Int(t.largeZeros), Distinct: t.large.result()},
	}
	for i, size := range certificate.ChunkSizes() {
		k := certificate.Chunks{Size: size, Plain: certificate.Int(t.readBytes), Compressed: certificate.Int(t.compressed[i])}
		k.Ratio = certificate.Ratio(k.Plain, k.Compressed)
		c.Compression.Chunks = append(c.Compression.Chunks, k)
	}
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("certify: %w; this is a fault of benchpin", err)
	}
	return c, nil
}

const (
	smallBlock, largeBlock = 512, 4096
	chunk, largeChunk      = 128 << 10, 1 << 20
	// window is how far back zstd looks for what it saw before, at this level.
	window = 8 << 20
)

// library names what compresses, by its module and version: another version may compress otherwise.
func library() string {
	const path = "github.com/klauspost/compress"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == path {
				return path + " " + d.Version
			}
		}
	}
	return path
}

// choose draws files by numbers from the root until they have enough bytes, at least one.
func choose(ctx context.Context, m *manifest.Manifest, enough int64) (chosen map[int64]bool, bytes int64, err error) {
	root := m.Root()
	draw := stream.New("benchpin/certify", 1, binary.BigEndian.Uint64(root[:]))
	type file struct {
		key         uint64
		index, size int64
	}
	// The files with the least draws are kept, as many as have enough bytes: no more of them than that are held.
	var kept []file
	var index int64
	drop := func() {
		sort.Slice(kept, func(i, j int) bool {
			return kept[i].key < kept[j].key || kept[i].key == kept[j].key && kept[i].index < kept[j].index
		})
		bytes = 0
		for i := range kept {
			if bytes += kept[i].size; bytes >= enough {
				kept = kept[:i+1]
				break
			}
		}
	}
	next := 1 << 16
	err = m.Entries(ctx, func(e manifest.Entry) error {
		kept = append(kept, file{draw.Uint64(0, uint64(index)), index, e.Size})
		index++
		if len(kept) >= next {
			drop()
			next = max(1<<16, 2*len(kept))
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("certify: %w", err)
	}
	drop()
	chosen = make(map[int64]bool, len(kept))
	for _, f := range kept {
		chosen[f.index] = true
	}
	return chosen, bytes, nil
}

// tally adds up what all workers find.
type tally struct {
	seed                 uint64
	zeroSmall, zeroLarge uint64

	mu                     sync.Mutex
	progress               func(files, bytes int64)
	files, small, large    *distinct
	smallZeros, largeZeros int64
	readFiles, readBytes   int64
	compressed             [3]int64
}

// zeroes are the hashes of blocks of zero bytes.
func (t *tally) zeroes() (small, large uint64) {
	var p [largeBlock]byte
	s, l := t.hashes(p[:], nil, nil)
	return s[0], l[0]
}

// hashes appends the hashes of the blocks of p, whose length is a multiple of largeBlock. That of a large block is the hash of those of the
// small ones in it.
func (t *tally) hashes(p []byte, small, large []uint64) ([]uint64, []uint64) {
	var inner [largeBlock / smallBlock * 8]byte
	for ; len(p) >= largeBlock; p = p[largeBlock:] {
		for i := 0; i < largeBlock; i += smallBlock {
			h := xxh3.HashSeed(p[i:i+smallBlock], t.seed)
			binary.LittleEndian.PutUint64(inner[i/smallBlock*8:], h)
			small = append(small, h)
		}
		large = append(large, xxh3.HashSeed(inner[:], t.seed))
	}
	return small, large
}

// all reads every file, or the chosen ones.
func (t *tally) all(ctx context.Context, m *manifest.Manifest, src Opener, workers int, chosen map[int64]bool) error {
	g, ctx := errgroup.WithContext(ctx)
	jobs := make(chan manifest.Entry)
	g.Go(func() error {
		defer close(jobs)
		var index int64
		return m.Entries(ctx, func(e manifest.Entry) error {
			t.file(e)
			index++
			if chosen != nil && !chosen[index-1] {
				return nil
			}
			select {
			case jobs <- e:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})
	for range workers {
		g.Go(func() error {
			w, err := newWorker(t)
			if err != nil {
				return err
			}
			defer w.close()
			for e := range jobs {
				if err := w.file(ctx, src, e); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("certify: %w", err)
	}
	return nil
}

// Files counts the files of a manifest and the different ones among them, as Measure does: by their digests, without reading any. It holds at most
// 64 MiB.
func Files(ctx context.Context, m *manifest.Manifest) (certificate.Distinct, error) {
	return countFiles(ctx, m, defaultLimit)
}

func countFiles(ctx context.Context, m *manifest.Manifest, limit int) (certificate.Distinct, error) {
	root := m.Root()
	t := &tally{seed: binary.BigEndian.Uint64(root[:]), files: newDistinct(limit)}
	err := m.Entries(ctx, func(e manifest.Entry) error {
		t.file(e)
		return nil
	})
	if err != nil {
		return certificate.Distinct{}, fmt.Errorf("certify: %w", err)
	}
	return t.files.result(), nil
}

// file counts a file of the manifest by its digest. Empty files are all the same and cost nothing: they are not counted as repeated.
func (t *tally) file(e manifest.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := binary.LittleEndian.Uint64(e.Digest[:])
	if e.Size == 0 {
		h = xxh3.HashStringSeed(e.Path, t.seed)
	}
	t.files.add(h)
}

// worker reads files.
type worker struct {
	t            *tally
	buf          []byte
	packed       []byte
	enc          *zstd.Encoder // for chunks
	whole        *zstd.Encoder // for files
	out          counter
	small, large []uint64
	hash         *blake3.Hasher
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func newWorker(t *tally) (*worker, error) {
	o := []zstd.EOption{zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(certificate.Level)), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(window)}
	w := &worker{t: t, buf: store.AlignedBuffer(largeChunk), hash: blake3.New()}
	var err error
	if w.enc, err = zstd.NewWriter(nil, o...); err == nil {
		w.whole, err = zstd.NewWriter(&w.out, o...)
	}
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return w, nil
}

func (w *worker) close() {
	_ = w.enc.Close() // they write to nothing
	_ = w.whole.Close()
}

// file reads one file, measures it and compares it with its entry.
func (w *worker) file(ctx context.Context, src Opener, e manifest.Entry) (err error) {
	f, err := src.Open(e.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return &manifest.MismatchError{Kind: manifest.Missing, Path: e.Path, Expected: &manifest.Side{Size: e.Size, Digest: manifest.FormatDigest(e.Digest)}}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Info()
	if err != nil {
		return fmt.Errorf("look at %s: %w", e.Path, err)
	}
	wanted := &manifest.Side{Size: e.Size, Digest: manifest.FormatDigest(e.Digest)}
	if info.Size != e.Size {
		return &manifest.MismatchError{Kind: manifest.Changed, Path: e.Path, Expected: wanted, Found: &manifest.Side{Size: info.Size}}
	}
	w.hash.Reset()
	w.out = 0
	w.whole.Reset(&w.out)
	var compressed [3]int64
	for at := int64(0); at < e.Size; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p := w.buf[:min(int64(len(w.buf)), e.Size-at)]
		n, err := f.ReadAt(p, at)
		if n < len(p) {
			if err == nil || errors.Is(err, io.EOF) {
				return &manifest.MismatchError{Kind: manifest.Changed, Path: e.Path, Expected: wanted, Found: &manifest.Side{Size: at + int64(n)}}
			}
			return fmt.Errorf("read %s at byte %d: %w", e.Path, at, err)
		}
		at += int64(n)
		_, _ = w.hash.Write(p) // never fails
		if _, err := w.whole.Write(p); err != nil {
			return fmt.Errorf("zstd: %w", err)
		}
		compressed[1] += w.squeeze(p)
		for q := p; len(q) > 0; {
			piece := q[:min(len(q), chunk)]
			compressed[0] += w.squeeze(piece)
			q = q[len(piece):]
		}
		w.blocks(p)
	}
	if err := w.whole.Close(); err != nil {
		return fmt.Errorf("zstd: %w", err)
	}
	compressed[2] = min(int64(w.out), e.Size)
	if sum := [32]byte(w.hash.Sum(nil)); sum != e.Digest {
		return &manifest.MismatchError{Kind: manifest.Changed, Path: e.Path, Expected: wanted,
			Found: &manifest.Side{Size: e.Size, Digest: manifest.FormatDigest(sum)}}
	}
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	w.t.readFiles++
	for i, n := range compressed {
		w.t.compressed[i] += n
	}
	return nil
}

// squeeze returns what a piece takes when it is compressed alone, or stored where that is less.
func (w *worker) squeeze(p []byte) int64 {
	w.packed = w.enc.EncodeAll(p, w.packed[:0])
	return int64(min(len(w.packed), len(p)))
}

// blocks counts the blocks of a piece of a file. The last one of a file is filled up with zeros, as a device does.
func (w *worker) blocks(p []byte) {
	w.small, w.large = w.t.hashes(p, w.small[:0], w.large[:0])
	if rest := p[len(p)/largeBlock*largeBlock:]; len(rest) > 0 {
		var last [largeBlock]byte
		n := copy(last[:], rest)
		have := len(w.small)
		w.small, w.large = w.t.hashes(last[:], w.small, w.large)
		w.small = w.small[:have+(n+smallBlock-1)/smallBlock]
	}
	t := w.t
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range w.small {
		if h == t.zeroSmall {
			t.smallZeros++
		}
		t.small.add(h)
	}
	for _, h := range w.large {
		if h == t.zeroLarge {
			t.largeZeros++
		}
		t.large.add(h)
	}
	t.readBytes += int64(len(p))
	if t.progress != nil {
		t.progress(t.readFiles, t.readBytes)
	}
}
