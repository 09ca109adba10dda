package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/s3"
	"github.com/benchpin/benchpin/pkg/workload"
)

// ManifestBeside is where the manifest of a data set stands if nobody says: beside its folder, and of a bucket's in the working folder,
// under the last element of the address.
func ManifestBeside(data string) string {
	if IsBucket(data) {
		return path.Base(strings.TrimSuffix(data, "/")) + ".manifest.json"
	}
	return filepath.Clean(data) + ".manifest.json"
}

// at opens a place of the run.
func (r *run) at(ctx context.Context, address string, o store.FolderOptions) (placeStore, error) {
	return openPlace(ctx, r.w, address, r.ReplayOf != nil, o)
}

// placed holds the places of the run to what the workload asks for.
func (r *run) placed() error {
	again := r.ReplayOf != nil
	if !bench.CheckpointOnly(r.w) {
		if err := placed(r.w, r.Data, again); err != nil {
			return err
		}
	}
	if r.w.Workflow.Checkpoint && IsBucket(r.Checkpoints) {
		if _, _, err := s3.ParseURI(r.Checkpoints); err != nil {
			return fmt.Errorf("checkpoints: %w; storage.storage_root names the bucket, or checkpoint.checkpoint_folder all of the address", err)
		}
	}
	return nil
}

func (r *run) ownCheckpoints(ctx context.Context, plan *bench.Plan) error {
	return ownCheckpoints(ctx, plan, r.Checkpoints, r.ReplayOf != nil)
}

// reading opens the data set as the timed part of the run reads it: past the page cache where the workload asks for that, and of a
// bucket only what is needed of each object.
func (r *run) reading(ctx context.Context) (DataStore, error) {
	switch {
	case IsBucket(r.Data):
		return openBucket(ctx, r.w, r.Data, r.ReplayOf != nil, r.plan.ReadsParts())
	case r.plan.Direct:
		return r.direct()
	}
	return store.NewFolder(r.Data, store.FolderOptions{})
}

// storageMeter looks at the storage that data is read from.
func (r *run) storageMeter(ctx context.Context, data DataStore) (bench.StorageMeter, error) {
	if b, ok := data.(*bucketPlace); ok {
		m := &bucketMeter{bucket: b}
		for range r.read() {
			m.files++
		}
		return m, nil
	}
	return r.meter(ctx, r.data.(*store.Folder))
}

// uncached takes out of the options of a run in a bucket what asks for a page cache or a device.
func (r *run) uncached(o *bench.Options) {
	if bench.CheckpointOnly(r.w) {
		if IsBucket(r.Checkpoints) {
			o.DeviceBytes = func() (int64, error) {
				return 0, errors.New("checkpoints were read from a bucket, and from no device of this machine")
			}
		}
		return
	}
	if !IsBucket(r.Data) {
		return
	}
	o.Uncacheable = true
	if r.w.Benchpin.ColdCache != workload.ColdAll { // which drops all of the machine's pages, those of a server on it too
		o.Evict = nil
	}
	o.DeviceBytes = func() (int64, error) {
		return 0, errors.New("the data set was read from a bucket, and from no device of this machine")
	}
}

// usedBucket is a bucket of the timed part, and what it is for.
type usedBucket struct {
	role string
	*bucketPlace
}

// uses notes that the timed part uses a place, where that is a bucket.
func (r *run) uses(role string, place DataStore) {
	if b, ok := place.(*bucketPlace); ok {
		r.used = append(r.used, usedBucket{role, b})
	}
}

// buckets is what the record says of them, once the clock has stopped.
func (r *run) buckets() []record.Bucket {
	var list []record.Bucket
	for _, role := range []string{record.RoleData, record.RoleCheckpoints} {
		for _, u := range r.used {
			if u.role != role || role == record.RoleCheckpoints && r.plan.Checkpoints == 0 && r.plan.CheckpointReads == 0 {
				continue
			}
			o, t := u.Options(), u.Traffic()
			endpoints := u.Endpoints()
			if r.Redact {
				for i := range endpoints {
					endpoints[i] = record.RedactedText
				}
			}
			list = append(list, record.Bucket{Role: role, Address: u.URI(), Endpoints: endpoints, Region: o.Region, PathStyle: o.PathStyle != nil && *o.PathStyle,
				Attempts: o.Attempts, Ranged: o.Ranged, PartBytes: record.Int(o.PartSize), Parts: o.Parts,
				Traffic: record.BucketTraffic{Get: record.Int(t.Get), Put: record.Int(t.Put), Head: record.Int(t.Head), List: record.Int(t.List),
					Other: record.Int(t.Other), Refused: record.Int(t.Refused), Broken: record.Int(t.Broken), Retried: record.Int(t.Retries),
					Received: record.Int(t.Received), Sent: record.Int(t.Sent)}})
		}
	}
	return list
}

// bucketMeter looks at what went between this process and the server of a bucket. It is a bench.StorageMeter.
type bucketMeter struct {
	bucket *bucketPlace
	files  int64
}

// Look reads the counters.
func (m *bucketMeter) Look(context.Context) (bench.StorageLook, error) {
	start := time.Now()
	none := bench.Count{Absent: errNoPageCache.Error()}
	l := bench.StorageLook{Files: m.files, FileSystems: []bench.FileSystemLook{{
		Device: m.bucket.Device(), MountPoint: m.bucket.URI(), Type: objectStore,
		Uncounted: "objects come from the server of their bucket; what it had in memory is not seen from here",
		Disk:      bench.Count{Absent: "the disks of an object server are not seen from here"}, Network: bench.Count{Bytes: m.bucket.Traffic().Received}, Cached: none,
	}}}
	l.Took = time.Since(start)
	return l, nil
}

// lookingAtOnce is how many objects are asked for at once: each takes a way to the server and back.
const lookingAtOnce = 64

// lookAtBucket takes the identities of this process's share of the objects. An identity is that of the content, so that one that is new needs
// no second look.
func (r *run) lookAtBucket(ctx context.Context) ([]store.Info, error) {
	known := make([]store.Info, len(r.files.byEntry))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(lookingAtOnce)
	index := 0
	err := r.manifest.Entries(gctx, func(e manifest.Entry) error {
		at, mine := r.files.byEntry[index], r.mine(index)
		index++
		if !mine {
			return nil
		}
		g.Go(func() error {
			info, err := r.lookAt(e)
			if err != nil {
				return err
			}
			known[at] = info
			return nil
		})
		return gctx.Err()
	})
	if werr := g.Wait(); werr != nil {
		err = werr
	}
	if err != nil {
		err = fmt.Errorf("look at the data set: %w", err)
	}
	return known, err
}
