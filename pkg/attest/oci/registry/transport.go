package registry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
)

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

// guard stands before every request. It refuses those without TLS that nobody allowed: go-containerregistry also takes private networks and
// names that end in .local for safe, and asks again without TLS where TLS failed. And it bounds what a registry answers, but for blobs, whose
// size is known to whoever asks.
type guard struct {
	inner http.RoundTripper
	// plain allows requests without TLS anywhere, tlsOnly forbids them everywhere.
	plain, tlsOnly bool
	// host is the registry, with its port.
	host string
	// untrusted is set when the registry speaks TLS and its certificate is not trusted: then it is not asked without TLS.
	untrusted atomic.Bool
}

// RoundTrip sends the request if its address is allowed.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !g.plain {
		refuse := func(why string) (*http.Response, error) {
			return nil, fmt.Errorf("%w: %s is to be reached without TLS%s; give --plain-http if that is meant", ErrPlainHTTP, r.URL.Host, why)
		}
		switch {
		case g.tlsOnly:
			return refuse(", although a certificate was given to trust it by")
		case g.untrusted.Load():
			return refuse(", after its certificate was not trusted")
		case !loopback(r.URL.Hostname()) || !loopback(hostname(g.host)):
			// A registry elsewhere does not send anybody to a service of this host either.
			return refuse("")
		}
	}
	answer, err := g.inner.RoundTrip(r)
	if err != nil {
		var certificate *tls.CertificateVerificationError
		if errors.As(err, &certificate) && r.URL.Host == g.host {
			g.untrusted.Store(true)
		}
		return nil, err
	}
	if first := firstRequest(r); first.Method != http.MethodGet || !strings.Contains(first.URL.Path, "/blobs/") {
		answer.Body = &bounded{ReadCloser: answer.Body, left: limits.ManifestBytes, what: r.URL.Path}
	}
	return answer, nil
}

// firstRequest is the request that a chain of redirections began with.
func firstRequest(r *http.Request) *http.Request {
	for r.Response != nil && r.Response.Request != nil {
		r = r.Response.Request
	}
	return r
}

// bounded is a body that fails where it is longer than most.
type bounded struct {
	io.ReadCloser
	left int64
	what string
}

// Read fails when there is a byte more than allowed.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("%s: %w: more than %d bytes", b.what, ErrLimit, limits.ManifestBytes)
	}
	return n, err
}

func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
