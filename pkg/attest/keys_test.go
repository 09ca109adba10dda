package attest_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/benchpin/benchpin/pkg/attest"
)

func pkcs8PEM(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func password(s string) func() ([]byte, error) {
	return func() ([]byte, error) { return []byte(s), nil }
}

var kinds = attest.SigningKinds()

func TestKeysRoundTrip(t *testing.T) {
	for _, kind := range kinds {
		for _, pass := range []string{"correct horse", ""} {
			k := newKey(t, kind)
			sealed, err := k.PrivatePEM([]byte(pass))
			must(t, err)
			if !strings.HasPrefix(string(sealed), "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n") {
				t.Errorf("not cosign's form:\n%s", sealed)
			}
			again, err := attest.ParsePrivate(sealed, password(pass))
			must(t, err)
			if again.Public().Hint() != k.Public().Hint() || again.Public().Kind() != kind {
				t.Errorf("%s: another key came back", kind)
			}
			public, err := attest.ParsePublic(k.Public().PEM())
			must(t, err)
			if public.Hint() != k.Public().Hint() {
				t.Errorf("%s: another public key came back", kind)
			}
			if _, err := attest.ParsePrivate(sealed, password(pass+"x")); !errors.Is(err, attest.ErrPassword) || !strings.Contains(err.Error(), "wrong password") {
				t.Errorf("wrong password: %v", err)
			}
			if _, err := attest.ParsePrivate(sealed, nil); !errors.Is(err, attest.ErrPassword) {
				t.Errorf("no password: %v", err)
			}
			asked := errors.New("terminal closed")
			if _, err := attest.ParsePrivate(sealed, func() ([]byte, error) { return nil, asked }); !errors.Is(err, asked) {
				t.Errorf("password that cannot be asked: %v", err)
			}
		}
	}
	if _, err := newKey(t, attest.Ed25519).PrivatePEM(nil); err == nil {
		t.Error("a key was written without a password")
	}
	if _, err := attest.GenerateKey("rsa"); !errors.Is(err, attest.ErrKeyKind) {
		t.Errorf("kind rsa: %v", err)
	}
}

// Sigstore's own code, which cosign uses, must open our keys, and we its keys, under the new and the old PEM name.
func TestKeysAreCosignsKeys(t *testing.T) {
	pass := func(bool) ([]byte, error) { return []byte("pw"), nil }
	for _, kind := range kinds {
		k := newKey(t, kind)
		sealed, err := k.PrivatePEM([]byte("pw"))
		must(t, err)
		opened, err := cryptoutils.UnmarshalPEMToPrivateKey(sealed, pass)
		must(t, err)
		public, err := cryptoutils.MarshalPublicKeyToPEM(opened.(crypto.Signer).Public())
		must(t, err)
		if !bytes.Equal(public, k.Public().PEM()) {
			t.Errorf("%s: sigstore reads another key from our file", kind)
		}
	}
	sealed, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), pass)
	must(t, err)
	for _, name := range []string{"SIGSTORE", "COSIGN"} {
		k, err := attest.ParsePrivate(bytes.ReplaceAll(sealed, []byte("SIGSTORE"), []byte(name)), password("pw"))
		must(t, err)
		if !bytes.Equal(k.Public().PEM(), public) {
			t.Errorf("%s: we read another key from sigstore's file", name)
		}
	}
	// Old files of cosign have weaker scrypt parameters.
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(ec)
	must(t, err)
	legacy, err := encrypted.EncryptWithCustomKDFParameters(der, []byte("pw"), encrypted.Legacy)
	must(t, err)
	_, err = attest.ParsePrivate(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED COSIGN PRIVATE KEY", Bytes: legacy}), password("pw"))
	must(t, err)
}

func TestKeyFilesAreRefused(t *testing.T) {
	good, err := newKey(t, attest.Ed25519).PrivatePEM([]byte{})
	must(t, err)
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	p521, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	must(t, err)
	public := newKey(t, attest.Ed25519).Public().PEM()
	for name, c := range map[string]struct {
		pem   []byte
		class error
	}{
		"empty":           {nil, attest.ErrKeyFile},
		"text before":     {append([]byte("x\n"), good...), attest.ErrKeyFile},
		"text after":      {append(bytes.Clone(good), "x\n"...), attest.ErrKeyFile},
		"two keys":        {append(bytes.Clone(good), good...), attest.ErrKeyFile},
		"a public key":    {public, attest.ErrKeyFile},
		"a header":        {bytes.Replace(good, []byte("KEY-----\n"), []byte("KEY-----\nA: b\n\n"), 1), attest.ErrKeyFile},
		"no PKCS 8":       {pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}), attest.ErrKeyFile},
		"no sealed JSON":  {pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: []byte("x")}), attest.ErrPassword},
		"RSA":             {pkcs8PEM(t, weak), attest.ErrKeyKind},
		"P-521":           {pkcs8PEM(t, p521), attest.ErrKeyKind},
		"one byte longer": {append(bytes.Clone(good), bytes.Repeat([]byte("\n"), 64<<10)...), attest.ErrKeyFile},
	} {
		if _, err := attest.ParsePrivate(c.pem, password("")); !errors.Is(err, c.class) {
			t.Errorf("%s: expected %v, found %v", name, c.class, err)
		}
		if name != "a public key" {
			if _, err := attest.ParsePublic(c.pem); err == nil {
				t.Errorf("%s: taken for a public key", name)
			}
		}
	}
	der, err := x509.MarshalPKIXPublicKey(p521.Public())
	must(t, err)
	if _, err := attest.ParsePublic(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})); !errors.Is(err, attest.ErrKeyKind) {
		t.Errorf("P-521: %v", err)
	}
}

func TestSaveKeyPair(t *testing.T) {
	dir := t.TempDir()
	private, public := filepath.Join(dir, "k.key"), filepath.Join(dir, "k.pub")
	k := newKey(t, attest.ECDSAP256)
	must(t, attest.SaveKeyPair(k, private, public, []byte("pw")))
	for path, mode := range map[string]os.FileMode{private: 0o600, public: 0o644} {
		info, err := os.Stat(path)
		must(t, err)
		if info.Mode() != mode {
			t.Errorf("%s has mode %v, expected %v", filepath.Base(path), info.Mode(), mode)
		}
	}
	again, err := attest.LoadPrivate(private, password("pw"))
	must(t, err)
	pub, err := attest.LoadPublic(public)
	must(t, err)
	if again.Public().Hint() != pub.Hint() {
		t.Error("the two files do not belong together")
	}
	before, err := os.ReadFile(private)
	must(t, err)
	if err := attest.SaveKeyPair(newKey(t, attest.ECDSAP256), private, filepath.Join(dir, "other.pub"), []byte("pw")); !errors.Is(err, attest.ErrKeyExists) {
		t.Errorf("existing private key: %v", err)
	}
	other := filepath.Join(dir, "other.key")
	if err := attest.SaveKeyPair(newKey(t, attest.ECDSAP256), other, public, []byte("pw")); !errors.Is(err, attest.ErrKeyExists) {
		t.Errorf("existing public key: %v", err)
	}
	if _, err := os.Stat(other); !errors.Is(err, os.ErrNotExist) {
		t.Error("a private key was left without its public key")
	}
	if after, err := os.ReadFile(private); err != nil || !bytes.Equal(before, after) {
		t.Error("an existing key was changed")
	}
	if _, err := attest.LoadPrivate(private, password("no")); !errors.Is(err, attest.ErrPassword) || !strings.Contains(err.Error(), "k.key") {
		t.Errorf("wrong password must name the file: %v", err)
	}
}

// publicECDSA returns a plain verification with the standard library, given a digest and a signature.
func publicECDSA(t testing.TB, p attest.PublicKey) func(digest, sig []byte) bool {
	t.Helper()
	block, _ := pem.Decode(p.PEM())
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	must(t, err)
	public, ok := key.(*ecdsa.PublicKey)
	if !ok {
		t.Fatalf("the key is a %T", key)
	}
	return func(digest, sig []byte) bool { return ecdsa.VerifyASN1(public, digest, sig) }
}
