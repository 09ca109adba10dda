package export

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// copyTo writes the content and returns its digests, whatever they are.
func (c *Content) copyTo(ctx context.Context, w io.Writer) (oci.Digests, error) {
	r, done, err := c.open()
	if err != nil {
		return oci.Digests{}, err
	}
	g, err := hashTo(ctx, w, r)
	return g, errors.Join(err, done())
}

// digestsOf hashes what it reads.
func digestsOf(ctx context.Context, r io.Reader) (oci.Digests, error) {
	return hashTo(ctx, io.Discard, r)
}

func hashTo(ctx context.Context, w io.Writer, r io.Reader) (oci.Digests, error) {
	var g oci.Digests
	sha, b3 := sha256.New(), blake3.New()
	n, err := io.CopyBuffer(io.MultiWriter(w, sha, b3), untilDone{ctx, r}, make([]byte, 256<<10))
	g.Size = n
	sha.Sum(g.SHA256[:0])
	b3.Sum(g.Blake3[:0])
	return g, err
}

// untilDone reads until its context ends.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

// Read is r's, or the context's error.
func (u untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}

// writeContent copies a content to a new file below a folder, and refuses it when it is not what was described.
func writeContent(ctx context.Context, folder string, c Content) (err error) {
	path := filepath.Join(folder, filepath.FromSlash(c.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	g, err := c.copyTo(ctx, f)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	if g != c.Digests {
		return fmt.Errorf("%s changed while it was copied: expected %s, found %s", c.Name, c.Digests.SHA256Digest(), g.SHA256Digest())
	}
	return f.Sync()
}
