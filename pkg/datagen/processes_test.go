package datagen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/cluster/clustertest"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
)

// together generates a data set by so many processes, each of which opens the folder that folder gives for it.
func together(t testing.TB, r Recipe, processes int, folder func(rank int) string, pinned string) (manifest.Header, error) {
	t.Helper()
	var h manifest.Header
	err := clustertest.New(processes, 1).Run(t.Context(), func(ctx context.Context, w *cluster.World) error {
		st, err := store.NewFolder(folder(w.Rank()), store.FolderOptions{})
		if err != nil {
			return err
		}
		defer st.Close()
		o := Options{World: w, Workers: 1 + w.Rank()}
		if w.Rank() == 0 {
			o.Manifest = pinned
		}
		got, err := Generate(ctx, st, r, o)
		if w.Rank() == 0 {
			h = got
		} else if got.Count != 0 {
			return errors.New("a process that is not the first returned a header")
		}
		return err
	})
	return h, err
}

// TestProcessesGenerateTogether: the data set and its manifest, groups included, are those that one process makes, however many make
// them, and whatever of it was there.
func TestProcessesGenerateTogether(t *testing.T) {
	for name, change := range map[string]func(*testing.T) Recipe{
		"small files":           func(t *testing.T) Recipe { return smallRecipe(t, "npz", 57, 2, 1500) },
		"files of many groups":  func(t *testing.T) Recipe { return smallRecipe(t, "npy", 5, 1, 3<<20) },
		"files with companions": func(t *testing.T) Recipe { return smallRecipe(t, "mmap_indexed_binary", 7, 3, 1500) },
		"fewer than processes":  func(t *testing.T) Recipe { return smallRecipe(t, "npz", 2, 1, 1500) },
	} {
		t.Run(name, func(t *testing.T) {
			r := change(t)
			one := t.TempDir()
			want, err := together(t, r, 1, func(int) string { return filepath.Join(one, "data") }, filepath.Join(one, "m.json"))
			if err != nil {
				t.Fatal(err)
			}
			for _, processes := range []int{2, 3, 4} {
				dir := t.TempDir()
				data := filepath.Join(dir, "data")
				for _, there := range []string{"nothing", "everything", "a part", "a part, marked"} {
					var paths []string
					for _, f := range r.Sorted() {
						paths = append(paths, filepath.Join(data, filepath.FromSlash(f.Path)))
					}
					switch there {
					case "a part, marked":
						if err := os.WriteFile(filepath.Join(data, Marker), r.raw, 0o666); err != nil {
							t.Fatal(err)
						}
						if err := os.WriteFile(paths[len(paths)-1], []byte("cut off"), 0o666); err != nil {
							t.Fatal(err)
						}
						fallthrough
					case "a part":
						for i, p := range paths[:len(paths)-1] {
							if i%3 == 1 {
								if err := os.Remove(p); err != nil {
									t.Fatal(err)
								}
							}
						}
					}
					pinned := filepath.Join(dir, strings.ReplaceAll(there, " ", "-")+".json")
					h, err := together(t, r, processes, func(int) string { return data }, pinned)
					if err != nil {
						t.Fatalf("%d processes, %s there: %v", processes, there, err)
					}
					if !reflect.DeepEqual(h, want) {
						t.Errorf("%d processes, %s there: %+v, one process makes %+v", processes, there, h, want)
					}
					for _, part := range []string{manifest.EntriesPath(pinned), manifest.GroupsPath(pinned)} {
						a, aerr := os.ReadFile(part)
						b, berr := os.ReadFile(strings.Replace(part, pinned[:len(pinned)-5], filepath.Join(one, "m"), 1))
						if (aerr == nil) != (berr == nil) || string(a) != string(b) {
							t.Errorf("%d processes, %s there: %s is another than that of one process: %v, %v", processes, there, filepath.Base(part), aerr, berr)
						}
					}
					if _, err := os.Lstat(filepath.Join(data, Marker)); err == nil {
						t.Error("the marker was left")
					}
				}
			}
		})
	}
}

// TestProcessesThatCannotGenerateTogether: what is wrong is found before anything is written, and named with the process.
func TestProcessesThatCannotGenerateTogether(t *testing.T) {
	r := smallRecipe(t, "npz", 9, 1, 1500)
	dir := t.TempDir()
	_, err := together(t, r, 3, func(rank int) string {
		if rank == 2 {
			return filepath.Join(dir, "elsewhere")
		}
		return filepath.Join(dir, "data")
	}, filepath.Join(dir, "m.json"))
	if err == nil || !strings.Contains(err.Error(), "process 2 on node2") || !strings.Contains(err.Error(), errFolder.Error()) {
		t.Errorf("another folder: %v", err)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "*", "*.npz")); len(found) > 0 {
		t.Errorf("files were made: %v", found)
	}
	occupied := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(occupied, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(occupied, "thesis.tex"), []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := together(t, r, 2, func(int) string { return occupied }, ""); !errors.Is(err, ErrOccupied) {
		t.Errorf("a folder that holds something else: %v", err)
	}
	other := smallRecipe(t, "npz", 10, 1, 1500)
	err = clustertest.Run(t.Context(), 2, func(ctx context.Context, w *cluster.World) error {
		st, err := store.NewFolder(filepath.Join(dir, "third"), store.FolderOptions{})
		if err != nil {
			return err
		}
		defer st.Close()
		_, err = Generate(ctx, st, []Recipe{r, other}[w.Rank()], Options{World: w})
		return err
	})
	if !errors.Is(err, cluster.ErrDisagree) {
		t.Errorf("another recipe: %v", err)
	}
}

// TestKilledWhileGenerating: what processes have made when one of them is lost is completed by the next ones.
func TestKilledWhileGenerating(t *testing.T) {
	r := smallRecipe(t, "npz", 60, 1, 20000)
	dir := t.TempDir()
	data, pinned := filepath.Join(dir, "data"), filepath.Join(dir, "m.json")
	for _, after := range []int{1, 7, 19} {
		net := clustertest.New(3, 1)
		err := net.Run(t.Context(), func(ctx context.Context, w *cluster.World) error {
			st, err := store.NewFolder(data, store.FolderOptions{})
			if err != nil {
				return err
			}
			defer st.Close()
			made := 0
			o := Options{World: w, Workers: 1, Progress: func(p Progress) {
				if made++; w.Rank() == 1 && made == after {
					net.Kill(1)
				}
			}}
			if w.Rank() == 0 {
				o.Manifest = pinned
			}
			_, err = Generate(ctx, st, r, o)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("killed after %d reports: %v", after, err)
		}
		if _, err := os.Lstat(pinned); err == nil {
			t.Fatal("there is a manifest")
		}
	}
	h, err := together(t, r, 3, func(int) string { return data }, pinned)
	if err != nil {
		t.Fatal(err)
	}
	want, err := together(t, r, 1, func(int) string { return filepath.Join(dir, "one") }, "")
	if err != nil || h.Root != want.Root {
		t.Errorf("completed as %s, expected %s: %v", h.Root, want.Root, err)
	}
}

// smallRecipe is that of so many files of so many samples of size bytes.
func smallRecipe(t testing.TB, container string, files, samples, size int) Recipe {
	t.Helper()
	return recipe(t, 7, "format: "+container, fmt.Sprint("num_files_train: ", files), fmt.Sprint("num_samples_per_file: ", samples),
		fmt.Sprint("record_length_bytes: ", size))
}
