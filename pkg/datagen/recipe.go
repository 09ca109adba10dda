// Package datagen makes data sets: from a recipe, which is the part of a workload that shapes the data, and its seed, it
// knows every file's name, shape, size and bytes, and writes them on all cores.
//
// Whatever is a function of the recipe is the same on every machine, with any number of workers, in any order of work, and
// after any number of interruptions. docs/datagen.md specifies it.
//
// The package never overwrites a file that it cannot know to be its own, never trusts a file that it finds, and never
// puts into the bytes who made them, when or where.
package datagen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/stream"
	"github.com/benchpin/benchpin/pkg/workload"
)

const (
	// Generator is the name of this generator in a recipe, and its domain of streams.
	Generator = "benchpin/datagen"
	// Version is the generator's version. Output never changes under one version.
	Version = 1
)

// maxFiles bounds both parts of a data set: indices of files stay far from the bit that marks the validation part.
const maxFiles = 1 << 40

// validStream is added to the index of a validation file to give the index of its stream, so that the number of training files
// does not shift the content of the others.
const validStream = 1 << 63

// Part is one of the two parts of a data set, the training or the validation files.
type Part struct {
	Files      int `json:"files"`      // at least 0
	Subfolders int `json:"subfolders"` // files are dealt round to so many folders; 0 is none
}

// document is the recipe's canonical form: these keys in this order, without spaces.
type document struct {
	Generator string `json:"generator"`
	Version   int    `json:"version"`
	Seed      string `json:"seed"` // decimal: JSON's numbers are safe to 2^53 only
	Format    string `json:"format"`
	// Options are those of the container, absent where it has none or all have their defaults.
	Options        *format.Spec `json:"options,omitempty"`
	DType          string       `json:"dtype"`
	Prefix         string       `json:"prefix"`
	SamplesPerFile int          `json:"samples_per_file"`
	RecordDims     []int        `json:"record_dims"` // [] where the two fields below give the shape
	RecordLength   float64      `json:"record_length_bytes"`
	RecordStdev    float64      `json:"record_length_bytes_stdev"`
	Train          Part         `json:"train"`
	Valid          Part         `json:"valid"`
}

// Recipe determines a data set. Its zero value is of no use; FromWorkload and ParseRecipe make checked ones, which are safe
// for concurrent use and never change.
type Recipe struct {
	doc    document
	raw    json.RawMessage
	family *stream.Seeded
	format format.Format
	dtype  format.DType
	mean   float64 // of a side, before rounding
	spread float64 // standard deviation of a side; 0 for equal files
	flat   bool    // samples are RecordLength bytes without a shape

	extension  string             // of data files
	companions []format.Companion // of each data file
	measured   format.Measured    // nil where sizes follow from layouts
	ratio      func() float64     // of sizes to what they can be at most; nil where measured is
	equal      *equal             // nil where files differ in shape or size
}

// FromWorkload takes the recipe from a workload: its section "dataset", and "benchpin.seed". It refuses what cannot be
// generated, formats and options that do not exist among it, and names the key: a *workload.Error.
func FromWorkload(w *workload.Workload) (Recipe, error) {
	r, err := fromWorkload(w)
	if err != nil {
		return Recipe{}, &workload.Error{Msg: err.Error(), Err: err}
	}
	return r, nil
}

func fromWorkload(w *workload.Workload) (Recipe, error) {
	d := &w.Dataset
	doc := document{
		Generator: Generator, Version: Version, Seed: strconv.FormatUint(w.Benchpin.Seed, 10),
		Format: d.Format, DType: d.RecordElementType, Prefix: d.FilePrefix, SamplesPerFile: d.NumSamplesPerFile,
		RecordDims: append([]int{}, d.RecordDims...),
		Train:      Part{d.NumFilesTrain, d.NumSubfoldersTrain}, Valid: Part{d.NumFilesEval, d.NumSubfoldersEval},
	}
	if n := d.NumFilesGenerated; n > 0 {
		if n < d.NumFilesTrain {
			return Recipe{}, fmt.Errorf("recipe: dataset.num_files_generated is %d, and dataset.num_files_train %d are to be read; "+
				"generate as many at least", n, d.NumFilesTrain)
		}
		doc.Train.Files = n
	}
	if len(doc.RecordDims) == 0 {
		doc.RecordLength, doc.RecordStdev = d.RecordLengthBytes, d.RecordLengthBytesStdev
	} else if d.RecordLengthBytesStdev != 0 {
		return Recipe{}, fmt.Errorf("recipe: dataset.record_length_bytes_stdev is %v beside dataset.record_dims %v; "+
			"samples of given dimensions have no spread: leave one of the two out", d.RecordLengthBytesStdev, doc.RecordDims)
	}
	// DLIO writes one subfolder as none, and then cannot read it.
	for _, p := range []*Part{&doc.Train, &doc.Valid} {
		if p.Subfolders == 1 || p.Files == 0 {
			p.Subfolders = 0
		}
	}
	if t, err := format.ParseDType(doc.DType); err == nil {
		doc.DType = t.Name
	}
	if err := doc.setOptions(d); err != nil {
		return Recipe{}, fmt.Errorf("recipe: %w", err)
	}
	return newRecipe(doc)
}

// ParseRecipe reads the recipe in a manifest's header. It accepts only the bytes that JSON gives, of a version that this
// program can still produce.
func ParseRecipe(raw json.RawMessage) (Recipe, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	var doc document
	if err := d.Decode(&doc); err != nil {
		return Recipe{}, fmt.Errorf("recipe: %w", err)
	}
	r, err := newRecipe(doc)
	if err != nil {
		return Recipe{}, err
	}
	if !bytes.Equal(r.raw, raw) {
		return Recipe{}, fmt.Errorf("recipe: not in canonical form: expected %s, found %.2000s", r.raw, raw)
	}
	return r, nil
}

// newRecipe checks a document and resolves what it names.
func newRecipe(doc document) (Recipe, error) {
	r := Recipe{doc: doc}
	if doc.Generator != Generator || doc.Version != Version {
		return Recipe{}, fmt.Errorf("recipe: made by generator %q version %d; this program has %q version %d: use the program "+
			"that made it, or a later one", doc.Generator, doc.Version, Generator, Version)
	}
	seed, err := strconv.ParseUint(doc.Seed, 10, 64)
	if err != nil || strconv.FormatUint(seed, 10) != doc.Seed {
		return Recipe{}, fmt.Errorf("recipe: seed %q is not a decimal number below 2^64", doc.Seed)
	}
	if err := r.setFormat(); err != nil {
		return Recipe{}, fmt.Errorf("recipe: dataset.%w", err)
	}
	if r.dtype, err = format.ParseDType(doc.DType); err != nil {
		return Recipe{}, fmt.Errorf("recipe: dataset.record_element_type: %w", err)
	}
	if r.dtype.Name != doc.DType {
		return Recipe{}, fmt.Errorf("recipe: dtype is written %q; expected its one name %q", doc.DType, r.dtype.Name)
	}
	r.family = stream.New(Generator, Version, seed)
	if err := r.checkShape(); err != nil {
		return Recipe{}, fmt.Errorf("recipe: %w", err)
	}
	if err := r.checkNames(); err != nil {
		return Recipe{}, fmt.Errorf("recipe: %w", err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r.doc); err != nil {
		return Recipe{}, fmt.Errorf("recipe: %w", err)
	}
	r.raw = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	r.setEqual()
	if r.measured != nil {
		whole := r
		r.ratio = sync.OnceValue(whole.measuredRatio)
	}
	return r, nil
}

func (r *Recipe) layout(dims []int) format.Layout {
	return format.Layout{Dims: dims, Samples: r.doc.SamplesPerFile, DType: r.dtype}
}

func (r *Recipe) checkNames() error {
	for _, p := range []struct {
		key string
		Part
	}{{"train", r.doc.Train}, {"eval", r.doc.Valid}} {
		if p.Files < 0 || p.Files > maxFiles {
			return fmt.Errorf("dataset.num_files_%s is %d; expected 0 to 2^40", p.key, p.Files)
		}
		if p.Subfolders < 0 || p.Subfolders == 1 || p.Subfolders > 0 && p.Files == 0 {
			return fmt.Errorf("dataset.num_subfolders_%s is %d for %d files; expected 0, or 2 and more", p.key, p.Subfolders, p.Files)
		}
	}
	if r.Files() == 0 {
		return errors.New("dataset.num_files_train and dataset.num_files_eval are both 0; there is nothing to generate (a data set that is there " +
			"already is pinned, and run on with --data)")
	}
	last := r.Files() - 1
	names := []string{r.File(last).Path}
	for c := range r.companions {
		names = append(names, r.Companion(last, c).Path)
	}
	for _, name := range names {
		if strings.Contains(r.doc.Prefix, "/") || store.IsTemporary(name) || store.CheckName(name) != nil {
			return fmt.Errorf("dataset.file_prefix %q cannot begin the name of a file", r.doc.Prefix)
		}
	}
	return nil
}

// JSON returns the canonical form of the recipe, for a manifest's header. The caller must not change it.
func (r Recipe) JSON() json.RawMessage { return r.raw }

// Files returns the number of data files, those for training first. Companions are not among them: see Entries.
func (r Recipe) Files() int { return r.doc.Train.Files + r.doc.Valid.Files }

// TrainFiles returns the number of training files.
func (r Recipe) TrainFiles() int { return r.doc.Train.Files }

// SamplesPerFile returns the number of samples in each file.
func (r Recipe) SamplesPerFile() int { return r.doc.SamplesPerFile }

// Available returns nil where this build can make and read the files, else an error that names what it lacks
// (*format.UnavailableError). Names, counts and bounds of sizes are known either way.
func (r Recipe) Available() error {
	if err := format.Available(r.format); err != nil {
		return fmt.Errorf("recipe: %w", err)
	}
	return nil
}

// Format returns the container of the samples.
func (r Recipe) Format() format.Format { return r.format }

// Seed returns the seed of the data set in decimal.
func (r Recipe) Seed() string { return r.doc.Seed }

// Layout returns what the manifest's header says of how samples lie in the files.
func (r Recipe) Layout() *manifest.Layout {
	return &manifest.Layout{
		Format: r.doc.Format, SamplesPerFile: int64(r.doc.SamplesPerFile), DType: r.doc.DType,
		Train: int64(r.doc.Train.Files), Valid: int64(r.doc.Valid.Files),
	}
}
