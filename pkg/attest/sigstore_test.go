package attest_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	sigstoreverify "github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// sigstoreGo asks sigstore-go about a bundle: its form, its signature by the key, and, with an artifact, that it is about that. An
// expired key is one whose span of validity is over.
func sigstoreGo(t testing.TB, raw []byte, key attest.PublicKey, artifact []byte, expired bool) error {
	t.Helper()
	b := &bundle.Bundle{}
	if err := b.UnmarshalJSON(raw); err != nil {
		return err
	}
	block, _ := pem.Decode(key.PEM())
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	must(t, err)
	var v signature.Verifier
	switch k := parsed.(type) {
	case *ecdsa.PublicKey:
		v, err = signature.LoadDefaultVerifier(k)
	case ed25519.PublicKey:
		v, err = signature.LoadED25519Verifier(k)
	case *rsa.PublicKey:
		v, err = signature.LoadDefaultVerifier(k)
	}
	must(t, err)
	until := time.Time{}
	if expired {
		until = time.Unix(2, 0)
	}
	expiring := root.NewExpiringKey(v, time.Unix(1, 0), until)
	material := root.NewTrustedPublicKeyMaterial(func(hint string) (root.TimeConstrainedVerifier, error) { return expiring, nil })
	verifier, err := sigstoreverify.NewVerifier(material, sigstoreverify.WithNoObserverTimestamps())
	must(t, err)
	about := sigstoreverify.WithoutArtifactUnsafe()
	if artifact != nil {
		about = sigstoreverify.WithArtifact(bytes.NewReader(artifact))
	}
	_, err = verifier.Verify(b, sigstoreverify.NewPolicy(about, sigstoreverify.WithKey()))
	return err
}

// archiveParts returns the bundles of an archive and the bytes of its three subjects.
func archiveParts(t testing.TB, dir string) (bundles map[string][]byte, subjects [][]byte) {
	t.Helper()
	l, err := oci.Read(context.Background(), dir)
	must(t, err)
	defer l.Close()
	must(t, l.Err())
	bundles = map[string][]byte{}
	for _, b := range l.Bundles {
		raw, err := b.Blob.Bytes(1 << 20)
		must(t, err)
		bundles[b.PredicateType] = raw
	}
	manifest, err := os.ReadFile(filepath.Join(dir, "blobs", "sha256", l.Manifest.Hex()))
	must(t, err)
	subjects = [][]byte{manifest}
	for _, title := range []string{attest.TitleRecord, attest.TitleManifest} {
		blob := l.Layer(title).Blob
		raw, err := io.ReadAll(io.NewSectionReader(blob, 0, blob.Size))
		must(t, err)
		subjects = append(subjects, raw)
	}
	return bundles, subjects
}

// The real sigstore-go must accept every bundle that we make, for each subject, and refuse it for anything else.
func TestSigstoreGoVerifiesOurBundles(t *testing.T) {
	for _, kind := range kinds {
		k := newKey(t, kind)
		bundles, subjects := archiveParts(t, newArchive(t, newRun(t, nil), k))
		if len(bundles) != 3 {
			t.Fatalf("%d bundles", len(bundles))
		}
		for predicate, raw := range bundles {
			for i, subject := range subjects {
				if err := sigstoreGo(t, raw, k.Public(), subject, false); err != nil {
					t.Errorf("%s, %s, subject %d: %v", kind, predicate, i, err)
				}
			}
			if err := sigstoreGo(t, raw, k.Public(), []byte("something else"), false); err == nil {
				t.Errorf("%s, %s: accepted for another artifact", kind, predicate)
			}
			if err := sigstoreGo(t, raw, newKey(t, kind).Public(), subjects[0], false); err == nil {
				t.Errorf("%s, %s: accepted for another key", kind, predicate)
			}
		}
	}
}

// The stock cosign must accept them too. It is large and slow to build, so that it is asked only where it is installed.
func TestCosignVerifiesOurBundles(t *testing.T) {
	cosign, err := filepath.Abs("../../build/peers/bin/cosign") // where scripts/deps.sh puts it in the slow suite
	if _, missing := os.Stat(cosign); missing != nil {
		cosign, err = exec.LookPath("cosign")
	}
	if err != nil {
		missingPeer(t, true, "cosign is neither on PATH nor in build/peers/bin: that the stock command accepts our bundles was NOT tested (sigstore-go was)")
	}
	for _, kind := range kinds {
		k := newKey(t, kind)
		bundles, subjects := archiveParts(t, newArchive(t, newRun(t, nil), k))
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "k.pub"), k.Public().PEM(), 0o644))
		must(t, os.WriteFile(filepath.Join(dir, "subject"), subjects[0], 0o644))
		must(t, os.WriteFile(filepath.Join(dir, "other"), []byte("other"), 0o644))
		for predicate, raw := range bundles {
			must(t, os.WriteFile(filepath.Join(dir, "bundle"), raw, 0o644))
			for file, good := range map[string]bool{"subject": true, "other": false} {
				out, err := exec.Command(cosign, "verify-blob-attestation", "--bundle", filepath.Join(dir, "bundle"), "--key",
					filepath.Join(dir, "k.pub"), "--type", predicate, "--insecure-ignore-tlog", filepath.Join(dir, file)).CombinedOutput()
				// Given a key, cosign hashes with SHA-256 whatever the curve (docs/attestation.md, "Keys").
				if (err == nil) != (good && kind != attest.ECDSAP384) {
					t.Errorf("%s, %s, %s: %v\n%s", kind, predicate, file, err, out)
				}
			}
		}
	}
}
