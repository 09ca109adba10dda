//go:build hdf5 && cgo

package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/benchpin/benchpin/pkg/stream"
)

// librarySpecimens are the containers that only a build with libhdf5 has. Where its metadata lie is the library's affair, so nothing
// is known about the end of a file; and it allocates.
func librarySpecimens() []specimen {
	// wide makes two dimensions of at least 7 by 11.
	wide := func(l Layout) Layout {
		n := 11
		for _, d := range l.Dims {
			n = min(n*d, 3000)
		}
		l.Dims = []int{n}
		l.Samples = max(l.Samples, 7)
		return l
	}
	// small keeps compression quick.
	small := func(l Layout) Layout {
		l.Dims = slices.Clone(l.Dims[:min(2, len(l.Dims))])
		for i := range l.Dims {
			l.Dims[i] = min(l.Dims[i], 500)
		}
		return threefold(l)
	}
	return []specimen{
		{spec: Spec{Name: "hdf5", Chunk: []int{2, 5}}, fit: wide, tail: 1 << 30, allocates: true},
		{spec: Spec{Name: "hdf5", Chunk: []int{7, 11}, Compression: "gzip"}, fit: wide, tail: 1 << 30, allocates: true},
		{spec: Spec{Name: "hdf5", Compression: "gzip", Level: 9, Datasets: 3}, fit: small, tail: 1 << 30, allocates: true},
		{spec: Spec{Name: "hdf5", MaxShape: []int{40000}}, fit: wide, tail: 1 << 30, allocates: true},
	}
}

// chunkedCases are layouts and how their data sets are stored.
func chunkedCases() []struct {
	spec  Spec
	l     Layout
	shape []int
} {
	return []struct {
		spec  Spec
		l     Layout
		shape []int
	}{
		{Spec{Chunk: []int{1, 5, 4}}, Layout{Dims: []int{7, 9}, Samples: 3}, []int{3, 7, 9}},
		{Spec{Chunk: []int{2, 7, 9}}, Layout{Dims: []int{7, 9}, Samples: 3}, []int{3, 7, 9}},
		{Spec{Chunk: []int{3, 7, 9}}, Layout{Dims: []int{7, 9}, Samples: 3}, []int{3, 7, 9}},
		{Spec{Chunk: []int{1, 64, 64}}, Layout{Dims: []int{300, 200}, Samples: 4}, []int{4, 300, 200}},
		{Spec{Chunk: []int{1, 2, 3, 5}}, Layout{Dims: []int{3, 4, 6}, Samples: 2}, []int{2, 3, 4, 6}},
		{Spec{Chunk: []int{1, 1, 1}}, Layout{Dims: []int{40, 41}, Samples: 2}, []int{2, 40, 41}},
		{Spec{Chunk: []int{2, 3, 9}, MaxShape: []int{50, 9}}, Layout{Dims: []int{7, 9}, Samples: 3}, []int{3, 7, 9}},
		{Spec{Chunk: []int{1, 6, 4}, MaxShape: []int{6, 6}}, Layout{Dims: []int{4, 6}, Samples: 3}, []int{3, 4, 6}},
		{Spec{MaxShape: []int{300, 200}}, Layout{Dims: []int{300, 200}, Samples: 4}, []int{4, 300, 200}},
		{Spec{MaxShape: []int{1000, 200}}, Layout{Dims: []int{300, 200}, Samples: 4}, []int{4, 300, 200}},
		{Spec{Compression: "gzip"}, Layout{Dims: []int{300, 200}, Samples: 4}, []int{4, 300, 200}},
		{Spec{Compression: "gzip", Level: 1}, Layout{Dims: []int{30}, Samples: 4}, []int{4, 30}},
		{Spec{Compression: "gzip", Level: 9, Chunk: []int{1, 100, 70}}, Layout{Dims: []int{300, 200}, Samples: 2}, []int{2, 300, 200}},
		{Spec{Compression: "gzip", Datasets: 3}, Layout{Dims: []int{300, 200}, Samples: 2}, []int{2, 100, 200}},
		{Spec{Chunk: []int{1, 50, 200}, Datasets: 3}, Layout{Dims: []int{300, 200}, Samples: 2}, []int{2, 100, 200}},
		{Spec{Chunk: []int{1, 50, 20}, Datasets: 12}, Layout{Dims: []int{1200, 20}, Samples: 2}, []int{2, 100, 20}},
	}
}

// TestH5pyReadsOurChunks lets h5py and h5dump open chunked and compressed files, and compares every value.
func TestH5pyReadsOurChunks(t *testing.T) {
	cmd, dir := h5py(t, "check"), t.TempDir()
	var cases []h5Case
	for i, c := range chunkedCases() {
		c.spec.Name = "hdf5"
		for di, d := range dtypes() {
			c.l.DType = d.DType
			k := max(c.spec.Datasets, 1)
			p := h5Case{File: fmt.Sprintf("%s-%d.hdf5", d.Name, i), DType: d.Name, Datasets: k, Shape: c.shape, Chunk: c.spec.Chunk, Dump: di == 0}
			if len(p.Chunk) == 0 {
				p.Chunk = h5GuessChunk(c.shape, d.Size)
			}
			if c.spec.Compression != "" {
				if p.Level = c.spec.Level; p.Level == 0 {
					p.Level = defaultLevel
				}
			}
			if len(c.spec.MaxShape) > 0 {
				p.Max = append(p.Max, c.shape[0])
				for _, m := range c.spec.MaxShape {
					p.Max = append(p.Max, m)
				}
			}
			h5Save(t, dir, specimen{spec: c.spec}.format(t), c.l, &p, uint64(100*i+di))
			cases = append(cases, p)
		}
	}
	h5Check(t, cmd, dir, cases)
}

// TestH5pyChoosesTheSameChunks compares chunks that are chosen, over shapes of all sizes.
func TestH5pyChoosesTheSameChunks(t *testing.T) {
	cmd := h5py(t, "chunks")
	var queries [][]any
	var want []string
	for _, element := range []int{1, 2, 4, 8, 16} {
		for _, shape := range [][]int{{1}, {5}, {1 << 20}, {10 << 20}, {1, 1024, 1024}, {4, 1024, 1024}, {10, 1024, 1024}, {1, 320, 320},
			{1, 12107, 12107}, {1251, 338, 338}, {3, 3, 3, 3, 3, 3}, {1, 64, 64, 16}, {7, 100000, 3}, {1 << 16, 1, 1}, {100, 1048576}} {
			want = append(want, fmt.Sprint(h5GuessChunk(shape, element)))
			queries = append(queries, []any{shape, element})
		}
	}
	for n := 1; n < 300; n++ {
		shape := []int{1 + n%5, n*n + 1, 2*n + 7}
		want = append(want, fmt.Sprint(h5GuessChunk(shape, 1<<(n%4))))
		queries = append(queries, []any{shape, 1 << (n % 4)})
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
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d chunks of %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%v: h5py chooses %s, we %s", queries[i], got[i], want[i])
		}
	}
}

// TestH5pyWritesChunkedFilesOfTheSameSize compares with DLIO's own calls, which write every chunk in the same order.
func TestH5pyWritesChunkedFilesOfTheSameSize(t *testing.T) {
	dir := t.TempDir()
	cmd := h5py(t, "sizes", dir)
	var queries [][]any
	var want []string
	for _, c := range chunkedCases() {
		if c.spec.Compression != "" {
			continue // the encoders differ
		}
		c.spec.Name = "hdf5"
		c.l.DType = dtype(t, "float32")
		size, err := specimen{spec: c.spec}.format(t).Size(c.l)
		if err != nil {
			t.Fatal(err)
		}
		how := map[string]any{}
		if len(c.spec.Chunk) > 0 {
			how["chunks"] = c.spec.Chunk
		}
		if len(c.spec.MaxShape) > 0 {
			how["maxshape"] = append([]int{c.shape[0]}, c.spec.MaxShape...)
		}
		want = append(want, strconv.FormatInt(size, 10))
		queries = append(queries, []any{c.shape, "float32", max(c.spec.Datasets, 1), how})
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
	if got := strings.Fields(string(out)); !slices.Equal(got, want) {
		t.Errorf("h5py's files have %v bytes\nours %v\nof %v", got, want, queries)
	}
}

// TestChunksInParallel reads and writes in many goroutines at once: the library is one at a time, input and output are not.
func TestChunksInParallel(t *testing.T) {
	f := specimen{spec: Spec{Name: "hdf5", Compression: "gzip", Chunk: []int{1, 50, 40}}}.format(t)
	l := Layout{Dims: []int{100, 80}, Samples: 8, DType: dtype(t, "uint16")}
	want := written(t, f, l, 7, 0)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			var out bytes.Buffer
			if err := f.Write(&out, l, l.DType.Seeded(stream.New("benchpin/test", 1, 7), 3), make([]byte, MinBuffer<<i)); err != nil || !bytes.Equal(out.Bytes(), want) {
				t.Errorf("writer %d: %v, or other bytes", i, err)
			}
			for k := range l.Samples {
				if s, err := f.ReadSample(bytes.NewReader(want), int64(len(want)), k, nil); err != nil || s.Logical != l.SampleBytes() {
					t.Errorf("reader %d: %+v, %v", i, s, err)
				}
			}
		})
	}
	wait.Wait()
}

// TestChunkReading holds that a row is read by reading the chunks that hold it, and not the file.
func TestChunkReading(t *testing.T) {
	f := specimen{spec: Spec{Name: "hdf5", Chunk: []int{2, 50, 100}}}.format(t)
	l := Layout{Dims: []int{100, 100}, Samples: 20, DType: dtype(t, "uint8")}
	data := written(t, f, l, 7, 0)
	for _, k := range []int{0, 7, 19} {
		file := &counted{data: data, size: int64(len(data)), buf: 1 << 20, total: new(int64)}
		s, err := f.ReadSample(file, file.size, k, make([]byte, 1<<20))
		if err != nil || s.Logical != 10000 || s.Asked != *file.total || s.Asked < 20000 || s.Asked > 20000+4*h5PageSize || file.bad != "" {
			t.Errorf("sample %d: %+v, %v, %s; want the two chunks of 10000 bytes and a few pages", k, s, err, file.bad)
		}
	}
	// A compressed chunk that is damaged is found out.
	f = specimen{spec: Spec{Name: "hdf5", Compression: "gzip", Chunk: []int{20, 100, 100}}}.format(t)
	l.DType = dtype(t, "float32")
	data = written(t, f, l, 7, 0)
	data[len(data)/2] ^= 4
	var damage *DataError
	if _, err := f.ReadSample(bytes.NewReader(data), int64(len(data)), 3, nil); !errors.As(err, &damage) || damage.Offset == 0 {
		t.Errorf("a damaged chunk: %v", err)
	}
}

func TestBadChunks(t *testing.T) {
	l := Layout{Dims: []int{7, 9}, Samples: 3, DType: dtype(t, "uint8")}
	for _, s := range []Spec{
		{Chunk: []int{1, 7}}, {Chunk: []int{1, 7, 9, 1}}, {Chunk: []int{4, 7, 9}}, {Chunk: []int{1, 8, 9}}, {MaxShape: []int{7}},
		{MaxShape: []int{6, 9}}, {MaxShape: []int{7, 9}, Chunk: []int{1, 8, 9}}, {Compression: "gzip", Chunk: []int{1}},
	} {
		s.Name = "hdf5"
		f := specimen{spec: s}.format(t)
		if n, err := f.Size(l); err == nil || !strings.Contains(err.Error(), "[3 7 9]") {
			t.Errorf("%+v: %d bytes, %v", s, n, err)
		}
	}
	f := specimen{spec: Spec{Name: "hdf5", Chunk: []int{1, 1}}}.format(t)
	if n, err := f.Size(Layout{Dims: []int{1 << 25}, Samples: 1, DType: l.DType}); err == nil {
		t.Errorf("2^25 chunks: %d bytes", n)
	}
	f = specimen{spec: Spec{Name: "hdf5", Chunk: []int{1, 1 << 30}}}.format(t)
	if n, err := f.Size(Layout{Dims: []int{1 << 30}, Samples: 1, DType: dtype(t, "float64")}); err == nil {
		t.Errorf("a chunk of 8 GiB: %d bytes", n)
	}
}

const goldenLibrary = "testdata/golden-hdf5-chunks-v1.txt"

// goldenChunks are the digests of files that libhdf5 laid out.
func goldenChunks(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# Chunked HDF5: stream 3 of domain benchpin/test, version 1, seed 2026. They never change, whatever the version of libhdf5.\n")
	for _, c := range chunkedCases() {
		c.spec.Name = "hdf5"
		for _, d := range []string{"uint8", "float32", "bool", "complex128"} {
			c.l.DType = dtype(t, d)
			text, err := json.Marshal(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s %v %d %s = sha256:%x\n", d, c.l.Dims, c.l.Samples, text,
				sha256.Sum256(written(t, specimen{spec: c.spec}.format(t), c.l, 2026, MinBuffer)))
		}
	}
	return b.String()
}

func TestGoldenChunks(t *testing.T) { h5Golden(t, goldenLibrary, goldenChunks(t)) }

// BenchmarkChunks writes, measures and reads one file of each kind.
func BenchmarkChunks(b *testing.B) {
	family := stream.New("benchpin/test", 1, 1)
	for name, s := range map[string]Spec{"plain": {Chunk: []int{1, 500, 500}}, "small": {Chunk: []int{1, 20, 20}}, "gzip": {Compression: "gzip"}} {
		s.Name = "hdf5"
		f := specimen{spec: s}.format(b)
		l := Layout{Dims: []int{1000, 1000}, Samples: 8, DType: dtype(b, "uint8")}
		data, buf := written(b, f, l, 1, 0), make([]byte, 256<<10)
		b.Run("write-"+name, func(b *testing.B) {
			b.SetBytes(l.PayloadBytes())
			for b.Loop() {
				if err := f.Write(&failing{left: 1 << 40}, l, l.DType.Seeded(family, 3), buf); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("read-"+name, func(b *testing.B) {
			b.SetBytes(l.SampleBytes())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.ReadSample(bytes.NewReader(data), int64(len(data)), 3, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
