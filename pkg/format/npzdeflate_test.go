package format

import (
	"strings"
	"testing"
)

// TestDeflatedSizes: what is gained depends on what the bits of an element say.
func TestDeflatedSizes(t *testing.T) {
	f, err := New(Spec{Name: "npz", Compression: "zip"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]int64{ // percent of the elements' bytes
		"uint8": {100, 101}, "int64": {100, 101}, "float16": {78, 88}, "float32": {80, 95}, "float64": {85, 98}, "bool": {12, 20},
	} {
		l := Layout{Dims: []int{500, 500}, Samples: 1, DType: dtype(t, name)}
		n := int64(len(written(t, f, l, 1, 0)))
		if p := l.PayloadBytes(); n < p*want[0]/100 || n > p*want[1]/100 {
			t.Errorf("%s: %d bytes of %d, want %d to %d percent", name, n, p, want[0], want[1])
		}
	}
	// Labels of zeros are next to nothing.
	few, many := Layout{Dims: []int{1}, Samples: 1000, DType: dtype(t, "uint8")}, Layout{Dims: []int{1}, Samples: 2000, DType: dtype(t, "uint8")}
	if a, b := len(written(t, f, few, 1, 0)), len(written(t, f, many, 1, 0)); b-a > 1000+50 {
		t.Errorf("1000 labels more take %d bytes beside the samples'", b-a-1000)
	}
	if f, err := New(Spec{Name: "npz", Compression: "gzip"}); err == nil || !strings.Contains(err.Error(), "zip") {
		t.Errorf("npz by gzip: %v, %v", f, err)
	}
}
