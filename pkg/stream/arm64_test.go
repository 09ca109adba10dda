package stream

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGoldenOnARM64 runs the golden tests of this package as an arm64 binary under emulation.
func TestGoldenOnARM64(t *testing.T) {
	if os.Getenv("BENCHPIN_LONG") != "1" && os.Getenv("CI") == "" {
		t.Skip("cross-compiles and emulates; runs in CI and with BENCHPIN_LONG=1 (make test-long)")
	}
	qemu := peer(t, "qemu-aarch64-static")
	bin := filepath.Join(t.TempDir(), "stream.test")
	build := exec.Command("go", "test", "-c", "-o", bin, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cross-compile: %v\n%s", err, out)
	}
	out, err := exec.Command(qemu, bin, "-test.v", "-test.run", "^(TestGolden|TestElementary|TestUniformRange|TestSliceOfWhole)$").CombinedOutput()
	if err != nil {
		t.Fatalf("on arm64: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}
