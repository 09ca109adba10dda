package attest_test

import (
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/record"
)

// Every check has the digest of what it is about, one that the archive has; where nothing could be read there is none.
func TestEvidenceDigests(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	r := newRun(t, nil)
	dir := newArchive(t, r, k)
	v := verify(t, dir, attest.Policy{RequireThresholds: true, Signers: 1, Predicates: []string{attest.ResultType}}, k.Public())
	known := map[string]bool{v.Archive.SHA256Digest().String(): true, r.record.Dataset.Root: true, r.record.Workload.Digest: true, r.record.Transcript.Root: true,
		record.Digest(v.RecordBytes): true}
	for _, o := range v.Origins() {
		known[o.Digest] = true
	}
	for _, c := range append(v.Checks, attest.Check{Name: "figures"}, attest.Check{Name: "plan"}, attest.Check{Name: "recipe"}, attest.Check{Name: "transcript"}) {
		if d := v.Digest(c.Name); !known[d] {
			t.Errorf("%s: %q is no digest of this archive", c.Name, d)
		}
	}
	if d := v.Digest("figures"); d == record.Digest(v.RecordBytes) || !strings.HasPrefix(d, "blake3:") {
		t.Errorf("figures follow from the step times, and not from %s", d)
	}
	if v.Digest("manifest") != r.record.Dataset.Manifest || v.Digest("recipe") != r.record.Dataset.Root {
		t.Error("manifest and recipe are about the data set")
	}
	empty := &attest.Verification{}
	for _, c := range v.Checks {
		if d := empty.Digest(c.Name); d != "" {
			t.Errorf("%s of nothing: %q", c.Name, d)
		}
	}
}
