package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/stream"
)

// textColumns are columns of every type that is none of numpy's, among others.
func textColumns() []Column {
	return []Column{{Name: "id", DType: "string", Size: 1}, {Name: "n", DType: "int32", Size: 1}, {Name: "text", DType: "string", Size: 37},
		{Name: "raw", DType: "binary", Size: 5}, {Name: "byte", DType: "binary", Size: 1}, {Name: "l", DType: "list", Size: 1},
		{Name: "ll", DType: "list", Size: 3}, {Name: "flag", DType: "bool", Size: 1}, {Name: "long", DType: "binary", Size: 9000},
		{Name: "prose", DType: "string", Size: 5000}}
}

func textLayout(t interface{ Fatal(...any) }, columns []Column, rows int) Layout {
	l := Layout{Dims: []int{0}, Samples: rows, DType: uint8Type()}
	for _, c := range columns {
		n, err := c.RowBytes()
		if err != nil {
			t.Fatal(err)
		}
		l.Dims[0] += int(n)
	}
	return l
}

// texts returns the values of a column of texts or bytes in the order of the rows, from the bytes of the content, as the documentation
// defines them.
func texts(f parquetFormat, spec Column, l Layout, content []byte, column int) []string {
	c := f.columns[column]
	var out []string
	row, rows := l.SampleBytes(), int64(l.Samples)
	for first := int64(0); first < rows; first += f.rows {
		n := min(f.rows, rows-first)
		for chunk := content[first*row+n*c.offset:][:n*c.width]; len(chunk) > 0; chunk = chunk[c.width:] {
			x := string(chunk[:c.width])
			switch {
			case spec.DType == "string" && spec.Size == 1:
				x = fmt.Sprintf("s_%010d", binary.LittleEndian.Uint32(chunk)&0x7fffffff)
			case spec.DType == "string":
				x = strings.Map(func(r rune) rune {
					return rune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[r&63])
				}, latin(chunk[:c.width]))
			}
			out = append(out, x)
		}
	}
	return out
}

// latin makes a rune of each byte.
func latin(b []byte) string {
	r := make([]rune, len(b))
	for i, x := range b {
		r[i] = rune(x)
	}
	return string(r)
}

// goTexts reads a column of bytes by parquet-go.
func goTexts(t interface{ Fatalf(string, ...any) }, f *parquet.File, column int) []string {
	var out []string
	for _, g := range f.RowGroups() {
		pages := g.ColumnChunks()[column].Pages()
		for {
			p, err := pages.ReadPage()
			if err != nil {
				break
			}
			values := make([]parquet.Value, p.NumValues())
			if n, _ := p.Values().ReadValues(values); int64(n) != p.NumValues() {
				t.Fatalf("column %d: %d of %d values", column, n, p.NumValues())
			}
			for _, v := range values {
				out = append(out, string(v.ByteArray()))
			}
		}
		pages.Close()
	}
	return out
}

// TestParquetGoReadsOurTexts: for any columns of texts, bytes and lists, row groups, buffers and compressions, the values are those that
// the stream defines, and sizes are known beforehand.
func TestParquetGoReadsOurTexts(t *testing.T) {
	s := stream.New("benchpin/test", 1, 27)
	rapid.Check(t, func(t *rapid.T) {
		spec := Spec{Name: "parquet", Compression: rapid.SampledFrom([]string{"", "snappy", "gzip", "zstd"}).Draw(t, "compression"),
			RowGroup: rapid.IntRange(1, 40).Draw(t, "row group")}
		for i := range rapid.IntRange(1, 6).Draw(t, "columns") {
			c := rapid.SampledFrom(textColumns()).Draw(t, "column")
			c.Name = fmt.Sprintf("c%d", i)
			c.Skip = i > 0 && rapid.Bool().Draw(t, "skip")
			spec.Columns = append(spec.Columns, c)
		}
		f, err := New(spec)
		if err != nil {
			t.Fatal(err)
		}
		l := textLayout(t, spec.Columns, rapid.IntRange(1, 90).Draw(t, "rows"))
		c := l.DType.Seeded(s, rapid.Uint64().Draw(t, "file"))
		var out, again bytes.Buffer
		if err := f.Write(&out, l, c, make([]byte, rapid.IntRange(MinBuffer, 100000).Draw(t, "buffer"))); err != nil {
			t.Fatal(err)
		}
		if err := f.Write(&again, l, c, nil); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
			t.Fatalf("the bytes depend on the buffer, %v", err)
		}
		size, err := f.Size(l)
		if m, ok := f.(Measured); ok && err == nil {
			bound := size
			if size, err = m.Measure(l, c, nil); size > bound {
				t.Fatalf("%d bytes, above the bound %d", size, bound)
			}
		}
		if err != nil || size != int64(out.Len()) {
			t.Fatalf("size %d, %v; %d bytes were written", size, err, out.Len())
		}
		file, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), size)
		if err != nil {
			t.Fatal(err)
		}
		content := make([]byte, l.PayloadBytes())
		c.Fill(content, 0)
		in := tableOf(f)
		var logical int64
		for i, c := range in.columns {
			if !spec.Columns[i].Skip {
				logical += c.width
			}
			if c.form != storedText {
				if got, want := goNumbers(t, file, c, i), numbers(in, l, content, i); !reflect.DeepEqual(got, want) {
					t.Fatalf("column %d: %d numbers are not the %d of the stream", i, len(got), len(want))
				}
				continue
			}
			if got, want := goTexts(t, file, i), texts(in, spec.Columns[i], l, content, i); !reflect.DeepEqual(got, want) {
				t.Fatalf("column %d, %s: %q, want %q", i, spec.Columns[i].DType, got, want)
			}
		}
		k := rapid.IntRange(0, l.Samples-1).Draw(t, "row")
		got, err := f.ReadSample(bytes.NewReader(out.Bytes()), size, k, nil)
		if err != nil || got.Logical != logical {
			t.Fatalf("row %d: %+v, %v; want %d bytes", k, got, err, logical)
		}
	})
}

// TestParquetTextTypes: a reader finds texts as texts and bytes as bytes.
func TestParquetTextTypes(t *testing.T) {
	columns := textColumns()
	f, err := New(Spec{Name: "parquet", Columns: columns})
	if err != nil {
		t.Fatal(err)
	}
	l := textLayout(t, columns, 3)
	data := madeBy(t, f, l, l.DType.Seeded(stream.New("benchpin/test", 1, 28), 0))
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	want := `message schema {
	required binary id (STRING);
	required int32 n (INT(32,true));
	required binary text (STRING);
	required binary raw;
	required binary byte;
	required group l (LIST) {
		repeated group list {
			required float element;
		}
	}
	required group ll (LIST) {
		repeated group list {
			required float element;
		}
	}
	required boolean flag;
	required binary long;
	required binary prose (STRING);
}`
	if got := strings.ReplaceAll(file.Schema().String(), "(UTF8)", "(STRING)"); got != want {
		t.Errorf("%s", got)
	}
	// Bytes never change.
	const golden = "1a27891a68f268ebf71004b89d52cb6ad7129d98c561b0d67a6466c0efc38cc9"
	if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != golden {
		t.Errorf("the file has the digest %s; it never changes: %s", got, golden)
	}
}

// TestParquetOtherTexts reads texts of parquet-go's, and refuses columns of other types.
func TestParquetOtherTexts(t *testing.T) {
	type row struct {
		S string `parquet:"s"`
		D string `parquet:"d,dict"`
		B []byte `parquet:"b"`
		N int32  `parquet:"n"`
	}
	var rows []row
	for i := range 300 {
		rows = append(rows, row{fmt.Sprint("text ", i), fmt.Sprint("word ", i%3), make([]byte, i), int32(i)})
	}
	var out bytes.Buffer
	if err := parquet.Write(&out, rows, parquet.MaxRowsPerRowGroup(120)); err != nil {
		t.Fatal(err)
	}
	read := func(c ...Column) (Sample, error) {
		f, err := New(Spec{Name: "parquet", Columns: c})
		if err != nil {
			t.Fatal(err)
		}
		return f.ReadSample(bytes.NewReader(out.Bytes()), int64(out.Len()), 250, nil)
	}
	if s, err := read(Column{Name: "s", DType: "string", Size: 1}, Column{Name: "b", DType: "binary", Size: 20, Skip: true},
		Column{Name: "d", DType: "string", Size: 6}); err != nil || s.Logical != 18 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, c := range []Column{{Name: "n", DType: "string", Size: 1}, {Name: "n", DType: "binary", Size: 4}, {Name: "s", DType: "list", Size: 1},
		{Name: "b", DType: "string", Size: 5}, {Name: "s", DType: "int32", Size: 1}} {
		if s, err := read(c); (err == nil) != (c.Name == "b") {
			t.Errorf("%+v: %+v, %v", c, s, err)
		}
	}
}

const duckdbTexts = `
const { DuckDBInstance } = require("@duckdb/node-api");
const fs = require("fs"), path = require("path"), dir = process.argv[1];
(async () => {
  const db = await (await DuckDBInstance.create()).connect();
  const q = async (sql) => (await db.runAndReadAll(sql)).getRowsJson();
  const answer = {};
  for (const file of fs.readdirSync(dir).sort()) {
    const f = "'" + path.join(dir, file) + "'";
    answer[file] = {
      rows: await q("select id, n, text, hex(raw), hex(byte), l, ll, flag, hex(long), prose from " + f),
      types: (await q("select column_type from (describe select * from " + f + ")")).map((r) => r[0]),
    };
  }
  process.stdout.write(JSON.stringify(answer));
})();
`

// TestDuckDBReadsTexts lets DuckDB read texts, bytes and lists in every compression.
func TestDuckDBReadsTexts(t *testing.T) {
	if os.Getenv("BENCHPIN_LONG") != "1" {
		t.Skip("DuckDB is asked with BENCHPIN_LONG=1 only (make test-long)")
	}
	if err := exec.Command("node", "-e", `require("@duckdb/node-api")`).Run(); err != nil {
		missing(t, "no node with @duckdb/node-api on NODE_PATH: %v", err)
	}
	dir, columns := t.TempDir(), textColumns()
	l := textLayout(t, columns, 100)
	content := l.DType.Seeded(stream.New("benchpin/test", 1, 29), 0)
	plain := make([]byte, l.PayloadBytes())
	content.Fill(plain, 0)
	tables := map[string]parquetFormat{}
	for _, word := range parquetWords() {
		f, err := New(Spec{Name: "parquet", Columns: columns, RowGroup: 30, Compression: word})
		if err != nil {
			t.Fatal(err)
		}
		name := "ours" + word + ".parquet"
		if err := os.WriteFile(filepath.Join(dir, name), madeBy(t, f, l, content), 0o644); err != nil {
			t.Fatal(err)
		}
		tables[name] = tableOf(f)
	}
	out, err := exec.Command("node", "-e", duckdbTexts, dir).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var answer map[string]struct {
		Rows  [][]any
		Types []string
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}
	for name, f := range tables {
		a := answer[name]
		if got := fmt.Sprint(a.Types); got != "[VARCHAR INTEGER VARCHAR BLOB BLOB FLOAT[] FLOAT[] BOOLEAN BLOB VARCHAR]" || len(a.Rows) != l.Samples {
			t.Errorf("%s: types %s, %d rows", name, got, len(a.Rows))
			continue
		}
		for i, c := range columns {
			var got []any
			for _, row := range a.Rows {
				if list, ok := row[i].([]any); ok {
					got = append(got, list...)
				} else {
					got = append(got, row[i])
				}
			}
			if f.columns[i].form != storedText {
				compareNumbers(t, name+" "+c.Name, got, numbers(f, l, plain, i))
				continue
			}
			var want []any
			for _, x := range texts(f, c, l, plain, i) {
				if c.DType == "binary" {
					x = strings.ToUpper(hex.EncodeToString([]byte(x)))
				}
				want = append(want, x)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: column %s: %s", name, c.Name, strconv.Quote(fmt.Sprint(got))[:200])
			}
		}
	}
}
