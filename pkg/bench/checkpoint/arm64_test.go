package checkpoint

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGoldenOnARM64 runs the golden and size tests of this package as an arm64 binary under emulation.
func TestGoldenOnARM64(t *testing.T) {
	if os.Getenv("CI") == "" {
		long(t)
	}
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		missing(t, "no qemu-aarch64-static (Debian: qemu-user-static)")
	}
	bin := filepath.Join(t.TempDir(), "checkpoint.test")
	build := exec.Command("go", "test", "-c", "-o", bin, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cross-compile: %v\n%s", err, out)
	}
	out, err := exec.Command(qemu, bin, "-test.v", "-test.run", "^(TestGoldenDigests|TestGoldenTransformers|TestSizesAreDLIOs|TestPayloadOfEveryRank|TestBundleGolden)$").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("PASS: TestGoldenDigests")) || !bytes.Contains(out, []byte("PASS: TestGoldenTransformers")) ||
		!bytes.Contains(out, []byte("PASS: TestBundleGolden")) {
		t.Fatalf("on arm64: %v\n%s", err, out)
	}
}
