package attest_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/certificate"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
)

// certificateFor is a certificate of the data set of a run.
func certificateFor(t testing.TB, r run) *certificate.Certificate {
	t.Helper()
	m, err := manifest.Open(r.input.Manifest)
	must(t, err)
	defer m.Close()
	h := m.Header()
	n := certificate.Int(h.Bytes)
	c := &certificate.Certificate{
		Schema: certificate.SchemaName, Class: "C", Method: certificate.Method, Library: "zstd 1",
		Dataset:     certificate.Dataset{Root: h.Root.String(), Manifest: m.Digest().String(), Files: certificate.Int(h.Count), Bytes: n, Generated: true},
		Scope:       certificate.Scope{Mode: certificate.All, Files: certificate.Int(h.Count), Bytes: n},
		Repeats:     certificate.Repeats{Files: certificate.Distinct{Count: certificate.Int(h.Count), Distinct: certificate.Int(h.Count), Exact: true}},
		Compression: certificate.Compression{Method: "zstd", Level: certificate.Level},
	}
	for _, size := range certificate.BlockSizes() {
		c.Repeats.Blocks = append(c.Repeats.Blocks, certificate.Blocks{Size: size, Distinct: certificate.Distinct{Count: 3, Distinct: 2, Share: 0.333333, Exact: true}})
	}
	for _, size := range certificate.ChunkSizes() {
		c.Compression.Chunks = append(c.Compression.Chunks, certificate.Chunks{Size: size, Plain: n, Compressed: n / 2, Ratio: 2})
	}
	return c
}

func canonicalOf(t testing.TB, c *certificate.Certificate) []byte {
	t.Helper()
	b, err := c.Canonical()
	must(t, err)
	return b
}

// TestCertificate: the certificate of a data set travels in the archive of a result, is attested by a predicate of its own, and must be about
// the data set of the record.
func TestCertificate(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	r := newRun(t, nil)
	r.input.Certificate = canonicalOf(t, certificateFor(t, r))
	dir := filepath.Join(t.TempDir(), "archive")
	info, err := attest.WriteArchive(context.Background(), dir, r.input, k)
	must(t, err)
	if !slices.Contains(info.PredicateTypes, attest.CertificateType) {
		t.Errorf("attested are %v", info.PredicateTypes)
	}
	v := verify(t, dir, attest.Policy{}, k.Public())
	must(t, v.Err())
	i := slices.IndexFunc(v.Checks, func(c attest.Check) bool { return c.Name == "certificate" })
	if i < 0 || v.Checks[i].Class != string(record.HostOnly) || !strings.Contains(v.Checks[i].Evidence, "33.33 % of blocks of 512 bytes repeat") || v.Certificate == nil {
		t.Errorf("found %+v", v.Checks)
	}
	raw, err := v.File(attest.TitleCertificate).Bytes(certificate.MaxBytes)
	if err != nil || !bytes.Equal(raw, r.input.Certificate) {
		t.Errorf("the layer is another one: %v", err)
	}
	// Without one there is neither the check nor the predicate.
	plain := verify(t, newArchive(t, newRun(t, nil), k), attest.Policy{}, k.Public())
	must(t, plain.Err())
	if slices.ContainsFunc(plain.Checks, func(c attest.Check) bool { return c.Name == "certificate" }) || plain.Certificate != nil {
		t.Errorf("found %+v", plain.Checks)
	}
	for name, change := range map[string]func(*certificate.Certificate){
		"root":      func(c *certificate.Certificate) { c.Dataset.Root = hexDigest("a") },
		"manifest":  func(c *certificate.Certificate) { c.Dataset.Manifest = hexDigest("a") },
		"generated": func(c *certificate.Certificate) { c.Dataset.Generated, c.Class = false, "H" },
		"files": func(c *certificate.Certificate) {
			c.Dataset.Files, c.Scope.Files, c.Repeats.Files.Count, c.Repeats.Files.Distinct = 4, 4, 4, 4
		},
	} {
		c := certificateFor(t, r)
		change(c)
		in := r.input
		in.Certificate = canonicalOf(t, c)
		dir := filepath.Join(t.TempDir(), "archive")
		_, err := attest.WriteArchive(context.Background(), dir, in, k)
		var f *fault.Fault
		if !errors.As(err, &f) || f.Class != fault.Certificate || !strings.Contains(err.Error(), "another data set") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: an archive was written", name)
		}
	}
	for name, raw := range map[string][]byte{"empty": {}, "white space": append([]byte(" "), r.input.Certificate...), "a share": bytes.Replace(r.input.Certificate,
		[]byte("0.333333"), []byte("0.1"), 1)} {
		in := r.input
		in.Certificate = raw
		if _, err := attest.WriteArchive(context.Background(), filepath.Join(t.TempDir(), "archive"), in, k); err == nil {
			t.Errorf("%s: an archive was written", name)
		}
	}
}
