package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/benchpin/benchpin/pkg/store"
)

// skip is how far ahead of the answer a read may be that is still served from it: reading on costs less than another request.
const skip = 256 << 10

// object is an open object. Reads in order are served from one answer; any other read is a request of its own.
type object struct {
	b         *Bucket
	end       *end
	name, key string
	info      store.Info
	etag      string

	mu     sync.Mutex
	body   *answer // nil when there is none
	at     int64   // where body, or what is fetched ahead, stands
	upTo   int64   // where body ends
	ahead  *ahead  // what comes behind body; nil when there is nothing
	last   int64   // where the last read by a request of its own ended
	grown  int64   // bytes of the last answer that was asked for because reads were in order
	closed bool
}

// answer is the body of one request, which ends when it stalls.
type answer struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
	timer  *time.Timer
	stall  time.Duration
}

// errStalled is the cause of an answer that gave no byte for too long.
var errStalled = errors.New("the server sent nothing for too long")

// errWhole is wrapped by the error of a server that does not know ranges.
var errWhole = errors.New("the server sent something else where a part of an object was asked for")

// Read reads what is there, and fails when nothing comes.
func (a *answer) Read(p []byte) (int, error) {
	a.timer.Reset(a.stall)
	n, err := a.ReadCloser.Read(p)
	a.timer.Stop()
	return n, err
}

// Close gives up what was not read.
func (a *answer) Close() error {
	a.timer.Stop()
	err := a.ReadCloser.Close()
	a.cancel(nil)
	return err
}

// Open opens an object. Unless Options.Ranged is set, the whole object is asked for at once.
func (b *Bucket) Open(name string) (store.File, error) { return b.open(b.end(), name) }

// OpenFor is Open by the endpoint that a rank was dealt: the first of n for ranks 0, n, 2n and so on.
func (b *Bucket) OpenFor(rank int, name string) (store.File, error) {
	return b.open(b.ends[rank%len(b.ends)], name)
}

func (b *Bucket) open(e *end, name string) (store.File, error) {
	key, err := b.key(name)
	if err != nil {
		return nil, err
	}
	f := &object{b: b, end: e, name: name, key: key}
	if b.o.Ranged {
		got, err := e.core.StatObject(b.ctx, b.bucket, key, minio.StatObjectOptions{})
		if err != nil {
			return nil, b.wrap("open", name, err)
		}
		f.info, f.etag = b.info(name, got), got.ETag
		return f, nil
	}
	first := int64(-1)
	if b.o.Ahead > 0 {
		first = AheadPart
	}
	body, got, err := f.ask(b.ctx, 0, first)
	if minio.ToErrorResponse(err).Code == "InvalidRange" { // an empty object has no first part
		body, got, err = f.ask(b.ctx, 0, -1)
	}
	if err != nil {
		return nil, b.wrap("open", name, err)
	}
	f.body, f.info, f.etag = body, b.info(name, got), got.ETag
	if f.upTo = got.Size; first > 0 && got.Size > first {
		f.upTo = first
		f.ahead = f.fetchAhead()
	}
	return f, nil
}

// ask requests the bytes from off up to, and not including, end; end below 0 is the end of the object.
func (f *object) ask(ctx context.Context, off, end int64) (*answer, minio.ObjectInfo, error) {
	var o minio.GetObjectOptions
	if f.etag != "" {
		if err := o.SetMatchETag(f.etag); err != nil {
			return nil, minio.ObjectInfo{}, err
		}
	}
	if off > 0 || end >= 0 {
		last := end - 1
		if end < 0 {
			last = 0 // with off above 0: to the end
		}
		if err := o.SetRange(off, last); err != nil {
			return nil, minio.ObjectInfo{}, err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	body, got, header, err := f.end.core.GetObject(ctx, f.b.bucket, f.key, o)
	if err != nil {
		cancel(nil)
		return nil, got, err
	}
	switch {
	case f.etag != "" && got.ETag != f.etag: // not every server heeds If-Match
		err = ErrReplaced
	case off > 0 || end >= 0:
		got.Size, err = ranged(header.Get("Content-Range"), off, f.etag != "", f.info.Size)
	}
	if err != nil {
		body.Close()
		cancel(nil)
		return nil, got, err
	}
	a := &answer{ReadCloser: body, cancel: cancel, stall: f.b.o.Stall}
	a.timer = time.AfterFunc(time.Hour, func() { cancel(errStalled) })
	a.timer.Stop()
	return a, got, nil
}

// ranged holds the range of an answer to what was asked for, and returns the size of the object.
func ranged(found string, off int64, known bool, size int64) (int64, error) {
	var first, last, all int64
	if found == "" {
		return 0, errWhole
	}
	if n, err := fmt.Sscanf(found, "bytes %d-%d/%d", &first, &last, &all); n != 3 || err != nil || first != off || known && all != size {
		return 0, fmt.Errorf("%w: bytes from %d on were asked for, and it answered with %q", errWhole, off, found)
	}
	return all, nil
}

// Info describes the object as it was when it was opened; reading it fails once it was replaced.
func (f *object) Info() (store.Info, error) { return f.info, nil }

// Opened is the identity that the object had when it was opened.
func (f *object) Opened() store.Info { return f.info }

// ReadAt reads from the object. A read whose answer ended early is asked for again from where it ended, a few times.
func (f *object) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read %s/%s: negative offset %d", f.b.uri, f.name, off)
	}
	want := p[:max(0, min(int64(len(p)), f.info.Size-off))]
	n, err := f.read(want, off)
	if err != nil {
		return n, f.b.wrap("read", f.name, err)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *object) read(p []byte, off int64) (int, error) {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return 0, errors.New("the file is closed")
	}
	if len(p) == 0 {
		f.mu.Unlock()
		return 0, nil
	}
	if (f.body != nil || f.ahead != nil) && off >= f.at && off-f.at <= skip {
		defer f.mu.Unlock()
		return f.stream(p, off)
	}
	if f.inOrder(p, off) {
		defer f.mu.Unlock()
		return f.stream(p, off)
	}
	f.last = off + int64(len(p))
	f.mu.Unlock()
	return f.again(f.b.ctx, p, off, 0, nil)
}

// The bounds of what is asked for when parts are read in order.
const (
	leastGrown = 1 << 20
	mostGrown  = 8 << 20
)

// inOrder opens an answer that goes further than a read, where that begins where the one before ended: a sample that is read in pieces costs
// few requests. What is asked for too much is no more than what was read before. f.mu is held.
func (f *object) inOrder(p []byte, off int64) bool {
	n := max(leastGrown, min(2*f.grown, mostGrown))
	if f.ahead != nil || f.last != off || off == 0 || int64(len(p)) >= n || f.info.Size-off <= int64(len(p)) {
		return false
	}
	end := min(off+n, f.info.Size)
	body, _, err := f.ask(f.b.ctx, off, end)
	if err != nil {
		return false // the request of its own tells
	}
	f.dropBody()
	f.body, f.at, f.upTo, f.grown = body, off, end, n
	return true
}

// stream reads on in the answer that is open, and in what is fetched behind it. f.mu is held.
func (f *object) stream(p []byte, off int64) (n int, err error) {
	if f.body != nil && off < f.upTo {
		n, err = f.inBody(p[:min(int64(len(p)), f.upTo-off)], off)
	}
	if err != nil || n == len(p) {
		return n, err
	}
	f.dropBody()
	if f.ahead == nil {
		if f.last = off + int64(n); f.inOrder(p[n:], f.last) {
			m, err := f.stream(p[n:], off+int64(n))
			return n + m, err
		}
		m, err := f.again(f.b.ctx, p[n:], off+int64(n), 0, nil)
		f.last += int64(m)
		return n + m, err
	}
	m, err := f.ahead.read(p[n:], off+int64(n))
	n += m
	if f.at = off + int64(n); err != nil || f.at == f.info.Size {
		f.drop()
	}
	return n, err
}

// inBody reads on in the answer that is open.
func (f *object) inBody(p []byte, off int64) (int, error) {
	_, err := io.CopyN(io.Discard, f.body, off-f.at)
	n := 0
	if err == nil {
		n, err = io.ReadFull(f.body, p)
	}
	f.at = off + int64(n)
	if err == nil {
		if f.at == f.upTo {
			f.last = f.at
			f.dropBody()
		}
		return n, nil
	}
	f.dropBody()
	m, err := f.again(f.b.ctx, p[n:], off+int64(n), 1, err)
	if f.at += int64(m); f.at < f.upTo && f.ahead != nil {
		f.at = f.upTo // the rest of the part is asked for again, whoever reads on behind it is served from what was fetched
	}
	return n + m, err
}

// drop gives up the answer and what is fetched ahead.
func (f *object) drop() {
	f.dropBody()
	if f.ahead != nil {
		f.ahead.close()
		f.ahead = nil
	}
}

func (f *object) dropBody() {
	if f.body != nil {
		f.body.Close()
		f.body = nil
	}
}

// again asks for p's bytes by requests of their own until they are there, the attempts are used up, or no further one can help.
// tried of the attempts were made before, the last of which failed with why.
func (f *object) again(ctx context.Context, p []byte, off int64, tried int, why error) (n int, err error) {
	for ; tried < f.b.o.Attempts; tried++ {
		if ctx.Err() != nil {
			return n, context.Cause(ctx)
		}
		if tried > 0 {
			f.b.retries.Add(1)
			if err := f.b.pause(tried); err != nil {
				return n, err
			}
		}
		var a *answer
		if a, _, why = f.ask(ctx, off+int64(n), off+int64(len(p))); why != nil {
			if final(why) {
				return n, why
			}
			continue
		}
		var m int
		m, why = io.ReadFull(a, p[n:])
		a.Close()
		if n += m; why == nil {
			return n, nil
		}
	}
	return n, fmt.Errorf("byte %d of %d: given up after %d attempts: %w", off+int64(n), f.info.Size, tried, why)
}

// Close gives up what was not read.
func (f *object) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fmt.Errorf("close %s/%s: it is closed already", f.b.uri, f.name)
	}
	f.closed = true
	f.drop()
	return nil
}
