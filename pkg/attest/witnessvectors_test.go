package attest_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/sigstore"
)

// witnessVector is an archive whose statements carry certificates, log entries or timestamps, and what must be found of it. All that its
// verdict depends on is in the file: whom to trust is in its policy, the time is in it, and the keys of those who made it are thrown away.
type witnessVector struct {
	// Why says what was altered, for people.
	Why string `json:"why"`
	// Class is the fault that verification must find, and Check the check that must find it; both are "" for an archive that must be accepted.
	Class fault.Class `json:"class"`
	Check string      `json:"check"`
	// Key is the public key given to the verifier, "" for none; Policy a policy document; Now the time at which it is verified, where that matters.
	Key    string `json:"key,omitempty"`
	Policy string `json:"policy"`
	Now    string `json:"now,omitempty"`
	// Base is the vector whose files these are, but for Files: content as base64, null for one that is not there. "" has all of its own.
	Base  string            `json:"base,omitempty"`
	Files map[string][]byte `json:"files"`
}

const witnessVectorsFolder = "testdata/vectors/witness"

func readWitnessVector(t testing.TB, name string) witnessVector {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(witnessVectorsFolder, name+".json"))
	must(t, err)
	return decodeVector[witnessVector](t, raw)
}

func (v *witnessVector) verify(t testing.TB) *attest.Verification {
	t.Helper()
	content := map[string][]byte{}
	if v.Base != "" {
		base := readWitnessVector(t, v.Base)
		if base.Base != "" {
			t.Fatalf("%s has a base itself", v.Base)
		}
		content = maps.Clone(base.Files)
	}
	for name, b := range v.Files {
		if b == nil {
			delete(content, name)
		} else {
			content[name] = b
		}
	}
	d, err := attest.ParsePolicy("vector", []byte(v.Policy))
	must(t, err)
	p := d.Policy
	p.Witness, err = sigstore.NewWitness(d.Trusted)
	must(t, err)
	if v.Now != "" {
		p.At, err = time.Parse(time.RFC3339, v.Now)
		must(t, err)
	}
	var keys []attest.PublicKey
	if v.Key != "" {
		key, err := attest.ParsePublic([]byte(v.Key))
		must(t, err)
		keys = append(keys, key)
	}
	if keys, err = d.Accept(keys); err != nil {
		t.Fatal(err)
	}
	return verify(t, layOut(t, content), p, keys...)
}

// TestVectorsWitness verifies the archive of every file: each must be accepted, or refused by the check and for the reason that it names,
// whatever the time is.
func TestVectorsWitness(t *testing.T) {
	if *update {
		makeWitnessVectors(t)
	}
	paths, err := filepath.Glob(witnessVectorsFolder + "/*.json")
	must(t, err)
	if len(paths) < 60 {
		t.Errorf("%d files, expected at least 60", len(paths))
	}
	good := 0
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(name, func(t *testing.T) {
			v := readWitnessVector(t, name)
			if v.Why == "" || (v.Class == "") != (v.Check == "") {
				t.Fatal("the vector does not say what must be found, or why")
			}
			verdict := v.verify(t)
			if v.Class == "" {
				if good++; !verdict.OK() {
					t.Errorf("refused:\n%s", describe(verdict))
				}
				return
			}
			wantFault(t, verdict, v.Check, v.Class, "")
			for _, a := range verdict.Attestations {
				if a.PredicateType == attest.ResultType && a.Status == attest.Holds && v.Check == "signatures" {
					t.Errorf("the statement of the result holds all the same: %+v", a)
				}
			}
		})
	}
	if good < 11 {
		t.Errorf("%d vectors are of archives that must be accepted", good)
	}
}
