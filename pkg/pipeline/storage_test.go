package pipeline

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/environment"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

const storageYAML = `
framework: pytorch
dataset: {format: npz, num_files_train: 40, record_length_bytes: 1048576}
reader: {data_loader: pytorch, batch_size: 2, read_threads: 2}
train: {epochs: 2, computation_time: 0.002}
metric: {au: 0.01}
benchpin: {cold_cache: start}
`

// value is that of a figure, which must be there.
func value(t *testing.T, name string, f record.Figure) float64 {
	t.Helper()
	if f.Value == nil {
		t.Fatalf("%s is absent: %s", name, f.Absent)
	}
	return *f.Value
}

// countable says loudly when the file system of the tests cannot show where bytes come from, and fails in CI.
func countable(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	m := environment.NewMeter(dir, uint64(st.Dev))
	_, ioErr := os.ReadFile("/proc/self/io")
	if m.CountsProcess() && !m.Memory() && ioErr == nil {
		return
	}
	message := "THE BYTE COUNTS WERE NOT COMPARED WITH THE KERNEL'S: the folder for temporary files is on " + m.FileSystem + " at " + m.MountPoint +
		"; set TMPDIR to a folder on ext4, xfs or btrfs"
	skipOrFail(t, "%s", message)
}

// skipOrFail skips a test that this host cannot make, saying why; in CI that is a failure.
func skipOrFail(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// near2 holds a count to the kernel's within 2 %.
func near2(t *testing.T, what string, found, kernel float64) {
	t.Helper()
	if math.Abs(found-kernel) > 0.02*found {
		t.Errorf("%s: %.0f and %.0f bytes are %.2f %% apart", what, found, kernel, 100*math.Abs(found-kernel)/found)
	}
}

// TestBytesAgreeWithTheKernel: on a data set that fits in memory and begins cold, the first epoch comes from the device, by the counter of
// the process and by what is in the page cache after it; the second comes from memory, and the record and the page say so.
func TestBytesAgreeWithTheKernel(t *testing.T) {
	countable(t)
	w, err := workload.Load(workload.Source{Name: "w.yaml", Data: []byte(storageYAML)}, workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := wholeWay(t, w).Record
	for i, e := range r.Metrics.Epochs {
		s := e.Storage
		if s == nil || len(s.FileSystems) != 1 {
			t.Fatalf("epoch %d: storage is %+v", e.Epoch, s)
		}
		f := &s.FileSystems[0]
		asked, device := value(t, "asked", e.BytesAsked), value(t, "device", e.BytesDevice)
		near2(t, "asked by all readers and on the file system", asked, value(t, "asked", f.Asked))
		near2(t, "asked and cached after", asked, value(t, "cached after", f.CachedAfter))
		before := value(t, "cached before", f.CachedBefore)
		// What a device delivered and what was in memory before make up what was asked for.
		near2(t, "asked, and from the device and memory", asked, device+before)
		memory := value(t, "memory", s.Memory)
		if first := i == 0; first != (s.Dropped != nil) || first != (s.Sentence == "") {
			t.Errorf("epoch %d: dropped %+v, sentence %q", e.Epoch, s.Dropped, s.Sentence)
		} else if first {
			near2(t, "asked and from the device", asked, device)
			near2(t, "cached before it was dropped and the data set", value(t, "dropped", s.Dropped.Cached), float64(r.Dataset.Bytes))
		} else {
			near2(t, "asked and from memory", asked, memory)
		}
		if disk := f.Disk; disk.Value != nil && *disk.Value < 0.98*device {
			t.Errorf("epoch %d: the disk says that %v bytes were read, the process read %v", e.Epoch, *disk.Value, device)
		}
		t.Logf("epoch %d: asked %.0f, device %.0f, cached %.0f before, memory %.0f, disk %v", e.Epoch, asked, device, before, memory, f.Disk.Value)
	}
	if c := report.Cautions(r); len(c) == 0 || !strings.Contains(strings.Join(c, "\n"), "most of what epoch 2 asked for came from memory") {
		t.Errorf("cautions: %q", c)
	}
}

// TestColdEveryEpoch: with pages dropped before each epoch, every epoch comes from the device, read through the page cache or past it, and
// no sentence stands.
func TestColdEveryEpoch(t *testing.T) {
	countable(t)
	for _, set := range [][]string{{"benchpin.cold_cache=epoch"}, {"benchpin.cold_cache=none", "storage.storage_type=direct_fs"}} {
		w, err := workload.Load(workload.Source{Name: "w.yaml", Data: []byte(storageYAML)}, workload.Options{Set: set})
		if err != nil {
			t.Fatal(err)
		}
		r := wholeWay(t, w).Record
		direct := len(set) == 2
		if r.Plan.Direct != direct {
			t.Errorf("%v: plan.direct is %v", set, r.Plan.Direct)
		}
		for _, e := range r.Metrics.Epochs {
			near2(t, "asked and from the device", value(t, "asked", e.BytesAsked), value(t, "device", e.BytesDevice))
			if e.Storage.Sentence != "" || e.Storage.Direct != direct || (e.Storage.Dropped == nil) != direct {
				t.Errorf("%v: epoch %d: %+v", set, e.Epoch, e.Storage)
			}
		}
	}
}

// TestMeterSamples: where not all files are looked at, what the page cache holds of those stands for all, by their share of the bytes.
func TestMeterSamples(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), make([]byte, 8192), 0o666); err != nil {
		t.Fatal(err)
	}
	data, err := store.NewFolder(dir, store.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	there, err := data.Resident("a")
	if err != nil {
		t.Fatal(err)
	}
	for _, all := range []int64{8192, 4 * 8192} {
		s := &meteredSystem{looks: []string{"a"}, looked: 8192, bytes: all}
		if n, err := s.cached(t.Context(), data); err != nil || n != there*(all/8192) {
			t.Errorf("of %d bytes: %d cached, expected %d: %v", all, n, there*(all/8192), err)
		}
	}
	if _, err := (&meteredSystem{looks: []string{"none"}, looked: 1, bytes: 1}).cached(t.Context(), data); err == nil {
		t.Error("a file that is not there was looked at")
	}
}
