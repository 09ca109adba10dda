package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/workload"
)

// foreignFiles is a data set that nobody generated, as the engine reads it: a sample's size is its share of its file.
type foreignFiles struct{ *pinnedFiles }

// Companions says whether the files have the companions that their container knows.
func (d foreignFiles) Companions() bool { return len(d.companions) > 0 }

// The folders of the two parts of a data set, in DLIO's words.
const (
	trainPart = "train/"
	validPart = "valid/"
)

// errParts is the error about files that belong to no part. It comes in a workload.Error.
var errParts = errors.New("the data set has files for training in train/, and others that are neither there nor in valid/")

// openForeign reads the entries of a manifest without recipe: files in the order of the manifest, which is that of the raw bytes of their
// paths. Where there is a folder train/, what is below it is for training and what is below valid/ for evaluation; else every file is for
// training. How files are read, and how many samples each holds, is what the workload says; a layout in the manifest must say the same.
func openForeign(ctx context.Context, m *manifest.Manifest, w *workload.Workload) (*pinnedFiles, error) {
	h := m.Header()
	if h.Count > math.MaxInt32 {
		return nil, fmt.Errorf("manifest: it lists %d files: at most %d can be read", h.Count, math.MaxInt32)
	}
	spec, err := format.ForeignSpec(&w.Dataset)
	if err != nil {
		return nil, unfit(err)
	}
	n := w.Dataset.NumSamplesPerFile
	if _, err := format.NewForeign(spec, n); err != nil {
		return nil, unfit(err)
	}
	f, err := format.New(spec) // whose companions are no samples, whether reading needs them or not
	if err != nil {
		return nil, unfit(err)
	}
	if l := h.Layout; l != nil && spec.Name != format.RawName && (l.Format != spec.Name || l.SamplesPerFile != int64(n)) {
		return nil, unfit(fmt.Errorf("%w: it was pinned as %s of %s each, and the workload reads %s of %s each; take the layout of the manifest, "+
			"pin again with another one, or read files as they are (--format %s)", errOtherData, l.Format, counted(l.SamplesPerFile, "sample"), spec.Name,
			counted(n, "sample"), format.RawName))
	}
	var paths []string
	var sizes []int64
	err = m.Entries(ctx, func(e manifest.Entry) error {
		paths, sizes = append(paths, e.Path), append(sizes, e.Size)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	d := &pinnedFiles{byEntry: make([]int32, len(paths))}
	c := &contents{samples: int64(n)}
	owner, err := pairs(paths, f)
	if err != nil {
		return nil, unfit(err)
	}
	if owner != nil {
		c.companions = f.(format.Companioned).Companions()
	}
	split := slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(p, trainPart) })
	d.contents, d.valid.contents = c, c
	for i, p := range paths {
		switch {
		case owner != nil && owner[i] != i:
		case !split || strings.HasPrefix(p, trainPart):
			d.paths, d.sizes = append(d.paths, p), append(d.sizes, sizes[i])
		case strings.HasPrefix(p, validPart):
			d.valid.paths, d.valid.sizes = append(d.valid.paths, p), append(d.valid.sizes, sizes[i])
		default:
			return nil, unfit(fmt.Errorf("%w: %s; pin the data set without it (benchpin data pin --exclude), or pin the folder train alone", errParts, p))
		}
	}
	d.count, d.valid.count = len(d.paths), len(d.valid.paths)
	d.valid.first, c.files = d.count, d.count+d.valid.count
	d.number(paths, owner, split)
	return d, nil
}

// available refuses generated data sets whose files this build cannot read.
func (d *pinnedFiles) available() error {
	if d.recipe == nil {
		return nil
	}
	return available(*d.recipe)
}

// number fills byEntry.
func (d *pinnedFiles) number(paths []string, owner []int, split bool) {
	train, valid := 0, d.valid.first
	for i, p := range paths {
		switch {
		case owner != nil && owner[i] != i:
			continue
		case !split || strings.HasPrefix(p, trainPart):
			d.byEntry[i] = int32(train)
			train++
		default:
			d.byEntry[i] = int32(valid)
			valid++
		}
	}
	for i, p := range paths {
		if owner == nil || owner[i] == i {
			continue
		}
		of := owner[i]
		for c, companion := range d.companions {
			if companion.Path(paths[of]) == p {
				d.byEntry[i] = int32(d.files + int(d.byEntry[of])*len(d.companions) + c)
			}
		}
	}
}

// pairs finds the companions of a container that has some: the index of each path's data file, which is its own for a data file. It is nil
// where no file has companions, which is an error for a container that cannot do without.
func pairs(paths []string, f format.Format) ([]int, error) {
	with, ok := f.(format.Companioned)
	if !ok {
		return nil, nil
	}
	at := make(map[string]int, len(paths))
	for i, p := range paths {
		at[p] = i
	}
	companions := with.Companions()
	owner := make([]int, len(paths))
	for i := range owner {
		owner[i] = -1
	}
	found := 0
	for i, p := range paths {
		have := 0
		for _, c := range companions {
			if _, ok := at[c.Path(p)]; ok {
				have++
			}
		}
		if have < len(companions) {
			continue
		}
		found++
		owner[i] = i
		for _, c := range companions {
			j := at[c.Path(p)]
			if owner[j] >= 0 {
				return nil, fmt.Errorf("%s is the index of %s and of %s; give files different names, or pin them apart", paths[j], paths[owner[j]], p)
			}
			owner[j] = i
		}
	}
	_, streamed := f.(format.Streamed)
	if found == 0 && streamed {
		return nil, nil // tfrecord: every record says where the next one begins
	}
	for i, p := range paths {
		if owner[i] < 0 {
			var names []string
			for _, c := range companions {
				names = append(names, c.Path(p))
			}
			return nil, fmt.Errorf("%s of format %s has no index %s beside it in the manifest; pin the data set without it (benchpin data pin --exclude), or read "+
				"files as they are (--format %s)", p, f.Name(), strings.Join(names, ", "), format.RawName)
		}
	}
	return owner, nil
}

// kind is what a file's name says of its content.
type kind struct{ format, compression string }

// kindOf tells a file's container by what its name ends in, whatever the case; false where the name says nothing. Indexes are files of their
// container.
func kindOf(name string) (kind, bool) {
	base := strings.ToLower(path.Base(name))
	for _, k := range []struct {
		suffixes string
		kind
	}{
		{".npz", kind{"npz", ""}}, {".npy", kind{"npy", ""}}, {".h5 .hdf5 .hdf .he5", kind{"hdf5", ""}},
		{".jpg .jpeg .jpe .jfif", kind{"jpeg", ""}}, {".png", kind{"png", ""}}, {".parquet .pq", kind{"parquet", ""}},
		{".tfrecord .tfrecords .tfrec", kind{"tfrecord", ""}}, {".csv", kind{"csv", ""}}, {".csv.gz", kind{"csv", "gzip"}}, {".csv.zip", kind{"csv", "zip"}},
		{".csv.bz2", kind{"csv", "bz2"}}, {".csv.xz", kind{"csv", "xz"}},
		{".csv.bz2", kind{"csv", "bz2"}}, {".csv.xz", kind{"csv", "xz"}},
		{".off.idx .sz.idx .indexed_binary", kind{"indexed_binary", ""}}, {".mmap_indexed_binary", kind{"mmap_indexed_binary", ""}},
		{".idx", kind{"tfrecord", ""}},
	} {
		for _, s := range strings.Fields(k.suffixes) {
			if strings.HasSuffix(base, s) {
				return k.kind, true
			}
		}
	}
	return kind{}, false
}

// census counts what the names of a data set's files end in.
type census struct {
	kinds map[kind]int
	// ends counts extensions, and example has a file of each.
	ends    map[string]int
	example map[string]string
	unknown string // a file whose name says nothing, "" where there is none
	indexed bool   // indexes of indexed files are among them
}

// mostEnds bounds the extensions that are told apart.
const mostEnds = 1000

func newCensus(ctx context.Context, m *manifest.Manifest) (*census, error) {
	c := &census{kinds: map[kind]int{}, ends: map[string]int{}, example: map[string]string{}}
	err := m.Entries(ctx, func(e manifest.Entry) error {
		k, ok := kindOf(e.Path)
		if c.kinds[k]++; !ok && c.unknown == "" {
			c.unknown = e.Path
		}
		c.indexed = c.indexed || strings.HasSuffix(e.Path, ".off.idx")
		end := strings.ToLower(path.Ext(e.Path))
		if _, have := c.ends[end]; have || len(c.ends) < mostEnds {
			if c.ends[end]++; c.ends[end] == 1 {
				c.example[end] = e.Path
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return c, nil
}

// one is the kind of all files, and false where there is none.
func (c *census) one() (kind, bool) {
	if c.indexed { // whatever their data files are called
		return kind{"indexed_binary", ""}, true
	}
	if len(c.kinds) != 1 || c.unknown != "" {
		return kind{}, false
	}
	for k := range c.kinds {
		return k, true
	}
	return kind{}, false
}

// String lists what there is, the most frequent first.
func (c *census) String() string {
	ends := make([]string, 0, len(c.ends))
	for e := range c.ends {
		ends = append(ends, e)
	}
	slices.SortFunc(ends, func(a, b string) int {
		if d := c.ends[b] - c.ends[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	const most = 6
	var text []string
	for i, e := range ends {
		if i == most {
			text = append(text, fmt.Sprintf("and %d more kinds", len(ends)-most))
			break
		}
		name := e
		if e == "" {
			name = "without extension"
		}
		text = append(text, fmt.Sprintf("%d %s (%s)", c.ends[e], name, c.example[e]))
	}
	return strings.Join(text, ", ")
}

// errKinds is the error about files whose names do not say how to read them. It comes in a workload.Error.
var errKinds = errors.New("how the files are to be read is not known")

// ForData resolves a workload for the data set of a manifest. A manifest with a recipe, and a workload that reads no data, leave it as it is.
// For data that nobody generated it sets what the workload leaves open, so that the canonical form says what is read:
//
//   - dataset.format is what an override says, or the layout of the manifest, or the workload's, which must be what the names of the files
//     say unless it is "raw", or what their names say;
//   - dataset.num_samples_per_file is the layout's where the workload says nothing;
//   - dataset.num_files_train (and num_files_eval, where there is evaluation) is the number of files where the workload says nothing or 0;
//     another number in the workload is an error, and a smaller one in an override is what is read.
//
// Its errors about what does not fit are *workload.Error.
func ForData(ctx context.Context, r *workload.Resolved, m *manifest.Manifest) (*workload.Resolved, error) {
	if m.Header().Recipe != nil || bench.CheckpointOnly(r.Workload) {
		return r, nil
	}
	set, err := formatFor(ctx, r, m)
	if err != nil {
		return nil, err
	}
	if r, err = with(r, set); err != nil {
		return nil, err
	}
	if l := m.Header().Layout; l != nil && r.Workload.Dataset.Format == l.Format && int64(r.Workload.Dataset.NumSamplesPerFile) != l.SamplesPerFile {
		if _, given := r.Given(keySamples); !given {
			if r, err = r.With(fmt.Sprintf("%s=%d", keySamples, l.SamplesPerFile)); err != nil {
				return nil, err
			}
		}
	}
	files, err := openForeign(ctx, m, r.Workload)
	if err != nil {
		return nil, err
	}
	if files.count == 0 {
		return nil, unfit(fmt.Errorf("%w: it has no file to train on", errOtherData))
	}
	set = nil
	for _, part := range []struct {
		key, name  string
		read, have int
		used       bool
	}{
		{keyTrain, "training", r.Workload.Dataset.NumFilesTrain, files.count, true},
		{keyEval, "evaluation", r.Workload.Dataset.NumFilesEval, files.valid.count, r.Workload.Workflow.Evaluation},
	} {
		at, given := r.Given(part.key)
		switch {
		case !part.used || part.read == part.have:
		case !given || part.read == 0:
			set = append(set, fmt.Sprintf("%s=%d", part.key, part.have))
		case at.Override == "" || part.read > part.have:
			return nil, &workload.Error{Position: at, Path: part.key, Msg: fmt.Sprintf("%v: the workload reads %d files for %s, and the data set has %d",
				errOtherData, part.read, part.name, part.have), Hint: fmt.Sprintf("leave the key out to read all, or give ++workload.%s=N of at most %d",
				part.key, part.have), Err: errOtherData}
		}
	}
	return with(r, set)
}

// The keys of a workload that follow from data that nobody generated.
const (
	keyFormat      = "dataset.format"
	keyCompression = "dataset.compression"
	keySamples     = "dataset.num_samples_per_file"
	keyTrain       = "dataset.num_files_train"
	keyEval        = "dataset.num_files_eval"
)

func with(r *workload.Resolved, set []string) (*workload.Resolved, error) {
	if len(set) == 0 {
		return r, nil
	}
	return r.With(set...)
}

// formatFor says what is to be set for files to be read as what they are.
func formatFor(ctx context.Context, r *workload.Resolved, m *manifest.Manifest) (set []string, err error) {
	at, given := r.Given(keyFormat)
	if given && (at.Override != "" || r.Workload.Dataset.Format == format.RawName) {
		return nil, nil
	}
	found, err := newCensus(ctx, m)
	if err != nil {
		return nil, err
	}
	if l := m.Header().Layout; l != nil {
		if given && r.Workload.Dataset.Format != l.Format {
			return nil, &workload.Error{Position: at, Path: keyFormat, Msg: fmt.Sprintf("%v: the workload reads %s, and the data set was pinned as %s", errOtherData,
				r.Workload.Dataset.Format, l.Format), Hint: "give --format to read it otherwise", Err: errOtherData}
		}
		return need(r, l.Format, found), nil
	}
	k, ok := found.one()
	mapped := ok && k.format == "indexed_binary" && r.Workload.Dataset.Format == "mmap_indexed_binary" // the same files
	switch {
	case given && !mapped && (!ok || k.format != r.Workload.Dataset.Format):
		return nil, &workload.Error{Position: at, Path: keyFormat, Msg: fmt.Sprintf("%v: the workload reads %s, and the files are %s", errOtherData,
			r.Workload.Dataset.Format, found), Hint: kindsHint, Err: errOtherData}
	case !ok:
		return nil, &workload.Error{Path: keyFormat, Msg: fmt.Sprintf("%v: there are %s", errKinds, found), Hint: kindsHint, Err: errKinds}
	case mapped:
		return nil, nil
	}
	return need(r, k.format, found), nil
}

const kindsHint = "pin the data set without files that are no samples (benchpin data pin --exclude), say what they are (--format), or read each file " +
	"as it is, whatever it holds (--format " + format.RawName + ")"

// need is what makes the workload read a format.
func need(r *workload.Resolved, name string, found *census) (set []string) {
	if r.Workload.Dataset.Format != name {
		set = append(set, keyFormat+"="+name)
	}
	if k, ok := found.one(); ok && k.format == name && k.compression != "" {
		if _, given := r.Given(keyCompression); !given {
			set = append(set, keyCompression+"="+k.compression)
		}
	}
	return set
}

// otherFormat adds to an error of a run on data that nobody generated what to do where a file is not what it is read as.
func otherFormat(err error, w *workload.Workload) error {
	var bad *format.DataError
	if w.Dataset.Format == format.RawName || !errors.As(err, &bad) {
		return err
	}
	return fmt.Errorf("%w; the data set is read as %s of %s each: where it is something else, say so (--format, --samples-per-file); --format %s reads any file "+
		"as one sample", err, w.Dataset.Format, counted(w.Dataset.NumSamplesPerFile, "sample"), format.RawName)
}

// foreignFormat is how data that nobody generated are read, for the record; "" of others, whose recipe says it.
func foreignFormat(d *pinnedFiles, w *workload.Workload) string {
	if d.recipe != nil || bench.CheckpointOnly(w) {
		return ""
	}
	return w.Dataset.Format
}
