package attest_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
)

func variables(all map[string]string) attest.KeySource {
	return attest.KeySource{Getenv: func(name string) (string, bool) { v, ok := all[name]; return v, ok }, Password: password("pw")}
}

func publicPEM(t testing.TB, key crypto.PublicKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// Both halves of a key may stand in environment variables, under the rules of key files.
func TestKeysInTheEnvironment(t *testing.T) {
	ctx := context.Background()
	for _, kind := range kinds {
		k := newKey(t, kind)
		sealed, err := k.PrivatePEM([]byte("pw"))
		must(t, err)
		from := variables(map[string]string{"SECRET": string(sealed), "PUBLIC": string(k.Public().PEM()), "EMPTY": "", "TWO": string(sealed) + string(sealed)})
		private, err := attest.LoadSigner(ctx, "env://SECRET", from)
		must(t, err)
		public, err := attest.LoadVerifier(ctx, "env://PUBLIC", from)
		must(t, err)
		if private.Public().Hint() != k.Public().Hint() || public.Hint() != k.Public().Hint() {
			t.Errorf("%s: another key came back", kind)
		}
		for _, ref := range []string{"env://EMPTY", "env://ABSENT", "env://", "env://TWO", "env://PUBLIC"} {
			if _, err := attest.LoadSigner(ctx, ref, from); !errors.Is(err, attest.ErrKeyFile) || !strings.Contains(err.Error(), strings.TrimPrefix(ref, "env://")) {
				t.Errorf("private %s: %v", ref, err)
			}
		}
		for _, ref := range []string{"env://EMPTY", "env://ABSENT", "env://SECRET"} {
			if _, err := attest.LoadVerifier(ctx, ref, from); !errors.Is(err, attest.ErrKeyFile) {
				t.Errorf("public %s: %v", ref, err)
			}
		}
	}
	if _, err := attest.LoadVerifier(ctx, "env://PUBLIC", attest.KeySource{}); !errors.Is(err, attest.ErrKeyFile) {
		t.Errorf("no environment: %v", err)
	}
}

// program builds a plug-in that follows Sigstore's protocol for a key file, and puts it on PATH as sigstore-kms-filed.
func program(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "sigstore-kms-filed"), "./testdata/keyprogram").CombinedOutput()
	if err != nil {
		t.Fatalf("build the plug-in: %v\n%s", err, out)
	}
	t.Setenv("PATH", dir)
}

// A key that a program keeps signs what verifies with the public key, for us and for sigstore-go.
func TestKeysThatAProgramKeeps(t *testing.T) {
	program(t)
	ctx := context.Background()
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	rsaFile := filepath.Join(t.TempDir(), "rsa.pem")
	must(t, os.WriteFile(rsaFile, pkcs8PEM(t, weak), 0o600))
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384()} {
		secret, err := ecdsa.GenerateKey(curve, rand.Reader)
		must(t, err)
		file := filepath.Join(t.TempDir(), "k.pem")
		must(t, os.WriteFile(file, pkcs8PEM(t, secret), 0o600))
		k, err := attest.LoadSigner(ctx, "filed://"+file, attest.KeySource{})
		must(t, err)
		public, err := attest.LoadVerifier(ctx, "filed://"+file, attest.KeySource{})
		must(t, err)
		if !bytes.Equal(public.PEM(), publicPEM(t, secret.Public())) || k.Public().Hint() != public.Hint() {
			t.Errorf("%s: another key came back", public.Kind())
		}
		dir := newArchive(t, newRun(t, nil), k)
		if v := verify(t, dir, attest.Policy{}, public); !v.OK() {
			t.Errorf("%s:\n%s", public.Kind(), describe(v))
		}
		bundles, subjects := archiveParts(t, dir)
		for predicate, raw := range bundles {
			if err := sigstoreGo(t, raw, public, subjects[0], false); err != nil {
				t.Errorf("%s, %s: sigstore-go: %v", public.Kind(), predicate, err)
			}
		}
		if _, err := k.PrivatePEM([]byte("pw")); !errors.Is(err, attest.ErrKeyKind) {
			t.Errorf("a secret that a program keeps was written: %v", err)
		}
	}
	for ref, class := range map[string]error{
		"absent://k":                           attest.ErrKeyProgram, // no such program
		"filed://no-such-file":                 attest.ErrKeyProgram, // it says so
		"filed://lie:" + rsaFile:               attest.ErrKeyProgram, // an answer without what was asked for
		"filed://garbage:" + rsaFile:           attest.ErrKeyProgram,
		"filed://" + rsaFile:                   attest.ErrKeyKind,
		"../filed://k":                         attest.ErrKeyFile,
		"a/b://k":                              attest.ErrKeyFile,
		"Filed://k":                            attest.ErrKeyFile,
		"://k":                                 attest.ErrKeyFile,
		"filed://":                             attest.ErrKeyFile,
		"filed://" + strings.Repeat("k", 4096): attest.ErrKeyFile,
	} {
		if _, err := attest.LoadSigner(ctx, ref, attest.KeySource{}); !errors.Is(err, class) {
			t.Errorf("%.40s: expected %v, found %v", ref, class, err)
		}
	}
	// To verify with, RSA is taken from a program too.
	if k, err := attest.LoadVerifier(ctx, "filed://"+rsaFile, attest.KeySource{}); err != nil || k.Kind() != attest.RSA {
		t.Errorf("RSA to verify with: %v", err)
	}
	// A program that signs with another key than it shows is found out before anything is written.
	other, err := attest.LoadSigner(ctx, "filed://another:"+rsaFile, attest.KeySource{})
	must(t, err)
	if _, err := attest.WriteArchive(ctx, filepath.Join(t.TempDir(), "a"), newRun(t, nil).input, other); !errors.Is(err, fault.BadSignature) {
		t.Errorf("signature by another key: %v", err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := attest.LoadSigner(canceled, "filed://"+rsaFile, attest.KeySource{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// rsaBundle is a good bundle whose signature was replaced by one of an RSA key.
func rsaBundle(t testing.TB, good []byte, hint string, sign func(digest []byte) ([]byte, error)) []byte {
	t.Helper()
	var b map[string]any
	must(t, json.Unmarshal(good, &b))
	e := b["dsseEnvelope"].(map[string]any)
	payload, err := base64.StdEncoding.DecodeString(e["payload"].(string))
	must(t, err)
	digest := sha256.Sum256(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(e["payloadType"].(string)), e["payloadType"], len(payload), payload))
	sig, err := sign(digest[:])
	must(t, err)
	e["signatures"].([]any)[0].(map[string]any)["sig"] = base64.StdEncoding.EncodeToString(sig)
	b["verificationMaterial"].(map[string]any)["publicKey"].(map[string]any)["hint"] = hint
	raw, err := json.Marshal(b)
	must(t, err)
	return raw
}

// RSA is verified with, by either of the two schemes that Sigstore uses, and for nothing else than what was signed.
func TestRSAVerifies(t *testing.T) {
	bundles, _ := archiveParts(t, newArchive(t, newRun(t, nil), newKey(t, attest.Ed25519)))
	good := bundles[attest.ResultType]
	for _, bits := range []int{2048, 3072, 4096} {
		secret, err := rsa.GenerateKey(rand.Reader, bits)
		must(t, err)
		public, err := attest.ParsePublic(publicPEM(t, secret.Public()))
		must(t, err)
		pkcs1 := func(d []byte) ([]byte, error) { return rsa.SignPKCS1v15(nil, secret, crypto.SHA256, d) }
		pss := func(d []byte) ([]byte, error) { return rsa.SignPSS(rand.Reader, secret, crypto.SHA256, d, nil) }
		for name, sign := range map[string]func([]byte) ([]byte, error){"PKCS #1 v1.5": pkcs1, "PSS": pss} {
			if _, err := attest.VerifyBundle(rsaBundle(t, good, public.Hint(), sign), []attest.PublicKey{public}); err != nil {
				t.Errorf("%d bits, %s: %v", bits, name, err)
			}
			flipped := func(d []byte) ([]byte, error) { d[0] ^= 1; return sign(d) }
			if _, err := attest.VerifyBundle(rsaBundle(t, good, public.Hint(), flipped), []attest.PublicKey{public}); !errors.Is(err, fault.BadSignature) {
				t.Errorf("%d bits, %s, another digest: %v", bits, name, err)
			}
		}
		if bits == 2048 {
			if err := sigstoreGo(t, rsaBundle(t, good, public.Hint(), pkcs1), public, nil, false); err != nil {
				t.Errorf("sigstore-go: %v", err)
			}
		}
	}
	modulus := func(bits uint) *big.Int {
		return new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), bits-1), big.NewInt(1))
	}
	for name, key := range map[string]*rsa.PublicKey{
		"1024 bits": {N: modulus(1024), E: 65537}, "2047 bits": {N: modulus(2047), E: 65537}, "8192 bits": {N: modulus(8192), E: 65537},
		"exponent 3": {N: modulus(2048), E: 3},
	} {
		if _, err := attest.ParsePublic(publicPEM(t, key)); !errors.Is(err, attest.ErrKeyKind) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
