package s3

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/s3/s3test"
	"github.com/benchpin/benchpin/pkg/store/storetest"
)

// TestReadsSurvive reads through a server that refuses, resets, and cuts every second answer short: what is read is what was written.
func TestReadsSurvive(t *testing.T) {
	server := inMemory(t)
	data := storetest.Pattern(3, 3<<20+17)
	storetest.Write(t, bucket(t, server, "s3://data/p", nil), "f", data)
	for name, p := range map[string]*s3test.Proxy{
		"busy": {Fault: func(n int64, w http.ResponseWriter, _ *http.Request) bool { return n%2 == 1 && s3test.SlowDown(w) }},
		"reset": {Fault: func(n int64, _ http.ResponseWriter, _ *http.Request) bool {
			if n%2 == 1 {
				return s3test.Reset()
			}
			return false
		}},
		"cut": {Answer: func(n int64, r *http.Response) error {
			if n%2 == 1 {
				s3test.Cut(r, 100_000)
			}
			return nil
		}},
	} {
		for _, ranged := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,ranged=%v", name, ranged), func(t *testing.T) {
				b := bucket(t, p.Start(t, server), "s3://data/p", func(o *Options) { o.Ranged = ranged })
				for range 3 {
					if got := storetest.Read(t, b, "f"); !bytes.Equal(got, data) {
						t.Fatal("other bytes")
					}
				}
				if got := storetest.List(t, b); len(got) != 1 {
					t.Errorf("listed %q", got)
				}
				if name == "cut" && b.Traffic().Retries == 0 {
					t.Error("answers were cut and none was asked for again")
				}
			})
		}
	}
}

// TestReadsGiveUp wants an error, and no bytes passed off as whole, from a server that never gets through.
func TestReadsGiveUp(t *testing.T) {
	server := inMemory(t)
	storetest.Write(t, bucket(t, server, "s3://data", nil), "f", storetest.Pattern(3, 1<<20))
	p := &s3test.Proxy{Answer: func(_ int64, r *http.Response) error { s3test.Cut(r, 10); return nil }}
	b := bucket(t, p.Start(t, server), "s3://data", func(o *Options) { o.Attempts = 3 })
	f, err := b.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n, err := f.ReadAt(make([]byte, 1<<20), 0)
	if err == nil || err == io.EOF || !strings.Contains(err.Error(), "3 attempts") || !strings.Contains(err.Error(), "s3://data/f") {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestLengthLies wants a server whose answer names a wrong length to be found out by the size of the object.
func TestLengthLies(t *testing.T) {
	server := inMemory(t)
	data := storetest.Pattern(3, 100_000)
	storetest.Write(t, bucket(t, server, "s3://data", nil), "f", data)
	p := &s3test.Proxy{Answer: func(_ int64, r *http.Response) error {
		if r.Request.Method != http.MethodGet || r.Request.URL.RawQuery != "" {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		short := body[:len(body)/2]
		r.Body = io.NopCloser(bytes.NewReader(short))
		r.ContentLength = int64(len(short))
		r.Header.Set("Content-Length", strconv.Itoa(len(short)))
		return nil
	}}
	b := bucket(t, p.Start(t, server), "s3://data", func(o *Options) { o.Ranged, o.Attempts = true, 2 })
	f, err := b.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := make([]byte, len(data))
	if n, err := f.ReadAt(got, 0); (err == nil || err == io.EOF) && !bytes.Equal(got[:n], data) {
		t.Errorf("%d of %d bytes passed for all", n, len(data))
	}
}

// TestStalls wants an answer that stops coming to be given up in time.
func TestStalls(t *testing.T) {
	server := inMemory(t)
	storetest.Write(t, bucket(t, server, "s3://data", nil), "f", storetest.Pattern(3, 1<<20))
	done := make(chan struct{})
	p := &s3test.Proxy{Answer: func(_ int64, r *http.Response) error {
		if r.Request.Method == http.MethodGet {
			r.Body = &stuck{r.Body, 1000, done}
		}
		return nil
	}}
	b := bucket(t, p.Start(t, server), "s3://data", func(o *Options) { o.Stall, o.Attempts = 100*time.Millisecond, 2 })
	t.Cleanup(func() { close(done) })
	start := time.Now()
	f, err := b.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(make([]byte, 1<<20), 0); err == nil || err == io.EOF {
		t.Errorf("a stalled read: %v", err)
	}
	f.Close()
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("gave up after %v", took)
	}
}

type stuck struct {
	io.ReadCloser
	left int64
	done chan struct{}
}

func (s *stuck) Read(p []byte) (int, error) {
	if s.left <= 0 {
		<-s.done
		return 0, io.ErrUnexpectedEOF
	}
	n, err := s.ReadCloser.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	return n, err
}

// TestListingFails wants an error of the server in any page to be an error of the listing, never a shorter list.
func TestListingFails(t *testing.T) {
	server := inMemory(t)
	direct := bucket(t, server, "s3://data/d", nil)
	for i := range 1500 {
		storetest.Write(t, direct, fmt.Sprintf("f%04d", i), nil)
	}
	if n := len(storetest.List(t, direct)); n != 1500 {
		t.Fatalf("%d listed", n)
	}
	for page := range int64(2) {
		p := &s3test.Proxy{Fault: func(n int64, w http.ResponseWriter, _ *http.Request) bool {
			if n <= page {
				return false
			}
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `<Error><Code>AccessDenied</Code></Error>`)
			return true
		}}
		b := bucket(t, p.Start(t, server), "s3://data/d", nil)
		err := b.List(context.Background(), func(store.Info) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
			t.Errorf("page %d refused: %v", page, err)
		}
	}
	none := bucket(t, server, "s3://nobucket/d", nil)
	if err := none.List(context.Background(), func(store.Info) error { return nil }); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a bucket that is not there: %v", err)
	}
}

// TestUploadsFail wants every upload that failed to leave nothing behind that could pass for the file, and to say so.
func TestUploadsFail(t *testing.T) {
	data := storetest.Pattern(3, 2*MinPart+100)
	is := s3test.Is
	for name, fault := range map[string]func(n int64, w http.ResponseWriter, r *http.Request) bool{
		"complete refused": func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			if !is(r, http.MethodPost, "uploadId") {
				return false
			}
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, `<Error><Code>InternalError</Code></Error>`)
			return true
		},
		"complete fails with status 200": func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			if !is(r, http.MethodPost, "uploadId") {
				return false
			}
			io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>`)
			return true
		},
		"a part refused": func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			return is(r, http.MethodPut, "partNumber") && r.URL.Query().Get("partNumber") == "2" && s3test.SlowDown(w)
		},
		"a part flipped": func(_ int64, _ http.ResponseWriter, r *http.Request) bool {
			if is(r, http.MethodPut, "partNumber") && r.URL.Query().Get("partNumber") == "1" {
				s3test.Flip(r, 77)
			}
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := inMemory(t)
			p := &s3test.Proxy{Fault: fault}
			b := bucket(t, p.Start(t, server), "s3://data/d", func(o *Options) { o.Attempts = 2 })
			w, err := b.Create("f", int64(len(data)))
			if err != nil {
				t.Fatal(err)
			}
			_, werr := w.Write(data)
			cerr := w.Commit()
			if werr == nil && cerr == nil {
				t.Error("it was committed")
			} else if !strings.Contains(errors.Join(werr, cerr).Error(), "s3://data/d/f") {
				t.Errorf("the object is not named: %v, %v", werr, cerr)
			}
			if got := storetest.List(t, bucket(t, server, "s3://data/d", nil)); len(got) != 0 {
				t.Errorf("%q is there", got)
			}
		})
	}
}

// TestUploadsSurvive uploads in one request and in parts while every third request is refused.
func TestUploadsSurvive(t *testing.T) {
	server := inMemory(t)
	p := &s3test.Proxy{Fault: func(n int64, w http.ResponseWriter, r *http.Request) bool {
		if n%3 != 0 {
			return false
		}
		io.Copy(io.Discard, r.Body)
		return s3test.SlowDown(w)
	}}
	b := bucket(t, p.Start(t, server), "s3://data/d", nil)
	for i, n := range []int{0, 1, MinPart, MinPart + 1, 3*MinPart + 5} {
		name := fmt.Sprintf("f%d", i)
		storetest.Write(t, b, name, storetest.Pattern(i, n))
		if got := storetest.Read(t, bucket(t, server, "s3://data/d", nil), name); !bytes.Equal(got, storetest.Pattern(i, n)) {
			t.Errorf("%d bytes differ", n)
		}
	}
}

// abandon leaves unfinished uploads on a server, and wants those below the prefix removed and no others.
func abandon(t *testing.T, endpoint string) {
	t.Helper()
	b := bucket(t, endpoint, "s3://data/p", nil)
	begin := func(b *Bucket, name string) store.Writer {
		w, err := b.Create(name, 3*MinPart)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(storetest.Pattern(1, 2*MinPart+1)); err != nil {
			t.Fatal(err)
		}
		return w
	}
	begin(b, "f")
	begin(b, "sub/g")
	other := begin(bucket(t, endpoint, "s3://data/q", nil), "f")
	for _, want := range []int{2, 0} {
		if n, err := b.Abandon(t.Context()); n != want || err != nil {
			t.Errorf("%d given up, expected %d, %v", n, want, err)
		}
	}
	if _, err := other.Write(storetest.Pattern(1, MinPart-1)); err != nil {
		t.Fatal(err)
	}
	if err := other.Commit(); err != nil {
		t.Errorf("another's upload: %v", err)
	}
}

// TestAbandon: what a killed process left of uploads is removed; a server that does not tell of it is left alone.
func TestAbandon(t *testing.T) {
	abandon(t, inMemory(t))
	for _, status := range []int{http.StatusNotImplemented, http.StatusForbidden} {
		p := &s3test.Proxy{Fault: func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			return s3test.Is(r, http.MethodGet, "uploads") && s3test.Refuse(w, status, "NotImplemented", "")
		}}
		if n, err := bucket(t, p.Start(t, inMemory(t)), "s3://data", nil).Abandon(t.Context()); n != 0 || err != nil {
			t.Errorf("a server that does not tell: %d, %v", n, err)
		}
	}
}

// TestEndpoints: accelerators are dealt to several endpoints by rank, and everything else goes by all of them.
func TestEndpoints(t *testing.T) {
	server := inMemory(t)
	var asked [3]atomic.Int64
	var list []string
	for i := range asked {
		p := &s3test.Proxy{Fault: func(int64, http.ResponseWriter, *http.Request) bool { asked[i].Add(1); return false }}
		list = append(list, p.Start(t, server))
	}
	b := bucket(t, strings.Join(list, ", "), "s3://data", nil)
	storetest.Write(t, b, "f", []byte("abc"))
	counts := func() (n [3]int64) {
		for i := range asked {
			n[i] = asked[i].Load()
		}
		return n
	}
	before := counts()
	var known store.Info
	for rank := range 7 {
		f, err := b.OpenFor(rank, "f")
		if err != nil {
			t.Fatal(err)
		}
		info, _ := f.Info()
		if known.Size > 0 && !info.Same(known) {
			t.Errorf("rank %d: another identity: %v, %v", rank, info, known)
		}
		known = info
		f.Close()
	}
	after := counts()
	for i, want := range []int64{3, 2, 2} {
		if n := after[i] - before[i]; n != want {
			t.Errorf("endpoint %d was asked %d times, expected %d", i, n, want)
		}
	}
	for range 6 {
		if _, err := b.Stat("f"); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range counts() {
		if n-after[i] != 2 {
			t.Errorf("endpoint %d was asked %d times of 6", i, n-after[i])
		}
	}
	if _, err := Open(t.Context(), "s3://data", Options{Endpoint: "http://a:1,http://a:1"}); err == nil {
		t.Error("an endpoint that is named twice was accepted")
	}
}

// TestTLS: a server whose certificate nobody vouches for is refused, and one that wants to see a certificate is shown ours.
func TestTLS(t *testing.T) {
	plain, err := url.Parse(inMemory(t))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(plain))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own := srv.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	ca, keyFile := write("ca.pem", "CERTIFICATE", own.Certificate[0]), write("key.pem", "PRIVATE KEY", key)
	stat := func(change func(*Options)) error {
		_, err := bucket(t, srv.URL, "s3://data", func(o *Options) { o.Attempts = 1; change(o) }).Stat("none")
		return err
	}
	if err := stat(func(o *Options) { o.CAFile, o.CertFile, o.KeyFile = ca, ca, keyFile }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("with all certificates: %v", err)
	}
	if err := stat(func(o *Options) { o.CertFile, o.KeyFile = ca, keyFile }); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server that nobody vouches for: %v", err)
	}
	if err := stat(func(o *Options) { o.CAFile = ca }); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a certificate of our own: %v", err)
	}
	for _, o := range []Options{{CAFile: filepath.Join(dir, "none")}, {CAFile: keyFile}, {CertFile: ca}, {CertFile: ca, KeyFile: ca}} {
		if _, err := Open(t.Context(), "s3://data", o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

// TestLostUpload: an upload that somebody else gave up is not complete. (That one is complete although the answer was lost shows by a server
// that makes tags of parts as S3 does.)
func TestLostUpload(t *testing.T) { lostAnswers(t, inMemory(t), false) }

// lostAnswers loses the answer to completing an upload, or gives the upload up before. It is complete only if the object is the one that was
// sent.
func lostAnswers(t *testing.T, server string, kinds ...bool) {
	t.Helper()
	data := storetest.Pattern(1, 2*MinPart+1)
	for _, lost := range kinds {
		var once atomic.Bool
		p := &s3test.Proxy{
			Fault: func(_ int64, w http.ResponseWriter, r *http.Request) bool { // gives the upload up before it is completed
				if lost || !s3test.Is(r, http.MethodPost, "uploadId") || once.Swap(true) {
					return false
				}
				gone := bucket(t, server, "s3://data", nil)
				if n, err := gone.Abandon(context.Background()); n != 1 || err != nil {
					t.Errorf("%d given up, %v", n, err)
				}
				return false
			},
			Answer: func(_ int64, r *http.Response) error {
				if lost && s3test.Is(r.Request, http.MethodPost, "uploadId") && !once.Swap(true) {
					return errors.New("lost")
				}
				return nil
			},
		}
		b := bucket(t, p.Start(t, server), "s3://data", nil)
		w, err := b.Create("f", int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(); (err == nil) != lost {
			t.Errorf("answer lost: %v; committed: %v", lost, err)
		}
		if !once.Load() {
			t.Error("no harm was done")
		}
		data[100] ^= 1 // what is there then is another object of the same size
	}
}

// TestShortObjects wants an object of which the server says that it is shorter than what was written not to count as written.
func TestShortObjects(t *testing.T) {
	p := &s3test.Proxy{Fault: func(_ int64, w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodHead {
			return false
		}
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		w.Header().Set("ETag", `"other"`)
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusOK)
		return true
	}}
	b := bucket(t, p.Start(t, inMemory(t)), "s3://data", nil)
	for _, n := range []int{1000, MinPart + 1000} {
		w, err := b.Create("f", int64(n))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(storetest.Pattern(1, n)); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(); err == nil || !strings.Contains(err.Error(), "the server has 100 bytes") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// TestOtherObjects wants an object of the right size and another tag than the upload was answered with not to count as written.
func TestOtherObjects(t *testing.T) {
	p := &s3test.Proxy{Answer: func(_ int64, r *http.Response) error {
		if r.Request.Method == http.MethodHead {
			r.Header.Set("ETag", `"0123456789abcdef0123456789abcdef"`)
		}
		return nil
	}}
	w, err := bucket(t, p.Start(t, inMemory(t)), "s3://data", nil).Create("f", 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err == nil || !strings.Contains(err.Error(), "lost what was written") {
		t.Error(err)
	}
}

// TestUploadEndsWithBucket: an upload of several parts whose bucket is closed meanwhile fails, whatever was sent before.
func TestUploadEndsWithBucket(t *testing.T) {
	server := inMemory(t)
	b := bucket(t, server, "s3://data", nil)
	w, err := b.Create("f", 4*MinPart)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 2*MinPart+1)); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); b.Traffic().Sent < 2*MinPart && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	b.Close()
	_, werr := w.Write(make([]byte, 2*MinPart-1))
	if cerr := w.Commit(); cerr == nil {
		t.Errorf("it was committed; writing: %v", werr)
	}
	if got := storetest.List(t, bucket(t, server, "s3://data", nil)); len(got) != 0 {
		t.Errorf("%q is there", got)
	}
}

// TestCloseEndsRequests wants a run that ends not to wait for a server.
func TestCloseEndsRequests(t *testing.T) {
	done := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(done) })
	b := bucket(t, srv.URL, "s3://data", nil)
	time.AfterFunc(50*time.Millisecond, func() { b.Close() })
	start := time.Now()
	if _, err := b.Open("f"); !errors.Is(err, errClosed) {
		t.Errorf("open: %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("ended after %v", took)
	}
}

func TestAddresses(t *testing.T) {
	for _, uri := range []string{"", "data", "s3://", "s3:///x", "s3://b//x", "s3://b/../x", "s3://b/x//y", "file:///x"} {
		if _, _, err := ParseURI(uri); err == nil {
			t.Errorf("%q was accepted", uri)
		}
	}
	for uri, want := range map[string][2]string{"s3://b": {"b", ""}, "s3://b/": {"b", ""}, "s3://b/x/y/": {"b", "x/y"}} {
		if b, p, err := ParseURI(uri); err != nil || b != want[0] || p != want[1] {
			t.Errorf("%q: %q %q %v", uri, b, p, err)
		}
	}
	for _, endpoint := range []string{"ftp://x", "http://", "http://x/path", "http://u:p@x", "://"} {
		if _, err := Open(context.Background(), "s3://b", Options{Endpoint: endpoint}); err == nil {
			t.Errorf("endpoint %q was accepted", endpoint)
		}
	}
}
