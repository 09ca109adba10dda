package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/datagen"
	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/workload"
)

// BenchmarkStartUp is all that a run does before its first sample, on files that are there: reading the manifest, planning, the order of
// the epoch, the expected transcript, looking at the storage, starting 8 accelerators. The goal for 10^6 files is 2 s. flat is the
// processor time for each file as a part of what it is with 10^4 files in the same run: at most 1 where the cost does not grow with their number.
func BenchmarkStartUp(b *testing.B) {
	var few time.Duration
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n, "files"), func(b *testing.B) {
			dir := b.TempDir()
			resolved, r := manyFiles(b, n)
			header := manyEntries(b, dir, r)
			data := filepath.Join(dir, "data")
			makeSparse(b, data, r)
			var cpu time.Duration
			runs := 0
			for b.Loop() {
				runs++
				start := processTime()
				_, err := Run(context.Background(), RunOptions{Workload: resolved, Data: data, Manifest: header, Out: filepath.Join(dir, fmt.Sprint("run", runs)),
					Checkpoints: filepath.Join(dir, "checkpoints")})
				cpu += processTime() - start
				if bad := (*format.DataError)(nil); !errors.As(err, &bad) {
					b.Fatalf("expected the run to end at its first sample, which has no content; found %v", err)
				}
			}
			each := cpu / time.Duration(runs*n)
			if few == 0 {
				few = each
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(runs), "s")
			b.ReportMetric(cpu.Seconds()/float64(runs), "cpu-s")
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(runs*n), "cpu-ns/file")
			b.ReportMetric(float64(each)/float64(max(1, few)), "flat")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func manyFiles(b *testing.B, n int) (*workload.Resolved, datagen.Recipe) {
	b.Helper()
	text := fmt.Sprintf("framework: pytorch\ndataset: {format: npz, num_files_train: %d, num_subfolders_train: 100, record_length_bytes: 1024}\n"+
		"reader: {data_loader: pytorch, batch_size: 4, read_threads: 2, file_shuffle: seed, sample_shuffle: seed}\n"+
		"train: {epochs: 1, computation_time: 0.01}\nbenchpin: {accelerators: 8, verify: none, cold_cache: none}\n", n)
	resolved, err := workload.Load(workload.Source{Name: "many.yaml", Data: []byte(text)}, workload.Options{})
	if err != nil {
		b.Fatal(err)
	}
	r, err := datagen.FromWorkload(resolved.Workload)
	if err != nil {
		b.Fatal(err)
	}
	return resolved, r
}

// manyEntries writes a manifest of a recipe's files without making any of them.
func manyEntries(b *testing.B, dir string, r datagen.Recipe) string {
	b.Helper()
	path := filepath.Join(dir, "m.json")
	f, err := manifest.Create(path, manifest.Meta{Recipe: r.JSON(), Layout: r.Layout()})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Abort()
	for i, s := range r.Sorted() {
		e := manifest.Entry{Path: s.Path, Size: s.Size}
		for k := range e.Digest { // that nothing can compress
			i = i*6364136223846793005 + 1442695040888963407
			e.Digest[k] = byte(i >> 56)
		}
		if err := f.Add(e); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := f.Commit(); err != nil {
		b.Fatal(err)
	}
	return path
}

// makeSparse makes a recipe's files with their sizes and no content.
func makeSparse(b *testing.B, dir string, r datagen.Recipe) {
	b.Helper()
	paths := make(chan datagen.FileSpec, 1024)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for f := range paths {
				name := filepath.Join(dir, f.Path)
				fd, err := unix.Open(name, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o666)
				if err == unix.ENOENT {
					if err = os.MkdirAll(filepath.Dir(name), 0o777); err == nil {
						fd, err = unix.Open(name, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o666)
					}
				}
				if err != nil {
					b.Errorf("%s: %v", name, err)
					continue
				}
				if err := unix.Ftruncate(fd, f.Size); err != nil {
					b.Errorf("%s: %v", name, err)
				}
				unix.Close(fd)
			}
		})
	}
	for _, f := range r.Sorted() {
		paths <- f
	}
	close(paths)
	wg.Wait()
}

func processTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
