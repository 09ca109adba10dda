package pipeline

import (
	"context"
	"os"
	"strings"

	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/s3"
)

// DataStore is the store of a data set, held open.
type DataStore interface {
	store.Store
	Close() error
}

// IsBucket reports whether the address of a data set is that of a bucket, s3://BUCKET[/PREFIX], and no folder.
func IsBucket(data string) bool { return strings.HasPrefix(data, s3.Scheme) }

// OpenData opens the store of a data set: a folder, with the given options, or the bucket of an address s3://BUCKET[/PREFIX], which is
// reached as the environment says (s3.Options.WithEnvironment). Requests to a bucket end with ctx.
func OpenData(ctx context.Context, data string, o store.FolderOptions) (DataStore, error) {
	if !IsBucket(data) {
		return store.NewFolder(data, o)
	}
	return s3.Open(ctx, data, s3.Options{}.WithEnvironment(os.Getenv))
}
