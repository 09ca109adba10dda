package attest_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
)

// TestKeysOfOtherForms: keys as other programs write them are refused with what makes a usable one of them, and without a word of the decoder.
func TestKeysOfOtherForms(t *testing.T) {
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	sec1, err := x509.MarshalECPrivateKey(secret)
	must(t, err)
	curve, err := asn1.Marshal(asn1.ObjectIdentifier{1, 2, 840, 10045, 3, 1, 7})
	must(t, err)
	compressed, err := asn1.Marshal(struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}{
		pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}, Parameters: asn1.RawValue{FullBytes: curve}},
		asn1.BitString{Bytes: elliptic.MarshalCompressed(elliptic.P256(), secret.X, secret.Y), BitLength: 33 * 8},
	})
	must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(secret)
	must(t, err)
	const convert = "openssl pkcs8 -topk8 -nocrypt"
	for name, c := range map[string]struct {
		private bool
		text    string
		want    string
	}{
		"SEC1":                 {true, block("EC PRIVATE KEY", sec1), convert},
		"SEC1 with parameters": {true, block("EC PARAMETERS", curve) + block("EC PRIVATE KEY", sec1), convert},
		"encrypted PKCS #8":    {true, block("ENCRYPTED PRIVATE KEY", sec1), convert},
		"SEC1 as PKCS #8":      {true, block("PRIVATE KEY", sec1), "damaged, or of another kind"},
		"damaged PKCS #8":      {true, block("PRIVATE KEY", pkcs8[:20]), "damaged, or of another kind"},
		"compressed point":     {false, block("PUBLIC KEY", compressed), "openssl ec -pubin -in OLD -conv_form uncompressed"},
		"damaged":              {false, block("PUBLIC KEY", compressed[:20]), "damaged"},
		"private for public":   {false, block("PRIVATE KEY", pkcs8), "secret half"},
	} {
		from := variables(map[string]string{"K": c.text})
		if c.private {
			_, err = attest.LoadSigner(context.Background(), "env://K", from)
		} else {
			_, err = attest.LoadVerifier(context.Background(), "env://K", from)
		}
		if !errors.Is(err, attest.ErrKeyFile) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: expected %q, found %v", name, c.want, err)
			continue
		}
		for _, inner := range []string{"asn1", "x509", "ecdsa:", "key file"} {
			if strings.Contains(err.Error(), inner) {
				t.Errorf("%s: a word of the decoder: %v", name, err)
			}
		}
	}
}
