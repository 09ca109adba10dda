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
	"math"
	"strconv"
	"strings"

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
	Generator      string  `json:"generator"`
	Version        int     `json:"version"`
	Seed           string  `json:"seed"` // decimal: JSON's numbers are safe to 2^53 only
	Format         string  `json:"format"`
	DType          string  `json:"dtype"`
	Prefix         string  `json:"prefix"`
	SamplesPerFile int     `json:"samples_per_file"`
	RecordDims     []int   `json:"record_dims"` // [] where the two fields below give the shape
	RecordLength   float64 `json:"record_length_bytes"`
	RecordStdev    float64 `json:"record_length_bytes_stdev"`
	Train          Part    `json:"train"`
	Valid          Part    `json:"valid"`
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
}

// FromWorkload takes the recipe from a workload: its section "dataset", and "benchpin.seed". It refuses what cannot be
// generated, formats that do not exist among it, and names the key. dataset.compression has no effect on npy and npz, as in
// DLIO.
func FromWorkload(w *workload.Workload) (Recipe, error) {
	d := &w.Dataset
	doc := document{
		Generator: Generator, Version: Version, Seed: strconv.FormatUint(w.Benchpin.Seed, 10),
		Format: d.Format, DType: d.RecordElementType, Prefix: d.FilePrefix, SamplesPerFile: d.NumSamplesPerFile,
		RecordDims: append([]int{}, d.RecordDims...),
		Train:      Part{d.NumFilesTrain, d.NumSubfoldersTrain}, Valid: Part{d.NumFilesEval, d.NumSubfoldersEval},
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
	if r.format, err = format.ByName(doc.Format); err != nil {
		return Recipe{}, fmt.Errorf("recipe: dataset.format: %w", err)
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
	return r, nil
}

// checkShape checks sizes, and computes the mean and the spread of the sides.
func (r *Recipe) checkShape() error {
	l, s := r.doc.RecordLength, r.doc.RecordStdev
	switch {
	case r.doc.RecordDims == nil:
		return errors.New("record_dims is missing; expected a list, [] for square samples")
	case math.Signbit(l) || math.Signbit(s): // -0 would be a second way to write 0
		return fmt.Errorf("record length %v ± %v; expected numbers of 0 or more", l, s)
	case len(r.doc.RecordDims) > 0 && (l != 0 || s != 0):
		return fmt.Errorf("record_dims beside a record length of %v ± %v; expected 0 ± 0", l, s)
	case len(r.doc.RecordDims) > 0:
		_, err := r.format.Size(r.layout(r.doc.RecordDims))
		return err
	case !(l >= 1 && l <= 1<<53):
		return fmt.Errorf("dataset.record_length_bytes is %v; expected 1 to 2^53", l)
	case !(s >= 0 && s <= 1<<53):
		return fmt.Errorf("dataset.record_length_bytes_stdev is %v; expected 0 to 2^53", s)
	}
	r.mean = math.Sqrt(l)
	if s > 0 {
		// Sides x, y independent with mean m = √l and variance v: var(xy) = 2 m² v + v² = s² gives v = √(l²+s²) - l,
		// written here without the cancellation.
		v := float64(s*s) / (l + math.Sqrt(float64(l*l)+float64(s*s)))
		r.spread = math.Sqrt(v)
	}
	largest := int(r.mean + float64(r.spread*13) + 1) // a normal draw is below 13
	_, err := r.format.Size(r.layout([]int{largest, largest}))
	return err
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
		return errors.New("dataset.num_files_train and dataset.num_files_eval are both 0; there is nothing to generate")
	}
	name := r.File(r.Files() - 1).Path
	if strings.Contains(r.doc.Prefix, "/") || store.IsTemporary(name) || store.CheckName(name) != nil {
		return fmt.Errorf("dataset.file_prefix %q cannot begin the name of a file", r.doc.Prefix)
	}
	return nil
}

// JSON returns the canonical form of the recipe, for a manifest's header. The caller must not change it.
func (r Recipe) JSON() json.RawMessage { return r.raw }

// Files returns the number of files, TrainFiles that of the training part, which comes first.
func (r Recipe) Files() int { return r.doc.Train.Files + r.doc.Valid.Files }

// TrainFiles returns the number of training files.
func (r Recipe) TrainFiles() int { return r.doc.Train.Files }

// SamplesPerFile returns the number of samples in each file.
func (r Recipe) SamplesPerFile() int { return r.doc.SamplesPerFile }

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

// TotalBytes returns the bytes of all files. Where sizes are drawn it draws them all, at about 10 million files a second.
func (r Recipe) TotalBytes() int64 {
	if r.spread == 0 {
		return saturated(r.File(0).Size, int64(r.Files()))
	}
	total := int64(0)
	for i := range r.Files() {
		if total += r.File(i).Size; total < 0 {
			return math.MaxInt64
		}
	}
	return total
}

func saturated(a, b int64) int64 {
	if b != 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}
