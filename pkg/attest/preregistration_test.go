package attest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/attest/sigstore/sigstoretest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/schemas"
)

const registeredWorkload = `{"benchpin":{"thresholds":{"bytes_per_second":0,"samples_per_second":20},"verify":"before"},"train":{"epochs":1}}`

// registeredRun is a run that was registered, signed by k; change alters what was signed, and swap the bundle that the run carries.
func registeredRun(t *testing.T, k attest.Signer, change func(*attest.Preregistration), swap func([]byte) []byte) run {
	t.Helper()
	r := newRun(t, func(r *record.Record) {
		r.Workload.Canonical = []byte(registeredWorkload)
		r.Workload.Digest = record.Digest(r.Workload.Canonical)
	})
	p, err := attest.PreregistrationOf(r.record)
	must(t, err)
	if change != nil {
		change(&p)
	}
	header, err := os.ReadFile(r.input.Manifest)
	must(t, err)
	raw, err := attest.SignPreregistration(t.Context(), k, p, header)
	must(t, err)
	if swap != nil {
		raw = swap(raw)
	}
	must(t, os.WriteFile(filepath.Join(r.input.Folder, attest.TitlePreregistration), raw, 0o600))
	r.record.Files = append([]record.File{r.record.Files[0], {Name: attest.TitlePreregistration, Size: record.Int(len(raw)), Blake3: record.Digest(raw)}},
		r.record.Files[1:]...)
	r.record.Preregistration = &record.Preregistration{Class: record.Recomputable, Digest: record.Digest(raw)}
	r.input.Record, err = r.record.Canonical()
	must(t, err)
	return r
}

func TestPreregistration(t *testing.T) {
	k, judge := newKey(t, attest.Ed25519), newKey(t, attest.ECDSAP256)
	dir := newArchive(t, registeredRun(t, judge, nil, nil), k)
	find := func(v *attest.Verification) attest.Check {
		for _, c := range v.Checks {
			if c.Name == "preregistration" {
				return c
			}
		}
		t.Fatal("the pre-registration was not checked")
		return attest.Check{}
	}
	// With the key of whoever registered it counts; without it does not, and spoils nothing.
	v := verify(t, dir, attest.Policy{Preregistered: true}, k.Public(), judge.Public())
	if c := find(v); !v.OK() || v.Preregistered != judge.Public().Hint() || !strings.Contains(c.Evidence, v.Preregistered) || !strings.Contains(c.Limits, "no trusted time") {
		t.Errorf("found %+v\n%s", c, describe(v))
	}
	v = verify(t, dir, attest.Policy{}, k.Public())
	if c := find(v); !v.OK() || v.Preregistered != "" || !strings.Contains(c.Evidence, "does not count") {
		t.Errorf("found %+v\n%s", c, describe(v))
	}
	if v = verify(t, dir, attest.Policy{Preregistered: true}, k.Public()); v.OK() {
		t.Error("a pre-registration that no accepted key signed meets a policy that demands one")
	}
	// A record that names none makes no claim, and has no check.
	v = verify(t, newArchive(t, newRun(t, nil), k), attest.Policy{Preregistered: true}, k.Public())
	if v.OK() || v.Checks[len(v.Checks)-1].Name != "policy" || strings.Contains(describe(v), "preregistration ok") {
		t.Errorf("found %s", describe(v))
	}
}

// A run that differs from what was registered gets no archive, whichever part differs, and each part is named.
func TestPreregistrationDiffers(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	for part, change := range map[string]func(*attest.Preregistration){
		"workload": func(p *attest.Preregistration) { p.Workload.Digest = hexDigest("a") },
		// What was signed in full is held to in full, also where the digest says the same.
		"workload.canonical": func(p *attest.Preregistration) { p.Workload.Canonical = []byte(`{}`) },
		"workload.name":      func(p *attest.Preregistration) { p.Workload.Name = "another" },
		"dataset":            func(p *attest.Preregistration) { p.Dataset.Seed = "7" },
		"accelerators":       func(p *attest.Preregistration) { p.Accelerators = 4 },
		"epochs":             func(p *attest.Preregistration) { p.Epochs = 2 },
		"order_seed":         func(p *attest.Preregistration) { p.OrderSeed = 2 },
		"verify":             func(p *attest.Preregistration) { p.Verify = "none" },
		"thresholds":         func(p *attest.Preregistration) { p.Thresholds["au"] = 95 },
	} {
		_, err := attest.WriteArchive(t.Context(), filepath.Join(t.TempDir(), "a"), registeredRun(t, k, change, nil).input, k)
		if !errors.Is(err, fault.Preregistration) || !strings.Contains(err.Error(), "preregistration.json: "+part) {
			t.Errorf("%s: found %v", part, err)
		}
	}
	_, err := attest.WriteArchive(t.Context(), filepath.Join(t.TempDir(), "a"), registeredRun(t, k, func(p *attest.Preregistration) {
		p.Thresholds["x"], p.Epochs, p.Accelerators = 1, 9, 9
	}, nil).input, k)
	for _, part := range []string{"thresholds", "epochs", "accelerators"} {
		if err == nil || !strings.Contains(err.Error(), "preregistration.json: "+part) {
			t.Errorf("expected %s to be named, found %v", part, err)
		}
	}
}

// A workload that differs is told key by key, with what was signed and what is run; one that was signed by its digest alone, as earlier versions did,
// is held to that.
func TestPreregistrationNamesKeys(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	r := registeredRun(t, k, nil, nil)
	header, err := os.ReadFile(r.input.Manifest)
	must(t, err)
	run, err := attest.PreregistrationOf(r.record)
	must(t, err)
	signed := run
	signed.Workload.Canonical = []byte(`{"train": {"epochs": 2, "seed": 1}, "list": [1, 2], "same": {"a": null}, "only": {"signed": true}}`)
	signed.Workload.Digest = record.Digest(signed.Workload.Canonical)
	raw, err := attest.SignPreregistration(t.Context(), k, signed, header)
	must(t, err)
	p, err := attest.ParsePreregistration(raw)
	must(t, err)
	run.Workload.Canonical = []byte(`{"same": {"a": null}, "list": [2, 1], "train": {"seed": 1, "epochs": 3, "more": "x"}}`)
	faults, err := p.Differences(run, oci.DigestsOf(header))
	must(t, err)
	var found []string
	for _, f := range faults {
		found = append(found, f.Error())
	}
	all := strings.Join(found, "\n")
	for _, want := range []string{"canonical.train.epochs: ", "expected 2, found 3", "canonical.train.more: ", `expected none, found "x"`, "canonical.list: ",
		"expected [1,2], found [2,1]", "canonical.only: ", `expected {"signed":true}, found none`} {
		if !strings.Contains(all, want) {
			t.Errorf("expected %s in\n%s", want, all)
		}
	}
	if len(faults) != 4 {
		t.Errorf("4 keys differ, found\n%s", all)
	}
	for want, change := range map[string]func(*attest.Preregistration){
		"": func(*attest.Preregistration) {}, "workload.digest": func(p *attest.Preregistration) { p.Workload.Digest = hexDigest("a") },
	} {
		old, err := attest.PreregistrationOf(r.record)
		must(t, err)
		run := old
		old.Workload.Canonical = nil
		change(&old)
		raw, err := attest.SignPreregistration(t.Context(), k, old, header)
		must(t, err)
		p, err := attest.ParsePreregistration(raw)
		must(t, err)
		faults, err := p.Differences(run, oci.DigestsOf(header))
		must(t, err)
		if (len(faults) > 0) != (want != "") || (want != "" && !strings.Contains(faults[0].Error(), want)) {
			t.Errorf("by digest alone: expected %q, found %v", want, faults)
		}
	}
}

// The signature, the subject and the form are held to what every other bundle is held to.
func TestPreregistrationDamaged(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	good := registeredRun(t, k, nil, nil)
	p, err := attest.PreregistrationOf(good.record)
	must(t, err)
	sign := func(kind string, header []byte) []byte {
		s, err := attest.NewStatement([]attest.Subject{attest.NewSubject(attest.SubjectManifest, oci.DigestsOf(header))}, kind, p)
		must(t, err)
		raw, err := attest.SignStatement(k, s)
		must(t, err)
		return raw
	}
	header, err := os.ReadFile(good.input.Manifest)
	must(t, err)
	for name, c := range map[string]struct {
		raw   []byte
		class fault.Class
	}{
		"not a bundle":     {[]byte("{}"), fault.BundleVersion},
		"other predicate":  {sign(attest.ResultType, header), fault.PredicateType},
		"other data set":   {sign(attest.PreregistrationType, []byte("x")), fault.SubjectDigest},
		"other's envelope": {otherPayload(t, sign(attest.PreregistrationType, header), sign(attest.PreregistrationType, []byte("x"))), fault.BadSignature},
	} {
		r := registeredRun(t, k, nil, func([]byte) []byte { return c.raw })
		if _, err := attest.WriteArchive(t.Context(), filepath.Join(t.TempDir(), "a"), r.input, k); !errors.Is(err, c.class) {
			t.Errorf("%s: expected %s, found %v", name, c.class, err)
		}
	}
}

// otherPayload is bundle a with the signature of bundle b.
func otherPayload(t *testing.T, a, b []byte) []byte {
	t.Helper()
	signature := func(raw []byte) []byte {
		var doc struct {
			Envelope struct {
				Signatures []struct {
					Sig string `json:"sig"`
				} `json:"signatures"`
			} `json:"dsseEnvelope"`
		}
		must(t, json.Unmarshal(raw, &doc))
		return []byte(doc.Envelope.Signatures[0].Sig)
	}
	return bytes.Replace(a, signature(a), signature(b), 1)
}

// What is signed matches its schema, and the schema knows nothing else.
func TestPreregistrationSchema(t *testing.T) {
	text, err := schemas.FS.ReadFile(attest.PreregistrationSchemaFile)
	must(t, err)
	compiler := jsonschema.NewCompiler()
	must(t, compiler.AddResource(attest.PreregistrationSchemaFile, bytes.NewReader(text)))
	schema, err := compiler.Compile(attest.PreregistrationSchemaFile)
	must(t, err)
	p, err := attest.PreregistrationOf(registeredRun(t, newKey(t, attest.Ed25519), nil, nil).record)
	must(t, err)
	p.RuleEdition = "mlperf-storage-v2.0"
	raw, err := json.Marshal(p)
	must(t, err)
	var doc map[string]any
	must(t, json.Unmarshal(raw, &doc))
	if err := schema.Validate(any(doc)); err != nil {
		t.Errorf("%#v\n%s", err, raw)
	}
	if th := p.Thresholds; len(th) != 2 || th["au"] != 90 || th["samples_per_second"] != 20 {
		t.Errorf("thresholds that ask for nothing must be absent, the others there: found %v", th)
	}
	var keys struct {
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required"`
	}
	must(t, json.Unmarshal(text, &keys))
	if len(keys.Properties) != len(doc) || len(keys.Required) != len(doc)-1 { // the edition of rules may be absent
		t.Errorf("the schema has %d keys and requires %d, the predicate has %d", len(keys.Properties), len(keys.Required), len(doc))
	}
}

// A trusted time says when the bar was set at the latest, and what that proves depends on the start that the record gives.
func TestPreregistrationTime(t *testing.T) {
	tsa := sigstoretest.NewTimestamps(t)
	k := newKey(t, attest.Ed25519)
	for name, c := range map[string]struct {
		started        time.Time
		good           bool
		evidence, text string
	}{
		"before the run": {time.Now().Add(time.Hour), true, "the bar came before the result, if that start is true", "its start is the host's word"},
		// The record names the bundle with its timestamp: a run cannot have kept to a file that was stamped after it began.
		"after its start": {time.Now().Add(-time.Hour), false, "no later than", "the trusted time is not before the start that the record gives"},
	} {
		r := registeredRun(t, stamped(t, k, tsa), nil, nil)
		r.record.Started = c.started.UTC().Format("2006-01-02T15:04:05Z")
		r.record.Finished = c.started.Add(time.Minute).UTC().Format("2006-01-02T15:04:05Z")
		var err error
		r.input.Record, err = r.record.Canonical()
		must(t, err)
		dir := newArchive(t, r, k)
		v := verify(t, dir, attest.Policy{Witness: timestampVerifier(t, tsa), Preregistered: true, PreregisteredBefore: true}, k.Public())
		found := checkNamed(t, v, "preregistration")
		if v.OK() != c.good || v.PreregisteredBefore != c.good || !strings.Contains(found.Evidence, c.evidence) || !strings.Contains(found.Limits, c.text) {
			t.Errorf("%s: found %+v\n%s", name, found, describe(v))
		}
		if !c.good {
			wantFault(t, v, "preregistration", fault.SigningTime, "preregistration.json")
			wantFault(t, v, "policy", fault.Policy, "record.json")
		}
		// Who trusts no authority has no time, and the bundle does not count.
		v = verify(t, dir, attest.Policy{}, k.Public())
		if found := checkNamed(t, v, "preregistration"); !v.OK() || v.Preregistered != "" || !strings.Contains(found.Evidence, "does not count") ||
			!strings.Contains(found.Limits, "no trusted time") {
			t.Errorf("%s, without an authority: found %+v\n%s", name, found, describe(v))
		}
	}
	// A bare signature is no trusted time.
	dir := newArchive(t, registeredRun(t, k, nil, nil), k)
	must(t, verify(t, dir, attest.Policy{Witness: timestampVerifier(t, tsa), Preregistered: true}, k.Public()).Err())
	wantFault(t, verify(t, dir, attest.Policy{Witness: timestampVerifier(t, tsa), PreregisteredBefore: true}, k.Public()), "policy", fault.Policy, "record.json")
}
