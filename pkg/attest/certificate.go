package attest

import (
	"fmt"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/certificate"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
)

// TitleCertificate is the title of the layer that holds the data set's certificate. It is the last one, and there where somebody measured.
const TitleCertificate = "certificate.json"

// CertificateType is the predicate of an archive that has a certificate: what was measured on the data set, and the layer where it stands.
const CertificateType = "https://github.com/benchpin/benchpin/certificate/v1"

// certificatePredicate is the predicate of type CertificateType.
type certificatePredicate struct {
	// Digest is that of the layer.
	Digest      map[string]string        `json:"digest"`
	Certificate *certificate.Certificate `json:"certificate"`
}

// certified is a certificate with the digest of its bytes.
type certified struct {
	*certificate.Certificate
	digest string
}

// parseCertificate reads a certificate and compares it with the data set that it must be about.
func parseCertificate(raw []byte, h *manifest.Header, headerDigest string) (*certified, *fault.Fault) {
	c, err := certificate.Parse(raw)
	if err != nil {
		return nil, fault.New(fault.Certificate, "", err.Error()).In(TitleCertificate)
	}
	d := c.Dataset
	for _, f := range []struct{ field, says, is string }{
		{"dataset.root", d.Root, h.Root.String()},
		{"dataset.manifest", d.Manifest, headerDigest},
		{"dataset.files", fmt.Sprint(int64(d.Files)), fmt.Sprint(h.Count)},
		{"dataset.bytes", fmt.Sprint(int64(d.Bytes)), fmt.Sprint(h.Bytes)},
		{"dataset.generated", fmt.Sprint(d.Generated), fmt.Sprint(h.Recipe != nil)},
	} {
		if f.says != f.is {
			return nil, fault.New(fault.Certificate, f.field, fmt.Sprintf("it is about another data set than the record: it says %s, the manifest gives %s", f.says,
				f.is)).In(TitleCertificate)
		}
	}
	return &certified{c, oci.DigestsOf(raw).Blake3Digest().String()}, nil
}

// predicate is what is attested about it.
func (c *certified) predicate() typedPredicate {
	return typedPredicate{kind: CertificateType, value: certificatePredicate{Digest: blake3Set(c.digest), Certificate: c.Certificate}}
}

// splitCertificate takes the certificate's layer off those behind the files of the record.
func (v *verifier) splitCertificate(layers []oci.Layer) []oci.Layer {
	n := len(v.v.Record.Files)
	if len(layers) == n+1 && layers[n].Title == TitleCertificate && layers[n].MediaType == certificate.MediaType {
		v.certificateLayer = &layers[n]
		return layers[:n]
	}
	return layers
}

// certificate checks the data set's certificate, where the archive has one.
func (v *verifier) certificate() error {
	l := v.certificateLayer
	if l == nil {
		return nil
	}
	const limit = "that the figures are true: whoever has the data, or makes them again, measures the same (benchpin data certify)"
	fail := func(f *fault.Fault) error {
		return v.add("certificate", record.HostOnly, "certificate.json against its canonical form and the data set of the record", limit, []*fault.Fault{f})
	}
	header := v.v.layout.Layer(TitleManifest)
	switch {
	case l.Blob == nil:
		return fail(unchecked(TitleCertificate, "its content is missing or damaged"))
	case v.header == nil || header == nil || header.Blob == nil:
		return fail(unchecked(TitleCertificate, "the data set's manifest is not readable"))
	}
	raw, err := l.Blob.Bytes(certificate.MaxBytes)
	if err != nil {
		return fail(fault.New(fault.Limit, "", err.Error()).In(TitleCertificate))
	}
	c, bad := parseCertificate(raw, v.header, header.Blob.Blake3Digest().String())
	if bad != nil {
		return fail(bad)
	}
	v.certified, v.v.Certificate = c, c.Certificate
	return v.add("certificate", record.HostOnly, c.Sentence()+"; its root is the record's", limit, nil)
}
