package export

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
)

// TestOpenRefuses: what is not what an archive, a record or a manifest says is refused, and named.
func TestOpenRefuses(t *testing.T) {
	other := saveManifest(t, manifest.Meta{}, manifest.Entry{Path: "a"})
	tests := map[string]struct {
		make  func() (path, manifestPath string)
		class error
		text  string
	}{
		"nothing there":    {func() (string, string) { return filepath.Join(t.TempDir(), "x"), "" }, os.ErrNotExist, "x"},
		"an empty folder":  {func() (string, string) { return t.TempDir(), "" }, os.ErrNotExist, "expected an archive"},
		"run, no manifest": {func() (string, string) { f, _ := runFolder(t, nil); return f, "" }, ErrNeedManifest, "--manifest"},
		"another manifest": {func() (string, string) { f, _ := runFolder(t, nil); return f, other }, fault.Manifest, "the record names the manifest"},
		"two manifests":    {func() (string, string) { return other, other }, nil, "names another"},
		"no manifest":      {func() (string, string) { f, m := runFolder(t, nil); return filepath.Join(f, "record.json"), m[:0] }, os.ErrNotExist, "entries"},
		"another file": {func() (string, string) {
			f, m := runFolder(t, nil)
			write(t, filepath.Join(f, "steps.parquet"), nil)
			return f, m
		}, fault.RecordFile, "steps.parquet"},
		"a file is missing": {func() (string, string) {
			f, m := runFolder(t, nil)
			must(t, os.Remove(filepath.Join(f, "steps.parquet")))
			return f, m
		}, os.ErrNotExist, "steps.parquet"},
		"a file is a folder": {func() (string, string) {
			f, m := runFolder(t, nil)
			must(t, os.Remove(filepath.Join(f, "steps.parquet")))
			must(t, os.Mkdir(filepath.Join(f, "steps.parquet"), 0o777))
			return f, m
		}, nil, "regular"},
		"a record that is none": {func() (string, string) {
			f, m := runFolder(t, nil)
			write(t, filepath.Join(f, "record.json"), []byte("{}"))
			return f, m
		}, record.ErrNotRecord, "record.json"},
		"a damaged archive": {func() (string, string) {
			dir := frozenArchive(t)
			blobs, err := filepath.Glob(filepath.Join(dir, "blobs", "sha256", "*"))
			must(t, err)
			write(t, blobs[0], []byte("other"))
			return dir, ""
		}, fault.DigestMismatch, "damaged"},
		"an archive with a blob more": {func() (string, string) {
			dir := frozenArchive(t)
			write(t, filepath.Join(dir, "blobs", "sha256", "more"), nil)
			return dir, ""
		}, fault.FileUnexpected, "damaged"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path, manifestPath := test.make()
			s, err := Open(t.Context(), path, manifestPath)
			if err == nil {
				_ = s.Close()
				t.Fatal("it was accepted")
			}
			if test.class != nil && !errors.Is(err, test.class) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%v: expected %v, with %q", err, test.class, test.text)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestCopyEnds: copying ends with its context.
func TestCopyEnds(t *testing.T) {
	s := open(t, frozenArchive(t), "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := WriteCrate(ctx, filepath.Join(t.TempDir(), "crate"), s, card()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestNames: file names become references, also those that mean something in one.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{"record.json": "record.json", "a b.json": "a%20b.json", "50%.json": "50%25.json", "a#b?c": "a%23b%3Fc", "x/ä": "x/%C3%A4", "c:d": "./c:d"} {
		if got := escapePath(name); got != want {
			t.Errorf("%q: expected %q, found %q", name, want, got)
		}
	}
}
