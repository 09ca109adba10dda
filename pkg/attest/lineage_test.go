package attest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
)

// TestLineageIsAttested: what a data set was derived from and what its manifest excludes stand in the signed header, and the verdict says
// what a signature cannot show of either.
func TestLineageIsAttested(t *testing.T) {
	lineage, err := manifest.NewLineage("clean.py 1.2", manifest.Parent{
		Name: "bronze.json", Manifest: digest.Digest(hexDigest("a")), Root: digest.Digest(hexDigest("b")), Count: 3, Bytes: 300})
	must(t, err)
	k := newKey(t, attest.Ed25519)
	derived := newRunOver(t, manifest.Meta{Lineage: lineage, Exclude: []string{"*.tmp"}},
		func(r *record.Record) { r.Dataset.Generated, r.Dataset.Seed = false, "" })
	v := verify(t, newArchive(t, derived, k), attest.Policy{}, k.Public())
	if !v.OK() || v.Manifest == nil {
		t.Fatal(describe(v))
	}
	if h := v.Manifest.Header(); !h.Lineage.Equal(lineage) || !slices.Equal(h.Exclude, []string{"*.tmp"}) {
		t.Errorf("lineage %+v, exclude %q", h.Lineage, h.Exclude)
	}
	i := slices.IndexFunc(v.Checks, func(c attest.Check) bool { return c.Name == "manifest" })
	if i < 0 || !strings.Contains(v.Checks[i].Limits, "derived") || !strings.Contains(v.Checks[i].Limits, "excludes") {
		t.Errorf("%s", describe(v))
	}
}
