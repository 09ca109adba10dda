package registry

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"

	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// handlers are new registries with the Referrers API and without it.
func handlers(t *testing.T) map[string]http.Handler {
	t.Helper()
	native := olareg.New(config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}})
	t.Cleanup(func() { native.Close() })
	return map[string]http.Handler{"referrers API": native,
		"fallback tag": ggcr.New(ggcr.WithReferrersSupport(false), ggcr.Logger(log.New(io.Discard, "", 0)))}
}

// servers are these, behind sockets.
func servers(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, handler := range handlers(t) {
		s := httptest.NewServer(handler)
		t.Cleanup(s.Close)
		out[name] = strings.TrimPrefix(s.URL, "http://")
	}
	return out
}

// sample writes an archive with two layers, one of them large, and n bundles.
func sample(t *testing.T, n int) (dir, digest string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "archive")
	g, err := oci.Pack(context.Background(), dir, []oci.Source{
		oci.FromBytes("record.json", "application/json", []byte(`{"a":1}`)),
		oci.FromBytes("logs/steps.parquet", "application/octet-stream", []byte(strings.Repeat("steps", 1<<20))),
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := oci.Attach(context.Background(), dir, "https://example.com/predicate", fmt.Appendf(nil, `{"bundle":%d}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	return dir, "sha256:" + g.Hex()
}

// tree is every file below a folder with its content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestThereAndBack(t *testing.T) {
	for name, host := range servers(t) {
		t.Run(name, func(t *testing.T) {
			dir, digest := sample(t, 3)
			for range 2 { // the second time sends nothing anew, and changes nothing
				pushed, err := Push(t.Context(), dir, host+"/results/unet3d:v1", Options{})
				if err != nil {
					t.Fatal(err)
				}
				if pushed.Digest != digest || len(pushed.Bundles) != 3 || pushed.Tag != "v1" {
					t.Errorf("pushed %+v", pushed)
				}
			}
			for _, ref := range []string{host + "/results/unet3d:v1", host + "/results/unet3d@" + digest} {
				to := filepath.Join(t.TempDir(), "pulled")
				pulled, err := Pull(t.Context(), ref, to, Options{})
				if err != nil {
					t.Fatal(err)
				}
				if pulled.Bundles != 3 || pulled.Digest != digest || len(pulled.Others) != 0 {
					t.Errorf("pulled %+v", pulled)
				}
				want, got := tree(t, dir), tree(t, to)
				if len(want) != len(got) {
					t.Errorf("%d files, expected %d", len(got), len(want))
				}
				for path, content := range want {
					if got[path] != content {
						t.Errorf("%s differs", path)
					}
				}
			}
		})
	}
}

func TestReferences(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for text, want := range map[string]bool{
		"localhost:5000/a/b:v1": true, "ghcr.io/x/y@" + digest: true, "registry.example.com/x/y": true, "127.0.0.1:5000/x:v1@" + digest: true,
		"": false, "archive": false, "./archive": false, "localhost:5000": false, "ghcr.io/X/y": false, "ghcr.io/x/y:": false, "ghcr.io/x/y:v1@": false,
		"ghcr.io/x/y@sha256:12": false, "https://ghcr.io/x/y": false, "ghcr.io/../y": false,
	} {
		r, err := ParseReference(text)
		if (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
		if err == nil && r.String() != text {
			t.Errorf("%q reads as %q", text, r)
		}
	}
	if _, err := ParseReference("http://localhost:5000/a/b:v1"); err == nil || !strings.Contains(err.Error(), "write localhost:5000/a/b:v1, without http://") {
		t.Errorf("a web address: %v", err)
	}
	for text, want := range map[string]bool{"localhost/x": true, "ghcr.io/x": true, "a:5000/x": true, "demo/archive": false, "./a/b": false, "../a/b": false, "/a/b": false, "x": false} {
		if IsReference(text) != want {
			t.Errorf("%q is taken for a reference: %v", text, !want)
		}
	}
}

// TestPlainHTTP wants TLS for every host but this one, also those that other tools take for safe.
func TestPlainHTTP(t *testing.T) {
	dir, _ := sample(t, 0)
	for _, host := range []string{"10.0.0.1:5000", "registry.local:5000", "192.168.1.1"} {
		_, err := Push(t.Context(), dir, host+"/x:v1", Options{Transport: refusing{}})
		if err == nil || !strings.Contains(err.Error(), "TLS") && !strings.Contains(err.Error(), "https://") {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestNothingIsSentOfADamagedArchive(t *testing.T) {
	dir, _ := sample(t, 1)
	for _, path := range slices.Sorted(maps(tree(t, dir))) {
		if strings.HasPrefix(path, "blobs") {
			name := filepath.Join(dir, path)
			b, _ := os.ReadFile(name)
			b[0] ^= 1
			if err := os.WriteFile(name, b, 0o644); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	if _, err := Push(t.Context(), dir, "localhost:1/x:v1", Options{}); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("push: %v", err)
	}
}

func maps(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// refusing is a connection that sends nothing.
type refusing struct{}

func (refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("asked for %s", r.URL)
}
