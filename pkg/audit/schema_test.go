package audit

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// TestDocumentsHaveTheirSchemas: every line that is written is what its schema says, and the schemas refuse what is none.
func TestDocumentsHaveTheirSchemas(t *testing.T) {
	load := func(name string) *jsonschema.Schema {
		b, err := os.ReadFile("../../schemas/" + name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := jsonschema.CompileString(name, string(b))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	valid := func(s *jsonschema.Schema, line []byte) error {
		var v any
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		return s.Validate(v)
	}
	data := filled(10, ChunkSize+5, 20)
	m := pinned(t, data)
	challenge := challenged(t, m, "x", 10)
	c, a := load("audit-challenge-v1.schema.json"), load("audit-answer-v1.schema.json")
	if err := valid(c, challenge); err != nil {
		t.Error(err)
	}
	if valid(c, bytes.Replace(challenge, []byte(`"equal":false,`), nil, 1)) == nil {
		t.Error("a challenge without one of its keys is accepted")
	}
	for _, form := range []Form{Bytes, Digests} {
		for line := range bytes.Lines(answered(t, challenge, m, data, form)) {
			if err := valid(a, line); err != nil {
				t.Errorf("%s: %v\n%.200s", form, err, line)
			}
			if valid(a, bytes.Replace(bytes.Replace(line, []byte(`"keyed"`), []byte(`"k"`), 1), []byte(`"bytes":`), []byte(`"b":`), 1)) == nil && bytes.Contains(line, []byte(`"n":`)) {
				t.Errorf("%s: a line without its chunk is accepted", form)
			}
		}
	}
}
