package datagen

import (
	"math"
	"strconv"

	"github.com/benchpin/benchpin/pkg/format"
)

// Folder names of the two parts, as DLIO has them.
const (
	trainFolder = "train"
	validFolder = "valid"
)

// FileSpec is one file of a data set.
type FileSpec struct {
	Path   string // below the data folder
	Layout format.Layout
	Size   int64 // bytes

	stream uint64 // index of its content
}

// File returns file i in DLIO's order of generation: the training files, then those for validation; 0 <= i < Files().
// It computes it alone, whatever the number of files.
func (r Recipe) File(i int) FileSpec {
	part, folder, k, index := r.doc.Train, trainFolder, i, uint64(i)
	if i >= part.Files {
		part, folder, k = r.doc.Valid, validFolder, i-part.Files
		index = validStream | uint64(k)
	}
	f := FileSpec{Path: r.path(part, folder, k), Layout: r.layout(r.dims(index)), stream: index}
	f.Size, _ = r.format.Size(f.Layout) // checked for the largest layout when the recipe was made
	return f
}

// path returns DLIO's name of file k of a part: <folder>/[<k mod S>/]<prefix>_<k>_of_<files>.<format>, numbers below F and S
// padded with zeros to as many digits as F and S have.
func (r Recipe) path(part Part, folder string, k int) string {
	p := make([]byte, 0, 64)
	p = append(p, folder...)
	p = append(p, '/')
	if part.Subfolders > 1 {
		p = appendPadded(p, k%part.Subfolders, part.Subfolders)
		p = append(p, '/')
	}
	p = append(p, r.doc.Prefix...)
	p = append(p, '_')
	p = appendPadded(p, k, part.Files)
	p = append(p, "_of_"...)
	p = strconv.AppendInt(p, int64(part.Files), 10)
	p = append(p, '.')
	return string(append(p, r.format.Name()...))
}

// appendPadded appends n with as many digits as of has.
func appendPadded(p []byte, n, of int) []byte {
	digits := len(strconv.Itoa(n))
	for range len(strconv.Itoa(of)) - digits {
		p = append(p, '0')
	}
	return strconv.AppendInt(p, int64(n), 10)
}

// dims returns the shape of the samples of one file. All samples in a file share it, as in DLIO.
func (r Recipe) dims(index uint64) []int {
	if len(r.doc.RecordDims) > 0 {
		return r.doc.RecordDims
	}
	if r.spread == 0 {
		side := int(r.mean) // DLIO rounds down too; a record length is at least 1
		return []int{side, side}
	}
	return []int{r.side(index, 0), r.side(index, 1)}
}

// side draws one side of a sample.
func (r Recipe) side(index, draw uint64) int {
	x := r.mean + float64(r.spread*r.family.Normal(index, draw))
	return max(1, int(math.Floor(x+0.5)))
}

// sorted returns the generation index of the file whose path is k-th in the order of raw bytes. Padding makes this order
// that of the numbers: part by part, folder by folder.
func (r Recipe) sorted(k int) int {
	if n := r.doc.Train.Files; k >= n {
		return n + r.doc.Valid.sorted(k-n)
	}
	return r.doc.Train.sorted(k)
}

func (p Part) sorted(k int) int {
	s := p.Subfolders
	if s < 2 {
		return k
	}
	// The first `more` folders hold one file more than the others.
	q, more := p.Files/s, p.Files%s
	if long := more * (q + 1); k < long {
		return k/(q+1) + k%(q+1)*s
	} else if q > 0 {
		k -= long
		return more + k/q + k%q*s
	}
	return k
}

// content returns the elements of a file.
func (r Recipe) content(f FileSpec) format.Content { return r.dtype.Seeded(r.family, f.stream) }
