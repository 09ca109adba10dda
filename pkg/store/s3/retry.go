package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
)

// body is what one attempt of an upload sends. A server may answer before it has read everything, and the connection then reads on after
// the attempt has failed: body lets it no longer do so, because the bytes will be used for something else.
type body struct {
	mu sync.Mutex
	r  *bytes.Reader // nil once taken back
}

var errTakenBack = errors.New("the attempt has ended")

// Read reads on, as long as the attempt has not ended.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.r == nil {
		return 0, errTakenBack
	}
	return b.r.Read(p)
}

func (b *body) takeBack() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.r = nil
}

// upload sends p by do until it succeeds, the attempts are used up, or no further one can help.
func (b *Bucket) upload(p []byte, do func(io.Reader) error) error {
	for tried := 1; ; tried++ {
		r := &body{r: bytes.NewReader(p)}
		err := do(r)
		r.takeBack()
		if err == nil || final(err) || tried >= b.o.Attempts || b.ctx.Err() != nil {
			return err
		}
		b.retries.Add(1)
		if err := b.pause(tried); err != nil {
			return err
		}
	}
}

// final reports whether an answer will be the same the next time.
func final(err error) bool {
	if errors.Is(err, ErrReplaced) || errors.Is(err, errWhole) {
		return true
	}
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.Code {
	case "BadDigest", "IncompleteBody", "RequestTimeout": // the bytes did not arrive as they were sent
		return false
	}
	switch answer.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return answer.StatusCode != 0 && answer.StatusCode < http.StatusInternalServerError
}

// pause waits before another attempt: 50 ms doubled each time up to 5 s, of which a random half to whole.
func (b *Bucket) pause(tried int) error {
	d := min(50*time.Millisecond<<min(tried-1, 10), 5*time.Second)
	timer := time.NewTimer(d/2 + rand.N(d/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-b.ctx.Done():
		return context.Cause(b.ctx)
	}
}
