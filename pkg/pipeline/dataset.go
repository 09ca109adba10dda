package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/datagen"
	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/workload"
)

// Both are what the engine reads of a data set.
var (
	_ bench.Dataset = recipeFiles{}
	_ bench.Dataset = pinnedPart{}

	_ bench.Evaluated = recipeFiles{}
	_ bench.Evaluated = (*pinnedFiles)(nil)
	_ bench.Evaluated = foreignFiles{}
	_ bench.Foreign   = foreignFiles{}
)

// recipeFiles is a part of a data set that a recipe determines, whether it was generated yet or not.
type recipeFiles struct {
	recipe       datagen.Recipe
	first, files int     // of the recipe's data files
	sizes        []int64 // measured, where that is little work; else nil
}

// measureBytes bounds the files that are made in memory to know their sizes before they are generated.
const measureBytes = 64 << 20

// filesOf is the training part of the data set that a workload describes.
func filesOf(w *workload.Workload) (recipeFiles, error) {
	r, err := datagen.FromWorkload(w)
	if err != nil {
		return recipeFiles{}, err
	}
	return partOf(r, 0, r.TrainFiles()), nil
}

func partOf(r datagen.Recipe, first, files int) recipeFiles {
	d := recipeFiles{recipe: r, first: first, files: files}
	if r.Exact() {
		return d
	}
	var most int64
	for i := range files {
		if most += r.File(first + i).Size; most > measureBytes || most < 0 {
			return d
		}
	}
	sizes := make([]int64, files)
	for i := range sizes {
		n, err := r.Measure(first + i)
		if err != nil {
			return d // generating tells what is wrong
		}
		sizes[i] = n
	}
	d.sizes = sizes
	return d
}

// Evaluation is the part for evaluation of the same recipe.
func (d recipeFiles) Evaluation() bench.Dataset {
	train := d.recipe.TrainFiles()
	return partOf(d.recipe, train, d.recipe.Files()-train)
}

// exact reports whether Size is what the files will have, and not an estimate.
func (d recipeFiles) exact() bool { return d.recipe.Exact() || d.sizes != nil }

func (d recipeFiles) Files() int              { return d.files }
func (d recipeFiles) Path(i int) string       { return d.recipe.File(d.first + i).Path }
func (d recipeFiles) SampleBytes(i int) int64 { return d.recipe.File(d.first + i).Layout.SampleBytes() }
func (d recipeFiles) Size(i int) int64 {
	if d.sizes != nil {
		return d.sizes[i]
	}
	return d.recipe.Estimate(d.recipe.File(d.first + i))
}

// pinnedPart is the training or the evaluation part of a data set as its manifest lists it.
type pinnedPart struct {
	*contents
	first int // number of its first file among all data files
	paths []string
	sizes []int64
}

// contents is what both parts of a data set have in common.
type contents struct {
	files      int                // data files of both parts
	companions []format.Companion // of each
	// sample is the size of one sample of data file i, which has so many bytes.
	sample func(i int, size int64) int64
	// digests are those of all files, as byEntry counts; nil where no mode of verification needs them.
	digests [][32]byte
}

func (d pinnedPart) Files() int              { return len(d.paths) }
func (d pinnedPart) Path(i int) string       { return d.paths[i] }
func (d pinnedPart) Size(i int) int64        { return d.sizes[i] }
func (d pinnedPart) SampleBytes(i int) int64 { return d.sample(d.first+i, d.sizes[i]) }

// all gives the paths of the part's files, each followed by its companions.
func (d pinnedPart) all() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, path := range d.paths {
			if !yield(path) {
				return
			}
			for _, c := range d.companions {
				if !yield(c.Path(path)) {
					return
				}
			}
		}
	}
}

// pinnedFiles is a data set as its manifest lists it. As a bench.Dataset it is the training part.
type pinnedFiles struct {
	pinnedPart
	valid pinnedPart
	// byEntry is the number of each entry of the manifest: data files of training, of evaluation, then the companions of the first data
	// file, of the second, and so on.
	byEntry []int32
	// recipe is what made the files, nil where nobody generated them.
	recipe *datagen.Recipe
}

// seed is that of the recipe, "" without one.
func (d *pinnedFiles) seed() string {
	if d.recipe == nil {
		return ""
	}
	return d.recipe.Seed()
}

// dataset is what the engine reads.
func (d *pinnedFiles) dataset() bench.Dataset {
	if d.recipe == nil && d.contents != nil {
		return foreignFiles{d}
	}
	return d
}

// Evaluation is the part for evaluation.
func (d *pinnedFiles) Evaluation() bench.Dataset { return d.valid }

// entry returns the number, as byEntry counts, of a part's file i (c is 0) or of its companion c-1.
func (d pinnedPart) entry(i, c int) int {
	if c == 0 {
		return d.first + i
	}
	return d.files + (d.first+i)*len(d.companions) + c - 1
}

// openFiles reads the entries of a manifest as a run of the workload sees them.
func openFiles(ctx context.Context, m *manifest.Manifest, w *workload.Workload) (*pinnedFiles, error) {
	open := func() (*pinnedFiles, error) { return openGenerated(ctx, m) }
	if m.Header().Recipe == nil {
		open = func() (*pinnedFiles, error) { return openForeign(ctx, m, w) }
	}
	d, err := open()
	if err == nil && w.Benchpin.Verify == workload.VerifyInline {
		err = d.addDigests(ctx, m)
	}
	return d, err
}

// openGenerated reads the entries of a manifest beside its recipe, which must make the same files. The parts are in DLIO's order: by base
// name, which interleaves subfolders.
func openGenerated(ctx context.Context, m *manifest.Manifest) (*pinnedFiles, error) {
	recipe, err := datagen.ParseRecipe(m.Header().Recipe)
	if err != nil {
		return nil, fmt.Errorf("recipe of the manifest: %w", err)
	}
	if count := m.Header().Count; int64(recipe.Entries()) != count || count > math.MaxInt32 {
		return nil, fmt.Errorf("manifest: its recipe makes %d files, companions included, and it lists %d (at most %d can be read)",
			recipe.Entries(), count, math.MaxInt32)
	}
	// Nothing is allocated for files that a header merely claims: they are kept as they come.
	type file struct {
		number int
		path   string
		size   int64
	}
	var files []file
	var byEntry []int32
	next, stop := iter.Pull2(recipe.Sorted())
	defer stop()
	err = m.Entries(ctx, func(e manifest.Entry) error {
		i, want, _ := next() // as many as there are entries
		if want.Path != e.Path || !want.CanBe(e.Size) {
			return fmt.Errorf("its recipe makes file %d as %s of %s, and it lists %s of %d bytes", i, want.Path, want.SizeText(), e.Path, e.Size)
		}
		byEntry = append(byEntry, int32(i))
		if i < recipe.Files() {
			files = append(files, file{i, e.Path, e.Size})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	paths, sizes := make([]string, len(files)), make([]int64, len(files))
	for _, f := range files {
		paths[f.number], sizes[f.number] = f.path, f.size
	}
	c := &contents{files: recipe.Files(), sample: func(i int, _ int64) int64 { return recipe.File(i).Layout.SampleBytes() }}
	if f, ok := recipe.Format().(format.Companioned); ok {
		c.companions = f.Companions()
	}
	n := recipe.TrainFiles()
	return &pinnedFiles{
		pinnedPart: pinnedPart{contents: c, paths: paths[:n], sizes: sizes[:n]},
		valid:      pinnedPart{contents: c, first: n, paths: paths[n:], sizes: sizes[n:]},
		byEntry:    byEntry, recipe: &recipe,
	}, nil
}

// errOtherData is the error of a run on data that the workload does not describe. It comes in a workload.Error.
var errOtherData = errors.New("the data set is not the one that the workload describes")

// unfit says that a workload cannot be carried out as written, in the words of err.
func unfit(err error) error { return &workload.Error{Msg: err.Error(), Err: err} }

// suits checks that the data set is what the workload would generate, but for the number of files: a run may read fewer than there
// are. Otherwise the record would describe other data than what was read.
//
// Data that nobody generated are what the workload says: openFiles read them so.
func (d *pinnedFiles) suits(w *workload.Workload) error {
	if d.recipe == nil {
		return nil
	}
	wanted, err := datagen.FromWorkload(w)
	if err != nil {
		return err
	}
	var have, want map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(d.recipe.JSON(), &have), json.Unmarshal(wanted.JSON(), &want)); err != nil {
		return fmt.Errorf("recipe: %w", err)
	}
	keys := maps.Clone(want)
	maps.Copy(keys, have)
	delete(keys, "train")
	delete(keys, "valid")
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if bytes.Equal(have[key], want[key]) {
			continue
		}
		hint := "use the workload and overrides that it was generated with"
		if key == "seed" {
			hint = fmt.Sprintf("give --seed %s, or generate it again", d.recipe.Seed())
		}
		return unfit(fmt.Errorf("%w: its recipe has %s %s, the workload %s; %s", errOtherData, key, orAbsent(have[key]), orAbsent(want[key]), hint))
	}
	return nil
}
