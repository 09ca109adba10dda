package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// sim is a store of equal npy files, and the data set of it, that exist only in this test. Opening takes latency; reading
// takes the file's bytes over rate, on one of the store's servers: with one server the rate is shared by all who read.
type sim struct {
	files   int
	content []byte
	sample  int64
	latency time.Duration
	rate    float64 // bytes/s of a server; 0 = infinite
	servers chan struct{}
	stall   map[int]time.Duration // more latency for single files
	fail    map[int]error
	info    func(i int) store.Info
	opened  atomic.Int64
}

// newSim makes n files of samples samples of 10,000 bytes each. servers = 0 gives every reader one of its own.
func newSim(t testing.TB, n, samples int, latency time.Duration, rate float64, servers int) *sim {
	t.Helper()
	u8, err := format.ParseDType("uint8")
	if err != nil {
		t.Fatal(err)
	}
	npy, err := format.ByName("npy")
	if err != nil {
		t.Fatal(err)
	}
	l := format.Layout{Dims: []int{100, 100}, Samples: samples, DType: u8}
	var b bytes.Buffer
	if err := npy.Write(&b, l, zeros{}, make([]byte, 1<<16)); err != nil {
		t.Fatal(err)
	}
	s := &sim{files: n, content: b.Bytes(), sample: l.SampleBytes(), latency: latency, rate: rate}
	if servers > 0 {
		s.servers = make(chan struct{}, servers)
	}
	return s
}

type zeros struct{}

func (zeros) Fill(dst []byte, _ int64) { clear(dst) }

func (s *sim) Files() int            { return s.files }
func (s *sim) Path(i int) string     { return fmt.Sprintf("train/img_%d.npy", i) }
func (s *sim) Size(int) int64        { return int64(len(s.content)) }
func (s *sim) SampleBytes(int) int64 { return s.sample }

func (s *sim) Open(name string) (store.File, error) {
	var i int
	if _, err := fmt.Sscanf(name, "train/img_%d.npy", &i); err != nil {
		return nil, err
	}
	if err := s.fail[i]; err != nil {
		return nil, err
	}
	s.opened.Add(1)
	nap(s.latency + s.stall[i])
	return &simFile{s, i}, nil
}

func nap(d time.Duration) {
	if d > 0 {
		time.Sleep(d)
	}
}

type simFile struct {
	s *sim
	i int
}

func (f *simFile) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, f.s.content[off:])
	if f.s.rate > 0 {
		if f.s.servers != nil {
			f.s.servers <- struct{}{}
		}
		nap(time.Duration(math.Round(float64(n) / f.s.rate * 1e9)))
		if f.s.servers != nil {
			<-f.s.servers
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *simFile) Info() (store.Info, error) {
	if f.s.info != nil {
		return f.s.info(f.i), nil
	}
	return store.Info{Path: f.s.Path(f.i), Size: f.s.Size(f.i)}, nil
}

func (f *simFile) Close() error { return nil }

// slowCheckpoints takes files in and needs some time to commit each.
type slowCheckpoints struct {
	commit time.Duration
	mu     sync.Mutex
	names  []string
}

func (c *slowCheckpoints) Create(name string, size int64) (store.Writer, error) {
	return &slowWriter{c: c, name: name}, nil
}

type slowWriter struct {
	c    *slowCheckpoints
	name string
}

func (w *slowWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w *slowWriter) Abort() error                { return nil }
func (w *slowWriter) Commit() error {
	nap(w.c.commit)
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	w.c.names = append(w.c.names, w.name)
	return nil
}

// memFile is a StepsFile in memory.
type memFile struct {
	mu sync.Mutex
	b  []byte
}

func (m *memFile) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.b = append(m.b, p...)
	return len(p), nil
}

func (m *memFile) ReadAt(p []byte, off int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.NewReader(m.b).ReadAt(p, off)
}

// testWorkload is a small workload with DLIO's defaults where they matter.
func testWorkload(change func(w *workload.Workload)) *workload.Workload {
	w := &workload.Workload{Framework: "pytorch"}
	w.Model.Name, w.Model.ModelSizeBytes, w.Model.NumLayers = "test", 10240, -1
	w.Model.Parallelism = workload.Parallelism{Tensor: 1, Pipeline: 1, Data: -1}
	w.Workflow.Train = true
	w.Dataset.NumFilesTrain, w.Dataset.NumSamplesPerFile, w.Dataset.Format = 16, 1, "npy"
	w.Dataset.Compression = "none"
	w.Dataset.RecordLengthBytes = 10000
	w.Reader.DataLoader, w.Reader.BatchSize, w.Reader.ReadThreads, w.Reader.PrefetchSize = "pytorch", 1, 1, 2
	w.Reader.FileShuffle, w.Reader.SampleShuffle, w.Reader.ReadType = "off", "off", "on_demand"
	w.Train.Epochs, w.Train.TotalTrainingSteps, w.Train.Seed, w.Train.SeedChangeEpoch = 1, -1, 123, true
	w.Train.ComputationTime = workload.Time{Type: workload.TimeConstant}
	w.Metric.AU = 0.9
	w.Checkpoint.CheckpointAfterEpoch, w.Checkpoint.EpochsBetweenCheckpoints, w.Checkpoint.StepsBetweenCheckpoints = 1, 1, -1
	w.Checkpoint.Mode = "default"
	w.Output.Metric.ExcludeStartSteps = 1
	w.Storage.StorageType = "local_fs"
	w.Benchpin.Accelerators, w.Benchpin.ColdCache, w.Benchpin.Order = 1, workload.ColdNone, workload.OrderNumpy
	if change != nil {
		change(w)
	}
	return w
}

func constant(d time.Duration) workload.Time {
	return workload.Time{Type: workload.TimeConstant, Center: d.Seconds()}
}

// simulate plans and runs in a bubble of virtual time, and hands the result to check inside it.
func simulate(t *testing.T, w *workload.Workload, s func(t *testing.T) *sim, change func(*Options),
	check func(t *testing.T, p *Plan, res *Result, err error)) {
	t.Helper()
	synctestRun(t, w, s, func(ctx context.Context, t *testing.T, o Options) {
		if change != nil {
			change(&o)
		}
		res, err := Run(ctx, o)
		check(t, o.Plan, res, err)
	})
}

// synctestRun plans in a bubble of virtual time and leaves running to run.
func synctestRun(t *testing.T, w *workload.Workload, s func(t *testing.T) *sim, run func(ctx context.Context, t *testing.T, o Options)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		data := s(t)
		p, err := NewPlan(w, data)
		if err != nil {
			t.Fatal(err)
		}
		run(t.Context(), t, Options{Plan: p, Dataset: data, Data: data, Steps: &memFile{},
			Evict:       func(context.Context) error { return nil },
			DeviceBytes: func() (int64, error) { return 0, nil }})
	})
}

// bubble is synctest.Test. The parquet library keeps compressors with channels in pools of the process, and a channel of a bubble
// must not be used outside of it: two collections empty every pool.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	defer func() { runtime.GC(); runtime.GC() }()
	synctest.Test(t, f)
}

// figure returns the value of a figure, which must be there.
func figure(t *testing.T, name string, f record.Figure) float64 {
	t.Helper()
	if f.Value == nil {
		t.Fatalf("%s is absent: %s", name, f.Absent)
	}
	return *f.Value
}

func near(t *testing.T, name string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
		t.Errorf("%s: found %.12g, the closed form gives %.12g", name, got, want)
	}
}

func contains(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("expected an error with %q, found none", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("expected %q in the error, found: %v", p, err)
		}
	}
}
