package export

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/manifest"
)

func newKey(t *testing.T, kind attest.KeyKind) *attest.PrivateKey {
	t.Helper()
	key, err := attest.GenerateKey(kind)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// openModel does what the format's own program does with a signature: the key by its hint, the signature, the statement, and its one subject as the
// digest over all resources.
func openModel(t *testing.T, bundle []byte, public attest.PublicKey) modelStatement {
	t.Helper()
	var b struct {
		MediaType            string `json:"mediaType"`
		VerificationMaterial struct {
			PublicKey struct {
				Hint string `json:"hint"`
			} `json:"publicKey"`
		} `json:"verificationMaterial"`
		Envelope struct {
			Payload, PayloadType string
			Signatures           []struct{ Sig string }
		} `json:"dsseEnvelope"`
	}
	if err := json.Unmarshal(bundle, &b); err != nil {
		t.Fatal(err)
	}
	hint := sha256.Sum256(public.PEM())
	if b.MediaType != "application/vnd.dev.sigstore.bundle.v0.3+json" || b.VerificationMaterial.PublicKey.Hint != hex.EncodeToString(hint[:]) ||
		b.Envelope.PayloadType != "application/vnd.in-toto+json" || len(b.Envelope.Signatures) != 1 {
		t.Fatalf("bundle: %+v", b)
	}
	payload, err := base64.StdEncoding.DecodeString(b.Envelope.Payload)
	must(t, err)
	sig, err := base64.StdEncoding.DecodeString(b.Envelope.Signatures[0].Sig)
	must(t, err)
	block, rest := pem.Decode(public.PEM())
	if block == nil || len(rest) > 0 {
		t.Fatal("no PEM")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	must(t, err)
	signed := sha256.Sum256(fmt.Appendf(nil, "DSSEv1 28 application/vnd.in-toto+json %d %s", len(payload), payload))
	if !ecdsa.VerifyASN1(key.(*ecdsa.PublicKey), signed[:], sig) {
		t.Fatal("the signature does not verify")
	}
	var s modelStatement
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.DisallowUnknownFields()
	must(t, decoder.Decode(&s))
	all := sha256.New()
	for _, r := range s.Predicate.Resources {
		raw, err := hex.DecodeString(r.Digest)
		must(t, err)
		all.Write(raw)
	}
	if s.Type != "https://in-toto.io/Statement/v1" || s.PredicateType != "https://model_signing/signature/v1.0" || len(s.Subject) != 1 ||
		s.Subject[0].Digest.SHA256 != hex.EncodeToString(all.Sum(nil)) {
		t.Fatalf("statement: %+v", s)
	}
	if got := s.Predicate.Serialization; got != (modelSerialization{Method: "files", HashType: "blake3"}) {
		t.Fatalf("serialization: %+v", got)
	}
	return s
}

// TestModelSigning signs real files, and compares every one with what b3sum says and the order with that of Python's paths, which the format sorts by.
func TestModelSigning(t *testing.T) {
	data := t.TempDir()
	names := []string{"a.b", "a/b", "a/b.c", "a/c/d", "a-b/x", "ä", "z z"}
	var entries []manifest.Entry
	for i, name := range []string{"a-b/x", "a.b", "a/b", "a/b.c", "a/c/d", "z z", "ä"} { // as a manifest sorts them
		content := bytes.Repeat([]byte{byte(i)}, i*1000)
		write(t, filepath.Join(data, name), content)
		entries = append(entries, manifest.Entry{Path: name, Size: int64(len(content)), Digest: blake3.Sum256(content)})
	}
	s := open(t, saveManifest(t, manifest.Meta{}, entries...), "")
	key := newKey(t, attest.ECDSAP256)
	bundle, info, err := ModelSigning(t.Context(), s, "mine", key)
	must(t, err)
	statement := openModel(t, bundle, key.Public())
	if statement.Subject[0].Name != "mine" || info.Files != len(names) || info.Digest != "sha256:"+statement.Subject[0].Digest.SHA256 {
		t.Errorf("%+v, said are %+v", statement.Subject, info)
	}
	var signed strings.Builder
	for _, r := range statement.Predicate.Resources {
		fmt.Fprintf(&signed, "%s  %s\n", r.Digest, r.Name)
	}
	python, err := exec.LookPath("python3")
	b3sum, err2 := exec.LookPath("b3sum")
	if err = errors.Join(err, err2); err != nil {
		needPeer(t, err.Error())
	}
	const walk = `
import pathlib, subprocess, sys
root = pathlib.Path(sys.argv[1])
for p in sorted(pathlib.PurePosixPath(f.relative_to(root)) for f in root.glob("**/*") if f.is_file()):
    print(subprocess.run([sys.argv[2], "--no-names", root / p], capture_output=True, text=True, check=True).stdout.strip() + "  " + str(p))
`
	cmd := exec.Command(python, "-c", walk, data, b3sum)
	cmd.Env = append(os.Environ(), "PYTHONIOENCODING=utf-8")
	out, err := cmd.Output()
	must(t, err)
	if string(out) != signed.String() {
		t.Errorf("the format's order and digests are\n%s\nsigned are\n%s", out, signed.String())
	}
}

// TestModelSigningRefuses: keys that the format's program does not verify with, and data sets that it would not see as they are.
func TestModelSigningRefuses(t *testing.T) {
	s := open(t, frozenArchive(t), "")
	if _, _, err := ModelSigning(t.Context(), s, "x", newKey(t, attest.Ed25519)); !errors.Is(err, attest.ErrKeyKind) {
		t.Errorf("Ed25519: %v", err)
	}
	if _, _, err := ModelSigning(t.Context(), s, "x", newKey(t, attest.ECDSAP384)); err != nil {
		t.Errorf("P-384: %v", err)
	}
	for _, name := range []string{".git/config", ".gitignore", ".github/x", ".gitattributes"} {
		hidden := open(t, saveManifest(t, manifest.Meta{}, manifest.Entry{Path: name}), "")
		if _, _, err := ModelSigning(t.Context(), hidden, "x", newKey(t, attest.ECDSAP256)); !errors.Is(err, ErrModelSigning) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	seen := open(t, saveManifest(t, manifest.Meta{}, manifest.Entry{Path: "a/.gitignore"}), "")
	if _, _, err := ModelSigning(t.Context(), seen, "x", newKey(t, attest.ECDSAP256)); err != nil {
		t.Errorf("a file of that name further down: %v", err)
	}
}

// TestModelSigningLimit: a signature of as many files as are signed is made, and of one more refused before any is read.
func TestModelSigningLimit(t *testing.T) {
	if os.Getenv("BENCHPIN_LONG") != "1" {
		t.Skip("SKIPPED: a manifest of a million files belongs to the slow suite (BENCHPIN_LONG=1)")
	}
	var entries []manifest.Entry
	for i := range MaxModelFiles + 1 {
		entries = append(entries, manifest.Entry{Path: fmt.Sprintf("f%08d", i)})
	}
	if _, _, err := modelPayload(t.Context(), inMemory(t, manifest.Meta{}, entries...), "x"); !errors.Is(err, ErrModelSigning) {
		t.Errorf("one above the limit: %v", err)
	}
	if _, info, err := modelPayload(t.Context(), inMemory(t, manifest.Meta{}, entries[:MaxModelFiles]...), "x"); err != nil || info.Files != MaxModelFiles {
		t.Errorf("at the limit: %+v %v", info, err)
	}
}
