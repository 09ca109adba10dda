package pipeline

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/store"
)

// TestWhere: what is said of each file is what the file system says, whether the files are known or not, and a file that is asked and missing is
// an error.
func TestWhere(t *testing.T) {
	for name, dataset := range kinds() {
		t.Run(name, func(t *testing.T) {
			w := described(t, dataset)
			l, m := generated(t, w)
			files, err := openGenerated(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			data, err := store.NewFolder(l.Data(), store.FolderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer data.Close()
			w.Workflow.Evaluation = true
			r := &run{RunOptions: &RunOptions{Data: l.Data()}, w: w, manifest: m, files: files, data: data}
			check := func() {
				t.Helper()
				where := r.where(data)
				for _, p := range r.parts() {
					for i := range p.Files() {
						for c := range 1 + len(p.companions) {
							want, err := data.Stat(p.name(i, c))
							if err != nil {
								t.Fatal(err)
							}
							device, size, err := where(p, i, c, i == 3)
							if err != nil || device != want.Device || size != want.Size {
								t.Errorf("%s: device %d, %d bytes, %v; expected %d, %d", p.name(i, c), device, size, err, want.Device, want.Size)
							}
						}
					}
				}
			}
			check()
			if err := r.look(t.Context()); err != nil {
				t.Fatal(err)
			}
			check()
			gone := r.files.Path(2)
			if err := os.Remove(filepath.Join(l.Data(), gone)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := r.where(data)(r.files.pinnedPart, 2, 0, true); err != nil {
				t.Errorf("%s is known, and the file system was asked: %v", gone, err)
			}
			r.known = nil
			if _, _, err := r.where(data)(r.files.pinnedPart, 2, 0, true); err == nil {
				t.Errorf("%s is missing, and nobody says so", gone)
			}
		})
	}
}

// TestFoldersAlike: a folder with a mount below it may have files on several devices.
func TestFoldersAlike(t *testing.T) {
	if foldersAlike("/") || foldersAlike(filepath.Join(t.TempDir(), "missing")) {
		t.Error("the root has mounts below it, and a folder that is missing says nothing")
	}
	var fs unix.Statfs_t
	dir := t.TempDir()
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	if want := fs.Type != unix.OVERLAYFS_SUPER_MAGIC && fs.Type != unix.FUSE_SUPER_MAGIC; foldersAlike(dir) != want {
		t.Errorf("%s: alike is %v, expected %v", dir, !want, want)
	}
}
