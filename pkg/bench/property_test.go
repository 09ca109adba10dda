package bench

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/bench/loader"
	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/stream"
	"github.com/benchpin/benchpin/pkg/workload"
)

// shelf is a data set of real files of a container, in memory, with everything that belongs to them. It counts what is asked of it and
// what is open.
type shelf struct {
	bytes map[string][]byte
	paths []string
	size  []int64
	one   int64
	valid *shelf // nil without files for evaluation

	asked, open, opened atomic.Int64
}

// layoutOf is the layout of test files: samples of 40 x 30 bytes.
func layoutOf(t testing.TB, samples int) format.Layout {
	t.Helper()
	u8, err := format.ParseDType("uint8")
	if err != nil {
		t.Fatal(err)
	}
	return format.Layout{Dims: []int{40, 30}, Samples: samples, DType: u8}
}

// newShelf makes files for training and for evaluation. Files of one data set differ in content, and where varied is true in size.
func newShelf(t testing.TB, f format.Format, train, valid, samples int, varied bool) *shelf {
	t.Helper()
	content := map[string][]byte{}
	part1 := func(part string, n int) *shelf {
		s := &shelf{bytes: content, one: 1200}
		for i := range n {
			l := layoutOf(t, samples)
			if varied {
				l.Dims[0] += i % 3
			}
			path := fmt.Sprintf("%s/img_%d_of_%d.%s", part, i, n, format.Extension(f))
			var b bytes.Buffer
			if err := f.Write(&b, l, l.DType.Seeded(stream.New("benchpin/test", 1, 7), uint64(i)), make([]byte, 1<<16)); err != nil {
				t.Fatal(err)
			}
			content[path] = b.Bytes()
			s.paths, s.size = append(s.paths, path), append(s.size, int64(b.Len()))
			if c, ok := f.(format.Companioned); ok {
				for _, c := range c.Companions() {
					var b bytes.Buffer
					if err := c.Write(&b, l); err != nil {
						t.Fatal(err)
					}
					content[c.Path(path)] = b.Bytes()
				}
			}
		}
		return s
	}
	s := part1("train", train)
	s.valid = part1("valid", valid)
	if varied {
		s.one, s.valid.one = 0, 0
	}
	return s
}

func (s *shelf) Files() int          { return len(s.paths) }
func (s *shelf) Path(i int) string   { return s.paths[i] }
func (s *shelf) Size(i int) int64    { return s.size[i] }
func (s *shelf) Evaluation() Dataset { return s.valid }
func (s *shelf) SampleBytes(i int) int64 {
	if s.one == 0 {
		return int64(40+i%3) * 30
	}
	return s.one
}

func (s *shelf) Open(name string) (store.File, error) {
	b, ok := s.bytes[name]
	if !ok {
		return nil, fmt.Errorf("no file %s", name)
	}
	s.open.Add(1)
	s.opened.Add(1)
	return &shelfFile{s: s, name: name, b: b}, nil
}

// identity knows every file by its path, as if it had been verified.
func (s *shelf) identity(f format.Format) func(id FileID) (store.Info, bool) {
	var companions []format.Companion
	if c, ok := f.(format.Companioned); ok {
		companions = c.Companions()
	}
	return func(id FileID) (store.Info, bool) {
		part := s
		if id.Evaluation {
			part = s.valid
		}
		path := part.paths[id.Index]
		if id.Companion > 0 {
			path = companions[id.Companion-1].Path(path)
		}
		return s.infoOf(path), true
	}
}

func (s *shelf) infoOf(path string) store.Info {
	var inode uint64
	for _, c := range []byte(path) {
		inode = inode*131 + uint64(c)
	}
	return store.Info{Path: path, Size: int64(len(s.bytes[path])), Inode: inode}
}

type shelfFile struct {
	s      *shelf
	name   string
	b      []byte
	closed atomic.Bool
}

func (f *shelfFile) ReadAt(p []byte, off int64) (int, error) {
	if f.closed.Load() {
		return 0, fmt.Errorf("%s is closed", f.name)
	}
	f.s.asked.Add(int64(len(p)))
	return bytes.NewReader(f.b).ReadAt(p, off)
}

func (f *shelfFile) Info() (store.Info, error) { return f.s.infoOf(f.name), nil }

func (f *shelfFile) Close() error {
	if f.closed.Swap(true) {
		return fmt.Errorf("%s is closed twice", f.name)
	}
	f.s.open.Add(-1)
	return nil
}

// loaderNames are the loaders that read a container.
func loaderNames(container string) []string {
	switch container {
	case "tfrecord":
		return []string{"tensorflow", "native_dali", "synthetic", "none"}
	case "npy", "jpeg", "png":
		return []string{"pytorch", "tensorflow", "dali", "native_dali", "synthetic", "none"}
	}
	return []string{"pytorch", "tensorflow", "dali", "synthetic", "none"}
}

// drawWorkload draws a workload that can be run on a container.
func drawWorkload(t *rapid.T, container string) *workload.Workload {
	return testWorkload(func(w *workload.Workload) {
		d, r := &w.Dataset, &w.Reader
		d.Format, d.RecordLengthBytes = container, 1200
		d.NumSamplesPerFile = rapid.IntRange(1, 7).Draw(t, "samples a file")
		if container == "jpeg" || container == "png" || container == "raw" {
			d.NumSamplesPerFile = 1
		}
		if container == "parquet" {
			d.Parquet.RowGroupSize = rapid.IntRange(1, 4).Draw(t, "row group")
			read := rapid.IntRange(0, 2).Draw(t, "the column that is read")
			for i, c := range []workload.Column{{Name: "a", DType: "float32", Size: 100}, {Name: "b", DType: "uint8", Size: 600}, {Name: "c", DType: "int64", Size: 25}} {
				c.Read = i == read
				d.Parquet.Columns = append(d.Parquet.Columns, c)
			}
		}
		d.NumFilesTrain, d.NumFilesEval = rapid.IntRange(1, 17).Draw(t, "files"), rapid.IntRange(1, 9).Draw(t, "files for evaluation")
		w.Benchpin.Accelerators = rapid.IntRange(1, 5).Draw(t, "accelerators")
		most := func(files int) int { return files * d.NumSamplesPerFile / w.Benchpin.Accelerators }
		if most(min(d.NumFilesTrain, d.NumFilesEval)) < 1 {
			w.Benchpin.Accelerators = 1
		}
		r.BatchSize = rapid.IntRange(1, min(5, most(d.NumFilesTrain))).Draw(t, "batch")
		r.BatchSizeEval = rapid.IntRange(1, min(4, most(d.NumFilesEval))).Draw(t, "batch for evaluation")
		r.DataLoader = rapid.SampledFrom(loaderNames(container)).Draw(t, "loader")
		if r.DataLoader == "tensorflow" {
			w.Framework = "tensorflow"
		}
		r.ReadThreads, r.PrefetchSize = rapid.IntRange(0, 5).Draw(t, "threads"), rapid.IntRange(0, 5).Draw(t, "prefetch")
		r.ComputationThreads, r.ShuffleSize = rapid.IntRange(0, 3).Draw(t, "computation threads"), rapid.IntRange(0, 40).Draw(t, "shuffle size")
		r.TransferSize = rapid.SampledFrom([]int64{0, 4096, 5000}).Draw(t, "transfer size")
		words := rapid.SampledFrom([]string{"off", "seed", "random"})
		r.FileShuffle, r.SampleShuffle = words.Draw(t, "file shuffle"), words.Draw(t, "sample shuffle")
		r.ReadType = rapid.SampledFrom([]string{"on_demand", "memory"}).Draw(t, "read type")
		w.Benchpin.Order = rapid.SampledFrom([]string{"numpy", "dlio"}).Draw(t, "order")
		w.Train.Epochs, w.Train.SeedChangeEpoch = rapid.IntRange(1, 3).Draw(t, "epochs"), rapid.Bool().Draw(t, "seed change")
		if steps := d.NumFilesTrain * d.NumSamplesPerFile / (r.BatchSize * w.Benchpin.Accelerators); rapid.Bool().Draw(t, "cap") {
			w.Train.TotalTrainingSteps = int64(rapid.IntRange(1, steps).Draw(t, "steps"))
		}
		w.Workflow.Evaluation = rapid.Bool().Draw(t, "evaluation")
		w.Evaluation.EvalAfterEpoch, w.Evaluation.EpochsBetweenEvals = rapid.IntRange(1, 2).Draw(t, "after"), rapid.IntRange(1, 2).Draw(t, "between")
	})
}

// once holds that every place of an epoch is read by one rank once, and how many are.
func once(t *rapid.T, s share) {
	c := s.order.Config()
	for _, e := range s.epochs {
		o, err := s.order.Epoch(e)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[[2]int64]bool{}
		for r := range c.Accelerators {
			for pos := range o.PerRank() {
				_, file, k := o.Sample(r, pos)
				if file < 0 || file >= c.Files || k < 0 || k >= c.SamplesPerFile || seen[[2]int64{file, k}] {
					t.Fatalf("epoch %d, rank %d, position %d: position %d of file %d is read twice, or does not exist", e, r, pos, k, file)
				}
				seen[[2]int64{file, k}] = true
			}
		}
		if want := c.Files * c.SamplesPerFile / int64(c.BatchSize*c.Accelerators) * int64(c.BatchSize*c.Accelerators); int64(len(seen)) != want {
			t.Fatalf("epoch %d: %d samples are read, floor(F n / (B R)) steps have %d", e, len(seen), want)
		}
	}
}

// TestAnyConfiguration runs random configurations of every container and loader on real files. Each sample is read exactly once an epoch but
// for those that the step rule leaves out, the transcript is the expected one, every byte that the store was asked for is counted, the
// plan knew how many, every opened file had been verified, and all are closed.
func TestAnyConfiguration(t *testing.T) {
	containers := format.Names()
	for batch := range 10 { // of 100 configurations each, unless rapid.checks says otherwise
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				name := rapid.SampledFrom(containers).Draw(rt, "container")
				w := drawWorkload(rt, name)
				f, bad := container(w)
				if bad != nil {
					rt.Fatal(bad)
				}
				varied := rapid.Bool().Draw(rt, "varied sizes") && name != "parquet" && name != "synthetic"
				data := newShelf(t, f, w.Dataset.NumFilesTrain+1, w.Dataset.NumFilesEval+1, w.Dataset.NumSamplesPerFile, varied)
				runAny(rt, w, f, data)
			})
		})
	}
}

func runAny(t *rapid.T, w *workload.Workload, f format.Format, data *shelf) {
	p, err := NewPlan(w, data)
	if err != nil {
		t.Fatal(err)
	}
	once(t, share{order: p.order, epochs: epochs1(p.Epochs)})
	if p.eval != nil {
		once(t, share{order: p.eval.order, epochs: p.eval.epochs})
	}
	var steps, eval memFile
	res, err := Run(context.Background(), Options{Plan: p, Dataset: data, Data: data, Steps: &steps, EvalSteps: &eval, Identity: data.identity(f),
		DeviceBytes: func() (int64, error) { return 0, nil }})
	if err != nil || !res.Complete {
		t.Fatalf("not complete: %v", err)
	}
	if (p.eval != nil) != (res.Metrics.Evaluation != nil && res.Transcript.Evaluation != nil) {
		t.Fatalf("evaluation: planned %v, found %v, %v", p.eval != nil, res.Metrics.Evaluation, res.Transcript.Evaluation)
	}
	var asked, evaluated float64
	for _, e := range res.Metrics.Epochs {
		asked += *e.BytesAsked.Value
	}
	if v := res.Metrics.Evaluation; v != nil {
		for i, e := range v.Passes {
			evaluated += *e.BytesAsked.Value
			if e.Epoch != p.eval.epochs[i] {
				t.Fatalf("pass %d is that of epoch %d, planned %v", i, e.Epoch, p.eval.epochs)
			}
		}
	}
	if got := float64(data.asked.Load()); got != asked+evaluated {
		t.Fatalf("the store was asked for %.0f bytes, %.0f and %.0f are counted", got, asked, evaluated)
	}
	planned, plannedEval := float64(p.BytesTotal), 0.
	if p.Evaluation != nil {
		plannedEval = float64(p.Evaluation.BytesTotal)
	}
	if !near1(p, asked, planned, p.Epochs) || p.eval != nil && !near1(p, evaluated, plannedEval, p.Evaluation.Passes) {
		t.Fatalf("asked for %.0f bytes and %.0f for evaluation; the plan says %.0f and %.0f", asked, evaluated, planned, plannedEval)
	}
	if open := data.open.Load(); open != 0 {
		t.Fatalf("%d files are still open", open)
	}
	if res.IdentityRechecked != data.opened.Load() {
		t.Fatalf("%d files were opened, %d compared", data.opened.Load(), res.IdentityRechecked)
	}
}

// near1 compares what was asked for with the plan. Only whole files are known to the byte: containers that read a part estimate what its
// surroundings cost, and streams may end in the middle of a file, with up to one piece more for each lane, or begin there.
func near1(p *Plan, asked, planned float64, times int) bool {
	switch {
	case p.reading.fileless():
		return asked == 0 && planned == 0
	case p.reading.streamed != nil:
		files := float64(times*p.Accelerators*p.reading.threads) * 2
		return asked >= planned && asked <= planned+files*9*1400+files*float64(p.reading.transfer)
	case p.reading.whole():
		return asked == planned
	}
	if p.reading.grouped() != nil {
		return asked > planned*0.99 && asked < planned*1.01 // sizes of groups are known but for the place of a number in the footer
	}
	return asked > planned/2.5 && asked < planned*2.5
}

var _ loader.Opener = (*shelf)(nil)
