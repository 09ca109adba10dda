// Package registry carries archives to registries and back: it pushes the archive in a folder with its bundles as referrers, and pulls one
// into a new folder, byte for byte. It speaks the OCI distribution protocol through go-containerregistry.
//
// It never judges what an archive says, never signs, and contacts no host but the registry that a reference names. What it pulls stands
// in its place only when every byte has the digest that was asked for; a tag is resolved once, and from then on only digests are used.
package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"syscall"
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
	// PlainHTTP allows a registry to be reached without TLS. One on the loopback interface is reached so without being told, where it does
	// not speak TLS and CAFile is empty.
	PlainHTTP bool
	// CAFile is a file of PEM certificates that a registry may be trusted by, beside the system's; "" is none.
	CAFile string
	// Keychain finds credentials; nil looks where docker keeps them, and then where podman does.
	Keychain authn.Keychain
	// Once says that nobody will repeat a pull that failed: nothing is kept of it.
	Once bool
	// Jobs is how many blobs are sent at once; below 1 is 4.
	Jobs int
	// UserAgent is how requests introduce themselves; "" is benchpin.
	UserAgent string
	// Progress, if not nil, is told what was done, a line each.
	Progress func(line string)
	// Transport replaces the connection to the registry, in tests; Wait the second between a failure and the next attempt, which grows.
	Transport http.RoundTripper
	Wait      time.Duration
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
	// ErrLimit: the registry gave more than is read.
	ErrLimit = errors.New("the registry gives more than is read")
)

// client is one repository as it is asked. All requests share one log-in.
type client struct {
	ctx    context.Context
	repo   name.Repository
	o      Options
	puller *remote.Puller
	pusher *remote.Pusher
	// listing reads the lists of referrers, which come in pages; nil before the first.
	listing http.RoundTripper
	guarded http.RoundTripper
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
		o.Keychain = credentials()
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Wait <= 0 {
		o.Wait = time.Second
	}
	g := &guard{inner: t, plain: o.PlainHTTP, tlsOnly: o.CAFile != "" && !o.PlainHTTP, host: repo.RegistryStr()}
	c := &client{ctx: ctx, repo: repo, o: o, guarded: g}
	with := []remote.Option{remote.WithContext(ctx), remote.WithTransport(g), remote.WithAuthFromKeychain(o.Keychain), remote.WithJobs(o.Jobs),
		remote.WithUserAgent(o.UserAgent), remote.WithRetryBackoff(remote.Backoff{Duration: o.Wait, Factor: 3, Jitter: 0.1, Steps: 3})}
	var err error
	if c.puller, err = remote.NewPuller(with...); err == nil {
		c.pusher, err = remote.NewPusher(with...)
	}
	return c, err
}

// attempts is how often something is tried that a registry may do at another time.
const attempts = 5

// retry calls f until it succeeds, fails for good, or was called often enough. What it does must be repeatable.
func (c *client) retry(ctx context.Context, f func() error) error {
	for i := 1; ; i++ {
		err := f()
		if err == nil || i == attempts || ctx.Err() != nil || !passing(err) {
			return err
		}
		if err := c.pause(ctx, i); err != nil {
			return err
		}
	}
}

// pause waits before the attempt after the one with a number, longer each time, and never the same: several writers do not meet again at the
// same instant.
func (c *client) pause(ctx context.Context, attempt int) error {
	wait := c.o.Wait << (attempt - 1)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(wait + rand.N(wait/4+1)):
		return nil
	}
}

// passing reports whether an error may go away by itself: a connection that broke, content that was cut short or damaged on its way, a
// registry that is busy or restarts.
func passing(err error) bool {
	var answer *transport.Error
	if errors.As(err, &answer) {
		return answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusRequestTimeout
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.IsTemporary
	}
	var network net.Error
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, ErrDamaged) || (errors.As(err, &network) && network.Timeout())
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
	return fmt.Errorf("%w: %d referrers, at most %d are looked at", ErrLimit, n, limits.ReferrersListed)
}
