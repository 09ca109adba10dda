package workload

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzLoad: no file makes Load panic, and what it accepts survives being written and read.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "++workload.train.epochs=2")
	}
	f.Add([]byte("a: &a [*a, ${b}, \"\\${c}\", ? x]\n<<: *a\n--- !!map\n"), "++workload.a.b={a: [1, 'x\\'', ${c}]}")
	f.Fuzz(func(t *testing.T, data []byte, override string) {
		r, err := Load(Source{Name: "w.yaml", Data: data}, Options{Overrides: []string{override}})
		if err != nil {
			if len(err.Error()) > 1<<20 {
				t.Fatalf("a message of %d bytes", len(err.Error()))
			}
			r, err = Load(Source{Name: "w.yaml", Data: data}, Options{})
		}
		if err == nil {
			roundTrip(t, r)
		}
	})
}

// FuzzParseCanonical: no bytes make it panic, and what it accepts is written as the same bytes.
func FuzzParseCanonical(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := ParseCanonical(data)
		if err == nil && !bytes.Equal(canonical(w), data) {
			t.Fatal("accepted another spelling")
		}
	})
}
