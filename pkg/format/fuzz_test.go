package format

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"hash/crc32"
	"io"
	"testing"
)

// deflated returns an npz file as numpy.savez_compressed would lay it out, with sizes in the local headers.
func deflated(t testing.TB, array []byte) []byte {
	t.Helper()
	var packed, out bytes.Buffer
	fw, err := flate.NewWriter(&packed, 6)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fw.Write(array); err != nil {
		t.Fatal(err)
	}
	if err := fw.Close(); err != nil {
		t.Fatal(err)
	}
	zw := zip.NewWriter(&out)
	w, err := zw.CreateRaw(&zip.FileHeader{Name: memberX, Method: zip.Deflate, CRC32: crc32.ChecksumIEEE(array),
		CompressedSize64: uint64(packed.Len()), UncompressedSize64: uint64(len(array))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, &packed); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func FuzzReadNPZ(f *testing.F) {
	npz, npy := newNPZ(), newNPY()
	for _, l := range []Layout{{Dims: []int{3, 4}, Samples: 1}, {Dims: []int{2}, Samples: 9}} {
		for _, name := range []string{"uint8", "float64"} {
			l.DType = dtype(f, name)
			f.Add(written(f, npz, l, 1, 0), 0)
			f.Add(deflated(f, written(f, npy, l, 1, 0)), 1)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, k int) { fuzzRead(t, npz, data, k) })
}

func FuzzReadNPY(f *testing.F) {
	npy := newNPY()
	for _, l := range []Layout{{Dims: []int{3, 4}, Samples: 1}, {Dims: nil, Samples: 300}} {
		for _, d := range dtypes() {
			l.DType = d.DType
			f.Add(written(f, npy, l, 1, 0), 0)
		}
	}
	f.Add([]byte("\x93NUMPY\x02\x00\x36\x00\x00\x00{\"shape\": (2,), 'fortran_order': True, 'descr': '>c16'}  \n"), 0)
	f.Fuzz(func(t *testing.T, data []byte, k int) { fuzzRead(t, npy, data, k) })
}

// fuzzRead reads data twice, with a small and a large buffer: no panic, and the same answer.
func fuzzRead(t *testing.T, f Format, data []byte, k int) {
	small, err1 := f.ReadSample(bytes.NewReader(data), int64(len(data)), k, make([]byte, MinBuffer))
	large, err2 := f.ReadSample(bytes.NewReader(data), int64(len(data)), k, make([]byte, 1<<16))
	if small != large || (err1 == nil) != (err2 == nil) || err1 != nil && err1.Error() != err2.Error() {
		t.Fatalf("buffer 4 KiB: %+v, %v\nbuffer 64 KiB: %+v, %v", small, err1, large, err2)
	}
	if err1 == nil && (small.Asked != int64(len(data)) || small.Logical < 0) {
		t.Fatalf("%+v of a file of %d bytes", small, len(data))
	}
}
