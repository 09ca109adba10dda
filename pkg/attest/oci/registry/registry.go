// Package registry carries archives to registries and back: it pushes the archive in a folder with its bundles as referrers, and pulls one
// into a new folder, byte for byte. It speaks the OCI distribution protocol through go-containerregistry.
//
// It never judges what an archive says, never signs, and contacts no host but the registry that a reference names. What it pulls stands
// in its place only when every byte has the digest that was asked for; a tag is resolved once, and from then on only digests are used.
package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
)

// Options says how a registry is reached. The zero value uses TLS with the system's certificates and the credentials of docker's and
// podman's configuration and credential helpers.
type Options struct {
	// PlainHTTP allows a registry to be reached without TLS. Those on the loopback interface are reached so without being told.
	PlainHTTP bool
	// CAFile is a file of PEM certificates that a registry may be trusted by, beside the system's; "" is none.
	CAFile string
	// Keychain finds credentials; nil is authn.DefaultKeychain.
	Keychain authn.Keychain
	// Jobs is how many blobs are sent at once; below 1 is 4.
	Jobs int
	// UserAgent is how requests introduce themselves; "" is benchpin.
	UserAgent string
	// Progress, if not nil, is told what was done, a line each.
	Progress func(line string)
	// Transport replaces the connection to the registry, in tests.
	Transport http.RoundTripper
}

// Errors of references and registries, for errors.Is.
var (
	// ErrReference: a text is no reference to an archive.
	ErrReference = errors.New("not a reference")
	// ErrPlainHTTP: a registry is to be reached without TLS, and nobody allowed it.
	ErrPlainHTTP = errors.New("plain HTTP is not allowed")
	// ErrCredentials: the registry wants other credentials.
	ErrCredentials = errors.New("the registry refuses these credentials")
	// ErrNotFound: the registry has no such thing.
	ErrNotFound = errors.New("not found in the registry")
	// ErrDamaged: the registry gave something else than what was asked for.
	ErrDamaged = errors.New("the registry gave something else than was asked for")
)

// Reference is where an archive stands: HOST[:PORT]/REPOSITORY with a tag, a digest, or neither.
type Reference struct {
	repo   name.Repository
	tag    string // "" is none
	digest string // "sha256:..." or ""
}

// IsReference reports whether a text looks like a reference, and not like a path: its first element has a dot or a colon, or is localhost,
// and something follows it.
func IsReference(text string) bool {
	host, rest, found := strings.Cut(text, "/")
	if !found || rest == "" || host == "" || host == "." || host == ".." {
		return false
	}
	return strings.ContainsAny(host, ".:") || host == "localhost"
}

// ParseReference reads HOST[:PORT]/REPOSITORY[:TAG][@sha256:DIGEST].
func ParseReference(text string) (Reference, error) {
	// The form of a repository's name in the OCI distribution specification, "Pulling manifests".
	repositoryName := regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	rest, digest, pinned := strings.Cut(text, "@")
	host, path, _ := strings.Cut(rest, "/")
	path, tag, tagged := strings.Cut(path, ":")
	bad := func(err error) (Reference, error) {
		return Reference{}, fmt.Errorf("%q: %w: expected HOST[:PORT]/REPOSITORY[:TAG] or HOST[:PORT]/REPOSITORY@sha256:DIGEST: %v", text, ErrReference, err)
	}
	if !IsReference(host + "/" + path) {
		return bad(errors.New("it does not begin with a host, such as ghcr.io or localhost:5000"))
	}
	if !repositoryName.MatchString(path) {
		return bad(fmt.Errorf("repository %q: expected lower-case letters, digits, single . _ - between them, and /", path))
	}
	repo, err := name.NewRepository(host+"/"+path, name.StrictValidation)
	if err != nil {
		return bad(err)
	}
	if tagged {
		if _, err := name.NewTag(repo.Name()+":"+tag, name.StrictValidation); err != nil {
			return bad(err)
		}
	}
	if pinned {
		if _, err := name.NewDigest(repo.Name()+"@"+digest, name.StrictValidation); err != nil {
			return bad(err)
		}
	}
	return Reference{repo: repo, tag: tag, digest: digest}, nil
}

// String is the reference in its full form.
func (r Reference) String() string {
	s := r.repo.Name()
	if r.tag != "" {
		s += ":" + r.tag
	}
	if r.digest != "" {
		s += "@" + r.digest
	}
	return s
}

// Pinned is the reference of content with a digest in the same repository.
func (r Reference) Pinned(digest string) string { return r.repo.Name() + "@" + digest }

// client is one registry as it is asked.
type client struct {
	ctx  context.Context
	repo name.Repository
	o    Options
	with []remote.Option
}

func newClient(ctx context.Context, r Reference, o Options) (*client, error) {
	t := o.Transport
	if t == nil {
		var err error
		if t, err = newTransport(o.CAFile); err != nil {
			return nil, err
		}
	}
	repo := r.repo
	if o.PlainHTTP {
		var err error
		if repo, err = name.NewRepository(repo.Name(), name.StrictValidation, name.Insecure); err != nil {
			return nil, err
		}
	}
	if o.Jobs < 1 {
		o.Jobs = 4
	}
	if o.UserAgent == "" {
		o.UserAgent = "benchpin"
	}
	if o.Keychain == nil {
		o.Keychain = authn.DefaultKeychain
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	guarded := &guard{inner: t, plain: o.PlainHTTP}
	return &client{ctx: ctx, repo: repo, o: o, with: []remote.Option{remote.WithContext(ctx), remote.WithTransport(guarded), remote.WithAuthFromKeychain(o.Keychain),
		remote.WithJobs(o.Jobs), remote.WithUserAgent(o.UserAgent)}}, nil
}

func newTransport(caFile string) (http.RoundTripper, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = 5 * time.Minute // a registry may hash a large blob before it answers
	if caFile == "" {
		return t, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("certificates for the registry: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("certificates for the registry: expected PEM certificates in %s, found none", caFile)
	}
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return t, nil
}

// guard refuses requests without TLS to other hosts than this one: go-containerregistry also takes private networks, and names that end
// in .local, for safe.
type guard struct {
	inner http.RoundTripper
	plain bool
}

// RoundTrip sends the request if its address is allowed.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !g.plain && !loopback(r.URL.Hostname()) {
		return nil, fmt.Errorf("%w: %s is to be reached without TLS; give --plain-http if that is meant", ErrPlainHTTP, r.URL.Host)
	}
	return g.inner.RoundTrip(r)
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// explain adds what may be done about an error of a registry.
func (c *client) explain(what string, err error) error {
	if err == nil {
		return nil
	}
	var answer *transport.Error
	if errors.As(err, &answer) {
		switch answer.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return fmt.Errorf("%s: %w (%d): log in (docker login %s, podman login, or a credential helper): %w", what, ErrCredentials, answer.StatusCode,
				c.repo.RegistryStr(), err)
		case http.StatusNotFound:
			return fmt.Errorf("%s: %w: %w", what, ErrNotFound, err)
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// tooMany is the error about a registry that lists more than is read.
func tooMany(n int) error {
	return fmt.Errorf("%w: %d referrers, at most %d are looked at", ErrDamaged, n, limits.ReferrersListed)
}
