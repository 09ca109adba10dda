package s3

import (
	"io"
	"net/http"
	"sync/atomic"
)

// Traffic counts what went between this process and the server of a bucket, every attempt of a request as one.
type Traffic struct {
	// Get, Put, Head and Other are the requests by method; PUT and POST count as Put, which are writes and parts of them. Listings are
	// GET requests and count as List instead.
	Get, Put, Head, List, Other int64
	// Refused are the answers of status 429 and 5xx, SlowDown among them; Broken the requests that got no answer. Retries are the
	// reads and writes that were tried again because of such, or because an answer ended early.
	Refused, Broken, Retries int64
	// Received and Sent are bytes of bodies.
	Received, Sent int64
}

// counts are the counters behind Traffic.
type counts struct {
	gets, puts, heads, lists, others, refused, broken, retries, received, sent atomic.Int64
}

// Traffic returns what was counted so far.
func (c *counts) Traffic() Traffic {
	return Traffic{Get: c.gets.Load(), Put: c.puts.Load(), Head: c.heads.Load(), List: c.lists.Load(), Other: c.others.Load(),
		Refused: c.refused.Load(), Broken: c.broken.Load(), Retries: c.retries.Load(), Received: c.received.Load(), Sent: c.sent.Load()}
}

// counting is a transport that counts.
type counting struct {
	http.RoundTripper
	c *counts
}

// RoundTrip carries out one attempt of a request.
func (t *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.Method {
	case http.MethodGet:
		if q := r.URL.Query(); q.Has("list-type") || q.Has("uploads") {
			t.c.lists.Add(1)
		} else {
			t.c.gets.Add(1)
		}
	case http.MethodPut, http.MethodPost:
		t.c.puts.Add(1)
	case http.MethodHead:
		t.c.heads.Add(1)
	default:
		t.c.others.Add(1)
	}
	if r.Body != nil && r.Body != http.NoBody {
		counted := *r
		counted.Body = &countedBody{r.Body, &t.c.sent}
		r = &counted
	}
	a, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		t.c.broken.Add(1)
		return a, err
	}
	if a.StatusCode >= http.StatusInternalServerError || a.StatusCode == http.StatusTooManyRequests {
		t.c.refused.Add(1)
	}
	a.Body = &countedBody{a.Body, &t.c.received}
	return a, nil
}

// countedBody counts what is read of a body.
type countedBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}
