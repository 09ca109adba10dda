// Package s3 is the store of a bucket: every object below one prefix is a file, named by its key after the prefix. It speaks S3, and so
// reaches whatever speaks it, through minio-go.
//
// It never turns an error into an empty answer: a listing that fails fails, an upload that was cut short is no object, and a read that
// came short is asked for again or is an error. It never follows what an object's metadata says, and it keeps no copy of anything.
package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/store"
)

// Scheme is what the address of a bucket begins with: s3://BUCKET/PREFIX.
const Scheme = "s3://"

// MaxKey is the longest key in bytes that S3 allows, prefix included (Amazon S3, "Naming Amazon S3 objects").
const MaxKey = 1024

// The bounds of Options.PartSize: what S3 allows for all parts but the last, and what one buffer should take.
const (
	MinPart     = 5 << 20
	MaxPart     = 512 << 20
	defaultPart = 16 << 20
)

// Options says how a server is reached. The zero value is Amazon's, with the credentials that the environment or the shared
// credentials file holds.
type Options struct {
	// Endpoint is the server's address: http://HOST[:PORT] or https://HOST[:PORT]; without a scheme it is https. "" is Amazon's.
	Endpoint string
	// Region is the region that requests are signed for; "" is us-east-1.
	Region string
	// PathStyle puts the bucket into the path of addresses (true) or into the host name (false); nil lets the endpoint decide.
	PathStyle *bool
	// AccessKey, SecretKey and SessionToken are the credentials. Where AccessKey is "" they come from AWS_ACCESS_KEY_ID and its fellows,
	// then from the shared credentials file (AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE).
	AccessKey, SecretKey, SessionToken string
	// CAFile is a file of PEM certificates that a server may be trusted by, beside the system's; "" is none.
	CAFile string
	// Attempts is how often a request is tried before it is given up; below 1 is 5. Between two tries the wait grows, with chance.
	Attempts int
	// PartSize is how many bytes of an upload are held and sent at once; below 1 is 16 MiB. Objects up to it are sent in one request.
	PartSize int64
	// Parts is how many parts of one upload are under way at once; below 1 is 4. An upload holds PartSize x (Parts + 1) bytes.
	Parts int
	// Ranged makes every read a request for just those bytes. Otherwise opening asks for the whole object and reads in order are
	// served from that answer, which costs one request a file.
	Ranged bool
	// Stall is how long an answer may give no byte before it counts as failed; below 1 is 60 s.
	Stall time.Duration
}

// WithEnvironment fills what is empty from the variables that Amazon's own tools read: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL,
// AWS_REGION, AWS_DEFAULT_REGION and AWS_CA_BUNDLE. Credentials are looked up when a bucket is opened.
func (o Options) WithEnvironment(getenv func(string) string) Options {
	first := func(v string, names ...string) string {
		for _, n := range names {
			if v == "" {
				v = getenv(n)
			}
		}
		return v
	}
	o.Endpoint = first(o.Endpoint, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
	o.Region = first(o.Region, "AWS_REGION", "AWS_DEFAULT_REGION")
	o.CAFile = first(o.CAFile, "AWS_CA_BUNDLE")
	return o
}

// Bucket is the store of the objects below one prefix of a bucket.
type Bucket struct {
	uri, bucket, prefix string // prefix is "" or ends in "/"
	endpoint            string
	o                   Options
	core                *minio.Core
	once                *minio.Core     // tries a request once, for those with a body: see upload
	ctx                 context.Context // ends with Close: what is under way then ends too
	cancel              context.CancelCauseFunc
	device              uint64
	parts               sync.Pool

	gets, puts, heads, lists, retries atomic.Int64
}

var _ store.Store = (*Bucket)(nil)

// errClosed is the cause of what fails because its bucket was closed.
var errClosed = errors.New("the bucket was closed")

// ParseURI splits s3://BUCKET/PREFIX into bucket and prefix, which is "" or has no slash at either end.
func ParseURI(uri string) (bucket, prefix string, err error) {
	rest, ok := strings.CutPrefix(uri, Scheme)
	if !ok {
		return "", "", fmt.Errorf("%q: expected s3://BUCKET/PREFIX", uri)
	}
	bucket, prefix, _ = strings.Cut(rest, "/")
	prefix = strings.TrimSuffix(prefix, "/")
	if bucket == "" {
		return "", "", fmt.Errorf("%q: expected s3://BUCKET/PREFIX, found no bucket", uri)
	}
	if prefix != "" {
		if err := store.CheckName(prefix); err != nil {
			return "", "", fmt.Errorf("%q: the prefix: %w", uri, err)
		}
	}
	return bucket, prefix, nil
}

// Open makes the store of an address, s3://BUCKET/PREFIX. Nothing is sent: a server that cannot be reached or a bucket that is not
// there shows in the first request. Requests end when ctx does.
func Open(ctx context.Context, uri string, o Options) (*Bucket, error) {
	bucket, prefix, err := ParseURI(uri)
	if err != nil {
		return nil, err
	}
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if o.Attempts < 1 {
		o.Attempts = 5
	}
	if o.PartSize < 1 {
		o.PartSize = defaultPart
	}
	if o.PartSize < MinPart || o.PartSize > MaxPart {
		return nil, fmt.Errorf("%s: parts of %d bytes: expected %d to %d", uri, o.PartSize, MinPart, MaxPart)
	}
	if o.Parts < 1 {
		o.Parts = 4
	}
	if o.Stall < 1 {
		o.Stall = time.Minute
	}
	host, secure, err := endpoint(o)
	if err != nil {
		return nil, err
	}
	transport, err := newTransport(o)
	if err != nil {
		return nil, err
	}
	lookup := minio.BucketLookupAuto
	if o.PathStyle != nil {
		if lookup = minio.BucketLookupDNS; *o.PathStyle {
			lookup = minio.BucketLookupPath
		}
	}
	with := minio.Options{Creds: login(o), Secure: secure, Transport: transport, Region: o.Region, BucketLookup: lookup, MaxRetries: o.Attempts}
	core, err := minio.NewCore(host, &with)
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", uri, host, err)
	}
	with.MaxRetries = 1
	once, err := minio.NewCore(host, &with)
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", uri, host, err)
	}
	b := &Bucket{uri: Scheme + bucket, bucket: bucket, endpoint: core.EndpointURL().String(), o: o, core: core, once: once}
	if prefix != "" {
		b.prefix = prefix + "/"
		b.uri += "/" + prefix
	}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	b.device = number(b.endpoint, bucket)
	b.parts.New = func() any { p := make([]byte, 0, o.PartSize); return &p }
	return b, nil
}

// endpoint splits the address of a server into host and whether it is reached by TLS.
func endpoint(o Options) (host string, secure bool, err error) {
	if o.Endpoint == "" {
		return "s3." + o.Region + ".amazonaws.com", true, nil
	}
	given := o.Endpoint
	if !strings.Contains(given, "://") {
		given = "https://" + given
	}
	u, err := url.Parse(given)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.User != nil {
		return "", false, fmt.Errorf("endpoint %q: expected http://HOST[:PORT] or https://HOST[:PORT]", o.Endpoint)
	}
	return u.Host, u.Scheme == "https", nil
}

// newTransport is the standard one with as many idle connections as readers may want, so that none is made anew for each object.
func newTransport(o Options) (http.RoundTripper, error) {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		MaxIdleConns:          1024,
		MaxIdleConnsPerHost:   1024,
		IdleConnTimeout:       time.Minute,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: o.Stall,
		DisableCompression:    true, // what is read must be what is stored
	}
	if o.CAFile == "" {
		return t, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	pem, err := os.ReadFile(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("certificates for the object store: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("certificates for the object store: expected PEM certificates in %s, found none", o.CAFile)
	}
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return t, nil
}

func login(o Options) *credentials.Credentials {
	if o.AccessKey != "" {
		return credentials.NewStaticV4(o.AccessKey, o.SecretKey, o.SessionToken)
	}
	return credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}})
}

// Close ends all requests that are under way.
func (b *Bucket) Close() error {
	b.cancel(errClosed)
	return nil
}

// URI is the address of the store, s3://BUCKET[/PREFIX].
func (b *Bucket) URI() string { return b.uri }

// Endpoint is the address of the server, with its scheme.
func (b *Bucket) Endpoint() string { return b.endpoint }

// Requests counts what was asked of the server.
type Requests struct {
	Get, Put, Head, List int64
	// Retries counts reads that were asked for again because the answer ended early.
	Retries int64
}

// Requests returns what was asked of the server so far. Requests that the client itself repeated count once.
func (b *Bucket) Requests() Requests {
	return Requests{Get: b.gets.Load(), Put: b.puts.Load(), Head: b.heads.Load(), List: b.lists.Load(), Retries: b.retries.Load()}
}

// key returns the key of a name.
func (b *Bucket) key(name string) (string, error) {
	if err := store.CheckName(name); err != nil {
		return "", err
	}
	if n := len(b.prefix) + len(name); n > MaxKey {
		return "", fmt.Errorf("%w: a key of %d bytes, at most %d are allowed: it begins with %.60q", store.ErrName, n, MaxKey, b.prefix+name)
	}
	return b.prefix + name, nil
}

// Stat describes the object of that name.
func (b *Bucket) Stat(name string) (store.Info, error) {
	key, err := b.key(name)
	if err != nil {
		return store.Info{}, err
	}
	b.heads.Add(1)
	got, err := b.core.StatObject(b.ctx, b.bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return store.Info{}, b.wrap("stat", name, err)
	}
	return b.info(name, got), nil
}

// info is the identity of an object: its entity tag stands in the inode, since S3 gives every content another one, and the time in whole
// seconds, which is all that some answers have.
func (b *Bucket) info(name string, o minio.ObjectInfo) store.Info {
	at := o.LastModified.Unix() * int64(time.Second)
	return store.Info{Path: name, Size: o.Size, ModTime: at, ChangeTime: at, Inode: number(b.prefix+name, strings.Trim(o.ETag, `"`)), Device: b.device}
}

// number makes one number of two strings.
func number(a, b string) uint64 {
	sum := blake3.Sum256([]byte(a + "\x00" + b))
	return binary.LittleEndian.Uint64(sum[:])
}

// Remove deletes the object of that name.
func (b *Bucket) Remove(name string) error {
	key, err := b.key(name)
	if err != nil {
		return err
	}
	if _, err := b.Stat(name); err != nil { // deleting what is not there succeeds in S3
		return err
	}
	return b.wrap("remove", name, b.core.RemoveObject(b.ctx, b.bucket, key, minio.RemoveObjectOptions{}))
}

// List calls yield for every object below the prefix, in the order of the raw bytes of the names, which is the order that S3 lists in.
// Empty objects whose key ends in a slash, which some tools make to show a folder, are left out.
func (b *Bucket) List(ctx context.Context, yield func(store.Info) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(b.ctx, func() { cancel(context.Cause(b.ctx)) })()
	b.lists.Add(1)
	last := ""
	for o := range b.core.ListObjectsIter(ctx, b.bucket, minio.ListObjectsOptions{Prefix: b.prefix, Recursive: true}) {
		if ctx.Err() != nil {
			return fmt.Errorf("list %s: %w", b.uri, context.Cause(ctx))
		}
		if o.Err != nil {
			return b.wrap("list", "", o.Err)
		}
		name := strings.TrimPrefix(o.Key, b.prefix)
		if strings.HasSuffix(o.Key, "/") && o.Size == 0 {
			continue
		}
		if !strings.HasPrefix(o.Key, b.prefix) {
			return fmt.Errorf("list %s: the server listed %q, which does not begin with %q", b.uri, o.Key, b.prefix)
		}
		if err := store.CheckName(name); err != nil {
			return fmt.Errorf("list %s: %w", b.uri, err)
		}
		if o.Key <= last {
			return fmt.Errorf("list %s: the server listed %q after %q, expected the order of raw bytes", b.uri, o.Key, last)
		}
		last = o.Key
		if err := yield(b.info(name, o)); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("list %s: %w", b.uri, context.Cause(ctx))
	}
	return nil
}

// wrap says what failed on which object of which server, and what may be done about it.
func (b *Bucket) wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	at := b.uri
	if name != "" {
		at += "/" + name
	}
	if b.ctx.Err() != nil {
		return fmt.Errorf("%s %s: %w", op, at, context.Cause(b.ctx))
	}
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) {
		return fmt.Errorf("%s %s at %s: %w", op, at, b.endpoint, err)
	}
	switch {
	case answer.Code == "NoSuchBucket":
		return fmt.Errorf("%s %s at %s: there is no bucket %s: make it, or correct the address", op, at, b.endpoint, b.bucket)
	case answer.Code == "NoSuchKey" || (answer.StatusCode == http.StatusNotFound && name != ""):
		return fmt.Errorf("%s %s at %s: %w", op, at, b.endpoint, fs.ErrNotExist)
	case answer.Code == "PreconditionFailed" || answer.StatusCode == http.StatusPreconditionFailed:
		return fmt.Errorf("%s %s at %s: %w", op, at, b.endpoint, ErrReplaced)
	case answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%s %s at %s: refused (%s): %w; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the workload's storage_options, "+
			"in every process of the job", op, at, b.endpoint, answer.Code, err)
	}
	return fmt.Errorf("%s %s at %s: %s: %w", op, at, b.endpoint, answer.Code, err)
}

// ErrReplaced is wrapped by errors of reading an object that was replaced after it was opened.
var ErrReplaced = errors.New("the object was replaced while it was open; leave the data set alone, and start again")
