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
	recipe       *datagen.Recipe
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
	return partOf(&r, 0, r.TrainFiles()), nil
}

func partOf(r *datagen.Recipe, first, files int) recipeFiles {
	d := recipeFiles{recipe: r, first: first, files: files}
	if r.Exact() {
		return d
	}
	var most int64
	for i := range files {
		if most += r.Size(first + i); most > measureBytes || most < 0 {
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
func (d recipeFiles) Path(i int) string       { return d.recipe.Path(d.first + i) }
func (d recipeFiles) SampleBytes(i int) int64 { return d.recipe.SampleBytes(d.first + i) }
func (d recipeFiles) Size(i int) int64 {
	if d.sizes != nil {
		return d.sizes[i]
	}
	n := d.recipe.Size(d.first + i)
	return d.recipe.Estimate(datagen.FileSpec{Size: n, AtMost: !d.recipe.Exact()})
}

// pinnedPart is the training or the evaluation part of a data set as its manifest lists it.
type pinnedPart struct {
	*contents
	first int // number of its first file among all data files
	count int // of its files
	// paths and sizes are nil where the recipe says them: a recipe names each file alone, and of most containers it knows all sizes, so
	// that nothing has to be kept of files by the million.
	paths []string
	sizes []int64
}

// contents is what both parts of a data set have in common.
type contents struct {
	files      int                // data files of both parts
	companions []format.Companion // of each
	// made is the recipe that made the files; nil where nobody generated them.
	made *datagen.Recipe
	// samples are those of each file, where nobody generated them: each is its share of the file.
	samples int64
	// digests are those of all files, as byEntry counts; nil where no mode of verification needs them.
	digests [][32]byte
}

func (d pinnedPart) Files() int { return d.count }

func (d pinnedPart) Path(i int) string {
	if d.paths == nil {
		return d.made.Path(d.first + i)
	}
	return d.paths[i]
}

func (d pinnedPart) Size(i int) int64 {
	if d.sizes == nil {
		return d.made.Size(d.first + i)
	}
	return d.sizes[i]
}

func (d pinnedPart) SampleBytes(i int) int64 {
	if d.made == nil {
		return d.sizes[i] / d.samples
	}
	return d.made.SampleBytes(d.first + i)
}

// name is the path of file i (c is 0) or of its companion c-1.
func (d pinnedPart) name(i, c int) string {
	path := d.Path(i)
	if c > 0 {
		path = d.companions[c-1].Path(path)
	}
	return path
}

// all gives the paths of the part's files, each followed by its companions.
func (d pinnedPart) all() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range d.count {
			for c := range 1 + len(d.companions) {
				if !yield(d.name(i, c)) {
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
	// Nothing is allocated for files that a header merely claims: what has to be kept of them is kept as they come.
	var sizes []int64 // in the order of entries
	byEntry := make([]int32, 0, min(recipe.Entries(), manifest.MaxFrameEntries))
	next := recipe.Walk()
	err = m.Entries(ctx, func(e manifest.Entry) error {
		i, want, _ := next() // as many as there are entries
		if want.Path != e.Path || !want.CanBe(e.Size) {
			return fmt.Errorf("its recipe makes file %d as %s of %s, and it lists %s of %d bytes", i, want.Path, want.SizeText(), e.Path, e.Size)
		}
		byEntry = append(byEntry, int32(i))
		if !recipe.Exact() {
			sizes = append(sizes, e.Size)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	c := &contents{files: recipe.Files(), made: &recipe}
	if f, ok := recipe.Format().(format.Companioned); ok {
		c.companions = f.Companions()
	}
	n := recipe.TrainFiles()
	d := &pinnedFiles{
		pinnedPart: pinnedPart{contents: c, count: n},
		valid:      pinnedPart{contents: c, first: n, count: recipe.Files() - n},
		byEntry:    byEntry, recipe: &recipe,
	}
	if sizes != nil {
		all := make([]int64, recipe.Files())
		for k, i := range byEntry {
			if int(i) < len(all) {
				all[i] = sizes[k]
			}
		}
		d.sizes, d.valid.sizes = all[:n:n], all[n:]
	}
	return d, nil
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
