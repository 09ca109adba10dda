package format

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/benchpin/benchpin/pkg/stream"
)

// foreigner is a container as it reads files of others.
type foreigner struct {
	f       Format
	l       Layout // of a file of ours
	spec    Spec
	samples int  // that the file is taken for
	loose   bool // a file may end early where a sound one ends
	whole   bool
}

// foreigners are all of them.
func foreigners(t testing.TB) []foreigner {
	t.Helper()
	u8 := dtype(t, "uint8")
	var all []foreigner
	for _, c := range []struct {
		name    string
		l       Layout
		samples int
		loose   bool
		whole   bool
	}{
		{"npz", Layout{Dims: []int{20, 30}, Samples: 4}, 1, false, true}, {"npz", Layout{Dims: []int{20, 30}, Samples: 4}, 4, false, true},
		{"npz", Layout{Dims: []int{20, 30}, Samples: 4}, 20, false, true}, // along the first axis
		{"npy", Layout{Dims: []int{20, 30}, Samples: 4}, 1, false, true}, {"npy", Layout{Dims: []int{20, 30}, Samples: 4}, 4, false, true},
		{"hdf5", Layout{Dims: []int{20, 30}, Samples: 4}, 1, true, true}, {"hdf5", Layout{Dims: []int{20, 30}, Samples: 4}, 4, true, false},
		{"tfrecord", Layout{Dims: []int{500}, Samples: 4}, 1, true, true}, {"tfrecord", Layout{Dims: []int{500}, Samples: 4}, 4, false, false},
		{"parquet", Layout{Dims: []int{500}, Samples: 4}, 1, false, true}, {"parquet", Layout{Dims: []int{500}, Samples: 4}, 4, false, false},
		{"csv", Layout{Dims: []int{50}, Samples: 4}, 1, true, true}, {"csv", Layout{Dims: []int{50}, Samples: 4}, 4, true, true},
		{"jpeg", Layout{Dims: []int{5000}, Samples: 1}, 1, false, true}, {"png", Layout{Dims: []int{5000}, Samples: 1}, 1, false, true},
		{"raw", Layout{Dims: []int{5000}, Samples: 1}, 1, true, true},
	} {
		spec := Spec{Name: c.name}
		f, err := NewForeign(spec, c.samples)
		if err != nil {
			t.Fatal(err)
		}
		c.l.DType = u8
		all = append(all, foreigner{f, c.l, spec, c.samples, c.loose, c.whole})
	}
	return all
}

// TestForeignReadsOurs: as files of others, ours are read too, every sample, whole where there is one, and nothing is allocated for it; a file
// that ends early is a *DataError, and never a sample that is not there.
func TestForeignReadsOurs(t *testing.T) {
	for _, c := range foreigners(t) {
		ours, err := New(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := ours.Write(&b, c.l, c.l.DType.Seeded(stream.New("benchpin/test", 1, 1), 3), make([]byte, 1<<16)); err != nil {
			t.Fatal(err)
		}
		data, size := b.Bytes(), int64(b.Len())
		buf := make([]byte, MinBuffer)
		n := c.samples
		for k := range n {
			total := int64(0)
			file := &counted{data: data, size: size, buf: len(buf), total: &total}
			got, err := c.f.ReadSample(file, size, k, buf)
			if err != nil || got.Asked != total || c.whole && got.Asked != size || file.bad != "" {
				t.Errorf("%s of %d: sample %d: %+v, %v; %d bytes were asked for of %d; %s", c.spec.Name, n, k, got, err, total, size, file.bad)
			}
		}
		for _, k := range []int{-1, n, 1 << 40} {
			// A file may hold more samples than it is taken for; the plan does not ask for them.
			if _, err := c.f.ReadSample(bytes.NewReader(data), size, k, buf); err == nil {
				t.Errorf("%s of %d: sample %d was read", c.spec.Name, n, k)
			}
		}
		for _, cut := range []int{0, 1, 9, len(data) / 2, len(data) - 1} {
			var damage *DataError
			// Cut after its size was taken: always found by whoever reads that far.
			if _, err := c.f.ReadSample(bytes.NewReader(data[:cut]), size, 0, buf); c.whole && (!errors.As(err, &damage) || damage.Offset > int64(cut)) {
				t.Errorf("%s of %d: cut to %d of %d bytes: %v", c.spec.Name, n, cut, size, err)
			}
			if _, err := c.f.ReadSample(bytes.NewReader(data[:cut]), int64(cut), n-1, buf); err == nil && !c.loose {
				t.Errorf("%s of %d: a file of %d of its %d bytes was read", c.spec.Name, n, cut, size)
			}
		}
		if raceDetector {
			continue
		}
		file := bytes.NewReader(data)
		if a := testing.AllocsPerRun(50, func() { _, _ = c.f.ReadSample(file, size, n-1, buf) }); a >= 1 {
			t.Errorf("%s of %d: reading allocates %.1f times", c.spec.Name, n, a)
		}
	}
	for _, c := range []struct {
		name    string
		samples int
	}{{"synthetic", 1}, {"raw", 2}, {"jpeg", 2}, {"png", 3}, {"npz", 0}, {"nothing", 1}} {
		if f, err := NewForeign(Spec{Name: c.name}, c.samples); err == nil {
			t.Errorf("%s of %d samples: %v", c.name, c.samples, f)
		}
	}
}

// TestWholeFileIsNotWritten: files of others are read only.
func TestWholeFileIsNotWritten(t *testing.T) {
	f, err := NewForeign(Spec{Name: "hdf5"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Size(Layout{}); err == nil {
		t.Error("it has a size")
	}
	if err := f.Write(io.Discard, Layout{}, nil, nil); err == nil {
		t.Error("it was written")
	}
}

// FuzzReadForeign: whatever the bytes, no reader panics, and two buffers give the same answer.
func FuzzReadForeign(f *testing.F) {
	all := foreigners(f)
	for i, c := range all {
		ours, err := New(c.spec)
		if err != nil {
			f.Fatal(err)
		}
		var b bytes.Buffer
		if err := ours.Write(&b, c.l, c.l.DType.Seeded(stream.New("benchpin/test", 1, 1), 3), make([]byte, 1<<16)); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes(), uint8(i), 0)
	}
	f.Add([]byte("\x93NUMPY\x01\x00\x46\x00{'descr': [('a', '<i4'), ('b', '<f8', (2,))], 'fortran_order': False, 'shape': (5,), }   \n"), uint8(3), 0)
	f.Fuzz(func(t *testing.T, data []byte, which uint8, k int) {
		r := all[int(which)%len(all)].f
		small, err1 := r.ReadSample(bytes.NewReader(data), int64(len(data)), k, make([]byte, MinBuffer))
		large, err2 := r.ReadSample(bytes.NewReader(data), int64(len(data)), k, make([]byte, 1<<16))
		if small.Logical != large.Logical || (err1 == nil) != (err2 == nil) || err1 == nil && small.Logical < Unsaid {
			t.Fatalf("two buffers: %+v, %v and %+v, %v", small, err1, large, err2)
		}
	})
}
