package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/stream"
)

// specimen is a container with options, as the contract suite tests it.
type specimen struct {
	spec Spec
	// fit changes a layout drawn at random into one that the container takes; nil: it takes any.
	fit func(l Layout) Layout
	// dtypes are the element types it takes; nil: all.
	dtypes []string
	// whole: reading a sample reads the whole file, once, front to back.
	whole bool
	// unsaid: its files do not say how many bytes a sample has.
	unsaid bool
	// idle: reading does no input, so that nothing can be wrong.
	idle bool
	// loose: a file may end early in a place where a sound file of fewer samples ends.
	loose bool
	// tail: bytes a sample at the end of the file that reading samples does not touch, so that nobody notices when they are gone.
	tail int
	// allocates: reading, or writing, may allocate; said why where it is set.
	allocates bool
}

// realTypes are the element types that have a form as one number.
func realTypes() []string {
	var names []string
	for _, d := range dtypes() {
		if !strings.HasPrefix(d.Name, "complex") {
			names = append(names, d.Name)
		}
	}
	return names
}

// shortRows keeps texts short: making and reading them costs a hundred times what bytes cost.
func shortRows(l Layout) Layout {
	l.Dims = slices.Clone(l.Dims)
	for i, d := range l.Dims {
		l.Dims[i] = min(d, 300)
	}
	return l
}

// specimens has every container at least once. A new container is one line here.
func specimens() []specimen {
	return append([]specimen{
		{spec: Spec{Name: "csv"}, fit: shortRows, dtypes: realTypes(), whole: true, unsaid: true, loose: true},
		{spec: Spec{Name: "csv", Compression: "gzip"}, fit: shortRows, dtypes: realTypes(), whole: true, unsaid: true},
		// The library makes a bzip2 or LZMA2 reader anew for each file.
		{spec: Spec{Name: "csv", Compression: "bz2"}, fit: shortRows, dtypes: realTypes(), whole: true, unsaid: true, allocates: true},
		{spec: Spec{Name: "csv", Compression: "xz"}, fit: shortRows, dtypes: realTypes(), whole: true, unsaid: true, allocates: true},
		{spec: Spec{Name: "csv", Compression: "zip"}, fit: shortRows, dtypes: realTypes(), whole: true, unsaid: true},
		{spec: Spec{Name: "hdf5"}, tail: 8},
		{spec: Spec{Name: "hdf5", Datasets: 3}, fit: threefold, tail: 8},
		{spec: Spec{Name: "indexed_binary"}},
		{spec: Spec{Name: "jpeg"}, fit: onePicture, dtypes: []string{"uint8"}, whole: true},
		{spec: Spec{Name: "jpeg", Sizing: sizingEncoded}, fit: shownPicture, dtypes: []string{"uint8"}, whole: true},
		{spec: Spec{Name: "mmap_indexed_binary"}},
		{spec: Spec{Name: "npy"}, whole: true},
		{spec: Spec{Name: "npz"}, whole: true},
		{spec: Spec{Name: "npz", Compression: "zip"}, whole: true},
		{spec: Spec{Name: "parquet"}},
		{spec: Spec{Name: "parquet", RowGroup: 5, Compression: "snappy"}},
		{spec: Spec{Name: "parquet", RowGroup: 5, Compression: "gzip"}, allocates: true}, // a page is held until its size is known
		{spec: Spec{Name: "parquet", RowGroup: 5, Compression: "lz4"}},
		{spec: Spec{Name: "parquet", RowGroup: 5, Compression: "zstd"}, allocates: true},
		{spec: Spec{Name: "parquet", RowGroup: 3, Columns: []Column{{Name: "a", DType: "float16", Size: 3}, {Name: "b", DType: "int8", Size: 1}}},
			fit: sevenBytes, dtypes: []string{"uint8"}},
		{spec: Spec{Name: "parquet", RowGroup: 3, Columns: []Column{{Name: "a", DType: "binary", Size: 4}, {Name: "b", DType: "string", Size: 3}}},
			fit: sevenBytes, dtypes: []string{"uint8"}},
		{spec: Spec{Name: "png"}, fit: onePicture, dtypes: []string{"uint8"}, whole: true},
		{spec: Spec{Name: "png", Sizing: sizingEncoded}, fit: shownPicture, dtypes: []string{"uint8"}, whole: true},
		{spec: Spec{Name: "raw"}, fit: oneSample, whole: true, loose: true},
		{spec: Spec{Name: "synthetic"}, unsaid: true, idle: true},
		{spec: Spec{Name: "tfrecord"}},
	}, librarySpecimens()...)
}

func (s specimen) String() string {
	name := s.spec.Name
	if s.spec.Compression != "" {
		name += "-" + s.spec.Compression
	}
	for _, o := range []struct {
		name  string
		given bool
	}{
		{"datasets", s.spec.Datasets != 0}, {"chunk", len(s.spec.Chunk) > 0}, {"max_shape", len(s.spec.MaxShape) > 0},
		{"columns", len(s.spec.Columns) > 1}, {s.spec.Sizing, s.spec.Sizing != ""},
	} {
		if o.given {
			name += "-" + o.name
		}
	}
	return name
}

func (s specimen) format(t testing.TB) Format {
	t.Helper()
	f, err := New(s.spec)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// types are the element types that the container takes.
func (s specimen) types(t testing.TB) []DType {
	var out []DType
	for _, d := range dtypes() {
		if s.dtypes == nil || slices.Contains(s.dtypes, d.Name) {
			out = append(out, d.DType)
		}
	}
	if len(out) == 0 {
		t.Fatal("no element type")
	}
	return out
}

func (s specimen) fitted(l Layout) Layout {
	if s.fit == nil {
		return l
	}
	return s.fit(l)
}

// pair is a data file with its companions.
type pair struct {
	f     Format
	data  []byte
	names []string
	idx   [][]byte
	size  int64 // of the data file, as the caller believes
}

// made writes a file of layout l with everything that belongs to it.
func made(t interface{ Fatalf(string, ...any) }, f Format, l Layout, seed uint64, buf int) pair {
	var out bytes.Buffer
	if err := f.Write(&out, l, l.DType.Seeded(stream.New("benchpin/test", 1, seed), 3), make([]byte, buf)); err != nil {
		t.Fatalf("write %+v: %v", l, err)
	}
	p := pair{f: f, data: out.Bytes(), size: int64(out.Len())}
	size, err := f.Size(l)
	if m, ok := f.(Measured); ok && err == nil {
		bound := size
		size, err = m.Measure(l, l.DType.Seeded(stream.New("benchpin/test", 1, seed), 3), make([]byte, buf))
		if size > bound {
			t.Fatalf("Measure(%+v) = %d, above the bound that Size gives, %d", l, size, bound)
		}
	}
	if err != nil || size != p.size {
		t.Fatalf("Size, or Measure, of %+v = %d, %v; %d bytes were written", l, size, err, p.size)
	}
	c, ok := f.(Companioned)
	if !ok {
		return p
	}
	for _, c := range c.Companions() {
		var out bytes.Buffer
		if err := c.Write(&out, l); err != nil {
			t.Fatalf("write a companion of %+v: %v", l, err)
		}
		if size, err := c.Size(l); err != nil || size != int64(out.Len()) {
			t.Fatalf("a companion's Size(%+v) = %d, %v; %d bytes were written", l, size, err, out.Len())
		}
		p.names = append(p.names, c.Path("train/a_1_of_2."+Extension(f)))
		p.idx = append(p.idx, out.Bytes())
	}
	return p
}

// counted is a file that adds up what is asked of it, and checks each piece.
type counted struct {
	data   []byte
	size   int64 // believed
	buf    int
	total  *int64
	pieces []int64 // offset, length, ...
	bad    string
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	*c.total += int64(len(p))
	c.pieces = append(c.pieces, off, int64(len(p)))
	if off < 0 || off+int64(len(p)) > c.size || len(p) == 0 || len(p) > c.buf {
		c.bad = fmt.Sprintf("%d bytes at %d are asked of a file of %d bytes, with a buffer of %d", len(p), off, c.size, c.buf)
	}
	n := copy(p, c.data[min(max(off, 0), int64(len(c.data))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// read reads sample k as the loader does: by its companions where the format has them.
func (p pair) read(t interface{ Fatalf(string, ...any) }, k, buf int) (Sample, *counted, error) {
	var total int64
	if buf < MinBuffer {
		t.Fatalf("buffer of %d bytes", buf)
	}
	file := &counted{data: p.data, size: p.size, buf: buf, total: &total}
	files := []*counted{file}
	var got Sample
	var err error
	if c, ok := p.f.(CompanionReader); ok {
		got, err = c.ReadSampleWith(file, p.size, func(i int) (io.ReaderAt, int64, error) {
			f := &counted{data: p.idx[i], size: int64(len(p.idx[i])), buf: buf, total: &total}
			files = append(files, f)
			return f, f.size, nil
		}, k, make([]byte, buf))
	} else {
		got, err = p.f.ReadSample(file, p.size, k, make([]byte, buf))
	}
	for _, f := range files {
		if f.bad != "" {
			t.Fatalf("sample %d: %s", k, f.bad)
		}
	}
	if err == nil && got.Asked != total {
		t.Fatalf("sample %d: Asked is %d, %d bytes were asked for", k, got.Asked, total)
	}
	return got, file, err
}

// TestContract is what every format must do, for any layout and any buffer.
func TestContract(t *testing.T) {
	names := Names()
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("names %v are not sorted, or not unique", names)
	}
	for _, s := range specimens() {
		names = slices.DeleteFunc(names, func(n string) bool { return n == s.spec.Name })
		f := s.format(t)
		if f.Name() != s.spec.Name {
			t.Fatalf("New(%+v).Name() = %q", s.spec, f.Name())
		}
		if e := Extension(f); e != f.Name() && !strings.HasPrefix(e, f.Name()+".") {
			t.Errorf("%s: extension %q", s, e)
		}
		t.Run(s.String(), func(t *testing.T) {
			types := s.types(t)
			rapid.Check(t, func(rt *rapid.T) {
				l := Layout{
					Dims:    rapid.SliceOfN(rapid.IntRange(1, 9), 0, 3).Draw(rt, "dims"),
					Samples: rapid.IntRange(1, 12).Draw(rt, "samples"),
					DType:   rapid.SampledFrom(types).Draw(rt, "dtype"),
					File:    rapid.IntRange(0, 1<<40).Draw(rt, "file"),
				}
				if rapid.Bool().Draw(rt, "long") {
					l.Dims = append(l.Dims[:min(1, len(l.Dims))], 3000)
				}
				s.check(rt, f, s.fitted(l))
			})
		})
	}
	for _, n := range names {
		t.Errorf("container %s is not among the specimens of the contract suite", n)
	}
}

func sizeOf(t *rapid.T, f Format, l Layout) int64 {
	n, err := f.Size(l)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (s specimen) check(t *rapid.T, f Format, l Layout) {
	seed := rapid.Uint64().Draw(t, "seed")
	p := made(t, f, l, seed, rapid.IntRange(MinBuffer, 1<<20).Draw(t, "buffer"))
	again, err := New(s.spec)
	if err != nil {
		t.Fatal(err)
	}
	if q := made(t, again, l, seed, rapid.IntRange(0, 70000).Draw(t, "other buffer")); !bytes.Equal(p.data, q.data) {
		t.Fatal("the bytes depend on the buffer's length")
	}
	numbered := l
	numbered.File ^= 1 << 30 // with more or fewer digits
	if a, b := sizeOf(t, f, l), sizeOf(t, f, numbered); a != b && !SizedByNumber(f) {
		t.Fatalf("files %d and %d have %d and %d bytes, and SizedByNumber says that the number makes no difference", l.File, numbered.File, a, b)
	}
	for i, n := range p.names {
		if n == "" || path.Clean(n) != n || path.IsAbs(n) || slices.Contains(p.names[:i], n) || strings.HasSuffix(n, "."+Extension(f)) {
			t.Fatalf("companion %d has the path %q", i, n)
		}
	}
	buf := rapid.IntRange(MinBuffer, 100000).Draw(t, "reading buffer")
	for k := range l.Samples {
		got, file, err := p.read(t, k, buf)
		want := l.SampleBytes()
		if s.unsaid {
			want = Unsaid
		}
		if err != nil || got.Logical != want {
			t.Fatalf("sample %d: %+v, %v; want %d bytes", k, got, err, want)
		}
		if s.whole {
			next := int64(0)
			for i := 0; i < len(file.pieces); i += 2 {
				if off := file.pieces[i]; off != next || off%int64(buf) != 0 {
					t.Fatalf("piece %d: %d bytes at %d, buffer %d, expected at %d", i/2, file.pieces[i+1], off, buf, next)
				}
				next += file.pieces[i+1]
			}
			if next != p.size {
				t.Fatalf("%d of %d bytes were read", next, p.size)
			}
		}
	}
	if !s.idle {
		for _, k := range []int{-1, l.Samples, math.MaxInt, math.MinInt} {
			if _, _, err := p.read(t, k, buf); err == nil {
				t.Fatalf("sample %d of %d was read", k, l.Samples)
			}
		}
	}
	s.truncate(t, p, l.Samples, buf)
	s.bend(t, p, l.Samples, buf)
	s.stream(t, p, l, buf)
}

// truncate cuts the file, and each companion, in many places.
func (s specimen) truncate(t *rapid.T, p pair, samples, buf int) {
	cuts := []int{0, len(p.data) - 1}
	for range 6 {
		cuts = append(cuts, rapid.IntRange(0, len(p.data)-1).Draw(t, "cut"))
	}
	for _, cut := range cuts {
		for _, size := range []int64{int64(cut), p.size} { // the second shrunk after its size was taken
			if size == p.size && cut >= len(p.data)-s.tail*samples {
				continue
			}
			q := p
			q.data, q.size = p.data[:cut], size
			limit := int64(cut)
			if !s.whole {
				limit = max(limit, size) // the file may end before the sample begins
			}
			s.failsSomewhere(t, q, samples, buf, limit, fmt.Sprintf("cut to %d of %d bytes, size %d", cut, len(p.data), size))
		}
	}
	for i := range p.idx {
		cut := rapid.IntRange(0, len(p.idx[i])-1).Draw(t, "cut of a companion")
		q := p
		q.idx = slices.Clone(p.idx)
		q.idx[i] = p.idx[i][:cut]
		s.failsSomewhere(t, q, samples, buf, math.MaxInt64, fmt.Sprintf("companion %d cut to %d of %d bytes", i, cut, len(p.idx[i])))
	}
}

// failsSomewhere checks that reading all samples meets the damage: each one where the whole file is read, at least one otherwise.
func (s specimen) failsSomewhere(t *rapid.T, p pair, samples, buf int, length int64, what string) {
	if s.idle {
		return
	}
	failed := 0
	if s.whole {
		samples = min(samples, 2) // each of them is one and the same reading
	}
	for k := range samples {
		got, _, err := p.read(t, k, buf)
		if err == nil {
			if got.Logical != Unsaid && got.Logical < 0 {
				t.Fatalf("%s: sample %d: %+v", what, k, got)
			}
			continue
		}
		failed++
		var damage *DataError
		if !errors.As(err, &damage) {
			t.Fatalf("%s: error %v, want a *DataError", what, err)
		}
		if damage.Format != p.f.Name() || damage.Offset < 0 || damage.Offset > length {
			t.Fatalf("%s: %v names %s, offset %d", what, err, damage.Format, damage.Offset)
		}
	}
	if failed == 0 && !s.loose || s.whole && !s.loose && failed < samples {
		t.Fatalf("%s: %d of %d samples were read", what, samples-failed, samples)
	}
}

// bend flips bits. Damage is found or not, but never a panic and never a number of bytes that was not asked for.
func (s specimen) bend(t *rapid.T, p pair, samples, buf int) {
	flip := func(b []byte) []byte {
		at := rapid.IntRange(0, len(b)-1).Draw(t, "damaged byte")
		bent := slices.Clone(b)
		bent[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "damaged bit")
		return bent
	}
	k := rapid.IntRange(0, samples-1).Draw(t, "sample of a damaged file")
	for range 4 {
		q := p
		q.data = flip(p.data)
		_, _, _ = q.read(t, k, buf)
	}
	for i := range p.idx {
		q := p
		q.idx = slices.Clone(p.idx)
		q.idx[i] = flip(p.idx[i])
		if got, _, err := q.read(t, k, buf); err == nil && got.Logical > p.size {
			t.Fatalf("a damaged companion: %+v of a file of %d bytes", got, p.size)
		}
	}
}

// stream reads the file record by record, where the format can, and must see what ReadSample sees.
func (s specimen) stream(t *rapid.T, p pair, l Layout, buf int) {
	st, ok := p.f.(Streamed)
	if !ok {
		return
	}
	read := func(data []byte, size int64) (n int, asked int64, err error) {
		var total int64
		f := &counted{data: data, size: size, buf: buf, total: &total}
		r := st.Stream(f, size, make([]byte, buf))
		defer r.Close()
		for {
			got, err := r.Next()
			if err != nil {
				if f.bad != "" {
					t.Fatalf("streaming: %s", f.bad)
				}
				for i := 0; i < len(f.pieces); i += 2 {
					if f.pieces[i] != int64(i/2)*int64(buf) {
						t.Fatalf("streaming: piece %d at %d with a buffer of %d", i/2, f.pieces[i], buf)
					}
				}
				return n, asked, err
			}
			n++
			if asked += got.Asked; asked != total || got.Logical != l.SampleBytes() {
				t.Fatalf("streaming: sample %d: %+v; %d bytes were asked in all", n-1, got, total)
			}
		}
	}
	if n, asked, err := read(p.data, p.size); err != io.EOF || n != l.Samples || asked != p.size {
		t.Fatalf("streaming: %d samples, %d bytes, %v; want %d, %d", n, asked, err, l.Samples, p.size)
	}
	cut := rapid.IntRange(1, len(p.data)-1).Draw(t, "cut of a stream")
	var damage *DataError
	if n, _, err := read(p.data[:cut], p.size); n >= l.Samples || !errors.As(err, &damage) {
		t.Fatalf("streaming a file cut to %d of %d bytes: %d samples, %v", cut, len(p.data), n, err)
	}
}
