package sigstore_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/attest/sigstore"
	"github.com/benchpin/benchpin/pkg/attest/sigstore/sigstoretest"
)

// openssl runs the program in a folder. A test without it fails where it must be there.
func openssl(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("openssl")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("openssl is not installed")
		}
		t.Skip("openssl is not installed")
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func write(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
}

// An authority that openssl is, and an answer that openssl verifies: what is asked and kept is RFC 3161, and no dialect of ours.
func TestOpenSSL(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		if out, err := openssl(t, dir, args...); err != nil {
			t.Fatalf("openssl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	write(t, dir, "ext.cnf", []byte("keyUsage=critical,digitalSignature\nextendedKeyUsage=critical,timeStamping\n"))
	write(t, dir, "tsa.cnf", []byte(`[tsa]
default_tsa = authority
[authority]
serial = serial
signer_cert = leaf.pem
signer_key = leaf.key
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
ordering = yes
tsa_name = no
ess_cert_id_alg = sha256
`))
	write(t, dir, "serial", []byte("01\n"))
	run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "root.key", "-out", "root.pem", "-days", "2", "-subj", "/O=peer/CN=root",
		"-addext", "keyUsage=critical,keyCertSign")
	run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", "/O=peer/CN=tsa")
	run("x509", "-req", "-in", "leaf.csr", "-CA", "root.pem", "-CAkey", "root.key", "-CAcreateserial", "-days", "1", "-extfile", "ext.cnf", "-out", "leaf.pem")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ask, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "ask.tsq"), ask, 0o600)
		}
		if err == nil {
			_, err = openssl(t, dir, "ts", "-reply", "-config", "tsa.cnf", "-queryfile", "ask.tsq", "-out", "reply.tsr")
		}
		var reply []byte
		if err == nil {
			reply, err = os.ReadFile(filepath.Join(dir, "reply.tsr"))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/timestamp-reply")
		_, _ = w.Write(reply)
	}))
	defer server.Close()
	roots, err := os.ReadFile(filepath.Join(dir, "root.pem"))
	must(t, err)
	v, err := sigstore.NewVerifier(sigstore.Options{TimestampRoots: roots})
	must(t, err)
	message := []byte("benchpin transcript timestamp v1\nroot blake3:00\n")
	answer, err := sigstore.Timestamp(context.Background(), server.URL, message, v, nil)
	must(t, err)
	at, err := v.Timestamped(answer, message)
	if err != nil || time.Since(at.Time) > time.Minute || !strings.Contains(at.By, "CN=root") {
		t.Errorf("%+v, %v", at, err)
	}
	// A bundle too.
	k := newKey(t)
	public := k.Public()
	raw, err := (&sigstore.Stamped{Signer: k, URLs: []string{server.URL}, Verifier: v}).SignPayload(context.Background(), kind, []byte(payload))
	must(t, err)
	if got, err := v.Examine(raw, &public); err != nil || len(got.Times) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	// And back: what is kept of an authority here is verified by openssl, by the commands of docs/attestation.md.
	tsa := sigstoretest.NewTimestamps(t)
	answer, err = sigstore.Timestamp(context.Background(), tsa.URL, message, rootsOf(t, tsa), nil)
	must(t, err)
	write(t, dir, "transcript.tsr", answer)
	write(t, dir, "message", message)
	write(t, dir, "other", []byte("x"))
	write(t, dir, "authority.pem", pemOf(tsa.Root.Raw))
	write(t, dir, "chain.pem", pemOf(tsa.Intermediate.Raw))
	verify := []string{"ts", "-verify", "-in", "transcript.tsr", "-CAfile", "authority.pem", "-untrusted", "chain.pem", "-data"}
	if out, err := openssl(t, dir, append(verify, "message")...); err != nil || !strings.Contains(out, "Verification: OK") {
		t.Errorf("openssl does not verify it: %v\n%s", err, out)
	}
	if out, err := openssl(t, dir, append(verify, "other")...); err == nil {
		t.Errorf("openssl verifies another message: %s", out)
	}
}
