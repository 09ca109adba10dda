package attest_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
)

// FuzzPolicy: a policy document is read or it is an error of usage; one that is read demands only what a record can hold, and says
// which keys it accepts.
func FuzzPolicy(f *testing.F) {
	const head = "policy: benchpin.policy/v1\n"
	paths, err := filepath.Glob(archiveVectorsFolder + "/policy-*.json")
	must(f, err)
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		must(f, err)
		f.Add([]byte(decodeVector[archiveVector](f, raw).Policy))
	}
	f.Add([]byte(head))
	f.Add([]byte(head + "keys:\n  - hint: AAAA\n  - file: a.pub\nmaximum_age: 30d\ntool: {minimum: v1.0.0}\nworkload: {names: [a, b]}\n"))
	f.Add([]byte(head + "data: {verification: all}\nthresholds_met: yes\nfigures: {au: {minimum: .5, maximum: 1e3}}\n"))
	f.Add([]byte(head + "a: &x [*x]\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := attest.ParsePolicy(filepath.Join("nowhere", "policy.yaml"), raw)
		if err != nil {
			if !errors.Is(err, attest.ErrPolicy) {
				t.Fatalf("an error that is none of usage: %v", err)
			}
			return
		}
		if err := d.Policy.Check(); err != nil {
			t.Fatalf("read, and cannot be demanded: %v", err)
		}
		// Demands only grow.
		if both := d.Policy.And(d.Policy); both.Signers != d.Policy.Signers || both.MaximumAge != d.Policy.MaximumAge {
			t.Fatalf("%+v and itself is %+v", d.Policy, both)
		}
	})
}
