package pipeline

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/datagen"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// described is a workload with the given section "dataset" and some files in both parts, in subfolders.
func described(t *testing.T, dataset string) *workload.Workload {
	t.Helper()
	text := "framework: pytorch\ndataset: {num_files_train: 11, num_files_eval: 5, num_subfolders_train: 3, " + dataset + "}\n" +
		"reader: {data_loader: pytorch}\nbenchpin: {seed: 3}\n"
	w, err := workload.Load(workload.Source{Name: "described.yaml", Data: []byte(text)}, workload.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return w.Workload
}

// generated makes the data set of a workload, and opens its manifest.
func generated(t *testing.T, w *workload.Workload) (Layout, *manifest.Manifest) {
	t.Helper()
	l := Layout{t.TempDir()}
	if _, err := Generate(context.Background(), GenerateOptions{Workload: w, Data: l.Data(), Manifest: l.Manifest()}); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Open(l.Manifest())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return l, m
}

// kinds are data sets of each kind: one file a file, companions beside it, companions in another folder without its subfolders, and sizes
// that follow from the content.
func kinds() map[string]string {
	return map[string]string{
		"npz":      "format: npz, record_length_bytes: 900, record_length_bytes_stdev: 200",
		"indexed":  "format: indexed_binary, record_length_bytes: 400, num_samples_per_file: 5",
		"tfrecord": "format: tfrecord, record_length_bytes: 400, num_samples_per_file: 5",
		"csv":      "format: csv, record_length_bytes: 400, num_samples_per_file: 2",
	}
}

// TestOpenFiles: both parts are in DLIO's order, with the sizes that the files have, and every entry of the manifest has its number.
func TestOpenFiles(t *testing.T) {
	for name, dataset := range kinds() {
		t.Run(name, func(t *testing.T) {
			w := described(t, dataset)
			l, m := generated(t, w)
			files, err := openGenerated(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			if err := files.suits(w); err != nil {
				t.Error(err)
			}
			if files.Files() != 11 || files.valid.Files() != 5 {
				t.Fatalf("%d training files, %d for evaluation", files.Files(), files.valid.Files())
			}
			var paths []string
			for _, part := range []pinnedPart{files.pinnedPart, files.valid} {
				for i := range part.Files() {
					info, err := os.Stat(filepath.Join(l.Data(), part.Path(i)))
					if err != nil || info.Size() != part.Size(i) {
						t.Errorf("%s of %d bytes: %v, %v", part.Path(i), part.Size(i), info, err)
					}
					if i > 0 && filepath.Base(part.Path(i-1)) >= filepath.Base(part.Path(i)) {
						t.Errorf("%s stands behind %s", part.Path(i), part.Path(i-1))
					}
					if n := part.SampleBytes(i); n < 400 {
						t.Errorf("%s has samples of %d bytes", part.Path(i), n)
					}
				}
				paths = slices.AppendSeq(paths, part.all())
			}
			// all gives each file of the folder once, and nothing else.
			count := 0
			for _, path := range paths {
				if _, err := os.Stat(filepath.Join(l.Data(), path)); err != nil {
					t.Error(err)
				}
				count++
			}
			slices.Sort(paths)
			if int64(count) != m.Header().Count || len(slices.Compact(paths)) != count {
				t.Errorf("%d paths, %d different ones, %d entries", count, len(slices.Compact(paths)), m.Header().Count)
			}
			// Numbers of entries are those of entry().
			number := make(map[string]int)
			k := 0
			err = m.Entries(t.Context(), func(e manifest.Entry) error {
				number[e.Path] = int(files.byEntry[k])
				k++
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []pinnedPart{files.pinnedPart, files.valid} {
				i, c := 0, 0
				for path := range part.all() {
					if part.entry(i, c) != number[path] || files.recipe.Entry(number[path]).Path != path {
						t.Errorf("%s is entry %d of the manifest's, and entry(%d, %d) is %d", path, number[path], i, c, part.entry(i, c))
					}
					if c++; c > files.recipe.Companions() {
						i, c = i+1, 0
					}
				}
			}
		})
	}
}

// altered writes a manifest like m, with its entries changed.
func altered(t *testing.T, m *manifest.Manifest, change func([]manifest.Entry) []manifest.Entry) *manifest.Manifest {
	t.Helper()
	var entries []manifest.Entry
	err := m.Entries(t.Context(), func(e manifest.Entry) error {
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "altered.json")
	f, err := manifest.Create(path, manifest.Meta{Recipe: m.Header().Recipe})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	for _, e := range change(entries) {
		if err := f.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	a, err := manifest.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// TestOpenFilesRefuses: a manifest that lists other files than its recipe makes is no data set to run on.
func TestOpenFilesRefuses(t *testing.T) {
	for name, dataset := range kinds() {
		t.Run(name, func(t *testing.T) {
			_, m := generated(t, described(t, dataset))
			for what, change := range map[string]func([]manifest.Entry) []manifest.Entry{
				"one missing": func(e []manifest.Entry) []manifest.Entry { return e[1:] },
				"one more":    func(e []manifest.Entry) []manifest.Entry { return append(e, manifest.Entry{Path: "zz"}) },
				"another name": func(e []manifest.Entry) []manifest.Entry {
					e[0].Path = "a" + e[0].Path
					return e
				},
				"another size": func(e []manifest.Entry) []manifest.Entry {
					e[0].Size += 1000
					return e
				},
			} {
				if _, err := openGenerated(t.Context(), altered(t, m, change)); err == nil || !strings.Contains(err.Error(), "its recipe makes") {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// TestRecipeAgainFindsEveryEntry: where all files are generated again, a digest or a size that the recipe does not give is found, in data
// files and companions alike.
func TestRecipeAgainFindsEveryEntry(t *testing.T) {
	for name, dataset := range kinds() {
		t.Run(name, func(t *testing.T) {
			_, m := generated(t, described(t, dataset))
			count := int(m.Header().Count)
			for k := -1; k < count; k += 1 + count/7 {
				a := altered(t, m, func(e []manifest.Entry) []manifest.Entry {
					if k >= 0 {
						e[k].Digest[9] ^= 1
					}
					return e
				})
				files, err := openGenerated(t.Context(), a)
				if err != nil {
					t.Fatal(err)
				}
				v := &attest.Verification{Record: &record.Record{}, Manifest: a}
				v.Record.Dataset.Seed = "3"
				n, total, found := recipeAgain(t.Context(), v, files)
				if n != count || total != count {
					t.Errorf("%d of %d files were generated again, there are %d", n, total, count)
				}
				if want := min(k+1, 1); len(found) != want {
					t.Errorf("entry %d changed: %d faults, want %d: %v", k, len(found), want, found)
				}
			}
		})
	}
}

// TestSuits: options of a container are part of what a workload describes, in both directions; which columns are read is not.
func TestSuits(t *testing.T) {
	const columns = "format: parquet, num_samples_per_file: 20, parquet: {columns: [{name: a, size: 4}, {name: b, dtype: int8}]}"
	_, m := generated(t, described(t, columns))
	files, err := openGenerated(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	_, plain := generated(t, described(t, "format: png, record_length_bytes: 900"))
	images, err := openGenerated(t.Context(), plain)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		files   *pinnedFiles
		dataset string
		want    string // in the error, "" for none
	}{
		{files, columns, ""},
		{files, strings.Replace(columns, "size: 4", "size: 4, read: no", 1), ""},
		{files, strings.Replace(columns, "format: parquet", "format: parquet, num_files_generated: 30", 1), ""},
		{files, strings.Replace(columns, "size: 4", "size: 5", 1), "options"},
		{files, strings.Replace(columns, "format: parquet", "format: parquet, compression: zstd", 1), "options"},
		{files, strings.Replace(columns, "num_samples_per_file: 20", "num_samples_per_file: 21", 1), "samples_per_file"},
		{images, "format: png, record_length_bytes: 900", ""},
		{images, "format: png, record_length_bytes: 900, jpeg: {sizing: encoded}", "options nothing"},
		{images, "format: jpeg, record_length_bytes: 900", "format"},
	} {
		err := c.files.suits(described(t, c.dataset))
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, errOtherData) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.dataset, err, c.want)
		}
	}
}

// TestRecipeFiles: what a plan counts before there is a data set is what the manifest says afterwards.
func TestRecipeFiles(t *testing.T) {
	for name, dataset := range kinds() {
		t.Run(name, func(t *testing.T) {
			w := described(t, dataset)
			train, err := filesOf(w)
			if err != nil {
				t.Fatal(err)
			}
			_, m := generated(t, w)
			pinned, err := openGenerated(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			for part, both := range map[string][2]interface {
				Files() int
				Path(int) string
				Size(int) int64
				SampleBytes(int) int64
			}{"train": {train, pinned}, "valid": {train.Evaluation(), pinned.Evaluation()}} {
				before, after := both[0], both[1]
				if before.Files() != after.Files() {
					t.Fatalf("%s: %d and %d files", part, before.Files(), after.Files())
				}
				for i := range before.Files() {
					if before.Path(i) != after.Path(i) || before.Size(i) != after.Size(i) || before.SampleBytes(i) != after.SampleBytes(i) {
						t.Errorf("%s: file %d is %s of %d bytes, then %s of %d", part, i, before.Path(i), before.Size(i), after.Path(i), after.Size(i))
					}
				}
			}
		})
	}
}

// TestEstimatedPlan: a data set that is too large to be made for its plan is estimated, and the plan says so.
func TestEstimatedPlan(t *testing.T) {
	w := described(t, "format: csv, record_length_bytes: 4000000")
	files, err := filesOf(w)
	if err != nil {
		t.Fatal(err)
	}
	if files.exact() {
		t.Fatal("44 MB of numbers are made for a plan")
	}
	// 3.57 bytes a number on average, as DLIO's.
	if n := float64(files.Size(3)); n < 3.5*4e6 || n > 3.6*4e6 {
		t.Errorf("a file is estimated at %.0f bytes", n)
	}
	plan, err := Plan(t.Context(), w, "")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(plan.Notes, func(n string) bool { return strings.Contains(n, "estimated") }) {
		t.Errorf("the plan does not say that bytes are estimated: %q", plan.Notes)
	}
}

// TestChooseFiles: what is generated again follows from the root, stays within its bounds, and is the whole of a small data set.
func TestChooseFiles(t *testing.T) {
	recipe := func(dataset string) datagen.Recipe {
		r, err := datagen.FromWorkload(described(t, dataset))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for dataset, want := range map[string][2]int{ // least and most files
		"format: tfrecord, record_length_bytes: 400":                                   {32, 32},
		"format: npz, num_files_generated: 1000, record_length_bytes: 1000":            {256, 256},
		"format: indexed_binary, num_files_generated: 1000, record_length_bytes: 1000": {256, 256},
		"format: npz, num_files_generated: 1000, record_length_bytes: 100000000":       {5, 5},
		"format: npy, record_length_bytes: 4000000000":                                 {1, 1},
		"format: npy, record_length_bytes: 40000000000":                                {0, 0},
		"format: indexed_binary, record_length_bytes: 40000000000":                     {32, 32}, // the companions
	} {
		r := recipe(dataset)
		one, same, other := chooseFiles([32]byte{1}, r), chooseFiles([32]byte{1}, r), chooseFiles([32]byte{2}, r)
		if n := len(one); n < want[0] || n > want[1] {
			t.Errorf("%s: %d of %d files, want %v", dataset, n, r.Entries(), want)
		}
		if !maps.Equal(one, same) {
			t.Errorf("%s: the same root chooses other files", dataset)
		}
		if len(one) > 0 && len(one) < 32 && maps.Equal(one, other) || len(one) == 256 && maps.Equal(one, other) {
			t.Errorf("%s: another root chooses the same files", dataset)
		}
		for path, i := range one {
			if r.Entry(i).Path != path {
				t.Errorf("%s: %s is not file %d", dataset, path, i)
			}
		}
	}
}
