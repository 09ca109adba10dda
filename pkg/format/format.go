// Package format knows the containers that samples are stored in: how many bytes a file takes, what those bytes are, and
// how a training framework reads one sample back.
//
// Each container is one file of this package and one line in list. Writing is sequential and needs no more memory than
// the buffer it is given, whatever the size of the file; reading does the input that the framework would do, checks the
// structure of what came, and throws the sample away.
//
// The package never opens a file, never draws a random number of its own, and never decides what a data set holds.
package format

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
)

// Content is the payload of a file, the elements of its array in C order, with random access.
type Content interface {
	// Fill writes the payload's bytes [off, off+len(dst)) into dst. It may be called with any order of offsets.
	Fill(dst []byte, off int64)
}

// Format is one container.
type Format interface {
	// Name is the name in a workload file (dataset.format) and the extension of the files.
	Name() string
	// Size returns the exact number of bytes of a file of layout l.
	Size(l Layout) (int64, error)
	// Write writes one file of layout l with payload c to w, front to back, in pieces of len(buf) bytes; buf is its
	// only large memory, and a shorter one than MinBuffer is replaced. The bytes do not depend on len(buf).
	Write(w io.Writer, l Layout, c Content, buf []byte) error
	// ReadSample reads sample k (0-based) of the file f of the given size as the framework's reader does, in pieces of
	// at most len(buf) bytes; where that is the whole file, at offsets that are multiples of len(buf). It checks everything
	// that the framework relies on, and returns a *DataError naming the offset if the file is not what it should be. A
	// shorter buf than MinBuffer is replaced; with a long enough one nothing is allocated once it has run. Formats that find
	// samples by companion files only (see CompanionReader) refuse.
	ReadSample(f io.ReaderAt, size int64, k int, buf []byte) (Sample, error)
}

// Fronted is a writer that can go back to the first bytes of a file. Write of a format whose files begin with a checksum of what follows
// makes their content once where w is one, and twice where not.
type Fronted interface {
	io.Writer
	// Later says, before the first Write, that the first n bytes of the file will be given by Front after the last Write; until then
	// there are others in their place. It returns false where that cannot be, and nothing has changed then.
	Later(n int) bool
	// Front replaces the first len(p) bytes, as many as Later was told.
	Front(p []byte) error
}

// MinBuffer is the smallest buffer, in bytes, that Write and ReadSample work with; 256 KiB to 1 MiB is a good one.
const MinBuffer = 4 << 10

// defaultBuffer replaces a buffer that is too short.
const defaultBuffer = 256 << 10

func buffer(buf []byte) []byte {
	if len(buf) < MinBuffer {
		return make([]byte, defaultBuffer)
	}
	return buf
}

// Sample is what reading one sample took.
type Sample struct {
	// Logical is the number of bytes of the sample itself, Layout.SampleBytes of a file of ours; or Unsaid, where the file does not
	// say it (text of csv does not name its element type, synthetic files hold no samples): then the caller takes it from
	// the layout.
	Logical int64
	Asked   int64 // bytes asked of the file and its companions
}

// Unsaid is the Logical of a sample whose file does not say how many bytes it has.
const Unsaid int64 = -1

// MaxDims is the largest number of dimensions of one sample: numpy arrays have at most 32, one of which counts samples.
const MaxDims = 31

// Layout is the shape of one file's content. The array in an npz or npy file has the shape (Dims..., Samples).
type Layout struct {
	Dims    []int // of one sample, each at least 1
	Samples int   // samples in the file, at least 1
	DType   DType
	// File is the number of the file in the order of generation: training files from 0, then those for validation. Only the
	// bytes and the size of synthetic files depend on it.
	File int
}

// numbered is a Format whose files' sizes depend on their numbers (Layout.File).
type numbered interface{ sizedByNumber() }

// SizedByNumber reports whether two files that differ in nothing but their number may differ in size.
func SizedByNumber(f Format) bool {
	_, ok := f.(numbered)
	return ok
}

// Check reports what is wrong with the layout, or nil.
func (l Layout) Check() error {
	switch {
	case len(l.Dims) > MaxDims:
		return fmt.Errorf("layout: %d dimensions; a sample has at most %d", len(l.Dims), MaxDims)
	case l.Samples < 1:
		return fmt.Errorf("layout: %d samples in a file; there must be at least 1", l.Samples)
	case l.File < 0:
		return fmt.Errorf("layout: file number %d; they count from 0", l.File)
	case l.DType.Size < 1:
		return errors.New("layout: no element type; take one from ParseDType")
	}
	for i, d := range l.Dims {
		if d < 1 {
			return fmt.Errorf("layout: dimension %d is %d; it must be at least 1", i, d)
		}
	}
	if l.PayloadBytes() > maxPayload {
		return fmt.Errorf("layout: %v x %d samples of %s exceed 2^62 bytes in one file", l.Dims, l.Samples, l.DType.Name)
	}
	return nil
}

// maxPayload leaves room for any header: sizes of files never overflow.
const maxPayload = 1 << 62

// SampleBytes returns the bytes of one sample, without any container; math.MaxInt64 if there are more.
func (l Layout) SampleBytes() int64 {
	n := int64(l.DType.Size)
	for _, d := range l.Dims {
		n = mul(n, int64(d))
	}
	return n
}

// PayloadBytes returns the bytes of all samples of the file, without any container; math.MaxInt64 if there are more.
func (l Layout) PayloadBytes() int64 { return mul(l.SampleBytes(), int64(l.Samples)) }

// mul multiplies numbers that are 0 or more, and stops at math.MaxInt64.
func mul(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// DataError says that a file is not a sound file of its format.
type DataError struct {
	Format  string // name of the format
	Offset  int64  // byte of the file where it was noticed
	Problem string // expected and found
	Err     error  // cause, or nil
}

// Error names format, offset and problem.
func (e *DataError) Error() string {
	msg := fmt.Sprintf("%s at byte %d: %s", e.Format, e.Offset, e.Problem)
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	return msg
}

// Unwrap returns the cause, io.ErrUnexpectedEOF for a file that ends early.
func (e *DataError) Unwrap() error { return e.Err }
