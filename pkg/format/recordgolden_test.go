package format

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

const goldenRecordsFile = "testdata/golden-records-v1.txt"

// goldenRecordLines computes the digests of small files of the record formats and tables, with their companions. Two files of each
// element type are enough: what they have in common with npy is pinned there.
func goldenRecordLines(t testing.TB) []string {
	t.Helper()
	var lines []string
	for _, s := range []Spec{{Name: "csv"}, {Name: "csv", Compression: "gzip"}, {Name: "csv", Compression: "zip"}, {Name: "indexed_binary"},
		{Name: "mmap_indexed_binary"}, {Name: "npz", Compression: "zip"}, {Name: "synthetic"}, {Name: "tfrecord"}} {
		f, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range dtypes() {
			for _, l := range []Layout{{Dims: []int{21, 13}, Samples: 1}, {Dims: []int{3, 5, 100}, Samples: 12, File: 1999}} {
				l.DType = d.DType
				if _, err := f.Size(l); s.Name == "csv" && err != nil && strings.HasPrefix(d.Name, "complex") {
					continue
				}
				p := made(t, f, l, 2026, MinBuffer)
				files := append([][]byte{p.data}, p.idx...)
				name := strings.TrimSuffix(s.Name+"-"+s.Compression, "-")
				for i, b := range files {
					if i > 0 {
						name = fmt.Sprintf("%s-index-%d", s.Name, i)
					}
					lines = append(lines, fmt.Sprintf("%s %s %v %d = sha256:%x", name, d.Name, l.Dims, l.Samples, sha256.Sum256(b)))
				}
			}
		}
	}
	return lines
}

func TestMakeGoldenRecords(t *testing.T) {
	if !*makeGolden {
		t.Skip("golden values are only written with -make-golden, and never over existing ones")
	}
	if _, err := os.Stat(goldenRecordsFile); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s exists: released values never change", goldenRecordsFile)
	}
	text := "# Files of the record formats and tables: stream 3 of domain benchpin/test, version 1, seed 2026. They never change.\n" +
		"# format, element type, dimensions of a sample, samples = digest of the file; the file of 12 samples has the number 1999\n" +
		strings.Join(goldenRecordLines(t), "\n") + "\n"
	if err := os.WriteFile(goldenRecordsFile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestGoldenRecords(t *testing.T) {
	b, err := os.ReadFile(goldenRecordsFile)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		if !strings.HasPrefix(sc.Text(), "#") {
			want = append(want, sc.Text())
		}
	}
	got := goldenRecordLines(t)
	if len(got) != len(want) {
		t.Fatalf("%d golden values, %d computed", len(want), len(got))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("\n got %s\nwant %s", got[i], want[i])
		}
	}
	if sorted := slices.Sorted(slices.Values(want)); len(slices.Compact(sorted)) != len(want) {
		t.Error("golden values are repeated")
	}
}
