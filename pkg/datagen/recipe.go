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
	"reflect"
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
}

// FromWorkload takes the recipe from a workload: its section "dataset", and "benchpin.seed". It refuses what cannot be
// generated, formats and options that do not exist among it, and names the key.
func FromWorkload(w *workload.Workload) (Recipe, error) {
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

// setOptions takes the container's options from a workload.
func (doc *document) setOptions(d *workload.Dataset) error {
	o, err := format.SpecOf(d)
	if err != nil {
		return err
	}
	o.Name = ""
	for i := range o.Columns {
		c := &o.Columns[i]
		c.Skip = false // which columns are read makes no difference to the data
		if t, err := format.ParseDType(c.DType); err == nil {
			c.DType = t.Name
		}
	}
	if doc.Format == parquet {
		if len(doc.RecordDims) > 0 {
			return fmt.Errorf("dataset.record_dims is %v, but the shape of a parquet row is that of dataset.parquet.columns; remove it", doc.RecordDims)
		}
		if doc.RecordStdev != 0 {
			return fmt.Errorf("dataset.record_length_bytes_stdev is %v, but parquet rows have one length; remove it", doc.RecordStdev)
		}
		row, err := rowBytes(o.Columns)
		if err != nil {
			return err
		}
		doc.RecordLength = float64(row)
	}
	if !reflect.ValueOf(o).IsZero() {
		doc.Options = &o
	}
	return nil
}

// parquet is the format whose samples are rows of columns: their length is that of the columns, and dataset.record_length_bytes has no
// effect.
const parquet = "parquet"

// rowBytes returns the bytes of all columns of a row.
func rowBytes(columns []format.Column) (int64, error) {
	var row int64
	for _, c := range columns {
		t, err := format.ParseDType(c.DType)
		if err != nil {
			return 0, fmt.Errorf("dataset.parquet.columns: %s: %w", c.Name, err)
		}
		row = sum(row, saturated(int64(t.Size), int64(c.Size)))
	}
	return row, nil
}

// images are formats of one image a file, whose size may be asked for (dataset.jpeg.sizing).
func (doc *document) exactImage() bool {
	return (doc.Format == "jpeg" || doc.Format == "png") && (doc.Options == nil || doc.Options.Sizing == "")
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
	if r.measured != nil {
		whole := r
		r.ratio = sync.OnceValue(whole.measuredRatio)
	}
	return r, nil
}

// setFormat makes the container that the recipe names, and looks at what it can.
func (r *Recipe) setFormat() (err error) {
	spec := format.Spec{}
	if o := r.doc.Options; o != nil {
		if spec = *o; reflect.ValueOf(spec).IsZero() || spec.Name != "" {
			return fmt.Errorf("format: options %+v; expected none, or some without the name of the format", spec)
		}
		for _, c := range spec.Columns {
			if c.Skip {
				return fmt.Errorf("format: column %s has skip, which is about reading", c.Name)
			}
			if t, err := format.ParseDType(c.DType); err == nil && t.Name != c.DType {
				return fmt.Errorf("format: column %s has the dtype %q; expected its one name %q", c.Name, c.DType, t.Name)
			}
		}
	}
	spec.Name = r.doc.Format
	if r.format, err = format.New(spec); err != nil {
		return fmt.Errorf("format: %w", err)
	}
	r.extension = format.Extension(r.format)
	if f, ok := r.format.(format.Companioned); ok {
		r.companions = f.Companions()
	}
	if f, ok := r.format.(format.Measured); ok {
		r.measured = f
	}
	return nil
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
	case r.doc.Format == parquet:
		return r.checkRows()
	case len(r.doc.RecordDims) > 0:
		return r.checkSize(r.doc.RecordDims)
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
	// An image of the exact size asked for need not be a square.
	r.flat = r.doc.exactImage() && s == 0
	if r.spread == 0 {
		return r.checkSize(r.dims(0))
	}
	largest := int(r.mean + float64(r.spread*13) + 1) // a normal draw is below 13
	if err := r.checkSize([]int{largest, largest}); err != nil {
		return err
	}
	return r.checkSmall()
}

// checkRows checks the shape of parquet's rows, which is that of the columns.
func (r *Recipe) checkRows() error {
	var columns []format.Column
	if r.doc.Options != nil {
		columns = r.doc.Options.Columns
	}
	row, err := rowBytes(columns)
	if err != nil {
		return err
	}
	if len(r.doc.RecordDims) > 0 || r.doc.RecordLength != float64(row) || row > 1<<53 || r.doc.RecordStdev != 0 {
		return fmt.Errorf("dimensions %v, record length %v ± %v; the columns of a parquet row have %d bytes", r.doc.RecordDims, r.doc.RecordLength,
			r.doc.RecordStdev, row)
	}
	if r.doc.DType != "uint8" {
		return fmt.Errorf("dataset.record_element_type is %q, but the types of parquet files are those of their columns; remove it", r.doc.DType)
	}
	r.flat = true
	return r.checkSize(r.dims(0))
}

// checkSize refuses a shape that the container or one of its companions cannot hold.
func (r *Recipe) checkSize(dims []int) error {
	l := r.layout(dims)
	if _, err := r.format.Size(l); err != nil {
		return err
	}
	for _, c := range r.companions {
		if _, err := c.Size(l); err != nil {
			return err
		}
	}
	return nil
}

// mostDrawn is the number of files whose shapes are looked at one by one where some that could be drawn cannot be held.
const mostDrawn = 1 << 20

// checkSmall refuses drawn shapes that are too small for the container: a drawn image may be too small to be one.
func (r *Recipe) checkSmall() error {
	smallest := max(1, int(r.mean-float64(r.spread*13)))
	err := r.checkSize([]int{smallest, smallest})
	if err == nil {
		return nil
	}
	if r.Files() > mostDrawn {
		return fmt.Errorf("dataset.record_length_bytes_stdev %v: samples may become as small as %d x %d: %w", r.doc.RecordStdev, smallest, smallest, err)
	}
	for i := range r.Files() {
		index := uint64(i)
		if i >= r.doc.Train.Files {
			index = validStream | uint64(i-r.doc.Train.Files)
		}
		if err := r.checkSize(r.dims(index)); err != nil {
			return fmt.Errorf("dataset.record_length_bytes_stdev %v: file %d: %w", r.doc.RecordStdev, i, err)
		}
	}
	return nil
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
