package format

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/stream"
)

const goldenTablesFile = "testdata/golden-images-tables-v1.txt"

// goldenTableLines computes the digests of small images of both sizings and of parquet files of every compression.
func goldenTableLines(t testing.TB) []string {
	t.Helper()
	s := stream.New("benchpin/test", 1, 2026)
	var lines []string
	line := func(spec Spec, l Layout, what string) {
		f, err := New(spec)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %s %d = sha256:%x", what, strings.ReplaceAll(fmt.Sprint(l.Dims), " ", "x"), l.Samples,
			sha256.Sum256(madeBy(t, f, l, l.DType.Seeded(s, 3)))))
	}
	for _, name := range []string{"jpeg", "png"} {
		for _, sizing := range []string{sizingExact, sizingEncoded} {
			for _, dims := range [][]int{{700}, {114660}, {25, 40}, {568, 568}, {77, 1003}, {1003, 77}} {
				line(Spec{Name: name, Sizing: sizing}, Layout{Dims: dims, Samples: 1, DType: dtype(t, "uint8")}, name+" "+sizing)
			}
		}
	}
	for _, word := range parquetWords() {
		word := Spec{Name: "parquet", Compression: word, RowGroup: 7, Columns: everyColumn(9)}
		line(word, tableLayout(word.Columns, 1), "parquet every column, compression "+word.Compression)
		line(word, tableLayout(word.Columns, 100), "parquet every column, compression "+word.Compression)
		word.Columns = []Column{{Name: "long", DType: "float32", Size: 300000}, {Name: "byte", DType: "int8", Size: 1}}
		line(word, tableLayout(word.Columns, 8), "parquet long column, compression "+word.Compression)
	}
	for _, d := range dtypes() {
		line(Spec{Name: "parquet"}, Layout{Dims: []int{3, 5}, Samples: 1500, DType: d.DType}, "parquet data of "+d.Name)
	}
	return lines
}

// madeBy is madeOf for formats whose sizes follow from content as well.
func madeBy(t testing.TB, f Format, l Layout, c Content) []byte {
	t.Helper()
	var out memory
	if err := f.Write(&out, l, c, nil); err != nil {
		t.Fatal(err)
	}
	return out.b
}

func TestMakeGoldenTables(t *testing.T) {
	if !*makeGolden {
		t.Skip("golden values are only written with -make-golden, and never over existing ones")
	}
	if _, err := os.Stat(goldenTablesFile); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s exists: released values never change", goldenTablesFile)
	}
	text := "# Images and parquet tables: stream 3 of domain benchpin/test, version 1, seed 2026. They never change.\n" +
		"# format and options, dimensions of a sample, samples = digest of the file\n" + strings.Join(goldenTableLines(t), "\n") + "\n"
	if err := os.WriteFile(goldenTablesFile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestGoldenTables(t *testing.T) {
	f, err := os.Open(goldenTablesFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var want []string
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if !strings.HasPrefix(sc.Text(), "#") {
			want = append(want, sc.Text())
		}
	}
	got := goldenTableLines(t)
	if !slices.Equal(got, want) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Errorf("\n got %s\nwant %s", got[i], want[i])
			}
		}
		t.Errorf("%d golden values, %d computed", len(want), len(got))
	}
}
