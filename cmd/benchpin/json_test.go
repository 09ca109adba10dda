package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/schemas"
)

// TestJSONDocuments runs every command that has --json and checks what it prints against its definition: exactly one document, on
// success and when something differs.
func TestJSONDocuments(t *testing.T) {
	t.Chdir(t.TempDir())
	const small = `
framework: pytorch
dataset: {format: npz, num_files_train: 4, record_length_bytes: 1024}
reader: {data_loader: pytorch, batch_size: 1}
train: {epochs: 1, computation_time: 0.001}
metric: {au: 0.01}
`
	if err := os.WriteFile("small.yaml", []byte(small), 0o644); err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	files, err := fs.ReadDir(schemas.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	const base = "https://github.com/benchpin/benchpin/schemas/"
	for _, f := range files {
		b, err := schemas.FS.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if err := compiler.AddResource(base+f.Name(), bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
	}
	host := newRegistry(t.Cleanup)
	const cli, record = base + "cli-v1.schema.json#/$defs/", base + "record-v1.schema.json"
	steps := []struct {
		line, schema string
		code         int
	}{
		{"version --json", cli + "version", exitDone},
		{"workload list --json", cli + "workload-list", exitDone},
		{"workload check small.yaml --json", cli + "workload-check", exitDone},
		{"plan small.yaml --json", cli + "plan", exitDone},
		{"data generate small.yaml --data d --json", cli + "data", exitDone},
		{"data pin --data d --manifest pinned.json --json", cli + "data", exitDone},
		{"data prove train/img_0_of_4.npz --data d", base + "proof-v1.schema.json", exitDone},
		{"data prove train/img_0_of_4.npz --data d --range 100:900", base + "proof-v1.schema.json", exitDone},
		{"data prove train/img_0_of_4.npz --data d --range 100:900 --out proof.json", "", exitDone},
		{"data check-proof proof.json --root ROOT --json", cli + "proof", exitDone},
		{"data check-proof proof.json --root ROOT --file d/train/img_0_of_4.npz --json", cli + "proof", exitDone},
		{"data verify --data d --json", cli + "data", exitDone},
		{"data diff d.manifest.json pinned.json --json", cli + "diff", exitDone},
		{"data generate small.yaml --data e --seed 2 --json", cli + "data", exitDone},
		{"data diff d.manifest.json e.manifest.json --json", cli + "diff", exitDiffers},
		{"data diff d e.manifest.json --json", cli + "diff", exitDiffers},
		{"data verify --data d --metadata-only --json", cli + "data", exitDone},
		{"data pin --data e --manifest silver.json --exclude *.tmp --derived-from pinned.json --by x --json", cli + "data", exitDone},
		{"data lineage silver.json --json", cli + "lineage", exitDone},
		{"data verify --data d --manifest e.manifest.json --json", cli + "data", exitVerify},
		{"data certify --data d --out c.json --json", base + "certificate-v1.schema.json", exitDone},
		{"data certify --data d --sample-bytes 1 --json", base + "certificate-v1.schema.json", exitDone},
		{"run small.yaml --data d --out r --json", record, exitDone},
		{"run small.yaml --data d --out slow --json --set benchpin.thresholds.samples_per_second=1e12", record, exitThreshold},
		{"report r --json", record, exitDone},
		{"compare r r --json", cli + "compare", exitDone},
		{"compare r slow --json", cli + "compare", exitDiffers},
		{"compare r slow r --anyway --json", cli + "compare", exitDone},
		{"report r --format json", cli + "report", exitDone},
		{"report r slow --format json", cli + "report", exitDone},
		{"explain r --json", cli + "explain-list", exitDone},
		{"explain r au --json", cli + "explain", exitDone},
		{"explain r dlio.train_au_percentage --json", cli + "explain", exitDone},
		{"explain r au_met --json", cli + "explain", exitDone},
		{"transcript expected small.yaml --json", cli + "transcript-expected", exitDone},
		{"transcript check r --json", cli + "transcript-check", exitDone},
		{"run small.yaml --data d --out hashed --verify inline --json", record, exitDone},
		{"transcript check hashed --manifest d.manifest.json --recompute 2 --json", cli + "transcript-check", exitDone},
		{"key generate --out k", "", exitDone},
		{"attest r --manifest d.manifest.json --archive a --key k.key --json", cli + "attest", exitDone},
		{"preregister small.yaml --manifest d.manifest.json --out bar.json --key k.key --json", cli + "preregistration", exitDone},
		{"verify a --key k.pub --json", cli + "verdict", exitDone},
		{"verify a --key k.pub --explain --json", cli + "verdict", exitDone},
		{"verify a --key k.pub --attest k.key --attach --json", cli + "verdict", exitDone},
		{"verify a --key k.pub --require-thresholds --signers 1 --json", cli + "verdict", exitDone},
		{"verify a --key other.pub --json", cli + "verdict", exitVerify},
		{"verify a --key k.pub --figure au>=101 --attest k.key --attest-failed --attach --json", cli + "verdict", exitVerify},
		{"verify a --key k.pub --json", cli + "verdict", exitDone},
		{"replay a --key k.pub --dir again --json", cli + "replay", exitDone},
		{"replay a --key k.pub --dir again --data d --sign k.key --attach --json", cli + "replay", exitDone},
		{"replay a --key k.pub --data e --dir again --data-only --json", cli + "replay", exitDiffers},
		{"replay a --key other.pub --schedule-only --json", cli + "replay", exitVerify},
		{"verify a --key k.pub --json", cli + "verdict", exitDone},
		{"export ro-crate a --out crate --license https://example.com/l --published 2026-11-30 --json", cli + "export-ro-crate", exitDone},
		{"export model-signing a --key k.key --out d.sig --json", cli + "export-model-signing", exitDone},
		{"push a REGISTRY/results/small:v1 --json", cli + "push", exitDone},
		{"pull REGISTRY/results/small:v1 --archive pulled --json", cli + "pull", exitDone},
		{"verify REGISTRY/results/small:v1 --key k.pub --json", cli + "verdict", exitDone},
		{"attest r --manifest d.manifest.json --archive by-other --key other.key --json", cli + "attest", exitDone},
		{"attach REGISTRY/results/small:v1 BUNDLE --json", cli + "attach", exitDone},
		{"attach a BUNDLE --json", cli + "attach", exitDone},
		{"referrers REGISTRY/results/small:v1 --json", cli + "referrers", exitDone},
		{"verify a --key k.pub --json", cli + "verdict", exitDone},
		{"pipeline small.yaml --dir p --json", record, exitDone},
		{"audit challenge p/archive --from x --count 2", base + "audit-challenge-v1.schema.json", exitDone},
		{"audit challenge p/archive --from x --count 2 --out challenge.json", "", exitDone},
		{"audit answer challenge.json --data p/data --manifest p/manifest.json --out answer.jsonl --json", cli + "audit-answer", exitDone},
		{"audit check answer.jsonl --challenge challenge.json --manifest p/archive --json", cli + "audit-check", exitDone},
		{"journal show p --json", cli + "journal", exitDone},
		{"journal check p p/archive --json", cli + "journal", exitDone},
		{"journal check p a --json", cli + "journal", exitVerify},
	}
	for _, s := range steps {
		t.Run(s.line, func(t *testing.T) {
			if strings.HasPrefix(s.line, "verify a --key other.pub") {
				runJSON(t, "key generate --out other", exitDone)
			}
			if strings.Contains(s.line, "ROOT") {
				h, _, err := manifest.ReadHeader("d.manifest.json")
				if err != nil {
					t.Fatal(err)
				}
				s.line = strings.Replace(s.line, "ROOT", h.Root.String(), 1)
			}
			s.line = strings.Replace(s.line, "REGISTRY", host, 1)
			if strings.Contains(s.line, "BUNDLE") {
				if err := writeBundles("by-other", "bundle"); err != nil {
					t.Fatal(err)
				}
				s.line = strings.Replace(s.line, "BUNDLE", "bundle.0", 1)
			}
			out := runJSON(t, s.line, s.code)
			if s.schema == "" {
				return
			}
			decoder := json.NewDecoder(bytes.NewReader(out))
			decoder.UseNumber()
			var doc any
			if err := decoder.Decode(&doc); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if decoder.More() {
				t.Fatalf("more than one document:\n%s", out)
			}
			schema, err := compiler.Compile(s.schema)
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(doc); err != nil {
				t.Errorf("%#v\n%s", err, out)
			}
		})
	}
}

func runJSON(t *testing.T, line string, code int) []byte {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := newApp()
	a.stdout, a.stderr, a.terminal, a.color = &stdout, &stderr, false, false
	a.lookupenv = func(name string) (string, bool) { return "", name == passwordVariable }
	if got := a.run(context.Background(), strings.Fields(line)); got != code {
		t.Fatalf("%s: expected exit code %d, found %d\n%s", line, code, got, stderr.String())
	}
	return stdout.Bytes()
}
