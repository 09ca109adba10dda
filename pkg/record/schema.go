package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/benchpin/benchpin/schemas"
)

// SchemaFile is the name of the record's JSON schema in package schemas.
const SchemaFile = "record-v1.schema.json"

// ValidateSchema checks the bytes of a record against its JSON schema, as any other reader would, and returns the validator's
// account of what differs (a *jsonschema.ValidationError). The schema says less than Parse and Check: it knows nothing of byte
// forms, digests and sums.
func ValidateSchema(b []byte) error {
	schema, err := compiledSchema()
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return fmt.Errorf("%w: %w", ErrNotRecord, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("%w: data after the end of the document", ErrNotRecord)
	}
	if err := schema.Validate(doc); err != nil {
		return fmt.Errorf("record does not match schema %s: %w", SchemaFile, err)
	}
	return nil
}

// compiledSchema is the schema, which never changes, ready for use. Compiling it takes longer than verifying the rest of a small archive.
var compiledSchema = sync.OnceValues(compileSchema)

func compileSchema() (*jsonschema.Schema, error) {
	text, err := schemas.FS.ReadFile(SchemaFile)
	if err != nil {
		return nil, fmt.Errorf("reading the record's schema: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.LoadURL = func(url string) (io.ReadCloser, error) {
		return nil, fmt.Errorf("schema refers to %s, but schemas are never fetched", url)
	}
	if err := compiler.AddResource(SchemaFile, bytes.NewReader(text)); err != nil {
		return nil, fmt.Errorf("reading schema %s: %w", SchemaFile, err)
	}
	schema, err := compiler.Compile(SchemaFile)
	if err != nil {
		return nil, fmt.Errorf("compiling schema %s: %w", SchemaFile, err)
	}
	return schema, nil
}
