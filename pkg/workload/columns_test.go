package workload

import (
	"reflect"
	"testing"
)

// TestColumnNames: a column may be a name alone, as in the fork of DLIO, and one with all defaults is the same.
func TestColumnNames(t *testing.T) {
	load := func(columns string) *Resolved {
		w, err := Load(Source{Name: "x.yaml", Data: []byte("framework: pytorch\ndataset: {format: parquet, parquet: {columns: " + columns + "}}\n")}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	short, long := load("[a, {name: b, dtype: string, size: 20, read: false}]"), load("[{name: a}, {name: b, dtype: string, size: 20, read: false}]")
	want := []Column{{Name: "a", DType: "float32", Size: 1, Read: true}, {Name: "b", DType: "string", Size: 20}}
	if got := short.Workload.Dataset.Parquet.Columns; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if short.Digest != long.Digest {
		t.Errorf("%s and %s", short.Digest, long.Digest)
	}
}
