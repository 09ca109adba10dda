package workload

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/zeebo/blake3"

	"encoding/hex"
	"encoding/json"

	"github.com/benchpin/benchpin/schemas"
)

// TestParseCanonicalIsStrict: one byte form, and nothing else.
func TestParseCanonicalIsStrict(t *testing.T) {
	good := string(load(t, "framework: pytorch\ntrain: {computation_time: {mean: 0.3, stdev: 0.1}}\n", Options{}).Canonical)
	cases := map[string]string{
		"white space":        strings.Replace(good, ":", ": ", 1),
		"a line at the end":  good + "\n",
		"something behind":   good + "{}",
		"truncated":          good[:len(good)-1],
		"nothing":            "",
		"a missing key":      strings.Replace(good, `"accelerators":1,`, "", 1),
		"an unknown key":     strings.Replace(good, `"accelerators":1,`, `"accelerators":1,"aaa":1,`, 1),
		"a key twice":        strings.Replace(good, `"accelerators":1,`, `"accelerators":1,"accelerators":1,`, 1),
		"another order":      strings.Replace(good, `"accelerators":1,"accelerators_per_process":0`, `"accelerators_per_process":0,"accelerators":1`, 1),
		"a float":            strings.Replace(good, `"accelerators":1,`, `"accelerators":1.0,`, 1),
		"an exponent":        strings.Replace(good, `"record_length_bytes":65536`, `"record_length_bytes":6.5536e4`, 1),
		"a number seed":      strings.Replace(good, `"seed":"1"`, `"seed":1`, 1),
		"a seed with zeros":  strings.Replace(good, `"seed":"1"`, `"seed":"01"`, 1),
		"out of range":       strings.Replace(good, `"accelerators":1,`, `"accelerators":0,`, 1),
		"another word":       strings.Replace(good, `"order":"numpy"`, `"order":"random"`, 1),
		"an escape":          strings.Replace(good, `"numpy"`, `"\u006eumpy"`, 1),
		"case":               strings.Replace(good, `"accelerators"`, `"Accelerators"`, 1),
		"null":               strings.Replace(good, `"accelerators":1,`, `"accelerators":null,`, 1),
		"a section as list":  strings.Replace(good, `"thresholds":{"bytes_per_second":0,"samples_per_second":0}`, `"thresholds":[]`, 1),
		"not derived":        strings.Replace(good, `"data_loader":"pytorch"`, `"data_loader":""`, 1),
		"a slash at the end": strings.Replace(good, `"data_folder":"./data"`, `"data_folder":"./data/"`, 1),
		"constant as normal": strings.Replace(good, `"stdev":0.1,`, `"stdev":0,`, 1),
		"deep":               strings.Repeat("[", 10000),
		"not UTF-8":          strings.Replace(good, "numpy", "num\xffpy", 1),
	}
	for name, text := range cases {
		if text == good {
			t.Fatalf("%s: the case does not change anything", name)
		}
		if _, err := ParseCanonical([]byte(text)); !errors.Is(err, ErrNotCanonical) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseCanonical([]byte(good)); err != nil {
		t.Error(err)
	}
}

// TestAddedKeys: keys that came later are in the canonical form only where they say something, so that older forms stay what they
// were; and there is still one form only.
func TestAddedKeys(t *testing.T) {
	plain := load(t, "framework: pytorch\n", Options{})
	if bytes.Contains(plain.Canonical, []byte("jpeg")) {
		t.Errorf("a default of an added key is in the canonical form: %s", plain.Canonical)
	}
	if same := load(t, "framework: pytorch\ndataset: {jpeg: {sizing: exact}}\n", Options{}); same.Digest != plain.Digest {
		t.Error("a default that is written has another digest")
	}
	r := load(t, "framework: pytorch\ndataset: {jpeg: {sizing: encoded}}\n", Options{})
	if !bytes.Contains(r.Canonical, []byte(`"jpeg":{"sizing":"encoded"}`)) {
		t.Errorf("the canonical form lacks the key: %s", r.Canonical)
	}
	w, err := ParseCanonical(r.Canonical)
	if err != nil || w.Dataset.JPEG.Sizing != SizingEncoded {
		t.Errorf("read again: %v", err)
	}
	if w, err := ParseCanonical(plain.Canonical); err != nil || w.Dataset.JPEG.Sizing != SizingExact {
		t.Errorf("without the key: %v", err)
	}
	for _, jpeg := range []string{`{"sizing":"exact"}`, `{}`, `{"sizing":"none"}`} {
		bad := bytes.Replace(r.Canonical, []byte(`{"sizing":"encoded"}`), []byte(jpeg), 1)
		if _, err := ParseCanonical(bad); !errors.Is(err, ErrNotCanonical) {
			t.Errorf("jpeg %s: %v", jpeg, err)
		}
	}
	var form any
	if err := json.Unmarshal(r.Canonical, &form); err != nil {
		t.Fatal(err)
	}
	if err := compiled(t).Validate(form); err != nil {
		t.Errorf("the schema refuses it: %v", err)
	}
}

// TestDigests are BLAKE3 over the bytes as they are.
func TestDigests(t *testing.T) {
	text := "train: {epochs: 2}\n"
	r := load(t, text, Options{})
	for _, c := range []struct{ got, data string }{{r.Source.String(), text}, {r.Digest.String(), string(r.Canonical)}} {
		sum := blake3.Sum256([]byte(c.data))
		if want := "blake3:" + hex.EncodeToString(sum[:]); c.got != want {
			t.Errorf("%s, expected %s", c.got, want)
		}
	}
	if same := load(t, "# other bytes\ntrain: {epochs: 0x2}\nmetric: {au: .90}", Options{}); same.Digest != r.Digest || same.Source == r.Source {
		t.Error("two spellings of one workload must have one digest, and two of their files")
	}
}

// TestCanonicalOrder: members stand in the order of their names' bytes, everywhere.
func TestCanonicalOrder(t *testing.T) {
	data := load(t, "framework: pytorch", Options{}).Canonical
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b) // encoding/json sorts the members of maps
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSuffix(b.String(), "\n"); got != string(data) {
		t.Errorf("another encoder writes\n%s\nnot\n%s", got, data)
	}
}

// compiled is the schema as it is embedded.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	data, err := schemas.FS.ReadFile(SchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(SchemaFile, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(SchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSchema: the file is what the key table says.
func TestSchema(t *testing.T) {
	want, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "../../schemas/"+SchemaFile, want)
	embedded, err := schemas.FS.ReadFile(SchemaFile)
	if err != nil || !*update && !bytes.Equal(embedded, want) {
		t.Errorf("the embedded schema differs (%v)", err)
	}
}

// TestSchemaValidates: it accepts every canonical form and refuses what ParseCanonical refuses.
func TestSchemaValidates(t *testing.T) {
	s := compiled(t)
	validate := func(data string) error {
		dec := json.NewDecoder(strings.NewReader(data))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		return s.Validate(v)
	}
	for _, file := range []string{"dialect", "fork", "interpolation", "object", "times", "transformer"} {
		data, err := os.ReadFile("testdata/" + file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(string(data)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	good := string(load(t, "framework: pytorch\ndataset: {record_dims: [4]}\n", Options{}).Canonical)
	for _, c := range [][2]string{
		{`"accelerators":1,`, ``}, {`"accelerators":1,`, `"accelerators":1,"aaa":1,`}, {`"accelerators":1,`, `"accelerators":0,`},
		{`"accelerators":1,`, `"accelerators":"1",`}, {`"seed":"1"`, `"seed":1`}, {`"seed":"1"`, `"seed":"01"`}, {`"order":"numpy"`, `"order":"x"`},
		{`"au":0.9`, `"au":1.1`}, {`"fsync":false`, `"fsync":"no"`}, {`"record_dims":[4]`, `"record_dims":[0]`}, {`"record_dims":[4]`, `"record_dims":4`},
		{`"computation_time":{"mean":0,"type":"constant"}`, `"computation_time":{"mean":-1,"type":"constant"}`},
		{`"computation_time":{"mean":0,"type":"constant"}`, `"computation_time":{"mean":0,"type":"normal"}`},
		{`"computation_time":{"mean":0,"type":"constant"}`, `"computation_time":0`},
	} {
		bad := strings.Replace(good, c[0], c[1], 1)
		if bad == good {
			t.Fatalf("%s does not occur", c[0])
		}
		if validate(bad) == nil {
			t.Errorf("accepted: %s", c[1])
		}
		if _, err := ParseCanonical([]byte(bad)); err == nil {
			t.Errorf("ParseCanonical accepts %s", c[1])
		}
	}
}
