package attest_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/schemas"
)

// classes returns the texts of all classes of faults, from the source of package fault.
func classes(t testing.TB) map[string]bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("fault", "fault.go"), nil, 0)
	must(t, err)
	all := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := v.Type.(*ast.Ident); ok && kind.Name == "Class" {
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			must(t, err)
			all[text] = true
		}
		return true
	})
	if len(all) < 30 {
		t.Fatalf("only %d classes were found", len(all))
	}
	return all
}

// The page must name every class, every check, every predicate and every title, and every vector a class that exists.
func TestDocumentation(t *testing.T) {
	raw, err := os.ReadFile("../../docs/attestation.md")
	must(t, err)
	page := string(raw)
	known := classes(t)
	k := newKey(t, attest.Ed25519)
	v := verify(t, newArchive(t, newRun(t, nil), k), attest.Policy{}, k.Public())
	var terms []string
	for class := range known {
		terms = append(terms, class)
	}
	for _, c := range v.Checks {
		terms = append(terms, c.Name)
	}
	for _, term := range append(terms, attest.TitleRecord, attest.TitleManifest, attest.TitleEntries) {
		if !strings.Contains(page, "`"+term+"`") {
			t.Errorf("the page does not name `%s`", term)
		}
	}
	for _, uri := range []string{attest.ResultType, attest.TestResultType, attest.ProvenanceType, attest.StatementType, attest.ReplayType} {
		if !strings.Contains(page, uri) {
			t.Errorf("the page does not name %s", uri)
		}
	}
	paths, err := filepath.Glob("testdata/vectors/*.json")
	must(t, err)
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		must(t, err)
		var v vector
		must(t, json.Unmarshal(raw, &v))
		if v.Class != "" && !known[string(v.Class)] {
			t.Errorf("%s names class %q, which does not exist", path, v.Class)
		}
	}
}

// Every field of every predicate with a schema of ours stands on the page, in the table of its predicate.
func TestFieldsDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../docs/attestation.md")
	must(t, err)
	for file, uri := range map[string]string{
		attest.ResultSchemaFile: attest.ResultType, attest.ReplaySchemaFile: attest.ReplayType, attest.ReviewSchemaFile: attest.ReviewType,
		attest.PreregistrationSchemaFile: attest.PreregistrationType,
	} {
		_, part, found := strings.Cut(string(raw), "**`"+uri+"`**")
		if !found {
			t.Errorf("the page has no part on %s", uri)
			continue
		}
		// Up to the next predicate, or the next chapter.
		for _, end := range []string{"\n**`http", "\n### ", "\n## "} {
			part, _, _ = strings.Cut(part, end)
		}
		text, err := schemas.FS.ReadFile(file)
		must(t, err)
		var schema map[string]any
		must(t, json.Unmarshal(text, &schema))
		for path := range propertiesOf(schema) {
			name := path[strings.LastIndex(path, "/")+1:]
			if strings.HasPrefix(path, "http") {
				name = path
			}
			if !strings.Contains(part, "`"+name+"`") && !strings.Contains(part, "`"+name+"[") && !strings.Contains(part, "."+name+"`") &&
				!strings.Contains(part, "."+name+"[") && !strings.Contains(part, "`"+name+".") {
				t.Errorf("%s: %s is not documented", uri, path)
			}
		}
	}
}

// propertiesOf yields the paths of all properties of a schema, two levels deep: what a predicate is made of.
func propertiesOf(schema map[string]any) map[string]bool {
	all := map[string]bool{}
	top, _ := schema["properties"].(map[string]any)
	for name, v := range top {
		all[name] = true
		inner, _ := v.(map[string]any)
		nested, _ := inner["properties"].(map[string]any)
		for below := range nested {
			if !strings.HasPrefix(name, "http") {
				all[name+"/"+below] = true
			}
		}
	}
	return all
}
