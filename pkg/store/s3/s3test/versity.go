package s3test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Versity starts the Versity S3 gateway over a new folder with the given buckets, and returns its address. It is asked in the slow suite
// only, which has it built (scripts/deps.sh).
func Versity(t *testing.T, buckets ...string) (endpoint string) {
	t.Helper()
	if os.Getenv("BENCHPIN_LONG") != "1" {
		t.Skip("the Versity S3 gateway is asked in the slow suite only (BENCHPIN_LONG=1, make test-long)")
	}
	program, err := exec.LookPath("versitygw")
	if err != nil {
		if program = built(); program == "" {
			if os.Getenv("CI") != "" {
				t.Fatal("versitygw is missing; make deps builds it for the slow suite")
			}
			t.Skip("versitygw is missing; make deps builds it for the slow suite")
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	root := t.TempDir()
	for _, name := range buckets {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var said bytes.Buffer
	cmd := exec.Command(program, "--access", AccessKey, "--secret", SecretKey, "--port", address, "posix", root)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return "http://" + address
		}
		if time.Now().After(end) {
			t.Fatalf("versitygw does not answer: %v\n%s", err, said.Bytes())
		}
	}
}

// built finds the gateway that make deps built, in build/peers/bin of the module.
func built() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			program := filepath.Join(dir, "build", "peers", "bin", "versitygw")
			if _, err := os.Stat(program); err == nil {
				return program
			}
			return ""
		}
	}
	return ""
}
