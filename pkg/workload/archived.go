package workload

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
)

// Archived returns the workload of a record, resolved as it was: name, digest of the file and overrides are what the record says of them,
// and nothing is set anew. Every key counts as given. Errors are those of ParseCanonical.
func Archived(name string, source digest.Digest, overrides []string, data []byte) (*Resolved, error) {
	w, err := ParseCanonical(data)
	if err != nil {
		return nil, err
	}
	// The canonical form is YAML too, and so says again how it is written down beside a result.
	r, err := Load(Source{Name: name, Data: data}, Options{})
	if err != nil {
		return nil, fmt.Errorf("%w: it does not resolve to itself: %w", ErrNotCanonical, err)
	}
	if !bytes.Equal(r.Canonical, data) {
		return nil, fmt.Errorf("%w: it resolves to another one, %s", ErrNotCanonical, r.Digest)
	}
	r.Workload, r.Name, r.Source, r.Overrides, r.Warnings = w, name, source, slices.Clone(overrides), nil
	if r.Overrides == nil {
		r.Overrides = []string{}
	}
	return r, nil
}
