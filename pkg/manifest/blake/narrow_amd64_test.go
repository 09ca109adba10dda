package blake

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/cpu"
)

// narrow makes the package do without the assembly for the rest of the test.
func narrow(t *testing.T) {
	was := cpu.X86.HasAVX512F
	cpu.X86.HasAVX512F = false
	t.Cleanup(func() { cpu.X86.HasAVX512F = was })
}

// The assembly is what gen.go writes.
func TestGenerated(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.s")
	if b, err := exec.Command("go", "run", "gen.go", out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	want, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("compress_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(have) {
		t.Error("compress_amd64.s is not what gen.go writes: run go generate")
	}
}
