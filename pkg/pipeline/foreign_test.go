package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/environment"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// foreignData makes data sets by other programs, a folder each.
func foreignData(t *testing.T) string {
	t.Helper()
	need := exec.Command("/usr/bin/python3", "-c", "import numpy, h5py, PIL")
	if out, err := need.CombinedOutput(); err != nil {
		text := fmt.Sprintf("python3 with numpy, h5py and Pillow (Debian: python3-numpy python3-h5py python3-pil): %v: %s", err, out)
		if os.Getenv("CI") == "true" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	dir := t.TempDir()
	if out, err := exec.Command("/usr/bin/python3", "testdata/foreign.py", dir).CombinedOutput(); err != nil {
		t.Fatalf("foreign.py: %v\n%s", err, out)
	}
	return dir
}

const foreignYAML = `
framework: pytorch
workflow: {train: true}
dataset: {num_files_train: 0}
reader: {data_loader: pytorch, batch_size: 2, batch_size_eval: 1, read_threads: 2, file_shuffle: seed, sample_shuffle: seed}
train: {epochs: 2, computation_time: 0.001}
metric: {au: 0.0001}
`

func foreignWorkload(t *testing.T, set ...string) *workload.Resolved {
	t.Helper()
	w, err := workload.Load(workload.Source{Name: "foreign.yaml", Data: []byte(foreignYAML)}, workload.Options{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestDataOfOthersGoTheWholeWay: what numpy, h5py, Pillow and Python write is pinned, run on and verified from its archive, as what it is
// and as files of whatever content.
func TestDataOfOthersGoTheWholeWay(t *testing.T) {
	dir := foreignData(t)
	tool, err := environment.Tool("test", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		data   string
		layout *PinLayout
		set    []string
		want   string // files x samples of each, for training; format
	}{
		{data: "npz", want: "9 x 1 npz"},
		{data: "npy", want: "9 x 1 npy"},
		{data: "npy-batches", set: []string{"dataset.num_samples_per_file=5"}, want: "9 x 5 npy"},
		{data: "npz-batches", layout: &PinLayout{Format: "npz", SamplesPerFile: 5, DType: "float64"}, want: "9 x 5 npz"},
		{data: "hdf5", want: "9 x 1 hdf5"},
		{data: "hdf5", layout: &PinLayout{Format: "hdf5"}, want: "9 x 6 hdf5"},
		{data: "hdf5", layout: &PinLayout{Format: "hdf5"}, set: []string{"dataset.format=raw"}, want: "9 x 1 raw"},
		{data: "hdf5-chunked", want: "9 x 1 hdf5"},
		{data: "jpeg", set: []string{"workflow.evaluation=true"}, want: "12 x 1 jpeg"},
		{data: "jpeg", layout: &PinLayout{Format: "jpeg"}, set: []string{"benchpin.verify=after"}, want: "12 x 1 jpeg"},
		{data: "png", set: []string{"reader.data_loader=native_dali"}, want: "12 x 1 png"},
		{data: "csv", want: "8 x 1 csv"},
		{data: "csv", set: []string{"dataset.num_samples_per_file=20"}, want: "8 x 20 csv"},
		{data: "csv-gz", want: "8 x 1 csv"},
		{data: "csv-bz2", want: "8 x 1 csv"},
		{data: "csv-xz", set: []string{"dataset.num_samples_per_file=21"}, want: "8 x 21 csv"},
		{data: "tfrecord", layout: &PinLayout{Format: "tfrecord"}, set: []string{"framework=tensorflow", "reader.data_loader=tensorflow"}, want: "6 x 4 tfrecord"},
		{data: "tfrecord", layout: &PinLayout{Format: "tfrecord"}, set: []string{"reader.data_loader=native_dali"}, want: "6 x 4 tfrecord"},
		{data: "indexed", layout: &PinLayout{Format: "indexed_binary"}, want: "6 x 7 indexed_binary"},
		{data: "indexed", set: []string{"dataset.format=mmap_indexed_binary", "dataset.num_samples_per_file=7"}, want: "6 x 7 mmap_indexed_binary"},
		{data: "anything", set: []string{"dataset.format=raw", "reader.odirect=true"}, want: "9 x 1 raw"},
		{data: "anything", set: []string{"dataset.format=raw", "benchpin.verify=none", "reader.read_type=memory"}, want: "9 x 1 raw"},
		{data: "anything", set: []string{"dataset.format=raw", "++workload.dataset.num_files_train=5"}, want: "5 x 1 raw"},
		{data: "anything", set: []string{"dataset.format=raw", "benchpin.verify=inline"}, want: "9 x 1 raw"},
		{data: "hdf5", layout: &PinLayout{Format: "hdf5"}, set: []string{"benchpin.verify=inline"}, want: "9 x 6 hdf5"},
		{data: "mixed", set: []string{"dataset.format=raw"}, want: "10 x 1 raw"},
	} {
		t.Run(c.data+" "+c.want, func(t *testing.T) {
			t.Parallel()
			set := c.set
			for i, s := range set {
				set[i] = strings.TrimPrefix(s, "++workload.")
			}
			out, err := Pipeline(context.Background(), Options{Workload: foreignWorkload(t, set...), Data: filepath.Join(dir, c.data), Layout: c.layout,
				Dir: t.TempDir(), Tool: tool})
			if err != nil && !errors.Is(err, ErrThreshold) {
				t.Fatal(err)
			}
			defer out.Close()
			if err := out.Verification.Err(); err != nil {
				t.Errorf("the archive does not verify: %v", err)
			}
			r := out.Record
			if got := fmt.Sprintf("%d x %d %s", r.Plan.Files, r.Plan.SamplesPerFile, r.Dataset.Format); got != c.want {
				t.Errorf("read %s, want %s", got, c.want)
			}
			if r.Dataset.Generated || r.Dataset.Seed != "" || r.Status != record.StatusComplete || r.Transcript.Root != r.Transcript.Expected {
				t.Errorf("found %+v, status %s", r.Dataset, r.Status)
			}
			if n := r.Dataset.Verification.IdentityRechecked; (n == 0) != (r.Dataset.Verification.Mode == workload.VerifyNone) {
				t.Errorf("%d identities were compared with mode %s", n, r.Dataset.Verification.Mode)
			}
			if (r.Plan.Evaluation != nil) != strings.Contains(strings.Join(c.set, " "), "evaluation=true") {
				t.Errorf("evaluation: %+v", r.Plan.Evaluation)
			}
			if v := r.Plan.Evaluation; v != nil && v.Files != 4 {
				t.Errorf("%d files for evaluation, want 4", v.Files)
			}
		})
	}
}

// pinnedAs pins a folder of files whose names are given.
func pinnedAs(t *testing.T, layout *PinLayout, names ...string) *manifest.Manifest {
	t.Helper()
	dir := t.TempDir()
	for i, name := range names {
		path := filepath.Join(dir, "data", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Repeat("x", 10+i)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "m.json")
	if _, err := Pin(t.Context(), PinOptions{Data: filepath.Join(dir, "data"), Manifest: path, Layout: layout}); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestForData: what a workload leaves open follows from the data, and what contradicts them is told with both.
func TestForData(t *testing.T) {
	photos := []string{"a.jpg", "b.JPEG", "c.jpg", "d/e.jpeg"}
	eight := []string{"0", "1", "2", "3", "4", "5", "6", "7"}
	for _, c := range []struct {
		name   string
		names  []string
		layout *PinLayout
		yaml   string
		set    []string
		want   string // format, files for training and evaluation, samples; or a part of the error
	}{
		{"by name", photos, nil, "", nil, "jpeg 4 0 1"},
		{"by the workload", photos, nil, "dataset: {format: jpeg}", nil, "jpeg 4 0 1"},
		{"as they are", append(photos, "notes.txt"), nil, "dataset: {format: raw}", nil, "raw 5 0 1"},
		{"a flag wins", photos, nil, "dataset: {format: jpeg}", []string{"dataset.format=raw"}, "raw 4 0 1"},
		{"other format", photos, nil, "dataset: {format: png}", nil, "the workload reads png, and the files are 2 .jpeg (b.JPEG), 2 .jpg (a.jpg)"},
		{"mixed", append(photos, "notes.txt", "x"), nil, "", nil, "2 .jpeg (b.JPEG), 2 .jpg (a.jpg), 1 without extension (x), 1 .txt (notes.txt)"},
		{"mixed, what to do", append(photos, "notes.txt"), nil, "", nil, "--exclude"},
		{"unknown", eight, nil, "", nil, "--format raw"},
		{"layout", eight, &PinLayout{Format: "npy", SamplesPerFile: 3}, "", nil, "npy 8 0 3"},
		{"layout and workload", eight, &PinLayout{Format: "npy", SamplesPerFile: 3}, "dataset: {format: npz}", nil, "the data set was pinned as npy"},
		{"layout and other samples", eight, &PinLayout{Format: "npy", SamplesPerFile: 3}, "dataset: {num_samples_per_file: 2}", nil, "npy of 3 samples each, and the workload reads npy of 2 samples"},
		{"layout read raw", eight, &PinLayout{Format: "npy", SamplesPerFile: 3}, "", []string{"dataset.format=raw"}, "raw 8 0 1"},
		{"fewer by the workload", eight, nil, "dataset: {format: raw, num_files_train: 5}", nil, "the workload reads 5 files for training, and the data set has 8"},
		{"more by the workload", eight, nil, "dataset: {format: raw, num_files_train: 9}", nil, "the workload reads 9 files for training, and the data set has 8"},
		{"as many", eight, nil, "dataset: {format: raw, num_files_train: 8}", nil, "raw 8 0 1"},
		{"fewer by an override", eight, nil, "dataset: {format: raw, num_files_train: 168}", []string{"dataset.num_files_train=5"}, "raw 5 0 1"},
		{"more by an override", eight, nil, "dataset: {format: raw}", []string{"dataset.num_files_train=9"}, "the data set has 8"},
		{"parts", []string{"train/a.png", "train/b/c.png", "valid/d.png"}, nil, "workflow: {evaluation: true}", nil, "png 2 1 1"},
		{"parts without evaluation", []string{"train/a.png", "train/b/c.png", "valid/d.png"}, nil, "", nil, "png 2 0 1"},
		{"beside the parts", []string{"train/a.png", "test/b.png"}, nil, "", nil, "test/b.png"},
		{"valid alone is for training", []string{"valid/a.png", "b.png"}, nil, "", nil, "png 2 0 1"},
		{"indexes", []string{"a", "a.off.idx", "a.sz.idx", "b", "b.off.idx", "b.sz.idx"}, nil, "", nil, "indexed_binary 2 0 1"},
		{"indexes, mapped", []string{"a", "a.off.idx", "a.sz.idx"}, nil, "dataset: {format: mmap_indexed_binary}", nil, "mmap_indexed_binary 1 0 1"},
		{"a missing index", []string{"a", "a.off.idx", "a.sz.idx", "b", "b.off.idx"}, nil, "", nil, "b of format indexed_binary has no index b.off.idx, b.sz.idx"},
		{"records with indexes", []string{"train/a.tfrecord", "train/b.tfrecord", "index/train/a.tfrecord.idx", "index/train/b.tfrecord.idx"}, nil, "", nil, "tfrecord 2 0 1"},
		{"records without", []string{"train/a.tfrecord", "train/b.tfrecord"}, nil, "", nil, "tfrecord 2 0 1"},
		{"records with one index", []string{"train/a.tfrecord", "train/b.tfrecord", "index/train/a.tfrecord.idx"}, nil, "", nil, "b.tfrecord of format tfrecord has no index"},
		{"an image of two samples", photos, nil, "dataset: {num_samples_per_file: 2}", nil, "format jpeg is one sample"},
		{"synthetic", eight, nil, "", []string{"dataset.format=synthetic"}, "reads nothing"},
		{"compressed tables", []string{"a.csv.gz", "b.csv.gz"}, nil, "", nil, "csv gzip 2 0 1"},
		{"two compressions", []string{"a.csv.gz", "b.csv"}, nil, "", nil, "2 without"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := pinnedAs(t, c.layout, c.names...)
			w, err := workload.Load(workload.Source{Name: "w.yaml", Data: []byte("framework: pytorch\n" + c.yaml + "\n")}, workload.Options{Set: c.set})
			if err != nil {
				t.Fatal(err)
			}
			r, err := ForData(t.Context(), w, m)
			if err != nil {
				var bad *workload.Error
				if c.name == "two compressions" {
					if !errors.Is(err, errKinds) {
						t.Errorf("found %v", err)
					}
				} else if !strings.Contains(err.Error(), c.want) || !errors.As(err, &bad) {
					t.Errorf("found %v, want %q in a *workload.Error", err, c.want)
				}
				return
			}
			d := r.Workload.Dataset
			name := d.Format
			if d.Compression != "none" {
				name += " " + d.Compression
			}
			if got := fmt.Sprintf("%s %d %d %d", name, d.NumFilesTrain, d.NumFilesEval, d.NumSamplesPerFile); got != c.want {
				t.Errorf("found %s, want %s", got, c.want)
			}
			// The canonical form alone says it: a verifier has nothing else.
			again, err := workload.ParseCanonical(r.Canonical)
			if err != nil {
				t.Fatal(err)
			}
			files, err := openFiles(t.Context(), m, again)
			if err != nil || files.Files() != d.NumFilesTrain && !strings.Contains(c.name, "override") {
				t.Errorf("from the canonical form: %+v, %v", files, err)
			}
			// Every entry has a number of its own, which is that of entry().
			seen := map[int]bool{}
			for _, part := range []pinnedPart{files.pinnedPart, files.valid} {
				i, k := 0, 0
				for range part.all() {
					seen[part.entry(i, k)] = true
					if k++; k > len(part.companions) {
						i, k = i+1, 0
					}
				}
			}
			for k, n := range files.byEntry {
				if !seen[int(n)] {
					t.Errorf("entry %d has the number %d, which no file has", k, n)
				}
			}
			if len(seen) != len(files.byEntry) {
				t.Errorf("%d numbers for %d entries", len(seen), len(files.byEntry))
			}
			if same, err := ForData(t.Context(), r, m); err != nil || string(same.Canonical) != string(r.Canonical) {
				t.Errorf("resolved twice, it is another one: %v", err)
			}
		})
	}
}

// TestPinLayout: what each file holds is found out where the container says it, and must be one number.
func TestPinLayout(t *testing.T) {
	dir := foreignData(t)
	pin := func(data string, l PinLayout) (manifest.Header, error) {
		return Pin(t.Context(), PinOptions{Data: filepath.Join(dir, data), Manifest: filepath.Join(t.TempDir(), "m.json"), Layout: &l})
	}
	for data, want := range map[string]manifest.Layout{
		"hdf5":     {Format: "hdf5", SamplesPerFile: 6, DType: "uint8", Train: 9},
		"tfrecord": {Format: "tfrecord", SamplesPerFile: 4, DType: "uint8", Train: 6},
		"indexed":  {Format: "indexed_binary", SamplesPerFile: 7, DType: "uint8", Train: 6},
		"jpeg":     {Format: "jpeg", SamplesPerFile: 1, DType: "uint8", Train: 12, Valid: 4},
		"csv":      {Format: "csv", SamplesPerFile: 1, DType: "uint8", Train: 8},
	} {
		h, err := pin(data, PinLayout{Format: want.Format})
		if err != nil || *h.Layout != want {
			t.Errorf("%s: found %+v, %v; want %+v", data, h.Layout, err, want)
		}
	}
	for data, c := range map[string]struct {
		layout PinLayout
		want   string
	}{
		"hdf5-chunked": {PinLayout{Format: "hdf5"}, "say how many a run reads of each (--samples-per-file N)"},
		"jpeg":         {PinLayout{Format: "hdf5"}, "IMG_1.JPG: hdf5 at byte 0"},
		"mixed":        {PinLayout{Format: "png", SamplesPerFile: 2}, "one sample"},
		"npy":          {PinLayout{Format: "npx"}, "not available"},
		"npz":          {PinLayout{Format: "npz", DType: "float33"}, "float33"},
	} {
		if h, err := pin(data, c.layout); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s as %+v: %+v, %v; want %q", data, c.layout, h.Layout, err, c.want)
		}
	}
	// A layout is part of the manifest, and a manifest is never replaced.
	o := PinOptions{Data: filepath.Join(dir, "npy"), Manifest: filepath.Join(t.TempDir(), "m.json")}
	if _, err := Pin(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.Layout = &PinLayout{Format: "npy"}
	if _, err := Pin(t.Context(), o); !errors.Is(err, ErrPinned) {
		t.Errorf("another layout: %v", err)
	}
}

// TestDamagedDataOfOthers: a file that is not what it is read as is named, with the place, and with what to do.
func TestDamagedDataOfOthers(t *testing.T) {
	dir := foreignData(t)
	tool, err := environment.Tool("test", "")
	if err != nil {
		t.Fatal(err)
	}
	for data, want := range map[string]string{"npz": "npz at byte", "npy": "npy at byte", "hdf5": "hdf5 at byte 0", "png": "png at byte", "tfrecord": "tfrecord at byte",
		"csv-gz": "csv at byte"} {
		t.Run(data, func(t *testing.T) {
			folder := filepath.Join(dir, data)
			entries, err := os.ReadDir(folder)
			if err != nil {
				t.Fatal(err)
			}
			name := entries[2].Name()
			b, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			b[1] ^= 0xff
			if err := os.WriteFile(filepath.Join(folder, name), b, 0o666); err != nil {
				t.Fatal(err)
			}
			set := []string{"train.epochs=1"}
			if data == "tfrecord" {
				set = append(set, "reader.data_loader=native_dali")
			}
			out, err := Pipeline(t.Context(), Options{Workload: foreignWorkload(t, set...), Data: folder, Dir: t.TempDir(), Tool: tool})
			t.Cleanup(func() { out.Close() })
			for _, text := range []string{name, want, "--format raw"} {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("expected %q, found %v", text, err)
				}
			}
			if out.Record == nil || out.Record.Status != record.StatusIncomplete || out.Archive != "" {
				t.Errorf("the run is not marked incomplete: %+v", out.Record)
			}
		})
	}
}

// TestDataOfOthersChanged: a pinned file that is another one when the run begins is found by verification, as in a generated data set.
func TestDataOfOthersChanged(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o777); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		if err := os.WriteFile(filepath.Join(data, fmt.Sprint(i)), []byte(strings.Repeat("y", 100*i)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "m.json")
	if _, err := Pin(t.Context(), PinOptions{Data: data, Manifest: path}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "3"), []byte(strings.Repeat("z", 300)), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := Run(t.Context(), RunOptions{Workload: foreignWorkload(t, "dataset.format=raw"), Data: data, Manifest: path, Out: filepath.Join(dir, "run")})
	var mismatch *manifest.MismatchError
	if !errors.As(err, &mismatch) || mismatch.Path != "3" {
		t.Errorf("found %v", err)
	}
}
