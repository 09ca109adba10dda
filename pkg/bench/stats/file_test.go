package stats

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"
)

func readAll(b []byte) ([]Step, []Device, error) {
	r, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	var rows []Step
	err = r.Each(func(s *Step) error {
		rows = append(rows, *s)
		return nil
	})
	return rows, r.Devices(), err
}

func TestFileRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 4))
		r := makeRun(rng, Params{Accelerators: 1 + rng.IntN(6), Epochs: 1 + rng.IntN(2), StepsPerEpoch: 1 + rng.Int64N(30), BatchSize: 2})
		b := file(t, r.rows)
		rows, devices, err := readAll(b)
		if err != nil {
			rt.Fatal(err)
		}
		if !reflect.DeepEqual(rows, r.rows) || len(devices) != 0 {
			rt.Fatal("rows come back changed")
		}
		if !bytes.Equal(b, file(t, r.rows)) {
			rt.Fatal("the same rows gave other bytes")
		}
	})
}

// Files of the first version lack the columns that split the wait. They are read as before, with 0 there.
func TestFirstFiles(t *testing.T) {
	b, err := os.ReadFile("testdata/first.parquet")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Waits() {
		t.Error("a file without the columns that split the wait says that it has them")
	}
	want := steady(2, 11, 3)
	rows, devices, err := readAll(b)
	if err != nil || !reflect.DeepEqual(rows, want.rows) || len(devices) != 2 || *devices[0].Bytes != 123 || devices[1].Absent != "why" {
		t.Errorf("rows or devices come back changed: %v, %v", devices, err)
	}
	m, err := Summarise(t.Context(), r, want.p)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/first.json")
	if err != nil {
		t.Fatal(err)
	}
	var then record.Metrics
	if err := json.Unmarshal(text, &then); err != nil {
		t.Fatal(err)
	}
	for name, f := range then.Other {
		if !reflect.DeepEqual(m.Other[name], f) {
			t.Errorf("%s: found %+v, the first version computed %+v", name, m.Other[name], f)
		}
	}
	now, err := Open(bytes.NewReader(file(t, want.rows)), int64(len(file(t, want.rows))))
	if err != nil || !now.Waits() {
		t.Errorf("a file of today says that it does not split the wait: %v", err)
	}
}

// Several row groups: the file is read as one, and can be read again from its start.
func TestManyRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	p := Params{Accelerators: 7, Epochs: 2, StepsPerEpoch: 12000, BatchSize: 2, AUThreshold: 1}
	r := makeRun(rng, p)
	b := file(t, r.rows)
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n := len(f.f.RowGroups()); n != (len(r.rows)+groupRows-1)/groupRows || n < 3 {
		t.Errorf("%d rows in %d row groups", len(r.rows), n)
	}
	end, err := f.End(p.Accelerators)
	if want := slices.MaxFunc(r.rows, func(a, b Step) int { return cmp.Compare(a.BlockEnd, b.BlockEnd) }).BlockEnd; err != nil || end != want {
		t.Errorf("the run ends at %d, expected %d: %v", end, want, err)
	}
	first, err := Summarise(t.Context(), f, p)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Summarise(t.Context(), f, p)
	if err != nil || !reflect.DeepEqual(first, second) {
		t.Errorf("a second pass over one reader differs: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Summarise(ctx, f, p); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled summary returned %v", err)
	}
	t.Logf("%d rows take %.1f bytes each", len(r.rows), float64(len(b))/float64(len(r.rows)))
}

func TestOtherFilesAreRefused(t *testing.T) {
	good := file(t, steady(1, 3, 1).rows)
	type other struct {
		Epoch int32 `parquet:"epoch"`
	}
	zstd := parquet.Compression(&parquet.Zstd)
	write := func(f func(w *bytes.Buffer) error) []byte {
		var b bytes.Buffer
		if err := f(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	cases := map[string][]byte{
		"empty":     nil,
		"text":      []byte("epoch,step\n1,1\n"),
		"truncated": good[:len(good)-1],
		"tail lost": good[:len(good)/2],
		"head lost": good[len(good)/2:],
		"appended":  append(bytes.Clone(good), 0),
		"other columns": write(func(w *bytes.Buffer) error {
			return parquet.Write(w, []other{{1}}, zstd, parquet.KeyValueMetadata(SchemaKey, SchemaName), parquet.KeyValueMetadata(DeviceKey, "[]"))
		}),
		"other schema": write(func(w *bytes.Buffer) error {
			return parquet.Write(w, steady(1, 3, 1).rows, parquet.KeyValueMetadata(SchemaKey, "benchpin.steps/v2"), zstd,
				parquet.KeyValueMetadata(DeviceKey, "[]"))
		}),
		"no devices": write(func(w *bytes.Buffer) error {
			return parquet.Write(w, steady(1, 3, 1).rows, zstd, parquet.KeyValueMetadata(SchemaKey, SchemaName))
		}),
		"other codec": write(func(w *bytes.Buffer) error {
			return parquet.Write(w, steady(1, 3, 1).rows, parquet.KeyValueMetadata(SchemaKey, SchemaName), parquet.KeyValueMetadata(DeviceKey, "[]"))
		}),
		"devices are no list": write(func(w *bytes.Buffer) error {
			return parquet.Write(w, steady(1, 3, 1).rows, zstd, parquet.KeyValueMetadata(SchemaKey, SchemaName),
				parquet.KeyValueMetadata(DeviceKey, `{"epoch":1}`))
		}),
	}
	for name, b := range cases {
		if _, _, err := readAll(b); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: error %v, want %v", name, err, ErrFormat)
		}
	}
	for _, text := range []string{`[{"epoch":1}]`, `[{"epoch":2,"absent":"x"},{"epoch":1,"absent":"x"}]`, `[{"epoch":1,"bytes":"-1"}]`,
		`[{"epoch":1,"bytes":"1","absent":"x"}]`, `[{"epoch":0,"absent":"x"}]`} {
		b := write(func(w *bytes.Buffer) error {
			return parquet.Write(w, steady(1, 3, 1).rows, zstd, parquet.KeyValueMetadata(SchemaKey, SchemaName),
				parquet.KeyValueMetadata(DeviceKey, text))
		})
		if _, _, err := readAll(b); !errors.Is(err, ErrImpossible) {
			t.Errorf("device bytes %s: error %v, want %v", text, err, ErrImpossible)
		}
	}
}

// A damaged file gives an error or other rows, never a panic; a file's digest, not this reader, tells a changed row.
func TestDamageNeverPanics(t *testing.T) {
	r := steady(2, 40, 3)
	good := file(t, r.rows)
	rng := rand.New(rand.NewPCG(6, 6))
	rounds, stride, refused := 400, 37, 0
	if os.Getenv("BENCHPIN_LONG") == "1" {
		rounds, stride = 5000, 1
	}
	for range rounds {
		b := bytes.Clone(good)
		for range 1 + rng.IntN(3) {
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		}
		if _, err := summarise(b, r.p); err != nil {
			refused++
		}
	}
	if refused < rounds/2 {
		t.Errorf("only %d of %d damaged files were refused", refused, rounds)
	}
	t.Logf("%d of %d damaged files refused", refused, rounds)
	for n := 0; n < len(good); n += stride {
		if _, _, err := readAll(good[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes were accepted", n, len(good))
		}
	}
}

func FuzzOpen(f *testing.F) {
	r := steady(1, 3, 2)
	f.Add(file(f, r.rows))
	f.Add(file(f, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = summarise(b, r.p)
		r := r
		r.p.Partial = true
		_, _ = summarise(b, r.p)
	})
}

func TestHistogramBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64Range(0, maxNanoseconds).Draw(t, "value")
		i := bucket(v)
		if u := upper(i); u < v || float64(u) > float64(v)*(1+1.0/1024)+0.5 || bucket(u) != i || bucket(u+1) != i+1 {
			t.Fatalf("value %d is in bucket %d, which ends at %d", v, i, u)
		}
	})
	var h histogram
	if _, ok := h.quantile(500); ok {
		t.Error("a quantile of nothing")
	}
	for v := range int64(1000) { // small values are exact
		h.add(v)
	}
	for permille, want := range map[int64]int64{0: 0, 1: 0, 500: 499, 990: 989, 999: 998, 1000: 999} {
		if v, _ := h.quantile(permille); v != want {
			t.Errorf("quantile %d/1000 of 0..999 is %d, want %d", permille, v, want)
		}
	}
}

// duckdb is the reader that analysts will use. It comes from npm (package @duckdb/node-api), found through NODE_PATH.
const duckdbScript = `
const { DuckDBInstance } = require("@duckdb/node-api");
(async () => {
  const db = await (await DuckDBInstance.create()).connect();
  const q = async (sql) => (await db.runAndReadAll(sql)).getRowsJson();
  const f = "'" + process.argv[1] + "'";
  console.log(JSON.stringify({
    rows: await q("select count(*), sum(load_ns), sum(compute_ns), sum(bytes), max(block_end_ns) from " + f),
    types: await q("select column_name, column_type, \"null\" from (describe select * from " + f + ")"),
    blocks: await q("select count(*) from (select epoch, rank, block, max(block_end_ns) - min(block_start_ns) from " + f + " group by 1,2,3)"),
    keys: await q("select key::varchar from parquet_kv_metadata(" + f + ") order by 1"),
  }));
})();
`

func TestDuckDBReadsSteps(t *testing.T) {
	if os.Getenv("BENCHPIN_LONG") != "1" {
		t.Skip("DuckDB is asked with BENCHPIN_LONG=1 only (make test-long)")
	}
	node := peer(t, "no node with @duckdb/node-api on NODE_PATH", []string{"node", "-e", `require("@duckdb/node-api")`})
	r := makeRun(rand.New(rand.NewPCG(7, 7)), Params{Accelerators: 3, Epochs: 2, StepsPerEpoch: 40, BatchSize: 2})
	path := filepath.Join(t.TempDir(), "steps.parquet")
	if err := os.WriteFile(path, file(t, r.rows), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(node, "-e", duckdbScript, path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got struct {
		Rows, Types, Blocks, Keys [][]any
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var load, compute, asked, end int64
	blocks := map[[3]int32]bool{}
	for _, s := range r.rows {
		load, compute, asked, end = load+s.Load, compute+s.Compute, asked+s.Bytes, max(end, s.BlockEnd)
		blocks[[3]int32{s.Epoch, s.Rank, s.Block}] = true
	}
	want := fmt.Sprint([]any{len(r.rows), load, compute, asked, end})
	if g := fmt.Sprint(got.Rows[0]); g != want {
		t.Errorf("DuckDB counts %s, want %s", g, want)
	}
	if g := fmt.Sprint(got.Blocks[0][0]); g != fmt.Sprint(len(blocks)) {
		t.Errorf("DuckDB finds %s blocks, want %d", g, len(blocks))
	}
	if g := fmt.Sprint(got.Keys); g != fmt.Sprintf("[[%s] [%s]]", DeviceKey, SchemaKey) {
		t.Errorf("DuckDB finds the keys %s", g)
	}
	if len(got.Types) != reflect.TypeFor[Step]().NumField() {
		t.Errorf("DuckDB finds %d columns", len(got.Types))
	}
	for _, c := range got.Types {
		if typ := fmt.Sprint(c[1]); typ != "BIGINT" && typ != "INTEGER" || strings.Contains(fmt.Sprint(c[0]), " ") {
			t.Errorf("column %v has type %v", c[0], c[1])
		}
	}
}
