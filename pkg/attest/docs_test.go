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
