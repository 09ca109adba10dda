package manifest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/store"
)

// cached are the data sets of 2 GB that b3sum and this package hash in turn, from memory.
var cached = []struct {
	name        string
	files, size int
}{{"4 files of 512 MiB", 4, 512 << 20}, {"20,000 files of 100 kB", 20_000, 100_000}}

// BenchmarkB3sum pins and verifies cached data sets, and runs Debian's b3sum --no-mmap over the same files between the passes, on the same
// cores: wall-ratio is the wall time as a part of b3sum's, cpu-ratio the same of CPU time, GB/cpu-s what a second of one core hashes.
// BENCHPIN_CPUS=1 leaves all of them one core. No page may come in by it; MB-fetched is what came from the device: 0, where the machine kept
// all in memory since b3sum had read it.
func BenchmarkB3sum(b *testing.B) {
	b3sum, err := exec.LookPath("b3sum")
	if err != nil {
		b.Skip("b3sum is not installed")
	}
	leaveCores(b)
	for _, set := range cached {
		b.Run(set.name, func(b *testing.B) {
			dir := b.TempDir()
			names := cachedFiles(b, dir, set.files, set.size)
			st, err := store.NewFolder(dir, store.FolderOptions{Uncached: true, Resident: true})
			if err != nil {
				b.Fatal(err)
			}
			manifest := filepath.Join(b.TempDir(), "m.json")
			pinned(b, st, manifest)
			m := opened(b, manifest)
			groups, err := OpenGroupsIfAny(manifest, m)
			if err != nil {
				b.Fatal(err)
			}
			list := filepath.Join(b.TempDir(), "list")
			if err := os.WriteFile(list, names, 0o666); err != nil {
				b.Fatal(err)
			}
			reference := func(b *testing.B) (wall, cpu time.Duration) {
				in, err := os.Open(list)
				if err != nil {
					b.Fatal(err)
				}
				defer in.Close()
				cmd := exec.Command("xargs", "-n", strconv.Itoa(set.files), b3sum, "--no-mmap")
				cmd.Stdin, cmd.Dir = in, dir
				start := time.Now()
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
				return time.Since(start), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			}
			for _, c := range []struct {
				name string
				run  func() error
			}{
				{"verify", func() error {
					_, err := Verify(context.Background(), m, st, VerifyOptions{Groups: groups})
					return err
				}},
				{"pin", func() error { return Build(context.Background(), st, NewWriter(io.Discard, Meta{}), BuildOptions{}) }},
			} {
				b.Run(c.name, func(b *testing.B) {
					var wall, cpu, otherWall, otherCPU time.Duration
					var warmed, fetched int64
					for b.Loop() {
						w, u := reference(b)
						otherWall, otherCPU = otherWall+w, otherCPU+u
						before, device := residentBytes(b, st), deviceBytes(b)
						used := cpuTime(b)
						start := time.Now()
						if err := c.run(); err != nil {
							b.Fatal(err)
						}
						wall, cpu = wall+time.Since(start), cpu+cpuTime(b)-used
						fetched = max(fetched, deviceBytes(b)-device)
						warmed = max(warmed, residentBytes(b, st)-before)
					}
					if warmed > 0 {
						b.Errorf("%d bytes more were in memory after than before", warmed)
					}
					b.ReportMetric(float64(fetched)/1e6, "MB-fetched")
					bytes := float64(set.files) * float64(set.size) * float64(b.N)
					b.ReportMetric(wall.Seconds()/otherWall.Seconds(), "wall-ratio")
					b.ReportMetric(cpu.Seconds()/otherCPU.Seconds(), "cpu-ratio")
					b.ReportMetric(bytes/1e9/cpu.Seconds(), "GB/cpu-s")
					b.ReportMetric(bytes/1e9/otherCPU.Seconds(), "b3sum-GB/cpu-s")
				})
			}
		})
	}
}

// leaveCores binds the process, and those that it starts, to as many cores as BENCHPIN_CPUS says.
func leaveCores(b *testing.B) {
	n, err := strconv.Atoi(os.Getenv("BENCHPIN_CPUS"))
	if err != nil {
		return
	}
	var all, some unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		b.Fatal(err)
	}
	for i := 0; some.Count() < n && i < 1024; i++ {
		if all.IsSet(i) {
			some.Set(i)
		}
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		b.Fatal(err)
	}
	for _, t := range threads {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			b.Fatal(err)
		}
		if err := unix.SchedSetaffinity(tid, &some); err != nil {
			b.Fatal(err)
		}
	}
	was := runtime.GOMAXPROCS(n)
	b.Cleanup(func() { runtime.GOMAXPROCS(was) })
}

// cachedFiles makes files of random bytes, which are then in memory, and returns their names, one a line.
func cachedFiles(b *testing.B, dir string, files, size int) (names []byte) {
	data := patterned(size+files, 1)
	for i := range files {
		name := fmt.Sprintf("%02d/%05d", i/1000, i)
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data[i:i+size], 0o666); err != nil {
			b.Fatal(err)
		}
		names = fmt.Appendln(names, name)
	}
	return names
}

func residentBytes(b *testing.B, st *store.Folder) (sum int64) {
	err := st.List(context.Background(), func(i store.Info) error {
		n, err := st.Resident(i.Path)
		sum += n
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return sum
}

// deviceBytes is what the kernel fetched from devices for this process.
func deviceBytes(b *testing.B) (n int64) {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Logf("what comes from the device is not counted: %v", err)
		return 0
	}
	var rchar, wchar, syscr, syscw int64
	if _, err := fmt.Sscanf(string(text), "rchar: %d\nwchar: %d\nsyscr: %d\nsyscw: %d\nread_bytes: %d\n", &rchar, &wchar, &syscr, &syscw, &n); err != nil {
		b.Fatal(err)
	}
	return n
}

func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
