package workload

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// needPeer skips a test whose peer is not installed, and fails it where everything must be.
func needPeer(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is needed here: %v", what, err)
	}
	t.Skipf("%s is not installed: %v", what, err)
}

// TestScalars holds the types and values of plain scalars in YAML 1.1.
func TestScalars(t *testing.T) {
	cases := map[string]any{
		"off": false, "OFF": false, "No": false, "on": true, "yes": true, "True": true, "y": "y", "oFF": "oFF",
		"": nil, "~": nil, "Null": nil, "nil": "nil", "None": "None",
		"010": 8, "0o10": "0o10", "08": "08", "0": 0, "-0": 0, "+7": 7, "-0b101": -5, "0x1_F": 31, "0x": "0x", "0b_": "0b_", "0_7": 7, "1__0": 10,
		"514_983_574": 514983574, "_1": "_1", "12:30": 750, "1:0:1": 3601, "12:60": "12:60", "01:30": "01:30", "-1:30": -90,
		"1e-3": 0.001, "1e3": 1000.0, "1E+2": 100.0, ".5": 0.5, "1.": 1.0, "-1.5": -1.5, "1_0.2_5": 10.25, "1.e2": 100.0, ".": ".", "1.5.2": "1.5.2",
		"1:30.5": 90.5, ".inf": math.Inf(1), "-.INF": math.Inf(-1), "1e400": math.Inf(1),
		"2001-12-14": "2001-12-14", "1 2": "1 2", "s3://b": "s3://b", "=": "=", "0.1.": "0.1.", "e3": "e3",
	}
	d := newDialect()
	for raw, want := range cases {
		if got := value(d.yaml(raw, Position{})); got != normal(want) {
			t.Errorf("%q is %#v, expected %#v", raw, got, want)
		}
	}
	if n := d.yaml(".NaN", Position{}); n.kind != floatKind || !math.IsNaN(n.float) {
		t.Errorf(".NaN is %v", n.describe())
	}
}

// TestHydraScalars holds the types of unquoted values in overrides.
func TestHydraScalars(t *testing.T) {
	cases := map[string]any{
		"true": true, "FALSE": false, "off": "off", "yes": "yes", "null": nil, "NULL": nil, "~": "~",
		"010": "010", "0x10": "0x10", "10_000": 10000, "1__0": "1__0", "-5": -5, "+5": 5, "0": 0,
		"1e-3": 0.001, ".5": 0.5, "1.": 1.0, "1_0.5": 10.5, "00.5": "00.5", "inf": math.Inf(1), "-INF": math.Inf(-1), "12:30": "12:30", "1.2.3": "1.2.3", "e5": "e5",
	}
	d := newDialect()
	for raw, want := range cases {
		if got := value(d.hydra(raw, Position{})); got != normal(want) {
			t.Errorf("%q is %#v, expected %#v", raw, got, want)
		}
	}
}

func value(n *node) any {
	switch n.kind {
	case nullKind:
		return nil
	case boolKind:
		return n.truth
	case intKind:
		return n.whole.String()
	case floatKind:
		return n.float
	}
	return "text " + n.raw
}

func normal(v any) any {
	switch v := v.(type) {
	case int:
		return strconv.Itoa(v)
	case string:
		return "text " + v
	}
	return v
}

// peerScalars types scalars with PyYAML, changed as OmegaConf changes it: its own pattern for floats, and no dates.
const peerScalars = `
import json, re, sys, yaml
class L(yaml.SafeLoader): pass
L.yaml_implicit_resolvers = {k: [(t, r) for t, r in v if t not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:float",
    "tag:yaml.org,2002:merge", "tag:yaml.org,2002:value")] for k, v in yaml.SafeLoader.yaml_implicit_resolvers.items()}
L.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"""^(?:
 [-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+]?[0-9]+)?
|[-+]?(?:[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)
|\.[0-9_]+(?:[eE][-+][0-9]+)?
|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*
|[-+]?\.(?:inf|Inf|INF)
|\.(?:nan|NaN|NAN))$""", re.X), list("-+0123456789."))
for line in sys.stdin:
    raw = json.loads(line)
    loader = L("")
    node = yaml.ScalarNode(loader.resolve(yaml.ScalarNode, raw, (True, False)), raw)
    try:
        v = loader.construct_document(node)
    except ValueError:
        v = raw
    if v is None or isinstance(v, bool): out = json.dumps(v)
    elif isinstance(v, int): out = "int " + str(v)
    elif isinstance(v, float): out = "float " + v.hex()
    else: out = "text"
    print(out)
`

// TestScalarsAsPyYAML compares the types and values of thousands of scalars with PyYAML's.
func TestScalarsAsPyYAML(t *testing.T) {
	python, err := exec.LookPath("python3")
	needPeer(t, "python3", err)
	needPeer(t, "PyYAML (python3-yaml)", exec.Command(python, "-c", "import yaml").Run())
	gen := rapid.OneOf(
		rapid.StringMatching(`[-+]?[0-9_.:]{1,8}([eE][-+]?[0-9]{1,2})?`),
		rapid.StringMatching(`[-+]?0[box]?[0-9a-f_]{0,6}`),
		rapid.StringMatching(`[-+]?[0-9]{1,2}(:[0-5]?[0-9]){1,3}(\.[0-9]{0,2})?`),
		rapid.StringMatching(`[-+]?\.(inf|Inf|nan|NaN|[0-9_]{1,3})`),
		rapid.SampledFrom([]string{"yes", "no", "on", "off", "true", "false", "Yes", "OFF", "yEs", "null", "~", "Null", "None", ""}),
	)
	var raws []string
	var in strings.Builder
	for i := range 4000 {
		raw := gen.Example(i)
		raws = append(raws, raw)
		line, err := json.Marshal(raw)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(line, '\n'))
	}
	cmd := exec.Command(python, "-c", peerScalars)
	cmd.Stdin, cmd.Stderr = strings.NewReader(in.String()), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(raws) {
		t.Fatalf("%d answers for %d scalars", len(lines), len(raws))
	}
	d, seen := newDialect(), map[string]int{}
	for i, raw := range raws {
		n := d.yaml(raw, Position{})
		kind, _, _ := strings.Cut(lines[i], " ")
		seen[kind]++
		ok := false
		switch kind {
		case "null":
			ok = n.kind == nullKind
		case "true", "false":
			ok = n.kind == boolKind && n.truth == (kind == "true")
		case "int":
			ok = n.kind == intKind && "int "+n.whole.String() == lines[i]
		case "float":
			text := strings.TrimPrefix(lines[i], "float ")
			want, err := strconv.ParseFloat(text, 64)
			ok = n.kind == floatKind && (err == nil && n.float == want || text == "nan" && math.IsNaN(n.float))
		default:
			ok = n.kind == textKind
		}
		if !ok {
			t.Errorf("%q is %s here and %s in PyYAML", raw, n.describe(), lines[i])
		}
	}
	for _, kind := range []string{"null", "true", "false", "int", "float", "text"} {
		if seen[kind] < 10 {
			t.Errorf("only %d scalars are %s: the comparison is too narrow", seen[kind], kind)
		}
	}
}

// TestFormatFloat: the canonical form of numbers is ECMAScript's.
func TestFormatFloat(t *testing.T) {
	for want, f := range map[string]float64{
		"0": math.Copysign(0, -1), "1": 1, "0.000001": 1e-6, "1e-7": 1e-7, "1.5e-10": 1.5e-10, "100000000000000000000": 1e20, "1e+21": 1e21,
		"114660.07": 114660.07, "1.7976931348623157e+308": math.MaxFloat64, "-0.3": -0.3,
	} {
		if got := formatFloat(f); got != want {
			t.Errorf("formatFloat(%v) = %s, expected %s", f, got, want)
		}
	}
}
