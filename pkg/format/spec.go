package format

import (
	"fmt"
	"io"
	"strings"
)

// Spec chooses a container and its options. Options that a container does not have are errors where they are given, never ignored.
// The zero value of an option is its default. JSON names are those of recipes.
type Spec struct {
	// Name is dataset.format. A recipe has it in another place, and leaves it out here.
	Name string `json:"name,omitempty"`
	// Compression is a word of dataset.compression that the container knows, "" for none; Level is its level where it has one.
	Compression string `json:"compression,omitempty"`
	Level       int    `json:"level,omitempty"`
	// Datasets is dataset.hdf5.num_dset_per_record, Chunk dataset.hdf5.chunk_dims and MaxShape dataset.hdf5.max_shape.
	Datasets int   `json:"datasets,omitempty"`
	Chunk    []int `json:"chunk,omitempty"`
	MaxShape []int `json:"max_shape,omitempty"`
	// Columns are dataset.parquet.columns, RowGroup is dataset.parquet.row_group_size in rows.
	Columns  []Column `json:"columns,omitempty"`
	RowGroup int      `json:"row_group,omitempty"`
	// Sizing is dataset.jpeg.sizing: "exact" (default) or "encoded".
	Sizing string `json:"sizing,omitempty"`
}

// Column is one column of a parquet file.
type Column struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	// Size is the number of elements in a row, at least 1.
	Size int `json:"size"`
	// Skip is true for a column that is written and not read.
	Skip bool `json:"skip,omitempty"`
}

// Companion is a file that belongs to each data file, such as its index. Its bytes follow from the layout alone.
type Companion struct {
	// Path is the companion's path below the data set, given that of its data file: "train/img_0_of_8.tfrecord".
	Path func(data string) string
	Size func(l Layout) (int64, error)
	// Write writes it front to back in bounded memory.
	Write func(w io.Writer, l Layout) error
}

// Companioned is a Format whose files have companions, the same number for each file.
type Companioned interface {
	Companions() []Companion
}

// CompanionReader is a Format that reads a sample by means of the companions: it asks open for the i-th one (in the order of
// Companions), which the caller closes. The bytes asked of companions are part of Sample.Asked.
type CompanionReader interface {
	ReadSampleWith(f io.ReaderAt, size int64, open func(i int) (io.ReaderAt, int64, error), k int, buf []byte) (Sample, error)
}

// Measured is a Format whose files' sizes follow from their content as well: texts, and whatever is compressed. Its Size is then an
// upper bound for the layout, and Measure gives the exact size of one file. It may take as long as writing it.
type Measured interface {
	Measure(l Layout, c Content, buf []byte) (int64, error)
}

// Extended is a Format whose files end in something else than its name: compressed tables are "csv.gz" files. Take the extension of
// any format from Extension.
type Extended interface {
	Extension() string
}

// Extension returns what follows the last dot that a data set's file names have in common: <prefix>_<i>_of_<files>.<extension>.
func Extension(f Format) string {
	if e, ok := f.(Extended); ok {
		return e.Extension()
	}
	return f.Name()
}

// Streamed is a Format whose files a framework reads record by record, front to back, without an index: tfrecord, as
// TFRecordDataset does. Loaders that read samples by number use ReadSample or CompanionReader instead.
type Streamed interface {
	// Stream begins to read the file f of the given size. Each piece asked of f is len(buf) bytes long (the framework's buffer:
	// reader.transfer_size) at a multiple of len(buf), the last one shorter; a buf shorter than MinBuffer is replaced. Nothing
	// is asked before the first Next.
	Stream(f io.ReaderAt, size int64, buf []byte) SampleStream
}

// SampleStream is a file that is being read. It is used by one goroutine at a time.
type SampleStream interface {
	// Next reads the next sample and checks it as ReadSample does. It returns io.EOF, as it is, after the last one. Sample.Asked is
	// what this call asked of the file, which is 0 where the sample lay in the piece before; over a whole file it adds up to the
	// file's size. After an error there is nothing more to read.
	Next() (Sample, error)
	// Close gives the stream's memory back. It does not close the file, and the stream must not be used again.
	Close()
}

// Remembering is a Format whose framework's reader keeps, from one sample to the next, what it read of a file: parquet's row groups,
// which hold thousands of samples.
type Remembering interface {
	// Remember returns a reader with a memory of its own, for one goroutine.
	Remember() SampleReader
}

// SampleReader reads samples as Format.ReadSample does, but asks nothing of a file for what it still has of it.
type SampleReader interface {
	// ReadSampleOf reads sample k of f, the file of the given number and size, which must not change between two calls.
	ReadSampleOf(file int64, f io.ReaderAt, size int64, k int, buf []byte) (Sample, error)
	// Forget drops what is kept, as at the start of an epoch.
	Forget()
}

// Covering is a SampleReader that says which samples it has at hand, so that thousands of them need not be asked for one by one.
type Covering interface {
	// Covered tells of the last ReadSampleOf, which succeeded: samples from up to, but not including, to of its file have what the file says of
	// the sample that was read and ask for nothing, until the next call of ReadSampleOf or Forget. Passing over such calls changes nothing.
	Covered() (from, to int)
}

// Limited is a Format that this build may know, so that runs on its files are planned and records of them checked, without being able to
// write or read one.
type Limited interface {
	// Available returns nil, or a *UnavailableError.
	Available() error
}

// Available returns nil where this build can write and read files of f, else a *UnavailableError.
func Available(f Format) error {
	if l, ok := f.(Limited); ok {
		return l.Available()
	}
	return nil
}

// UnavailableError says that files are written and read by another build of this program only.
type UnavailableError struct {
	Format string
	Keys   []string // workload keys that ask for such files
	Needs  string   // what this build lacks, and how one is made that has it
}

// Error names the keys and what to do.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("format %s with %s: %s", e.Format, strings.Join(e.Keys, ", "), e.Needs)
}

// Recalling is a SampleReader that says where it keeps what it read of a file.
type Recalling interface {
	// Recalled tells of the last ReadSampleOf, which succeeded: the sample's group stands in place slot, below GroupCost.Kept, of those that
	// are kept, and was there before if kept is true. What was asked of the file from offset footer on is no part of the group: it is
	// what the reader asks when it comes from another file.
	Recalled() (slot int, kept bool, footer int64)
}

// containers lists every container once, with what makes it from a Spec. A constructor refuses options that it does not have.
func containers() []container {
	return []container{
		{"csv", newTable},
		{"hdf5", newHDF5},
		{"indexed_binary", plain(newIndexed)},
		{"jpeg", newJPEG},
		{"mmap_indexed_binary", plain(newMappedIndexed)},
		{"npy", plain(newNPY)},
		{"npz", newZIP},
		{"parquet", newParquet},
		{"png", newPNG},
		{RawName, plain(newRaw)},
		{"synthetic", plain(newSynthetic)},
		{"tfrecord", plain(newTFRecord)},
	}
}

type container struct {
	name string
	make func(Spec) (Format, error)
}

// plain makes a container that has no options.
func plain(f func() Format) func(Spec) (Format, error) {
	return func(s Spec) (Format, error) {
		if err := s.only(); err != nil {
			return nil, err
		}
		return f(), nil
	}
}

// only refuses every option that is given and not among the allowed, by its JSON name.
func (s Spec) only(allowed ...string) error {
	for _, o := range []struct {
		name, key string
		given     bool
	}{
		{"compression", "dataset.compression", s.Compression != ""},
		{"level", "dataset.compression_level", s.Level != 0},
		{"datasets", "dataset.hdf5.num_dset_per_record", s.Datasets != 0},
		{"chunk", "dataset.hdf5.chunk_dims", len(s.Chunk) > 0},
		{"max_shape", "dataset.hdf5.max_shape", len(s.MaxShape) > 0},
		{"columns", "dataset.parquet.columns", len(s.Columns) > 0},
		{"row_group", "dataset.parquet.row_group_size", s.RowGroup != 0},
		{"sizing", "dataset.jpeg.sizing", s.Sizing != ""},
	} {
		ok := !o.given
		for _, a := range allowed {
			ok = ok || a == o.name
		}
		if !ok {
			return fmt.Errorf("format %s has no option %s; remove it", s.Name, o.key)
		}
	}
	return nil
}

// Names returns the names of all formats, sorted.
func Names() []string {
	var names []string
	for _, c := range containers() {
		names = append(names, c.name)
	}
	return names
}

// ByName returns the format with the given name and no options: see New.
func ByName(name string) (Format, error) { return New(Spec{Name: name}) }

// New returns the format that s describes. The value may be used by many goroutines at once; keep it, because it holds the scratch
// memory that reading reuses.
func New(s Spec) (Format, error) {
	for _, c := range containers() {
		if c.name == s.Name {
			f, err := c.make(s)
			if err != nil {
				return nil, fmt.Errorf("format %s: %w", s.Name, err)
			}
			return f, nil
		}
	}
	return nil, fmt.Errorf("format %q is not available; there are: %s", s.Name, strings.Join(Names(), ", "))
}
