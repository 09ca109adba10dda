package attest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestKeyProgramFails: a program that keeps a key and does not do what it was asked is told by what it did, is given so much time and no more,
// and fills no memory.
func TestKeyProgramFails(t *testing.T) {
	dir := t.TempDir()
	for name, script := range map[string]string{
		"fails":    `echo "no token in slot 0" >&2; exit 3`,
		"hangs":    `echo "touch the token" >&2; exec /bin/sleep 60`,
		"leaves":   `/bin/sleep 60 & exec /bin/sleep 60`,
		"endless":  `while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done`,
		"other":    `echo hello`,
		"silent":   `exit 0`,
		"answers":  `echo '{"errorMessage": "the slot is locked"}'; exit 1`,
		"lacks":    `echo '{}'`,
		"damaged":  `echo '{"publicKey": {"publicKeyPEM": "aGVsbG8="}}'`,
		"unsigned": `echo '{"signMessage": {"signature": ""}}'`,
	} {
		if err := os.WriteFile(filepath.Join(dir, "sigstore-kms-"+name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	for name, words := range map[string][]string{
		"fails": {"exit status 3", "no token in slot 0"}, "hangs": {"no answer within 500ms", "touch the token"}, "leaves": {"no answer within 500ms"},
		"endless": {"more than 1048576 bytes"}, "other": {`answered "hello`, "expected an answer in JSON"}, "silent": {`answered ""`},
		"answers": {"says: the slot is locked"}, "lacks": {"lacks the public key"}, "damaged": {"no public key in PEM form"}, "unsigned": {"lacks the public key"},
	} {
		limit := 500 * time.Millisecond
		if name == "endless" {
			limit = time.Minute // the bound on what it says must end it
		}
		p, err := findKeyProgram(name, "k", limit)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		_, err = p.publicKey(t.Context())
		for _, word := range words {
			if err == nil || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "unexpected end of JSON") {
				t.Errorf("%s: expected %q, found %v", name, word, err)
			}
		}
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("%s: it was waited for %v", name, took)
		}
	}
	p, err := findKeyProgram("unsigned", "k", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.sign(t.Context(), strings.NewReader("m"), nil); err == nil || !strings.Contains(err.Error(), "lacks the signature") {
		t.Errorf("no signature: %v", err)
	}
	// Whoever interrupts is not told of a time limit.
	reason := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(200*time.Millisecond, func() { cancel(reason) })
	if p, err = findKeyProgram("hangs", "k", time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := p.publicKey(ctx); !errors.Is(err, reason) {
		t.Errorf("interrupted: %v", err)
	}
}
