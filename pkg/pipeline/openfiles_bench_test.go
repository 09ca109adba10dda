package pipeline

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/benchpin/benchpin/pkg/datagen"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/workload"
)

// BenchmarkOpenFiles measures what a run keeps of each file that it may read: bytes/file are live afterwards, peak-bytes/file were taken from
// the system until then.
func BenchmarkOpenFiles(b *testing.B) {
	const n = 500_000
	text := fmt.Sprintf("framework: pytorch\ndataset: {format: npz, num_files_train: %d, num_subfolders_train: 1000, record_length_bytes: 150000}\n"+
		"reader: {data_loader: pytorch, batch_size: 1}\n", n)
	resolved, err := workload.Load(workload.Source{Name: "many.yaml", Data: []byte(text)}, workload.Options{})
	if err != nil {
		b.Fatal(err)
	}
	w := resolved.Workload
	r, err := datagen.FromWorkload(w)
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "m.json")
	f, err := manifest.Create(path, manifest.Meta{Recipe: r.JSON(), Layout: r.Layout()})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Abort()
	for _, s := range r.Sorted() {
		if err := f.Add(manifest.Entry{Path: s.Path, Size: s.Size}); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := f.Commit(); err != nil {
		b.Fatal(err)
	}
	m, err := manifest.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		d, err := openFiles(context.Background(), m, w)
		if err != nil {
			b.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.Sys-before.Sys)/n, "peak-bytes/file")
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/n, "bytes/file")
		runtime.KeepAlive(d)
	}
}
