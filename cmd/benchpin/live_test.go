package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// slowly is a workload of a few seconds.
const slowly = `
framework: pytorch
dataset: {format: npz, num_files_train: 24, record_length_bytes: 1024}
reader: {data_loader: pytorch, batch_size: 1}
train: {epochs: 1, computation_time: 0.1}
metric: {au: 0.01}
`

// lines is what a command prints, looked at while it goes on.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// silent is an app that prints nowhere.
func silent() *app {
	a := newApp()
	a.stdout, a.stderr, a.terminal = io.Discard, io.Discard, false
	return a
}

// TestMetricsEndpoint scrapes a run while it goes on, over the network as Prometheus does. Only this host reaches it, and it ends with the
// command.
func TestMetricsEndpoint(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("slow.yaml", []byte(slowly), 0o644); err != nil {
		t.Fatal(err)
	}
	if code := silent().run(t.Context(), strings.Fields("data generate slow.yaml --data d")); code != exitDone {
		t.Fatalf("generate: exit code %d", code)
	}
	said := &lines{}
	a := newApp()
	a.stdout, a.stderr, a.terminal = io.Discard, said, false
	ended := make(chan int, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { ended <- a.run(ctx, strings.Fields("run slow.yaml --data d --out r --metrics :0")) }()
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/metrics`)
	var found string
	for found == "" || !strings.Contains(found, "benchpin_samples_total") {
		select {
		case code := <-ended:
			t.Fatalf("the run ended with %d before it was scraped:\n%s\n%s", code, said, found)
		case <-time.After(50 * time.Millisecond):
		}
		if url := address.FindString(said.String()); url != "" {
			res, err := http.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
				t.Fatalf("status %d, %q: %v", res.StatusCode, res.Header.Get("Content-Type"), err)
			}
			found = string(b)
		}
	}
	for _, want := range []string{"benchpin_run_ended 0\n", "benchpin_samples_planned 24\n", "benchpin_steps 24\n", "benchpin_accelerators 1\n", "benchpin_au_threshold_ratio 0.01\n"} {
		if !strings.Contains(found, want) {
			t.Errorf("expected %q in\n%s", want, found)
		}
	}
	if code := <-ended; code != exitDone {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	if res, err := http.Get(address.FindString(said.String())); err == nil {
		res.Body.Close()
		t.Error("the endpoint outlived the command")
	}
}

// TestRunOnATerminal draws a run, and takes the drawing away before it prints anything else.
func TestRunOnATerminal(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("slow.yaml", []byte(slowly), 0o644); err != nil {
		t.Fatal(err)
	}
	if code := silent().run(t.Context(), strings.Fields("data generate slow.yaml --data d")); code != exitDone {
		t.Fatalf("generate: exit code %d", code)
	}
	for term, drawn := range map[string]bool{"xterm": true, "dumb": false} {
		said := &lines{}
		a := newApp()
		a.stdout, a.stderr, a.terminal, a.columns = io.Discard, said, true, func() int { return 100 }
		a.lookupenv = func(name string) (string, bool) { return term, name == "TERM" }
		if code := a.run(t.Context(), strings.Fields("run slow.yaml --data d --out "+filepath.Join(dir, term))); code != exitDone {
			t.Fatalf("exit code %d:\n%s", code, said)
		}
		text := said.String()
		if strings.Contains(text, "\x1b[") != drawn || strings.Contains(text, "epoch 1 of 1, step ") != drawn {
			t.Errorf("TERM=%s: found %q", term, text)
		}
		if _, after, ok := strings.Cut(text, "run folder: "); !ok || strings.Contains(after, "\x1b") || drawn && !strings.Contains(text, "A\r\x1b[Jrun folder: ") {
			t.Errorf("TERM=%s: expected the drawing to be gone before the end: %q", term, text)
		}
	}
}
