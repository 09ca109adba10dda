package format

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTFRecordSizes has DLIO's own files, and the sizes of a record that its documentation's workloads give.
func TestTFRecordSizes(t *testing.T) {
	f := newTFRecord()
	for _, c := range []struct {
		dims    []int
		samples int
		want    int64
		index   int64
	}{
		{[]int{338, 338}, 1251, 142994304, 20290}, {[]int{2825761}, 1, 2825827, 10}, {[]int{50, 50}, 1, 2554, 7}, {[]int{4096}, 1, 4150, 7},
	} {
		l := Layout{Dims: c.dims, Samples: c.samples, DType: dtype(t, "uint8")}
		if got, err := f.Size(l); err != nil || got != c.want {
			t.Errorf("%v x %d: %d bytes, %v; want %d", c.dims, c.samples, got, err, c.want)
		}
		if got, err := f.(Companioned).Companions()[0].Size(l); err != nil || got != c.index {
			t.Errorf("%v x %d: index of %d bytes, %v; want %d", c.dims, c.samples, got, err, c.index)
		}
	}
}

// Where the index of a data file is, as DLIO names it.
func TestTFRecordIndexPath(t *testing.T) {
	for data, want := range map[string]string{
		"train/img_0_of_8.tfrecord":   "index/train/img_0_of_8.tfrecord.idx",
		"valid/3/img_0_of_8.tfrecord": "index/valid/img_0_of_8.tfrecord.idx",
		"a.tfrecord":                  "index/a.tfrecord.idx",
	} {
		if got := newTFRecord().(Companioned).Companions()[0].Path(data); got != want {
			t.Errorf("index of %s: %s, want %s", data, got, want)
		}
	}
}

// The beginning of a line, computed at once, is that of all lines before it together.
func TestTFRecordLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 1<<rapid.IntRange(1, 50).Draw(t, "bits")).Draw(t, "length")
		want := int64(0)
		for k := range int64(300) {
			if got := tfLine(k, n); got != want {
				t.Fatalf("line %d of records of %d bytes begins at %d, want %d", k, n, got, want)
			}
			want += int64(len(appendTFLine(nil, k*n, n)))
		}
	})
	for _, k := range []int64{0, 1, 1 << 40, math.MaxInt64} {
		for _, n := range []int64{1, 7, 1 << 62, math.MaxInt64} {
			if at := tfLine(k, n); at < 0 || at < k {
				t.Errorf("line %d of records of %d bytes begins at %d", k, n, at)
			}
		}
	}
}

// TestTFRecordNamesTheFault flips every byte of a small file: both checksums together leave nothing unseen, and the error names the
// record or its length.
func TestTFRecordNamesTheFault(t *testing.T) {
	f := newTFRecord()
	data := written(t, f, Layout{Dims: []int{11}, Samples: 2, DType: dtype(t, "uint8")}, 1, 0)
	for at := range data {
		bent := bytes.Clone(data)
		bent[at] ^= 0x10
		s := f.(Streamed).Stream(bytes.NewReader(bent), int64(len(bent)), nil)
		n := 0
		var err error
		for ; err == nil; n++ {
			_, err = s.Next()
		}
		s.Close()
		var damage *DataError
		if want := 1 + at/(len(data)/2); n != want || !errors.As(err, &damage) {
			t.Errorf("byte %d flipped: error %v at record %d, want one at record %d", at, err, n, want)
		}
	}
	if _, err := f.ReadSample(bytes.NewReader(data), int64(len(data)), 2, nil); err == nil || !strings.Contains(err.Error(), "holds 2") {
		t.Errorf("record 2 of 2: %v", err)
	}
}

func FuzzReadTFRecord(f *testing.F) {
	tf := newTFRecord()
	for _, l := range []Layout{{Dims: []int{3, 4}, Samples: 1}, {Dims: []int{2}, Samples: 9}, {Dims: []int{200}, Samples: 3}} {
		l.DType = dtype(f, "uint8")
		p := made(f, tf, l, 1, 0)
		f.Add(p.data, p.idx[0], l.Samples-1)
	}
	f.Add([]byte{}, []byte("0 1\n5 9\n3 17\n"), 2)
	f.Fuzz(func(t *testing.T, data, index []byte, k int) {
		p := pair{f: tf, data: data, idx: [][]byte{index}, size: int64(len(data))}
		small, _, err1 := p.read(t, k, MinBuffer)
		large, _, err2 := p.read(t, k, 1<<16)
		if small != large || (err1 == nil) != (err2 == nil) || err1 != nil && err1.Error() != err2.Error() {
			t.Fatalf("buffer 4 KiB: %+v, %v\nbuffer 64 KiB: %+v, %v", small, err1, large, err2)
		}
		// The stream agrees with reading by number, without an index.
		s := tf.(Streamed).Stream(bytes.NewReader(data), p.size, nil)
		defer s.Close()
		for i := 0; ; i++ {
			got, err := s.Next()
			if err == io.EOF {
				break
			}
			one, oneErr := tf.ReadSample(bytes.NewReader(data), p.size, i, nil)
			if (err == nil) != (oneErr == nil) || err == nil && got.Logical != one.Logical {
				t.Fatalf("record %d: %+v, %v in the stream; %+v, %v alone", i, got, err, one, oneErr)
			}
			if err != nil {
				break
			}
		}
	})
}
