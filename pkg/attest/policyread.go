package attest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/yamltokens"
	"github.com/benchpin/benchpin/schemas"
)

// PolicyName is the value of the key "policy" of every policy document.
const PolicyName = "benchpin.policy/v1"

// PolicySchemaFile is the name of the JSON schema of policy documents in package schemas.
const PolicySchemaFile = "policy-v1.schema.json"

// ErrPolicy is what a policy document that cannot be used is, for errors.Is. It is an error of usage: nothing was verified.
var ErrPolicy = errors.New("the policy cannot be used")

// policyDocument is a policy as it is written.
type policyDocument struct {
	Policy string      `json:"policy"`
	Keys   []policyKey `json:"keys"`
	// Identities, TrustedRoot and TimestampRoots say whom to trust beside keys.
	Identities     []Identity           `json:"identities"`
	TrustedRoot    policyTrustedRoot    `json:"trusted_root"`
	TimestampRoots policyTimestampRoots `json:"timestamp_roots"`
	// Signers, Predicates and the rest are the fields of Policy.
	Signers    int      `json:"signers"`
	Predicates []string `json:"predicates"`
	Data       struct {
		Roots        []string          `json:"roots"`
		Verification VerificationLevel `json:"verification"`
	} `json:"data"`
	Figures          map[string]Bounds `json:"figures"`
	Preregistered    bool              `json:"preregistered"`
	RegisteredBefore bool              `json:"preregistered_before"`
	TrustedTime      bool              `json:"trusted_time"`
	ThresholdsMet    bool              `json:"thresholds_met"`
	RuleEditions     []string          `json:"rule_editions"`
	MaximumAge       string            `json:"maximum_age"`
	AgeFrom          AgeFrom           `json:"age_from"`
	NotBefore        []policyValue     `json:"not_before"`
	AllowUnavailable bool              `json:"allow_unavailable"`
	Tool             ToolPolicy        `json:"tool"`
	Workload         WorkloadPolicy    `json:"workload"`
}

type policyValue struct {
	Value string `json:"value"`
	Time  string `json:"time"`
}

type policyKey struct {
	File string `json:"file"`
	PEM  string `json:"pem"`
	Hint string `json:"hint"`
}

// LoadPolicy reads a policy document. Key files that it names are found from its folder.
func LoadPolicy(path string) (*PolicyDocument, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limits.PolicyBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	return ParsePolicy(path, data)
}

// ParsePolicy reads a policy document, YAML 1.2. path is its name in messages, and key files are found from its folder. Everything that the
// schema does not know is refused, with its line and column, and so are anchors, tags and keys that are there twice: a demand that is
// misspelt must not be a demand that is not made. Every error wraps ErrPolicy; all of a document are reported.
func ParsePolicy(path string, data []byte) (*PolicyDocument, error) {
	r := &policyReader{name: path, at: map[string]position{}}
	tree, err := r.parse(data)
	if err != nil {
		return nil, err
	}
	if err := r.validate(tree); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return nil, r.fail("", "%s", err)
	}
	var d policyDocument
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) { // what the schema takes for a whole number, such as 2.0
			return nil, r.fail("/"+strings.ReplaceAll(wrong.Field, ".", "/"), "%s: expected a whole number without a point, found %s", wrong.Field, wrong.Value)
		}
		return nil, r.fail("", "%s", err)
	}
	return r.document(d)
}

// position counts from 1.
type position struct{ line, column int }

// policyReader turns YAML into a tree as encoding/json would make it, and remembers where each value stood, by JSON pointer.
type policyReader struct {
	name   string
	at     map[string]position
	values int
}

func (r *policyReader) fail(pointer, format string, args ...any) error {
	return r.failAt(r.at[pointer], format, args...)
}

func (r *policyReader) failAt(p position, format string, args ...any) error {
	where := r.name
	if p.line > 0 {
		where += fmt.Sprintf(":%d:%d", p.line, p.column)
	}
	return fmt.Errorf("%s: %w: %s", fault.Printable(where), ErrPolicy, fault.Printable(fmt.Sprintf(format, args...)))
}

func positionOf(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{}
	}
	return position{t.Position.Line, max(t.Position.Column, 1)}
}

func (r *policyReader) parse(data []byte) (tree any, err error) {
	// The parser is a library that was made for files of friends; a policy may be somebody else's.
	defer func() {
		if p := recover(); p != nil {
			tree, err = nil, r.fail("", "the YAML reader gave up: %v", p)
		}
	}()
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	switch {
	case len(data) > limits.PolicyBytes:
		return nil, r.fail("", "it has %d bytes, at most %d are read", len(data), limits.PolicyBytes)
	case !utf8.Valid(data):
		return nil, r.fail("", "it is not UTF-8")
	}
	tokens := lexer.Tokenize(string(data))
	// The parser calls itself for each level.
	if t := yamltokens.TooDeep(tokens, limits.PolicyDepth); t != nil {
		return nil, r.failAt(positionOf(t), "more than %d levels of nesting", limits.PolicyDepth)
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var e yaml.Error
		if errors.As(err, &e) {
			return nil, r.failAt(positionOf(e.GetToken()), "not YAML: %s", e.GetMessage())
		}
		return nil, r.fail("", "not YAML: %s", shorten(err.Error()))
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			return nil, r.failAt(positionOf(doc.Body.GetToken()), "a second YAML document; a policy is one")
		}
		body = doc.Body
	}
	if body == nil {
		return nil, r.fail("", "it is empty; a policy that demands nothing has at least the line \"policy: %s\"", PolicyName)
	}
	return r.value("", body)
}

// jsonNumber is what a number may look like: YAML has other forms, which readers take for different numbers.
var jsonNumber = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$`)

func (r *policyReader) value(pointer string, n ast.Node) (any, error) {
	here := positionOf(n.GetToken())
	r.at[pointer] = here
	if r.values++; r.values > limits.PolicyValues {
		return nil, r.failAt(here, "more than %d values", limits.PolicyValues)
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		if len(n.Values) == 1 && !n.IsFlowStyle {
			if text, ok := plainWithColon(n.Values[0]); ok {
				return text, nil
			}
		}
		return r.section(pointer, n.Values)
	case *ast.MappingValueNode:
		if text, ok := plainWithColon(n); ok {
			return text, nil
		}
		return r.section(pointer, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		out := []any{}
		for i, item := range n.Values {
			v, err := r.value(pointer+"/"+strconv.Itoa(i), item)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.StringNode:
		return n.Value, nil
	case *ast.BoolNode:
		return n.Value, nil
	case *ast.IntegerNode, *ast.FloatNode:
		text := n.GetToken().Value
		if !jsonNumber.MatchString(text) {
			return nil, r.failAt(here, "%q: write the number in decimal, without signs and zeros before it", shorten(text))
		}
		return json.Number(text), nil
	case *ast.NullNode:
		return nil, r.failAt(here, "a key without a value demands nothing; remove it, or say what it demands")
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		return nil, r.failAt(here, "anchors, aliases and tags have no place in a policy; write the value out")
	}
	return nil, r.failAt(here, "found %s where a value was expected", n.Type())
}

// plainWithColon undoes a fault of the parser: within [] it takes the text blake3:00 for a key and a value, where YAML has a colon in a plain
// text, because no space follows it.
func plainWithColon(n *ast.MappingValueNode) (string, bool) {
	key, value := n.Key.GetToken(), n.Value.GetToken()
	if key == nil || value == nil || key.Type != token.StringType || key.Position.Line != value.Position.Line ||
		value.Position.Column != key.Position.Column+len(key.Value)+1 {
		return "", false
	}
	switch n.Value.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode:
	default:
		return "", false
	}
	if value.Type == token.SingleQuoteType || value.Type == token.DoubleQuoteType {
		return "", false
	}
	return key.Value + ":" + value.Value, true
}

func (r *policyReader) section(pointer string, values []*ast.MappingValueNode) (any, error) {
	out := map[string]any{}
	for i, v := range values {
		here := positionOf(v.Key.GetToken())
		if i == 0 {
			r.at[pointer] = here
		}
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			return nil, r.failAt(here, "a key must be a plain name")
		}
		if _, twice := out[key.Value]; twice {
			return nil, r.failAt(here, "the key %q is given twice", shorten(key.Value))
		}
		if key.Value == "" || strings.ContainsAny(key.Value, "/~'") {
			return nil, r.failAt(here, "the key %q has no meaning in a policy", shorten(key.Value))
		}
		child := pointer + "/" + key.Value
		value, err := r.value(child, v.Value)
		if err != nil {
			return nil, err
		}
		r.at[child] = here
		out[key.Value] = value
	}
	return out, nil
}

// validate holds the tree to the schema and reports everything that differs, in the order of the file.
func (r *policyReader) validate(tree any) error {
	text, err := schemas.FS.ReadFile(PolicySchemaFile)
	if err != nil {
		return fmt.Errorf("read the schema of policies: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.LoadURL = func(url string) (io.ReadCloser, error) {
		return nil, fmt.Errorf("schema refers to %s, but schemas are never fetched", url)
	}
	if err := compiler.AddResource(PolicySchemaFile, bytes.NewReader(text)); err != nil {
		return fmt.Errorf("read the schema of policies: %w", err)
	}
	schema, err := compiler.Compile(PolicySchemaFile)
	if err != nil {
		return fmt.Errorf("read the schema of policies: %w", err)
	}
	var invalid *jsonschema.ValidationError
	if err := schema.Validate(tree); !errors.As(err, &invalid) {
		return err
	}
	type problem struct {
		at  position
		err error
	}
	var all []problem
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if strings.HasSuffix(e.KeywordLocation, "/oneOf") {
			pointer := e.InstanceLocation
			all = append(all, problem{r.at[pointer], r.fail(pointer, "%s: %s", strings.TrimPrefix(pointer, "/"), oneOfEach)})
			return
		}
		for _, c := range e.Causes {
			walk(c)
		}
		if len(e.Causes) > 0 {
			return
		}
		pointer := e.InstanceLocation
		if strings.HasPrefix(e.Message, "additionalProperties") {
			for _, name := range quoted.FindAllStringSubmatch(e.Message, -1) {
				key := pointer + "/" + name[1]
				all = append(all, problem{r.at[key], r.fail(key, "the key %q does not exist here", shorten(strings.TrimPrefix(key, "/")))})
			}
			return
		}
		what := "the document"
		if pointer != "" {
			what = shorten(strings.TrimPrefix(pointer, "/"))
		}
		all = append(all, problem{r.at[pointer], r.fail(pointer, "%s: %s", what, shorten(e.Message))})
	}
	walk(invalid)
	slices.SortStableFunc(all, func(a, b problem) int {
		if a.at.line != b.at.line {
			return a.at.line - b.at.line
		}
		return a.at.column - b.at.column
	})
	errs := make([]error, len(all))
	for i, p := range all {
		errs[i] = p.err
	}
	return errors.Join(errs...)
}

// oneOfEach is what every oneOf of the schema demands.
const oneOfEach = "expected san or san_pattern, and issuer or issuer_pattern: one of each, exactly or as a pattern"

// quoted finds the names in the validator's message; no key of a tree has a quote in it.
var quoted = regexp.MustCompile(`'([^']+)'`)

// document turns what was written into a policy, and loads its keys.
func (r *policyReader) document(d policyDocument) (*PolicyDocument, error) {
	out := &PolicyDocument{Policy: Policy{
		AllowUnverified: d.Data.Verification == VerifiedNone, RequireThresholds: d.ThresholdsMet, AllowUnavailable: d.AllowUnavailable,
		Signers: d.Signers, Predicates: d.Predicates, DataRoots: d.Data.Roots, Verification: d.Data.Verification, Figures: d.Figures,
		Preregistered: d.Preregistered, PreregisteredBefore: d.RegisteredBefore, RequireTime: d.TrustedTime, RuleEditions: d.RuleEditions, AgeFrom: d.AgeFrom, Tool: d.Tool, Workload: d.Workload,
	}}
	var errs []error
	if d.MaximumAge != "" {
		age, err := ParseAge(d.MaximumAge)
		if err != nil {
			errs = append(errs, r.fail("/maximum_age", "%s", err))
		}
		out.MaximumAge = age
	}
	for i, k := range d.NotBefore {
		at, err := time.Parse(time.RFC3339Nano, k.Time)
		if err != nil {
			errs = append(errs, r.fail(fmt.Sprintf("/not_before/%d/time", i), "%q: expected a time such as 2026-11-30T12:00:00Z", shorten(k.Time)))
		}
		out.NotBefore = append(out.NotBefore, KnownValue{k.Value, at})
	}
	if d.AgeFrom != "" && d.MaximumAge == "" {
		errs = append(errs, r.fail("/age_from", "it says from when age is counted, and maximum_age is not there"))
	}
	if d.Tool.Minimum != "" && canonicalVersion(d.Tool.Minimum) == "" {
		errs = append(errs, r.fail("/tool/minimum", "%q is no semantic version, such as v1.2.3", d.Tool.Minimum))
	}
	for _, name := range sortedKeys(d.Figures) {
		if b := d.Figures[name]; b.Minimum != nil && b.Maximum != nil && *b.Minimum > *b.Maximum {
			errs = append(errs, r.fail("/figures/"+name, "the minimum is greater than the maximum: nothing would pass"))
		}
	}
	for i, k := range d.Keys {
		if err := out.addKey(k, filepath.Dir(r.name)); err != nil {
			errs = append(errs, r.fail("/keys/"+strconv.Itoa(i), "%s", err))
		}
	}
	trusted, bad := r.trusted(d)
	out.Trusted = trusted
	if len(trusted.Identities) > 0 && out.Hints == nil {
		out.Hints = []string{} // it says who is accepted: nobody by a key
	}
	return out, errors.Join(append(errs, bad...)...)
}

func (d *PolicyDocument) addKey(k policyKey, folder string) error {
	hint := k.Hint
	if k.File != "" || k.PEM != "" {
		var (
			key PublicKey
			err error
		)
		if k.File != "" {
			path := k.File
			if !filepath.IsAbs(path) {
				path = filepath.Join(folder, path)
			}
			key, err = LoadPublic(path)
		} else {
			key, err = ParsePublic([]byte(k.PEM))
		}
		if err != nil {
			return err
		}
		if hint != "" && hint != key.Hint() {
			return fmt.Errorf("the key has the hint %s, expected %s", key.Hint(), hint)
		}
		hint = key.Hint()
		d.Keys = append(d.Keys, key)
	}
	if slices.Contains(d.Hints, hint) {
		return fmt.Errorf("the key %s is there twice", hint)
	}
	d.Hints = append(d.Hints, hint)
	return nil
}

var agePattern = regexp.MustCompile(`^([1-9][0-9]{0,8})([smhd])$`)

// ParseAge reads a span of time: a whole number of seconds, minutes, hours or days, such as "90d". A day has 24 hours.
func ParseAge(s string) (time.Duration, error) {
	m := agePattern.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q: expected a span of time such as 36h or 90d", shorten(s))
	}
	n, _ := strconv.ParseInt(m[1], 10, 64) // nine digits at most
	unit := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[m[2]]
	if n > int64(time.Duration(1<<63-1)/unit) {
		return 0, fmt.Errorf("%q is more than can be counted (292 years)", s)
	}
	return time.Duration(n) * unit, nil
}

// ParseBound reads a bound on a figure as a text: NAME>=NUMBER or NAME<=NUMBER.
func ParseBound(s string) (name string, b Bounds, err error) {
	for _, operator := range []string{">=", "<="} {
		name, number, ok := strings.Cut(s, operator)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || !jsonNumber.MatchString(number) || !figureName.MatchString(name) {
			break
		}
		if operator == ">=" {
			return name, Bounds{Minimum: &v}, nil
		}
		return name, Bounds{Maximum: &v}, nil
	}
	return "", Bounds{}, fmt.Errorf("%q: expected FIGURE>=NUMBER or FIGURE<=NUMBER, such as au>=90", shorten(s))
}

var figureName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
