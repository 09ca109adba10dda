package datagen

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/store"
)

// big are data sets of some 64 MB in every container.
func big() map[string][]string {
	return map[string][]string{
		"npz/100KB":           {"format: npz", "num_files_train: 640", "record_length_bytes: 102400"},
		"npz/32MB":            {"format: npz", "num_files_train: 2", "record_length_bytes: 33554432"},
		"npz/zip":             {"format: npz", "num_files_train: 8", "record_length_bytes: 2097152", "compression: zip"},
		"npy":                 {"format: npy", "num_files_train: 8", "record_length_bytes: 8388608"},
		"hdf5":                {"format: hdf5", "num_files_train: 8", "record_length_bytes: 1048576", "num_samples_per_file: 8"},
		"tfrecord":            {"format: tfrecord", "num_files_train: 8", "record_length_bytes: 114660.07", "num_samples_per_file: 70"},
		"indexed_binary":      {"format: indexed_binary", "num_files_train: 8", "record_length_bytes: 102400", "num_samples_per_file: 80"},
		"mmap_indexed_binary": {"format: mmap_indexed_binary", "num_files_train: 8", "record_length_bytes: 2048", "num_samples_per_file: 4096"},
		"csv":                 {"format: csv", "num_files_train: 8", "record_length_bytes: 2097152"},
		"csv/gzip":            {"format: csv", "num_files_train: 8", "record_length_bytes: 1048576", "compression: gzip"},
		"csv/bz2":             {"format: csv", "num_files_train: 4", "record_length_bytes: 1048576", "compression: bz2"},
		"csv/xz":              {"format: csv", "num_files_train: 4", "record_length_bytes: 1048576", "compression: xz"},
		"jpeg":                {"format: jpeg", "num_files_train: 200", "record_length_bytes: 322957"},
		"jpeg/encoded":        {"format: jpeg", "num_files_train: 200", "record_length_bytes: 322957", "jpeg: {sizing: encoded}"},
		"png":                 {"format: png", "num_files_train: 200", "record_length_bytes: 322957"},
		"parquet":             {"format: parquet", "num_files_train: 4", "num_samples_per_file: 20000", "parquet: {columns: [{name: a, dtype: float32, size: 150}, {name: b, dtype: float16, size: 80}, {name: c, dtype: int8}]}"},
		"parquet/zstd":        {"format: parquet", "num_files_train: 4", "num_samples_per_file: 20000", "compression: zstd", "parquet: {columns: [{name: a, dtype: float32, size: 150}, {name: b, dtype: float16, size: 80}]}"},
	}
}

// BenchmarkGenerate makes data sets in every container, as many files at once as there are cores, in three places: "cache", a folder, which is the
// page cache where that has room; "device", the same until all files were synced (fsync), as many at once; and "nowhere", memory that is
// thrown away.
//
// The reference, measured between the passes, does only what cannot be left out: as many writers write as many random bytes, made
// beforehand, to as many files of the same sizes on the same file system, in pieces of 1 MiB, under their final names, and sync them in the
// same way. The metric "of-reference" is the speed as a part of the reference's, by the clock; "of-reference-cpu" is the same by the time that
// cores worked, which a busy machine changes less; "MB/s" and "MB/cpu-s" are the speeds themselves.
func BenchmarkGenerate(b *testing.B) {
	all := big()
	random := make([][]byte, runtime.GOMAXPROCS(0)) // of each writer
	for i := range random {
		random[i] = store.AlignedBuffer(pieceBytes)
		for j := range random[i] {
			random[i][j] = byte(rand.Uint32())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := recipe(b, 1, all[name]...)
		sizes, paths, total := make([]int64, r.Entries()), make([]string, r.Entries()), int64(0)
		for i := range sizes {
			n, err := r.Measure(i)
			if err != nil {
				b.Fatal(err)
			}
			sizes[i], paths[i] = n, r.Entry(i).Path
			total += n
		}
		for _, place := range []string{"cache", "device", "nowhere"} {
			b.Run(name+"/"+place, func(b *testing.B) {
				b.SetBytes(total)
				var ours, theirs cost
				for pass := 0; b.Loop(); pass++ {
					b.StopTimer()
					dir := filepath.Join(b.TempDir(), fmt.Sprint(pass))
					reference, data := filepath.Join(dir, "reference"), filepath.Join(dir, "data")
					for _, path := range paths {
						if err := os.MkdirAll(filepath.Dir(filepath.Join(reference, path)), 0o755); err != nil {
							b.Fatal(err)
						}
					}
					theirs.add(b, func() {
						atOnce(b, paths, func(writer, i int) error {
							return writeFile(filepath.Join(reference, paths[i]), sizes[i], random[writer])
						})
						if place == "device" {
							atOnce(b, paths, func(_, i int) error { return syncFile(filepath.Join(reference, paths[i])) })
						}
					})
					if err := os.RemoveAll(reference); err != nil {
						b.Fatal(err)
					}
					var st Store = nullStore{io.Discard}
					if place != "nowhere" {
						f, err := store.NewFolder(data, store.FolderOptions{Begin: true})
						if err != nil {
							b.Fatal(err)
						}
						st = f
					}
					b.StartTimer()
					ours.add(b, func() {
						generate(b, st, r, Options{})
						if place == "device" {
							atOnce(b, paths, func(_, i int) error { return syncFile(filepath.Join(data, paths[i])) })
						}
					})
					b.StopTimer()
					if err := os.RemoveAll(dir); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
				b.ReportMetric(theirs.clock.Seconds()/ours.clock.Seconds(), "of-reference")
				b.ReportMetric(theirs.cpu.Seconds()/ours.cpu.Seconds(), "of-reference-cpu")
				b.ReportMetric(float64(total)*float64(b.N)/1e6/ours.cpu.Seconds(), "MB/cpu-s")
			})
		}
	}
}

// cost is what something took by the clock, and of all cores.
type cost struct{ clock, cpu time.Duration }

func (c *cost) add(b *testing.B, f func()) {
	start, before := time.Now(), cpuTime(b)
	f()
	c.clock += time.Since(start)
	c.cpu += cpuTime(b) - before
}

// atOnce calls f for each of the files, as many at once as there are cores.
func atOnce(b *testing.B, files []string, f func(writer, i int) error) {
	var next atomic.Int64
	var group errgroup.Group
	for writer := range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			for i := int(next.Add(1)) - 1; i < len(files); i = int(next.Add(1)) - 1 {
				if err := f(writer, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

// writeFile writes a file of n bytes in pieces.
func writeFile(name string, n int64, piece []byte) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	for n > 0 && err == nil {
		var done int
		done, err = f.Write(piece[:min(n, int64(len(piece)))])
		n -= int64(done)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// cpuTime is what this process has taken of all cores so far.
func cpuTime(b *testing.B) time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
