package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// realFiles is a data set of equal npz files on disk.
type realFiles struct {
	paths  []string // relative to the folder
	full   []string
	size   int64
	sample int64
	folder *store.Folder
	known  []store.Info
}

func (r *realFiles) Files() int            { return len(r.paths) }
func (r *realFiles) Path(i int) string     { return r.paths[i] }
func (r *realFiles) Size(int) int64        { return r.size }
func (r *realFiles) SampleBytes(int) int64 { return r.sample }

// newRealFiles writes n npz files of one side x side sample each. They are in the page cache then.
func newRealFiles(b testing.TB, n, side int) *realFiles {
	b.Helper()
	u8, err := format.ParseDType("uint8")
	if err != nil {
		b.Fatal(err)
	}
	npz, err := format.ByName("npz")
	if err != nil {
		b.Fatal(err)
	}
	l := format.Layout{Dims: []int{side, side}, Samples: 1, DType: u8}
	r := &realFiles{sample: l.SampleBytes()}
	if r.size, err = npz.Size(l); err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "train"), 0o777); err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 1<<20)
	for i := range n {
		r.paths = append(r.paths, fmt.Sprintf("train/img_%04d_of_%d.npz", i, n))
		r.full = append(r.full, filepath.Join(dir, r.paths[i]))
		f, err := os.Create(r.full[i])
		if err == nil {
			err = npz.Write(f, l, zeros{}, buf)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if r.folder, err = store.NewFolder(dir, store.FolderOptions{}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { r.folder.Close() })
	for _, p := range r.paths {
		info, err := r.folder.Stat(p)
		if err != nil {
			b.Fatal(err)
		}
		r.known = append(r.known, info)
	}
	return r
}

// plainLoop reads all files once on so many goroutines: open, read to the end into one buffer a goroutine, close, and nothing else.
func (r *realFiles) plainLoop(b testing.TB, goroutines int) time.Duration {
	start := time.Now()
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			buf := make([]byte, min(bufferBytes, (r.size+4095)/4096*4096))
			for i := g; i < len(r.full); i += goroutines {
				fd, err := unix.Open(r.full[i], unix.O_RDONLY|unix.O_CLOEXEC, 0)
				if err != nil {
					b.Error(err)
					return
				}
				for left := r.size; left > 0; {
					n, err := unix.Read(fd, buf)
					if err != nil || n == 0 {
						b.Errorf("%s: %d bytes left: %v", r.full[i], left, err)
						break
					}
					left -= int64(n)
				}
				unix.Close(fd)
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// engine runs all files once through the engine, without compute time, and returns the time of the epochs. l may be nil.
func (r *realFiles) engine(b testing.TB, w *workload.Workload, l *Live) time.Duration {
	p, err := NewPlan(w, r)
	if err != nil {
		b.Fatal(err)
	}
	steps, err := os.Create(filepath.Join(b.TempDir(), "steps.parquet"))
	if err != nil {
		b.Fatal(err)
	}
	defer steps.Close()
	res, err := Run(b.Context(), Options{Plan: p, Dataset: r, Data: r.folder, Steps: steps, Live: l,
		Identity: func(f FileID) (store.Info, bool) { return r.known[f.Index], true }})
	if err != nil {
		b.Fatal(err)
	}
	var sum float64
	for _, e := range res.Metrics.Epochs {
		sum += *e.Seconds.Value
	}
	return time.Duration(sum * 1e9)
}

// cpuTime is what this process has used so far.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEngine compares the engine with a plain loop over the same files in the page cache, in turns, so that both see the same
// machine. ratio is engine/plain; the goal is 0.9. cpu-ratio is the same of processor time, of everything that a run does, which a busy
// machine disturbs less.
func BenchmarkEngine(b *testing.B) {
	cores := runtime.GOMAXPROCS(0)
	for _, c := range []struct {
		name               string
		files, side, batch int
		accelerators       int
	}{
		{"100KB", 2000, 316, 10, 1},
		{"100KB/accelerators", 2000, 316, 10, cores},
		{"140MB", 8, 11832, 1, 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := newRealFiles(b, c.files, c.side)
			w := testWorkload(func(w *workload.Workload) {
				w.Dataset.Format, w.Dataset.NumFilesTrain, w.Reader.BatchSize = "npz", c.files, c.batch
				w.Benchpin.Accelerators, w.Train.Epochs = c.accelerators, 5
				w.Reader.ReadThreads, w.Reader.PrefetchSize = max(1, cores/c.accelerators), 16
			})
			r.plainLoop(b, cores)
			r.engine(b, w, nil)
			var plain, engine, plainCPU, engineCPU time.Duration
			for b.Loop() {
				before := cpuTime()
				for range w.Train.Epochs {
					plain += r.plainLoop(b, cores)
				}
				between := cpuTime()
				engine += r.engine(b, w, nil)
				plainCPU += between - before
				engineCPU += cpuTime() - between
			}
			samples := float64(c.files) * float64(b.N) * float64(w.Train.Epochs)
			b.ReportMetric(samples/plain.Seconds(), "plain-files/s")
			b.ReportMetric(samples/engine.Seconds(), "samples/s")
			b.ReportMetric(samples*float64(r.size)/engine.Seconds()/1e9, "GB/s")
			b.ReportMetric(plain.Seconds()/engine.Seconds(), "ratio")
			b.ReportMetric(plainCPU.Seconds()/engineCPU.Seconds(), "cpu-ratio")
			b.ReportMetric(0, "ns/op") // says nothing: an operation is both loops
		})
	}
}
