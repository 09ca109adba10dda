package format

import (
	"bytes"
	"testing"
)

// TestSynthetic has the sizes of DLIO's files 0 to 1999 (its run gen_synth).
func TestSynthetic(t *testing.T) {
	f := newSynthetic()
	for number, want := range map[int]string{0: "0", 9: "9", 10: "10", 99: "99", 100: "100", 1674: "1674", 1999: "1999"} {
		l := Layout{Dims: []int{320, 320}, Samples: 4, DType: dtype(t, "uint8"), File: number}
		var out bytes.Buffer
		if err := f.Write(&out, l, zeros{}, nil); err != nil || out.String() != want {
			t.Errorf("file %d: %q, %v", number, &out, err)
		}
		if n, err := f.Size(l); err != nil || n != int64(len(want)) {
			t.Errorf("file %d: %d bytes, %v", number, n, err)
		}
	}
	// Reading does not touch the file: there is none.
	if got, err := f.ReadSample(nil, 0, 3, nil); err != nil || got != (Sample{Logical: Unsaid}) {
		t.Errorf("read %+v, %v", got, err)
	}
}
