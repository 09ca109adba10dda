package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
)

// Source is where the data set lies.
type Source interface {
	Open(name string) (store.File, error)
}

// AnswerOptions are the choices of Answer.
type AnswerOptions struct {
	Form Form
	// Groups are the manifest's group digests. Without them (nil) files of more than one chunk are read as a whole, once each.
	Groups *manifest.Groups
	// Progress, if not nil, is called with chunks and bytes done.
	Progress func(chunks, bytes int64)
}

// Answer reads the chunks of a challenge from a data set, holds them against its manifest, and writes the answer. A data set that does not
// hold the bytes that its manifest pins has no answer: the errors, a *ChunkError for each chunk (at most 100), name files and places.
// challenge are the challenge's bytes. Memory: one chunk, the proofs, and the group digests of one file.
func Answer(ctx context.Context, challenge []byte, m *manifest.Manifest, src Source, out io.Writer, o AnswerOptions) error {
	c, err := ParseChallenge(challenge)
	if err != nil {
		return err
	}
	if o.Form != Bytes && o.Form != Digests {
		return fmt.Errorf("form %q: expected %s or %s", o.Form, Bytes, Digests)
	}
	if root := m.Header().Root.String(); root != c.Root {
		return fmt.Errorf("%w: the challenge is for the data set %s, and the manifest has %s", ErrOther, c.Root, root)
	}
	a := &answerer{c: c, digest: digestOf(challenge), m: m, src: src, o: o, buf: store.AlignedBuffer(ChunkSize), out: bufio.NewWriterSize(out, 1<<20)}
	if err := a.find(ctx); err != nil {
		return err
	}
	head, err := encode(answerHead{AnswerSchema, manifest.FormatDigest(a.digest).String(), c.Root, o.Form, len(c.Chunks)})
	if err != nil {
		return err
	}
	if _, err := a.out.Write(head); err != nil {
		return err
	}
	if err := a.all(ctx); err != nil {
		return err
	}
	return a.out.Flush()
}

type answerer struct {
	c      *Challenge
	digest [32]byte
	m      *manifest.Manifest
	src    Source
	o      AnswerOptions
	buf    []byte
	out    *bufio.Writer

	// entries and proofs are those of the file of each chunk, groups the values beside the way of each.
	entries []manifest.Entry
	proofs  []manifest.Proof
	groups  [][][32]byte
}

// find looks up the files of all chunks: once through the manifest, and once more for the proofs.
func (a *answerer) find(ctx context.Context) error {
	chunks := a.c.Chunks
	a.entries, a.groups = make([]manifest.Entry, len(chunks)), make([][][32]byte, len(chunks))
	indices := make([]int64, len(chunks))
	next, index := 0, int64(0)
	each := func(i int64, e manifest.Entry, groups [][32]byte) error {
		for ; next < len(chunks) && chunks[next].Path == e.Path; next++ {
			if chunks[next].Size != e.Size {
				return chunks[next].fail(fmt.Errorf("%w: the challenge has a file of %d bytes, the manifest of %d", ErrOther, chunks[next].Size, e.Size))
			}
			a.entries[next], indices[next] = e, i
			if groups != nil {
				a.groups[next] = subtreePath(groups, chunks[next].Group)
			}
		}
		return nil
	}
	var err error
	if a.o.Groups != nil {
		err = a.o.Groups.Each(ctx, a.m, each)
	} else {
		err = a.m.Entries(ctx, func(e manifest.Entry) error {
			index++
			return each(index-1, e, nil)
		})
	}
	if err != nil {
		return err
	}
	if next < len(chunks) {
		return chunks[next].fail(fmt.Errorf("%w: %w", ErrOther, manifest.ErrNoEntry))
	}
	a.proofs, err = a.m.ProveAll(ctx, indices)
	return err
}

// mostFailures bounds the chunks that are named.
const mostFailures = 100

// all answers chunk by chunk. Those of one file follow each other.
func (a *answerer) all(ctx context.Context) error {
	var failed []error
	var bytes int64
	for first := 0; first < len(a.c.Chunks) && len(failed) < mostFailures; {
		last := first + 1
		for last < len(a.c.Chunks) && a.c.Chunks[last].Path == a.c.Chunks[first].Path {
			last++
		}
		bad, err := a.file(ctx, first, last, len(failed) > 0)
		if err != nil {
			return err
		}
		failed = append(failed, bad...)
		for ; first < last; first++ {
			bytes += a.c.Chunks[first].Length()
		}
		if a.o.Progress != nil {
			a.o.Progress(int64(last), bytes)
		}
	}
	return errors.Join(failed...)
}

// file answers the chunks [first, last) of one file. bad are the chunks that it does not hold; with quiet nothing is written any more.
func (a *answerer) file(ctx context.Context, first, last int, quiet bool) (bad []error, err error) {
	f, err := a.src.Open(a.c.Chunks[first].Path)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return []error{a.c.Chunks[first].fail(err)}, nil
	}
	defer f.Close()
	if info, err := f.Info(); err != nil {
		return []error{a.c.Chunks[first].fail(err)}, nil
	} else if want := a.entries[first].Size; info.Size != want {
		return []error{a.c.Chunks[first].fail(fmt.Errorf("expected a file of %d bytes, found %d", want, info.Size))}, nil
	}
	if err := a.hashed(ctx, first, last); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return []error{a.c.Chunks[first].fail(err)}, nil
	}
	for i := first; i < last; i++ {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		c := a.c.Chunks[i]
		b := a.buf[:c.Length()]
		_, err := f.ReadAt(b, c.Offset())
		if errors.Is(err, io.EOF) {
			err = nil // exactly at the end; a shorter file has other bytes
		}
		if err == nil {
			err = checkChunk(c, b, a.groups[i], a.entries[i].Digest)
		}
		if err != nil {
			bad, quiet = append(bad, c.fail(err)), true
		}
		if quiet {
			continue
		}
		if err := a.write(i, b); err != nil {
			return nil, err
		}
	}
	return bad, nil
}

// hashed fills in the group digests of a file that nobody kept.
func (a *answerer) hashed(ctx context.Context, first, last int) error {
	if chunks(a.entries[first].Size) == 1 || a.groups[first] != nil {
		return nil
	}
	h, err := manifest.HashFile(ctx, a.src, a.entries[first].Path, manifest.HashOptions{})
	if err != nil {
		return err
	}
	if h.Digest != a.entries[first].Digest {
		return fmt.Errorf("%w: the file has %s, expected %s", errOtherBytes, manifest.FormatDigest(h.Digest), manifest.FormatDigest(a.entries[first].Digest))
	}
	for i := first; i < last; i++ {
		a.groups[i] = subtreePath(h.Groups, a.c.Chunks[i].Group)
	}
	return nil
}

// write writes the line of a chunk.
func (a *answerer) write(n int, b []byte) error {
	p := a.proofs[n]
	l := answerLine{N: n, Index: p.Index, Entries: p.Count, Line: string(p.Line), Path: hashes(p.Path), Groups: hashes(a.groups[n])}
	if a.o.Form == Bytes {
		l.Bytes = b
	} else {
		keyed := hash(keyedDigest(a.digest, n, b))
		l.Keyed = &keyed
	}
	line, err := encode(&l)
	if err != nil {
		return err
	}
	_, err = a.out.Write(line)
	return err
}
