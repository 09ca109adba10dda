package format

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var makeGolden = flag.Bool("make-golden", false, "write the golden file, if there is none")

const goldenFile = "testdata/golden-v1.txt"

// goldenLines computes the digests of one small file of each format, element type and shape.
func goldenLines(t testing.TB) []string {
	t.Helper()
	var lines []string
	for _, name := range []string{"npy", "npz"} {
		f, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range dtypes() {
			for _, l := range []Layout{{Dims: []int{21, 13}, Samples: 1}, {Dims: []int{3, 5, 100}, Samples: 7}} {
				l.DType = d.DType
				lines = append(lines, fmt.Sprintf("%s %s %v %d = sha256:%x", name, d.Name, l.Dims, l.Samples,
					sha256.Sum256(written(t, f, l, 2026, MinBuffer))))
			}
		}
	}
	return lines
}

func TestMakeGolden(t *testing.T) {
	if !*makeGolden {
		t.Skip("golden values are only written with -make-golden, and never over existing ones")
	}
	if _, err := os.Stat(goldenFile); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s exists: released values never change", goldenFile)
	}
	text := "# Files of every format and element type: stream 3 of domain benchpin/test, version 1, seed 2026. They never change.\n" +
		"# format, element type, dimensions of a sample, samples = digest of the file\n" + strings.Join(goldenLines(t), "\n") + "\n"
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
	bin := filepath.Join(t.TempDir(), "format.test")
	build := exec.Command("go", "test", "-c", "-o", bin, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cross-compile: %v\n%s", err, out)
	}
	out, err := exec.Command(qemu, bin, "-test.v", "-test.run",
		"^(TestGolden|TestGoldenHDF5|TestGoldenRecords|TestGoldenTables|TestSizes|TestSliceOfWhole)$").CombinedOutput()
	for _, test := range []string{"TestGolden", "TestGoldenHDF5", "TestGoldenRecords", "TestGoldenTables"} {
		if err != nil || !strings.Contains(string(out), "--- PASS: "+test+" ") {
			t.Fatalf("%s on arm64: %v\n%s", test, err, out)
		}
	}
}
