package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
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
		_, err := a.privateKey(context.Background(), path+".key")
		if (err == nil) != usable || err != nil && !strings.Contains(err.Error(), "no terminal") {
			t.Errorf("password %q: %v", password, err)
		}
	}
}

func TestPublicHalf(t *testing.T) {
	dir := t.TempDir()
	var keys [2]*attest.PrivateKey
	for i, name := range []string{"me", "other"} {
		key, err := attest.GenerateKey(attest.Ed25519)
		if err != nil {
			t.Fatal(err)
		}
		if err := attest.SaveKeyPair(key, filepath.Join(dir, name+".key"), filepath.Join(dir, name+".pub"), []byte{}); err != nil {
			t.Fatal(err)
		}
		keys[i] = key
	}
	me := filepath.Join(dir, "me")
	if got := publicHalf(me+".key", keys[0]); got != me+".pub" {
		t.Errorf("found %q", got)
	}
	// A key of another pair, a name of another kind, and no key have none.
	for _, got := range []string{publicHalf(me+".key", keys[1]), publicHalf(me, keys[0]), publicHalf("", nil)} {
		if got != "" {
			t.Errorf("found %q", got)
		}
	}
}

// Standard error says the same of failed checks as the page does.
func TestFailedChecksAreCountedAsOnThePage(t *testing.T) {
	v := &attest.Verification{}
	v.Add(attest.NewCheck("a", "C", "", ""))
	v.Add(attest.NewCheck("b", "C", "", "", fault.New(fault.Record, "", "wrong")))
	v.Add(attest.NewCheck("c", "C", "", "", fault.New(fault.Unchecked, "", "b was refused")))
	v.Add(attest.NewCheck("d", "C", "", "", fault.New(fault.Unchecked, "", "b was refused")))
	if err := failedChecks(v); err == nil || !strings.Contains(err.Error(), "1 of 4 checks failed, 2 could not be made") || exitCode(err) != exitVerify {
		t.Errorf("%v", err)
	}
}
