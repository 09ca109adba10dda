package datagen

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var makeGolden = flag.Bool("make-golden", false, "write the golden file, if there is none")

// after returns a channel that fires at a random moment, later on the average from call to call.
func after(n int) <-chan time.Time {
	return time.After(time.Duration(rand.Int64N(int64(n+1)*15)) * time.Millisecond)
}

// killed are data sets that take long enough to be killed in between: of one file each, and with companions.
func killed(t testing.TB) map[string]Recipe {
	t.Helper()
	return map[string]Recipe{
		"npz": recipe(t, 13, "format: npz", "num_files_train: 60", "record_length_bytes: 2000000", "record_length_bytes_stdev: 900000"),
		"tfrecord": recipe(t, 13, "format: tfrecord", "num_files_train: 50", "num_files_eval: 9", "num_subfolders_train: 4", "num_samples_per_file: 400",
			"record_length_bytes: 4000", "record_length_bytes_stdev: 900"),
	}
}

// goldenRecipes are data sets whose roots are frozen.
func goldenRecipes(t testing.TB) []Recipe {
	t.Helper()
	return []Recipe{
		small(t, 1), small(t, 18446744073709551615),
		recipe(t, 1, "format: npy", "num_files_train: 3", "record_dims: [5, 6, 7]", "record_element_type: float16"),
		recipe(t, 1, "format: npz", "num_files_train: 12", "num_files_eval: 4", "num_subfolders_eval: 2", "record_length_bytes: 300000",
			"record_length_bytes_stdev: 140000", "record_element_type: float64"),
	}
}

func goldenLines(t testing.TB) []string {
	t.Helper()
	var lines []string
	for _, r := range goldenRecipes(t) {
		h := generate(t, nullStore{io.Discard}, r, Options{})
		lines = append(lines, fmt.Sprintf("%s = %d %s", r.JSON(), h.Bytes, h.Root))
	}
	// Sizes of a large data set, without its bytes.
	r := recipe(t, 1, "format: npz", "num_files_train: 168", "record_length_bytes: 146600628", "record_length_bytes_stdev: 68341808")
	text := fmt.Sprintf("%s = %d", r.JSON(), r.TotalBytes())
	for i := range 8 {
		text += fmt.Sprint(" ", r.File(i).Layout.Dims)
	}
	return append(lines, text)
}

// containerLines are data sets in every container, whose roots are frozen too.
func containerLines(t testing.TB) []string { return linesOf(t, containers()) }

func packedLines(t testing.TB) []string { return linesOf(t, packedContainers()) }

func linesOf(t testing.TB, all map[string][]string) []string {
	t.Helper()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := recipe(t, 1, append(all[name], "num_files_train: 5", "num_files_eval: 3", "num_subfolders_eval: 2")...)
		h := generate(t, nullStore{io.Discard}, r, Options{})
		lines = append(lines, fmt.Sprintf("%s = %d %s", r.JSON(), h.Bytes, h.Root))
	}
	return lines
}

// goldenFiles are the files of frozen values, with what makes them and what they say of themselves.
func goldenFiles() map[string]struct {
	lines func(testing.TB) []string
	about string
} {
	return map[string]struct {
		lines func(testing.TB) []string
		about string
	}{
		"testdata/golden-v1.txt":            {goldenLines, "# Data sets of generator version 1: recipe = bytes root. They never change. The last line has sizes of samples."},
		"testdata/golden-v1-packed.txt":     {packedLines, "# Data sets of generator version 1, csv by bzip2 and xz: recipe = bytes root. They never change."},
		"testdata/golden-v1-containers.txt": {containerLines, "# Data sets of generator version 1 in every container: recipe = bytes root. They never change."},
	}
}

func TestMakeGolden(t *testing.T) {
	if !*makeGolden {
		t.Skip("golden values are only written with -make-golden, and never over existing ones")
	}
	for name, file := range goldenFiles() {
		if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Logf("%s exists: released values never change; a new generator version gets a new file", name)
			continue
		}
		if err := os.WriteFile(name, []byte(file.about+"\n"+strings.Join(file.lines(t), "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGolden(t *testing.T) {
	for name, file := range goldenFiles() {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimSpace(string(data)), "\n")[1:] // after the line about the file
		got := file.lines(t)
		if len(got) != len(want) {
			t.Fatalf("%s: %d golden values, %d computed", name, len(want), len(got))
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s:\n got %s\nwant %s", name, got[i], want[i])
			}
		}
	}
}

// TestGoldenOnARM64 runs the golden test as an arm64 binary under emulation.
func TestGoldenOnARM64(t *testing.T) {
	if os.Getenv("BENCHPIN_LONG") != "1" && os.Getenv("CI") == "" {
		t.Skip("cross-compiles and emulates; runs in CI and with BENCHPIN_LONG=1 (make test-long)")
	}
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		missing(t, "qemu-aarch64-static is not installed (Debian: qemu-user-static)")
	}
	bin := filepath.Join(t.TempDir(), "datagen.test")
	build := exec.Command("go", "test", "-c", "-o", bin, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cross-compile: %v\n%s", err, out)
	}
	out, err := exec.Command(qemu, bin, "-test.v", "-test.run", "^(TestGolden|TestSpread|TestWorkersDoNotShow|TestContainersAreTheSameEverywhere)$").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestGolden ") {
		t.Fatalf("on arm64: %v\n%s", err, out)
	}
}
