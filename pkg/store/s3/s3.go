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
	// Endpoint is the server's address: http://HOST[:PORT] or https://HOST[:PORT]; without a scheme it is https. "" is Amazon's. Several
	// ways to the same objects are separated by commas: accelerators are dealt to them by rank (OpenFor), everything else in turns.
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
	// CertFile and KeyFile are PEM files of the certificate that this client shows to a server that asks for one, and of its key; "" is
	// none.
	CertFile, KeyFile string
	// Attempts is how often a request is tried before it is given up; below 1 is 5. Between two tries the wait grows, with chance.
	Attempts int
	// PartSize is how many bytes of an upload are held and sent at once; below 1 is 16 MiB. Objects up to it are sent in one request.
	PartSize int64
	// Parts is how many parts of one upload are under way at once; below 1 is 4. An upload holds PartSize x (Parts + 1) bytes.
	Parts int
	// Ahead is how many requests bring the parts of one object at once, where it is larger than AheadPart and read in order; below 2 an
	// object comes as one answer. AheadParts is how many parts are under way or held at most, and so how much memory an open object
	// takes, in AheadPart; below Ahead it is twice that. Nothing is fetched ahead where Ranged is set.
	Ahead, AheadParts int
	// Ranged makes every read a request for just those bytes. Otherwise opening asks for the whole object and reads in order are
	// served from that answer, which costs one request a file.
	Ranged bool
	// Stall is how long an answer may give no byte before it counts as failed; below 1 is 60 s.
	Stall time.Duration
}

// WithEnvironment fills what is empty from the variables that Amazon's own tools read: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL,
// AWS_REGION, AWS_DEFAULT_REGION and AWS_CA_BUNDLE; and from BENCHPIN_S3_CERT and BENCHPIN_S3_KEY, for which they have no names.
// Credentials are looked up when a bucket is opened.
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
	o.CertFile = first(o.CertFile, "BENCHPIN_S3_CERT")
	o.KeyFile = first(o.KeyFile, "BENCHPIN_S3_KEY")
	return o
}

// Bucket is the store of the objects below one prefix of a bucket.
type Bucket struct {
	uri, bucket, prefix string // prefix is "" or ends in "/"
	o                   Options
	ends                []*end
	next                atomic.Uint64
	ctx                 context.Context // ends with Close: what is under way then ends too
	cancel              context.CancelCauseFunc
	device              uint64
	parts, aheads       sync.Pool

	counts
}

// end is one way to the bucket.
type end struct {
	address string
	core    *minio.Core
	once    *minio.Core // tries a request once, for those with a body: see upload
}

// end returns the next of the ways.
func (b *Bucket) end() *end { return b.ends[(b.next.Add(1)-1)%uint64(len(b.ends))] }

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
	if o.Ahead < 2 || o.Ranged {
		o.Ahead, o.AheadParts = 0, 0
	} else if o.AheadParts < o.Ahead {
		o.AheadParts = 2 * o.Ahead
	}
	if o.Stall < 1 {
		o.Stall = time.Minute
	}
	b := &Bucket{uri: Scheme + bucket, bucket: bucket, o: o}
	if err := b.reach(); err != nil {
		return nil, fmt.Errorf("%s: %w", uri, err)
	}
	if prefix != "" {
		b.prefix = prefix + "/"
		b.uri += "/" + prefix
	}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	b.device = number(b.ends[0].address, bucket)
	b.parts.New = func() any { p := make([]byte, 0, o.PartSize); return &p }
	b.aheads.New = func() any { p := make([]byte, AheadPart); return &p }
	return b, nil
}

// reach makes the clients, one for each endpoint.
func (b *Bucket) reach() error {
	o := b.o
	transport, err := newTransport(o)
	if err != nil {
		return err
	}
	lookup := minio.BucketLookupAuto
	if o.PathStyle != nil {
		if lookup = minio.BucketLookupDNS; *o.PathStyle {
			lookup = minio.BucketLookupPath
		}
	}
	with := minio.Options{Creds: login(o), Transport: &counting{transport, &b.counts}, Region: o.Region, BucketLookup: lookup}
	seen := map[string]bool{}
	for given := range strings.SplitSeq(o.Endpoint, ",") {
		host, secure, err := endpoint(strings.TrimSpace(given), o.Region)
		if err != nil {
			return err
		}
		e := &end{}
		with.Secure = secure
		for tries, to := range map[int]**minio.Core{o.Attempts: &e.core, 1: &e.once} {
			with.MaxRetries = tries
			options := with
			if *to, err = minio.NewCore(host, &options); err != nil {
				return fmt.Errorf("%s: %w", host, err)
			}
		}
		if o.Attempts == 1 {
			e.core = e.once
		}
		if e.address = e.core.EndpointURL().String(); seen[e.address] {
			return fmt.Errorf("endpoint %s is named twice", e.address)
		}
		seen[e.address] = true
		b.ends = append(b.ends, e)
	}
	return nil
}

// endpoint splits the address of a server into host and whether it is reached by TLS.
func endpoint(given, region string) (host string, secure bool, err error) {
	if given == "" {
		return "s3." + region + ".amazonaws.com", true, nil
	}
	shown := given
	if strings.ContainsAny(given, "@?") {
		shown = "of an address with a user, a password or a query, which is not shown"
	}
	if !strings.Contains(given, "://") {
		given = "https://" + given
	}
	u, err := url.Parse(given)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.User != nil {
		return "", false, fmt.Errorf("endpoint %q: expected http://HOST[:PORT] or https://HOST[:PORT]; credentials have variables of their own", shown)
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
	if o.CAFile == "" && o.CertFile == "" && o.KeyFile == "" {
		return t, nil
	}
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CertFile != "" || o.KeyFile != "" {
		own, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("certificate to show to the object store (BENCHPIN_S3_CERT, BENCHPIN_S3_KEY): %w", err)
		}
		t.TLSClientConfig.Certificates = []tls.Certificate{own}
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
	t.TLSClientConfig.RootCAs = pool
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

// Endpoints are the addresses of the server, with their schemes.
func (b *Bucket) Endpoints() []string {
	var list []string
	for _, e := range b.ends {
		list = append(list, e.address)
	}
	return list
}

// Options are those that the bucket is reached by, with what was left to be chosen filled in. Credentials are not among them.
func (b *Bucket) Options() Options {
	o := b.o
	o.AccessKey, o.SecretKey, o.SessionToken = "", "", ""
	return o
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
	got, err := b.end().core.StatObject(b.ctx, b.bucket, key, minio.StatObjectOptions{})
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
	return b.wrap("remove", name, b.end().core.RemoveObject(b.ctx, b.bucket, key, minio.RemoveObjectOptions{}))
}

// List calls yield for every object below the prefix, in the order of the raw bytes of the names, which is the order that S3 lists in.
// Empty objects whose key ends in a slash, which some tools make to show a folder, are left out.
func (b *Bucket) List(ctx context.Context, yield func(store.Info) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(b.ctx, func() { cancel(context.Cause(b.ctx)) })()
	last, tried := "", 0
	for {
		at, err := b.list(ctx, last, yield)
		var server listError
		if !errors.As(err, &server) {
			return err
		}
		if at != last {
			last, tried = at, 0
		}
		// What was listed stays listed: the listing goes on behind it.
		if tried++; tried >= b.o.Attempts || final(server.error) {
			return b.wrap("list", "", server.error)
		}
		b.retries.Add(1)
		if err := b.pause(tried); err != nil {
			return fmt.Errorf("list %s: %w", b.uri, err)
		}
	}
}

// listError is an error of the server, and none of what was listed.
type listError struct{ error }

// list is List of the keys after one, and returns the last that was listed.
func (b *Bucket) list(ctx context.Context, after string, yield func(store.Info) error) (last string, err error) {
	last = after
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for o := range b.end().core.ListObjectsIter(ctx, b.bucket, minio.ListObjectsOptions{Prefix: b.prefix, Recursive: true, StartAfter: after}) {
		if ctx.Err() != nil {
			return last, fmt.Errorf("list %s: %w", b.uri, context.Cause(ctx))
		}
		if o.Err != nil {
			return last, listError{o.Err}
		}
		if o.Key <= last {
			return last, fmt.Errorf("list %s: the server listed %q after %q, expected the order of raw bytes", b.uri, o.Key, last)
		}
		if !strings.HasPrefix(o.Key, b.prefix) {
			return last, fmt.Errorf("list %s: the server listed %q, which does not begin with %q", b.uri, o.Key, b.prefix)
		}
		last = o.Key
		if strings.HasSuffix(o.Key, "/") && o.Size == 0 {
			continue
		}
		name := strings.TrimPrefix(o.Key, b.prefix)
		if err := store.CheckName(name); err != nil {
			return last, fmt.Errorf("list %s: %w", b.uri, err)
		}
		if err := yield(b.info(name, o)); err != nil {
			return last, err
		}
	}
	if ctx.Err() != nil {
		return last, fmt.Errorf("list %s: %w", b.uri, context.Cause(ctx))
	}
	return last, nil
}

// address names the server in errors.
func (b *Bucket) address() string { return strings.Join(b.Endpoints(), ", ") }

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
		return fmt.Errorf("%s %s at %s: %w", op, at, b.address(), err)
	}
	switch {
	case answer.Code == "NoSuchBucket":
		return fmt.Errorf("%s %s at %s: there is no bucket %s: make it, or correct the address", op, at, b.address(), b.bucket)
	case answer.Code == "NoSuchKey" || (answer.StatusCode == http.StatusNotFound && name != ""):
		return fmt.Errorf("%s %s at %s: %w", op, at, b.address(), fs.ErrNotExist)
	case answer.Code == "PreconditionFailed" || answer.StatusCode == http.StatusPreconditionFailed:
		return fmt.Errorf("%s %s at %s: %w", op, at, b.address(), ErrReplaced)
	case answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%s %s at %s: refused (%s): %w; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the workload's storage_options, "+
			"in every process of the job", op, at, b.address(), answer.Code, err)
	}
	return fmt.Errorf("%s %s at %s: %s: %w", op, at, b.address(), answer.Code, err)
}

// ErrReplaced is wrapped by errors of reading an object that was replaced after it was opened.
var ErrReplaced = errors.New("the object was replaced while it was open; leave the data set alone, and start again")

// Device is the number that stands for the bucket in the identities of its objects (store.Info).
func (b *Bucket) Device() uint64 { return b.device }
