package bench

import (
	"bytes"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// rowFiles is a data set of equal parquet files in memory.
type rowFiles struct {
	content []byte
	files   int
	sample  int64
}

func (r *rowFiles) Files() int                      { return r.files }
func (r *rowFiles) Path(int) string                 { return "train/rows.parquet" }
func (r *rowFiles) Size(int) int64                  { return int64(len(r.content)) }
func (r *rowFiles) SampleBytes(int) int64           { return r.sample }
func (r *rowFiles) Open(string) (store.File, error) { return rowFile{r}, nil }

type rowFile struct{ r *rowFiles }

func (f rowFile) Info() (store.Info, error) { return store.Info{Size: f.r.Size(0)}, nil }
func (f rowFile) Close() error              { return nil }
func (f rowFile) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, f.r.content[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// dlrmRows are the samples of a parquet file of the workload dlrm_b200, dlrmBatch those of a batch, dlrmGroup those of a row group.
const dlrmRows, dlrmBatch, dlrmGroup = 4718592, 16384, 6144

// newRowFiles makes n files of so many rows of 16 bytes, of which 4 are read.
func newRowFiles(b testing.TB, n, rows int) (*rowFiles, *workload.Workload) {
	b.Helper()
	w := testWorkload(func(w *workload.Workload) {
		w.Dataset.Format, w.Dataset.NumFilesTrain, w.Dataset.NumSamplesPerFile = "parquet", n, rows
		w.Dataset.RecordLengthBytes = 16
		w.Dataset.Parquet.RowGroupSize = dlrmGroup
		w.Dataset.Parquet.Columns = []workload.Column{{Name: "a", DType: "float32", Size: 1, Read: true}, {Name: "b", DType: "float32", Size: 3}}
		w.Reader.BatchSize, w.Reader.ReadThreads = dlrmBatch, 4
	})
	spec, err := format.SpecOf(&w.Dataset)
	if err != nil {
		b.Fatal(err)
	}
	f, err := format.New(spec)
	if err != nil {
		b.Fatal(err)
	}
	u8, err := format.ParseDType("uint8")
	if err != nil {
		b.Fatal(err)
	}
	l := format.Layout{Dims: []int{16}, Samples: rows, DType: u8}
	var buf bytes.Buffer
	if err := f.Write(&buf, l, zeros{}, make([]byte, 1<<20)); err != nil {
		b.Fatal(err)
	}
	return &rowFiles{content: buf.Bytes(), files: n, sample: l.SampleBytes()}, w
}

// BenchmarkRows reads rows as the workload dlrm_b200 does, files of 4,718,592 rows in batches of 16,384 by row groups of 6,144, from memory and
// without compute time. Rates are rows by processor time, of one core therefore. loader is what reading them takes, with all its accounts; the goal is
// 10 million. engine has the transcript too, and chain is what the transcript's hashes take alone, of which each needs the one before.
func BenchmarkRows(b *testing.B) {
	data, w := newRowFiles(b, 2, dlrmRows)
	p, err := NewPlan(w, data)
	if err != nil {
		b.Fatal(err)
	}
	rows := float64(p.SamplesPerEpoch)
	var reading, engine, chain time.Duration
	for b.Loop() {
		r, err := newRun(b.Context(), Options{Plan: p, Dataset: data, Data: data, Steps: &memFile{}})
		if err != nil {
			b.Fatal(err)
		}
		l, err := r.loaderOf(b.Context(), r.src, 0, p.BatchSize, int64(p.StepsPerEpoch))
		if err != nil {
			b.Fatal(err)
		}
		order, err := p.order.Epoch(1)
		if err != nil {
			b.Fatal(err)
		}
		start := cpuTime()
		l.Start(1, order)
		for {
			if _, err := l.Next(b.Context()); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
		reading += cpuTime() - start
		l.Close()
		l.Wait()
		start = cpuTime()
		if err := r.all(b.Context()); err != nil {
			b.Fatal(err)
		}
		engine += cpuTime() - start
		if err := r.rec.Close(); err != nil {
			b.Fatal(err)
		}
		start = cpuTime()
		var block [64]byte
		for range int64(p.SamplesPerEpoch) {
			h := blake3.Sum256(block[:])
			copy(block[:], h[:])
		}
		chain += cpuTime() - start
		runtime.KeepAlive(block)
	}
	all := rows * float64(b.N) / 1e6
	b.ReportMetric(all/reading.Seconds(), "loader-Mrows/cpu-s")
	b.ReportMetric(all/engine.Seconds(), "engine-Mrows/cpu-s")
	b.ReportMetric(all/chain.Seconds(), "chain-Mrows/cpu-s")
	b.ReportMetric(0, "ns/op")
}
