package stats

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

const askDuckDB = `
const { DuckDBInstance } = require("@duckdb/node-api");
(async () => {
  const db = await (await DuckDBInstance.create()).connect();
  const out = [];
  for (const sql of JSON.parse(process.argv[1])) {
    out.push((await db.runAndReadAll(sql)).getRows().map((row) => row.map(Number)));
  }
  console.log(JSON.stringify(out));
})();
`

// The queries of docs/steps.md, as they stand there, give the figures of the record.
func TestDocumentedQueries(t *testing.T) {
	if os.Getenv("BENCHPIN_LONG") != "1" {
		t.Skip("DuckDB is asked with BENCHPIN_LONG=1 only (make test-long)")
	}
	page, err := os.ReadFile("../../../docs/steps.md")
	if err != nil {
		t.Fatal(err)
	}
	var queries []string
	for _, m := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllSubmatch(page, -1) {
		queries = append(queries, string(m[1]))
	}
	if len(queries) != 2 {
		t.Fatalf("docs/steps.md has %d queries in SQL, expected 2", len(queries))
	}
	node := peer(t, "no node with @duckdb/node-api on NODE_PATH", []string{"node", "-e", `require("@duckdb/node-api")`})
	r := makeRun(rand.New(rand.NewPCG(7, 8)), Params{Accelerators: 3, Epochs: 2, StepsPerEpoch: 40, BatchSize: 2, ExcludeStart: 1})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "steps.parquet"), file(t, r.rows), 0o644); err != nil {
		t.Fatal(err)
	}
	asked, err := json.Marshal(queries)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, "-e", askDuckDB, string(asked))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got [][][]float64
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := metricsOf(t, r)
	if au := got[0][0][0]; math.Abs(au-*want.AU.Value) > 1e-9 {
		t.Errorf("DuckDB computes an AU of %v, the record has %v", au, *want.AU.Value)
	}
	if len(got[1]) != 2 {
		t.Fatalf("%v", got[1])
	}
	for _, row := range got[1] {
		var loads []int64
		for _, s := range r.rows {
			if float64(s.Epoch) == row[0] {
				loads = append(loads, s.Load)
			}
		}
		slices.Sort(loads)
		at := int(math.Ceil(0.99*float64(len(loads)))) - 1
		if ms := float64(loads[at]) / 1e6; math.Abs(row[1]-ms) > 1e-9 {
			t.Errorf("epoch %v: DuckDB finds %v ms, expected %v", row[0], row[1], ms)
		}
	}
}
