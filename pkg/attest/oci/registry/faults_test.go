package registry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// faulty is a connection that fails now and then, in the ways in which registries and networks do.
type faulty struct {
	inner http.RoundTripper
	mu    sync.Mutex
	rng   *rand.Rand
	// rate is how many of a hundred requests are hit.
	rate int
	hits map[string]int
}

// RoundTrip answers as the registry would, or with a fault.
func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	hit, kind, at := f.rng.IntN(100) < f.rate, f.rng.IntN(7), f.rng.IntN(1<<16)
	f.mu.Unlock()
	if !hit {
		return f.inner.RoundTrip(r)
	}
	switch kind {
	case 0:
		f.note("busy")
		return answer(r, http.StatusServiceUnavailable, ""), nil
	case 1:
		f.note("reset before")
		return nil, fmt.Errorf("read: %w", syscall.ECONNRESET)
	case 2:
		// The registry did what it was asked for, and nobody learns of it.
		f.note("lost answer")
		if got, err := f.inner.RoundTrip(r); err == nil {
			got.Body.Close()
		}
		return nil, fmt.Errorf("read: %w", io.ErrUnexpectedEOF)
	case 3:
		f.note("cut short")
		return f.change(r, func(b []byte) []byte { return b[:at%(len(b)+1)] }, true)
	case 4:
		f.note("other bytes")
		return f.change(r, func(b []byte) []byte {
			if len(b) > 0 {
				b[at%len(b)] ^= 1
			}
			return b
		}, false)
	case 5:
		f.note("twice")
		return f.twice(r)
	default:
		f.note("gateway")
		return answer(r, http.StatusBadGateway, "<html>bad gateway</html>"), nil
	}
}

func (f *faulty) note(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hits[kind]++
}

func answer(r *http.Request, status int, body string) *http.Response {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	return &http.Response{StatusCode: status, Status: strconv.Itoa(status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)), Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
}

// change hands on the answer with another body; only blobs and manifests that are fetched are changed.
func (f *faulty) change(r *http.Request, edit func([]byte) []byte, cut bool) (*http.Response, error) {
	got, err := f.inner.RoundTrip(r)
	if err != nil || r.Method != http.MethodGet || got.StatusCode != http.StatusOK {
		return got, err
	}
	raw, err := io.ReadAll(got.Body)
	got.Body.Close()
	if err != nil {
		return nil, err
	}
	var body io.Reader = bytes.NewReader(edit(raw))
	if cut {
		body = io.MultiReader(body, failing{io.ErrUnexpectedEOF})
	}
	got.Body = io.NopCloser(body)
	return got, nil
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// twice sends a request two times, as a proxy does that lost the first answer.
func (f *faulty) twice(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	for i := 0; ; i++ {
		again := r.Clone(r.Context())
		if r.Body != nil {
			again.Body = io.NopCloser(bytes.NewReader(body))
		}
		got, err := f.inner.RoundTrip(again)
		if err != nil || i == 1 {
			return got, err
		}
		got.Body.Close()
	}
}

// direct serves requests by a handler in this process, without a socket.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "http" {
		return nil, errors.New("the registry speaks no TLS")
	}
	in := r.Clone(r.Context())
	in.RequestURI = r.URL.RequestURI()
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, in)
	got := w.Result()
	got.Request = r
	return got, nil
}

// short is a small archive with n bundles.
func short(t *testing.T, n int) (dir, digest string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "archive")
	g, err := oci.Pack(t.Context(), dir, []oci.Source{
		oci.FromBytes("record.json", "application/json", []byte(`{"a":1}`)),
		oci.FromBytes("logs/steps.parquet", "application/octet-stream", []byte("steps")),
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := oci.Attach(t.Context(), dir, "https://example.com/predicate", fmt.Appendf(nil, `{"bundle":%d}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	return dir, "sha256:" + g.Hex()
}

// TestFaults pushes and pulls through connections that fail, and wants the same bytes at the other end or an error, and never anything else:
// no folder with something else in it, no tag that leads to half an archive. The seed of a failure makes it again: BENCHPIN_SEED=N.
func TestFaults(t *testing.T) {
	seeds, first := 150, 0
	if os.Getenv("BENCHPIN_LONG") == "1" {
		seeds = 2000
	}
	if s := os.Getenv("BENCHPIN_SEED"); s != "" {
		first, _ = strconv.Atoi(s)
		seeds = 1
	}
	dir, digest := short(t, 2)
	want := tree(t, dir)
	log.SetOutput(io.Discard) // the registry in this process complains of what it refuses
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	hits := map[string]int{}
	pushes, pulls := 0, 0
	for seed := first; seed < first+seeds; seed++ {
		handler := handlers(t)[[]string{"referrers API", "fallback tag"}[seed%2]]
		clean := direct{handler}
		f := &faulty{inner: clean, rng: rand.New(rand.NewPCG(uint64(seed), 7)), rate: []int{3, 10, 25}[seed%3], hits: hits}
		const ref = "localhost:1/results/small:v1"
		o := Options{Transport: f, Wait: time.Microsecond, Jobs: 1}
		_, err := Push(t.Context(), dir, ref, o)
		if err == nil {
			pushes++
		} else {
			// What stands there must be nothing, or the whole: the tag moves last.
			if p, err := Pull(t.Context(), ref, filepath.Join(t.TempDir(), "x"), Options{Transport: clean, Wait: time.Microsecond}); err == nil && (p.Digest != digest || p.Bundles != 2) {
				t.Errorf("seed %d: the tag leads to a part: %+v", seed, p)
			}
			// A push that failed is finished by another.
			if _, err := Push(t.Context(), dir, ref, Options{Transport: clean, Wait: time.Microsecond}); err != nil {
				t.Fatalf("seed %d: pushed again: %v", seed, err)
			}
		}
		parent := t.TempDir()
		to := filepath.Join(parent, "pulled")
		pulled, err := Pull(t.Context(), ref, to, o)
		if err != nil {
			if _, gone := os.Lstat(to); gone == nil {
				t.Errorf("seed %d: a pull that failed left %s", seed, to)
			}
			if pulled, err = Pull(t.Context(), ref, to, Options{Transport: clean, Wait: time.Microsecond}); err != nil {
				t.Fatalf("seed %d: pulled again: %v", seed, err)
			}
		} else {
			pulls++
		}
		if got := tree(t, parent); pulled.Digest != digest || len(got) != len(want) {
			t.Errorf("seed %d: %d files, expected %d, digest %s", seed, len(got), len(want), pulled.Digest)
		}
		for path, content := range tree(t, to) {
			if want[path] != content {
				t.Errorf("seed %d: %s differs", seed, path)
			}
		}
	}
	t.Logf("%d of %d pushes and %d pulls went through; faults: %v", pushes, seeds, pulls, hits)
	if seeds > 1 && (pushes == 0 || pulls == 0 || len(hits) < 7 || pushes == seeds) {
		t.Errorf("the faults are too rare or too many to show anything")
	}
}

// TestTheTagMovesLast cuts a push off at every request, and wants the tag at the old archive until the last one.
func TestTheTagMovesLast(t *testing.T) {
	for name, handler := range handlers(t) {
		t.Run(name, func(t *testing.T) {
			clean := direct{handler}
			old, oldDigest := short(t, 1)
			const ref = "localhost:1/results/small:v1"
			if _, err := Push(t.Context(), old, ref, Options{Transport: clean}); err != nil {
				t.Fatal(err)
			}
			dir, digest := sample(t, 2)
			moved := false
			for cut := 1; !moved; cut++ {
				if cut > 200 {
					t.Fatal("a push takes more than 200 requests")
				}
				_, err := Push(t.Context(), dir, ref, Options{Transport: &cutOff{inner: clean, left: cut}, Wait: time.Microsecond, Jobs: 1})
				pulled, problem := Pull(t.Context(), ref, filepath.Join(t.TempDir(), "pulled"), Options{Transport: clean})
				if problem != nil {
					t.Fatalf("cut after %d requests: %v", cut, problem)
				}
				switch {
				case err != nil && pulled.Digest != oldDigest:
					// The last answer may have been lost: then the whole must stand there.
					if pulled.Digest != digest || pulled.Bundles != 2 {
						t.Errorf("cut after %d requests: the tag leads to %+v", cut, pulled)
					}
				case err == nil && (pulled.Digest != digest || pulled.Bundles != 2):
					t.Errorf("after %d requests: pulled %+v", cut, pulled)
				}
				moved = err == nil
			}
		})
	}
}

// cutOff lets some requests through, and then none, for ever.
type cutOff struct {
	inner http.RoundTripper
	mu    sync.Mutex
	left  int
}

func (c *cutOff) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left < 0 {
		return nil, errors.New("the cable was pulled")
	}
	return c.inner.RoundTrip(r)
}

// TestResume cuts a pull off after each request, and wants the next one to fetch only what is missing.
func TestResume(t *testing.T) {
	handler := handlers(t)["fallback tag"]
	dir, _ := sample(t, 1)
	const ref = "localhost:1/results/small:v1"
	if _, err := Push(t.Context(), dir, ref, Options{Transport: direct{handler}}); err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()
	to := filepath.Join(parent, "pulled")
	count := &counting{inner: direct{handler}, layer: "sha256:" + hexOf(t, dir, "record.json"), broken: "sha256:" + hexOf(t, dir, "logs/steps.parquet")}
	_, err := Pull(t.Context(), ref, to, Options{Transport: count, Wait: time.Microsecond})
	if err == nil || !strings.Contains(err.Error(), "repeat the command") {
		t.Fatalf("cut off: %v", err)
	}
	left, _ := filepath.Glob(filepath.Join(parent, ".pulled.benchpin-*"))
	if len(left) != 1 {
		t.Fatalf("left %q", left)
	}
	// What lies there is not believed: other bytes under the right name are fetched again, and what does not belong is removed.
	blobs := filepath.Join(left[0], "blobs", "sha256")
	if err := os.WriteFile(filepath.Join(blobs, ".blob-1"), []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(blobs, strings.TrimPrefix(count.broken, "sha256:"))); err != nil {
		t.Fatal(err)
	}
	count.broken = ""
	if _, err := Pull(t.Context(), ref, to, Options{Transport: count, Wait: time.Microsecond}); err != nil {
		t.Fatal(err)
	}
	if count.fetched != 1 {
		t.Errorf("the layer that was there was fetched %d times", count.fetched)
	}
	if got := tree(t, parent); len(got) != len(tree(t, dir)) {
		t.Errorf("left over: %d files", len(got))
	}
	if l, err := oci.Read(t.Context(), to); err != nil || l.Err() != nil {
		t.Errorf("read: %v, %v", err, l.Err())
	}
}

func hexOf(t *testing.T, dir, title string) string {
	t.Helper()
	l, err := oci.Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Layer(title).Blob.Hex()
}

// counting counts how often a layer is fetched, and breaks the connection of another.
type counting struct {
	inner         http.RoundTripper
	layer, broken string
	fetched       int
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && c.broken != "" && strings.HasSuffix(r.URL.Path, c.broken) {
		return nil, fmt.Errorf("read: %w", syscall.ECONNRESET)
	}
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, c.layer) {
		c.fetched++
	}
	return c.inner.RoundTrip(r)
}

// TestLostUpdate lets another writer overwrite the list under the fallback tag, as two at once do, and wants the entry to be made again.
func TestLostUpdate(t *testing.T) {
	l := &losing{inner: direct{handlers(t)["fallback tag"]}}
	dir, digest := short(t, 1)
	const ref = "localhost:1/results/small:v1"
	if _, err := Push(t.Context(), dir, ref, Options{Transport: l}); err != nil {
		t.Fatal(err)
	}
	l.lose = 3
	o := Options{Transport: l, Wait: time.Microsecond}
	attached, err := Attach(t.Context(), ref, []Bundle{{"https://example.com/second", []byte(`{"second":1}`)}}, o)
	if err != nil || attached.Digest != digest || l.lose != 0 {
		t.Fatalf("%+v, %v; %d updates were not lost", attached, err, l.lose)
	}
	listed, err := List(t.Context(), ref, o)
	if err != nil || len(listed.Referrers) != 2 {
		t.Errorf("listed %+v, %v", listed, err)
	}
	// One that is lost every time is an error, and not a silence.
	l.lose = 1 << 20
	if _, err := Attach(t.Context(), ref, []Bundle{{"https://example.com/third", []byte(`{"third":1}`)}}, o); !errors.Is(err, errMissing) {
		t.Errorf("lost for ever: %v", err)
	}
}

// losing answers that it took a list under a fallback tag, and drops it.
type losing struct {
	inner http.RoundTripper
	lose  int
}

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/sha256-") && l.lose > 0 {
		l.lose--
		return answer(r, http.StatusCreated, ""), nil
	}
	return l.inner.RoundTrip(r)
}
