package s3

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/storetest"
)

// versity starts the Versity S3 gateway over a new folder and returns its address. The slow suite has it built (scripts/deps.sh).
func versity(t *testing.T) (endpoint string) {
	t.Helper()
	if os.Getenv("BENCHPIN_LONG") != "1" {
		t.Skip("the Versity S3 gateway is asked in the slow suite only (BENCHPIN_LONG=1, make test-long)")
	}
	program, err := exec.LookPath("versitygw")
	if err != nil {
		if program, err = exec.LookPath(filepath.Join("..", "..", "..", "build", "peers", "bin", "versitygw")); err != nil {
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
	if err := os.Mkdir(filepath.Join(root, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(program, "--access", "key", "--secret", "secret-secret", "--port", address, "posix", root)
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

// TestContractOfRealServer runs the suite that every store passes against a server that people run, and that checks signatures.
func TestContractOfRealServer(t *testing.T) {
	endpoint := versity(t)
	n := 0
	storetest.Run(t, func(t *testing.T) store.Store {
		n++
		return bucket(t, endpoint, "s3://data/"+string(rune('a'+n)), func(o *Options) { o.Ranged = n%2 == 0 })
	}, storetest.Flat, storetest.Loses)
}

// TestWrongCredentials wants a refusal that says what to look at.
func TestWrongCredentials(t *testing.T) {
	b := bucket(t, versity(t), "s3://data", func(o *Options) { o.SecretKey = "another" })
	_, err := b.Stat("f")
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("AWS_SECRET_ACCESS_KEY")) {
		t.Errorf("stat: %v", err)
	}
}
