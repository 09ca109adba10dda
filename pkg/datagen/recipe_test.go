package datagen

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/workload"
)

// parse resolves a workload whose section "dataset" holds the given lines.
func parse(t testing.TB, seed uint64, dataset ...string) (Recipe, error) {
	t.Helper()
	text := "model: {name: test}\nframework: pytorch\ndataset:\n  data_folder: data\n  " + strings.Join(dataset, "\n  ") +
		fmt.Sprintf("\nbenchpin:\n  seed: %d\n", seed)
	w, err := workload.Load(workload.Source{Name: "test.yaml", Data: []byte(text)}, workload.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return FromWorkload(w.Workload)
}

func recipe(t testing.TB, seed uint64, dataset ...string) Recipe {
	t.Helper()
	r, err := parse(t, seed, dataset...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNames(t *testing.T) {
	r := recipe(t, 1, "format: npz", "num_files_train: 168", "num_files_eval: 11", "num_subfolders_eval: 10", "record_length_bytes: 100",
		"file_prefix: case", "num_subfolders_train: 1")
	for i, want := range map[int]string{
		0: "train/case_000_of_168.npz", 167: "train/case_167_of_168.npz",
		168: "valid/00/case_00_of_11.npz", 175: "valid/07/case_07_of_11.npz", 178: "valid/00/case_10_of_11.npz",
	} {
		if got := r.File(i).Path; got != want {
			t.Errorf("file %d is %s, want %s", i, got, want)
		}
	}
}

// Paths in the order of Sorted are strictly ascending, and are all the files, whatever the companions do with subfolders.
func TestSortedOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, m := rapid.IntRange(0, 130).Draw(rt, "train"), rapid.IntRange(1, 130).Draw(rt, "eval")
		s, u := rapid.IntRange(0, 140).Draw(rt, "train folders"), rapid.IntRange(0, 140).Draw(rt, "eval folders")
		format := rapid.SampledFrom([]string{"npy", "tfrecord", "indexed_binary"}).Draw(rt, "format")
		r := recipe(t, 1, "format: "+format, "record_length_bytes: 100", fmt.Sprintf("num_files_train: %d", n), fmt.Sprintf("num_files_eval: %d", m),
			fmt.Sprintf("num_subfolders_train: %d", s), fmt.Sprintf("num_subfolders_eval: %d", u))
		var sorted, all []string
		for i, f := range r.Sorted() {
			if r.Entry(i).Path != f.Path {
				rt.Fatalf("%s comes as number %d, which is %s", f.Path, i, r.Entry(i).Path)
			}
			sorted = append(sorted, f.Path)
		}
		for i := range r.Entries() {
			all = append(all, r.Entry(i).Path)
		}
		slices.Sort(all)
		if !slices.Equal(sorted, all) {
			rt.Fatalf("order of paths:\n%v\nwant\n%v", sorted, all)
		}
	})
}

// TestSpread holds the sizes to the mean and the standard deviation that the workload asks for.
func TestSpread(t *testing.T) {
	for _, files := range []int{168, 42000} {
		r := recipe(t, 1, "format: npz", fmt.Sprintf("num_files_train: %d", files), "record_length_bytes: 146600628",
			"record_length_bytes_stdev: 68341808")
		const mean, stdev = 146600628.0, 68341808.0
		var sum, sq, sides float64
		distinct, squares := make(map[int]bool), 0
		for i := range files {
			l := r.File(i).Layout
			n := float64(l.SampleBytes())
			sum += n
			sq += (n - mean) * (n - mean)
			sides += float64(l.Dims[0] + l.Dims[1])
			distinct[l.Dims[0]] = true
			if l.Dims[0] == l.Dims[1] {
				squares++
			}
		}
		n := float64(files)
		if got, e := sum/n, 4*stdev/math.Sqrt(n); math.Abs(got-mean) > e {
			t.Errorf("%d files: mean %.0f, asked for %.0f ± %.0f", files, got, mean, e)
		}
		// The product's kurtosis is below 4; the error of a standard deviation is about stdev √((k-1)/4n).
		if got, e := math.Sqrt(sq/n), 4*stdev*math.Sqrt(3/(4*n)); math.Abs(got-stdev) > e {
			t.Errorf("%d files: standard deviation %.0f, asked for %.0f ± %.0f", files, got, stdev, e)
		}
		if got := sides / (2 * n); math.Abs(got-math.Sqrt(mean)) > 4*3900/math.Sqrt(2*n) {
			t.Errorf("%d files: mean side %.0f", files, got)
		}
		if squares > 10 { // sides are drawn independently: about 3 of 42,000 are equal by chance
			t.Errorf("%d of %d files are square", squares, files)
		}
		if len(distinct) < files/2 && files < 1000 {
			t.Errorf("%d files have %d different heights", files, len(distinct))
		}
	}
}

func TestSquares(t *testing.T) {
	for length, side := range map[string]int{"146600628": 12107, "114660.07": 338, "2500": 50, "2048": 45, "1": 1, "671088640": 25905} {
		r := recipe(t, 1, "format: npz", "num_files_train: 1", "record_length_bytes: "+length)
		if got := r.File(0).Layout.Dims; !slices.Equal(got, []int{side, side}) {
			t.Errorf("record length %s: %v, want %d x %d", length, got, side, side)
		}
	}
}

// Sizes and contents of files depend on their number and the seed, not on how many there are.
func TestCountsDoNotShift(t *testing.T) {
	shape := []string{"format: npy", "record_length_bytes: 100000", "record_length_bytes_stdev: 30000"}
	a := recipe(t, 1, append(shape, "num_files_train: 5", "num_files_eval: 5")...)
	b := recipe(t, 1, append(shape, "num_files_train: 50", "num_files_eval: 7")...)
	for i := range 5 {
		x, y, v, w := a.File(i), b.File(i), a.File(5+i), b.File(50+i)
		if x.Size != y.Size || x.stream != y.stream || v.Size != w.Size || v.stream != w.stream {
			t.Errorf("file %d: %+v and %+v, %+v and %+v", i, x, y, v, w)
		}
		if x.stream == v.stream || x.Size == v.Size {
			t.Errorf("training file %d and validation file %d are alike: %+v, %+v", i, i, x, v)
		}
	}
}

func TestRecipeRoundTrip(t *testing.T) {
	for _, r := range []Recipe{
		recipe(t, math.MaxUint64, "format: npz", "num_files_train: 168", "record_length_bytes: 114660.07", "record_length_bytes_stdev: 1e3", "file_prefix: \"<é&>\""),
		recipe(t, 0, "format: npy", "num_files_train: 0", "num_files_eval: 3", "record_dims: [1, 2, 3]", "record_element_type: f4"),
		recipe(t, 1, "format: png", "num_files_train: 3", "record_length_bytes: 2000", "jpeg: {sizing: encoded}"),
		recipe(t, 1, "format: hdf5", "num_files_train: 3", "record_dims: [4, 5]", "hdf5: {num_dset_per_record: 2}"),
		recipe(t, 1, "format: parquet", "num_files_train: 3", "compression: gzip", "parquet: {columns: [{name: \"<a>\", dtype: f2, size: 4, read: no}]}"),
	} {
		again, err := ParseRecipe(r.JSON())
		if err != nil {
			t.Fatal(err)
		}
		if string(again.JSON()) != string(r.JSON()) || again.File(0).Path != r.File(0).Path || again.TotalBytes() != r.TotalBytes() {
			t.Errorf("%s became %s", r.JSON(), again.JSON())
		}
		// The manifest's header must take it.
		w := manifest.NewWriter(discard{}, manifest.Meta{Layout: r.Layout(), Recipe: r.JSON()})
		if err := w.Add(manifest.Entry{Path: "a"}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Close(); err != nil && !strings.Contains(err.Error(), "layout") { // one entry is not all files
			t.Error(err)
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// TestReadFlags: which columns a run reads makes no difference to the data.
func TestReadFlags(t *testing.T) {
	a := recipe(t, 1, "format: parquet", "parquet: {columns: [{name: a}, {name: b, size: 3}]}")
	b := recipe(t, 1, "format: parquet", "parquet: {columns: [{name: a, read: no}, {name: b, size: 3}]}", "record_length_bytes: 5")
	if string(a.JSON()) != string(b.JSON()) || a.File(0).Layout.SampleBytes() != 16 {
		t.Errorf("%s and %s; samples of %d bytes", a.JSON(), b.JSON(), a.File(0).Layout.SampleBytes())
	}
}

// TestFilesGenerated: dataset.num_files_generated is how many files there are, of which num_files_train are read.
func TestFilesGenerated(t *testing.T) {
	r := recipe(t, 1, "format: npz", "num_files_train: 4", "num_files_generated: 12")
	if r.TrainFiles() != 12 || r.File(3).Path != "train/img_03_of_12.npz" {
		t.Errorf("%d training files, the fourth is %s", r.TrainFiles(), r.File(3).Path)
	}
}

// TestOptionsAreStrict: options have one form, and none where they have their defaults.
func TestOptionsAreStrict(t *testing.T) {
	good := string(recipe(t, 7, "format: png", "num_files_train: 3", "record_length_bytes: 2000", "jpeg: {sizing: encoded}").JSON())
	rows := string(recipe(t, 7, "format: parquet", "num_files_train: 3", "parquet: {columns: [{name: a, size: 3}]}").JSON())
	for name, c := range map[string][3]string{
		"no options":       {good, `{"sizing":"encoded"}`, `{}`},
		"null":             {good, `{"sizing":"encoded"}`, `null`},
		"a name":           {good, `{"sizing":"encoded"}`, `{"name":"png","sizing":"encoded"}`},
		"a default":        {good, `{"sizing":"encoded"}`, `{"sizing":""}`},
		"an empty list":    {good, `{"sizing":"encoded"}`, `{"chunk":[],"sizing":"encoded"}`},
		"another option":   {good, `{"sizing":"encoded"}`, `{"level":3,"sizing":"encoded"}`},
		"an unknown field": {good, `{"sizing":"encoded"}`, `{"sizing":"encoded","x":1}`},
		"another place":    {good, `"format":"png","options":{"sizing":"encoded"},"dtype":"uint8"`, `"format":"png","dtype":"uint8","options":{"sizing":"encoded"}`},
		"reading":          {rows, `"size":3`, `"size":3,"skip":true`},
		"an alias":         {rows, `"dtype":"float32"`, `"dtype":"f4"`},
		"another length":   {rows, `"record_length_bytes":12`, `"record_length_bytes":13`},
		"dimensions":       {rows, `"record_dims":[]`, `"record_dims":[12]`},
		"a type":           {rows, `"dtype":"uint8"`, `"dtype":"int8"`},
		"no columns":       {rows, `"columns":[{"name":"a","dtype":"float32","size":3}],`, ``},
	} {
		if _, err := ParseRecipe(json.RawMessage(c[0])); err != nil {
			t.Fatalf("%s: %v", c[0], err)
		}
		bad := strings.Replace(c[0], c[1], c[2], 1)
		if bad == c[0] {
			t.Fatalf("%s: nothing was changed in %s", name, c[0])
		}
		if r, err := ParseRecipe(json.RawMessage(bad)); err == nil {
			t.Errorf("%s was accepted: %s as %s", name, bad, r.JSON())
		}
	}
}

func TestParseRecipeIsStrict(t *testing.T) {
	good := string(recipe(t, 7, "format: npz", "num_files_train: 3", "record_length_bytes: 100").JSON())
	for name, change := range map[string][2]string{
		"a space":          {`"seed":"7"`, `"seed": "7"`},
		"an unknown field": {`{"generator"`, `{"x":1,"generator"`},
		"a field twice":    {`"seed":"7"`, `"seed":"7","seed":"7"`},
		"another case":     {`"seed"`, `"Seed"`},
		"another version":  {`"version":1`, `"version":2`},
		"another maker":    {`benchpin/datagen`, `benchpin/datagem`},
		"a plus":           {`"seed":"7"`, `"seed":"+7"`},
		"a big seed":       {`"seed":"7"`, `"seed":"18446744073709551616"`},
		"no files":         {`"files":3`, `"files":0`},
		"negative files":   {`"files":3`, `"files":-3`},
		"one subfolder":    {`"subfolders":0`, `"subfolders":1`},
		"no format":        {`"npz"`, `"npx"`},
		"no dtype":         {`"uint8"`, `"uint9"`},
		"an alias":         {`"uint8"`, `"u1"`},
		"a float":          {`:100,`, `:1e2,`},
		"a negative":       {`:100,`, `:-100,`},
		"minus zero":       {`stdev":0`, `stdev":-0`},
		"null dims":        {`"record_dims":[]`, `"record_dims":null`},
		"zero dims":        {`"record_dims":[]`, `"record_dims":[0]`},
		"a slash":          {`"img"`, `"../img"`},
		"a control":        {`"img"`, `"\n"`},
		"no samples":       {`"samples_per_file":1`, `"samples_per_file":0`},
		"trailing data":    {`}}`, `}} `},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatalf("%s: nothing was changed in %s", name, good)
		}
		if r, err := ParseRecipe(json.RawMessage(bad)); err == nil {
			t.Errorf("%s was accepted: %s as %s", name, bad, r.JSON())
		}
	}
}

func TestRefusedWorkloads(t *testing.T) {
	for _, c := range []struct {
		want    string
		dataset []string
	}{
		{"there are: ", []string{"format: hdf5_opt", "num_files_train: 3"}},
		{"dataset.compression", []string{"format: npy", "compression: gzip"}},
		{"dataset.hdf5.chunk_dims", []string{"format: npz", "hdf5: {chunk_dims: [3, 3]}"}},
		{"dataset.jpeg.sizing", []string{"format: npz", "jpeg: {sizing: encoded}"}},
		{"dataset.parquet.columns", []string{"format: npz", "parquet: {columns: [{name: a}]}"}},
		{"dataset.record_dims", []string{"format: parquet", "record_dims: [3]"}},
		{"dataset.record_length_bytes_stdev", []string{"format: parquet", "record_length_bytes_stdev: 3"}},
		{"dataset.record_element_type", []string{"format: parquet", "record_element_type: float32"}},
		{"no_such_type", []string{"format: parquet", "parquet: {columns: [{name: a, dtype: no_such_type}]}"}},
		{"dataset.num_files_generated is 3", []string{"format: npz", "num_files_train: 4", "num_files_generated: 3"}},
		{"chunk_size", []string{"format: hdf5", "enable_chunking: true"}},
		{"record of 20 bytes", []string{"format: png", "record_length_bytes: 20"}},
		{"as small as 1 x 1", []string{"format: png", "record_length_bytes: 20000", "record_length_bytes_stdev: 19000", "num_files_train: 2000000"}},
		{"file ", []string{"format: png", "record_length_bytes: 20000", "record_length_bytes_stdev: 19000", "num_files_train: 20000"}},
		{"nothing to generate", []string{"format: npz", "num_files_train: 0"}},
		{"2^62 bytes", []string{"format: npz", "record_dims: [2147483648, 2147483648, 4]"}},
	} {
		if _, err := parse(t, 1, c.dataset...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one with %q", c.dataset, err, c.want)
		}
	}
	// The workload's own check stands before this one.
	w := &workload.Workload{Dataset: workload.Dataset{Format: "npz", RecordDims: []int{3, 4}, RecordLengthBytesStdev: 5,
		NumFilesTrain: 1, NumSamplesPerFile: 1, RecordElementType: "uint8", FilePrefix: "img"}}
	if _, err := FromWorkload(w); err == nil || !strings.Contains(err.Error(), "dataset.record_dims [3 4]") {
		t.Errorf("dimensions and a spread gave %v", err)
	}
}

// FuzzParseRecipe: whatever is accepted is canonical, and every file of it can be named and sized.
func FuzzParseRecipe(f *testing.F) {
	f.Add([]byte(recipe(f, 7, "format: npz", "num_files_train: 3", "record_length_bytes: 100.5", "record_length_bytes_stdev: 3").JSON()))
	f.Add([]byte(recipe(f, 0, "format: npy", "num_files_eval: 3", "record_dims: [1, 2, 3]", "num_subfolders_eval: 2").JSON()))
	for _, dataset := range containers() {
		f.Add([]byte(recipe(f, 5, append(dataset, "num_files_train: 3")...).JSON()))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := ParseRecipe(raw)
		if err != nil {
			return
		}
		if string(r.JSON()) != string(raw) {
			t.Fatalf("%s was accepted as %s", raw, r.JSON())
		}
		for _, k := range []int{0, r.Files() / 2, r.Files() - 1} {
			if s := r.File(r.sorted(k)); s.Size <= 0 || s.Path == "" || s.Layout.Check() != nil {
				t.Fatalf("%s: file %d is %+v", raw, k, s)
			}
		}
		for i := range min(r.Companions(), 4) {
			if s := r.Companion(r.Files()-1, i); s.Size <= 0 || s.Path == "" || s.AtMost {
				t.Fatalf("%s: companion %d is %+v", raw, i, s)
			}
		}
	})
}

// TestAlone: what is asked of a file alone is what its description has, and files that are alike are so: what their containers say of one
// of them they say of all.
func TestAlone(t *testing.T) {
	for _, dataset := range [][]string{
		{"format: npz", "record_length_bytes: 900", "record_length_bytes_stdev: 200"},
		{"format: npz", "record_length_bytes: 900"},
		{"format: npy", "record_dims: [3, 7]"},
		{"format: synthetic", "record_length_bytes: 400"},
		{"format: indexed_binary", "record_length_bytes: 400", "num_samples_per_file: 5"},
		{"format: mmap_indexed_binary", "record_length_bytes: 400", "num_samples_per_file: 5"},
		{"format: tfrecord", "record_length_bytes: 400", "num_samples_per_file: 5"},
		{"format: csv", "record_length_bytes: 400"},
		{"format: jpeg", "record_length_bytes: 4000"},
		{"format: parquet", "record_length_bytes: 400", "num_samples_per_file: 9"},
	} {
		r := recipe(t, 7, append(dataset, "num_files_train: 1003", "num_files_eval: 12", "num_subfolders_train: 10")...)
		for _, i := range []int{0, 1, 9, 10, 500, 1002, 1003, 1004, 1014} {
			f := r.File(i)
			if r.Path(i) != f.Path || r.Size(i) != f.Size || r.SampleBytes(i) != f.Layout.SampleBytes() {
				t.Errorf("%s: file %d is %s of %d bytes, samples of %d; its description says %+v", dataset, i, r.Path(i), r.Size(i), r.SampleBytes(i), f)
			}
			if n, err := r.format.Size(f.Layout); err != nil || n != f.Size {
				t.Errorf("%s: file %d has %d bytes by the container, %v, and %d by the recipe", dataset, i, n, err, f.Size)
			}
			for c := range r.Companions() {
				if n, err := r.companions[c].Size(f.Layout); err != nil || n != r.Companion(i, c).Size {
					t.Errorf("%s: companion %d of file %d has %d bytes by the container, %v, and %d by the recipe", dataset, c, i, n, err, r.Companion(i, c).Size)
				}
			}
		}
	}
}
