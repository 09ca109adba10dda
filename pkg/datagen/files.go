package datagen

import (
	"fmt"
	"iter"
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
	Path   string        // below the data folder
	Layout format.Layout // of a companion: that of its data file
	Size   int64         // bytes; where AtMost is true, the most that it can be
	// AtMost is true where the size follows from the content (format.Measured); Recipe.Measure computes it.
	AtMost bool

	stream    uint64 // index of its content
	companion int    // 0 for a data file, else one more than the number of its companion
}

// CanBe reports whether a file of n bytes can be f, as far as that is known without making it.
func (f FileSpec) CanBe(n int64) bool { return n == f.Size || f.AtMost && n < f.Size }

// SizeText says for people how many bytes f has.
func (f FileSpec) SizeText() string {
	if f.AtMost {
		return fmt.Sprintf("at most %d bytes", f.Size)
	}
	return fmt.Sprintf("%d bytes", f.Size)
}

// File returns data file i in DLIO's order of generation: the training files, then those for validation; 0 <= i < Files().
// It computes it alone, whatever the number of files.
func (r Recipe) File(i int) FileSpec {
	index := r.stream(i)
	f := FileSpec{Path: r.Path(i), Layout: r.layout(r.dims(index)), AtMost: r.measured != nil, stream: index}
	f.Layout.File = i
	f.Size = r.size(f.Layout)
	return f
}

// stream is the index of the content of data file i.
func (r *Recipe) stream(i int) uint64 {
	if n := r.doc.Train.Files; i >= n {
		return validStream | uint64(i-n)
	}
	return uint64(i)
}

// Path returns the path of data file i, as File does.
func (r *Recipe) Path(i int) string {
	if n := r.doc.Train.Files; i >= n {
		return r.path(r.doc.Valid, validFolder, i-n)
	}
	return r.path(r.doc.Train, trainFolder, i)
}

// SampleBytes returns the size of a sample of data file i, without any container.
func (r *Recipe) SampleBytes(i int) int64 {
	if r.equal != nil {
		return r.equal.sample
	}
	l := r.layout(r.dims(r.stream(i)))
	return l.SampleBytes()
}

// Size returns the bytes of data file i, or, where Exact is false, the most that it can have.
func (r *Recipe) Size(i int) int64 {
	if r.equal != nil {
		return r.equal.size
	}
	l := r.layout(r.dims(r.stream(i)))
	l.File = i
	return r.size(l)
}

// size is that of a data file, checked for all layouts that there can be when the recipe was made.
func (r *Recipe) size(l format.Layout) int64 {
	if r.equal != nil {
		return r.equal.size
	}
	n, _ := r.format.Size(l)
	return n
}

// equal is what all data files of a recipe have in common: of most recipes shape and size, which take longer to compute than a path.
type equal struct {
	dims         []int
	sample, size int64
	companions   []int64 // sizes
}

// setEqual computes it where there is such a thing.
func (r *Recipe) setEqual() {
	if len(r.doc.RecordDims) == 0 && !r.flat && r.spread != 0 || format.SizedByNumber(r.format) {
		return
	}
	e := &equal{dims: r.dims(0)}
	l := r.layout(e.dims)
	e.sample = l.SampleBytes()
	e.size, _ = r.format.Size(l)
	for _, c := range r.companions {
		n, _ := c.Size(l)
		e.companions = append(e.companions, n)
	}
	r.equal = e
}

// Companions returns how many companions each data file has.
func (r Recipe) Companions() int { return len(r.companions) }

// Companion returns companion c of data file i; 0 <= i < Files(), 0 <= c < Companions().
func (r Recipe) Companion(i, c int) FileSpec {
	f := r.File(i)
	f.Path = r.companions[c].Path(f.Path)
	if r.equal != nil {
		f.Size = r.equal.companions[c]
	} else {
		f.Size, _ = r.companions[c].Size(f.Layout) // checked with the data files
	}
	f.AtMost, f.companion = false, c+1
	return f
}

// Entries returns the number of all files, companions included: as many as the manifest has.
func (r Recipe) Entries() int { return r.Files() * (1 + len(r.companions)) }

// Entry returns file i of all: the data files as File numbers them, then the companions of the first data file, of the second, and so on;
// 0 <= i < Entries().
func (r Recipe) Entry(i int) FileSpec {
	if i < r.Files() {
		return r.File(i)
	}
	i -= r.Files()
	return r.Companion(i/len(r.companions), i%len(r.companions))
}

// path returns DLIO's name of file k of a part: <folder>/[<k mod S>/]<prefix>_<k>_of_<files>.<format>, numbers below F and S
// padded with zeros to as many digits as F and S have.
func (r *Recipe) path(part Part, folder string, k int) string {
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
	return string(append(p, r.extension...))
}

// decimals is the number of decimal digits of a number that is not negative.
func decimals(n int) int {
	d := 1
	for n > 9 {
		n /= 10
		d++
	}
	return d
}

// appendPadded appends n with as many digits as of has.
func appendPadded(p []byte, n, of int) []byte {
	for range decimals(of) - decimals(n) {
		p = append(p, '0')
	}
	return strconv.AppendInt(p, int64(n), 10)
}

// dims returns the shape of the samples of one file. All samples in a file share it, as in DLIO.
func (r *Recipe) dims(index uint64) []int {
	switch {
	case r.equal != nil:
		return r.equal.dims
	case len(r.doc.RecordDims) > 0:
		return r.doc.RecordDims
	case r.flat:
		return []int{int(r.doc.RecordLength)}
	case r.spread == 0:
		side := int(r.mean) // DLIO rounds down too; a record length is at least 1
		return []int{side, side}
	}
	return []int{r.side(index, 0), r.side(index, 1)}
}

// side draws one side of a sample.
func (r *Recipe) side(index, draw uint64) int {
	x := r.mean + float64(r.spread*r.family.Normal(index, draw))
	return max(1, int(math.Floor(x+0.5)))
}

// sorted returns the generation index of the data file whose path is k-th in the order of raw bytes. Padding makes this order
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

// Sorted goes through all files, companions included, in the order of the raw bytes of their paths, which is that of a manifest. It
// gives each with its number, as Entry counts.
func (r Recipe) Sorted() iter.Seq2[int, FileSpec] {
	return func(yield func(int, FileSpec) bool) {
		next := r.Walk()
		for i, f, ok := next(); ok && yield(i, f); i, f, ok = next() {
		}
	}
}

// Walk goes through the same files as Sorted, one with each call of next, which returns false behind the last one. It is for those who
// go through something else at the same time, and costs less than pulling from Sorted.
func (r Recipe) Walk() (next func() (int, FileSpec, bool)) {
	c := r.walk()
	return func() (int, FileSpec, bool) {
		f, ok := c.peek()
		if !ok {
			return 0, f, false
		}
		c.skip()
		i := f.Layout.File // of its data file
		if f.companion > 0 {
			i = r.Files() + i*len(r.companions) + f.companion - 1
		}
		return i, f, true
	}
}

// cursor goes through all files in the order of their paths. Data files of one part have paths of one length, so that whatever a
// companion adds in front or behind, the companions of one kind have the order of their data files, or, where they leave out subfolders,
// of these files' numbers. The cursor merges the kinds.
type cursor struct {
	r        *Recipe
	at       []int      // how many data files and companions of each kind are behind
	heads    []FileSpec // the next of each kind, without a path where there is none
	byNumber []bool     // kinds whose paths have the order of the files' numbers
}

func (r *Recipe) walk() *cursor {
	kinds := 1 + len(r.companions)
	c := &cursor{r: r, at: make([]int, kinds), heads: make([]FileSpec, kinds), byNumber: make([]bool, kinds)}
	for kind := range c.heads {
		c.byNumber[kind] = kind > 0 && r.leavesOutFolders(kind-1)
		c.load(kind)
	}
	return c
}

func (c *cursor) load(kind int) {
	c.heads[kind] = FileSpec{}
	k := c.at[kind]
	if k >= c.r.Files() {
		return
	}
	if !c.byNumber[kind] {
		k = c.r.sorted(k)
	}
	if kind == 0 {
		c.heads[kind] = c.r.File(k)
	} else {
		c.heads[kind] = c.r.Companion(k, kind-1)
	}
}

// leavesOutFolders reports whether the paths of the companions of a kind lack the subfolders, which makes their order another one: file S
// stands in the first of S subfolders, behind file 0 and before file 1.
func (r *Recipe) leavesOutFolders(c int) bool {
	first := 0
	for _, p := range []Part{r.doc.Train, r.doc.Valid} {
		if s := p.Subfolders; s > 1 && p.Files > s {
			path := r.companions[c].Path
			return path(r.File(first+s).Path) > path(r.File(first+1).Path)
		}
		first += p.Files
	}
	return false
}

// peek returns the next file, false at the end.
func (c *cursor) peek() (FileSpec, bool) {
	f := c.heads[c.least()]
	return f, f.Path != ""
}

// skip moves on.
func (c *cursor) skip() {
	kind := c.least()
	c.at[kind]++
	c.load(kind)
}

// least is the kind whose next path comes first.
func (c *cursor) least() int {
	kind := 0
	if len(c.heads) == 1 {
		return 0
	}
	for i := range c.heads {
		if p := c.heads[i].Path; p != "" && (c.heads[kind].Path == "" || p < c.heads[kind].Path) {
			kind = i
		}
	}
	return kind
}

// content returns the elements of a data file.
func (r Recipe) content(f FileSpec) format.Content { return r.dtype.Seeded(r.family, f.stream) }
