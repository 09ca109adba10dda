package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/datagen"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// instant is a store whose files are equal and take no time: what is left is the engine. Their identities are those that are known.
type instant struct {
	content []byte
	known   store.Info
}

func (s *instant) Open(string) (store.File, error) { return instantFile{s}, nil }

type instantFile struct{ s *instant }

func (f instantFile) Info() (store.Info, error) { return f.s.known, nil }
func (f instantFile) Close() error              { return nil }
func (f instantFile) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, f.s.content[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// BenchmarkCost measures what a sample costs the engine where the data set has 10^3 to 10^7 files, as it is after verification: each with an
// identity that its opening is held to, in an order that files and samples are shuffled in, from a store that takes no time. flat is that as a part of what it is
// with 10^3 files in the same run; bytes/file is what a run keeps of each file, identity and order included, and plan-s what planning took of the processor.
func BenchmarkCost(b *testing.B) {
	const samples, accelerators, batch = 1 << 19, 8, 16
	var few float64
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprint(n, "files"), func(b *testing.B) {
			epochs := max(1, samples/n)
			steps := min(n, samples) / (accelerators * batch)
			text := fmt.Sprintf("framework: pytorch\ndataset: {format: npy, num_files_train: %d, record_length_bytes: 1024}\n"+
				"reader: {data_loader: pytorch, batch_size: %d, read_threads: 2, file_shuffle: seed, sample_shuffle: seed}\n"+
				"train: {epochs: %d, computation_time: 0.0, total_training_steps: %d}\nbenchpin: {accelerators: %d, cold_cache: none}\n",
				n, batch, epochs, steps, accelerators)
			resolved, err := workload.Load(workload.Source{Name: "many.yaml", Data: []byte(text)}, workload.Options{})
			if err != nil {
				b.Fatal(err)
			}
			w := resolved.Workload
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := datagen.FromWorkload(w)
			if err != nil {
				b.Fatal(err)
			}
			d := &pinnedFiles{pinnedPart: pinnedPart{contents: &contents{files: n, made: &r}, count: n}, recipe: &r, byEntry: make([]int32, n)}
			content := &instant{known: store.Info{Size: r.Size(0), Inode: 1}}
			if content.content, err = oneFile(b, r); err != nil {
				b.Fatal(err)
			}
			known := make([]store.Info, n)
			for i := range known {
				known[i] = content.known
			}
			start := processTime()
			plan, err := newPlan(context.Background(), w, d, "")
			if err != nil {
				b.Fatal(err)
			}
			planned := processTime() - start
			var perSample []float64
			for b.Loop() {
				out, err := os.Create(filepath.Join(b.TempDir(), "steps.parquet"))
				if err != nil {
					b.Fatal(err)
				}
				var cost, began time.Duration
				looks := 0
				device := func() (int64, error) { // asked when an epoch begins and when it ends
					if looks++; looks%2 == 1 {
						began = processTime()
					} else {
						cost += processTime() - began
						if looks == 2 {
							runtime.ReadMemStats(&after)
						}
					}
					return 0, nil
				}
				_, err = bench.Run(context.Background(), bench.Options{Plan: plan, Dataset: d, Data: content, Steps: out, DeviceBytes: device,
					Identity: func(f bench.FileID) (store.Info, bool) { return known[d.entry(f.Index, f.Companion)], true }})
				out.Close()
				if err != nil {
					b.Fatal(err)
				}
				perSample = append(perSample, float64(cost)/float64(epochs*steps*accelerators*batch))
			}
			slices.Sort(perSample)
			cost := perSample[len(perSample)/2]
			if few == 0 {
				few = cost
			}
			b.ReportMetric(cost, "cpu-ns/sample")
			b.ReportMetric(cost/few, "flat")
			if n >= 100_000 { // of fewer, other memory is more
				b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/float64(n), "bytes/file")
			}
			b.ReportMetric(planned.Seconds(), "plan-s")
			b.ReportMetric(0, "ns/op")
			runtime.KeepAlive(known)
			runtime.KeepAlive(d)
		})
	}
}

// oneFile makes the first file of a recipe.
func oneFile(b *testing.B, r datagen.Recipe) ([]byte, error) {
	var buf bytes.Buffer
	err := r.Make(b.Context(), 0, &buf)
	return buf.Bytes(), err
}
