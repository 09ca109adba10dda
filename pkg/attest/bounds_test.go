package attest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/attest/sigstore/sigstoretest"
)

// The limits of policies, each at it and one above. At the limit a policy may be refused for something else.
func TestPolicyBounds(t *testing.T) {
	const head = "policy: benchpin.policy/v1\n"
	for over := range 2 {
		says := func(what, text, limit string, good bool) {
			t.Helper()
			_, err := attest.ParsePolicy("p.yaml", []byte(text))
			if refused := err != nil && strings.Contains(err.Error(), limit); refused != (over == 1) || (over == 0 && good && err != nil) {
				t.Errorf("%s, %d above the limit: %v", what, over, err)
			}
		}
		says("bytes", head+"#"+strings.Repeat("x", limits.PolicyBytes+over-len(head)-1), "at most 262144 are read", true)
		// The document itself is the first level.
		depth := limits.PolicyDepth + over - 1
		says("depth", head+"a: "+strings.Repeat("[", depth)+strings.Repeat("]", depth)+"\n", "levels of nesting", false)
		// The document, its name and the list are values too.
		says("values", head+"predicates: ["+strings.Repeat("a,", limits.PolicyValues+over-4)+"a]\n", "more than 16384 values", false)

		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "root.json"), bytes.Repeat([]byte(" "), limits.RootBytes+over), 0o644))
		must(t, os.WriteFile(filepath.Join(dir, "p.yaml"), []byte(head+"trusted_root: {file: root.json}\n"), 0o644))
		if _, err := attest.LoadPolicy(filepath.Join(dir, "p.yaml")); (over == 1) != (err != nil && strings.Contains(err.Error(), "bytes of roots are read")) {
			t.Errorf("roots of %d bytes above the limit: %v", over, err)
		}
	}
}

// A reference to a key that a program keeps, as long as it may be and longer by one: the first is looked for.
func TestKeyReferenceBounds(t *testing.T) {
	for over, class := range []error{attest.ErrKeyProgram, attest.ErrKeyFile} {
		ref := "absent://" + strings.Repeat("k", limits.KeyReferenceBytes+over-len("absent://"))
		if _, err := attest.LoadSigner(t.Context(), ref, attest.KeySource{}); !errors.Is(err, class) {
			t.Errorf("%d above the limit: expected %v, found %v", over, class, err)
		}
	}
}

// As many timestamps and log entries as may be are judged, and found wrong; with one more, none is looked at.
func TestWitnessBounds(t *testing.T) {
	tsa := sigstoretest.NewTimestamps(t)
	k := newKey(t, attest.Ed25519)
	dir := stampedArchive(t, stamped(t, k, tsa), nil)
	bundles, _ := archiveParts(t, dir)
	for over := range 2 {
		for name, fill := range map[string]func(material map[string]any, n int){
			"timestamps": func(m map[string]any, n int) {
				stamps := m["timestampVerificationData"].(map[string]any)
				one := stamps["rfc3161Timestamps"].([]any)[0]
				var all []any
				for range n {
					all = append(all, one)
				}
				stamps["rfc3161Timestamps"] = all
			},
			"log entries": func(m map[string]any, n int) {
				var all []any
				for i := range n {
					all = append(all, map[string]any{"logIndex": fmt.Sprint(i)})
				}
				m["tlogEntries"] = all
			},
		} {
			var b map[string]any
			must(t, json.Unmarshal(bundles[attest.ResultType], &b))
			fill(b["verificationMaterial"].(map[string]any), limits.Witnesses+over)
			raw, err := json.Marshal(b)
			must(t, err)
			copied := filepath.Join(t.TempDir(), "archive")
			must(t, os.CopyFS(copied, os.DirFS(dir)))
			must(t, oci.Attach(t.Context(), copied, attest.ResultType, raw))
			refused := 0
			for _, a := range verify(t, copied, attest.Policy{Witness: timestampVerifier(t, tsa)}, k.Public()).Attestations {
				if a.Status != attest.Holds {
					refused++
					if limit := strings.Contains(a.Detail, "at most 8 timestamps and log entries are read"); limit != (over == 1) {
						t.Errorf("%d %s above the limit: %s", over, name, a.Detail)
					}
				}
			}
			if refused != 1 {
				t.Errorf("%d %s above the limit: %d bundles do not hold", over, name, refused)
			}
		}
	}
}
