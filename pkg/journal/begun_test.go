package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A journal that is moved, replaced or removed during a run: the end goes where the beginning is, or nowhere, and no new journal is made.
func TestEndGoesWhereTheBeginningIs(t *testing.T) {
	for what, c := range map[string]struct {
		meanwhile func(path, aside string) error
		moved     bool
		err       error
		at        string // where the end must stand; "" for nowhere
		there     bool   // something is at the path afterwards
	}{
		"left alone": {func(string, string) error { return nil }, false, nil, "path", true},
		"appended to": {func(path, _ string) error {
			_, err := Append(path, start("20261130T141500Z-bbbbbb", "b", "d"))
			return err
		}, false, nil, "path", true},
		"moved away": {os.Rename, true, nil, "aside", false},
		"moved, and another begun": {func(path, aside string) error {
			err := os.Rename(path, aside)
			if err == nil {
				_, err = Append(path, start("20261130T141500Z-bbbbbb", "b", "d"))
			}
			return err
		}, true, nil, "aside", true},
		"removed": {func(path, _ string) error { return os.Remove(path) }, false, ErrRemoved, "", false},
		"emptied": {func(path, _ string) error { return os.Truncate(path, 0) }, false, ErrBroken, "", true},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			path, aside := filepath.Join(dir, FileName), filepath.Join(dir, "aside.jsonl")
			e := start("20261130T141500Z-aaaaaa", "a", "d")
			j, b, err := Begin(path, e)
			if err != nil || len(j.Entries) != 1 {
				t.Fatalf("%v %v", j, err)
			}
			defer b.Close()
			if err := c.meanwhile(path, aside); err != nil {
				t.Fatal(err)
			}
			moved, err := b.End(end(e, Complete, 97.5))
			if moved != c.moved || !errors.Is(err, c.err) || (err != nil) != (c.err != nil) {
				t.Errorf("expected moved %v and %v, found %v and %v", c.moved, c.err, moved, err)
			}
			if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) == c.there {
				t.Errorf("at the path: %v", err)
			}
			for _, name := range []string{path, aside} {
				wanted := c.at == "path" && name == path || c.at == "aside" && name == aside
				j, err := Open(name)
				if err != nil {
					if wanted {
						t.Error(err)
					}
					continue
				}
				if a, ok := j.Attempt(e.Run); wanted != (ok && a.End != nil) {
					t.Errorf("%s: the end is there: %v", filepath.Base(name), !wanted)
				}
			}
			// Whoever comes next finds it unlocked.
			if _, err := Append(path, start("20261130T141500Z-cccccc", "c", "d")); err != nil {
				t.Error(err)
			}
		})
	}
}
