package datagen

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var makeGolden = flag.Bool("make-golden", false, "write the golden file, if there is none")

const goldenFile = "testdata/golden-v1.txt"

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

func TestMakeGolden(t *testing.T) {
	if !*makeGolden {
		t.Skip("golden values are only written with -make-golden, and never over existing ones")
	}
	if _, err := os.Stat(goldenFile); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s exists: released values never change; a new generator version gets a new file", goldenFile)
	}
	text := "# Data sets of generator version 1: recipe = bytes root. They never change. The last line has sizes of samples.\n" +
		strings.Join(goldenLines(t), "\n") + "\n"
	if err := os.WriteFile(goldenFile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestGolden(t *testing.T) {
	f, err := os.Open(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var want []string
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if !strings.HasPrefix(sc.Text(), "#") {
			want = append(want, sc.Text())
		}
	}
	got := goldenLines(t)
	if len(got) != len(want) {
		t.Fatalf("%d golden values, %d computed", len(want), len(got))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("\n got %s\nwant %s", got[i], want[i])
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
	out, err := exec.Command(qemu, bin, "-test.v", "-test.run", "^(TestGolden|TestSpread|TestWorkersDoNotShow|TestDLIOTrees)$").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestGolden ") {
		t.Fatalf("on arm64: %v\n%s", err, out)
	}
}
