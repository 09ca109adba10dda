package s3

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"github.com/benchpin/benchpin/pkg/store"
)

// maxParts is how many parts an upload may have (Amazon S3, "Multipart upload limits").
const maxParts = 10_000

const contentType = "application/octet-stream"

// upload is an object that is being written: up to a part it is held and sent whole by Commit; beyond, its parts are sent while they
// come. Each request carries the MD5 of its bytes, which a server must compare.
type upload struct {
	b         *Bucket
	end       *end
	name, key string
	size      int64 // negative: unknown
	written   int64
	partSize  int64
	part      *[]byte
	ended     bool
	failed    error

	// Of a multipart upload that was begun.
	id    string
	group *errgroup.Group
	ctx   context.Context
	begun int

	mu   sync.Mutex
	sent []minio.CompletePart
	sums [][md5.Size]byte // of the parts, by number less 1
	done int64            // bytes of the parts that were sent
}

// Create begins an object. It appears, whole, with Commit, or never.
func (b *Bucket) Create(name string, size int64) (store.Writer, error) {
	key, err := b.key(name)
	if err != nil {
		return nil, err
	}
	return &upload{b: b, end: b.end(), name: name, key: key, size: size, partSize: max(b.o.PartSize, (size+maxParts-1)/maxParts)}, nil
}

// Write takes bytes of the object, and sends a part when it is full and more comes.
func (u *upload) Write(p []byte) (int, error) {
	switch {
	case u.ended:
		return 0, fmt.Errorf("write %s/%s: it is committed or aborted", u.b.uri, u.name)
	case u.failed != nil:
		return 0, u.failed
	case u.size >= 0 && u.written+int64(len(p)) > u.size:
		u.failed = fmt.Errorf("write %s/%s: more bytes than the %d that were announced", u.b.uri, u.name, u.size)
		return 0, u.failed
	}
	n := len(p)
	for len(p) > 0 {
		if u.part != nil && int64(len(*u.part)) == u.partSize {
			if u.failed = u.flush(); u.failed != nil {
				return n - len(p), u.failed
			}
		}
		if u.part == nil {
			u.part = u.b.parts.Get().(*[]byte)
		}
		take := min(int64(len(p)), u.partSize-int64(len(*u.part)))
		*u.part = append(*u.part, p[:take]...)
		u.written += take
		p = p[take:]
	}
	return n, nil
}

// flush sends the part that is held, and begins the upload with the first.
func (u *upload) flush() error {
	if u.id == "" {
		id, err := u.end.core.NewMultipartUpload(u.b.ctx, u.b.bucket, u.key, minio.PutObjectOptions{ContentType: contentType})
		if err != nil {
			return u.b.wrap("begin to write", u.name, err)
		}
		u.id = id
		u.group, u.ctx = errgroup.WithContext(u.b.ctx)
		u.group.SetLimit(u.b.o.Parts)
	}
	if u.begun == maxParts {
		return fmt.Errorf("write %s/%s: more than %d parts of %d bytes: announce the size, or choose larger parts", u.b.uri, u.name, maxParts, u.partSize)
	}
	if u.ctx.Err() != nil { // a part before failed, or the bucket was closed
		if err := u.group.Wait(); err != nil {
			return err
		}
		return u.b.wrap("write", u.name, context.Cause(u.ctx))
	}
	u.begun++
	number, part := u.begun, u.part
	u.part = nil
	u.group.Go(func() error {
		defer u.b.giveBack(part)
		return u.send(number, *part)
	})
	return nil
}

func (b *Bucket) giveBack(part *[]byte) {
	*part = (*part)[:0]
	b.parts.Put(part)
}

// send sends one part and remembers its tag.
func (u *upload) send(number int, p []byte) error {
	sum := md5.Sum(p)
	o := minio.PutObjectPartOptions{Md5Base64: base64.StdEncoding.EncodeToString(sum[:]), DisableContentSha256: true}
	var got minio.ObjectPart
	err := u.b.upload(p, func(r io.Reader) (err error) {
		got, err = u.end.once.PutObjectPart(u.ctx, u.b.bucket, u.key, u.id, number, r, int64(len(p)), o)
		return err
	})
	if err != nil {
		return u.b.wrap(fmt.Sprintf("write part %d of", number), u.name, err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.done += int64(len(p))
	u.sums = append(u.sums, make([][md5.Size]byte, max(0, number-len(u.sums)))...)
	u.sums[number-1] = sum
	u.sent = append(u.sent, minio.CompletePart{PartNumber: number, ETag: got.ETag})
	return nil
}

// Commit sends what is left and waits until the server has the whole object, whose size is then asked for and compared.
func (u *upload) Commit() error {
	if u.ended {
		return fmt.Errorf("commit %s/%s: it is committed or aborted", u.b.uri, u.name)
	}
	err := u.commit()
	if err != nil {
		return errors.Join(err, u.Abort())
	}
	u.finish()
	return nil
}

func (u *upload) commit() error {
	if u.failed != nil {
		return u.failed
	}
	if u.size >= 0 && u.written != u.size {
		return fmt.Errorf("commit %s/%s: expected %d bytes, found %d", u.b.uri, u.name, u.size, u.written)
	}
	tag, err := u.put()
	if err != nil {
		return err
	}
	got, err := u.end.core.StatObject(u.b.ctx, u.b.bucket, u.key, minio.StatObjectOptions{})
	if err != nil {
		return u.b.wrap("look at what was written to", u.name, err)
	}
	if got.Size != u.written {
		return fmt.Errorf("commit %s/%s: the server has %d bytes, expected %d: it lost some, or somebody else wrote the object too", u.b.uri, u.name, got.Size, u.written)
	}
	if !sameTag(tag, got.ETag) {
		return fmt.Errorf("commit %s/%s: the server says that it has the object of tag %s, and has that of tag %s: it lost what was written, or somebody else wrote "+
			"the object too", u.b.uri, u.name, tag, got.ETag)
	}
	return nil
}

// sameTag compares the tag that an upload was answered with with that of the object. Of an object of several parts a server may have tags of two
// kinds, of which only that with their number at the end can be compared.
func sameTag(said, has string) bool {
	said, has = strings.Trim(said, `"`), strings.Trim(has, `"`)
	return said == "" || said == has || strings.Contains(said, "-") != strings.Contains(has, "-")
}

// put sends what is left, and returns the tag that the server gave the object, "" where it did not say.
func (u *upload) put() (tag string, err error) {
	if u.id == "" {
		var p []byte
		if u.part != nil {
			p = *u.part
		}
		sum := md5.Sum(p)
		o := minio.PutObjectOptions{ContentType: contentType, DisableContentSha256: true, DisableMultipart: true}
		var got minio.UploadInfo
		err := u.b.upload(p, func(r io.Reader) (err error) {
			got, err = u.end.once.PutObject(u.b.ctx, u.b.bucket, u.key, r, int64(len(p)), base64.StdEncoding.EncodeToString(sum[:]), "", o)
			return err
		})
		if err != nil {
			return "", u.b.wrap("write", u.name, err)
		}
		return got.ETag, nil
	}
	if u.part != nil {
		if err := u.flush(); err != nil {
			return "", err
		}
	}
	if err := u.group.Wait(); err != nil {
		return "", err
	}
	if u.done != u.written || len(u.sent) != u.begun {
		return "", fmt.Errorf("write %s/%s: %d bytes in %d parts were sent of %d bytes in %d parts; this is a fault of benchpin", u.b.uri, u.name, u.done, len(u.sent),
			u.written, u.begun)
	}
	parts := make([]minio.CompletePart, len(u.sent))
	for _, p := range u.sent {
		parts[p.PartNumber-1] = p
	}
	got, err := u.end.core.CompleteMultipartUpload(u.b.ctx, u.b.bucket, u.key, u.id, parts, minio.PutObjectOptions{})
	if minio.ToErrorResponse(err).Code == "NoSuchUpload" && u.completed() {
		return "", nil // the answer to an attempt before was lost
	}
	if err != nil {
		return "", u.b.wrap("complete", u.name, err)
	}
	return got.ETag, nil
}

// completed reports whether the object is there with the tag that S3 makes of the parts that were sent: the MD5 of their MD5s, and their
// number.
func (u *upload) completed() bool {
	var all []byte
	for _, sum := range u.sums {
		all = append(all, sum[:]...)
	}
	got, err := u.end.core.StatObject(u.b.ctx, u.b.bucket, u.key, minio.StatObjectOptions{})
	return err == nil && strings.Trim(got.ETag, `"`) == fmt.Sprintf("%x-%d", md5.Sum(all), len(u.sums))
}

// finish gives back what is held.
func (u *upload) finish() {
	u.ended = true
	if u.part != nil {
		u.b.giveBack(u.part)
		u.part = nil
	}
}

// abortTime is how long giving up an upload may take; it is tried even when the run was cancelled, since parts that nobody completes
// are paid for.
const abortTime = 10 * time.Second

// Abort gives up the object. Parts that were sent are removed.
func (u *upload) Abort() error {
	if u.ended {
		return nil
	}
	u.finish()
	if u.id == "" {
		return nil
	}
	_ = u.group.Wait() // what failed was told; what is under way must not come after the abort
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.b.ctx), abortTime)
	defer cancel()
	if err := u.end.core.AbortMultipartUpload(ctx, u.b.bucket, u.key, u.id); err != nil && minio.ToErrorResponse(err).Code != "NoSuchUpload" {
		return fmt.Errorf("give up the parts of %s/%s, which stay on the server (upload %s): %w", u.b.uri, u.name, u.id, err)
	}
	return nil
}
