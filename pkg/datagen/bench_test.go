package datagen

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
		"jpeg":                {"format: jpeg", "num_files_train: 200", "record_length_bytes: 322957"},
		"jpeg/encoded":        {"format: jpeg", "num_files_train: 200", "record_length_bytes: 322957", "jpeg: {sizing: encoded}"},
		"png":                 {"format: png", "num_files_train: 200", "record_length_bytes: 322957"},
		"parquet":             {"format: parquet", "num_files_train: 4", "num_samples_per_file: 20000", "parquet: {columns: [{name: a, dtype: float32, size: 150}, {name: b, dtype: float16, size: 80}, {name: c, dtype: int8}]}"},
		"parquet/zstd":        {"format: parquet", "num_files_train: 4", "num_samples_per_file: 20000", "compression: zstd", "parquet: {columns: [{name: a, dtype: float32, size: 150}, {name: b, dtype: float16, size: 80}]}"},
	}
}

// BenchmarkGenerate makes data sets in every container in a folder, and in memory that is thrown away ("nowhere"). The reference, measured
// between the passes, writes as many random bytes, in pieces of 1 MiB, to as many files, one after the other. The metric "of-reference" is
// the speed as a part of the reference's; "MB/cpu-s" is what a core does in a second, which a busy
// machine changes less, and "reference-MB/cpu-s" the same of the reference.
func BenchmarkGenerate(b *testing.B) {
	random := make([]byte, pieceBytes)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	all := big()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := recipe(b, 1, all[name]...)
		sizes := make([]int64, r.Entries())
		var total int64
		for i := range sizes {
			n, err := r.Measure(i)
			if err != nil {
				b.Fatal(err)
			}
			sizes[i] = n
			total += n
		}
		reference := func(b *testing.B) time.Duration {
			dir := filepath.Join(b.TempDir(), "reference")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				b.Fatal(err)
			}
			defer os.RemoveAll(dir)
			start := time.Now()
			for i, n := range sizes {
				if err := writeRandom(filepath.Join(dir, fmt.Sprint(i)), n, random); err != nil {
					b.Fatal(err)
				}
			}
			return time.Since(start)
		}
		run := func(kind string, pass func(b *testing.B, dir string)) {
			b.Run(name+"/"+kind, func(b *testing.B) {
				b.SetBytes(total)
				var ours, theirs, used, usedThere time.Duration
				for b.Loop() {
					b.StopTimer()
					idle := cpuTime(b)
					theirs += reference(b)
					usedThere += cpuTime(b) - idle
					dir := filepath.Join(b.TempDir(), "data")
					_ = os.RemoveAll(dir)
					b.StartTimer()
					start, before := time.Now(), cpuTime(b)
					pass(b, dir)
					ours += time.Since(start)
					used += cpuTime(b) - before
				}
				b.ReportMetric(theirs.Seconds()/ours.Seconds(), "of-reference")
				b.ReportMetric(float64(total)*float64(b.N)/1e6/used.Seconds(), "MB/cpu-s")
				b.ReportMetric(float64(total)*float64(b.N)/1e6/usedThere.Seconds(), "reference-MB/cpu-s")
			})
		}
		run("folder", func(b *testing.B, dir string) { generate(b, folder(b, dir), r, Options{}) })
		run("nowhere", func(b *testing.B, dir string) { generate(b, nullStore{io.Discard}, r, Options{}) })
	}
}

// cpuTime is what this process has taken of all cores so far.
func cpuTime(b *testing.B) time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// writeRandom writes a file of n bytes in pieces.
func writeRandom(name string, n int64, piece []byte) error {
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
