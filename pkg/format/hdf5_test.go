package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/stream"
)

// h5py returns a command that runs testdata/h5peer.py under a Python that has h5py.
func h5py(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath("h5dump"); err != nil {
		missing(t, "no h5dump here (Debian: hdf5-tools)")
	}
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import h5py").Run() == nil {
			cmd := exec.Command(python, append([]string{"-B", "testdata/h5peer.py"}, args...)...)
			cmd.Stderr = os.Stderr
			return cmd
		}
	}
	missing(t, "no python3 with h5py here (Debian: python3-h5py)")
	return nil
}

func h5(t testing.TB, datasets int) Format {
	t.Helper()
	return specimen{spec: Spec{Name: "hdf5", Datasets: datasets}}.format(t)
}

// h5Case is a file that a peer looks at.
type h5Case struct {
	File     string `json:"file"`
	DType    string `json:"dtype"`
	Datasets int    `json:"datasets"`
	Shape    []int  `json:"shape"`
	Chunk    []int  `json:"chunk,omitempty"`
	Max      []any  `json:"max,omitempty"`
	Level    int    `json:"level,omitempty"`
	Dump     bool   `json:"dump,omitempty"`
}

// h5Save writes a file of f for the peer, and the stream's own bytes beside it.
func h5Save(t *testing.T, dir string, f Format, l Layout, c *h5Case, index uint64) {
	t.Helper()
	s := stream.New("benchpin/test", 1, 11)
	var out bytes.Buffer
	if err := f.Write(&out, l, l.DType.Seeded(s, index), make([]byte, MinBuffer+17*int(index%100))); err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, l.PayloadBytes())
	s.Fill(raw, index, 0)
	for path, b := range map[string][]byte{c.File: out.Bytes(), c.File + ".raw": raw} {
		if err := os.WriteFile(filepath.Join(dir, path), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func h5Check(t *testing.T, cmd *exec.Cmd, dir string, cases []h5Case) {
	t.Helper()
	writeJSON(t, filepath.Join(dir, "cases.json"), cases)
	cmd.Args = append(cmd.Args, dir)
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf("%d cases, 0 bad", len(cases))) {
		t.Fatalf("h5py disagrees: %v\n%s", err, out)
	}
}

// TestH5pyReadsOurs lets h5py and h5dump open files of every element type in several shapes and numbers of data sets.
func TestH5pyReadsOurs(t *testing.T) {
	cmd, dir := h5py(t, "check"), t.TempDir()
	var cases []h5Case
	for di, d := range dtypes() {
		for si, s := range []struct {
			dims     []int
			samples  int
			datasets int
			shape    []int
		}{
			{[]int{7, 5}, 1, 1, []int{1, 7, 5}}, {[]int{64, 64, 16}, 4, 1, []int{4, 64, 64, 16}}, {[]int{1, 1}, 1, 1, []int{1, 1}},
			{nil, 17, 1, []int{17}}, {[]int{9, 4, 5}, 3, 3, []int{3, 3, 4, 5}}, {[]int{7, 6}, 2, 7, []int{2, 6}},
			{[]int{8}, 130, 8, []int{130}}, {[]int{300, 2}, 3, 300, []int{3, 2}},
			{bytesOf(2, MaxDims), 1, 1, nil}, // 32 dimensions, the most there can be
		} {
			if s.shape == nil {
				s.dims = append([]int{2, 3}, bytesOf(1, MaxDims-2)...)
				s.shape = append([]int{1}, s.dims...)
			}
			c := h5Case{File: fmt.Sprintf("%s-%d.hdf5", d.Name, si), DType: d.Name, Datasets: s.datasets, Shape: s.shape, Dump: di%5 == 0 || si == 0}
			h5Save(t, dir, h5(t, s.datasets), Layout{Dims: s.dims, Samples: s.samples, DType: d.DType}, &c, uint64(100*di+si))
			cases = append(cases, c)
		}
	}
	h5Check(t, cmd, dir, cases)
}

// bytesOf returns n times v.
func bytesOf(v, n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = v
	}
	return p
}

// TestH5pyWritesFilesOfTheSameSize compares our sizes with those of the files that DLIO's own calls of h5py make.
func TestH5pyWritesFilesOfTheSameSize(t *testing.T) {
	dir := t.TempDir()
	cmd := h5py(t, "sizes", dir)
	var queries [][]any
	var want []int64
	for _, k := range []int{1, 2, 3, 5, 6, 7} {
		for _, dims := range [][]int{{300, 200}, {50, 50}, {9, 7, 3}, {64, 2, 2, 2, 2, 2, 2}} {
			for _, n := range []int{1, 4, 16} {
				for _, d := range []string{"uint8", "float32", "bool", "complex128"} {
					l := Layout{Dims: append([]int{dims[0] * k}, dims[1:]...), Samples: n, DType: dtype(t, d)}
					if k > 5 && l.PayloadBytes()/int64(k) < h5Block {
						continue // libhdf5 puts small data between its blocks of metadata
					}
					size, err := h5(t, k).Size(l)
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, size)
					queries = append(queries, []any{append([]int{n}, dims...), d, k})
				}
			}
		}
	}
	in, err := json.Marshal(queries)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(string(out))
	if len(got) != len(want) {
		t.Fatalf("%d sizes of %d", len(got), len(want))
	}
	for i, w := range want {
		if got[i] != strconv.FormatInt(w, 10) {
			t.Errorf("%v: h5py's file has %s bytes, ours %d", queries[i], got[i], w)
		}
	}
}

// TestHDF5Sizes has the formula that holds for DLIO's files, and a file that it made itself.
func TestHDF5Sizes(t *testing.T) {
	for _, c := range []struct {
		dims     []int
		samples  int
		datasets int
		want     int64
	}{
		{[]int{1024, 1024}, 4, 1, 4196384}, // gen_hdf5
		{[]int{12107, 12107}, 1, 1, 12107*12107 + 8 + 2048},
		{[]int{30, 64, 16}, 100, 3, 30*64*16*100 + 800 + 2048},
	} {
		got, err := h5(t, c.datasets).Size(Layout{Dims: c.dims, Samples: c.samples, DType: dtype(t, "uint8")})
		if err != nil || got != c.want {
			t.Errorf("%v x %d: %d bytes, %v; want %d", c.dims, c.samples, got, err, c.want)
		}
	}
}

// TestWeReadH5pys reads what h5py wrote: contiguous data of every version of the format, and the errors for what we do not read.
func TestWeReadH5pys(t *testing.T) {
	dir := t.TempDir()
	if err := h5py(t, "write", dir).Run(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		File              string
		Samples, Datasets int
		Bytes             int64
		Good, Library     bool
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 100 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		data, err := os.ReadFile(filepath.Join(dir, c.File))
		if err != nil {
			t.Fatal(err)
		}
		f := h5(t, c.Datasets)
		if !c.Good || c.Library && !h5Library {
			_, err := f.ReadSample(bytes.NewReader(data), int64(len(data)), 0, nil)
			var damage *DataError
			if !errors.As(err, &damage) || damage.Format != "hdf5" {
				t.Errorf("%s: %v, want a *DataError", c.File, err)
			}
			if c.Library && !strings.Contains(fmt.Sprint(err), "-tags hdf5") {
				t.Errorf("%s: %v does not name the build tag", c.File, err)
			}
			continue
		}
		for _, size := range []int{MinBuffer, 5000, 1 << 20} {
			for _, k := range []int{0, c.Samples / 2, c.Samples - 1} {
				got, err := f.ReadSample(bytes.NewReader(data), int64(len(data)), k, make([]byte, size))
				if err != nil || got.Logical != c.Bytes || got.Asked < c.Bytes && !c.Library {
					t.Fatalf("%s sample %d, buffer %d: %+v, %v; want %d bytes", c.File, k, size, got, err, c.Bytes)
				}
			}
			if _, err := f.ReadSample(bytes.NewReader(data), int64(len(data)), c.Samples, make([]byte, size)); err == nil {
				t.Fatalf("%s: sample %d of %d was read", c.File, c.Samples, c.Samples)
			}
		}
		if f := h5(t, c.Datasets+1); c.File != "order.hdf5" {
			if _, err := f.ReadSample(bytes.NewReader(data), int64(len(data)), 0, nil); err == nil {
				t.Errorf("%s: %d data sets were read", c.File, c.Datasets+1)
			}
		}
	}
}

// TestHDF5ReadsRows holds that a sample is read by reading its rows, and the first page for what leads there.
func TestHDF5ReadsRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 5).Draw(t, "data sets")
		l := Layout{Dims: []int{k * rapid.IntRange(1, 5).Draw(t, "d1"), rapid.IntRange(1, 3000).Draw(t, "d2")},
			Samples: rapid.IntRange(1, 9).Draw(t, "samples"), DType: rapid.SampledFrom(dtypes()).Draw(t, "dtype").DType}
		f, err := New(Spec{Name: "hdf5", Datasets: k})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		family := stream.New("benchpin/test", 1, 1)
		if err := f.Write(&out, l, l.DType.Seeded(family, 3), nil); err != nil {
			t.Fatal(err)
		}
		data, sample := out.Bytes(), rapid.IntRange(0, l.Samples-1).Draw(t, "sample")
		buf := make([]byte, rapid.IntRange(MinBuffer, 20000).Draw(t, "buffer"))
		file := &counted{data: data, size: int64(len(data)), buf: len(buf), total: new(int64)}
		got, err := f.ReadSample(file, int64(len(data)), sample, buf)
		page := min(int64(len(data)), h5PageSize)
		if want := (Sample{Logical: l.SampleBytes(), Asked: page + l.SampleBytes()}); err != nil || got != want {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
		if file.pieces[0] != 0 || file.pieces[1] != page {
			t.Fatalf("first read %d bytes at %d", file.pieces[1], file.pieces[0])
		}
		// The pieces are the rows of the data sets in order, and end at multiples of the buffer's length.
		part, total := l.PayloadBytes()/int64(k), l.SampleBytes()/int64(k)
		set, in := int64(0), int64(0)
		for i := 2; i < len(file.pieces); i += 2 {
			off, n := file.pieces[i], file.pieces[i+1]
			if want := 2048 + set*part + int64(sample)*total + in; off != want || n > int64(len(buf)) {
				t.Fatalf("piece %d: %d bytes at %d, want them at %d", i/2, n, off, want)
			}
			if in += n; in == total {
				set, in = set+1, 0
			} else if (off+n)%int64(len(buf)) != 0 {
				t.Fatalf("piece %d ends at %d, buffer %d", i/2, off+n, len(buf))
			}
		}
		if set != int64(k) || in != 0 {
			t.Fatalf("%d data sets and %d bytes were read of %d", set, in, k)
		}
	})
}

func TestHDF5Options(t *testing.T) {
	for _, c := range []struct {
		s    Spec
		want string
	}{
		{Spec{Datasets: -1}, "num_dset_per_record"}, {Spec{Datasets: h5MaxDatasets + 1}, "num_dset_per_record"},
		{Spec{Level: 3}, "compression_level"}, {Spec{Compression: "gzip", Level: 10}, "compression_level"},
		{Spec{Compression: "gzip", Level: -1}, "compression_level"}, {Spec{Compression: "lzf"}, "lzf"}, {Spec{Compression: "zip"}, "zip"},
		{Spec{Chunk: []int{1, 0}}, "chunk_dims"}, {Spec{MaxShape: []int{-1}}, "max_shape"}, {Spec{RowGroup: 3}, "row_group_size"},
	} {
		c.s.Name = "hdf5"
		if f, err := New(c.s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, %v; want an error about %s", c.s, f, err, c.want)
		}
	}
	for _, s := range []Spec{{Compression: "gzip"}, {Chunk: []int{1, 2}}, {MaxShape: []int{4}}} {
		s.Name = "hdf5"
		f, err := New(s)
		if err != nil {
			t.Errorf("%+v: %v", s, err)
			continue
		}
		err = Available(f)
		if (err == nil) != h5Library || err != nil && !strings.Contains(err.Error(), "go build -tags hdf5") {
			t.Errorf("%+v: %v, %v", s, f, err)
		}
		if l := (Layout{Dims: []int{4}, Samples: 2, DType: dtype(t, "uint8")}); !h5Library {
			if werr := f.Write(io.Discard, l, l.DType.Seeded(stream.New("test", 1, 1), 0), nil); werr == nil || werr.Error() != err.Error() {
				t.Errorf("%+v: written: %v", s, werr)
			}
		}
	}
	if _, err := h5(t, 3).Size(Layout{Dims: []int{4, 6}, Samples: 1, DType: dtype(t, "uint8")}); err == nil ||
		!strings.Contains(err.Error(), "num_dset_per_record") {
		t.Errorf("3 data sets of 4 rows: %v", err)
	}
}

// TestHDF5Damage flips every bit of the metadata of small files: no panic, and nothing read beyond the file.
func TestHDF5Damage(t *testing.T) {
	for _, k := range []int{1, 2} {
		l := Layout{Dims: []int{2, 3}, Samples: 2, DType: dtype(t, "uint16")}
		f := h5(t, k)
		data := written(t, f, l, 1, 0)
		silent, buf := 0, make([]byte, MinBuffer)
		for bit := range 8 * h5Block {
			data[bit/8] ^= 1 << (bit % 8)
			got, err := f.ReadSample(bytes.NewReader(data), int64(len(data)), 1, buf)
			data[bit/8] ^= 1 << (bit % 8)
			var damage *DataError
			switch {
			case err == nil && got.Logical != l.SampleBytes():
				t.Fatalf("bit %d: %+v", bit, got)
			case err == nil:
				silent++
			case !errors.As(err, &damage):
				t.Fatalf("bit %d: %v is no *DataError", bit, err)
			}
		}
		// Unprotected are the zeros after the last header, and the header of labels, which readers of samples do not open.
		used := 48 + 134 + (k+1)*(14+h5DatasetHeader)
		if limit := 8 * (h5Block - used + 14 + h5DatasetHeader); silent > limit {
			t.Errorf("%d data sets: %d flipped bits stay unnoticed, expected at most %d", k, silent, limit)
		}
	}
}

// TestGoldenHDF5 holds the bytes of contiguous files.
func TestGoldenHDF5(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Contiguous HDF5: stream 3 of domain benchpin/test, version 1, seed 2026. They never change.\n" +
		"# element type, dimensions of a sample, samples, data sets = digest of the file\n")
	for _, d := range dtypes() {
		for _, c := range []struct {
			l Layout
			k int
		}{{Layout{Dims: []int{21, 13}, Samples: 1}, 1}, {Layout{Dims: []int{3, 5, 100}, Samples: 7}, 3}, {Layout{Dims: []int{40, 2}, Samples: 2}, 40}} {
			c.l.DType = d.DType
			fmt.Fprintf(&b, "%s %v %d %d = sha256:%x\n", d.Name, c.l.Dims, c.l.Samples, c.k, sha256.Sum256(written(t, h5(t, c.k), c.l, 2026, MinBuffer)))
		}
	}
	h5Golden(t, "testdata/golden-hdf5-v1.txt", b.String())
}

// h5Golden compares with a golden file, which -make-golden writes if there is none.
func h5Golden(t *testing.T, path, got string) {
	t.Helper()
	want, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && *makeGolden {
		want, err = []byte(got), os.WriteFile(path, []byte(got), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	if len(g) != len(w) {
		t.Fatalf("%d golden lines, %d computed", len(w), len(g))
	}
	for i := range w {
		if g[i] != w[i] {
			t.Errorf("\n got %s\nwant %s", g[i], w[i])
		}
	}
}

func FuzzReadHDF5(f *testing.F) {
	for _, k := range []int{1, 2} {
		for _, name := range []string{"uint8", "complex64", "bool"} {
			f.Add(written(f, h5(f, k), Layout{Dims: []int{2, 3}, Samples: 3, DType: dtype(f, name)}, 1, 0), k, 1)
		}
	}
	seeds, err := filepath.Glob("testdata/hdf5/*.hdf5")
	if err != nil || len(seeds) < 4 {
		f.Fatalf("only %d files of h5py in testdata/hdf5 (%v)", len(seeds), err)
	}
	for _, path := range seeds {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, 1, 0)
		f.Add(data, 2, 1)
	}
	f.Fuzz(func(t *testing.T, data []byte, datasets, k int) {
		// The parser in Go alone: what libhdf5 makes of damaged files is not ours to test.
		read := func(buf int) (Sample, error) {
			r := new(h5Reader)
			r.reset(bytes.NewReader(data), int64(len(data)), make([]byte, buf))
			return r.sample(1+(datasets&0x7fffffff)%16, k)
		}
		small, err1 := read(MinBuffer)
		large, err2 := read(1 << 16)
		if small != large || (err1 == nil) != (err2 == nil) || err1 != nil && err1.Error() != err2.Error() {
			t.Fatalf("buffer 4 KiB: %+v, %v\nbuffer 64 KiB: %+v, %v", small, err1, large, err2)
		}
		var damage *DataError
		if err1 != nil && (!errors.As(err1, &damage) || damage.Offset < 0 || damage.Offset > int64(len(data))) {
			t.Fatalf("%v in a file of %d bytes", err1, len(data))
		}
	})
}

// threefold makes the first dimension divisible by 3.
func threefold(l Layout) Layout {
	if len(l.Dims) == 0 {
		l.Dims = []int{1}
	}
	l.Dims = slices.Clone(l.Dims)
	l.Dims[0] *= 3
	return l
}
