package pipeline

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/bench/checkpoint"
	"github.com/benchpin/benchpin/pkg/environment"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/s3"
	"github.com/benchpin/benchpin/pkg/store/s3/s3test"
	"github.com/benchpin/benchpin/pkg/store/storetest"
	"github.com/benchpin/benchpin/pkg/workload"
)

// inBucket are the overrides of a workload whose data and checkpoints live in the bucket "data".
func inBucket(set ...string) []string {
	return append([]string{"storage.storage_type=s3", "storage.storage_root=data", "dataset.data_folder=sets/small", "checkpoint.checkpoint_folder=saved"}, set...)
}

// objects lists the keys of the bucket "data".
func objects(t *testing.T, endpoint string) []string {
	t.Helper()
	b, err := s3.Open(context.Background(), "s3://data", s3.Options{Endpoint: endpoint, AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var names []string
	if err := b.List(context.Background(), func(i store.Info) error { names = append(names, i.Path); return nil }); err != nil {
		t.Fatal(err)
	}
	return names
}

// TestBucketTheWholeWay: data set and checkpoints are written into a bucket and read from there; root, transcript and checkpoints are those of
// the same workload in folders, the archive verifies, and figures that a bucket does not have are absent with a reason.
func TestBucketTheWholeWay(t *testing.T) {
	endpoint := s3test.InMemory(t, "data")
	s3test.Environment(t, endpoint)
	_, local := gone(t)
	l, out := gone(t, inBucket()...)
	r, want := out.Record, local.Record
	if r.Dataset.Root != want.Dataset.Root || r.Transcript.Root != want.Transcript.Root {
		t.Errorf("root %s and transcript %s; expected those of the folder, %s and %s", r.Dataset.Root, r.Transcript.Root, want.Dataset.Root, want.Transcript.Root)
	}
	if len(r.Checkpoints.Saves) != 2 || r.Checkpoints.Saves[1].Digest != want.Checkpoints.Saves[1].Digest {
		t.Errorf("checkpoints: %+v", r.Checkpoints.Saves)
	}
	if r.Dataset.Verification.IdentityRechecked != 32 || r.Dataset.Verification.ResidentBefore != nil {
		t.Errorf("verification: %+v", r.Dataset.Verification)
	}
	names := objects(t, endpoint)
	if n := len(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, "sets/small/train/") })); n != 9 {
		t.Errorf("expected 9 objects of the data set, found %d of %q", n, names)
	}
	saved := len(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, "saved/global_epoch") }))
	if saved == 0 {
		t.Errorf("no checkpoint among %q", names)
	}
	for _, e := range r.Metrics.Epochs {
		if e.BytesDevice.Value != nil || !strings.Contains(e.BytesDevice.Absent, "bucket") {
			t.Errorf("bytes from a device: %+v", e.BytesDevice)
		}
		s := e.Storage
		if s == nil || len(s.FileSystems) != 1 || s.Dropped != nil {
			t.Fatalf("storage: %+v", s)
		}
		f := s.FileSystems[0]
		if f.Type != "s3" || f.MountPoint != "s3://data/sets/small" || f.CachedBefore.Value != nil || f.CachedBefore.Absent == "" || s.Memory.Value != nil {
			t.Errorf("storage: %+v", f)
		}
		if asked, got := value(t, "asked", f.Asked), value(t, "network", f.Network); got < asked || got > 2*asked {
			t.Errorf("asked for %v bytes, and %v were received", asked, got)
		}
	}
	for _, folder := range r.Environment.Folders {
		if folder.Role != record.RoleResults {
			t.Errorf("a folder of the environment: %+v", folder)
		}
	}
	b := r.Environment.Buckets
	if len(b) != 2 || b[0].Address != "s3://data/sets/small" || b[1].Address != "s3://data/saved" || b[0].Endpoints[0] != endpoint {
		t.Fatalf("buckets: %+v", b)
	}
	// A sample is a whole object, asked for once.
	if got := b[0].Traffic; got.Get != 32 || got.Put+got.List+got.Refused+got.Broken+got.Retried != 0 || got.Received < 32*2500 {
		t.Errorf("traffic of the data: %+v", got)
	}
	if got := b[1].Traffic; int(got.Put) != saved || got.Sent < record.Int(r.Checkpoints.Saves[0].Bytes) {
		t.Errorf("traffic of the checkpoints: %+v", got)
	}
	// Once more: what is there is compared and kept, and run on again.
	if _, err := Pipeline(context.Background(), Options{Workload: small(t, inBucket()...), Dir: l.Dir, Tool: r.Tool}); err != nil {
		t.Error(err)
	}
}

// TestBucketOfRealServer goes the whole way by a server that people run: it checks signatures, keeps objects in files, and has samples of
// several parts fetched ahead.
func TestBucketOfRealServer(t *testing.T) {
	s3test.Environment(t, s3test.Versity(t, "data"))
	large := []string{"dataset.record_length_bytes=30000000", "dataset.num_files_train=4", "dataset.num_samples_per_file=1", "dataset.num_subfolders_train=0", "reader.batch_size=1",
		"model.model_size_bytes=40000000", "train.epochs=1"}
	_, local := gone(t, large...)
	_, out := gone(t, inBucket(append(large, "storage.storage_options.prefetch_workers=3")...)...)
	r, want := out.Record, local.Record
	if r.Dataset.Root != want.Dataset.Root || r.Transcript.Root != want.Transcript.Root || r.Checkpoints.Saves[0].Digest != want.Checkpoints.Saves[0].Digest {
		t.Errorf("root %s, transcript %s, checkpoint %s; expected %s, %s, %s", r.Dataset.Root, r.Transcript.Root, r.Checkpoints.Saves[0].Digest, want.Dataset.Root,
			want.Transcript.Root, want.Checkpoints.Saves[0].Digest)
	}
	// 30 MB in parts of 8 MiB.
	if got := r.Environment.Buckets[0].Traffic; got.Get != 4*4 || got.Refused+got.Broken+got.Retried != 0 {
		t.Errorf("traffic: %+v", got)
	}
}

// TestBucketCheckpointsOnly: checkpoints are written into a bucket, read back and compared, and one that was changed is found.
func TestBucketCheckpointsOnly(t *testing.T) {
	endpoint := s3test.InMemory(t, "data")
	s3test.Environment(t, endpoint)
	set := inBucket("workflow.train=false", "checkpoint.num_checkpoints_write=2", "checkpoint.num_checkpoints_read=2", "model.model_size_bytes=20000000",
		"checkpoint.time_between_checkpoints=0", "metric.au=0")
	_, out := gone(t, set...)
	r := out.Record
	if len(r.Checkpoints.Loads) != 2 || !r.Checkpoints.Loads[1].Verified || r.Checkpoints.Eviction != nil || r.Checkpoints.Loads[0].DeviceBytes != nil {
		t.Errorf("%+v", r.Checkpoints)
	}
	b := r.Environment.Buckets
	if len(b) != 1 || b[0].Role != record.RoleCheckpoints || b[0].Traffic.Sent < 2*20_000_000 || b[0].Traffic.Received < 2*20_000_000 {
		t.Errorf("buckets: %+v", b)
	}
	// Read by another run, which writes none; one byte of one checkpoint was changed meanwhile.
	st, err := s3.Open(t.Context(), "s3://data", s3.Options{Endpoint: endpoint, AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	only := func() error {
		w := small(t, append(set, "checkpoint.num_checkpoints_write=0")...)
		_, err := Run(t.Context(), RunOptions{Workload: w, Out: filepath.Join(t.TempDir(), "run"), Tool: r.Tool})
		return err
	}
	if err := only(); err != nil {
		t.Error(err)
	}
	for _, name := range objects(t, endpoint) {
		data := storetest.Read(t, st, name)
		if len(data) < 20_000_000 {
			continue
		}
		data[len(data)/2] ^= 1
		storetest.Write(t, st, name, data)
		break
	}
	if err := only(); !errors.Is(err, bench.ErrCheckpoint) {
		t.Errorf("a checkpoint that was changed: %v", err)
	}
}

// TestBucketAsItIs: a pipeline and a replay take the objects of a bucket as they are.
func TestBucketAsItIs(t *testing.T) {
	endpoint := s3test.InMemory(t, "data")
	s3test.Environment(t, endpoint)
	w := small(t)
	dir := t.TempDir()
	h, err := Generate(t.Context(), GenerateOptions{Workload: w.Workload, Data: "s3://data/p", Manifest: filepath.Join(dir, "m.json")})
	if err != nil {
		t.Fatal(err)
	}
	tool, err := environment.Tool("test", "")
	if err != nil {
		t.Fatal(err)
	}
	out, err := Pipeline(t.Context(), Options{Workload: w, Data: "s3://data/p", Dir: filepath.Join(dir, "pipeline"), Tool: tool})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if out.Record.Dataset.Root != h.Root.String() || out.Record.Dataset.Generated {
		t.Errorf("data set: %+v", out.Record.Dataset)
	}
	if want := objects(t, endpoint); len(want) != 9 {
		t.Errorf("the bucket holds %q", want)
	}
}

// everyContainer is a workload for each way that containers are read: whole, in parts, with companions, as streams.
var everyContainer = map[string][]string{
	"npz": {"benchpin.verify=inline"}, "npy": {"dataset.format=npy", "benchpin.verify=after"}, "hdf5": {"dataset.format=hdf5", "benchpin.verify=inline"},
	"indexed": {"dataset.format=indexed_binary", "benchpin.verify=inline"}, "png": {"dataset.format=png", "dataset.num_samples_per_file=1"},
	"parquet":  {"dataset.format=parquet", "benchpin.verify=inline"},
	"tfrecord": {"dataset.format=tfrecord", "framework=tensorflow", "reader.data_loader=tensorflow", "benchpin.verify=inline"},
	"csv":      {"dataset.format=csv", "benchpin.verify=sample"},
}

// TestBucketEveryContainer: each is written into a bucket with the root that it has in a folder, and read from there as the plan says, hashed
// in the run where that is asked for.
func TestBucketEveryContainer(t *testing.T) {
	endpoint := s3test.InMemory(t, "data")
	s3test.Environment(t, endpoint)
	tool, err := environment.Tool("test", "")
	if err != nil {
		t.Fatal(err)
	}
	for name, set := range everyContainer {
		dir := t.TempDir()
		w := small(t, append(inBucket("workflow.checkpoint=false", "train.epochs=1", "dataset.data_folder="+name), set...)...)
		m := filepath.Join(dir, "m.json")
		h, err := Generate(t.Context(), GenerateOptions{Workload: w.Workload, Data: DataFolder(w.Workload), Manifest: m})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		local := small(t, append(slices.Clone(set), "workflow.checkpoint=false")...)
		want, err := Generate(t.Context(), GenerateOptions{Workload: local.Workload, Data: filepath.Join(dir, "data"), Manifest: filepath.Join(dir, "local.json")})
		if err != nil || h.Root != want.Root {
			t.Errorf("%s: root %s, expected %s, %v", name, h.Root, want.Root, err)
		}
		r, err := Run(t.Context(), RunOptions{Workload: w, Data: DataFolder(w.Workload), Manifest: m, Out: filepath.Join(dir, "run"), Tool: tool})
		if err != nil || r.Transcript.Root != r.Transcript.Expected {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBucketChanges: whatever is changed in a bucket before, during or after a run is found, in every mode of verification.
func TestBucketChanges(t *testing.T) {
	endpoint := s3test.InMemory(t, "data")
	s3test.Environment(t, endpoint)
	w := small(t, inBucket("workflow.checkpoint=false")...)
	dir := t.TempDir()
	m := filepath.Join(dir, "m.json")
	if _, err := Generate(t.Context(), GenerateOptions{Workload: w.Workload, Data: DataFolder(w.Workload), Manifest: m}); err != nil {
		t.Fatal(err)
	}
	b, err := s3.Open(t.Context(), DataFolder(w.Workload), s3.Options{Endpoint: endpoint, AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var victim string
	if err := b.List(t.Context(), func(i store.Info) error { victim = cmp.Or(victim, i.Path); return nil }); err != nil {
		t.Fatal(err)
	}
	f, err := b.Open(victim)
	if err != nil {
		t.Fatal(err)
	}
	info, _ := f.Info()
	good := make([]byte, info.Size)
	if n, err := f.ReadAt(good, 0); int64(n) != info.Size {
		t.Fatal(err)
	}
	f.Close()
	put := func(data []byte) {
		o, err := b.Create(victim, int64(len(data)))
		if err != nil {
			t.Error(err)
			return
		}
		_, err = o.Write(data)
		if err := errors.Join(err, o.Commit()); err != nil {
			t.Error(err)
		}
	}
	bad := slices.Clone(good)
	bad[len(bad)/2] ^= 1
	tool, err := environment.Tool("test", "")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	run := func(verify, endpoint string) error {
		t.Setenv("AWS_ENDPOINT_URL", endpoint)
		n++
		o := small(t, inBucket("workflow.checkpoint=false", "benchpin.verify="+verify, "train.epochs=1")...)
		_, err := Run(t.Context(), RunOptions{Workload: o, Data: DataFolder(o.Workload), Manifest: m, Out: filepath.Join(dir, "run", string(rune('a'+n))), Tool: tool})
		return err
	}
	for _, verify := range []string{"before", "after", "inline"} {
		put(bad)
		var mismatch *manifest.MismatchError
		if err := run(verify, endpoint); !errors.As(err, &mismatch) && !errors.Is(err, ErrVerification) {
			t.Errorf("%s: a changed object: %v", verify, err)
		}
		put(good)
		// Replaced with other bytes of the same length while the run goes: by the time it is read, it is another object.
		var swapped atomic.Bool
		p := &s3test.Proxy{Fault: func(_ int64, _ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+victim) && (verify != "before" || swapped.Load()) {
				put(bad)
			}
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+victim) {
				swapped.Store(true)
			}
			return false
		}}
		if err := run(verify, p.Start(t, endpoint)); err == nil {
			t.Errorf("%s: an object that was replaced during the run went unnoticed", verify)
		}
		put(good)
		if err := run(verify, endpoint); err != nil {
			t.Errorf("%s: the data set as it was: %v", verify, err)
		}
	}
}

// TestBucketGenerationStops: an upload that fails for good ends generating at once, with the object's name; whoever calls again gets all of
// it, and the root that it should have.
func TestBucketGenerationStops(t *testing.T) {
	server := s3test.InMemory(t, "data")
	w := small(t, inBucket("workflow.checkpoint=false", "storage.storage_options.s3_max_attempts=2")...)
	_, local := gone(t, "workflow.checkpoint=false")
	for name, fault := range map[string]func(n int64, w http.ResponseWriter, r *http.Request) bool{
		"refused": func(n int64, w http.ResponseWriter, r *http.Request) bool {
			return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "_4_of_") && s3test.Refuse(w, http.StatusForbidden, "AccessDenied", "")
		},
		"busy for good": func(n int64, w http.ResponseWriter, r *http.Request) bool {
			return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "_4_of_") && s3test.SlowDown(w)
		},
		"short": func(n int64, _ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "_4_of_") {
				r.Body = io.NopCloser(io.LimitReader(r.Body, 100))
				r.ContentLength = 100
				r.Header.Set("Content-Length", "100")
			}
			return false
		},
		"flipped": func(n int64, _ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "_4_of_") {
				s3test.Flip(r, 200)
			}
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &s3test.Proxy{Fault: fault}
			m := filepath.Join(t.TempDir(), "m.json")
			o := GenerateOptions{Workload: w.Workload, Data: "s3://data/" + strings.ReplaceAll(name, " ", ""), Manifest: m, Workers: 2}
			s3test.Environment(t, p.Start(t, server))
			if _, err := Generate(t.Context(), o); err == nil || !strings.Contains(err.Error(), "_4_of_") {
				t.Fatalf("generating: %v", err)
			}
			if _, err := manifest.Open(m); err == nil {
				t.Error("there is a manifest")
			}
			// A process that was killed leaves parts of an upload.
			t.Setenv("AWS_ENDPOINT_URL", server)
			b, err := s3.Open(t.Context(), o.Data, s3.Options{Endpoint: server, AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey, PartSize: s3.MinPart})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			left, err := b.Create("train/left", 3*s3.MinPart)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := left.Write(make([]byte, 2*s3.MinPart)); err != nil {
				t.Fatal(err)
			}
			h, err := Generate(t.Context(), o)
			if n, aerr := b.Abandon(t.Context()); n != 0 || aerr != nil {
				t.Errorf("%d unfinished uploads are left, %v", n, aerr)
			}
			if err != nil || h.Root.String() != local.Record.Dataset.Root {
				t.Errorf("called again: root %s, %v; expected %s", h.Root, err, local.Record.Dataset.Root)
			}
		})
	}
}

// TestBucketLargeObjects: objects of several parts are written while they are made. One that cannot be completed, or of which a part arrives
// damaged every time, ends generating and is not there; by a server that sometimes fails all come out right, and are read back by parts.
func TestBucketLargeObjects(t *testing.T) {
	server := s3test.InMemory(t, "data")
	set := inBucket("workflow.checkpoint=false", "dataset.record_length_bytes=20000000", "dataset.num_files_train=2", "dataset.num_samples_per_file=1",
		"dataset.num_subfolders_train=0", "reader.batch_size=1", "train.epochs=1", "metric.au=0", "storage.storage_options.s3_max_attempts=4", "storage.storage_options.prefetch_workers=2")
	w := small(t, set...)
	m := filepath.Join(t.TempDir(), "m.json")
	o := GenerateOptions{Workload: w.Workload, Data: DataFolder(w.Workload), Manifest: m}
	for name, fault := range map[string]func(n int64, w http.ResponseWriter, r *http.Request) bool{
		"completing fails": func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			return s3test.Is(r, http.MethodPost, "uploadId") && s3test.Refuse(w, http.StatusInternalServerError, "InternalError", "")
		},
		"completing fails with status 200": func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			return s3test.Is(r, http.MethodPost, "uploadId") && s3test.Refuse(w, http.StatusOK, "InternalError", "We encountered an internal error.")
		},
		"a part is damaged": func(_ int64, _ http.ResponseWriter, r *http.Request) bool {
			if s3test.Is(r, http.MethodPut, "partNumber") && r.URL.Query().Get("partNumber") == "2" {
				s3test.Flip(r, 1000)
			}
			return false
		},
	} {
		p := &s3test.Proxy{Fault: fault}
		s3test.Environment(t, p.Start(t, server))
		if _, err := Generate(t.Context(), o); err == nil || !strings.Contains(err.Error(), "s3://data/sets/small/train/") {
			t.Errorf("%s: %v", name, err)
		}
		if there := objects(t, server); len(there) != 1 { // what says that generating began
			t.Errorf("%s: %q is there", name, there)
		}
	}
	p := &s3test.Proxy{Fault: func(n int64, w http.ResponseWriter, r *http.Request) bool {
		switch {
		case n%5 == 2:
			io.Copy(io.Discard, r.Body)
			return s3test.SlowDown(w)
		case n%7 == 3 && s3test.Is(r, http.MethodPut, "partNumber"):
			s3test.Flip(r, 1000)
		}
		return false
	}, Answer: func(n int64, r *http.Response) error {
		if n%4 == 1 && r.Request.Method == http.MethodGet {
			s3test.Cut(r, 3_000_000)
		}
		return nil
	}}
	s3test.Environment(t, p.Start(t, server))
	h, err := Generate(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	_, local := gone(t, append(set, "storage.storage_type=local_fs", "dataset.data_folder=data")...)
	if h.Root.String() != local.Record.Dataset.Root {
		t.Errorf("root %s, expected %s", h.Root, local.Record.Dataset.Root)
	}
	r, err := Run(t.Context(), RunOptions{Workload: w, Data: o.Data, Manifest: m, Out: filepath.Join(t.TempDir(), "run"), Tool: local.Record.Tool})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Environment.Buckets[0].Traffic; r.Transcript.Root != local.Record.Transcript.Root || got.Get < 6 || got.Refused+got.Retried == 0 {
		t.Errorf("transcript %s, expected %s; traffic %+v", r.Transcript.Root, local.Record.Transcript.Root, got)
	}
}

// TestBucketSurvives: a server that refuses every third request, resets every fourth connection and cuts answers short does no harm.
func TestBucketSurvives(t *testing.T) {
	server := s3test.InMemory(t, "data")
	p := &s3test.Proxy{
		Fault: func(n int64, w http.ResponseWriter, r *http.Request) bool {
			switch {
			case n%3 == 0:
				io.Copy(io.Discard, r.Body)
				return s3test.SlowDown(w)
			case n%4 == 0:
				return s3test.Reset()
			}
			return false
		},
		Answer: func(n int64, r *http.Response) error {
			if n%5 == 0 && r.Request.Method == http.MethodGet {
				s3test.Cut(r, 500)
			}
			return nil
		},
	}
	s3test.Environment(t, p.Start(t, server))
	_, out := gone(t, inBucket("storage.storage_options.s3_max_attempts=10", "train.epochs=1", "metric.au=0")...)
	_, local := gone(t, "train.epochs=1", "metric.au=0")
	if out.Record.Transcript.Root != local.Record.Transcript.Root {
		t.Error("another transcript")
	}
}

// TestBucketSettles: what was generated is given the time that the workload asks for before it is read, and an interruption ends that.
func TestBucketSettles(t *testing.T) {
	w := small(t, inBucket("storage.post_generation_settle_seconds=0.2")...)
	start := time.Now()
	if err := settle(t.Context(), w.Workload); err != nil || time.Since(start) < 200*time.Millisecond {
		t.Errorf("settled after %v, %v", time.Since(start), err)
	}
	s3test.Environment(t, s3test.InMemory(t, "data"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := Notify{Stage: func(text string, _ ...any) {
		if strings.HasPrefix(text, "pinned") {
			cancel()
		}
	}}
	long := small(t, inBucket("storage.post_generation_settle_seconds=3600")...)
	if _, err := Pipeline(ctx, Options{Workload: long, Dir: t.TempDir(), Tool: testTool(t), Notify: told}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestBucketPlaces: what does not fit together is refused before anything is asked or written.
func TestBucketPlaces(t *testing.T) {
	s3test.Environment(t, "http://127.0.0.1:1")
	for name, c := range map[string]struct {
		set  []string
		data string
		want string
	}{
		"a folder for s3":       {inBucket(), "folder", "storage.storage_type"},
		"no bucket":             {inBucket("storage.storage_root=./"), "", "storage.storage_root names the bucket"},
		"two buckets":           {inBucket("dataset.data_folder=s3://other/x"), "", "storage.storage_root"},
		"another scheme":        {inBucket("storage.storage_options.uri_scheme=gs"), "", "gateways"},
		"direct reads":          {[]string{"reader.odirect=true"}, "s3://data/x", "reader.odirect"},
		"direct file system":    {[]string{"storage.storage_type=direct_fs"}, "s3://data/x", "direct_fs"},
		"AIStore":               {[]string{"storage.storage_type=aistore"}, "", "storage.storage_type"},
		"direct reads, planned": {inBucket("reader.odirect=true"), "s3://data/x", "reader.odirect"},
	} {
		w := small(t, c.set...)
		data := c.data
		if data == "" {
			data = DataFolder(w.Workload)
		}
		_, err := Generate(t.Context(), GenerateOptions{Workload: w.Workload, Data: data, Manifest: filepath.Join(t.TempDir(), "m.json")})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A server that refuses says nothing of what stands there.
	refusing := &s3test.Proxy{Fault: func(_ int64, w http.ResponseWriter, _ *http.Request) bool {
		return s3test.Refuse(w, http.StatusForbidden, "SignatureDoesNotMatch", "")
	}}
	s3test.Environment(t, refusing.Start(t, "http://127.0.0.1:1"))
	_, err := Pipeline(t.Context(), Options{Workload: small(t, inBucket()...), Dir: t.TempDir(), Tool: testTool(t)})
	if err == nil || errors.Is(err, checkpoint.ErrForeign) || !strings.Contains(err.Error(), "AWS_SECRET_ACCESS_KEY") {
		t.Errorf("refused: %v", err)
	}
	for folder, want := range map[string]string{"sets/small": "s3://data/sets/small", "./sets/": "s3://data/sets", "/sets": "s3://data/sets", "s3://data/x": "s3://data/x", "./": "s3://data"} {
		w := small(t, inBucket("dataset.data_folder="+folder)...)
		if got := DataFolder(w.Workload); got != want {
			t.Errorf("%s is %s, expected %s", folder, got, want)
		}
	}
}

// TestBucketOptions: the workload's section says how a bucket is reached, the environment what it leaves open; for a replay it is the other
// way round.
func TestBucketOptions(t *testing.T) {
	s3test.Environment(t, "http://environment")
	t.Setenv("AWS_REGION", "eu-west-1")
	w := small(t, inBucket("storage.storage_options.endpoint_url=http://workload", "storage.storage_options.access_key_id=somebody",
		"storage.storage_options.secret_access_key=swordfish", "storage.storage_options.s3_force_path_style='true'")...)
	o := bucketOptions(w.Workload, false)
	if o.Endpoint != "http://workload" || o.Region != "eu-west-1" || o.AccessKey != "somebody" || o.SecretKey != "swordfish" || o.PathStyle == nil || !*o.PathStyle || o.Attempts != 5 {
		t.Errorf("%+v", o)
	}
	// What the plan counts as memory of a bucket is what its store takes.
	b, err := s3.Open(t.Context(), "s3://data", s3.Options{Endpoint: "http://x"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if d := b.Options(); bench.ObjectPart != s3.AheadPart || bench.ObjectUpload != d.PartSize || bench.ObjectUploading != d.Parts+1 {
		t.Errorf("%+v", d)
	}
	ahead := small(t, inBucket("storage.storage_options.prefetch_workers=4")...)
	if o := bucketOptions(ahead.Workload, false); o.Ahead != 4 || o.AheadParts != 8 {
		t.Errorf("%+v", o)
	}
	big := func(set ...string) int64 {
		p, err := Plan(t.Context(), small(t, append(set, "dataset.record_length_bytes=100000000", "workflow.checkpoint=false")...).Workload, "")
		if err != nil {
			t.Fatal(err)
		}
		return int64(p.MemoryBytes)
	}
	if one, more := big(inBucket()...), big(inBucket("storage.storage_options.prefetch_workers=4")...); more-one != 2*8*s3.AheadPart {
		t.Errorf("%d bytes of memory, and %d with 8 parts ahead for 2 readers", one, more)
	}
	again, err := workload.ParseCanonical(w.Canonical)
	if err != nil {
		t.Fatal(err)
	}
	if o = bucketOptions(again, true); o.Endpoint != "http://environment" || o.AccessKey != "" || o.SecretKey != "" {
		t.Errorf("for a replay: %+v", o)
	}
	if o = bucketOptions(small(t).Workload, false); o.Endpoint != "http://environment" || o.PathStyle != nil {
		t.Errorf("of a workload with a folder: %+v", o)
	}
	if strings.Contains(string(w.Canonical), "swordfish") {
		t.Error("the secret is in the canonical form")
	}
}
