package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/attest/sigstore/sigstoretest"
)

// The time of a run, bounded from outside: a public value before it, an authority after it, and what "verify" says that proves.
func TestTimeBracketCommands(t *testing.T) {
	dir := t.TempDir()
	tsa := sigstoretest.NewTimestamps(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	known := time.Now().UTC().Truncate(time.Second).Format(time.RFC3339)
	for name, text := range map[string]string{"tsa.pem": string(tsa.PEM()), "small.yaml": tinyWorkload,
		"value.yaml": "policy: benchpin.policy/v1\nnot_before: [{value: \"nonce 4711\", time: \"" + known + "\"}]\nmaximum_age: 1h\nage_from: not_before\n",
		"other.yaml": "policy: benchpin.policy/v1\nnot_before: [{value: \"nonce 4712\", time: \"" + known + "\"}]\n"} {
		if err := os.WriteFile(at(name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"BENCHPIN_PASSWORD": ""}
	expect := func(want int, wantOut, wantErr string, args ...string) string {
		t.Helper()
		code, stdout, stderr := ownCommandLine(t, env, args...)
		if code != want || !strings.Contains(stdout, wantOut) || !strings.Contains(stderr, wantErr) {
			t.Fatalf("%s: exit code %d\n%s\n%s", strings.Join(args, " "), code, stdout, stderr)
		}
		return stdout
	}
	expect(exitDone, "", "", "key", "generate", "--out", at("me"))
	value := []string{"--not-before-value", "nonce 4711", "--not-before-source", "the auditor's mail", "--not-before-time", known}
	expect(exitDone, "", "", "data", "generate", at("small.yaml"), "--data", at("d"))
	run := func(out string, more ...string) []string {
		return append([]string{"run", at("small.yaml"), "--data", at("d"), "--out", at(out)}, more...)
	}
	// What is not whole, and what cannot be, is refused before anything is done.
	expect(exitUsage, "", "expected --not-before-", run("x", value[:4]...)...)
	expect(exitUsage, "", "expected a time", run("x", append(value[:4:4], "--not-before-time", "noon")...)...)
	expect(exitUsage, "", "cannot be had", run("x", append(value[:4:4], "--not-before-time", "2999-01-01T00:00:00Z")...)...)
	expect(exitUsage, "", "one line", run("x", append([]string{"--not-before-value", "a\nb"}, value[2:]...)...)...)
	expect(exitUsage, "", "needs --timestamp-roots", run("x", "--timestamp-url", tsa.URL)...)
	expect(exitUsage, "", "expected http", run("x", "--timestamp-url", "ftp://x", "--timestamp-roots", at("tsa.pem"))...)
	if _, err := os.Stat(at("x")); err == nil || tsa.Asked() != 0 {
		t.Fatalf("something was done: %v, %d requests", err, tsa.Asked())
	}
	stamp := []string{"--timestamp-url", tsa.URL, "--timestamp-roots", at("tsa.pem")}
	expect(exitDone, "", "no timestamp is asked for", run("unasked", "--timestamp-roots", at("tsa.pem"))...)
	stdout := expect(exitDone, `"not_before": {`, "stamped", run("r", append(append(value, stamp...), "--json")...)...)
	var rec struct {
		Transcript struct{ Root string }
		Files      []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(stdout), &rec); err != nil || tsa.Asked() != 1 || !strings.Contains(stdout, `"transcript.tsr"`) {
		t.Fatalf("%v, %d requests\n%s", err, tsa.Asked(), stdout)
	}
	// Whoever has the value knows the transcript, and nobody else.
	expect(exitDone, rec.Transcript.Root, "", "transcript", "expected", at("small.yaml"), "--not-before-value", "nonce 4711")
	if plain := expect(exitDone, "", "", "transcript", "expected", at("small.yaml")); strings.Contains(plain, rec.Transcript.Root) {
		t.Error("the value makes no difference")
	}
	expect(exitDone, "", "", "transcript", "check", at("r"))
	expect(exitDone, "sha256:", "", "attest", at("r"), "--manifest", at("d.manifest.json"), "--archive", at("a"), "--key", at("me.key"))
	verify := func(more ...string) []string {
		return append([]string{"verify", at("a"), "--key", at("me.pub"), "--json"}, more...)
	}
	expect(exitDone, "the run took at most ", "", verify("--timestamp-roots", at("tsa.pem"))...)
	expect(exitDone, "nothing bounds the run from above", "", verify()...)
	expect(exitDone, "by the policy", "", "verify", at("a"), "--key", at("me.pub"), "--json", "--policy", at("value.yaml"), "--timestamp-roots", at("tsa.pem"), "--max-age-from", "not_before", "--max-age", "1h", "--allow-unavailable")
	expect(exitVerify, "is the host's word", "", verify("--timestamp-roots", at("tsa.pem"), "--max-age-from", "not_before", "--max-age", "1h")...)
	expect(exitVerify, "which is none of the 1 values", "", verify("--policy", at("other.yaml"))...)
	// A replay draws with the same value.
	expect(exitDone, `"outcome": "same"`, "", "replay", at("a"), "--key", at("me.pub"), "--dir", at("again"), "--json")
	// The whole way, with the authority's word on the signatures too.
	expect(exitDone, "", "stamped", append(append([]string{"pipeline", at("small.yaml"), "--dir", at("p"), "--key", at("me.key"), "--json"}, value...), stamp...)...)
	expect(exitDone, "the run took at most ", "", "verify", at("p/archive"), "--key", at("me.pub"), "--timestamp-roots", at("tsa.pem"), "--json", "--require-timestamp")
	// An authority that does not answer costs the timestamp and not the result.
	tsa.Answer = func([]byte) []byte { return nil }
	expect(exitFailure, "", "the transcript was not timestamped, and its result is complete and kept", run("late", stamp...)...)
	expect(exitDone, `"status": "complete"`, "", "report", at("late"), "--json")
}

// What reads no data has no order and no transcript: neither bound has a meaning, and the signatures of such a result are timestamped all the same.
func TestTimeBracketOfCheckpoints(t *testing.T) {
	dir := t.TempDir()
	tsa := sigstoretest.NewTimestamps(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"tsa.pem": string(tsa.PEM()), "saves.yaml": "model: {name: m, model_size: 1024}\nframework: pytorch\n" +
		"workflow: {train: false, checkpoint: true}\ncheckpoint: {num_checkpoints_write: 1, num_checkpoints_read: 1}\n"} {
		if err := os.WriteFile(at(name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"BENCHPIN_PASSWORD": ""}
	expect := func(want int, wantErr string, args ...string) {
		t.Helper()
		if code, stdout, stderr := ownCommandLine(t, env, args...); code != want || !strings.Contains(stderr, wantErr) {
			t.Fatalf("%s: exit code %d\n%s\n%s", strings.Join(args, " "), code, stdout, stderr)
		}
	}
	expect(exitDone, "", "key", "generate", "--out", at("me"))
	run := []string{"run", at("saves.yaml"), "--checkpoints", at("c"), "--out", at("r")}
	stamp := []string{"--timestamp-url", tsa.URL, "--timestamp-roots", at("tsa.pem")}
	expect(exitUsage, "no transcript", append(run, stamp...)...)
	expect(exitUsage, "no order", append(run, "--not-before-value", "x", "--not-before-source", "y", "--not-before-time", "2026-01-01T00:00:00Z")...)
	if tsa.Asked() != 0 {
		t.Errorf("somebody was asked %d times", tsa.Asked())
	}
	expect(exitDone, "", append([]string{"pipeline", at("saves.yaml"), "--dir", at("p"), "--key", at("me.key")}, stamp...)...)
	expect(exitDone, "", "verify", at("p/archive"), "--key", at("me.pub"), "--timestamp-roots", at("tsa.pem"), "--require-timestamp")
}
