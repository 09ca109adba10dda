package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/s3"
	"github.com/benchpin/benchpin/pkg/workload"
)

// DataStore is the store of a data set, held open.
type DataStore interface {
	store.Store
	Close() error
}

// IsBucket reports whether an address is that of a bucket, s3://BUCKET[/PREFIX], and no folder.
func IsBucket(data string) bool { return strings.HasPrefix(data, s3.Scheme) }

// OpenData opens the store of a data set: a folder, with the given options, or the bucket of an address s3://BUCKET[/PREFIX], which is
// reached as the environment says (s3.Options.WithEnvironment). Requests to a bucket end with ctx.
func OpenData(ctx context.Context, data string, o store.FolderOptions) (DataStore, error) {
	if !IsBucket(data) {
		return store.NewFolder(data, o)
	}
	return s3.Open(ctx, data, bucketOptions(nil, false))
}

// objectStore is the storage.storage_type of workloads whose data are in a bucket.
const objectStore = "s3"

// amazonsFirst is the region where nobody names one.
const amazonsFirst = "us-east-1"

// bucketOptions are those that a workload's buckets are reached by: its section storage.storage_options where its storage_type is s3,
// and for the rest the environment. The region us-east-1, which DLIO takes where none is given, gives way to one that the environment
// names. Who replays a result (again) has other servers than who ran it: there the environment comes first.
func bucketOptions(w *workload.Workload, again bool) s3.Options {
	o := s3.Options{}.WithEnvironment(os.Getenv)
	if w == nil || w.Storage.StorageType != objectStore {
		return o
	}
	given := &w.Storage.StorageOptions
	region := given.Region
	if region == amazonsFirst {
		region = ""
	}
	if again {
		o.Endpoint, o.Region = cmp.Or(o.Endpoint, given.EndpointURL), cmp.Or(o.Region, region)
	} else {
		o.Endpoint, o.Region = cmp.Or(given.EndpointURL, o.Endpoint), cmp.Or(region, o.Region)
	}
	o.AccessKey, o.SecretKey = given.AccessKeyID, given.SecretAccessKey
	if given.S3ForcePathStyle {
		o.PathStyle = &given.S3ForcePathStyle
	}
	o.Attempts = given.S3MaxAttempts
	o.Ahead, o.AheadParts = bench.PrefetchWorkers(w), bench.PrefetchedParts(w)
	return o
}

// DataFolder is where a workload has its data set: dataset.data_folder below storage.storage_root, or as it is where it is absolute. With
// storage.storage_type s3 it is the address of a bucket's objects: storage_root is the bucket, and data_folder the prefix below it, or
// the whole address.
func DataFolder(w *workload.Workload) string {
	if w.Storage.StorageType == objectStore {
		return bucketAddress(w, w.Dataset.DataFolder)
	}
	if filepath.IsAbs(w.Dataset.DataFolder) {
		return filepath.Clean(w.Dataset.DataFolder)
	}
	return filepath.Join(w.Storage.StorageRoot, w.Dataset.DataFolder)
}

// checkpointFolder is where a workload writes checkpoints: checkpoint.checkpoint_folder, which with storage.storage_type s3 is in the
// bucket as the data set is.
func checkpointFolder(w *workload.Workload) string {
	if w.Storage.StorageType == objectStore {
		return bucketAddress(w, w.Checkpoint.CheckpointFolder)
	}
	return w.Checkpoint.CheckpointFolder
}

// bucketAddress is the address of a folder that a workload names in its bucket. Where it names no bucket, the address has none, and
// whoever opens it says so.
func bucketAddress(w *workload.Workload, folder string) string {
	if IsBucket(folder) {
		return folder
	}
	root := strings.TrimSuffix(strings.TrimPrefix(w.Storage.StorageRoot, s3.Scheme), "/")
	if root == "." || root == "./" {
		root = ""
	}
	prefix := strings.TrimPrefix(path.Clean("/"+folder), "/")
	if prefix == "" {
		return s3.Scheme + root
	}
	return s3.Scheme + root + "/" + prefix
}

// placed refuses a workload that does not fit the place that its data are given: a bucket has no direct reads, and a folder is not the
// object store that a workload asks for.
func placed(w *workload.Workload, data string, again bool) error {
	types := []string{"local_fs", "parallel_fs", "direct_fs", objectStore}
	if !slices.Contains(types, w.Storage.StorageType) {
		return &bench.UnsupportedError{Keys: []bench.Unsupported{{
			Key: "storage.storage_type", Found: fmt.Sprintf("%q", w.Storage.StorageType), Supported: strings.Join(types, ", ")}}}
	}
	s := &w.Storage
	refuse := func(key, format string, args ...any) error {
		return &workload.Error{Path: key, Msg: fmt.Sprintf(format, args...)}
	}
	if scheme := s.StorageOptions.URIScheme; s.StorageType == objectStore && scheme != "" && scheme != "s3" && scheme != s3.Scheme {
		return refuse("storage.storage_options.uri_scheme", "%q cannot be reached: expected s3; Google's and Azure's object stores are reached through gateways "+
			"that speak S3 (docs/s3.md)", scheme)
	}
	if !IsBucket(data) {
		if s.StorageType == objectStore && !again {
			return refuse("storage.storage_type", "is s3, and %s is a folder; give an address s3://BUCKET/PREFIX, or "+
				"++workload.storage.storage_type=local_fs", data)
		}
		return nil
	}
	bucket, _, err := s3.ParseURI(data)
	switch {
	case err != nil && s.StorageType == objectStore:
		return fmt.Errorf("%w; storage.storage_root names the bucket, or dataset.data_folder all of the address", err)
	case err != nil:
		return err
	case s.StorageType == "direct_fs" || w.Reader.ODirect:
		return refuse("reader.odirect", "%s is a bucket, and objects are in no page cache that reads could go past; leave reader.odirect and storage_type direct_fs out",
			data)
	}
	// DLIO wants both; where they contradict each other, one of them was forgotten.
	root := strings.TrimSuffix(strings.TrimPrefix(s.StorageRoot, s3.Scheme), "/")
	if s.StorageType == objectStore && data == w.Dataset.DataFolder && root != "." && root != "" && root != bucket {
		return refuse("storage.storage_root", "is the bucket %q, and dataset.data_folder is in %q; correct one of them", root, bucket)
	}
	return nil
}

// placeStore is the store of what a run reads or writes: a folder, or a bucket.
type placeStore interface {
	DataStore
	// StatSettled is Stat that sees every change that was made before it.
	StatSettled(name string) (store.Info, error)
	Resident(name string) (bytes int64, err error)
	Evict(name string) error
	Remove(name string) error
}

var (
	_ placeStore = (*store.Folder)(nil)
	_ placeStore = (*bucketPlace)(nil)
)

// errNoPageCache is why a bucket has no figures of the page cache.
var errNoPageCache = errors.New("objects of a bucket are in no page cache of this machine")

// bucketPlace is a bucket as a run wants it.
type bucketPlace struct{ *s3.Bucket }

// StatSettled is Stat: an object has no pages that could still change.
func (b *bucketPlace) StatSettled(name string) (store.Info, error) { return b.Stat(name) }

// Resident says that nobody can tell.
func (b *bucketPlace) Resident(string) (int64, error) { return 0, errNoPageCache }

// Evict does nothing.
func (b *bucketPlace) Evict(string) error { return nil }

// Uncacheable is true: bench.Saved need not be dropped.
func (b *bucketPlace) Uncacheable() bool { return true }

// openPlace opens a folder, with the given options, or a bucket that is reached as a workload and the environment say.
func openPlace(ctx context.Context, w *workload.Workload, address string, again bool, o store.FolderOptions) (placeStore, error) {
	if !IsBucket(address) {
		return store.NewFolder(address, o)
	}
	b, err := openBucket(ctx, w, address, again, false)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// openBucket opens a bucket, for reads of parts of its objects or of whole ones.
func openBucket(ctx context.Context, w *workload.Workload, address string, again, parts bool) (*bucketPlace, error) {
	o := bucketOptions(w, again)
	o.Ranged = parts
	b, err := s3.Open(ctx, address, o)
	if err != nil {
		return nil, err
	}
	return &bucketPlace{b}, nil
}
