package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/blake3"
)

// maxWindow is the largest zstd window accepted; a frame of the largest size needs no more.
const maxWindow = 32 << 20

// maxAhead bounds the goroutines that read frames, each of which takes up to some 25 MB.
const maxAhead = 4

// frameLevel is the level of the subtree that a full frame makes, where it begins at a multiple of its entries: 2^16 of them.
const frameLevel = 16

// parsed is a frame that was read: its entries as far as they are sound.
type parsed struct {
	entries []Entry
	hashes  [][32]byte // of the leaves
	ends    []int      // of the lines, in plain
	plain   []byte
	packed  []byte
	// root is that of the frame's entries, where they make a whole subtree of the manifest's tree.
	root    [32]byte
	subtree bool
	// fault is what is wrong with the frame behind these entries.
	fault error
}

// line is that of entry n, without its line end.
func (p *parsed) line(n int) []byte {
	from := 0
	if n > 0 {
		from = p.ends[n-1] + 1
	}
	return p.plain[from:p.ends[n]]
}

// fault names a frame.
func (m *Manifest) fault(i int, class Class, format string, args ...any) error {
	return fmt.Errorf("%w: %s: frame %d at byte %d: %s", class, m.name, i, m.header.Frames[i].Offset, fmt.Sprintf(format, args...))
}

// frames reads all frames and takes them in order. With several frames and cores they are read ahead: what decompressing, parsing and
// hashing cost is then shared among the cores.
func (r *entriesReader) frames(ctx context.Context) error {
	n := len(r.m.header.Frames)
	workers := min(n, runtime.GOMAXPROCS(0), maxAhead)
	if workers < 2 {
		return r.oneByOne(ctx)
	}
	// A worker has a frame until it is handed over, and the consumer one more: the frame that is needed next always finds room.
	free := make(chan *parsed, workers+1)
	for range cap(free) {
		free <- new(parsed)
	}
	stop := make(chan struct{})
	ready := make([]chan *parsed, workers)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	for w := range workers {
		f, err := r.m.newFrameReader()
		if err != nil {
			return err
		}
		ready[w] = make(chan *parsed)
		wg.Go(func() {
			defer f.close()
			for i := w; i < n; i += workers {
				var p *parsed
				select {
				case p = <-free:
				case <-stop:
					return
				}
				f.parse(i, p)
				select {
				case ready[w] <- p:
				case <-stop:
					return
				}
			}
		})
	}
	for i := range n {
		if err := stopped(ctx); err != nil {
			return err
		}
		var p *parsed
		select {
		case p = <-ready[i%workers]:
		case <-ctx.Done():
			return stopped(ctx)
		}
		if err := r.take(i, p); err != nil {
			return err
		}
		free <- p
	}
	return nil
}

func (r *entriesReader) oneByOne(ctx context.Context) error {
	f, err := r.m.newFrameReader()
	if err != nil {
		return err
	}
	defer f.close()
	var p parsed
	for i := range r.m.header.Frames {
		if err := stopped(ctx); err != nil {
			return err
		}
		f.parse(i, &p)
		if err := r.take(i, &p); err != nil {
			return err
		}
	}
	return nil
}

func stopped(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("read manifest: %w", context.Cause(ctx))
	}
	return nil
}

// frameReader reads frames, for one goroutine.
type frameReader struct {
	m    *Manifest
	zstd *zstd.Decoder
	buf  []byte
}

func (m *Manifest) newFrameReader() (*frameReader, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxFrameBytes),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, fmt.Errorf("manifest: zstd: %w", err)
	}
	return &frameReader{m: m, zstd: d}, nil
}

func (r *frameReader) close() { r.zstd.Close() }

// parse reads and checks one frame into p, whose memory is used again.
func (r *frameReader) parse(i int, p *parsed) {
	p.entries, p.hashes, p.ends, p.subtree, p.fault = p.entries[:0], p.hashes[:0], p.ends[:0], false, nil
	f := &r.m.header.Frames[i]
	if err := r.load(f, p); err != nil {
		if c := Class(""); errors.As(err, &c) {
			p.fault = fmt.Errorf("%s: frame %d at byte %d: %w", r.m.name, i, f.Offset, err)
		} else {
			p.fault = fmt.Errorf("read %s: frame %d at byte %d: %w", r.m.name, i, f.Offset, err)
		}
		return
	}
	if p.fault = r.lines(i, f, p); p.fault == nil {
		p.subtree = r.m.fills(i)
	}
	if p.subtree {
		var t Tree
		for _, h := range p.hashes {
			t.AddHash(h)
		}
		p.root = t.Root()
	}
}

// fills says whether a frame makes a whole subtree of level frameLevel.
func (m *Manifest) fills(i int) bool {
	const size = 1 << frameLevel
	var before int64
	for _, f := range m.header.Frames[:i] {
		before += f.Count // each is at least what was counted when it was read, or the frame is refused
	}
	return before%size == 0 && m.header.Frames[i].Count == size
}

// lines reads the lines of a frame.
func (r *frameReader) lines(i int, f *Frame, p *parsed) error {
	last := ""
	for at := 0; ; {
		n := int64(len(p.entries))
		if at == len(p.plain) {
			if n != f.Count || last != f.Last {
				return r.m.fault(i, ErrCount, "the header says %d entries up to %q, found %d up to %q", f.Count, f.Last, n, last)
			}
			return nil
		}
		length := bytes.IndexByte(p.plain[at:], '\n')
		if length < 0 {
			return r.m.fault(i, ErrSyntax, "the last line has no line end")
		}
		line := p.plain[at : at+length]
		e, err := ParseEntry(line)
		if err != nil {
			return fmt.Errorf("%s: frame %d, line %d: %w", r.m.name, i, n+1, err)
		}
		if n == 0 && e.Path != f.First {
			return r.m.fault(i, ErrCount, "the header says it begins with %q, found %q", f.First, e.Path)
		}
		if e.Path <= last {
			return r.m.fault(i, ErrOrder, "line %d: %q stands after %q", n+1, e.Path, last)
		}
		if r.m.exclude.Match(e.Path) {
			return r.m.fault(i, ErrExclude, "line %d: %q is an entry, and the header excludes it", n+1, e.Path)
		}
		last = e.Path
		at += length
		r.buf = append(append(r.buf[:0], leafPrefix), line...)
		p.entries, p.ends, p.hashes = append(p.entries, e), append(p.ends, at), append(p.hashes, blake3.Sum256(r.buf))
		at++
	}
}

// load reads a frame's bytes, compares them with the header, and decompresses them under the sizes that it declares.
func (r *frameReader) load(f *Frame, p *parsed) error {
	if int64(cap(p.packed)) < f.Size {
		p.packed = make([]byte, f.Size)
	}
	p.packed = p.packed[:f.Size]
	if n, err := r.m.entries.ReadAt(p.packed, f.Offset); n < len(p.packed) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	if d := FormatDigest(blake3.Sum256(p.packed)); d != f.Digest {
		return fmt.Errorf("%w: digest of its bytes: expected %s, found %s", ErrFrame, f.Digest, d)
	}
	var zh zstd.Header
	if err := zh.Decode(p.packed); err != nil {
		return fmt.Errorf("%w: zstd: %w", ErrFrame, err)
	}
	if zh.Skippable || !zh.HasFCS || zh.FrameContentSize != uint64(f.PlainSize) {
		return fmt.Errorf("%w: zstd frame declares %d bytes, expected %d", ErrFrame, zh.FrameContentSize, f.PlainSize)
	}
	plain, err := r.zstd.DecodeAll(p.packed, p.plain[:0])
	if err != nil {
		return fmt.Errorf("%w: zstd: %w", ErrFrame, err)
	}
	p.plain = plain
	if int64(len(plain)) != f.PlainSize {
		return fmt.Errorf("%w: expected %d bytes after decompression, found %d", ErrFrame, f.PlainSize, len(plain))
	}
	if d := FormatDigest(blake3.Sum256(plain)); d != f.PlainDigest {
		return fmt.Errorf("%w: digest of its lines: expected %s, found %s", ErrFrame, f.PlainDigest, d)
	}
	return nil
}

// addSubtree appends the 2^level leaves of a complete subtree, whose root is known already, to a tree of a multiple of as many leaves.
func (t *Tree) addSubtree(level int, root [32]byte) {
	top := bits.OnesCount64(t.n)
	for m := t.n >> level; m&1 == 1; m >>= 1 {
		top--
		root = NodeHash(t.stack[top], root)
	}
	t.stack[top] = root
	t.n += 1 << level
}
