package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/store"
)

// TestOwnKeyIsAPair: the public key that people are told to verify with is that of the key that signs.
func TestOwnKeyIsAPair(t *testing.T) {
	l := Layout{t.TempDir()}
	first, made, err := ownKey(l)
	if err != nil || !made {
		t.Fatalf("made %v, %v", made, err)
	}
	public, err := os.ReadFile(l.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(l.PublicKey()); err != nil {
		t.Fatal(err)
	}
	again, made, err := ownKey(l)
	if err != nil || made || again.Public().Hint() != first.Public().Hint() {
		t.Errorf("without the public half: made %v, %v", made, err)
	}
	if b, err := os.ReadFile(l.PublicKey()); err != nil || !bytes.Equal(b, public) {
		t.Errorf("the public half was not written again: %v", err)
	}
	foreign, err := attest.GenerateKey(attest.ECDSAP256)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.PublicKey(), foreign.Public().PEM(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ownKey(l); !errors.Is(err, ErrKeyPair) || !strings.Contains(err.Error(), l.PublicKey()) {
		t.Errorf("the public half of another pair: %v", err)
	}
	if err := os.Remove(l.PrivateKey()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ownKey(l); !errors.Is(err, ErrKeyPair) || !strings.Contains(err.Error(), "has benchpin.pub and no benchpin.key") {
		t.Errorf("only a public half: %v", err)
	}
}

// TestOnePipelineAtATime: a second one in the same folder is refused before it touches anything.
func TestOnePipelineAtATime(t *testing.T) {
	dir := t.TempDir()
	unlock, err := store.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Pipeline(t.Context(), Options{Workload: small(t), Dir: dir}); !errors.Is(err, store.ErrLocked) {
		t.Errorf("expected %v, found %v", store.ErrLocked, err)
	}
	if names, _ := os.ReadDir(dir); len(names) > 0 {
		t.Errorf("something was made: %v", names)
	}
	unlock()
}

// TestStageLinesCount: one of a thing is not many.
func TestStageLinesCount(t *testing.T) {
	var said []string
	_, err := Generate(t.Context(), GenerateOptions{Workload: small(t, "dataset.num_files_train=1", "dataset.num_subfolders_train=0").Workload, Data: filepath.Join(t.TempDir(), "data"),
		Manifest: filepath.Join(t.TempDir(), "m.json"), Notify: Notify{Stage: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}})
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(said, "\n"); !strings.Contains(text, "generate 1 file into ") || !strings.Contains(text, "pinned   1 file, ") {
		t.Errorf("found %s", text)
	}
}

// TestKeyIsSaidToBeOld: an old key is not said to be made now.
func TestKeyIsSaidToBeOld(t *testing.T) {
	l := Layout{t.TempDir()}
	for _, want := range []string{"made here", "found here, made by an earlier run"} {
		var said string
		_, _ = Pipeline(t.Context(), Options{Workload: small(t, "dataset.num_files_train=4"), Dir: l.Dir, Notify: Notify{Stage: func(format string, args ...any) {
			if strings.HasPrefix(format, "key ") {
				said = fmt.Sprintf(format, args...)
			}
		}}})
		if !strings.Contains(said, ", "+want+": ") {
			t.Errorf("expected %q, found %q", want, said)
		}
	}
}
