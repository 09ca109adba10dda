package pipeline

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/store/s3/s3test"
)

// TestBucketOnProcesses: several processes on two hosts read a data set of a bucket and write checkpoints there, by two endpoints, with the
// transcript of one process; a bucket, or a part of it, that a process does not see ends all with a
// reason.
func TestBucketOnProcesses(t *testing.T) {
	server := s3test.InMemory(t, "data")
	var first, second s3test.Proxy
	s3test.Environment(t, first.Start(t, server)+","+second.Start(t, server))
	set := []string{"storage.storage_type=s3", "storage.storage_root=data", "dataset.data_folder=several", "checkpoint.checkpoint_folder=several-saved"}
	at := processesWorkload(t, set...)
	l := Layout{t.TempDir()}
	const address = "s3://data/manifests/several.json"
	if _, err := Generate(t.Context(), GenerateOptions{Workload: at.Workload, Data: DataFolder(at.Workload), Manifest: address}); err != nil {
		t.Fatal(err)
	}
	inBucket := func(_ int, o *RunOptions) {
		o.Data, o.Manifest, o.Checkpoints = "s3://data/several", address, "s3://data/several-saved"
	}
	w := processesWorkload(t, append(set, "benchpin.accelerators=4")...)
	_, one, err := runOn(t, l, 1, 0, inBucket, w)
	if err != nil {
		t.Fatal(err)
	}
	asked := [2]int64{first.Count(), second.Count()}
	_, rec, err := runOn(t, l, 2, 1, inBucket, w)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(rec.Transcript, one.Transcript) || len(rec.Environment.Buckets) != 2 || len(rec.Environment.Buckets[0].Endpoints) != 2 {
		t.Errorf("transcript %s, expected %s; buckets %+v", rec.Transcript.Root, one.Transcript.Root, rec.Environment.Buckets)
	}
	for i, s := range rec.Checkpoints.Saves {
		if s.Digest != one.Checkpoints.Saves[i].Digest {
			t.Errorf("checkpoint %s differs", s.Name)
		}
	}
	if a, b := first.Count()-asked[0], second.Count()-asked[1]; a < b/2 || b < a/2 {
		t.Errorf("the endpoints were asked %d and %d times", a, b)
	}
	for name, c := range map[string]struct {
		change func(o *RunOptions)
		want   string
	}{
		"another bucket":  {func(o *RunOptions) { o.Data = "s3://elsewhere/several" }, "elsewhere"},
		"another prefix":  {func(o *RunOptions) { o.Data = "s3://data/none" }, "none"},
		"a local folder":  {func(o *RunOptions) { o.Data = filepath.Join(l.Dir, "none") }, "storage.storage_type"},
		"another's saves": {func(o *RunOptions) { o.Checkpoints = "s3://elsewhere/saved" }, "elsewhere"},
	} {
		_, _, err := runOn(t, l, 2, 1, func(rank int, o *RunOptions) {
			inBucket(rank, o)
			if rank == 1 {
				c.change(o)
			}
		}, w)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
