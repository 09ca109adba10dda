// Package s3test has object servers for tests: one that keeps objects in memory, and a proxy before any that does harm where a test says
// so.
package s3test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// The credentials that tests use.
const (
	AccessKey = "key"
	SecretKey = "secret-secret"
)

// InMemory starts a server that keeps objects in the memory of the test, with empty buckets, and returns its address.
func InMemory(t testing.TB, buckets ...string) (endpoint string) {
	t.Helper()
	backend := s3mem.New()
	for _, name := range buckets {
		if err := backend.CreateBucket(name); err != nil {
			t.Fatal(err)
		}
	}
	srv := httptest.NewUnstartedServer(gofakes3.New(backend).Server())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // it writes headers twice
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}

// Environment lets the process reach a server: as AWS_ENDPOINT_URL, with the credentials of tests, and none from any file.
func Environment(t *testing.T, endpoint string) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": endpoint, "AWS_ENDPOINT_URL_S3": "", "AWS_ACCESS_KEY_ID": AccessKey, "AWS_SECRET_ACCESS_KEY": SecretKey, "AWS_SESSION_TOKEN": "",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_CA_BUNDLE": "", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent", "AWS_PROFILE": "",
	} {
		t.Setenv(name, value)
	}
}

// Proxy stands between a store and a server and does harm where a test says so.
type Proxy struct {
	// Fault is asked for each request, counted from 1; it returns true when it has answered. Nil: never.
	Fault func(n int64, w http.ResponseWriter, r *http.Request) bool
	// Answer may change what the server answered. Nil: nothing.
	Answer func(n int64, r *http.Response) error

	count atomic.Int64
}

// Count is how many requests came so far.
func (p *Proxy) Count() int64 { return p.count.Load() }

// Start puts the proxy before a server, and returns its address.
func (p *Proxy) Start(t testing.TB, server string) (endpoint string) {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	rp := httputil.NewSingleHostReverseProxy(to)
	rp.FlushInterval = -1
	rp.ErrorLog = log.New(io.Discard, "", 0)
	rp.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	type numbered struct{}
	rp.ModifyResponse = func(r *http.Response) error {
		if p.Answer == nil {
			return nil
		}
		return p.Answer(r.Request.Context().Value(numbered{}).(int64), r)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := p.count.Add(1)
		if p.Fault != nil && p.Fault(n, w, r) {
			return
		}
		host := r.Host
		r = r.WithContext(context.WithValue(r.Context(), numbered{}, n))
		r.Host = host
		rp.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// SlowDown answers that the server is busy.
func SlowDown(w http.ResponseWriter) bool {
	return Refuse(w, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
}

// Refuse answers with an error of S3.
func Refuse(w http.ResponseWriter, status int, code, message string) bool {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>`+code+`</Code><Message>`+message+`</Message></Error>`)
	return true
}

// Reset ends the connection without an answer.
func Reset() bool { panic(http.ErrAbortHandler) }

// Flip changes bit 0 of byte i of the body of a request that is passed on.
func Flip(r *http.Request, i int) {
	b, err := io.ReadAll(r.Body)
	if err != nil || len(b) <= i {
		panic(http.ErrAbortHandler)
	}
	b[i] ^= 1
	r.Body = io.NopCloser(bytes.NewReader(b))
}

// Cut lets the body of an answer end after n bytes, by closing the connection.
func Cut(r *http.Response, n int64) { r.Body = &cut{r.Body, n} }

type cut struct {
	io.ReadCloser
	left int64
}

func (c *cut) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errors.New("cut")
	}
	n, err := c.ReadCloser.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// Is reports whether a request has a method and, unless it is "", a parameter.
func Is(r *http.Request, method, parameter string) bool {
	return r.Method == method && (parameter == "" || r.URL.Query().Has(parameter))
}
