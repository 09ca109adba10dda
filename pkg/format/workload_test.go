package format

import (
	"reflect"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/workload"
)

func dataset(t *testing.T, text string) *workload.Dataset {
	t.Helper()
	w, err := workload.Load(workload.Source{Name: "test.yaml", Data: []byte("framework: pytorch\ndataset: {" + text + "}\n")}, workload.Options{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return &w.Workload.Dataset
}

func TestSpecOf(t *testing.T) {
	for text, want := range map[string]Spec{
		"format: npz":                                                               {Name: "npz"},
		"format: npz, compression: none":                                            {Name: "npz"},
		"format: npz, compression: zip":                                             {Name: "npz", Compression: "zip"},
		"format: csv, compression: xz":                                              {Name: "csv", Compression: "xz"},
		"format: hdf5, compression: gzip":                                           {Name: "hdf5", Compression: "gzip"},
		"format: hdf5, compression: gzip, compression_level: 9":                     {Name: "hdf5", Compression: "gzip", Level: 9},
		"format: hdf5, compression: lzf":                                            {Name: "hdf5", Compression: "lzf"},
		"format: hdf5, compression_level: 9":                                        {Name: "hdf5"},
		"format: jpeg":                                                              {Name: "jpeg"},
		"format: png, jpeg: {sizing: encoded}":                                      {Name: "png", Sizing: "encoded"},
		"format: hdf5, enable_chunking: on, chunk_size: 9":                          {Name: "hdf5", Chunk: []int{1, 3, 3}},
		"format: hdf5, enable_chunking: on, chunk_size: 10, record_dims: [2, 9, 9]": {Name: "hdf5", Chunk: []int{1, 2, 4, 4}},
		"format: npz, enable_chunking: on, chunk_size: 9":                           {Name: "npz"},
		"format: hdf5, record_dims: [4, 6], hdf5: {num_dset_per_record: 2, chunk_dims: [1, 2], max_shape: [8, 6]}": {
			Name: "hdf5", Datasets: 2, Chunk: []int{1, 2}, MaxShape: []int{8, 6}},
		"format: parquet, record_length_bytes: 300.7": {Name: "parquet", RowGroup: 1024, Columns: []Column{{Name: "data", DType: "uint8", Size: 300}}},
		"format: parquet, compression: zstd, parquet: {row_group_size: 5, columns: [{name: a, dtype: float16, size: 3, read: false}, {name: b}]}": {
			Name: "parquet", Compression: "zstd", RowGroup: 5, Columns: []Column{{"a", "float16", 3, true}, {"b", "float32", 1, false}}},
	} {
		got, err := SpecOf(dataset(t, text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"format: hdf5, enable_chunking: on":                                              "chunk_size",
		"format: hdf5, enable_chunking: on, chunk_size: 9, record_length_bytes_stdev: 4": "chunk_dims",
		"format: hdf5, compression: gzip, compression_level: 0":                          "compression_level",
		"format: parquet, parquet: {partition_by: a}":                                    "partition_by",
	} {
		if s, err := SpecOf(dataset(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want an error that names %s", text, s, err, want)
		}
	}
}
