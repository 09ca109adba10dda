package workload

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

// TestErrors: each refused workload names the place, what is allowed and what to do.
func TestErrors(t *testing.T) {
	cases := []struct {
		name, text string
		overrides  []string
		want       string
	}{
		{"enumeration", "dataset:\n  format: npx\n", nil,
			`w.yaml:2:11: dataset.format: "npx" is not one of its words; allowed: tfrecord, hdf5, csv, npz,`},
		{"nearest word", "dataset:\n  format: NPZ\n", nil, `did you mean "npz"?`},
		{"true is no shuffle", "reader: {sample_shuffle: on}", nil, `reader.sample_shuffle: "on" is not one of its words; allowed: off, seed, random`},
		{"integer", "train:\n  epochs: many\n", nil, `w.yaml:2:11: train.epochs: expected an integer, found the text "many"; allowed: 1 or more`},
		{"quoted integer", "train: {epochs: '5'}", nil, "a quoted value is a text: remove the quotes"},
		{"fraction", "train: {epochs: 2.5}", nil, "expected an integer, found the number 2.5"},
		{"range", "reader: {batch_size: 0}", nil, "w.yaml:1:22: reader.batch_size: 0 is out of range; allowed: 1 or more"},
		{"interval", "train: {seed: 4294967296}", nil, "4294967296 is out of range; allowed: 0 to 4294967295"},
		{"beyond 2^53", "dataset: {num_files_train: 9007199254740992}", nil, "out of range"},
		{"beyond 64 bits", "dataset: {num_files_train: 99999999999999999999}", nil, "out of range"},
		{"seed beyond 64 bits", "benchpin: {seed: 18446744073709551616}", nil, "benchpin.seed: the integer 18446744073709551616 is out of range"},
		{"negative seed", "benchpin: {seed: -1}", nil, "out of range; allowed: 0 to 18446744073709551615"},
		{"seed with a zero in front", "benchpin: {seed: '010'}", nil, "without zeros in front"},
		{"infinite", "metric: {au: .inf}", nil, "metric.au: .inf is out of range; allowed: 0 to 1"},
		{"not a number", "dataset: {record_length_bytes: .nan}", nil, "out of range"},
		{"percent", "metric: {au: 90}", nil, "it is a fraction: 90 % is 0.90"},
		{"boolean", "workflow: {train: 'true'}", nil, `expected a boolean, found the text "true"; allowed: true, false; a quoted value is a text`},
		{"list", "dataset: {record_dims: 5}", nil, "expected a list such as [1, 2], found the integer 5"},
		{"list element", "dataset: {record_dims: [4, x]}", nil, `w.yaml:1:28: dataset.record_dims: expected an integer, found the text "x"`},
		{"section", "dataset: npz\n", nil, `w.yaml:1:10: dataset: expected a section, found the text "npz"`},
		{"section as list", "train: [1]\n", nil, "expected a section, found a list"},
		{"text", "dataset: {data_folder: [a]}", nil, "expected a text, found a list"},
		{"control character", "dataset: {data_folder: \"a\\nb\"}", nil, "control characters"},
		{"twice", "train: {epochs: 1}\nframework: pytorch\ntrain: {epochs: 2}\n", nil, "w.yaml:3:1: train: given twice, first in line 1"},
		{"negative time", "train: {computation_time: -1}", nil, "train.computation_time: -1 is out of range; allowed: 0 to 31536000"},
		{"age", "train: {computation_time: 1e308}", nil, "train.computation_time: 1e308 is out of range; allowed: 0 to 31536000; times are seconds, at most a year"},
		{"ages", "train: {computation_time: {type: gamma, shape: 10000, scale: 10000}}", nil, "the mean, 100000000 seconds, is out of range"},
		{"a long spread", "train: {computation_time: 1, computation_time_stdev: 1e9}", nil, "computation_time_stdev: 1e9 is out of range"},
		{"a long pause", "checkpoint: {time_between_checkpoints: 1e12}", nil, "times are seconds, at most a year"},
		{"accelerators", "benchpin: {accelerators: 65537}", nil, "65537 is out of range; allowed: 1 to 65536"},
		{"time type", "train: {computation_time: {type: gauss, mean: 1}}", nil, `"gauss" is not one of its words; allowed: constant, normal,`},
		{"time parameter", "train: {computation_time: {type: gamma, shape: 2}}", nil, "the type gamma needs scale"},
		{"time text", "train: {computation_time: fast}", nil, "expected seconds or a distribution"},
		{"time order", "train: {computation_time: {type: uniform, min: 2, max: 1}}", nil, "min 2 is above max 1"},
		{"column", "dataset: {parquet: {columns: [{dtype: int8}]}}", nil, "dataset.parquet.columns[0]: a column without a name"},
		{"dims and spread", "dataset: {record_dims: [4], record_length_bytes_stdev: 5}", nil, "a spread has no meaning with record_dims"},
		{"loader", "framework: pytorch\nreader: {data_loader: tensorflow}", nil, "tensorflow does not go with the framework pytorch"},
		{"image", "dataset: {format: png, record_element_type: float32}", nil, "png images have uint8"},
		{"pipeline", "model: {num_layers: 2, parallelism: {pipeline: 4}}", nil, "4 stages for 2 layers"},
		{"zero", "model: {parallelism: {pipeline: 2, zero_stage: 3}}", nil, "ZeRO 3 does not go with pipeline parallelism"},
		{"more reads", "checkpoint: {num_checkpoints_write: 1, num_checkpoints_read: 2}", nil, "2 are to be read, but only 1 written"},
		{"ksm", "checkpoint: {ksm: {}}", nil, "write randomize_tensor: false"},
		{"custom loader", "reader: {data_loader: custom}", nil, "a custom loader needs data_loader_sampler"},
		{"defaults list", "defaults: [base]\n", nil, "Hydra's list of files to compose is not followed"},
		{"two documents", "train: {epochs: 1}\n---\ntrain: {epochs: 2}\n", nil, "a second YAML document"},
		{"empty", "# nothing\n", nil, "the file holds no workload"},
		{"a list", "- a\n", nil, "expected sections"},
		{"syntax", "train: {epochs: 1\n", nil, "not YAML"},
		{"tab", "train:\n\tepochs: 1\n", nil, "not YAML"},
		{"not UTF-8", "train: {epochs: 1} # \xff\n", nil, "w.yaml:1:22: byte 0xff is not UTF-8"},
		{"NUL", "train: \x00\n", nil, "control character 0x00"},
		{"alias", "train: *x\n", nil, "the alias *x has no anchor &x before it"},
		{"alias to itself", "train: &x {a: *x}\n", nil, "the alias *x has no anchor &x before it"},
		{"tag", "train: !!python/object:os.system {}\n", nil, "has no meaning in a workload"},
		{"cycle", "model: {name: '${framework}'}\nframework: ${model.name}\n", nil, "leads back to where it stands"},
		{"cycle of itself", "model: {name: '${model.name}'}\n", nil, "leads back to where it stands"},
		{"cycle of a section", "model: {name: a, x: '${model}'}\n", nil, "leads back to where it stands"},
		{"interpolation to nothing", "model:\n  name: ${dataset.folder}\n", nil, "w.yaml:2:9: `${dataset.folder}`: the file has no such key"},
		{"interpolation of a section", "model: {name: 'a${train}'}\ntrain: {epochs: 1}\n", nil, "is a section, which does not fit into a text"},
		{"environment", "model: {name: '${oc.env:HOME}'}\n", nil, "the resolver oc.env in"},
		{"not closed", "model: {name: '${a'}\n", nil, "`${` is not closed"},
		{"above the top", "model: {name: '${....a}'}\n", nil, "goes above the top of the file"},
		{"mandatory", "model: {name: '???'}\n", nil, "says that it must be given"},

		{"change what is not there", "train: {epochs: 1}", []string{"workload.train.seed=4"},
			`override "workload.train.seed=4": train.seed: the file has no such key; write ++workload.train.seed=... to add it`},
		{"change a misspelt key", "train: {epochs: 1}", []string{"workload.train.epoch=4"}, "did you mean train.epochs?"},
		{"add what is there", "train: {epochs: 1}", []string{"+workload.train.epochs=4"}, "the file has this key already"},
		{"remove what is not there", "train: {epochs: 1}", []string{"~workload.train.seed"}, "the file has no such key"},
		{"remove another value", "train: {epochs: 1}", []string{"~workload.train.epochs=2"}, "its value is the integer 1, not the integer 2"},
		{"no prefix", "train: {epochs: 1}", []string{"++train.epochs=2"}, "write ++workload.train.epochs=... or --set train.epochs=..."},
		{"choose a workload", "train: {epochs: 1}", []string{"workload=unet3d"}, "give its name or path as the argument"},
		{"no value", "train: {epochs: 1}", []string{"++workload.train.epochs"}, "no value"},
		{"a flag", "train: {epochs: 1}", []string{"--verbose"}, "looks like a flag"},
		{"a sweep", "train: {epochs: 1}", []string{"++workload.train.epochs=1,2"}, `column 26: a comma outside of brackets asks for a sweep`},
		{"a function", "train: {epochs: 1}", []string{"++workload.train.epochs=range(1,4)"}, "parentheses call a function"},
		{"an open quote", "train: {epochs: 1}", []string{"++workload.model.name='a"}, "column 23: the quote ' is not closed"},
		{"an open list", "train: {epochs: 1}", []string{"++workload.dataset.record_dims=[1,2"}, "expected , or ] in a list"},
		{"below a scalar", "train: {epochs: 1}", []string{"++workload.train.epochs.x=1"}, "train.epochs is the integer 1, not a section"},
		{"boolean of an override", "train: {epochs: 1}", []string{"++workload.workflow.train=no"}, "an override knows the booleans true and false only"},
		{"octal of an override", "train: {epochs: 1}", []string{"++workload.train.epochs=010"}, `column 25: train.epochs: expected an integer, found the text "010"`},
		{"twice in a section", "train: {epochs: 1}", []string{"++workload.train={a: 1, a: 2}"}, "given twice"},
		{"not UTF-8 override", "train: {epochs: 1}", []string{"++workload.model.name=\xff"}, "not UTF-8"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, err := Load(Source{Name: "w.yaml", Data: []byte(c.text)}, Options{Overrides: c.overrides})
			if err == nil {
				t.Fatalf("accepted: %s", r.Canonical)
			}
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("not an *Error: %T %v", err, err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got:  %v\nwant: ...%s...", err, c.want)
			}
			if e.Line == 0 && e.Override == "" && c.name != "empty" && c.name != "syntax" {
				t.Errorf("no place in %v", err)
			}
		})
	}
}

// TestAllErrors are told at once, in the order of the file.
func TestAllErrors(t *testing.T) {
	_, err := Load(Source{Name: "w.yaml", Data: []byte("train: {epochs: x, seed: -1}\nreader: {batch_size: 0}\n")}, Options{})
	if err == nil || strings.Count(err.Error(), "\n") != 2 || strings.Index(err.Error(), "epochs") > strings.Index(err.Error(), "batch_size") {
		t.Errorf("expected three problems in order, got: %v", err)
	}
}

// TestUnknownKeys are told with their place and the nearest known key; strict refuses them.
func TestUnknownKeys(t *testing.T) {
	text := `model: {model_size: 5}
dataset:
  record_length: 4096
  num_file_train: 8
  epochs: 3
  chunking: true
tarin: {epochs: 2}
train: {computation_time: {mean: 1, stdv: 2}}
`
	want := []string{
		"w.yaml:1:9: model.model_size: unknown key, ignored; did you mean model.model_size_bytes?",
		"w.yaml:3:3: dataset.record_length: unknown key, ignored; did you mean dataset.record_length_bytes?",
		"w.yaml:4:3: dataset.num_file_train: unknown key, ignored; did you mean dataset.num_files_train?",
		"w.yaml:5:3: dataset.epochs: unknown key, ignored; did you mean train.epochs?",
		"w.yaml:6:3: dataset.chunking: unknown key, ignored; did you mean dataset.enable_chunking?",
		"w.yaml:7:1: tarin: unknown key, ignored; did you mean train?",
		"w.yaml:8:37: train.computation_time.stdv: unknown key, ignored",
	}
	r := load(t, text, Options{})
	if len(r.Warnings) != len(want) {
		t.Fatalf("%d warnings, expected %d: %v", len(r.Warnings), len(want), r.Warnings)
	}
	for i, w := range r.Warnings {
		if w.String() != want[i] {
			t.Errorf("got:  %s\nwant: %s", w, want[i])
		}
	}
	_, err := Load(Source{Name: "w.yaml", Data: []byte(text)}, Options{Strict: true})
	if err == nil || strings.Count(err.Error(), "refused by --strict") != len(want) {
		t.Errorf("strict: %v", err)
	}
}

// TestHostile: files that are made to hurt are refused before they do.
func TestHostile(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 12; i++ {
		bomb += "b" + strconv.Itoa(i) + ": &a" + strconv.Itoa(i) + " [" + strings.Repeat("*a"+strconv.Itoa(i-1)+", ", 9) + "x]\n"
	}
	doubling := "model:\n  m0: xxxxxxxxxxxxxxxx\n"
	for i := 1; i < 64; i++ {
		doubling += "  m" + strconv.Itoa(i) + ": ${model.m" + strconv.Itoa(i-1) + "}${model.m" + strconv.Itoa(i-1) + "}\n"
	}
	lists := "l0: [x, x, x, x]\n"
	for i := 1; i < 40; i++ {
		lists += "l" + strconv.Itoa(i) + ": [\"${l" + strconv.Itoa(i-1) + "}\", \"${l" + strconv.Itoa(i-1) + "}\", \"${l" + strconv.Itoa(i-1) + "}\"]\n"
	}
	cases := map[string]struct{ text, want string }{
		"aliases":              {bomb, "aliases make more than"},
		"text that doubles":    {doubling, "bytes of text"},
		"lists that multiply":  {lists, "makes more than"},
		"flow nesting":         {"a: " + strings.Repeat("[", 60000), "levels of nesting"},
		"flow sections":        {"a: " + strings.Repeat("{a: ", 15000), "levels of nesting"},
		"sequences in a line":  {strings.Repeat("- ", 30000) + "x", "levels of nesting"},
		"indented sections":    {indented(300), "levels of nesting"},
		"explicit keys":        {strings.Repeat("? ", 30000) + "x", "levels of nesting"},
		"a large file":         {strings.Repeat("# comment\n", 7000), "a workload has at most"},
		"many returns":         {"a: |\n  " + strings.Repeat("\r", 60000), "more than 4096 lines"},
		"many lines":           {strings.Repeat("a:\n", 5000), "more than 4096 lines"},
		"many values":          {"a: [" + strings.Repeat("1,", 20000) + "1]", "more than 16384 values"},
		"nested interpolation": {"model: {name: '" + strings.Repeat("${", 5000) + strings.Repeat("}", 5000) + "'}", "inside each other"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Load(Source{Name: "w.yaml", Data: []byte(c.text)}, Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, expected ...%s...", err, c.want)
			}
		})
	}
	deep := "++workload.dataset.record_dims=" + strings.Repeat("[", 5000)
	if _, err := Load(Source{Data: []byte("a: 1")}, Options{Overrides: []string{deep}}); err == nil || !strings.Contains(err.Error(), "levels of brackets") {
		t.Errorf("deep override: %v", err)
	}
	many := ""
	for i := range 4000 {
		many += "k" + strconv.Itoa(i) + ": 1\n"
	}
	if r := load(t, many, Options{}); len(r.Warnings) != maxStrangers+1 {
		t.Errorf("%d warnings, expected %d", len(r.Warnings), maxStrangers+1)
	}
}

func indented(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}
