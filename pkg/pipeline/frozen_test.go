package pipeline

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/environment"
)

// TestFrozenArchives verifies and replays an archive of every release, for ever: testdata/archives/NAME/archive.tar.gz with the public key
// beside it. A change that fails here breaks results that people have.
func TestFrozenArchives(t *testing.T) {
	archives, err := filepath.Glob("../../testdata/archives/*/archive.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no frozen archive was found: %v", err)
	}
	tool, err := environment.Tool("test", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, packed := range archives {
		t.Run(filepath.Base(filepath.Dir(packed)), func(t *testing.T) {
			key, err := attest.LoadPublic(filepath.Join(filepath.Dir(packed), "benchpin.pub"))
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := unpack(packed, dir); err != nil {
				t.Fatal(err)
			}
			archive := filepath.Join(dir, "archive")
			r, err := Replay(context.Background(), ReplayOptions{Archive: archive, Keys: []attest.PublicKey{key}, Dir: filepath.Join(dir, "again"),
				Tolerance: ReplayTolerance, Tool: tool})
			if err != nil {
				t.Fatalf("%v\n%+v", err, r.Items)
			}
			want := map[string]attest.ReplayOutcome{
				itemAttestation: attest.ReplayValid, itemData: attest.ReplaySame, itemSchedule: attest.ReplaySame, itemCheckpoints: attest.ReplaySame,
			}
			for _, i := range r.Items {
				if outcome, ok := want[i.Name]; ok && i.Outcome != outcome {
					t.Errorf("%s: expected %s, found %s: %s", i.Name, outcome, i.Outcome, i.Detail)
				}
				delete(want, i.Name)
			}
			if len(want) > 0 || r.Record.ReplayOf == nil || r.Record.ReplayOf.Archive != r.Archive {
				t.Errorf("missing items %v; replay_of %+v", want, r.Record.ReplayOf)
			}
		})
	}
}

// unpack takes a packed archive apart.
func unpack(packed, dir string) error {
	f, err := os.Open(packed)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeDir {
			if err := root.MkdirAll(filepath.Clean(h.Name), 0o755); err != nil {
				return err
			}
			continue
		}
		out, err := root.Create(h.Name)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, r)
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
}
