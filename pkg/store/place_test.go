package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestInside(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, d := range []string{"data/train", "other/deep"} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"link": "data", "absolute": filepath.Join(dir, "data", "train"), "dangling": "data/new/er", "chain": "link", "other/up": "../data/..",
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		root, path string
		want       bool
	}{
		{"data", "data", true}, {"data", "data/x/y", true}, {"data", filepath.Join(dir, "data/x"), true}, {"data/", "./data/../data/x", true},
		{"data", "data.manifest.json", false}, {"data", "other", false}, {"data", "..", false}, {".", "anything", true}, {"data/train", "data", false},
		{"data", "link/x", true}, {"link", "data/x", true}, {"data", "absolute", true}, {"data", "dangling", true}, {"data", "chain/x", true},
		{"data", "other/up", false}, {"data", "other/up/data/x", true}, {"new", "new/x", true}, {"new", "newer", false},
		// The kernel goes up from where a link leads, not from where it stands.
		{"data", "absolute/../x", true}, {"data", "link/../x", false},
	} {
		if got, err := Inside(c.root, c.path); err != nil || got != c.want {
			t.Errorf("%s inside %s: expected %v, found %v, %v", c.path, c.root, c.want, got, err)
		}
	}
	if err := os.Symlink("round", "round"); err != nil {
		t.Fatal(err)
	}
	if _, err := Inside("data", "round/x"); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a loop of links: %v", err)
	}
	if _, err := Inside("data", ""); err == nil {
		t.Error("an empty path was taken")
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	unlock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("expected %v, found %v", ErrLocked, err)
	}
	unlock()
	again, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	again()
}
