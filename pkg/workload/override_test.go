package workload

import (
	"bytes"
	"strings"
	"testing"
)

// TestOverrides: Hydra's grammar, each form against the workload it must give.
func TestOverrides(t *testing.T) {
	base := `
model: {name: m, type: cnn}
framework: pytorch
dataset: {format: npz, data_folder: d, record_dims: [2, 2]}
reader: {batch_size: 4}
train: {epochs: 5, computation_time: {mean: 1, stdev: 0.5}}
checkpoint:
`
	cases := []struct {
		name      string
		overrides []string
		ok        func(w *Workload) bool
	}{
		{"change", []string{"workload.train.epochs=2"}, func(w *Workload) bool { return w.Train.Epochs == 2 }},
		{"add", []string{"+workload.train.seed=7"}, func(w *Workload) bool { return w.Train.Seed == 7 }},
		{"force, there", []string{"++workload.train.epochs=2"}, func(w *Workload) bool { return w.Train.Epochs == 2 }},
		{"force, not there", []string{"++workload.metric.au=0.5"}, func(w *Workload) bool { return w.Metric.AU == 0.5 }},
		{"force into an empty section", []string{"++workload.checkpoint.fsync=true"}, func(w *Workload) bool { return w.Checkpoint.Fsync }},
		{"remove", []string{"~workload.reader.batch_size"}, func(w *Workload) bool { return w.Reader.BatchSize == 1 }},
		{"remove with its value", []string{"~workload.reader.batch_size=4"}, func(w *Workload) bool { return w.Reader.BatchSize == 1 }},
		{"remove a section", []string{"~workload.dataset"}, func(w *Workload) bool { return w.Dataset.Format == "tfrecord" && len(w.Dataset.RecordDims) == 0 }},
		{"the last wins", []string{"++workload.train.epochs=2", "++workload.train.epochs=3"}, func(w *Workload) bool { return w.Train.Epochs == 3 }},
		{"null is the default", []string{"++workload.reader.batch_size=null"}, func(w *Workload) bool { return w.Reader.BatchSize == 1 }},
		{"empty is a text", []string{"++workload.model.type="}, func(w *Workload) bool { return w.Model.Type == "" }},
		{"list", []string{"workload.dataset.record_dims=[4, 6,8]"}, func(w *Workload) bool {
			return len(w.Dataset.RecordDims) == 3 && w.Dataset.RecordDims[2] == 8
		}},
		{"empty list", []string{"workload.dataset.record_dims=[]"}, func(w *Workload) bool { return len(w.Dataset.RecordDims) == 0 }},
		{"section is merged", []string{"++workload.reader={read_threads: 3, prefetch_size: 0}"}, func(w *Workload) bool {
			return w.Reader.BatchSize == 4 && w.Reader.ReadThreads == 3 && w.Reader.PrefetchSize == 0
		}},
		{"section in a time", []string{"++workload.train.computation_time.stdev=0.25"}, func(w *Workload) bool {
			return w.Train.ComputationTime == Time{Type: TimeNormal, Center: 1, Stdev: 0.25}
		}},
		{"time", []string{"++workload.train.computation_time={type:uniform,min:0.1,max:0.2}", "~workload.train.computation_time.mean",
			"~workload.train.computation_time.stdev"}, func(w *Workload) bool {
			return w.Train.ComputationTime == Time{Type: TimeUniform, Min: 0.1, Max: 0.2}
		}},
		{"time as a number", []string{"++workload.train.computation_time=0.323"}, func(w *Workload) bool {
			return w.Train.ComputationTime == Time{Type: TimeConstant, Center: 0.323}
		}},
		{"double quotes", []string{`++workload.dataset.data_folder="a, b=[c] {d} 'e'"`}, folder("a, b=[c] {d} 'e'")},
		{"single quotes", []string{`++workload.dataset.data_folder='it\'s'`}, folder("it's")},
		{"a backslash that stays", []string{`++workload.dataset.data_folder='a\b'`}, folder(`a\b`)},
		{"backslashes before the quote", []string{`++workload.dataset.data_folder='a\\'`}, folder(`a\`)},
		{"an escaped comma", []string{`++workload.dataset.data_folder=a\,b\ `}, folder("a,b ")},
		{"an equals sign", []string{"++workload.dataset.data_folder=/mnt/a=b=c"}, folder("/mnt/a=b=c")},
		{"an address", []string{"++workload.dataset.data_folder=s3://bucket/a-b.c"}, folder("s3://bucket/a-b.c")},
		{"spaces around", []string{"++workload.dataset.data_folder=  a b  "}, folder("a b")},
		{"a number as text", []string{"++workload.dataset.data_folder=010"}, folder("010")},
		{"interpolation", []string{"++workload.dataset.data_folder=data/${workload.model.name}_${reader.batch_size}"}, folder("data/m_4")},
		{"interpolation of an override", []string{"++workload.model.name=x", "++workload.dataset.data_folder='${model.name}'"}, folder("x")},
		{"off is a word", []string{"++workload.reader.file_shuffle=off"}, func(w *Workload) bool { return w.Reader.FileShuffle == ShuffleOff }},
		{"False is off", []string{"++workload.reader.file_shuffle=False"}, func(w *Workload) bool { return w.Reader.FileShuffle == ShuffleOff }},
		{"underscores", []string{"++workload.model.model_size_bytes=1_000_000"}, func(w *Workload) bool { return w.Model.ModelSizeBytes == 1000000 }},
		{"integer as a float", []string{"++workload.model.model_size_bytes=1e6"}, func(w *Workload) bool { return w.Model.ModelSizeBytes == 1000000 }},
		{"64-bit seed", []string{"++workload.benchpin.seed=18446744073709551615"}, func(w *Workload) bool { return w.Benchpin.Seed == 1<<64-1 }},
		{"path style as text", []string{"++workload.storage.storage_options.s3_force_path_style='true'"}, func(w *Workload) bool {
			return w.Storage.StorageOptions.S3ForcePathStyle
		}},
		{"data_reader is reader", []string{"workload.data_reader.batch_size=9"}, func(w *Workload) bool { return w.Reader.BatchSize == 9 }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, err := Load(Source{Name: "w.yaml", Data: []byte(base)}, Options{Overrides: c.overrides, Strict: true})
			if err != nil {
				t.Fatal(err)
			}
			if !c.ok(r.Workload) {
				t.Errorf("%v gives %s", c.overrides, r.Canonical)
			}
			if got := strings.Join(r.Overrides, "\n"); got != strings.Join(c.overrides, "\n") {
				t.Errorf("recorded %q", got)
			}
			roundTrip(t, r)
		})
	}
}

func folder(want string) func(*Workload) bool {
	return func(w *Workload) bool { return w.Dataset.DataFolder == want }
}

// TestSet: --set a.b=v is ++workload.a.b=v, after the overrides.
func TestSet(t *testing.T) {
	text := "train: {epochs: 1}\n"
	a := load(t, text, Options{Overrides: []string{"++workload.train.epochs=2"}, Set: []string{"train.epochs=3", "reader.batch_size=5"}})
	b := load(t, text, Options{Overrides: a.Overrides})
	if a.Workload.Train.Epochs != 3 || a.Workload.Reader.BatchSize != 5 || !bytes.Equal(a.Canonical, b.Canonical) {
		t.Errorf("epochs %d, batch size %d; %v gives %s", a.Workload.Train.Epochs, a.Workload.Reader.BatchSize, a.Overrides, b.Canonical)
	}
	if a.Source != b.Source || a.Digest != b.Digest {
		t.Error("the digests differ")
	}
	if c := load(t, text, Options{}); c.Source != a.Source || c.Digest == a.Digest {
		t.Error("an override must change the digest of the workload, and not that of the file")
	}
}

// TestHydraSettings have no effect, and say so.
func TestHydraSettings(t *testing.T) {
	r := load(t, "train: {epochs: 1}", Options{Overrides: []string{"hydra.run.dir=out", "++hydra.output_subdir=x"}})
	if len(r.Warnings) != 2 || !strings.Contains(r.Warnings[0].String(), "ignored") {
		t.Errorf("warnings %v", r.Warnings)
	}
}
