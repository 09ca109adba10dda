package bench

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/bench/sampler"
	"github.com/benchpin/benchpin/pkg/workload"
)

// planFiles is a data set of given file sizes.
type planFiles []int64

func (f planFiles) Files() int              { return len(f) }
func (f planFiles) Path(i int) string       { return fmt.Sprintf("train/%d", i) }
func (f planFiles) Size(i int) int64        { return f[i] }
func (f planFiles) SampleBytes(i int) int64 { return f[i] }

func equalFiles(n int, size int64) planFiles {
	f := make(planFiles, n)
	for i := range f {
		f[i] = size
	}
	return f
}

// TestPlanUnet3D: the numbers of DLIO's unet3d on two accelerators, by hand.
func TestPlanUnet3D(t *testing.T) {
	const size = 12107*12107 + 498
	w := testWorkload(func(w *workload.Workload) {
		w.Dataset.Format, w.Dataset.NumFilesTrain, w.Reader.BatchSize = "npz", 28, 7
		w.Reader.ReadThreads, w.Train.Epochs, w.Train.ComputationTime = 4, 5, constant(323*time.Millisecond)
		w.Reader.FileShuffle, w.Reader.SampleShuffle, w.Benchpin.Accelerators = "seed", "seed", 2
		w.Workflow.Checkpoint, w.Checkpoint.CheckpointAfterEpoch, w.Checkpoint.EpochsBetweenCheckpoints = true, 5, 2
	})
	p, err := NewPlan(w, equalFiles(28, size))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"steps", int64(p.StepsPerEpoch), 2}, {"samples", int64(p.Samples), 28}, {"samples an epoch", int64(p.SamplesPerEpoch), 28},
		{"dropped", int64(p.SamplesDropped), 0}, {"bytes an epoch", int64(p.BytesPerEpoch), 28 * size},
		{"bytes", int64(p.BytesTotal), 5 * 28 * size}, {"checkpoints", int64(p.Checkpoints), 1},
		{"checkpoint bytes", int64(p.CheckpointBytes), 10240}, {"prefetch factor", int64(p.PrefetchFactor), 1},
		{"reads", int64(p.Reads), 8}, {"buffer", int64(p.BufferBytes), 256 << 10},
	} {
		if c.got != c.want {
			t.Errorf("%s: found %d, expected %d", c.name, c.got, c.want)
		}
	}
	// AU 90 %: a step of 14 files may take 0.323/0.9 s.
	near(t, "files/s", *p.RequiredFilesPerSecond, 14/(0.323/0.9))
	near(t, "bytes/s", *p.RequiredBytesPerSecond, 14*size/(0.323/0.9))
	near(t, "seconds a sample", p.SampleSeconds, 4*(0.323/0.9)/7)
	near(t, "seconds", p.ExpectedSeconds, 10*0.323+10240/(14*size/(0.323/0.9)))
	if b := int64(p.MemoryBytes); b < 8*256<<10 || b > 16<<20 {
		t.Errorf("memory: found %d bytes, expected 8 buffers of 256 KiB, 4 MiB for a checkpoint at most, and little more", b)
	}
}

// TestPlanBytesAreThoseOfTheSampler: bytes of all epochs against the sum over every sample that the order names.
func TestPlanBytesAreThoseOfTheSampler(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := testWorkload(nil)
		w.Dataset.NumFilesTrain = rapid.IntRange(1, 40).Draw(t, "files")
		w.Dataset.NumSamplesPerFile = rapid.IntRange(1, 7).Draw(t, "samples per file")
		w.Reader.BatchSize = rapid.IntRange(1, 5).Draw(t, "batch")
		w.Benchpin.Accelerators = rapid.IntRange(1, 5).Draw(t, "accelerators")
		w.Train.Epochs = rapid.IntRange(1, 4).Draw(t, "epochs")
		shuffle := rapid.SampledFrom([]string{"off", "seed"})
		w.Reader.FileShuffle, w.Reader.SampleShuffle = shuffle.Draw(t, "file shuffle"), shuffle.Draw(t, "sample shuffle")
		w.Train.SeedChangeEpoch = rapid.Bool().Draw(t, "seed change")
		w.Benchpin.Order = rapid.SampledFrom([]string{sampler.Numpy, sampler.DLIO}).Draw(t, "order")
		steps := w.Dataset.NumFilesTrain * w.Dataset.NumSamplesPerFile / (w.Reader.BatchSize * w.Benchpin.Accelerators)
		if steps == 0 {
			t.Skip("no step")
		}
		if rapid.Bool().Draw(t, "cap") {
			w.Train.TotalTrainingSteps = int64(rapid.IntRange(1, steps).Draw(t, "total_training_steps"))
			steps = int(w.Train.TotalTrainingSteps)
		}
		files := make(planFiles, w.Dataset.NumFilesTrain+3) // more than asked for
		for i := range files {
			files[i] = int64(1000 + 37*i*i)
		}
		p, err := NewPlan(w, files)
		if err != nil {
			t.Fatal(err)
		}
		var want, samples int64
		for e := 1; e <= w.Train.Epochs; e++ {
			o, err := p.Sampler().Epoch(e)
			if err != nil {
				t.Fatal(err)
			}
			for r := range w.Benchpin.Accelerators {
				for pos := range int64(steps * w.Reader.BatchSize) {
					_, file, _ := o.Sample(r, pos)
					want += files[file]
					samples++
				}
			}
		}
		if int64(p.BytesTotal) != want || int64(p.BytesPerEpoch) != want/int64(w.Train.Epochs) {
			t.Fatalf("found %d bytes, %d an epoch; the order has %d", p.BytesTotal, p.BytesPerEpoch, want)
		}
		if int64(p.SamplesPerEpoch)*int64(w.Train.Epochs) != samples || p.SamplesPerEpoch+p.SamplesDropped != p.Samples {
			t.Fatalf("found %d samples an epoch and %d dropped of %d; the order has %d in all", p.SamplesPerEpoch, p.SamplesDropped, p.Samples, samples)
		}
	})
}

func TestImpossiblePlans(t *testing.T) {
	for _, c := range []struct {
		name   string
		files  int
		change func(w *workload.Workload)
		parts  []string
	}{
		{"0 steps", 28, func(w *workload.Workload) {
			w.Dataset.NumFilesTrain, w.Reader.BatchSize, w.Benchpin.Accelerators = 28, 7, 8
		}, []string{"0 steps: 28 files x 1 sample < batch 7 x 8 accelerators = 56 samples a step", "at least 56 files", "at most 4 accelerators", "smaller batch"}},
		{"0 steps whatever the accelerators", 3, func(w *workload.Workload) {
			w.Dataset.NumFilesTrain, w.Dataset.NumSamplesPerFile, w.Reader.BatchSize = 3, 2, 7
		},
			[]string{"0 steps: 3 files x 2 samples < batch 7 x 1 accelerator = 7 samples", "at least 4 files, or a smaller batch"}},
		{"too few files", 15, nil, []string{"num_files_train is 16", "has 15"}},
		{"too many steps asked for", 16, func(w *workload.Workload) { w.Train.TotalTrainingSteps = 17 }, []string{"total_training_steps is 17", "16 steps", "16 files x 1 sample over batch 1 x 1 accelerator)"}},
		{"no steps asked for", 16, func(w *workload.Workload) { w.Train.TotalTrainingSteps = 0 }, []string{"total_training_steps is 0", "-1"}},
		{"no accelerators", 16, func(w *workload.Workload) { w.Benchpin.Accelerators = 0 }, []string{"benchpin.accelerators is 0"}},
		{"no epochs", 16, func(w *workload.Workload) { w.Train.Epochs = 0 }, []string{"train.epochs is 0"}},
		{"seed out of range", 16, func(w *workload.Workload) {
			w.Train.Seed, w.Reader.FileShuffle = 1<<32, "seed"
		}, []string{"seed 4294967296"}},
		{"too many samples", 16, func(w *workload.Workload) { w.Dataset.NumSamplesPerFile = 1 << 31 }, []string{"samples"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewPlan(testWorkload(c.change), equalFiles(c.files, 1000))
			if !errors.Is(err, ErrImpossible) {
				t.Fatalf("expected ErrImpossible, found %v", err)
			}
			contains(t, err, c.parts...)
		})
	}
}

func TestUnsupportedWorkloads(t *testing.T) {
	var all []func(*workload.Workload)
	var keys []string
	for _, c := range []struct {
		key    string
		parts  string
		change func(w *workload.Workload)
	}{
		{"framework", "jax", func(w *workload.Workload) { w.Framework = "jax" }},
		{"workflow.train", "false", func(w *workload.Workload) { w.Workflow.Train = false }},
		{"dataset.format", "tfrecord", func(w *workload.Workload) { w.Dataset.Format = "tfrecord" }},
		{"dataset.compression", "gzip", func(w *workload.Workload) { w.Dataset.Compression = "gzip" }},
		{"reader.data_loader", "custom", func(w *workload.Workload) { w.Reader.DataLoader = "custom" }},
		{"reader.data_loader_classname", "a.B", func(w *workload.Workload) { w.Reader.DataLoaderClassname = "a.B" }},
		{"reader.reader_classname", "a.C", func(w *workload.Workload) { w.Reader.ReaderClassname = "a.C" }},
		{"reader.data_loader_sampler", "iterative", func(w *workload.Workload) { w.Reader.DataLoaderSampler = "iterative" }},
		{"storage.storage_type", "aistore", func(w *workload.Workload) { w.Storage.StorageType = "aistore" }},
		{"benchpin.order", "other", func(w *workload.Workload) { w.Benchpin.Order = "other" }},
		{"checkpoint.checkpoint_mechanism_classname", "a.D", func(w *workload.Workload) {
			w.Workflow.Checkpoint, w.Checkpoint.CheckpointMechanismClassname = true, "a.D"
		}},
	} {
		_, err := NewPlan(testWorkload(c.change), equalFiles(16, 1000))
		var u *UnsupportedError
		if !errors.Is(err, ErrUnsupported) || !errors.As(err, &u) || len(u.Keys) != 1 || u.Keys[0].Key != c.key {
			t.Errorf("%s: found %v", c.key, err)
			continue
		}
		contains(t, err, c.key, c.parts, "supported: ")
		// Training that is off is another kind of run with workflow.checkpoint; no sampler goes with a loader that does not exist.
		if c.key != "workflow.train" && c.key != "reader.data_loader_sampler" {
			all, keys = append(all, c.change), append(keys, c.key)
		}
	}
	_, err := NewPlan(testWorkload(func(w *workload.Workload) {
		for _, change := range all {
			change(w)
		}
	}), equalFiles(16, 1000))
	contains(t, err, keys...)

	if _, err := NewPlan(testWorkload(func(w *workload.Workload) { w.Model.Type, w.Model.NumLayers = "transformer", 32 }), equalFiles(16, 1000)); err != nil {
		t.Errorf("a transformer that writes no checkpoint: %v", err)
	}
}

// TestRequiredRate: a store that delivers just the rate of the plan to all accelerators together reaches the threshold, and one that
// delivers 3 % less does not. The bandwidth is shared; the epoch is long, so that its beginning hardly counts.
func TestRequiredRate(t *testing.T) {
	for _, au := range []float64{0.5, 0.9} {
		for _, c := range []struct {
			share float64
			met   bool
		}{{1.001, true}, {0.97, false}} {
			w := testWorkload(func(w *workload.Workload) {
				w.Benchpin.Accelerators, w.Reader.BatchSize, w.Reader.ReadThreads, w.Dataset.NumFilesTrain = 3, 4, 2, 3*4*200
				w.Train.ComputationTime, w.Metric.AU = constant(100*time.Millisecond), au
			})
			data := newSim(t, w.Dataset.NumFilesTrain, 1, 0, 0, 0)
			p, err := NewPlan(w, data)
			if err != nil {
				t.Fatal(err)
			}
			rate := *p.RequiredBytesPerSecond
			if want := 12 * 10128 / (0.1 / au); math.Abs(rate-want) > 1e-6*want {
				t.Fatalf("rate %g, expected %g", rate, want)
			}
			simulate(t, w, func(t *testing.T) *sim { return newSim(t, w.Dataset.NumFilesTrain, 1, 0, rate*c.share, 1) }, nil,
				func(t *testing.T, p *Plan, res *Result, err error) {
					if err != nil {
						t.Fatal(err)
					}
					got := figure(t, "AU", res.Metrics.AU)
					if (got >= 100*au) != c.met || math.Abs(got-100*au) > 4 {
						t.Errorf("AU threshold %g, %g of the required rate: AU is %.2f %%", 100*au, c.share, got)
					}
					if res.Metrics.Met == nil || *res.Metrics.Met != c.met {
						t.Errorf("met: found %v, expected %v", res.Metrics.Met, c.met)
					}
				})
		}
	}
}

func TestNoRateIsRequired(t *testing.T) {
	for _, change := range []func(w *workload.Workload){
		nil, // no compute time
		func(w *workload.Workload) { w.Metric.AU, w.Train.ComputationTime = 0, constant(time.Second) },
	} {
		p, err := NewPlan(testWorkload(change), equalFiles(16, 1000))
		if err != nil {
			t.Fatal(err)
		}
		if p.RequiredBytesPerSecond != nil || p.RequiredFilesPerSecond != nil || p.SampleSeconds != 0 {
			t.Errorf("found %v, %v, %v; expected no rate", p.RequiredBytesPerSecond, p.RequiredFilesPerSecond, p.SampleSeconds)
		}
	}
}

// TestLoadersAndTheirContainers: a loader of another framework, and a container that a loader does not read, are refused as in DLIO.
func TestLoadersAndTheirContainers(t *testing.T) {
	for _, c := range []struct {
		key, parts string
		change     func(w *workload.Workload)
	}{
		{"dataset.format", "hdf5_opt", func(w *workload.Workload) { w.Dataset.Format = "hdf5_opt" }},
		{"dataset.format", "tensorflow or native_dali", func(w *workload.Workload) { w.Dataset.Format, w.Reader.DataLoader = "tfrecord", "dali" }},
		{"dataset.format", "others with dali", func(w *workload.Workload) { w.Dataset.Format, w.Reader.DataLoader = "hdf5", "native_dali" }},
		{"reader.data_loader", "with framework pytorch", func(w *workload.Workload) { w.Reader.DataLoader = "tensorflow" }},
		{"reader.data_loader", "with framework tensorflow", func(w *workload.Workload) { w.Framework = "tensorflow" }},
		{"reader.data_loader_sampler", "iterative with data_loader tensorflow", func(w *workload.Workload) {
			tensorflow(w)
			w.Reader.DataLoaderSampler = "index"
		}},
	} {
		_, err := NewPlan(testWorkload(c.change), equalFiles(16, 1000))
		var u *UnsupportedError
		if !errors.As(err, &u) || len(u.Keys) != 1 || u.Keys[0].Key != c.key {
			t.Errorf("%s: found %v", c.key, err)
			continue
		}
		contains(t, err, c.parts)
	}
}

// tensorflow asks for TensorFlow's loader on tfrecord.
func tensorflow(w *workload.Workload) {
	w.Framework, w.Reader.DataLoader, w.Dataset.Format = "tensorflow", "tensorflow", "tfrecord"
}

// TestNotes: what no store can make up for is said in the plan.
func TestNotes(t *testing.T) {
	for _, c := range []struct {
		note   string
		change func(w *workload.Workload)
	}{
		{"every step waits for the slowest of 2 accelerators", func(w *workload.Workload) {
			w.Benchpin.Accelerators, w.Train.ComputationTime = 2, workload.Time{Type: workload.TimeUniform, Min: 0, Max: 1}
		}},
		{"preprocessing a batch takes 0.5000 s", func(w *workload.Workload) {
			w.Train.ComputationTime, w.Reader.PreprocessTime = constant(100*time.Millisecond), constant(500*time.Millisecond)
		}},
		{"1 of 16 samples left out of an epoch, because they fill no step of batch 3 x 1 accelerator", func(w *workload.Workload) { w.Reader.BatchSize, w.Output.Metric.ExcludeStartSteps = 3, 0 }},
		{"order is dlio", func(w *workload.Workload) { w.Benchpin.Order, w.Reader.FileShuffle = "dlio", "seed" }},
		{"seeded", func(w *workload.Workload) { w.Reader.SampleShuffle = "random" }},
		{"computation_threads makes no difference", func(w *workload.Workload) { w.Reader.ComputationThreads = 4 }},
		{"transfer_size makes no difference", func(w *workload.Workload) { w.Reader.TransferSize = 4096 }},
		{"pieces of 4096 bytes", func(w *workload.Workload) { tensorflow(w); w.Reader.TransferSize = 100 }},
		{"preprocess_time is not slept by the tensorflow loader on tfrecord", func(w *workload.Workload) {
			tensorflow(w)
			w.Reader.PreprocessTime = constant(time.Second)
		}},
		{"read_type makes no difference", func(w *workload.Workload) { tensorflow(w); w.Reader.ReadType = "memory" }},
		{"read_threads is 0: the dali loader", func(w *workload.Workload) { w.Reader.DataLoader, w.Reader.ReadThreads = "dali", 0 }},
		{"nothing is read", func(w *workload.Workload) { w.Reader.DataLoader = "synthetic" }},
		{"a worker reads each of its files once", func(w *workload.Workload) { w.Reader.ReadType = "memory" }},
		{"starts no profiler", func(w *workload.Workload) { w.Workflow.Profiling = true }},
		{"of the 16 steps of an epoch 4 count", func(w *workload.Workload) { w.Output.Metric.ExcludeEndSteps = 11 }},
		{"no AU: output.metric excludes 16 steps and an epoch has 16", func(w *workload.Workload) { w.Output.Metric.ExcludeStartSteps = 16 }},
	} {
		p, err := NewPlan(testWorkload(c.change), equalFiles(16, 1000))
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], c.note) {
			t.Errorf("expected a note with %q, found %q", c.note, p.Notes)
		}
	}
	if p, err := NewPlan(testWorkload(nil), equalFiles(16, 1000)); err != nil || len(p.Notes) != 0 {
		t.Errorf("a plain workload: %v, %v", err, p.Notes)
	}
}

// TestPlanOfStreams: resnet50's numbers on tfrecord: 1024 files of 1251 records for 8 accelerators, batch 400, and the loaders' memory.
func TestPlanOfStreams(t *testing.T) {
	const rec = 114304
	w := testWorkload(func(w *workload.Workload) {
		tensorflow(w)
		w.Dataset.NumFilesTrain, w.Dataset.NumSamplesPerFile, w.Reader.BatchSize, w.Benchpin.Accelerators = 1024, 1251, 400, 8
		w.Reader.ReadThreads, w.Reader.ComputationThreads, w.Reader.SampleShuffle, w.Reader.ShuffleSize = 8, 8, "seed", 1024
		w.Train.ComputationTime = constant(435 * time.Millisecond)
	})
	p, err := NewPlan(w, equalFiles(1024, 1251*rec))
	if err != nil {
		t.Fatal(err)
	}
	// 1,281,024 samples over 3,200 a step.
	if p.StepsPerEpoch != 400 || p.SamplesDropped != 1024 || p.BytesTotal != 400*3200*rec || p.Loader != "tensorflow" || p.PrefetchFactor != 10 {
		t.Errorf("found %+v", p.Plan)
	}
	near(t, "bytes/s", *p.RequiredBytesPerSecond, 3200*rec/(0.435/0.9))
	// 64 pieces and as many read buffers of 256 KiB each, and the order of the buffer of 160,000 samples twice.
	if m := int64(p.MemoryBytes); m < 2*64*256<<10 || m > 2*64*256<<10+8<<20 {
		t.Errorf("memory: found %d bytes", m)
	}
	w.Reader.ReadThreads = 2000
	if _, err := NewPlan(w, equalFiles(1024, 1251*rec)); !errors.Is(err, ErrImpossible) {
		t.Errorf("16,000 streams at once: found %v", err)
	}
	// A cap reads what the buffer needs beyond it, and no more.
	w.Reader.ReadThreads, w.Train.TotalTrainingSteps = 8, 10
	if p, err = NewPlan(w, equalFiles(1024, 1251*rec)); err != nil || p.BytesTotal != 8*(4000+1023)*rec {
		t.Errorf("10 steps: %v, found %d bytes", err, p.BytesTotal)
	}
}

// TestLongTimes: drawn times whose sum is longer than a Duration can be keep their mean.
func TestLongTimes(t *testing.T) {
	const longest = 3600 * 1000.0
	w := testWorkload(func(w *workload.Workload) {
		w.Dataset.NumFilesTrain, w.Train.ComputationTime = 1<<13, workload.Time{Type: workload.TimeUniform, Min: longest, Max: 2 * longest}
	})
	p, err := NewPlan(w, equalFiles(1<<13, 1000))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "slowest", p.slowest(), longest) // a sleep is at most that long
	near(t, "expected seconds", p.ExpectedSeconds, longest*float64(p.StepsPerEpoch)*float64(p.Epochs))
}

// TestPlanIsAFunction: the same workload and data give the same plan.
func TestPlanIsAFunction(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) {
		w.Benchpin.Accelerators, w.Train.ComputationTime = 4, workload.Time{Type: workload.TimeGamma, Shape: 2, Scale: 0.1}
	})
	a, err := NewPlan(w, equalFiles(16, 1000))
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewPlan(w, equalFiles(16, 1000))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a.Plan, b.Plan) {
		t.Errorf("found %+v and %+v", a.Plan, b.Plan)
	}
}
