package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
)

// The name of a file must not write lines of its own.
func TestNamesStayOnOneLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a\nblake3:0  quickstart.yaml")
	if err := os.WriteFile(path, []byte("train: {epochs: 1}\nnone: 1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	a := newApp()
	a.stdout, a.stderr, a.terminal, a.color = &stdout, &stderr, false, false
	if code := a.run(context.Background(), []string{"workload", "check", path}); code != exitDone {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	if strings.Count(stdout.String(), "\n") != 1 || strings.Contains(stderr.String(), "\nblake3:0") {
		t.Errorf("standard output %q, standard error %q", stdout.String(), stderr.String())
	}
}

// Keys with the empty password, which pipelines make, need no terminal and no variable; others still do.
func TestEmptyPasswordIsTried(t *testing.T) {
	key, err := attest.GenerateKey(attest.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	a := newApp()
	a.stdin = strings.NewReader("")
	a.lookupenv = func(string) (string, bool) { return "", false }
	for password, usable := range map[string]bool{"": true, "secret": false} {
		path := filepath.Join(t.TempDir(), "k")
		if err := attest.SaveKeyPair(key, path+".key", path+".pub", []byte(password)); err != nil {
			t.Fatal(err)
		}
		_, err := a.privateKey(path + ".key")
		if (err == nil) != usable || err != nil && !strings.Contains(err.Error(), "no terminal") {
			t.Errorf("password %q: %v", password, err)
		}
	}
}
