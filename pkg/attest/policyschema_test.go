package attest

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/schemas"
)

type schemaNode struct {
	Properties           map[string]schemaNode `json:"properties"`
	Items                *schemaNode           `json:"items"`
	AdditionalProperties json.RawMessage       `json:"additionalProperties"`
}

// The schema of policies and the type that reads them must name the same keys, on every level: a key that only one of them knows would be
// refused, or demanded and never judged.
func TestPolicySchemaIsTheCode(t *testing.T) {
	raw, err := schemas.FS.ReadFile(PolicySchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var root schemaNode
	if err := json.Unmarshal(raw, &root); err != nil {
		t.Fatal(err)
	}
	levels := 0
	var compare func(path string, s schemaNode, typ reflect.Type)
	compare = func(path string, s schemaNode, typ reflect.Type) {
		levels++
		if string(s.AdditionalProperties) != "false" {
			t.Errorf("%s: the schema allows unknown keys", path)
		}
		var inCode []string
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			inCode = append(inCode, name)
			sub, ok := s.Properties[name]
			if !ok {
				t.Errorf("%s.%s is in the code and not in the schema", path, name)
				continue
			}
			kind := f.Type
			if kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct {
				kind, sub = kind.Elem(), *sub.Items
			} else if kind.Kind() == reflect.Map {
				kind = kind.Elem()
				if err := json.Unmarshal(sub.AdditionalProperties, &sub); err != nil {
					t.Fatal(err)
				}
			}
			if kind.Kind() == reflect.Struct {
				compare(path+"."+name, sub, kind)
			}
		}
		for name := range s.Properties {
			if !slices.Contains(inCode, name) {
				t.Errorf("%s.%s is in the schema and not in the code", path, name)
			}
		}
	}
	compare("policy", root, reflect.TypeFor[policyDocument]())
	if levels != 10 {
		t.Errorf("%d levels were compared, expected 10", levels)
	}
}

// Whatever a Policy may demand must make zero say so: else it would not be judged where there is no record.
func TestPolicyZero(t *testing.T) {
	if !(Policy{AllowUnverified: true, AllowUnavailable: true, RequireThresholds: true}).zero() {
		t.Error("a policy that demands nothing is not zero")
	}
	one := 1.0
	for i, p := range []Policy{{Signers: 2}, {Predicates: []string{"x"}}, {DataRoots: []string{}}, {Verification: VerifiedSample},
		{Figures: map[string]Bounds{"au": {Minimum: &one}}}, {MaximumAge: 1}, {RuleEditions: []string{}}, {NotBefore: []KnownValue{}}, {Preregistered: true}, {PreregisteredBefore: true}, {Tool: ToolPolicy{Versions: []string{}}}, {Tool: ToolPolicy{Minimum: "v1"}},
		{Tool: ToolPolicy{Commits: []string{}}}, {Tool: ToolPolicy{Binaries: []string{}}}, {Tool: ToolPolicy{Unmodified: true}},
		{Workload: WorkloadPolicy{Names: []string{}}}, {Workload: WorkloadPolicy{Digests: []string{}}}} {
		if p.zero() {
			t.Errorf("policy %d demands something and is zero", i)
		}
	}
}
