package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/stream"
)

// duckdbScript reads every file of cases.json, and writes files in every compression that it has. It comes from npm (package
// @duckdb/node-api), found through NODE_PATH.
const duckdbScript = `
const { DuckDBInstance } = require("@duckdb/node-api");
const fs = require("fs"), path = require("path"), dir = process.argv[1];
(async () => {
  const db = await (await DuckDBInstance.create()).connect();
  const q = async (sql) => (await db.runAndReadAll(sql)).getRowsJson();
  const answer = {};
  for (const file of JSON.parse(fs.readFileSync(path.join(dir, "cases.json")))) {
    const f = "'" + path.join(dir, file) + "'";
    answer[file] = {
      rows: await q("select * from " + f),
      types: (await q("select column_type from (describe select * from " + f + ")")).map((r) => r[0]),
      nulls: await q("select count(*) from (describe select * from " + f + ") where \"null\" <> 'YES'"),
      groups: await q("select distinct row_group_id, row_group_num_rows from parquet_metadata(" + f + ") order by 1"),
      codecs: (await q("select distinct compression from parquet_metadata(" + f + ")")).map((r) => r[0]),
    };
  }
  for (const codec of ["uncompressed", "snappy", "gzip", "zstd", "lz4_raw", "brotli"])
    await db.run("copy (select i::integer as a, i / 3.0::double as b, [i, i + 1, i + 2]::float[] as l, 'text ' || (i % 9) as s, (i % 5)::tinyint as t " +
      "from range(10000) r(i)) to '" + path.join(dir, "theirs-" + codec + ".parquet") + "' (format parquet, compression " + codec + ", row_group_size 4096)");
  fs.writeFileSync(path.join(dir, "answer.json"), JSON.stringify(answer));
})();
`

// duckType is what DuckDB calls an element type.
func duckType(d DType) string {
	return map[string]string{"bool": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT", "uint8": "UTINYINT",
		"uint16": "USMALLINT", "uint32": "UINTEGER", "uint64": "UBIGINT", "float16": "FLOAT", "float32": "FLOAT", "float64": "DOUBLE",
		"complex64": "FLOAT", "complex128": "DOUBLE"}[d.Name]
}

// TestDuckDBReadsTables lets the reader that analysts use read all values of ours, and reads its own.
func TestDuckDBReadsTables(t *testing.T) {
	if os.Getenv("BENCHPIN_LONG") != "1" {
		t.Skip("DuckDB is asked with BENCHPIN_LONG=1 only (make test-long)")
	}
	if err := exec.Command("node", "-e", `require("@duckdb/node-api")`).Run(); err != nil {
		missing(t, "no node with @duckdb/node-api on NODE_PATH: %v", err)
	}
	dir := t.TempDir()
	type table struct {
		f       parquetFormat
		l       Layout
		content []byte
		codec   string
	}
	tables := make(map[string]table)
	s := stream.New("benchpin/test", 1, 26)
	for i, word := range parquetWords() {
		columns := everyColumn(11)
		if i == 0 {
			columns = append(columns, Column{Name: "long", DType: "float32", Size: 70000})
		}
		f, err := New(Spec{Name: "parquet", Columns: columns, RowGroup: 30, Compression: word})
		if err != nil {
			t.Fatal(err)
		}
		c := table{f: tableOf(f), l: tableLayout(columns, 100), codec: []string{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZ4_RAW", "ZSTD"}[i]}
		content := c.l.DType.Seeded(s, uint64(i))
		c.content = make([]byte, c.l.PayloadBytes())
		content.Fill(c.content, 0)
		name := fmt.Sprintf("ours-%d.parquet", i)
		if err := os.WriteFile(filepath.Join(dir, name), madeBy(t, f, c.l, content), 0o644); err != nil {
			t.Fatal(err)
		}
		tables[name] = c
	}
	var names []string
	for name := range tables {
		names = append(names, name)
	}
	writeJSON(t, filepath.Join(dir, "cases.json"), names)
	if out, err := exec.Command("node", "-e", duckdbScript, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "answer.json"))
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]struct {
		Rows          [][]any
		Types, Codecs []string
		Groups, Nulls [][]any
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		t.Fatal(err)
	}
	for name, c := range tables {
		a := answer[name]
		if got := fmt.Sprint(a.Groups); got != "[[0 30] [1 30] [2 30] [3 10]]" || !slices.Equal(a.Codecs, []string{c.codec}) || len(a.Rows) != c.l.Samples {
			t.Errorf("%s: row groups %s, compressions %v, %d rows", name, got, a.Codecs, len(a.Rows))
			continue
		}
		for i, col := range c.f.columns {
			want := duckType(col.dtype)
			if col.list {
				want += "[]"
			}
			if a.Types[i] != want {
				t.Errorf("%s: column %q is %s, want %s", name, col.name, a.Types[i], want)
			}
			var got []any
			for _, row := range a.Rows {
				if list, ok := row[i].([]any); ok {
					got = append(got, list...)
				} else {
					got = append(got, row[i])
				}
			}
			compareNumbers(t, name+" "+col.name, got, numbers(c.f, c.l, c.content, i))
		}
	}
	readDuckDBs(t, dir)
}

// compareNumbers compares what came through JSON, where long integers are texts, with numbers.
func compareNumbers(t *testing.T, what string, got, want []any) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d numbers, want %d", what, len(got), len(want))
		return
	}
	for i, w := range want {
		g, same := got[i], false
		switch w := w.(type) {
		case bool:
			same = g == w
		case float64:
			same = g == w
		default:
			text, ok := g.(string)
			if f, number := g.(float64); number {
				text, ok = strconv.FormatFloat(f, 'f', -1, 64), true
			}
			same = ok && text == fmt.Sprint(w)
		}
		if !same {
			t.Errorf("%s: number %d is %v, want %v", what, i, g, w)
			return
		}
	}
}

// readDuckDBs reads what DuckDB wrote, all columns and some.
func readDuckDBs(t *testing.T, dir string) {
	t.Helper()
	all, err := New(Spec{Name: "parquet"})
	if err != nil {
		t.Fatal(err)
	}
	some, err := New(Spec{Name: "parquet", Columns: []Column{{Name: "l", DType: "float32", Size: 3}, {Name: "a", DType: "int32", Size: 1},
		{Name: "b", DType: "float64", Size: 1, Skip: true}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, codec := range []string{"uncompressed", "snappy", "gzip", "zstd", "lz4_raw", "brotli"} {
		data, err := os.ReadFile(filepath.Join(dir, "theirs-"+codec+".parquet"))
		if err != nil {
			t.Fatal(err)
		}
		size := int64(len(data))
		for k := 0; k < 10000; k += 999 {
			a, err := all.ReadSample(bytes.NewReader(data), size, k, nil)
			if codec == "brotli" {
				if err == nil || !strings.Contains(err.Error(), "codec 4") {
					t.Errorf("brotli: %+v, %v", a, err)
				}
				continue
			}
			b, err2 := some.ReadSample(bytes.NewReader(data), size, k, nil)
			if err != nil || err2 != nil || b.Logical != 16 || b.Asked >= a.Asked {
				t.Errorf("%s, row %d: %+v, %v; two columns: %+v, %v", codec, k, a, err, b, err2)
			}
		}
		if _, err := all.ReadSample(bytes.NewReader(data), size, 10000, nil); err == nil {
			t.Errorf("%s: row 10000 was read", codec)
		}
	}
}
