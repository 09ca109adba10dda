// Package schemas holds the JSON schemas of benchpin's documents, embedded into the binary. It holds nothing else: the schemas
// are generated from, or tested against, the packages that own the documents.
package schemas

import "embed"

// FS holds one file for each document: NAME-v1.schema.json.
//
//go:embed *.json
var FS embed.FS
