package record

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the schema that the types have")

const schemaPath = "../../schemas/" + SchemaFile

// TestSchemaIsTheTypes builds the schema from the Go types and their comments and compares it with the file.
func TestSchemaIsTheTypes(t *testing.T) {
	want, err := generateSchema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(schemaPath, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaPath)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%s is not the schema of the types: %s\nwrite it with: go test ./pkg/record -run TestSchemaIsTheTypes -update",
			schemaPath, firstDifference(want, got))
	}
}

func TestSchemaAcceptsTheSample(t *testing.T) {
	r := sample()
	if err := ValidateSchema(mustCanonical(t, r)); err != nil {
		t.Error(err)
	}
	r.Status, r.Reason = StatusIncomplete, "interrupted"
	r.Transcript.Root, r.Transcript.Expected = "", ""
	if err := ValidateSchema(mustCanonical(t, r)); err != nil {
		t.Error(err)
	}
}

func TestSchemaRefuses(t *testing.T) {
	good := string(mustCanonical(t, sample()))
	for name, c := range map[string][2]string{
		"status":           {`"complete"`, `"done"`},
		"number":           {`"files": "28"`, `"files": 28`},
		"number form":      {`"files": "28"`, `"files": "028"`},
		"class":            {`"class": "C"`, `"class": "X"`},
		"digest":           {`"root": "blake3:33`, `"root": "blake3:G3`},
		"unknown field":    {`"id":`, `"ID": "", "id":`},
		"reason":           {`"status":`, `"reason": "why", "status":`},
		"missing field":    {`"modified": false,`, ``},
		"value and absent": {`"value": 97.5,`, `"value": 97.5, "absent": "x",`},
		"neither":          {`"value": 97.5,`, ``},
		"AU above 100":     {`"au_threshold": 90`, `"au_threshold": 101`},
		"DLIO's object":    {`"train_au_meet_expectation": "success"`, `"train_au_meet_expectation": {}`},
	} {
		if !strings.Contains(good, c[0]) {
			t.Fatalf("%s: the sample has no %q", name, c[0])
		}
		if err := ValidateSchema([]byte(strings.Replace(good, c[0], c[1], 1))); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, bad := range []string{"", "{", good + "{}"} {
		if err := ValidateSchema([]byte(bad)); err == nil {
			t.Errorf("accepted %d bytes", len(bad))
		}
	}
}

const digestPattern = "^blake3:[0-9a-f]{64}$"

// extra says what the Go types cannot: by type and JSON name.
func extra() map[string]map[string]any {
	digest := map[string]any{"type": "string", "pattern": digestPattern}
	maybe := map[string]any{"type": "string", "pattern": "^(blake3:[0-9a-f]{64})?$"}
	percent := map[string]any{"type": "number", "minimum": 0, "maximum": 100}
	utc := map[string]any{"type": "string", "format": "date-time", "pattern": "Z$"}
	scalar := []any{map[string]any{"type": "number"}, map[string]any{"type": "string"}, map[string]any{"type": "boolean"}}
	return map[string]map[string]any{
		"Record.schema":       {"const": SchemaName},
		"Record.status":       {"enum": []any{StatusComplete, StatusIncomplete}},
		"Record.reason":       {"type": "string", "minLength": 1},
		"Record.started":      utc,
		"Record.finished":     utc,
		"Tool.binary":         digest,
		"Workload.digest":     digest,
		"Workload.source":     digest,
		"Workload.canonical":  {"type": "object"},
		"Dataset.root":        digest,
		"Dataset.manifest":    digest,
		"Verification.mode":   {"enum": []any{"before", "inline", "after", "sample", "none"}},
		"Plan.au_threshold":   percent,
		"Transcript.root":     maybe,
		"Transcript.expected": maybe,
		"Transcript.ranks":    {"type": "array", "items": digest},
		"Checkpoint.digest":   digest,
		"Metrics.dlio": {"type": "object", "additionalProperties": map[string]any{
			"anyOf": append(scalar[:3:3], map[string]any{"type": "array", "items": map[string]any{"anyOf": scalar}}),
		}},
		"Journal.head":     digest,
		"ReplayOf.archive": map[string]any{"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
		"ReplayOf.record":  digest,
		"File.blake3":      digest,

		"Preregistration.digest": digest,
		"Figure.unit":            {"type": "string", "minLength": 1},
		"Folder.role":            {"enum": []any{RoleData, RoleCheckpoints, RoleResults}},
	}
}

func generateSchema() ([]byte, error) {
	docs, err := comments()
	if err != nil {
		return nil, err
	}
	g := generator{docs: docs, extra: extra(), defs: map[string]any{}}
	root := g.schema(reflect.TypeFor[Record](), "")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "https://github.com/benchpin/benchpin/schemas/" + SchemaFile
	root["title"] = "benchpin record, version 1"
	root["if"] = map[string]any{"properties": map[string]any{"status": map[string]any{"const": StatusComplete}}}
	root["then"] = map[string]any{
		"not": map[string]any{"required": []any{"reason"}},
		"properties": map[string]any{"transcript": map[string]any{"properties": map[string]any{
			"root": map[string]any{"pattern": digestPattern}, "expected": map[string]any{"pattern": digestPattern},
		}}},
	}
	root["else"] = map[string]any{"required": []any{"reason"}}
	root["$defs"] = g.defs
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(root)
	return buf.Bytes(), err
}

type generator struct {
	docs  map[string]string
	extra map[string]map[string]any
	defs  map[string]any
}

// schema describes one type; struct types other than the record become definitions.
func (g *generator) schema(t reflect.Type, owner string) map[string]any {
	switch t {
	case reflect.TypeFor[Int]():
		g.defs["Int"] = map[string]any{"type": "string", "pattern": "^(0|-?[1-9][0-9]{0,18})$", "description": g.docs["Int"]}
		return map[string]any{"$ref": "#/$defs/Int"}
	case reflect.TypeFor[Class]():
		g.defs["Class"] = map[string]any{"enum": []any{"C", "W", "H"}, "description": g.docs["Class"] +
			" C: anyone can compute it from the archive; W: a third party witnessed it; H: the host only says so."}
		return map[string]any{"$ref": "#/$defs/Class"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.schema(t.Elem(), owner)
	case reflect.Struct:
		if owner == "" {
			return g.object(t)
		}
		if _, done := g.defs[t.Name()]; !done {
			g.defs[t.Name()] = nil
			g.defs[t.Name()] = g.object(t)
		}
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": g.schema(t.Elem(), owner)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": g.schema(t.Elem(), owner)}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	}
	panic("no schema for " + t.String())
}

func (g *generator) object(t reflect.Type) map[string]any {
	properties := map[string]any{}
	required := []any{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		s := map[string]any{}
		if x, ok := g.extra[t.Name()+"."+name]; ok {
			for k, v := range x {
				s[k] = v
			}
			delete(g.extra, t.Name()+"."+name)
		} else {
			s = g.schema(f.Type, t.Name())
		}
		if doc := g.docs[t.Name()+"."+f.Name]; doc != "" {
			s["description"] = doc
		}
		properties[name] = s
		if option != "omitempty" {
			required = append(required, name)
		}
	}
	o := map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
		"description": g.docs[t.Name()],
	}
	if t == reflect.TypeFor[Figure]() {
		o["oneOf"] = []any{map[string]any{"required": []any{"value"}}, map[string]any{"required": []any{"absent"}}}
	}
	return o
}

// comments reads the doc comments of the package's types and fields: the schema's descriptions.
func comments() (map[string]string, error) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		return nil, err
	}
	docs := map[string]string{}
	text := func(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			d, ok := n.(*ast.GenDecl)
			if !ok || d.Tok != token.TYPE {
				return true
			}
			for _, spec := range d.Specs {
				s := spec.(*ast.TypeSpec)
				docs[s.Name.Name] = text(d.Doc)
				st, ok := s.Type.(*ast.StructType)
				if !ok {
					continue
				}
				for _, f := range st.Fields.List {
					for _, id := range f.Names {
						docs[s.Name.Name+"."+id.Name] = text(f.Doc)
					}
				}
			}
			return true
		})
	}
	return docs, nil
}
