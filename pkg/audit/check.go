package audit

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/benchpin/benchpin/pkg/manifest"
)

// Maker makes bytes of a data set again, as a recipe does.
type Maker interface {
	// Chunks makes the bytes [offsets[i], offsets[i]+lengths[i]) of a file and hands them to yield, in order; the offsets ascend, and the
	// stretches do not overlap. Bytes are valid until yield returns, whose error ends it.
	Chunks(ctx context.Context, path string, offsets, lengths []int64, yield func(i int, b []byte) error) error
}

// CheckOptions are what an answer is checked with.
type CheckOptions struct {
	// Root is the root of the manifest, which the checker knows from elsewhere: from an attestation.
	Root [32]byte
	// Manifest, if not nil, is used to draw the challenge again and to count entries. Without it the challenge must be the checker's own.
	Manifest *manifest.Manifest
	// Maker makes the chunks of keyed digests.
	Maker Maker
	// Progress, if not nil, is called with chunks and bytes checked.
	Progress func(chunks, bytes int64)
}

// Report is what checking an answer came to.
type Report struct {
	// Challenge is the digest of the challenge, From its public value.
	Challenge string `json:"challenge"`
	Root      string `json:"root"`
	From      string `json:"from"`
	Form      Form   `json:"form"`
	// Chunks and Bytes were checked and hold.
	Chunks int   `json:"chunks"`
	Bytes  int64 `json:"bytes"`
	// OfChunks and OfBytes are those of the data set, as the challenge says.
	OfChunks int64 `json:"of_chunks"`
	OfBytes  int64 `json:"of_bytes"`
	// Redrawn is true when the chunks were drawn again from the value and the manifest.
	Redrawn bool `json:"redrawn"`
	// Failures are the chunks that do not hold, at most 100.
	Failures []Failure `json:"failures"`
	// Assurance is what the audit says of damage elsewhere, with 95 % and 99 %; none when anything fails.
	Assurance []Assurance `json:"assurance,omitempty"`
}

// Failure is a chunk that does not hold.
type Failure struct {
	Path    string `json:"path"`
	Offset  int64  `json:"offset"`
	Length  int64  `json:"length"`
	Problem string `json:"problem"`
}

// OK reports whether every chunk of the challenge holds.
func (r *Report) OK() bool { return len(r.Failures) == 0 }

// Check checks an answer to a challenge, whose bytes are given. Every chunk must be that of the challenge, an entry of the data set with the
// root, and hold the bytes that the entry's digest pins. Chunks that do not hold are in the report, each with its path; the error is
// about an answer that cannot be judged: it wraps ErrDocument, ErrOther for an answer to another challenge or about another data set, or
// ErrNeedBytes. Memory: one line, or those of the chunks of one file for keyed digests.
func Check(ctx context.Context, challenge []byte, answer io.Reader, o CheckOptions) (*Report, error) {
	c, err := ParseChallenge(challenge)
	if err != nil {
		return nil, err
	}
	root := manifest.FormatDigest(o.Root).String()
	if c.Root != root {
		return nil, fmt.Errorf("%w: the challenge is for the data set %s, expected %s", ErrOther, c.Root, root)
	}
	k := &checker{c: c, digest: digestOf(challenge), o: o, lines: newLines(answer)}
	k.report = &Report{Challenge: manifest.FormatDigest(k.digest).String(), Root: root, From: c.From, OfChunks: c.Groups, OfBytes: c.Bytes, Failures: []Failure{}}
	if o.Manifest != nil {
		if err := c.Same(ctx, o.Manifest); err != nil {
			return nil, err
		}
		k.report.Redrawn = true
	}
	if err := k.head(); err != nil {
		return nil, err
	}
	if err := k.all(ctx); err != nil {
		return nil, err
	}
	if k.report.OK() {
		k.report.Assurance = []Assurance{c.Assure(0.95), c.Assure(0.99)}
	}
	return k.report, nil
}

type checker struct {
	c      *Challenge
	digest [32]byte
	o      CheckOptions
	lines  *lines
	report *Report
}

// head reads the first line.
func (k *checker) head() error {
	var h answerHead
	if err := k.lines.next(&h); err != nil {
		return err
	}
	switch {
	case h.Schema != AnswerSchema:
		return fmt.Errorf("%w: answer: schema is %.100q, expected %q", ErrDocument, h.Schema, AnswerSchema)
	case h.Challenge != k.report.Challenge:
		return fmt.Errorf("%w: the answer is to the challenge %s, expected %s", ErrOther, h.Challenge, k.report.Challenge)
	case h.Root != k.c.Root:
		return fmt.Errorf("%w: the answer is about the data set %s, expected %s", ErrOther, h.Root, k.c.Root)
	case h.Chunks != len(k.c.Chunks):
		return fmt.Errorf("%w: answer: %d chunks, the challenge has %d", ErrDocument, h.Chunks, len(k.c.Chunks))
	case h.Form != Bytes && h.Form != Digests:
		return fmt.Errorf("%w: answer: form is %.100q, expected %s or %s", ErrDocument, h.Form, Bytes, Digests)
	case h.Form == Digests && k.o.Maker == nil:
		return ErrNeedBytes
	}
	k.report.Form = h.Form
	return nil
}

// all checks chunk by chunk. An answer that breaks off leaves the chunks after that unanswered, and names the first of them.
func (k *checker) all(ctx context.Context) error {
	chunks := k.c.Chunks
	for first := 0; first < len(chunks); {
		last := first + 1
		for k.report.Form == Digests && last < len(chunks) && chunks[last].Path == chunks[first].Path {
			last++
		}
		ls := make([]answerLine, last-first)
		for i := range ls {
			if err := k.lines.next(&ls[i]); err != nil {
				return fmt.Errorf("%w; no answer for %w", err, chunks[first+i].fail(errors.New("it is missing")))
			}
			if ls[i].Path == nil || ls[i].Groups == nil {
				return fmt.Errorf("%w: answer: line %d: null where a list must be", ErrDocument, k.lines.n)
			}
			if ls[i].N != first+i {
				return fmt.Errorf("%w: answer: line %d is about chunk %d; no answer for %w", ErrDocument, k.lines.n, ls[i].N,
					chunks[first+i].fail(errors.New("it is missing")))
			}
		}
		if err := k.some(ctx, first, ls); err != nil {
			return err
		}
		if first = last; k.o.Progress != nil {
			k.o.Progress(int64(first), k.report.Bytes)
		}
		if len(k.report.Failures) >= mostFailures {
			return nil
		}
	}
	return k.lines.end()
}

// some checks one chunk, or the chunks of one file. Its error is ctx's.
func (k *checker) some(ctx context.Context, first int, ls []answerLine) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	entries := make([]manifest.Entry, len(ls))
	errs := make([]error, len(ls))
	for i := range ls {
		entries[i], errs[i] = k.entry(k.c.Chunks[first+i], &ls[i])
	}
	if k.report.Form == Bytes {
		for i := range ls {
			if errs[i] == nil {
				errs[i] = checkChunk(k.c.Chunks[first+i], ls[i].Bytes, plain(ls[i].Groups), entries[i].Digest)
			}
		}
	} else if err := k.made(ctx, first, ls, entries, errs); err != nil {
		return err
	}
	for i, err := range errs {
		c := k.c.Chunks[first+i]
		if err != nil {
			k.report.Failures = append(k.report.Failures, Failure{c.Path, c.Offset(), c.Length(), err.Error()})
			continue
		}
		k.report.Chunks++
		k.report.Bytes += c.Length()
	}
	return nil
}

// entry checks that a line proves the entry of the chunk's file.
func (k *checker) entry(c Chunk, l *answerLine) (manifest.Entry, error) {
	if (l.Keyed != nil) != (k.report.Form == Digests) || (l.Bytes != nil) != (k.report.Form == Bytes) {
		return manifest.Entry{}, fmt.Errorf("expected %s", k.report.Form)
	}
	if m := k.o.Manifest; m != nil && l.Entries != m.Header().Count {
		return manifest.Entry{}, fmt.Errorf("%w: of %d entries, the manifest has %d", manifest.ErrProof, l.Entries, m.Header().Count)
	}
	e, err := l.proof().Verify(k.o.Root)
	if err != nil {
		return e, err
	}
	if e.Path != c.Path || e.Size != c.Size {
		return e, fmt.Errorf("the answer is about %s of %d bytes, expected a file of %d bytes", e.Path, e.Size, c.Size)
	}
	return e, nil
}

// errKeyed is the error about a digest of other bytes.
var errKeyed = errors.New("the keyed digest is not that of the bytes that the recipe makes")

// made makes the chunks of one file again, and checks that they are those that the manifest pins, and that the answer had them.
func (k *checker) made(ctx context.Context, first int, ls []answerLine, entries []manifest.Entry, errs []error) error {
	chunks := k.c.Chunks[first : first+len(ls)]
	offsets, lengths := make([]int64, len(ls)), make([]int64, len(ls))
	for i, c := range chunks {
		offsets[i], lengths[i] = c.Offset(), c.Length()
	}
	done := 0
	err := k.o.Maker.Chunks(ctx, chunks[0].Path, offsets, lengths, func(i int, b []byte) error {
		done = i + 1
		if errs[i] == nil {
			if err := checkChunk(chunks[i], b, plain(ls[i].Groups), entries[i].Digest); err != nil {
				errs[i] = fmt.Errorf("by the recipe: %w, or the way up to the file's digest is wrong", err)
			} else if hash(keyedDigest(k.digest, first+i, b)) != *ls[i].Keyed {
				errs[i] = errKeyed
			}
		}
		return nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i := done; i < len(ls); i++ {
		if errs[i] == nil {
			if err == nil {
				err = errors.New("the recipe makes no such bytes")
			}
			errs[i] = err
		}
	}
	return nil
}
