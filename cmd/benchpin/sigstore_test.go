package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest/sigstore/sigstoretest"
)

const tinyWorkload = `model: {name: small}
framework: pytorch
workflow: {train: true}
dataset: {format: npz, num_files_train: 8, record_length_bytes: 4096}
reader: {data_loader: pytorch, batch_size: 2, read_threads: 1, file_shuffle: seed}
train: {epochs: 2, computation_time: 0.02}
metric: {au: 0.1}
benchpin: {accelerators: 2}
`

// ownCommandLine runs a command as a user would, with an environment of its own.
func ownCommandLine(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	a := newApp()
	a.stdout, a.stderr, a.terminal, a.color = &out, &errs, false, false
	a.lookupenv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	code = a.run(context.Background(), args)
	return code, out.String(), errs.String()
}

// The command line without a key: sign as somebody, verify who it was.
func TestKeylessCommands(t *testing.T) {
	dir := t.TempDir()
	s := sigstoretest.New(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	token := sigstoretest.Token("dev@example.com", "https://issuer.example")
	for name, data := range map[string][]byte{"root.json": s.TrustedRoot(t, true), "small.yaml": []byte(tinyWorkload), "token": []byte(token + "\n"),
		"policy.yaml":  []byte("policy: benchpin.policy/v1\nfigures: {au: {minimum: 0}}\n"),
		"who.yaml":     []byte("policy: benchpin.policy/v1\nidentities: [{san: dev@example.com, issuer_pattern: \"https://.*\"}]\ntrusted_root: {file: root.json}\n"),
		"nobody.yaml":  []byte("policy: benchpin.policy/v1\nidentities: [{san: else@example.com, issuer: \"https://issuer.example\"}]\ntrusted_root: {file: root.json}\n"),
		"noroot.yaml":  []byte("policy: benchpin.policy/v1\nidentities: [{san: dev@example.com, issuer: \"https://issuer.example\"}]\n"),
		"notroot.yaml": []byte("policy: benchpin.policy/v1\nkeys: [{file: out/keys/benchpin.pub}]\ntrusted_root: {file: token}\n")} {
		if err := os.WriteFile(at(name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{}
	expect := func(want int, wantOut, wantErr string, args ...string) {
		t.Helper()
		if code, stdout, stderr := ownCommandLine(t, env, args...); code != want || !strings.Contains(stdout, wantOut) || !strings.Contains(stderr, wantErr) {
			t.Fatalf("%s: exit code %d\n%s\n%s", strings.Join(args, " "), code, stdout, stderr)
		}
	}
	expect(exitDone, "", "", "pipeline", at("small.yaml"), "--dir", at("out"))
	archive := at("out/archive")
	sign := func(more ...string) []string {
		return append([]string{"attest", "--archive", archive, "--fulcio-url", s.Fulcio}, more...)
	}
	expect(exitUsage, "", "--rekor-url or --timestamp-url", sign("--trusted-root", at("root.json"), "--identity-token-file", at("token"))...)
	expect(exitUsage, "", "--identity-token", sign("--trusted-root", at("root.json"), "--rekor-url", s.Rekor)...)
	expect(exitUsage, "", "--trusted-root", sign("--identity-token-file", at("token"), "--rekor-url", s.Rekor)...)
	expect(exitUsage, "", "give one", sign("--key", "me.key", "--rekor-url", s.Rekor)...)
	expect(exitUsage, "", "expected http", sign("--rekor-url", "rekor")...)
	expect(exitUsage, "", "go with --fulcio-url", "attest", "--archive", archive, "--key", "me.key", "--rekor-url", s.Rekor)
	if s.Asked() != 0 {
		t.Fatalf("somebody was asked %d times", s.Asked())
	}
	expect(exitDone, "sha256:", "", sign("--trusted-root", at("root.json"), "--identity-token-file", at("token"), "--rekor-url", s.Rekor)...)
	env["BENCHPIN_IDENTITY_TOKEN"] = token
	expect(exitDone, "sha256:", "attests the archive already", sign("--trusted-root", at("root.json"), "--rekor-url", s.Rekor)...)
	delete(env, "BENCHPIN_IDENTITY_TOKEN")
	// A log of version 2 proves no time.
	expect(exitUsage, "", "needs --timestamp-url", sign("--trusted-root", at("root.json"), "--identity-token-file", at("token"), "--rekor-url", s.Rekor, "--rekor-version", "2")...)
	expect(exitUsage, "", "expected 1 or 2", sign("--trusted-root", at("root.json"), "--identity-token-file", at("token"), "--rekor-url", s.Rekor, "--rekor-version", "3")...)
	two := sigstoretest.New(t)
	two.Tiles = sigstoretest.NewTiles(t)
	if err := os.WriteFile(at("two.json"), two.TrustedRoot(t, true), 0o666); err != nil {
		t.Fatal(err)
	}
	expect(exitDone, "", "attestation: ", "verify", archive, "--key", at("out/keys/benchpin.pub"), "--out", at("two.review"), "--fulcio-url", two.Fulcio, "--rekor-url", two.Tiles.URL, "--rekor-version", "2",
		"--timestamp-url", two.Timestamps.URL, "--trusted-root", at("two.json"), "--identity-token-file", at("token"))
	if two.Tiles.Asked() != 1 {
		t.Errorf("the log was asked %d times", two.Tiles.Asked())
	}

	verify := func(more ...string) []string { return append([]string{"verify", archive}, more...) }
	who := []string{"--trusted-root", at("root.json"), "--certificate-identity", "dev@example.com"}
	expect(exitDone, "identity dev@example.com, by https://issuer.example", "", verify(append(who, "--certificate-oidc-issuer", "https://issuer.example", "--require-timestamp")...)...)
	expect(exitDone, "VERDICT: VERIFIED", "", verify(append(who, "--certificate-oidc-issuer-regexp", "https://.*")...)...)
	expect(exitVerify, "VERDICT: FAILED", "", verify(append(who, "--certificate-oidc-issuer", "https://other.example")...)...)
	expect(exitUsage, "", "issuer", verify(who...)...)
	expect(exitUsage, "", "trust", verify(append(who[2:], "--certificate-oidc-issuer", "x")...)...)
	expect(exitUsage, "", "no public key", verify("--trusted-root", at("root.json"))...)
	// A policy that says nothing of who is accepted takes whom the flags name; one that does takes nobody beside.
	expect(exitDone, "VERDICT: VERIFIED", "", verify(append(who, "--certificate-oidc-issuer", "https://issuer.example", "--policy", at("policy.yaml"))...)...)
	expect(exitUsage, "", "no public key", verify("--policy", at("policy.yaml"))...)
	expect(exitUsage, "", "--signers 0: expected 1 to 64", verify("--key", at("out/keys/benchpin.pub"), "--signers", "0")...)
	expect(exitUsage, "", "the issuer must be given", verify("--certificate-identity", "a")...)
	expect(exitUsage, "", "error parsing regexp", verify("--certificate-identity-regexp", "a(", "--certificate-oidc-issuer", "b")...)
	expect(exitUsage, "", "expected --trusted-root FILE", verify("--certificate-identity", "a", "--certificate-oidc-issuer", "b")...)
	expect(exitDone, "identity dev@example.com", "", verify("--policy", at("who.yaml"))...)
	expect(exitUsage, "", "the policy says who is accepted", verify("--policy", at("who.yaml"), "--certificate-identity", "x@example.com", "--certificate-oidc-issuer", "x")...)
	expect(exitUsage, "", "does not accept the key", verify("--policy", at("who.yaml"), "--key", at("out/keys/benchpin.pub"))...)
	expect(exitUsage, "", "which roots are trusted", verify("--policy", at("who.yaml"), "--trusted-root", at("root.json"))...)
	expect(exitVerify, "VERDICT: FAILED", "", verify("--policy", at("nobody.yaml"))...)
	expect(exitUsage, "", "expected trusted_root in "+at("noroot.yaml")+", or --trusted-root FILE", verify("--policy", at("noroot.yaml"))...)
	expect(exitDone, "VERDICT: VERIFIED", "", verify("--policy", at("noroot.yaml"), "--trusted-root", at("root.json"))...)
	expect(exitUsage, "", at("notroot.yaml")+": trusted root: not usable as trusted roots: expected a Sigstore trusted_root.json", verify("--policy", at("notroot.yaml"))...)

	// Whoever reviews, replays or registers signs in the same ways.
	by := []string{"--fulcio-url", s.Fulcio, "--rekor-url", s.Rekor, "--trusted-root", at("root.json"), "--identity-token-file", at("token")}
	expect(exitUsage, "", "two ways to sign", verify(append(by, "--key", at("out/keys/benchpin.pub"), "--attest", "me.key", "--attach")...)...)
	expect(exitUsage, "", "--out FILE or --attach", verify(append(by, "--key", at("out/keys/benchpin.pub"))...)...)
	expect(exitDone, "", "attached", verify(append(by, "--key", at("out/keys/benchpin.pub"), "--attach")...)...)
	everybody := append(who, "--certificate-oidc-issuer", "https://issuer.example", "--key", at("out/keys/benchpin.pub"))
	expect(exitDone, `"review": {`, "", verify(append(everybody, "--json")...)...)
	expect(exitUsage, "", "two ways to sign", append([]string{"replay", archive, "--dir", at("again"), "--key", at("out/keys/benchpin.pub"), "--sign", "me.key"}, by...)...)
	expect(exitDone, "level: ", "attached", append([]string{"replay", archive, "--dir", at("again"), "--key", at("out/keys/benchpin.pub"), "--attach"}, by...)...)
	expect(exitDone, `"replay": {`, "", verify(append(everybody, "--json")...)...)
	expect(exitDone, "blake3:", "", append([]string{"preregister", at("small.yaml"), "--manifest", at("out/manifest.json"), "--out", at("bar.json"), "--rule-edition", "house-rules-3"}, by...)...)
	expect(exitDone, "--certificate-identity dev@example.com --certificate-oidc-issuer https://issuer.example", "",
		append([]string{"pipeline", at("small.yaml"), "--dir", at("mine"), "--preregistered", at("bar.json")}, by...)...)
	mine := append([]string{"verify", at("mine/archive"), "--require-preregistration", "--rule-edition"}, append([]string{"house-rules-3"}, everybody[:6]...)...)
	expect(exitDone, "which is before the start that the record gives", "", append(mine, "--json", "--require-preregistration-before")...)
	mine[4] = "house-rules-4"
	expect(exitVerify, `found \"house-rules-3\", the policy accepts [\"house-rules-4\"]`, "", append(mine, "--json")...)
	expect(exitDone, "VERDICT: VERIFIED", "", verify("--key", at("out/keys/benchpin.pub"))...)
}

// The command line for timestamps, against an authority that runs here.
func TestTimestampCommands(t *testing.T) {
	dir := t.TempDir()
	tsa, other := sigstoretest.NewTimestamps(t), sigstoretest.NewTimestamps(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, data := range map[string][]byte{"tsa.pem": tsa.PEM(), "other.pem": other.PEM(), "small.yaml": []byte(tinyWorkload), "no.pem": []byte("x")} {
		if err := os.WriteFile(at(name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"BENCHPIN_PASSWORD": ""}
	expect := func(want int, wantOut, wantErr string, args ...string) {
		t.Helper()
		if code, stdout, stderr := ownCommandLine(t, env, args...); code != want || !strings.Contains(stdout, wantOut) || !strings.Contains(stderr, wantErr) {
			t.Fatalf("%s: exit code %d\n%s\n%s", strings.Join(args, " "), code, stdout, stderr)
		}
	}
	expect(exitDone, "", "", "key", "generate", "--out", at("me"))
	expect(exitDone, "", "", "key", "generate", "--out", at("second"))
	// Nothing is asked of anybody unless it is asked for.
	expect(exitDone, "", "", "pipeline", at("small.yaml"), "--dir", at("plain"), "--key", at("me.key"), "--timestamp-roots", at("tsa.pem"))
	if tsa.Asked() != 0 {
		t.Fatalf("the authority was asked %d times", tsa.Asked())
	}
	url := tsa.URL
	expect(exitUsage, "", "needs --timestamp-roots", "attest", "--archive", at("plain/archive"), "--key", at("second.key"), "--timestamp-url", url)
	expect(exitUsage, "", "needs --key", "pipeline", at("small.yaml"), "--dir", at("none"), "--timestamp-url", url)
	expect(exitUsage, "", "expected http", "attest", "--archive", at("plain/archive"), "--key", at("second.key"), "--timestamp-url", "ftp://x", "--timestamp-roots", at("tsa.pem"))
	expect(exitUsage, "", "PEM", "verify", at("plain/archive"), "--key", at("me.pub"), "--timestamp-roots", at("no.pem"))
	expect(exitUsage, "", "trusted_root.json", "verify", at("plain/archive"), "--key", at("me.pub"), "--trusted-root", at("no.pem"))

	expect(exitDone, "sha256:", "", "attest", "--archive", at("plain/archive"), "--key", at("second.key"), "--timestamp-url", url, "--timestamp-roots", at("tsa.pem"))
	expect(exitDone, "VERDICT: VERIFIED", "", "verify", at("plain/archive"), "--key", at("me.pub"))
	expect(exitDone, "signed no later than", "", "verify", at("plain/archive"), "--key", at("second.pub"), "--timestamp-roots", at("tsa.pem"), "--require-timestamp")
	expect(exitVerify, "VERDICT: FAILED", "", "verify", at("plain/archive"), "--key", at("me.pub"), "--timestamp-roots", at("tsa.pem"), "--require-timestamp")
	expect(exitVerify, "it carries a timestamp, and nobody is trusted for that: name whom to trust, with --trusted-root or --timestamp-roots", "", "verify", at("plain/archive"), "--key", at("second.pub"), "--json")
	expect(exitVerify, "VERDICT: FAILED", "", "verify", at("plain/archive"), "--key", at("second.pub"), "--timestamp-roots", at("other.pem"))
	// How old a result is by trusted time; its own times are the host's.
	stampedBy := []string{"verify", at("plain/archive"), "--key", at("second.pub"), "--timestamp-roots", at("tsa.pem"), "--max-age"}
	expect(exitDone, "age by trusted time", "", append(stampedBy, "1h", "--max-age-from", "trusted_time")...)
	expect(exitUsage, "", "expected --max-age", append(stampedBy[:6:6], "--max-age-from", "trusted_time")...)
	expect(exitUsage, "", "nothing that an age is counted from", append(stampedBy, "1h", "--max-age-from", "birth")...)
	expect(exitVerify, "no statement of the result that holds carries one", "", "verify", at("plain/archive"), "--key", at("me.pub"), "--max-age", "1h", "--max-age-from", "trusted_time")
	// A review with a timestamp.
	expect(exitUsage, "", "needs --timestamp-roots", "verify", at("plain/archive"), "--key", at("me.pub"), "--attest", at("second.key"), "--attach", "--timestamp-url", url)
	expect(exitUsage, "", "needs --attest", "verify", at("plain/archive"), "--key", at("me.pub"), "--timestamp-url", url, "--timestamp-roots", at("tsa.pem"))
	expect(exitDone, "", "attestation: ", "verify", at("plain/archive"), "--key", at("me.pub"), "--attest", at("second.key"), "--out", at("review.json"), "--timestamp-url", url, "--timestamp-roots", at("tsa.pem"))
	if raw, err := os.ReadFile(at("review.json")); err != nil || !bytes.Contains(raw, []byte("rfc3161Timestamps")) {
		t.Errorf("the review has no timestamp: %v", err)
	}
	expect(exitDone, `"kind": "timestamp"`, "", "verify", at("plain/archive"), "--key", at("second.pub"), "--timestamp-roots", at("tsa.pem"), "--json")
	expect(exitDone, "--timestamp-roots", "", "pipeline", at("small.yaml"), "--dir", at("stamped"), "--key", at("me.key"), "--timestamp-url", url, "--timestamp-roots", at("tsa.pem"))
	expect(exitDone, "signed no later than", "", "verify", at("stamped/archive"), "--key", at("me.pub"), "--timestamp-roots", at("tsa.pem"))
}
