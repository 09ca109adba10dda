package attest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
)

// Every command that is given makes the digest beside it, with the tools of others.
func TestOrigins(t *testing.T) {
	for _, tool := range []string{"sha256sum", "b3sum", "jq", "openssl", "base64"} {
		if _, err := exec.LookPath(tool); err != nil {
			missingPeer(t, false, "SKIPPED: "+tool+" is not installed: "+err.Error())
		}
	}
	k := newKey(t, attest.ECDSAP256)
	dir := newArchive(t, newRun(t, nil), k)
	must(t, os.WriteFile(filepath.Join(dir, "KEY.pub"), k.Public().PEM(), 0o600))
	v, err := attest.VerifyArchive(t.Context(), dir, []attest.PublicKey{k.Public()}, attest.Policy{})
	must(t, err)
	defer v.Close()
	names, commands := map[string]bool{}, 0
	for _, o := range v.Origins() {
		names[o.Name] = true
		if o.Hashed == "" || o.Digest == "" {
			t.Errorf("%+v says nothing", o)
		}
		if o.Command == "" {
			continue
		}
		commands++
		cmd := exec.Command("sh", "-c", o.Command)
		cmd.Dir = dir
		out, err := cmd.Output()
		found, _, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
		if _, digits, ok := strings.Cut(o.Digest, ":"); err != nil || (ok && found != digits) || (!ok && found != o.Digest) {
			t.Errorf("%s: %s gives %s (%v), expected %s", o.Name, o.Command, out, err, o.Digest)
		}
	}
	for _, name := range []string{"archive", attest.TitleRecord, attest.TitleManifest, attest.TitleEntries, "steps.parquet", "data set's root", "workload",
		"transcript's root", "program", "bundle 1", "bundle 3", "key"} {
		if !names[name] {
			t.Errorf("the origin of %s is not told", name)
		}
	}
	if commands < 15 {
		t.Errorf("only %d commands were tried", commands)
	}
}
