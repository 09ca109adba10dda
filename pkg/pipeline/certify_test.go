package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/certificate"
	"github.com/benchpin/benchpin/pkg/manifest"
)

// TestFalseCertificates: whoever signs a certificate with other figures than the data have gains nothing where the recipe makes them again.
func TestFalseCertificates(t *testing.T) {
	l, out := gone(t)
	defer out.Close()
	key, err := attest.LoadPrivate(l.PrivateKey(), func() ([]byte, error) { return []byte{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, sample := range []int64{0, 3000} {
		path := filepath.Join(t.TempDir(), "c.json")
		if _, err := Certify(t.Context(), CertifyOptions{Data: l.Data(), Manifest: l.Manifest(), SampleBytes: sample, Out: path}); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		try := func(b []byte) error {
			if err := os.WriteFile(path, b, 0o666); err != nil {
				t.Fatal(err)
			}
			_, err := Attest(t.Context(), AttestOptions{Run: out.Run, Manifest: l.Manifest(), Certificate: path, Archive: filepath.Join(t.TempDir(), "a"), Key: key})
			return err
		}
		if err := try(b); err != nil {
			t.Errorf("sample of %d: the true one: %v", sample, err)
		}
		for what, change := range map[string]func(*certificate.Certificate){
			"repeats": func(c *certificate.Certificate) {
				d := &c.Repeats.Blocks[0].Distinct
				d.Distinct--
				d.Share = certificate.Share(d.Count, d.Distinct)
			},
			"compression": func(c *certificate.Certificate) {
				k := &c.Compression.Chunks[1]
				k.Compressed--
				k.Ratio = certificate.Ratio(k.Plain, k.Compressed)
			},
			"zeros": func(c *certificate.Certificate) { c.Repeats.Blocks[0].Zero++; c.Repeats.Blocks[1].Zero++ },
		} {
			c, err := certificate.Parse(b)
			if err != nil {
				t.Fatal(err)
			}
			change(c)
			changed, err := c.Canonical()
			if err != nil {
				t.Fatal(err)
			}
			if err := try(changed); !errors.Is(err, attest.ErrVerification) || !strings.Contains(err.Error(), checkCertified) {
				t.Errorf("sample of %d: other %s: %v", sample, what, err)
			}
		}
	}
}

// TestFalseRepeats: of data that nobody can make again too, the files that are alike follow from the manifest.
func TestFalseRepeats(t *testing.T) {
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "m.json")
	for name, content := range map[string]string{"a": "one", "b": "one", "c": "two", "d": "", "e": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Pin(t.Context(), PinOptions{Data: dir, Manifest: path}); err != nil {
		t.Fatal(err)
	}
	c, err := Certify(t.Context(), CertifyOptions{Data: dir, Manifest: path})
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if c.Repeats.Files.Count != 5 || c.Repeats.Files.Distinct != 4 {
		t.Fatalf("expected 4 different ones of 5, found %+v", c.Repeats.Files)
	}
	for _, distinct := range []certificate.Int{4, 5, 3} {
		c.Repeats.Files.Distinct = distinct
		c.Repeats.Files.Share = certificate.Share(5, distinct)
		v := &attest.Verification{Certificate: c, Manifest: m}
		repeatsAgain(t.Context(), v)
		if len(v.Checks) != 1 || v.Checks[0].OK != (distinct == 4) {
			t.Errorf("%d different ones: %+v", distinct, v.Checks)
		}
	}
}
