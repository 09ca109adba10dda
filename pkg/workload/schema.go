package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// SchemaFile is the name of the JSON schema of the canonical form in package schemas.
const SchemaFile = "workload-v1.schema.json"

// Schema makes the JSON schema of the canonical form from the key table. The file SchemaFile holds the same bytes.
func Schema() ([]byte, error) {
	root := object("A resolved benchpin workload in canonical form. docs/workload.md describes it.")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "https://github.com/benchpin/benchpin/schemas/" + SchemaFile
	root["$defs"] = map[string]any{"time": timeSchema()}
	w := new(Workload)
	for _, k := range keys(w) {
		if k.secret {
			continue
		}
		k.reset()
		at := root
		names := strings.Split(k.path, ".")
		for _, name := range names[:len(names)-1] {
			next, ok := at["properties"].(map[string]any)[name].(map[string]any)
			if !ok {
				next = object("")
				member(at, name, next, !k.added)
			}
			at = next
		}
		member(at, names[len(names)-1], k.schema(), !k.added)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("write the schema of a workload: %w", err)
	}
	return b.Bytes(), nil
}

// object is the schema of a section without members yet.
func object(doc string) map[string]any {
	o := map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{}, "required": []string{}}
	if doc != "" {
		o["description"] = doc
	}
	return o
}

// member adds a member, which must be there or may be.
func member(o map[string]any, name string, schema map[string]any, required bool) {
	o["properties"].(map[string]any)[name] = schema
	if required {
		o["required"] = append(o["required"].([]string), name)
	}
}

// schema is that of the key's value.
func (k key) schema() map[string]any {
	s := map[string]any{}
	switch k.field.(type) {
	case *string:
		s["type"] = "string"
		if k.words != nil {
			s["enum"] = k.words
		}
	case *bool:
		s["type"] = "boolean"
	case *int, *int64:
		s = k.bounds("integer", maxWhole)
	case *float64:
		s = k.bounds("number", math.MaxFloat64)
	case *uint64:
		s["type"], s["pattern"], s["maxLength"] = "string", "^(0|[1-9][0-9]*)$", 20
	case *[]int, *[]int64:
		s["type"], s["items"] = "array", k.bounds("integer", maxWhole)
	case *[]string:
		s["type"], s["items"] = "array", map[string]any{"type": "string"}
	case *[]Column:
		one := object("")
		for _, ck := range columnKeys("", new(Column)) {
			member(one, strings.TrimPrefix(ck.path, "."), ck.schema(), true)
		}
		s["type"], s["items"] = "array", one
	case *Time:
		s["$ref"] = "#/$defs/time"
	}
	if k.doc != "" {
		s["description"] = k.doc
	}
	return s
}

// bounds is the schema of a number in the key's range.
func (k key) bounds(typ string, widest float64) map[string]any {
	s := map[string]any{"type": typ}
	if typ == "integer" || k.low > -widest {
		s["minimum"] = json.Number(formatFloat(k.low))
	}
	if typ == "integer" || k.high < widest {
		s["maximum"] = json.Number(formatFloat(k.high))
	}
	return s
}

// timeSchema is the schema of a time: one form for each type.
func timeSchema() map[string]any {
	var forms []any
	for _, word := range timeTypes() {
		form := object("")
		member(form, "type", map[string]any{"const": word}, true)
		for _, p := range timeKeys("", new(Time))[word] {
			member(form, strings.TrimPrefix(p.path, "."), p.schema(), true)
		}
		forms = append(forms, form)
	}
	return map[string]any{"description": "Seconds: a constant, or a distribution. Draws count by their absolute value.", "oneOf": forms}
}
