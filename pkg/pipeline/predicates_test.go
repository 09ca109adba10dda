package pipeline

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/schemas"
)

// The result of every kind of run is what its schema says: one that trains, and one that writes and reads checkpoints alone.
func TestResultPredicateSchema(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	files, err := fs.Glob(schemas.FS, "*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, err := schemas.FS.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := compiler.AddResource(name, bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile(attest.ResultSchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	trains, _ := gone(t)
	writes := Layout{t.TempDir()}
	goneWithCheckpoints(t, writes)
	for name, l := range map[string]Layout{"train": trains, "checkpoints": writes} {
		t.Run(name, func(t *testing.T) {
			archive, err := oci.Read(t.Context(), filepath.Join(l.Dir, "archive"))
			if err != nil {
				t.Fatal(err)
			}
			defer archive.Close()
			at := slices.IndexFunc(archive.Bundles, func(b oci.Bundle) bool { return b.PredicateType == attest.ResultType })
			if at < 0 {
				t.Fatal("the result is not attested")
			}
			raw, err := archive.Bundles[at].Blob.Bytes(oci.MaxBundleBytes)
			if err != nil {
				t.Fatal(err)
			}
			var bundle struct {
				Envelope struct{ Payload []byte } `json:"dsseEnvelope"`
			}
			var statement struct{ Predicate any }
			if err := json.Unmarshal(raw, &bundle); err != nil {
				t.Fatal(err)
			}
			decoder := json.NewDecoder(strings.NewReader(string(bundle.Envelope.Payload)))
			decoder.UseNumber()
			if err := decoder.Decode(&statement); err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(statement.Predicate); err != nil {
				t.Errorf("%#v\n%s", err, bundle.Envelope.Payload)
			}
		})
	}
}
