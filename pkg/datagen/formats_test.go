package datagen

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// containers are small data sets in every container, and with every kind of option: what stands in dataset beside the numbers of files.
func containers() map[string][]string {
	return map[string][]string{
		"npy":                 {"format: npy", "record_length_bytes: 9000", "num_samples_per_file: 3", "record_element_type: float32"},
		"npz":                 {"format: npz", "record_length_bytes: 14000", "record_length_bytes_stdev: 5000", "num_samples_per_file: 2"},
		"npz zip":             {"format: npz", "record_length_bytes: 9000", "compression: zip", "record_element_type: float32"},
		"hdf5":                {"format: hdf5", "record_length_bytes: 14000", "record_length_bytes_stdev: 5000", "num_samples_per_file: 4"},
		"hdf5 datasets":       {"format: hdf5", "record_dims: [6, 5, 7]", "record_element_type: float16", "hdf5: {num_dset_per_record: 3}"},
		"tfrecord":            {"format: tfrecord", "record_length_bytes: 3000", "record_length_bytes_stdev: 500", "num_samples_per_file: 11"},
		"indexed_binary":      {"format: indexed_binary", "record_length_bytes: 3000", "record_length_bytes_stdev: 500", "num_samples_per_file: 9"},
		"mmap_indexed_binary": {"format: mmap_indexed_binary", "record_length_bytes: 5000", "record_element_type: int32"},
		"csv":                 {"format: csv", "record_length_bytes: 5000", "num_samples_per_file: 2"},
		"csv gzip":            {"format: csv", "record_length_bytes: 5000", "num_samples_per_file: 2", "compression: gzip"},
		"jpeg":                {"format: jpeg", "record_length_bytes: 20011"},
		"jpeg drawn":          {"format: jpeg", "record_length_bytes: 40000", "record_length_bytes_stdev: 4000"},
		"jpeg encoded":        {"format: jpeg", "record_dims: [90, 120]", "jpeg: {sizing: encoded}"},
		"png":                 {"format: png", "record_length_bytes: 20011"},
		"png encoded":         {"format: png", "record_length_bytes: 20011", "jpeg: {sizing: encoded}"},
		"parquet": {"format: parquet", "num_samples_per_file: 50", "parquet: {row_group_size: 16, columns: [{name: a, dtype: float32, size: 9}, " +
			"{name: b, dtype: int8}, {name: c, dtype: float16, read: false}, {name: d, dtype: float64}]}"},
		"parquet texts": {"format: parquet", "num_samples_per_file: 40", "parquet: {row_group_size: 16, columns: [{name: id, dtype: string}, " +
			"{name: text, dtype: string, size: 30}, {name: raw, dtype: binary, size: 9}, {name: l, dtype: list, size: 4}, {name: flag, dtype: bool}]}"},
		"parquet zstd":  {"format: parquet", "num_samples_per_file: 50", "compression: zstd", "parquet: {row_group_size: 16, columns: [{name: a, size: 30}]}"},
		"parquet plain": {"format: parquet", "num_samples_per_file: 5", "record_length_bytes: 1000"},
		"raw":           {"format: raw", "record_length_bytes: 20011"},
		"synthetic":     {"format: synthetic", "record_length_bytes: 1000"},
	}
}

// packedContainers came later: their golden values stand in a file of their own.
func packedContainers() map[string][]string {
	return map[string][]string{
		"csv bz2": {"format: csv", "record_length_bytes: 5000", "num_samples_per_file: 2", "compression: bz2"},
		"csv xz":  {"format: csv", "record_length_bytes: 5000", "num_samples_per_file: 2", "compression: xz"},
	}
}

// everyContainer runs a test for each of containers, with 12 training files and 5 for validation, both in subfolders.
func everyContainer(t *testing.T, test func(t *testing.T, r Recipe)) {
	all := containers()
	maps.Copy(all, packedContainers())
	maps.Copy(all, libraryContainers())
	for name, dataset := range all {
		t.Run(name, func(t *testing.T) {
			test(t, recipe(t, 1, append(dataset, "num_files_train: 12", "num_files_eval: 5", "num_subfolders_train: 3", "num_subfolders_eval: 2")...))
		})
	}
}

func TestEveryContainerIsTested(t *testing.T) {
	have := make(map[string]bool)
	for name := range containers() {
		first, _, _ := strings.Cut(name, " ")
		have[first] = true
	}
	for _, name := range format.Names() {
		if !have[name] {
			t.Errorf("containers() has no data set in %s", name)
		}
	}
}

// TestContainersAreTheSameEverywhere: whatever the container, the data set is the same with any number of workers, after interruptions,
// and as its recipe says of every file alone.
func TestContainersAreTheSameEverywhere(t *testing.T) {
	everyContainer(t, func(t *testing.T, r Recipe) {
		dir := t.TempDir()
		path := filepath.Join(dir, "m.json")
		var last Progress
		want := generate(t, folder(t, filepath.Join(dir, "1")), r, Options{Workers: 1, Manifest: path, Progress: func(p Progress) { last = p }})
		checkPinned(t, folder(t, filepath.Join(dir, "1")), path, want)
		for _, workers := range []int{2, 7} {
			if h := generate(t, nullStore{io.Discard}, r, Options{Workers: workers}); h.Root != want.Root || h.Bytes != want.Bytes {
				t.Errorf("%d workers: root %s of %d bytes, want %s of %d", workers, h.Root, h.Bytes, want.Root, want.Bytes)
			}
		}
		if want.Count != int64(r.Entries()) || r.Entries() != r.Files()*(1+r.Companions()) || *want.Layout != *r.Layout() || want.Layout.Train != 12 {
			t.Errorf("%d entries, layout %+v; want %d, %+v", want.Count, want.Layout, r.Entries(), r.Layout())
		}
		all := int64(-1)
		if r.Exact() {
			all = r.TotalBytes()
			if all != want.Bytes {
				t.Errorf("the recipe says %d bytes, the manifest %d", all, want.Bytes)
			}
		} else if e := float64(r.TotalBytes()) / float64(want.Bytes); e < 0.9 || e > 1.1 {
			t.Errorf("%d bytes are estimated, %d were written", r.TotalBytes(), want.Bytes)
		}
		if n := int64(r.Entries()); last != (Progress{n, n, want.Bytes, all}) {
			t.Errorf("the last progress is %+v", last)
		}
		checkEntries(t, r, path)
	})
}

// checkEntries compares every entry of a manifest with what the recipe says of this file alone.
func checkEntries(t *testing.T, r Recipe, path string) {
	t.Helper()
	m, err := manifest.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	number := make(map[string]int, r.Entries())
	for i := range r.Entries() {
		number[r.Entry(i).Path] = i
	}
	if len(number) != r.Entries() {
		t.Fatalf("%d entries have %d paths", r.Entries(), len(number))
	}
	err = m.Entries(t.Context(), func(e manifest.Entry) error {
		i, ok := number[e.Path]
		if !ok {
			return fmt.Errorf("%s is not the recipe's", e.Path)
		}
		f := r.Entry(i)
		size, err := r.Measure(i)
		if err != nil {
			return err
		}
		if size != e.Size || !f.CanBe(e.Size) || !f.AtMost && f.Size != e.Size {
			t.Errorf("%s has %d bytes, the recipe says %s and measures %d", e.Path, e.Size, f.SizeText(), size)
		}
		if sum, n, err := r.Digest(t.Context(), i); err != nil || sum != e.Digest || n != e.Size {
			t.Errorf("%s: the digest of file %d alone differs (%d bytes, %v)", e.Path, i, n, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSeedsDiffer: another seed gives other data in every container, and other data in every data file.
func TestSeedsDiffer(t *testing.T) {
	for name, dataset := range containers() {
		if name == "synthetic" {
			continue // its files hold their numbers
		}
		files := []string{"num_files_train: 3"}
		a, b := recipe(t, 1, append(dataset, files...)...), recipe(t, 2, append(dataset, files...)...)
		sums := make(map[[32]byte]bool)
		for _, r := range []Recipe{a, b} {
			for i := range r.Files() {
				sum, _, err := r.Digest(t.Context(), i)
				if err != nil {
					t.Fatal(err)
				}
				sums[sum] = true
			}
		}
		if len(sums) != 6 {
			t.Errorf("%s: %d different files of 6", name, len(sums))
		}
	}
}

// TestResumeWithCompanions: with the marker, whatever state data files and companions are in, the result is the same; without it, a
// changed or foreign companion is refused.
func TestResumeWithCompanions(t *testing.T) {
	everyContainer(t, func(t *testing.T, r Recipe) {
		dir := t.TempDir()
		st := folder(t, dir)
		path := filepath.Join(t.TempDir(), "m.json")
		want := generate(t, st, r, Options{})
		last := filepath.Join(dir, r.Entry(r.Entries()-1).Path) // a companion, where there are any
		bend(t, last, 0)
		before := snapshot(t, dir)
		if _, err := Generate(t.Context(), st, r, Options{}); !errors.Is(err, ErrOccupied) || !strings.Contains(err.Error(), r.Entry(r.Entries()-1).Path) {
			t.Errorf("a changed byte gave %v", err)
		}
		if err := os.WriteFile(last+"x", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Generate(t.Context(), st, r, Options{}); !errors.Is(err, ErrOccupied) || !strings.Contains(err.Error(), filepath.Base(last)+"x") {
			t.Errorf("a foreign file gave %v", err)
		}
		if err := os.Remove(last + "x"); err != nil {
			t.Fatal(err)
		}
		if after := snapshot(t, dir); after != before {
			t.Errorf("the folder changed from\n%s\nto\n%s", before, after)
		}
		if err := os.WriteFile(filepath.Join(dir, Marker), r.JSON(), 0o644); err != nil {
			t.Fatal(err)
		}
		for k, i := range []int{0, 5, r.Files(), r.Entries() - 2} {
			name := filepath.Join(dir, r.Entry(min(i, r.Entries()-1)).Path)
			var err error
			switch k {
			case 0:
				err = os.Truncate(name, 0)
			case 1, 3:
				err = os.Remove(name)
			case 2:
				bend(t, name, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if h := generate(t, st, r, Options{Manifest: path}); h.Root != want.Root {
			t.Errorf("root %s, want %s", h.Root, want.Root)
		}
		checkPinned(t, st, path, want)
	})
}

// TestLonger: a file whose size follows from its content, and that goes on after its end, is not the recipe's.
func TestLonger(t *testing.T) {
	dir := t.TempDir()
	r := recipe(t, 1, append(containers()["csv"], "num_files_train: 3")...)
	if r.Exact() {
		t.Fatal("csv has exact sizes: take another container here")
	}
	st := folder(t, dir)
	generate(t, st, r, Options{})
	name := r.File(1).Path
	info, err := st.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("1\n"); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%s (expected %d bytes, found %d)", name, info.Size, info.Size+2)
	if _, err := Generate(t.Context(), st, r, Options{}); !errors.Is(err, ErrOccupied) || !strings.Contains(err.Error(), want) {
		t.Errorf("two bytes more gave %v, want %q", err, want)
	}
}

// TestFullDiskWithCompanions: a disk that is full between a data file and its companion leaves nothing half made.
func TestFullDiskWithCompanions(t *testing.T) {
	everyContainer(t, func(t *testing.T, r Recipe) {
		if r.Companions() == 0 {
			return
		}
		dir := t.TempDir()
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		_, err := Generate(ctx, folder(t, dir), r, Options{Workers: 1, Progress: func(p Progress) {
			if p.Files == 2 {
				cancel(why)
			}
		}})
		if !errors.Is(err, why) {
			t.Fatalf("error %v, want the cause", err)
		}
		left := 0
		err = folder(t, dir).List(t.Context(), func(i store.Info) error {
			if i.Path != Marker {
				left++
			}
			return nil
		})
		if err != nil || left < 1 || left > 3 {
			t.Errorf("%d files are left: %v", left, err)
		}
		if h := generate(t, folder(t, dir), r, Options{}); h.Root != generate(t, nullStore{io.Discard}, r, Options{}).Root {
			t.Error("a cancelled data set was completed to another root")
		}
	})
}

// TestDLIOTrees compares names, folders and sizes, companions included, with what DLIO wrote from the same section.
func TestDLIOTrees(t *testing.T) {
	for tree, c := range map[string]struct {
		dataset []string
		near    float64 // by which sizes may differ, where DLIO's depend on its random numbers
	}{
		"gen_npy":               {dataset: []string{"format: npy", "num_files_train: 12", "record_length_bytes: 16777216"}},
		"gen_npz_100k":          {dataset: []string{"format: npz", "num_files_train: 2000", "record_length_bytes: 102400", "num_subfolders_train: 4"}},
		"gen_npz_dims":          {dataset: []string{"format: npz", "num_files_train: 8", "record_dims: [64, 64, 16]", "record_element_type: float32"}},
		"gen_npz_multi":         {dataset: []string{"format: npz", "num_files_train: 16", "num_samples_per_file: 8", "record_length_bytes: 1048576"}},
		"gen_hdf5":              {dataset: []string{"format: hdf5", "num_files_train: 100", "num_samples_per_file: 4", "record_length_bytes: 1048576"}},
		"gen_idx":               {dataset: []string{"format: indexed_binary", "num_files_train: 8", "num_samples_per_file: 100", "record_length_bytes: 102400"}},
		"gen_mmapidx_1s":        {dataset: []string{"format: mmap_indexed_binary", "num_files_train: 100", "record_length_bytes: 102400"}},
		"gen_resnet50_tfrecord": {dataset: []string{"format: tfrecord", "num_files_train: 2", "num_samples_per_file: 1251", "record_length_bytes: 114660.07"}},
		"gen_synth":             {dataset: []string{"format: synthetic", "num_files_train: 2000", "record_length_bytes: 102400"}},
		"gen_csv_100k":          {[]string{"format: csv", "num_files_train: 20", "record_length_bytes: 102400"}, 0.01},
		"gen_png_100k":          {[]string{"format: png", "num_files_train: 1000", "record_length_bytes: 114660", "jpeg: {sizing: encoded}"}, 0.001},
		"gen_jpeg_100k":         {[]string{"format: jpeg", "num_files_train: 1000", "record_length_bytes: 114660", "jpeg: {sizing: encoded}"}, 0.015},
	} {
		r := recipe(t, 1, c.dataset...)
		ours := make(map[string]int)
		for i := range r.Entries() {
			ours[r.Entry(i).Path] = i
		}
		file, err := os.Open(filepath.Join("testdata/dlio", tree+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		lines := 0
		for sc := bufio.NewScanner(file); sc.Scan(); lines++ {
			var size int64
			var path string
			if _, err := fmt.Sscan(sc.Text(), &size, &path); err != nil {
				t.Fatalf("%s: line %q: %v", tree, sc.Text(), err)
			}
			i, ok := ours[path]
			if !ok {
				t.Errorf("%s: %s is not ours", tree, path)
				continue
			}
			n, err := r.Measure(i)
			if err != nil {
				t.Fatal(err)
			}
			if off := float64(n)/float64(size) - 1; n != size && (off > c.near || off < -c.near) {
				t.Errorf("%s: %s has %d bytes, DLIO wrote %d", tree, path, n, size)
			}
		}
		if lines < 4 || len(ours) < lines {
			t.Errorf("%s: %d lines compared with %d files", tree, lines, len(ours))
		}
	}
}

// TestExactImages: with exact sizing, a file has as many bytes as the record length asks for, to the byte.
func TestExactImages(t *testing.T) {
	for _, name := range []string{"jpeg", "png"} {
		for length, want := range map[string]int64{"114660.07": 114660, "20011": 20011, "65536": 65536, "322957": 322957} {
			dir := t.TempDir()
			r := recipe(t, 1, "format: "+name, "num_files_train: 2", "record_length_bytes: "+length)
			st := folder(t, dir)
			generate(t, st, r, Options{})
			for i := range r.Files() {
				info, err := st.Stat(r.File(i).Path)
				if err != nil {
					t.Fatal(err)
				}
				if info.Size != want || r.File(i).Layout.SampleBytes() != want {
					t.Errorf("%s: %d bytes on disk, a sample of %d, asked for %s", info.Path, info.Size, r.File(i).Layout.SampleBytes(), length)
				}
			}
		}
	}
}

// TestSortedEntries: Sorted gives all files once, with their numbers, in the order of their paths.
func TestSortedEntries(t *testing.T) {
	everyContainer(t, func(t *testing.T, r Recipe) {
		want := make(map[string]int)
		for i := range r.Entries() {
			want[r.Entry(i).Path] = i
		}
		var paths []string
		for i, f := range r.Sorted() {
			if n, ok := want[f.Path]; !ok || n != i {
				t.Errorf("%s has number %d, want %d", f.Path, i, n)
			}
			paths = append(paths, f.Path)
		}
		if !slices.Equal(paths, slices.Sorted(maps.Keys(want))) {
			t.Errorf("paths are\n%v", paths)
		}
		for range r.Sorted() {
			break // may be left early
		}
	})
}

// TestReadyWorkloads: every workload that comes with the program describes a data set that can be made, of the size that its mean says.
func TestReadyWorkloads(t *testing.T) {
	names, err := workload.List()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range names {
		src, err := workload.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		w, err := workload.Load(src, workload.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := w.Workload.Dataset
		if d.NumFilesTrain+d.NumFilesEval == 0 {
			continue // for data that are there already
		}
		r, err := FromWorkload(w.Workload)
		if err != nil {
			t.Errorf("%s: %v", src.Name, err)
			continue
		}
		if again, err := ParseRecipe(r.JSON()); err != nil || again.Entries() != r.Entries() {
			t.Errorf("%s: read again: %v", src.Name, err)
		}
		if f := r.File(r.Files() - 1); f.Size < 1 || r.TrainFiles() < d.NumFilesTrain {
			t.Errorf("%s: %d files, the last is %+v", src.Name, r.Files(), f)
		}
		seen++
	}
	if seen < 30 {
		t.Errorf("%d workloads were looked at", seen)
	}
}
