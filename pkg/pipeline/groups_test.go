package pipeline

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/manifest"
)

// The files of this workload are larger than one group.
var ofGroups = []string{"dataset.record_length_bytes=1500000", "dataset.num_files_train=4", "dataset.num_subfolders_train=0",
	"benchpin.accelerators=1", "workflow.checkpoint=false"}

// TestGroupsTravel: generating and pinning find the same group digests, the archive carries them, and whoever has the archive checks them.
func TestGroupsTravel(t *testing.T) {
	l, out := gone(t, ofGroups...)
	if out.Verification.Groups == nil {
		t.Fatal("the archive has no group digests")
	}
	if files, values := out.Verification.Groups.Count(); files != 4 || values != 12 {
		t.Errorf("expected 12 digests of 4 files, found %d of %d", values, files)
	}
	made, err := os.ReadFile(manifest.GroupsPath(l.Manifest()))
	if err != nil {
		t.Fatal(err)
	}
	// A manifest that is pinned anew has them, and one that stands there gets those that it lacks.
	other := filepath.Join(l.Dir, "pinned.json")
	for range 2 {
		if _, err := Pin(t.Context(), PinOptions{Data: l.Data(), Manifest: other}); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(manifest.GroupsPath(other)); err != nil || !bytes.Equal(b, made) {
			t.Errorf("pinned: the same group digests expected, %v", err)
		}
		if err := os.Remove(manifest.GroupsPath(other)); err != nil {
			t.Fatal(err)
		}
	}

	archive := func(name string) (*attest.Verification, error) {
		key, err := attest.GenerateKey(attest.Ed25519)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(l.Dir, name)
		if _, err := Attest(t.Context(), AttestOptions{Run: out.Run, Manifest: l.Manifest(), Archive: dir, Key: key}); err != nil {
			return nil, err
		}
		v, err := Verify(t.Context(), dir, []attest.PublicKey{key.Public()}, attest.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { v.Close() })
		return v, v.Err()
	}
	// An archive without them is as good.
	if err := os.Remove(manifest.GroupsPath(l.Manifest())); err != nil {
		t.Fatal(err)
	}
	if v, err := archive("without"); err != nil || v.Groups != nil {
		t.Errorf("without group digests: %v", err)
	}
	// One with others is not made.
	made[len(made)-1] ^= 1
	if err := os.WriteFile(manifest.GroupsPath(l.Manifest()), made, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := archive("damaged"); !errors.Is(err, attest.ErrVerification) {
		t.Errorf("damaged group digests: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(l.Dir, "damaged")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something is left of the archive: %v", err)
	}
}
