package manifest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func save(t *testing.T, path string, es ...Entry) Header {
	t.Helper()
	f, err := Create(path, Meta{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	for _, e := range es {
		if err := f.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	h, err := f.Commit()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	ds, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, d := range ds {
		names = append(names, d.Name())
	}
	return names
}

func TestPair(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "as needed")
	path := filepath.Join(dir, "manifest.json")
	want := someEntries(10)
	h := save(t, path, want...)
	if got := files(t, dir); !slices.Equal(got, []string{"manifest.entries.jsonl.zst", "manifest.json"}) {
		t.Fatalf("files %q", got)
	}
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if got, err := m.list(); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if m.Header().Root != h.Root || string(m.Digest()) == "" {
		t.Errorf("root %s, expected %s", m.Header().Root, h.Root)
	}
	raw, err := os.ReadFile(path)
	if err != nil || string(raw) != string(m.HeaderBytes()) {
		t.Errorf("header bytes differ from the file, %v", err)
	}

	// While a new pair is written, and when it is given up, the old one stands.
	f, err := Create(path, Meta{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Add(entry("x", 1)); err != nil {
		t.Fatal(err)
	}
	if again, err := Open(path); err != nil || again.Header().Root != h.Root {
		t.Errorf("while another is written: %v", err)
	} else if err := again.Close(); err != nil {
		t.Error(err)
	}
	if err := f.Abort(); err != nil {
		t.Error(err)
	}
	if _, err := f.Commit(); err == nil {
		t.Error("Commit after Abort was accepted")
	}
	if got := files(t, dir); len(got) != 2 {
		t.Errorf("after Abort: %q", got)
	}

	// An error in between leaves nothing behind either.
	f, err = Create(path, Meta{})
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Add(entry("../x", 1))
	if _, err := f.Commit(); !errors.Is(err, ErrPath) {
		t.Errorf("commit after a refused entry: %v", err)
	}
	if got := files(t, dir); len(got) != 2 {
		t.Errorf("after a refused entry: %q", got)
	}
}

// TestTornPair has what a crash between the two renames leaves: it is refused, never read as a mixture.
func TestTornPair(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")
	save(t, a, entry("one", 1))
	save(t, b, entry("two", 1))
	if err := os.Rename(EntriesPath(b), EntriesPath(a)); err != nil {
		t.Fatal(err)
	}
	m, err := Open(a)
	if err == nil {
		_, err = m.list()
		_ = m.Close()
	}
	if !errors.Is(err, ErrFrame) || !strings.Contains(err.Error(), "a.entries.jsonl.zst") {
		t.Errorf("torn pair: %v", err)
	}
	if _, err := Open(b); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "b.entries.jsonl.zst") {
		t.Errorf("no entries: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "c.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no header: %v", err)
	}
	for _, bad := range []string{"manifest", "dir/.json", "x.JSON"} {
		if _, err := Create(filepath.Join(dir, bad), Meta{}); err == nil {
			t.Errorf("%s was taken as the name of a header", bad)
		}
	}
}

// TestStaleTemporaries: what killed processes left behind of the same manifest goes away, and nothing that somebody is writing.
func TestStaleTemporaries(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.json")
	kept := []string{
		".benchpin-tmp-7-0-other.entries.jsonl.zst", ".benchpin-tmp-7-0-x-m.json", ".benchpin-tmp-x-0-m.json", "7-0-m.json",
	}
	for _, name := range append([]string{".benchpin-tmp-7-0-m.entries.jsonl.zst", ".benchpin-tmp-123-4-m.json"}, kept...) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	busy, err := Create(path, Meta{})
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Abort()
	save(t, path, someEntries(3)...)
	if _, err := busy.Commit(); err != nil {
		t.Errorf("a manifest that was being written was taken away: %v", err)
	}
	want := slices.Sorted(slices.Values(append(kept, "m.json", "m.entries.jsonl.zst")))
	if got := files(t, dir); !slices.Equal(got, want) {
		t.Errorf("expected %q, found %q", want, got)
	}
}
