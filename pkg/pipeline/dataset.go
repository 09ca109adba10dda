package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/datagen"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/workload"
)

// recipeFiles is the training part of a data set that a recipe determines, whether it was generated yet or not.
type recipeFiles struct{ recipe datagen.Recipe }

func (d recipeFiles) Files() int              { return d.recipe.TrainFiles() }
func (d recipeFiles) Path(i int) string       { return d.recipe.File(i).Path }
func (d recipeFiles) Size(i int) int64        { return d.recipe.File(i).Size }
func (d recipeFiles) SampleBytes(i int) int64 { return d.recipe.File(i).Layout.SampleBytes() }

// pinnedFiles is the training part of a data set as its manifest lists it.
type pinnedFiles struct {
	paths       []string
	sizes       []int64
	sampleBytes func(i int) int64
	recipe      datagen.Recipe
	// byEntry is the number of the file of a manifest entry, -1 for entries that are not for training.
	byEntry []int32
}

func (d *pinnedFiles) Files() int              { return len(d.paths) }
func (d *pinnedFiles) Path(i int) string       { return d.paths[i] }
func (d *pinnedFiles) Size(i int) int64        { return d.sizes[i] }
func (d *pinnedFiles) SampleBytes(i int) int64 { return d.sampleBytes(i) }

// errNoRecipe is the error of a run on data that nobody generated.
var errNoRecipe = errors.New("the manifest has no recipe, so the size of a sample is not known")

// openFiles reads the training files of a manifest in DLIO's order: by base name, which interleaves subfolders.
func openFiles(ctx context.Context, m *manifest.Manifest) (*pinnedFiles, error) {
	raw := m.Header().Recipe
	if raw == nil {
		return nil, fmt.Errorf("%w: runs need a data set made by \"benchpin data generate\" or \"benchpin pipeline\"", errNoRecipe)
	}
	recipe, err := datagen.ParseRecipe(raw)
	if err != nil {
		return nil, fmt.Errorf("recipe of the manifest: %w", err)
	}
	type file struct {
		path  string
		size  int64
		entry int
	}
	var files []file
	entries := 0
	err = m.Entries(ctx, func(e manifest.Entry) error {
		if strings.HasPrefix(e.Path, "train/") {
			files = append(files, file{e.Path, e.Size, entries})
		}
		entries++
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	slices.SortFunc(files, func(a, b file) int {
		return strings.Compare(path.Base(a.path), path.Base(b.path))
	})
	if len(files) != recipe.TrainFiles() || entries != recipe.Files() {
		return nil, fmt.Errorf("manifest: its recipe makes %d files, %d for training, and it lists %d and %d", recipe.Files(),
			recipe.TrainFiles(), entries, len(files))
	}
	d := &pinnedFiles{byEntry: make([]int32, entries), sampleBytes: recipeFiles{recipe}.SampleBytes, recipe: recipe}
	for i := range d.byEntry {
		d.byEntry[i] = -1
	}
	for i, f := range files {
		if want := recipe.File(i); want.Path != f.path || want.Size != f.size {
			return nil, fmt.Errorf("manifest: its recipe makes file %d as %s of %d bytes, and it lists %s of %d bytes", i, want.Path,
				want.Size, f.path, f.size)
		}
		d.paths, d.sizes = append(d.paths, f.path), append(d.sizes, f.size)
		d.byEntry[f.entry] = int32(i)
	}
	return d, nil
}

// errOtherData is the error of a run on data that the workload does not describe.
var errOtherData = errors.New("the data set is not the one that the workload describes")

// suits checks that the data set is what the workload would generate, but for the number of files: a run may read fewer than there
// are. Otherwise the record would describe other data than what was read.
func (d *pinnedFiles) suits(w *workload.Workload) error {
	wanted, err := datagen.FromWorkload(w)
	if err != nil {
		return err
	}
	var have, want map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(d.recipe.JSON(), &have), json.Unmarshal(wanted.JSON(), &want)); err != nil {
		return fmt.Errorf("recipe: %w", err)
	}
	delete(have, "train")
	delete(want, "train")
	delete(have, "valid")
	delete(want, "valid")
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if bytes.Equal(have[key], want[key]) {
			continue
		}
		hint := "use the workload and overrides that it was generated with"
		if key == "seed" {
			hint = fmt.Sprintf("give --seed %s, or generate it again", d.recipe.Seed())
		}
		return fmt.Errorf("%w: its recipe has %s %s, the workload %s; %s", errOtherData, key, orAbsent(have[key]), orAbsent(want[key]), hint)
	}
	return nil
}
