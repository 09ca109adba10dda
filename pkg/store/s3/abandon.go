package s3

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
)

// Abandon gives up all uploads below the prefix that were begun and not completed, whoever began them, and says how many. Parts of an upload
// whose process was killed stay on a server, and are paid for, until somebody does. A server that does not tell which there are has none as
// far as is known.
func (b *Bucket) Abandon(ctx context.Context) (given int, err error) {
	core := b.end().core
	key, id := "", ""
	for {
		r, err := core.ListMultipartUploads(ctx, b.bucket, b.prefix, key, id, "", 1000)
		if untold(err) {
			return given, nil
		}
		if err != nil {
			return given, b.wrap("list unfinished uploads of", "", err)
		}
		for _, u := range r.Uploads {
			if !strings.HasPrefix(u.Key, b.prefix) {
				return given, fmt.Errorf("list unfinished uploads of %s: the server listed %q, which does not begin with %q", b.uri, u.Key, b.prefix)
			}
			err := core.AbortMultipartUpload(ctx, b.bucket, u.Key, u.UploadID)
			if minio.ToErrorResponse(err).Code == "NoSuchUpload" {
				continue // somebody else did
			}
			if err != nil {
				return given, b.wrap("give up an unfinished upload of", strings.TrimPrefix(u.Key, b.prefix), err)
			}
			given++
		}
		if !r.IsTruncated {
			return given, nil
		}
		key, id = r.NextKeyMarker, r.NextUploadIDMarker
	}
}

// untold reports whether an answer says that the server does not do what it was asked, or not for everybody.
func untold(err error) bool {
	switch minio.ToErrorResponse(err).StatusCode {
	case http.StatusNotImplemented, http.StatusMethodNotAllowed, http.StatusForbidden:
		return err != nil
	}
	return false
}
