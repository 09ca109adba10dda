package registry

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// tlsServer is a registry behind TLS with a certificate that nobody knows, and the file of its authority.
func tlsServer(t *testing.T) (host, caFile string) {
	t.Helper()
	s := httptest.NewUnstartedServer(handlers(t)["referrers API"])
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(s.URL, "https://"), caFile
}

func TestCustomAuthority(t *testing.T) {
	host, caFile := tlsServer(t)
	dir, digest := short(t, 1)
	ref := host + "/x:v1"
	o := Options{CAFile: caFile, Wait: time.Millisecond}
	if _, err := Push(t.Context(), dir, ref, o); err != nil {
		t.Fatal(err)
	}
	p, err := Pull(t.Context(), ref, filepath.Join(t.TempDir(), "x"), o)
	if err != nil || p.Digest != digest || p.Bundles != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	// Without its authority it is refused, and not asked without TLS, although it is on this host.
	_, err = Pull(t.Context(), ref, filepath.Join(t.TempDir(), "x"), Options{Wait: time.Millisecond})
	var certificate *tls.CertificateVerificationError
	if !errors.As(err, &certificate) || !errors.Is(err, ErrPlainHTTP) {
		t.Errorf("an unknown authority: %v", err)
	}
	for name, content := range map[string]string{"empty": "", "a key": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"} {
		file := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Pull(t.Context(), ref, filepath.Join(t.TempDir(), "x"), Options{CAFile: file}); err == nil || !strings.Contains(err.Error(), "expected PEM certificates") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Whoever names an authority wants TLS: a registry on this host without TLS is refused then.
	plain := servers(t)["referrers API"]
	if _, err := Push(t.Context(), dir, plain+"/x:v1", o); !errors.Is(err, ErrPlainHTTP) {
		t.Errorf("plain HTTP with an authority: %v", err)
	}
	o.PlainHTTP = true
	if _, err := Push(t.Context(), dir, plain+"/x:v1", o); err != nil {
		t.Errorf("plain HTTP that was asked for: %v", err)
	}
}

// The guard sees every request; these are the ones that matter.
func TestGuard(t *testing.T) {
	for _, c := range []struct {
		registry       string
		plain, tlsOnly bool
		url            string
		allowed        bool
	}{
		{"localhost:5000", false, false, "http://localhost:5000/v2/", true},
		{"127.0.0.1:5000", false, false, "http://127.0.0.1:5000/v2/", true},
		{"[::1]:5000", false, false, "http://[::1]:5000/v2/", true},
		{"localhost:5000", false, false, "http://127.0.0.1:5001/token", true},
		{"localhost:5000", false, true, "http://localhost:5000/v2/", false},
		{"localhost:5000", false, false, "http://10.0.0.1/token", false},
		{"10.0.0.1:5000", false, false, "http://10.0.0.1:5000/v2/", false},
		{"registry.local:5000", false, false, "http://registry.local:5000/v2/", false},
		{"ghcr.io", false, false, "http://ghcr.io/v2/", false},
		{"ghcr.io", false, false, "http://localhost:631/", false},
		{"ghcr.io", false, false, "https://ghcr.io/v2/", true},
		{"10.0.0.1:5000", true, false, "http://10.0.0.1:5000/v2/", true},
	} {
		g := &guard{inner: empty{}, plain: c.plain, tlsOnly: c.tlsOnly, host: c.registry}
		r, err := http.NewRequest(http.MethodGet, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.RoundTrip(r); (err == nil) != c.allowed || (err != nil && !errors.Is(err, ErrPlainHTTP)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

type empty struct{}

func (empty) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// TestCredentialsRefused wants a message that says what to do.
func TestCredentialsRefused(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer s.Close()
	_, err := Pull(t.Context(), strings.TrimPrefix(s.URL, "http://")+"/x:v1", filepath.Join(t.TempDir(), "x"), Options{Wait: time.Millisecond})
	if !errors.Is(err, ErrCredentials) || !strings.Contains(err.Error(), "docker login") {
		t.Errorf("%v", err)
	}
}

// TestMemory pushes and pulls a layer of 512 MiB (64 MiB in the short suite) in memory that does not depend on its size.
func TestMemory(t *testing.T) {
	size, most := int64(64<<20), uint64(24<<20)
	if os.Getenv("BENCHPIN_LONG") == "1" {
		size, most = 512<<20, 40<<20
	}
	large := filepath.Join(t.TempDir(), "large")
	f, err := os.Create(large)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "archive")
	if _, err := oci.Pack(t.Context(), dir, []oci.Source{oci.FromFile("large", "application/octet-stream", large)}); err != nil {
		t.Fatal(err)
	}
	disk := &onDisk{folder: t.TempDir(), shelf: newShelf()}
	s := httptest.NewServer(disk)
	defer s.Close()
	ref := strings.TrimPrefix(s.URL, "http://") + "/results/small:v1"
	// What the collector has not yet freed is not held; the rest is.
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	peak := watchHeap(t)
	if _, err := Push(t.Context(), dir, ref, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Pull(t.Context(), ref, filepath.Join(t.TempDir(), "pulled"), Options{}); err != nil {
		t.Fatal(err)
	}
	if grown := peak(); grown > most {
		t.Errorf("a layer of %d bytes took %d bytes of memory, at most %d were expected", size, grown, most)
	} else {
		t.Logf("a layer of %d bytes took %d bytes of memory", size, grown)
	}
}

// watchHeap samples the memory that is in use and returns a function that says by how much it grew at most.
func watchHeap(t *testing.T) func() uint64 {
	t.Helper()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, most := m.HeapInuse+m.StackInuse, uint64(0)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapInuse+m.StackInuse)
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-done
		return most - min(before, most)
	}
}

// onDisk is a registry that keeps blobs in files, so that its memory is not taken for the client's.
type onDisk struct {
	folder string
	shelf  *shelf
}

// ServeHTTP takes blobs in one piece.
func (d *onDisk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	file := filepath.Join(d.folder, strings.TrimPrefix(name, "sha256:"))
	upload := filepath.Join(d.folder, "upload-"+name)
	switch {
	case r.Method == http.MethodPost:
		w.Header().Set("Location", r.URL.Path+time.Now().Format("150405.000000000"))
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodPatch:
		f, err := os.Create(upload)
		if err == nil {
			_, err = io.Copy(f, r.Body)
			f.Close()
		}
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Location", r.URL.Path)
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/"):
		raw, _ := io.ReadAll(r.Body)
		d.shelf.tag(name, raw)
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodPut:
		os.Rename(upload, filepath.Join(d.folder, strings.TrimPrefix(r.URL.Query().Get("digest"), "sha256:")))
		w.WriteHeader(http.StatusCreated)
	case strings.Contains(r.URL.Path, "/blobs/"):
		http.ServeFile(w, r, file)
	default:
		d.shelf.ServeHTTP(w, r)
	}
}
