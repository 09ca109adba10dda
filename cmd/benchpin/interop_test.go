package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/attest"
)

// program finds a program on PATH or where scripts/deps.sh puts what it builds.
func program(t *testing.T, name string) string {
	t.Helper()
	built, err := filepath.Abs("../../build/peers/bin/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(built); err == nil {
		return built
	}
	found, _ := exec.LookPath(name)
	return found
}

// lacking skips a test whose program is missing and says what that leaves untested. cosign takes long to build and is brought by scripts/deps.sh
// in the slow suite only, so that only there CI insists on it.
func lacking(t *testing.T, name string, slow bool) {
	t.Helper()
	why := name + " is neither on PATH nor in build/peers/bin (scripts/deps.sh brings it): archives were NOT tried with it"
	if os.Getenv("CI") == "true" && (!slow || os.Getenv("BENCHPIN_LONG") == "1") {
		t.Fatal(why)
	}
	t.Skip(why)
}

// startProgram runs a registry program that reads the configuration of distribution, and returns its address.
func startProgram(t *testing.T, path string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\n", filepath.Join(dir, "data"), address)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "serve", config)
	cmd.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for range 600 {
		if answer, err := http.Get("http://" + address + "/v2/"); err == nil {
			answer.Body.Close()
			return address
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s does not answer:\n%s", path, log.String())
	return ""
}

// tool runs another program and returns what it printed.
func tool(t *testing.T, good bool, path string, args ...string) string {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "COSIGN_PASSWORD=")
	out, err := cmd.CombinedOutput()
	if (err == nil) != good {
		t.Fatalf("%s %q: %v\n%s", filepath.Base(path), args, err, out)
	}
	return string(out)
}

// Archives go through real registries, and other programs find, pull and verify what was pushed; what they attest is verified here.
func TestInterop(t *testing.T) {
	peers := map[string]string{}
	for _, name := range []string{"docker-registry", "registry", "oras", "cosign"} {
		peers[name] = program(t, name)
	}
	registries := map[string]func(t *testing.T) string{
		"in process": func(t *testing.T) string { return newRegistry(t.Cleanup) },
		"docker-registry": func(t *testing.T) string {
			if peers["docker-registry"] == "" {
				lacking(t, "docker-registry", false)
			}
			return startProgram(t, peers["docker-registry"])
		},
		"distribution v3": func(t *testing.T) string {
			if peers["registry"] == "" {
				lacking(t, "registry (distribution v3)", false)
			}
			return startProgram(t, peers["registry"])
		},
	}
	t.Chdir(interopArchive(t))
	for name, start := range registries {
		t.Run(name, func(t *testing.T) {
			ref := start(t) + "/results/small:v1"
			runJSON(t, "push a "+ref, exitDone)
			runJSON(t, "push a "+ref, exitDone)
			if v := verdictOf(t, ref+" --key k.pub", exitDone); len(v.Attestations) != 3 {
				t.Errorf("%+v", v.Attestations)
			}
			t.Run("oras", func(t *testing.T) { withORAS(t, peers["oras"], ref) })
			t.Run("oras attach", func(t *testing.T) { withAttachment(t, peers["oras"], ref) })
			t.Run("cosign", func(t *testing.T) { withCosign(t, peers["cosign"], ref) })
		})
	}
}

// interopArchive makes a folder with an archive "a", its key "k" and a reviewer's key "rev".
func interopArchive(t *testing.T) string {
	t.Helper()
	t.Setenv("BENCHPIN_PASSWORD", "")
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("small.yaml", []byte(`framework: pytorch
dataset: {format: npz, num_files_train: 4, record_length_bytes: 1024}
reader: {data_loader: pytorch, batch_size: 1}
train: {epochs: 1, computation_time: 0.001}
metric: {au: 0.01}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"data generate small.yaml --data d", "run small.yaml --data d --out r", "key generate --out k", "key generate --out rev",
		"attest r --manifest d.manifest.json --archive a --key k.key"} {
		runJSON(t, line, exitDone)
	}
	return dir
}

func verdictOf(t *testing.T, line string, code int) verdict {
	t.Helper()
	var v verdict
	if err := json.Unmarshal(runJSON(t, "verify "+line+" --json", code), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func withORAS(t *testing.T, oras, ref string) {
	if oras == "" {
		lacking(t, "oras", false)
	}
	var found struct {
		Digest    string `json:"digest"`
		Referrers []struct {
			ArtifactType string            `json:"artifactType"`
			Annotations  map[string]string `json:"annotations"`
		} `json:"referrers"`
	}
	if err := json.Unmarshal([]byte(tool(t, true, oras, "discover", "--plain-http", "--format", "json", ref)), &found); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, r := range found.Referrers {
		kinds[r.Annotations["dev.sigstore.bundle.predicateType"]] = true
	}
	if len(found.Referrers) < 3 || !kinds[attest.ResultType] || !kinds[attest.ProvenanceType] || !kinds[attest.TestResultType] {
		t.Errorf("oras discovers %+v", found)
	}
	tool(t, true, oras, "pull", "--plain-http", "-o", "by-oras", ref)
	for _, name := range []string{"record.json", "steps.parquet"} {
		pulled, err := os.ReadFile(filepath.Join("by-oras", name))
		if err != nil {
			t.Fatal(err)
		}
		if original, err := os.ReadFile(filepath.Join("r", name)); err != nil || string(original) != string(pulled) {
			t.Errorf("%s: oras pulled something else (%v)", name, err)
		}
	}
}

// withAttachment attaches something that is no attestation, which is named, left where it is, and spoils nothing.
func withAttachment(t *testing.T, oras, ref string) {
	if oras == "" {
		lacking(t, "oras", false)
	}
	if err := os.WriteFile("sbom.json", []byte(`{"spdxVersion":"SPDX-2.3"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	tool(t, true, oras, "attach", "--plain-http", "--artifact-type", "application/spdx+json", ref, "sbom.json")
	var listed referrerList
	if err := json.Unmarshal(runJSON(t, "referrers "+ref+" --json", exitDone), &listed); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, r := range listed.Referrers {
		found = found || (r.ArtifactType == "application/spdx+json" && r.Other != "")
	}
	if !found {
		t.Errorf("what oras attached is not listed: %+v", listed)
	}
	verdictOf(t, ref+" --key k.pub", exitDone)
}

func withCosign(t *testing.T, cosign, ref string) {
	if cosign == "" {
		lacking(t, "cosign", true)
	}
	for _, kind := range []string{attest.ResultType, attest.TestResultType, attest.ProvenanceType} {
		out := tool(t, true, cosign, "verify-attestation", "--key", "k.pub", "--type", kind, "--insecure-ignore-tlog=true", ref)
		if !strings.Contains(out, `"payload"`) {
			t.Errorf("cosign verifies %s and shows no statement:\n%s", kind, out)
		}
	}
	tool(t, false, cosign, "verify-attestation", "--key", "rev.pub", "--type", attest.ResultType, "--insecure-ignore-tlog=true", ref)
	crateWithCosign(t, cosign, ref)

	// A reviewer attests with cosign. We find that, know the key, and count it for nothing: what it says we cannot compute.
	if err := os.WriteFile("review.json", []byte(`{"reviewed":true}`), 0o644); err != nil {
		t.Fatal(err)
	}
	const review = "https://example.com/review/v1"
	tool(t, true, cosign, "attest", "--key", "rev.key", "--type", review, "--predicate", "review.json", "--tlog-upload=false", "--use-signing-config=false", "--yes", ref)
	status := func(v verdict) attest.AttestationStatus {
		for _, one := range v.Attestations {
			if one.PredicateType == review {
				return one.Status
			}
		}
		return "absent"
	}
	if v := verdictOf(t, ref+" --key k.pub --key rev.pub", exitDone); status(v) != attest.Other || v.Verdict != verdictHolds {
		t.Errorf("with the reviewer's key: %+v", v.Attestations)
	}
	if v := verdictOf(t, ref+" --key k.pub", exitDone); status(v) != attest.NotCounted || v.Verdict != verdictHolds {
		t.Errorf("without the reviewer's key: %+v", v.Attestations)
	}
	verdictOf(t, ref+" --key rev.pub", exitVerify)
	// It travels with the archive.
	to := filepath.Join(t.TempDir(), "pulled")
	runJSON(t, "pull "+ref+" --archive "+to, exitDone)
	if v := verdictOf(t, to+" --key k.pub --key rev.pub", exitDone); status(v) != attest.Other {
		t.Errorf("pulled: %+v", v.Attestations)
	}
}

// crateWithCosign verifies the attestations of an exported crate as docs/export.md says that one can.
func crateWithCosign(t *testing.T, cosign, ref string) {
	t.Helper()
	crate := filepath.Join(t.TempDir(), "crate")
	runJSON(t, "export ro-crate "+ref+" --out "+crate+" --license https://example.com/l --published 2026-11-30", exitDone)
	bundles, err := filepath.Glob(filepath.Join(crate, "attestations", "*.sigstore.json"))
	if err != nil || len(bundles) < 3 {
		t.Fatalf("%v: %v", bundles, err)
	}
	for _, bundle := range bundles {
		raw, err := os.ReadFile(bundle)
		if err != nil {
			t.Fatal(err)
		}
		info, err := attest.DescribeBundle(raw)
		if err != nil {
			t.Fatal(err)
		}
		tool(t, true, cosign, "verify-blob-attestation", "--bundle", bundle, "--key", "k.pub", "--type", info.PredicateType, "--insecure-ignore-tlog", filepath.Join(crate, "record.json"))
		tool(t, false, cosign, "verify-blob-attestation", "--bundle", bundle, "--key", "k.pub", "--type", info.PredicateType, "--insecure-ignore-tlog", filepath.Join(crate, "steps.parquet"))
	}
}
