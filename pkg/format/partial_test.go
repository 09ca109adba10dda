package format

import (
	"bytes"
	"io"
	"math"
	"testing"

	"github.com/benchpin/benchpin/pkg/stream"
)

// TestAskedBytesOfPartialFormats: what a container says that reading a sample asks for is the mean of what it does ask for, within a quarter, in
// small files and in those of many samples.
func TestAskedBytesOfPartialFormats(t *testing.T) {
	columns := []Column{{Name: "a", DType: "float32", Size: 100}, {Name: "b", DType: "uint8", Size: 600, Skip: true}, {Name: "c", DType: "int64", Size: 25}}
	for _, c := range []struct {
		spec    Spec
		samples int
	}{
		{Spec{Name: "indexed_binary"}, 1}, {Spec{Name: "indexed_binary"}, 50}, {Spec{Name: "mmap_indexed_binary"}, 50}, {Spec{Name: "hdf5"}, 1},
		{Spec{Name: "hdf5"}, 50}, {Spec{Name: "tfrecord"}, 1}, {Spec{Name: "tfrecord"}, 50},
		{Spec{Name: "parquet", Columns: columns}, 1}, {Spec{Name: "parquet", Columns: columns, RowGroup: 10}, 45},
		{Spec{Name: "parquet", Columns: columns[:1], RowGroup: 1}, 45}, {Spec{Name: "parquet", Columns: columns, RowGroup: 20, Compression: "snappy"}, 100},
		{Spec{Name: "npy"}, 3}, {Spec{Name: "synthetic"}, 3},
	} {
		f, err := New(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		bytesOfRow := 1200
		if len(c.spec.Columns) == 1 {
			bytesOfRow = 400
		}
		l := Layout{Dims: []int{bytesOfRow}, Samples: c.samples, DType: dtype(t, "uint8")}
		var out bytes.Buffer
		if err := f.Write(&out, l, l.DType.Seeded(stream.New("benchpin/test", 1, 1), 3), nil); err != nil {
			t.Fatal(err)
		}
		var companions [][]byte
		if cf, ok := f.(Companioned); ok {
			for _, c := range cf.Companions() {
				var out bytes.Buffer
				if err := c.Write(&out, l); err != nil {
					t.Fatal(err)
				}
				companions = append(companions, out.Bytes())
			}
		}
		size, buf := int64(out.Len()), make([]byte, 1<<16)
		var asked int64
		for k := range c.samples {
			file := bytes.NewReader(out.Bytes())
			var s Sample
			if r, ok := f.(CompanionReader); ok {
				s, err = r.ReadSampleWith(file, size, func(i int) (io.ReaderAt, int64, error) {
					return bytes.NewReader(companions[i]), int64(len(companions[i])), nil
				}, k, buf)
			} else {
				s, err = f.ReadSample(file, size, k, buf)
			}
			if err != nil {
				t.Fatalf("%+v: %v", c.spec, err)
			}
			if want := Selected(f, l.SampleBytes()); s.Logical != Unsaid && s.Logical != want {
				t.Errorf("%+v: a sample has %d bytes, %d are said to be read", c.spec, s.Logical, want)
			}
			asked += s.Asked
		}
		mean := float64(asked) / float64(c.samples)
		if got := float64(SampleCost(f, l.SampleBytes(), c.samples, size)); math.Abs(got-mean) > mean/4 {
			t.Errorf("%s of %d samples: a sample asks for %.0f bytes, the container says %.0f", f.Name(), c.samples, mean, got)
		}
	}
}
