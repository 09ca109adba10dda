package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/bench/loader"
	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/cluster/clustertest"
	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
	"pgregory.net/rapid"
)

// The accelerators of a plan are dealt out so that each process has its share, ranks follow the processes, and none is left out.
func TestPart(t *testing.T) {
	for _, c := range []struct {
		accelerators, each, processes int
		counts                        []int // nil: impossible
	}{
		{1, 0, 1, []int{1}},
		{8, 0, 4, []int{2, 2, 2, 2}},
		{5, 0, 3, []int{2, 2, 1}},
		{7, 0, 4, []int{2, 2, 2, 1}},
		{3, 0, 4, nil},
		{8, 2, 4, []int{2, 2, 2, 2}},
		{7, 2, 4, []int{2, 2, 2, 1}},
		{8, 2, 3, nil},
		{8, 2, 5, nil},
		{4, 4, 1, []int{4}},
		{4, 9, 1, []int{4}},
		{4, 2, 1, []int{4}}, // whoever replays it may have one
	} {
		w := testWorkload(func(w *workload.Workload) {
			w.Benchpin.Accelerators, w.Benchpin.AcceleratorsPerProcess = c.accelerators, c.each
		})
		p, err := NewPlan(w, equalFiles(16, 1000))
		if err != nil {
			t.Fatal(err)
		}
		next := 0
		for process := range c.processes {
			first, count, err := p.Part(process, c.processes)
			if c.counts == nil {
				if !errors.Is(err, ErrImpossible) {
					t.Errorf("%+v: process %d has %d from %d on: %v", c, process, count, first, err)
				}
				continue
			}
			if err != nil || first != next || count != c.counts[process] {
				t.Errorf("%+v: process %d has %d from %d on, expected %d from %d on: %v", c, process, count, first, c.counts[process], next, err)
			}
			next += count
		}
		if c.counts != nil && next != c.accelerators {
			t.Errorf("%+v: %d of %d accelerators dealt out", c, next, c.accelerators)
		}
	}
}

// onProcesses carries a plan out on so many processes. options gives those of one process.
func onProcesses(ctx context.Context, n, perNode int, options func(process int) Options) (all []*Result, err error) {
	all = make([]*Result, n)
	err = clustertest.New(n, perNode).Run(ctx, func(ctx context.Context, w *cluster.World) (err error) {
		o := options(w.Rank())
		o.World = w
		all[w.Rank()], err = Run(ctx, o)
		return err
	})
	return all, err
}

// left is what a run left.
type left struct {
	*Result
	steps, eval []stats.Step
	devices     []stats.Device
}

// inProcesses runs a workload with evaluation and checkpoints in virtual time on so many processes of a store that takes latency for each
// file.
func inProcesses(t *testing.T, w *workload.Workload, processes, perNode int, change func(process int, o *Options)) left {
	t.Helper()
	var l left
	bubble(t, func(t *testing.T) {
		data := newSim(t, w.Dataset.NumFilesTrain, w.Dataset.NumSamplesPerFile, 30*ms, 0, 0)
		ds := withEval{data, newSim(t, w.Dataset.NumFilesEval, w.Dataset.NumSamplesPerFile, 30*ms, 0, 0)}
		p, err := NewPlan(w, ds)
		if err != nil {
			t.Fatal(err)
		}
		steps, eval := &memFile{}, &memFile{}
		all, err := onProcesses(t.Context(), processes, perNode, func(process int) Options {
			o := Options{Plan: p, Dataset: ds, Data: data, Steps: &memFile{}, EvalSteps: &memFile{}, AllSteps: steps, AllEvalSteps: eval,
				Checkpoints: &slowCheckpoints{commit: 20 * ms}, DeviceBytes: func() (int64, error) { return 7, nil },
				Evict: func(context.Context) error { return nil }}
			if processes == 1 {
				o.Steps, o.EvalSteps = steps, eval
			}
			if change != nil {
				change(process, &o)
			}
			return o
		})
		if err != nil {
			t.Fatal(err)
		}
		l.Result = all[0]
		for process, res := range all {
			if !res.Complete || res.Finished.Before(res.Started) {
				t.Errorf("process %d: not complete: %+v", process, res)
			}
		}
		read := func(m *memFile) (rows []stats.Step) {
			r, err := stats.Open(m, int64(len(m.b)))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if err := r.Each(func(s *stats.Step) error { rows = append(rows, *s); return nil }); err != nil {
				t.Fatal(err)
			}
			if m == steps {
				l.devices = r.Devices()
			}
			return rows
		}
		if l.steps = read(steps); p.eval != nil {
			l.eval = read(eval)
		}
	})
	return l
}

// TestProcessesAsOne: however accelerators are dealt out to processes, the run is the one that a single process carries out: transcript,
// rows of step times in the same order, checkpoints and figures.
func TestProcessesAsOne(t *testing.T) {
	for _, each := range []int{1, 2, 5} {
		for _, processes := range []int{2, 3, 4} {
			t.Run(fmt.Sprintf("%d processes x %d", processes, each), func(t *testing.T) {
				w := testWorkload(func(w *workload.Workload) {
					w.Benchpin.Accelerators, w.Benchpin.AcceleratorsPerProcess = each*processes, each
					w.Workflow.Evaluation, w.Workflow.Checkpoint, w.Dataset.NumFilesEval, w.Reader.BatchSizeEval = true, true, 41, 1
					w.Dataset.NumFilesTrain, w.Dataset.NumSamplesPerFile, w.Reader.BatchSize, w.Train.Epochs = 53, 3, 2, 3
					w.Reader.FileShuffle, w.Reader.SampleShuffle = "seed", "seed"
					w.Train.ComputationTime = workload.Time{Type: workload.TimeUniform, Min: 0.02, Max: 0.1}
					w.Evaluation.EvalTime, w.Evaluation.EvalAfterEpoch, w.Evaluation.EpochsBetweenEvals = constant(50*ms), 1, 2
					w.Checkpoint.StepsBetweenCheckpoints = 3
				})
				found := inProcesses(t, w, processes, 0, nil)
				w.Benchpin.AcceleratorsPerProcess = 0
				one := inProcesses(t, w, 1, 0, nil)
				if !reflect.DeepEqual(found.Transcript, one.Transcript) {
					t.Errorf("transcript:\n%+v\nof one process:\n%+v", found.Transcript, one.Transcript)
				}
				// In virtual time nothing but the order of things takes time: all times are the same too.
				if !slices.Equal(found.steps, one.steps) || !slices.Equal(found.eval, one.eval) {
					t.Errorf("%d and %d rows, of one process %d and %d, and they are not the same", len(found.steps), len(found.eval), len(one.steps), len(one.eval))
				}
				if !reflect.DeepEqual(found.Checkpoints, one.Checkpoints) {
					t.Errorf("checkpoints:\n%+v\nof one process:\n%+v", found.Checkpoints, one.Checkpoints)
				}
				for i := range found.devices {
					if d := found.devices[i]; d.Bytes == nil || *d.Bytes != 0 {
						t.Errorf("epoch %d: counted %+v: expected 0 bytes, the sum of all processes", d.Epoch, d)
					}
				}
				if !reflect.DeepEqual(found.Metrics, one.Metrics) {
					t.Errorf("figures differ from those of one process")
				}
			})
		}
	}
}

// TestProcessesOfAnyConfiguration: the same for whatever loader, container, order and verification, with bytes hashed in the run or not.
func TestProcessesOfAnyConfiguration(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom(format.Names()).Draw(rt, "container")
		w := drawWorkload(rt, name)
		f, bad := container(w)
		if bad != nil {
			rt.Fatal(bad)
		}
		if rapid.Bool().Draw(rt, "inline") {
			w.Benchpin.Verify = workload.VerifyInline
		}
		varied := rapid.Bool().Draw(rt, "varied sizes") && name != "parquet" && name != "synthetic"
		data := pin(newShelf(t, f, w.Dataset.NumFilesTrain+1, w.Dataset.NumFilesEval+1, w.Dataset.NumSamplesPerFile, varied), f)
		p, err := NewPlan(w, data)
		if err != nil {
			rt.Skip(err)
		}
		processes := rapid.IntRange(1, min(4, p.Accelerators)).Draw(rt, "processes")
		options := func(int) Options {
			return Options{Plan: p, Dataset: data, Data: data, Confirm: data, Steps: &memFile{}, EvalSteps: &memFile{}, AllSteps: &memFile{}, AllEvalSteps: &memFile{},
				DeviceBytes: func() (int64, error) { return 0, nil }, Evict: func(context.Context) error { return nil }}
		}
		one, err := Run(rt.Context(), options(0))
		if err != nil {
			rt.Fatal(err)
		}
		all, err := onProcesses(rt.Context(), processes, 0, options)
		if err != nil || !all[0].Complete {
			rt.Fatal(err)
		}
		found := all[0]
		if !reflect.DeepEqual(found.Transcript, one.Transcript) {
			rt.Fatalf("%d processes: transcript %+v, of one %+v", processes, found.Transcript, one.Transcript)
		}
		if found.IdentityRechecked != one.IdentityRechecked {
			rt.Errorf("%d identities compared, of one process %d", found.IdentityRechecked, one.IdentityRechecked)
		}
		if !reflect.DeepEqual(readsOf(found), readsOf(one)) {
			rt.Error("digests of what was read differ from those of one process")
		}
		if (found.Inline == nil) != (one.Inline == nil) {
			rt.Fatalf("hashed %+v, of one process %+v", found.Inline, one.Inline)
		}
		if a, b := found.Inline, one.Inline; a != nil {
			if a.Files != b.Files || a.FileBytes != b.FileBytes || a.Samples != b.Samples || a.Bytes != b.Bytes || a.Reads != b.Reads ||
				(a.Confirmed == nil) != (b.Confirmed == nil) || a.Confirmed != nil && a.Confirmed.Samples != b.Confirmed.Samples {
				rt.Errorf("hashed %+v, of one process %+v", *a, *b)
			}
			if a.Hashers != processes*b.Hashers {
				rt.Errorf("%d hashers in %d processes, of one %d", a.Hashers, processes, b.Hashers)
			}
		}
	})
}

func readsOf(r *Result) []byte {
	var b bytes.Buffer
	if r.Reads != nil {
		r.Reads.WriteTo(&b)
	}
	return b.Bytes()
}

// TestProcessesWriteAndReadCheckpoints: a run of checkpoints alone comes to the same on several processes, and each host drops them once.
func TestProcessesWriteAndReadCheckpoints(t *testing.T) {
	for _, verify := range []string{workload.VerifyBefore, workload.VerifyAfter, workload.VerifyNone} {
		w := checkpointWorkload(func(w *workload.Workload) { w.Benchpin.Verify, w.Benchpin.Accelerators = verify, 5 })
		var results [2]*Result
		for i, processes := range []int{1, 3} {
			bubble(t, func(t *testing.T) {
				s := newMemoryStore()
				s.commit, s.open = 700*ms, 300*ms
				p, err := NewPlan(w, nil)
				if err != nil {
					t.Fatal(err)
				}
				all, err := onProcesses(t.Context(), processes, 2, func(int) Options {
					device := int64(1000)
					return Options{Plan: p, Checkpoints: s, CheckpointsDurable: true, Saved: s,
						DeviceBytes: func() (int64, error) { device += 77; return device, nil }}
				})
				if err != nil {
					t.Fatal(err)
				}
				results[i] = all[0]
				for name, n := range s.evicted {
					if want := (processes + 1) / 2; n != want {
						t.Errorf("%s was dropped %d times, expected once on each of %d hosts", name, n, want)
					}
				}
			})
		}
		one, three := results[0], results[1]
		for i := range three.Checkpoints.Loads {
			if l := &three.Checkpoints.Loads[i]; l.DeviceBytes == nil || *l.DeviceBytes != 3*77 {
				t.Errorf("%s: bytes from devices: %v, expected 3 x 77", l.Name, l.DeviceBytes)
			} else {
				*l.DeviceBytes = 77
			}
		}
		// Both hosts drop from one cache here, each while the other does.
		if e := three.Checkpoints.Eviction; e == nil || e.ResidentBefore == nil || *e.ResidentBefore > e.Bytes {
			t.Errorf("dropped: %+v", e)
		} else {
			e.ResidentBefore = one.Checkpoints.Eviction.ResidentBefore
		}
		if !reflect.DeepEqual(three.Checkpoints, one.Checkpoints) {
			a, _ := json.Marshal(three.Checkpoints)
			b, _ := json.Marshal(one.Checkpoints)
			t.Errorf("verify %s:\n%s\nof one process:\n%s", verify, a, b)
		}
		if !three.Complete || !reflect.DeepEqual(three.Transcript, one.Transcript) {
			t.Errorf("verify %s: %+v", verify, three)
		}
	}
}

// failing is a run of 3 processes x 2 accelerators that somebody ends.
func failing(t *testing.T, change func(process int, o *Options), run func(ctx context.Context, options func(process int) Options) ([]*Result, error)) ([]*Result, error) {
	t.Helper()
	w := testWorkload(func(w *workload.Workload) {
		w.Benchpin.Accelerators, w.Dataset.NumFilesTrain, w.Train.Epochs = 6, 60, 2
		w.Train.ComputationTime = constant(100 * ms)
	})
	data := newSim(t, 60, 1, 10*ms, 0, 0)
	p, err := NewPlan(w, data)
	if err != nil {
		t.Fatal(err)
	}
	return run(t.Context(), func(process int) Options {
		o := Options{Plan: p, Dataset: data, Data: data, Steps: &memFile{}, AllSteps: &memFile{}, DeviceBytes: func() (int64, error) { return 0, nil }}
		if change != nil {
			change(process, &o)
		}
		return o
	})
}

// burning opens so many files and then no more.
type burning struct {
	loader.Opener
	after  int64
	opened atomic.Int64
}

func (b *burning) Open(name string) (store.File, error) {
	if b.opened.Add(1) > b.after {
		return nil, errors.New("the disk is on fire")
	}
	return b.Opener.Open(name)
}

// TestFailureEndsAllProcesses: a fault in one process ends all of them at once with its reason, and process 0 keeps what it has.
func TestFailureEndsAllProcesses(t *testing.T) {
	for failed := range 3 {
		bubble(t, func(t *testing.T) {
			start := time.Now()
			results, err := failing(t, func(process int, o *Options) {
				if process == failed {
					o.Data = &burning{Opener: o.Data, after: 15}
				}
			}, func(ctx context.Context, options func(process int) Options) ([]*Result, error) {
				return onProcesses(ctx, 3, 0, options)
			})
			contains(t, err, "the disk is on fire")
			if took := time.Since(start); took > 3*time.Second {
				t.Errorf("all ended after %v", took)
			}
			for process, res := range results {
				if res == nil || res.Complete || !strings.Contains(res.Reason, "the disk is on fire") {
					t.Errorf("process %d: %+v", process, res)
				}
				if process == 0 && failed != 0 && !strings.Contains(res.Reason, fmt.Sprintf("process %d", failed)) {
					t.Errorf("the reason does not name process %d: %s", failed, res.Reason)
				}
			}
			if m := results[0].Metrics; len(m.Epochs) != 1 || m.Epochs[0].Steps < 3 {
				t.Errorf("process 0 kept %+v", m.Epochs)
			}
		})
	}
}

// TestKilledProcessEndsAll: a process that is lost without a word ends the others.
func TestKilledProcessEndsAll(t *testing.T) {
	for killed := range 3 {
		for _, after := range []time.Duration{0, 1, 350 * ms, 999 * ms, 1500 * ms} {
			bubble(t, func(t *testing.T) {
				net := clustertest.New(3, 1)
				var mu sync.Mutex
				ended := map[int]error{}
				results, _ := failing(t, nil, func(ctx context.Context, options func(process int) Options) ([]*Result, error) {
					all := make([]*Result, 3)
					return all, net.Run(ctx, func(ctx context.Context, w *cluster.World) error {
						if w.Rank() == killed {
							time.AfterFunc(after, func() { net.Kill(killed) })
						}
						o := options(w.Rank())
						o.World = w
						res, err := Run(ctx, o)
						mu.Lock()
						defer mu.Unlock()
						all[w.Rank()], ended[w.Rank()] = res, err
						return err
					})
				})
				for process, err := range ended {
					if err == nil {
						t.Errorf("process %d went on without process %d, killed after %v: %+v", process, killed, after, results[process])
					} else if process != killed && !strings.Contains(err.Error(), "killed") {
						t.Errorf("process %d ended with: %v", process, err)
					}
				}
			})
		}
	}
}

// TestProcessesCountHostsOnce: what the kernel counts for a process is summed, and what it counts for a host is taken once from each.
func TestProcessesCountHostsOnce(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) {
		w.Benchpin.Accelerators, w.Dataset.NumFilesTrain, w.Train.Epochs = 4, 16, 2
		w.Benchpin.ColdCache = workload.ColdEpoch
	})
	l := inProcesses(t, w, 4, 2, func(process int, o *Options) {
		device := int64(0)
		o.DeviceBytes = func() (int64, error) { device += 1000; return device, nil }
		if process%2 == 0 {
			o.Storage = &countedStorage{name: fmt.Sprint("/data", process)}
		}
	})
	if len(l.devices) != 2 {
		t.Fatalf("counters of %d epochs", len(l.devices))
	}
	for i, d := range l.devices {
		if d.Bytes == nil || *d.Bytes != 4*1000 {
			t.Errorf("epoch %d: %v from devices, expected 4 x 1000", d.Epoch, d.Bytes)
		}
		s := d.Storage
		if s == nil || len(s.FileSystems) != 2 {
			t.Fatalf("epoch %d: %+v", d.Epoch, s)
		}
		var asked float64
		for k, f := range s.FileSystems {
			if f.Host != fmt.Sprint("node", k) || f.MountPoint != fmt.Sprint("/data", 2*k) || *f.Disk.Value != 10 {
				t.Errorf("epoch %d: %+v", d.Epoch, f)
			}
			asked += *f.Asked.Value
		}
		if want := *l.Metrics.Epochs[i].BytesAsked.Value; asked != want {
			t.Errorf("epoch %d: hosts asked for %v bytes, the epoch for %v", d.Epoch, asked, want)
		}
		if *s.Memory.Value != asked-4000 {
			t.Errorf("epoch %d: %v from memory, of %v", d.Epoch, *s.Memory.Value, asked)
		}
		if s.Dropped == nil || *s.Dropped.Cached.Value != 2*5 {
			t.Errorf("epoch %d: dropped %+v, expected 5 on each of 2 hosts", d.Epoch, s.Dropped)
		}
	}
}

// countedStorage is one file system whose disk delivers 10 bytes from look to look of an epoch.
type countedStorage struct {
	name  string
	looks int64
}

func (c *countedStorage) Look(context.Context) (StorageLook, error) {
	c.looks++
	return StorageLook{Files: 16, LookedAt: 16, FileSystems: []FileSystemLook{{Device: 0, MountPoint: c.name, Type: "ext4", Disks: []string{"sda"},
		Disk: Count{Bytes: 10 * c.looks}, Network: Count{Absent: "no network"}, Cached: Count{Bytes: 5}, Counted: true}}}, nil
}

// TestProcessesThatReadOtherBytes: two processes that find different bytes in one sample have no result.
func TestProcessesThatReadOtherBytes(t *testing.T) {
	f, err := format.ByName("hdf5")
	if err != nil {
		t.Fatal(err)
	}
	w := testWorkload(func(w *workload.Workload) {
		w.Dataset.Format, w.Dataset.NumFilesTrain, w.Dataset.NumSamplesPerFile, w.Train.Epochs = "hdf5", 6, 2, 3
		w.Benchpin.Accelerators, w.Benchpin.Verify, w.Reader.FileShuffle = 3, workload.VerifyInline, "seed"
	})
	data := pin(newShelf(t, f, 6, 0, 2, false), f)
	other := data.again()
	other.bytes = maps.Clone(data.bytes)
	for path, b := range other.bytes {
		b = slices.Clone(b)
		for i := len(b) / 2; i < len(b); i++ {
			b[i] ^= 1
		}
		other.bytes[path] = b
	}
	p, err := NewPlan(w, data)
	if err != nil {
		t.Fatal(err)
	}
	_, err = onProcesses(t.Context(), 3, 0, func(process int) Options {
		o := Options{Plan: p, Dataset: data, Data: data, Confirm: data, Steps: &memFile{}, AllSteps: &memFile{},
			DeviceBytes: func() (int64, error) { return 0, nil }}
		if process == 1 {
			o.Data = other
		}
		return o
	})
	if !errors.Is(err, ErrRead) {
		t.Errorf("found %v", err)
	}
	contains(t, err, "two processes", "sample")
}
