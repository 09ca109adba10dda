package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// shelf is a registry that gives out whatever was put on it, under whatever name, without a look at it.
type shelf struct {
	blobs     map[string][]byte
	manifests map[string][]byte // by digest or tag
	referrers []byte            // the answer of the Referrers API; nil for a registry that does not have it
	next      string            // the path of the next page
	second    []byte            // the answer to a request with a query; nil for the same again
	pages     int               // how many pages without an entry the list has; 0 for one with referrers in it
}

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
	shelfRef     = "localhost:1/results/small:v1"
)

func digestOf(b []byte) string { return "sha256:" + oci.DigestsOf(b).Hex() }

func newShelf() *shelf {
	s := &shelf{blobs: map[string][]byte{}, manifests: map[string][]byte{}}
	s.blob([]byte("{}"))
	return s
}

// blob puts content on the shelf and returns its digest.
func (s *shelf) blob(b []byte) string {
	s.blobs[digestOf(b)] = b
	return digestOf(b)
}

// tag puts a manifest on the shelf, under its digest and a tag.
func (s *shelf) tag(tag string, manifest []byte) string {
	s.manifests[digestOf(manifest)] = manifest
	s.manifests[tag] = manifest
	return digestOf(manifest)
}

// ServeHTTP answers as the distribution protocol demands.
func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	if len(parts) < 6 {
		return
	}
	kind, name := parts[len(parts)-2], parts[len(parts)-1]
	switch kind {
	case "blobs":
		if b, ok := s.blobs[name]; ok {
			w.Write(b)
			return
		}
	case "manifests":
		if b, ok := s.manifests[name]; ok {
			var m struct {
				MediaType string `json:"mediaType"`
			}
			json.Unmarshal(b, &m)
			w.Header().Set("Content-Type", m.MediaType)
			w.Header().Set("Docker-Content-Digest", digestOf(b))
			w.Header().Set("Content-Length", fmt.Sprint(len(b)))
			w.Write(b)
			return
		}
	case "referrers":
		if s.pages > 0 {
			at, _ := strconv.Atoi(r.URL.Query().Get("page"))
			w.Header().Set("Content-Type", indexType)
			if at+1 < s.pages {
				w.Header().Set("Link", fmt.Sprintf(`<%s?page=%d>; rel="next"`, r.URL.Path, at+1))
			}
			w.Write(list())
			return
		}
		if s.referrers != nil {
			w.Header().Set("Content-Type", indexType)
			if s.next != "" && r.URL.RawQuery == "" {
				w.Header().Set("Link", `<`+s.next+`>; rel="next"`)
			}
			if r.URL.RawQuery != "" && s.second != nil {
				w.Write(s.second)
				return
			}
			w.Write(s.referrers)
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
}

type layer struct {
	title, digest string
	size          int64
}

// archive is the manifest of an archive with these layers, in its one form.
func archive(layers ...layer) []byte {
	var all []string
	for _, l := range layers {
		title, _ := json.Marshal(l.title)
		all = append(all, fmt.Sprintf(`{"mediaType":"text/plain","digest":%q,"size":%d,"annotations":{"org.opencontainers.image.title":%s}}`, l.digest, l.size, title))
	}
	return fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"artifactType":%q,"config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":%q,"size":2},`+
		`"layers":[%s],"annotations":{"org.opencontainers.image.created":"1970-01-01T00:00:00Z"}}`, manifestType, oci.ArtifactType, digestOf([]byte("{}")), strings.Join(all, ","))
}

// refer puts a bundle and its manifest on the shelf and returns the manifest's digest. edit changes the manifest.
func (s *shelf) refer(archive string, bundle []byte, edit func(string) string) string {
	text := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"artifactType":%q,"config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":%q,"size":2},`+
		`"layers":[{"mediaType":%q,"digest":%q,"size":%d}],"subject":{"mediaType":%q,"digest":%q,"size":1},"annotations":{"dev.sigstore.bundle.predicateType":"https://example.com/x"}}`,
		manifestType, oci.BundleType, digestOf([]byte("{}")), oci.BundleType, s.blob(bundle), len(bundle), manifestType, archive)
	if edit != nil {
		text = edit(text)
	}
	s.manifests[digestOf([]byte(text))] = []byte(text)
	return digestOf([]byte(text))
}

func list(digests ...string) []byte {
	var all []string
	for _, d := range digests {
		all = append(all, fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":1}`, manifestType, d))
	}
	return fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"manifests":[%s]}`, indexType, strings.Join(all, ","))
}

// pull pulls from a shelf into a folder of its own and wants nothing beside the result.
func (s *shelf) pull(t *testing.T) (*Pulled, string, error) {
	t.Helper()
	parent := t.TempDir()
	to := filepath.Join(parent, "deep", "pulled")
	p, err := Pull(t.Context(), shelfRef, to, Options{Transport: direct{s}, Wait: time.Microsecond})
	names := tree(t, parent)
	for name := range names {
		if err != nil || !strings.HasPrefix(name, filepath.Join("deep", "pulled")+"/") {
			t.Errorf("%s was left or written outside of the archive's folder", name)
		}
	}
	return p, to, err
}

func TestHostileTitles(t *testing.T) {
	for name, titles := range map[string][]string{
		"parent": {"../x"}, "inner parent": {"a/../../x"}, "absolute": {"/etc/x"}, "backslash": {`..\x`}, "NUL": {"a\x00b"}, "empty": {""}, "dot": {"."},
		"trailing slash": {"a/"}, "drive": {"c:x"}, "newline": {"a\nb"}, "twice": {"a", "a"}, "case": {"A", "a"}, "file and folder": {"a", "a/b"},
		"one byte too long": {strings.Repeat("t", limits.TitleBytes+1)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			var layers []layer
			for i, title := range titles {
				b := fmt.Appendf(nil, "content %d", i)
				layers = append(layers, layer{title, s.blob(b), int64(len(b))})
			}
			s.tag("v1", archive(layers...))
			if _, _, err := s.pull(t); !errors.Is(err, fault.Title) {
				t.Errorf("expected a refused title, found %v", err)
			}
		})
	}
	s := newShelf()
	s.tag("v1", archive(layer{strings.Repeat("t", limits.TitleBytes), s.blob([]byte("x")), 1}))
	if _, _, err := s.pull(t); err != nil {
		t.Errorf("a title at the limit: %v", err)
	}
}

func TestHostileManifests(t *testing.T) {
	good := archive(layer{"a", digestOf([]byte("x")), 1})
	for name, c := range map[string]struct {
		manifest string
		want     error
	}{
		"another artifact type": {strings.Replace(string(good), oci.ArtifactType, "application/x", 1), fault.MediaType},
		"a space":               {strings.Replace(string(good), `{"schema`, `{ "schema`, 1), fault.NotCanonical},
		"a field more":          {strings.Replace(string(good), `"layers"`, `"x":1,"layers"`, 1), fault.UnknownField},
		"a key twice":           {strings.Replace(string(good), `"schemaVersion":2,`, `"schemaVersion":2,"schemaVersion":2,`, 1), fault.DuplicateKey},
		"an annotation more":    {strings.Replace(string(good), `"annotations":{"org.opencontainers.image.created"`, `"annotations":{"a":"b","org.opencontainers.image.created"`, 1), fault.NotCanonical},
		"sha512":                {strings.Replace(string(good), digestOf([]byte("x")), "sha512:"+strings.Repeat("0", 128), 1), fault.DigestMismatch},
		"a negative size":       {string(archive(layer{"a", digestOf([]byte("x")), -1})), fault.Limit},
		"a size over the limit": {string(archive(layer{"a", digestOf([]byte("x")), limits.BlobBytes + 1})), fault.Limit},
		"no layers":             {string(archive()), fault.Limit},
		"deep JSON":             {strings.Repeat("[", limits.JSONDepth+1) + strings.Repeat("]", limits.JSONDepth+1), fault.Limit},
		"no JSON":               {"x", fault.Syntax},
		"an index":              {string(list()), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			s.blob([]byte("x"))
			s.tag("v1", []byte(c.manifest))
			if _, _, err := s.pull(t); err == nil || (c.want != nil && !errors.Is(err, c.want)) {
				t.Errorf("expected %v, found %v", c.want, err)
			}
		})
	}
}

func TestHostileBlobs(t *testing.T) {
	for name, c := range map[string]struct {
		served string
		size   int64
	}{
		"one byte more": {"12345x", 5}, "one byte less": {"1234", 5}, "another byte": {"12346", 5}, "nothing": {"", 5},
		"declared smaller": {"12345", 4}, "declared larger": {"12345", 6}, "endless": {strings.Repeat("12345", 1<<20), 5},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			digest := digestOf([]byte("12345"))
			s.tag("v1", archive(layer{"a", digest, c.size}))
			s.blobs[digest] = []byte(c.served)
			if _, _, err := s.pull(t); !errors.Is(err, ErrDamaged) {
				t.Errorf("expected damage, found %v", err)
			}
		})
	}
	s := newShelf()
	s.tag("v1", archive(layer{"a", digestOf([]byte("gone")), 4}))
	if _, _, err := s.pull(t); !errors.Is(err, ErrNotFound) {
		t.Errorf("a blob that is not there: %v", err)
	}
	// A manifest under a digest that is another's.
	s = newShelf()
	wanted := digestOf([]byte("wanted"))
	s.manifests[wanted] = archive(layer{"a", s.blob([]byte("x")), 1})
	if _, err := Pull(t.Context(), "localhost:1/results/small@"+wanted, filepath.Join(t.TempDir(), "x"), Options{Transport: direct{s}, Wait: time.Microsecond}); !errors.Is(err, ErrDamaged) {
		t.Errorf("a manifest with another digest: %v", err)
	}
}

// The limits, each at it and one above.
func TestLimits(t *testing.T) {
	for _, over := range []int{0, 1} {
		check := func(what string, s *shelf, want error) {
			t.Helper()
			_, _, err := s.pull(t)
			switch {
			case over == 0 && err != nil:
				t.Errorf("%s, at the limit: %v", what, err)
			case over == 1 && !errors.Is(err, want):
				t.Errorf("%s, one above the limit: expected %v, found %v", what, want, err)
			}
		}
		s := newShelf()
		x := s.blob([]byte("x"))
		var layers []layer
		for i := range limits.Layers + over {
			layers = append(layers, layer{fmt.Sprintf("l%d", i), x, 1})
		}
		s.tag("v1", archive(layers...))
		check("layers", s, fault.Limit)

		s = newShelf()
		digest := s.tag("v1", archive(layer{"a", s.blob([]byte("x")), 1}))
		var referrers []string
		for i := range limits.Referrers + over {
			referrers = append(referrers, s.refer(digest, fmt.Appendf(nil, `{"n":%d}`, i), nil))
		}
		s.referrers = list(referrers...)
		check("bundles", s, ErrLimit)

		s = newShelf()
		s.tag("v1", archive(layer{"a", s.blob([]byte("x")), 1}))
		referrers = nil
		for i := range limits.ReferrersListed + over {
			referrers = append(referrers, s.refer(digestOf([]byte("another archive")), fmt.Appendf(nil, `{"n":%d}`, i), nil))
		}
		s.referrers = list(referrers...)
		check("referrers listed", s, ErrLimit)

		s = newShelf()
		s.tag("v1", archive(layer{"a", s.blob([]byte("x")), 1}))
		s.pages = limits.ReferrersListed + over
		check("pages of referrers", s, ErrLimit)

		// JSON as deep as it may be is read, and refused for what it is.
		s = newShelf()
		s.tag("v1", []byte(strings.Repeat("[", limits.JSONDepth+over)+strings.Repeat("]", limits.JSONDepth+over)))
		if _, _, err := s.pull(t); err == nil || errors.Is(err, fault.Limit) != (over == 1) {
			t.Errorf("JSON %d levels above the limit: %v", over, err)
		}

		// A bundle that is too large is left where it is, and the archive comes all the same.
		s = newShelf()
		digest = s.tag("v1", archive(layer{"a", s.blob([]byte("x")), 1}))
		s.referrers = list(s.refer(digest, make([]byte, limits.BundleBytes+over), nil))
		if p, _, err := s.pull(t); err != nil || p.Bundles != 1-over || len(p.Others) != over {
			t.Errorf("a bundle of %d bytes above the limit: %+v, %v", over, p, err)
		}

		// What is no blob is read to this size and not further.
		body := &bounded{ReadCloser: io.NopCloser(io.LimitReader(zeros{}, limits.ManifestBytes+int64(over))), left: limits.ManifestBytes}
		if n, err := io.Copy(io.Discard, body); (err == nil) != (over == 0) || n > limits.ManifestBytes || (over == 1 && !errors.Is(err, ErrLimit)) {
			t.Errorf("an answer %d bytes above the limit: %d bytes, %v", over, n, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// What a registry says about referrers is not believed: their own bytes decide.
func TestHostileReferrers(t *testing.T) {
	for name, c := range map[string]struct {
		make    func(s *shelf, archive string)
		bundles int
		others  string
		err     error
	}{
		"of another archive": {func(s *shelf, a string) {
			s.referrers = list(s.refer(digestOf([]byte("another")), []byte("{}"), nil))
		}, 0, "does not refer", nil},
		"no subject": {func(s *shelf, a string) {
			s.referrers = list(s.refer(a, []byte("{}"), func(m string) string { return strings.Replace(m, `"subject"`, `"object"`, 1) }))
		}, 0, "does not refer", nil},
		"another kind": {func(s *shelf, a string) {
			s.referrers = list(s.refer(a, []byte("{}"), func(m string) string { return strings.ReplaceAll(m, oci.BundleType, "application/spdx+json") }))
		}, 0, "no Sigstore bundle", nil},
		"a negative size": {func(s *shelf, a string) {
			s.referrers = list(s.refer(a, []byte("{}"), func(m string) string {
				return strings.Replace(m, `"size":2}],"subject"`, `"size":-2}],"subject"`, 1)
			}))
		}, 0, "-2 bytes", nil},
		"no JSON": {func(s *shelf, a string) {
			s.referrers = list(s.refer(a, []byte("{}"), func(string) string { return "{" }))
		}, 0, "no OCI manifest", nil},
		"deep JSON": {func(s *shelf, a string) {
			s.referrers = list(s.refer(a, []byte("{}"), func(string) string { return strings.Repeat("[", 1<<16) }))
		}, 0, "no OCI manifest", nil},
		"listed and absent":  {func(s *shelf, a string) { s.referrers = list(digestOf([]byte("gone"))) }, 0, "does not have it", nil},
		"the archive itself": {func(s *shelf, a string) { s.referrers = list(a) }, 0, "does not refer", nil},
		"listed twice": {func(s *shelf, a string) {
			d := s.refer(a, []byte("{}"), nil)
			s.referrers = list(d, d)
		}, 1, "", nil},
		"one bundle in two manifests": {func(s *shelf, a string) {
			s.referrers = list(s.refer(a, []byte("{}"), nil), s.refer(a, []byte("{}"), func(m string) string { return m + " " }))
		}, 2, "", nil},
		"another bundle than it says": {func(s *shelf, a string) {
			s.referrers = list(s.refer(a, []byte("{}"), nil))
			s.blobs[digestOf([]byte("{}"))] = []byte("[]")
		}, 0, "", ErrDamaged},
		"a list that is none":   {func(s *shelf, a string) { s.referrers = []byte(`{"mediaType":"` + indexType + `"}`) }, 0, "", ErrDamaged},
		"a list with no digest": {func(s *shelf, a string) { s.referrers = list("x") }, 0, "", ErrDamaged},
		"pages without end": {func(s *shelf, a string) {
			s.referrers, s.next = list(), "/v2/results/small/referrers/"+a
		}, 0, "", ErrLimit},
		"a page elsewhere": {func(s *shelf, a string) {
			s.referrers, s.next = list(), "http://localhost:2/v2/x/referrers/"+a
		}, 0, "", ErrLimit},
		"two pages": {func(s *shelf, a string) {
			s.referrers, s.next = list(s.refer(a, []byte("{}"), nil)), "/v2/results/small/referrers/"+a+"?page=2"
			s.second = list(s.refer(a, []byte("[]"), nil))
		}, 2, "", nil},
		"the fallback tag": {func(s *shelf, a string) {
			s.tag(strings.Replace(a, ":", "-", 1), list(s.refer(a, []byte("{}"), nil)))
		}, 1, "", nil},
		"the fallback tag points at the archive": {func(s *shelf, a string) {
			s.manifests[strings.Replace(a, ":", "-", 1)] = s.manifests[a]
		}, 0, "", ErrDamaged},
		"stripped": {func(s *shelf, a string) {}, 0, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			c.make(s, s.tag("v1", archive(layer{"a", s.blob([]byte("x")), 1})))
			p, to, err := s.pull(t)
			if !errors.Is(err, c.err) {
				t.Fatalf("expected %v, found %v", c.err, err)
			}
			if err != nil {
				return
			}
			if p.Bundles != c.bundles || (c.others == "") != (len(p.Others) == 0) {
				t.Fatalf("pulled %+v", p)
			}
			if c.others != "" && !strings.Contains(p.Others[0].Other, c.others) {
				t.Errorf("expected %q, found %+v", c.others, p.Others)
			}
			if l, err := oci.Read(t.Context(), to); err != nil || l.Err() != nil {
				t.Errorf("what was pulled is no archive: %v, %v", err, l.Err())
			}
		})
	}
}

// What is in the way is not overwritten, and a link is not followed.
func TestThePlaceIsTaken(t *testing.T) {
	s := newShelf()
	digest := s.tag("v1", archive(layer{"a", s.blob([]byte("x")), 1}))
	o := Options{Transport: direct{s}, Wait: time.Microsecond}
	parent, elsewhere := t.TempDir(), t.TempDir()
	file, link := filepath.Join(parent, "file"), filepath.Join(parent, "link")
	if err := errors.Join(os.WriteFile(file, nil, 0o644), os.Symlink(elsewhere, link)); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{file, link, parent} {
		if _, err := Pull(t.Context(), shelfRef, to, o); !errors.Is(err, oci.ErrExists) {
			t.Errorf("%s: %v", to, err)
		}
	}
	// A link in the place where an attempt would be kept.
	staging := filepath.Join(parent, ".x.benchpin-"+strings.TrimPrefix(digest, "sha256:")[:16])
	if err := os.Symlink(elsewhere, staging); err != nil {
		t.Fatal(err)
	}
	if _, err := Pull(t.Context(), shelfRef, filepath.Join(parent, "x"), o); err == nil {
		t.Error("a link was followed")
	}
	if left := tree(t, elsewhere); len(left) > 0 {
		t.Errorf("written outside: %v", left)
	}
}

// A tag that moves while it is followed leads to one archive or the other, never to a mixture: it is asked once.
func TestTheTagIsAskedOnce(t *testing.T) {
	s := newShelf()
	s.tag("v1", archive(layer{"a", s.blob([]byte("x")), 1}))
	c := &asked{inner: direct{s}}
	if _, err := Pull(t.Context(), shelfRef, filepath.Join(t.TempDir(), "x"), Options{Transport: c}); err != nil || c.tag != 1 {
		t.Errorf("asked %d times: %v", c.tag, err)
	}
}

type asked struct {
	inner http.RoundTripper
	tag   int
}

func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/manifests/v1") {
		a.tag++
	}
	return a.inner.RoundTrip(r)
}
